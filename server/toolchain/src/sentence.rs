//! What somebody else said, as a part of a sentence of ours.

/// Without the full stop at its end, since more follows.
pub(crate) fn part(said: impl ToString) -> String {
    let said = said.to_string();
    said.trim_end_matches(|c: char| c.is_whitespace() || c == '.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_full_stop_is_ours() {
        for (said, expected) in [
            ("it failed. Try again.", "it failed. Try again"),
            ("it failed ...\n", "it failed"),
            ("no", "no"),
            ("", ""),
        ] {
            assert_eq!(part(said), expected);
        }
    }
}
