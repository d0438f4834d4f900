//! Finds the blocks in an answer.
//!
//! ```text
//! scale.cu
//! <<<<<<< SEARCH
//! old lines
//! =======
//! new lines
//! >>>>>>> REPLACE
//! ```

use super::Lines;

/// A passage, and what comes in its place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The file, where one is named.
    pub file: Option<String>,
    /// The passage, as lines without the end of the last.
    pub search: String,
    /// What comes in its place; empty for nothing.
    pub replace: String,
    /// The line where the passage is said to begin, from 1; decides between several.
    pub near: Option<usize>,
}

/// Why the blocks of an answer can't be read. The message is meant for whoever wrote it; lines are those of the answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A block that does not come to its end.
    #[error(
        "The block that begins at line {line} of the answer has no `{missing}` line, so the answer is cut or malformed. A block is \
         `<<<<<<< SEARCH`, the old lines, `=======`, the new lines, `>>>>>>> REPLACE`."
    )]
    Unfinished {
        /// Where it begins.
        line: usize,
        /// What is missing.
        missing: &'static str,
    },
    /// A marker where none belongs.
    #[error(
        "Line {line} of the answer is a `{marker}` where none belongs. A block is `<<<<<<< SEARCH`, the old lines, one `=======`, \
         the new lines, `>>>>>>> REPLACE`."
    )]
    Stray {
        /// Where.
        line: usize,
        /// Which.
        marker: &'static str,
    },
}

#[derive(Clone, Copy, PartialEq)]
enum Marker {
    Search,
    Divider,
    Replace,
}

impl Marker {
    fn of(line: &str) -> Option<Self> {
        let line = line.trim();
        let is = |sign: char, word: &str| {
            let rest = line.trim_start_matches(sign);
            line.len() - rest.len() >= 5 && rest.trim().trim_end_matches(':').eq_ignore_ascii_case(word)
        };
        if is('<', "SEARCH") {
            Some(Self::Search)
        } else if is('>', "REPLACE") {
            Some(Self::Replace)
        } else if line.len() >= 5 && line.len() <= 9 && line.bytes().all(|byte| byte == b'=') {
            Some(Self::Divider)
        } else {
            None
        }
    }

    fn shown(self) -> &'static str {
        match self {
            Self::Search => "<<<<<<< SEARCH",
            Self::Divider => "=======",
            Self::Replace => ">>>>>>> REPLACE",
        }
    }
}

/// Whether an answer holds edits as blocks, well-formed or not.
pub fn has_blocks(answer: &str) -> bool {
    Lines::of(answer).texts().any(|line| Marker::of(line) == Some(Marker::Search))
}

/// The blocks of an answer, in its order.
///
/// # Errors
/// One of them is not well-formed. None is used then, since they may belong together.
pub fn blocks(answer: &str) -> Result<Vec<Block>, Malformed> {
    let lines: Vec<_> = Lines::of(answer).texts().collect();
    let mut found = Vec::new();
    let mut index = 0;
    while index < lines.len() {
        if Marker::of(lines[index]) == Some(Marker::Search) {
            let (block, next) = block(&lines, index)?;
            found.push(block);
            index = next;
        } else {
            index += 1;
        }
    }
    Ok(found)
}

/// The block that begins at `start`, and the line after it.
fn block(lines: &[&str], start: usize) -> Result<(Block, usize), Malformed> {
    let mut divider = None;
    for index in start + 1..lines.len() {
        let Some(marker) = Marker::of(lines[index]) else { continue };
        let stray = Malformed::Stray { line: index + 1, marker: marker.shown() };
        match (marker, divider) {
            (Marker::Divider, None) => divider = Some(index),
            (Marker::Replace, Some(divider)) => {
                let block = Block {
                    file: file_before(lines, start),
                    search: lines[start + 1..divider].join("\n"),
                    replace: lines[divider + 1..index].join("\n"),
                    near: None,
                };
                return Ok((block, index + 1));
            }
            _ => return Err(stray),
        }
    }
    let missing = if divider.is_none() { Marker::Divider } else { Marker::Replace }.shown();
    Err(Malformed::Unfinished { line: start + 1, missing })
}

/// The file that is named before a block: on the line before it, or before the fence around it.
fn file_before(lines: &[&str], start: usize) -> Option<String> {
    let before = |index: usize| index.checked_sub(1).map(|index| lines[index].trim());
    let mut line = before(start)?;
    if line.starts_with("```") || line.starts_with("~~~") {
        line = before(start - 1)?;
    }
    let name = line.trim_matches(['`', '*', '#', ':', ' ', '"', '\'']);
    let is_name = name.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty()
            && (1..=4).contains(&extension.len())
            && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
    });
    (is_name && !name.contains(char::is_whitespace)).then(|| name.to_owned())
}
