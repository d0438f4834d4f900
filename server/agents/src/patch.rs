//! Two versions of a text as a patch.

use similar::{Algorithm, DiffTag, TextDiff};

/// Lines around each change.
const CONTEXT: usize = 3;

/// The change from `before` to `after` as a unified diff that `git apply` and `patch -p1` take; empty where there is none.
pub fn unified(before: &str, after: &str, name: &str) -> String {
    TextDiff::configure()
        .newline_terminated(true)
        .diff_slices(&lines(before), &lines(after))
        .unified_diff()
        .context_radius(CONTEXT)
        .header(&format!("a/{name}"), &format!("b/{name}"))
        .to_string()
}

/// One change of a text: the bytes from `start` to `end` become `text`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The first byte that goes.
    pub start: usize,
    /// One past the last.
    pub end: usize,
    /// What comes in its place.
    pub text: String,
}

/// The changes of whole lines that lead from `before` to `after`, in order, in bytes of `before`.
pub fn changes(before: &str, after: &str) -> Vec<Change> {
    let (old_lines, new_lines) = (lines(before), lines(after));
    let (old, new) = (starts(&old_lines), starts(&new_lines));
    similar::capture_diff_slices(Algorithm::Myers, &old_lines, &new_lines)
        .iter()
        .filter(|op| op.tag() != DiffTag::Equal)
        .map(|op| {
            let (from, to) = (op.old_range(), op.new_range());
            let text = after.get(new[to.start]..new[to.end]).unwrap_or_default().to_owned();
            Change { start: old[from.start], end: old[from.end], text }
        })
        .collect()
}

/// Lines, each with its end.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Where each line starts, and the end of the last.
fn starts(lines: &[&str]) -> Vec<usize> {
    let ends = lines.iter().scan(0, |at, line| {
        *at += line.len();
        Some(*at)
    });
    std::iter::once(0).chain(ends).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_lead_from_one_text_to_the_other() {
        for (before, after) in [
            ("a\nb\nc\n", "a\nB\nc\nd"),
            ("", "x\n"),
            ("x\ny", ""),
            ("a\r\nb\r\nc", "b\r\nc\r\n"),
            ("a\rb\nc", "a\rB\nc"),
            ("same\n", "same\n"),
        ] {
            let mut text = String::new();
            let mut at = 0;
            for change in changes(before, after) {
                text.push_str(&before[at..change.start]);
                text.push_str(&change.text);
                at = change.end;
            }
            text.push_str(&before[at..]);
            assert_eq!(text, after, "{before:?}");
        }
        assert_eq!(changes("a\nb\n", "a\nc\n").len(), 1);
    }

    #[test]
    fn a_patch_has_the_lines_around_a_change() {
        assert_eq!(
            unified("a\nb\nc\n", "a\nB\nc\n", "k.cu"),
            "--- a/k.cu\n+++ b/k.cu\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"
        );
        assert_eq!(unified("a\n", "a\n", "k.cu"), "");
        assert!(unified("a\rb\n", "a\rB\n", "k.cu").contains("\n-a\rb\n+a\rB\n"));
        assert!(unified("a", "b", "k.cu").contains("\\ No newline at end of file"));
    }
}
