//! Two versions of a text as a patch.

use similar::TextDiff;

/// Lines around each change.
const CONTEXT: usize = 3;

/// The change from `before` to `after` as a unified diff that `git apply` and `patch -p1` take; empty where there is none.
pub fn unified(before: &str, after: &str, name: &str) -> String {
    TextDiff::from_lines(before, after)
        .unified_diff()
        .context_radius(CONTEXT)
        .header(&format!("a/{name}"), &format!("b/{name}"))
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::unified;

    #[test]
    fn a_patch_has_the_lines_around_a_change() {
        assert_eq!(
            unified("a\nb\nc\n", "a\nB\nc\n", "k.cu"),
            "--- a/k.cu\n+++ b/k.cu\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"
        );
        assert_eq!(unified("a\n", "a\n", "k.cu"), "");
        assert!(unified("a", "b", "k.cu").contains("\\ No newline at end of file"));
    }
}
