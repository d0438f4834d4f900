//! Edits as a model writes them: passages to search for, each with what comes in its place. Applied exactly or refused.
//!
//! A SEARCH text must point at one place. What can't be seen (line ends, spaces at the end of a line, empty lines around it) is forgiven
//! as long as one place is left; everything else is refused with a message from which a model can do better: how often and where
//! the text occurs, or what stands in the file instead.

mod blocks;
mod lines;
mod nearest;
mod scope;

use std::time::Duration;

use similar::TextDiff;
use stitch_findings::Span;

pub use blocks::{Block, Malformed, blocks, has_blocks};
pub(crate) use lines::Lines;
pub use nearest::Nearest;
pub use scope::{Outside, Scope};

/// Why edits were not applied. The message is meant for whoever wrote them; blocks and lines count from 1.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// A block about another file.
    #[error("Block {block} is about `{named}`, but only `{file}` may be changed.")]
    OtherFile {
        /// Which block.
        block: usize,
        /// The file it names.
        named: String,
        /// The file that there is.
        file: String,
    },
    /// A SEARCH without text.
    #[error(
        "The SEARCH of block {block} is empty, which says nothing about where its REPLACE belongs. Put the lines there that \
         come before the place, and repeat them in the REPLACE."
    )]
    Empty {
        /// Which block.
        block: usize,
    },
    /// A SEARCH that occurs nowhere.
    #[error("The SEARCH text of block {block} does not occur in `{file}`. {}", nearest.as_ref().map_or_else(
        || "Nothing in it is like that text. Copy the lines to be replaced exactly as they stand in the file.".to_owned(), Nearest::to_string))]
    NotFound {
        /// Which block.
        block: usize,
        /// The file.
        file: String,
        /// What is most like it.
        nearest: Option<Nearest>,
    },
    /// A SEARCH that occurs several times.
    #[error("The SEARCH text of block {block} occurs {} times in `{file}`, at lines {}. Add lines before or after it, until it \
        occurs once.", lines.len(), listed(lines))]
    Ambiguous {
        /// Which block.
        block: usize,
        /// The file.
        file: String,
        /// Where each begins.
        lines: Vec<usize>,
    },
    /// Two blocks that change the same text.
    #[error(
        "Blocks {first} and {second} both change line {line}. All blocks are applied to the file as it was shown, not to each \
         other's result. Make one block of them."
    )]
    Overlap {
        /// Which block.
        first: usize,
        /// And which other.
        second: usize,
        /// Where they meet.
        line: usize,
    },
    /// A change of what may not be changed.
    #[error(transparent)]
    Outside(#[from] Outside),
    /// Edits that leave everything as it was.
    #[error("The answer changes nothing: the code comes out as it was.")]
    Nothing,
}

/// Line numbers as a person lists them; of many only the first.
fn listed(lines: &[usize]) -> String {
    const MOST: usize = 8;
    let mut words: Vec<_> = lines.iter().take(MOST).map(usize::to_string).collect();
    if lines.len() > MOST {
        words.push("…".to_owned());
    }
    words.join(", ")
}

/// Applies `blocks` to `source`, the text of `file`. All are applied to the text as it is, not to each other's result.
///
/// # Errors
/// The first block that can't be applied, or a change outside of `scope`.
pub fn apply(file: &str, source: &str, blocks: &[Block], scope: &Scope) -> Result<String, Refusal> {
    let lines = Lines::of(source);
    let mut changes = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        let number = index + 1;
        if let Some(named) = &block.file
            && !is_same_file(named, file)
        {
            return Err(Refusal::OtherFile { block: number, named: named.clone(), file: file.to_owned() });
        }
        changes.push((number, locate(file, &lines, number, block)?));
    }
    changes.sort_by_key(|(_, change)| (change.span.start, change.span.end));
    for pair in changes.windows(2) {
        let ((first, before), (second, after)) = (&pair[0], &pair[1]);
        if after.span.start < before.span.end || after.span == before.span {
            let line = lines.number_at(after.span.start);
            return Err(Refusal::Overlap { first: *first.min(second), second: *first.max(second), line });
        }
    }
    let mut text = String::with_capacity(source.len());
    let mut done = 0;
    for (_, change) in &changes {
        text.push_str(&source[done..change.span.start]);
        text.push_str(&change.replacement);
        done = change.span.end;
    }
    text.push_str(&source[done..]);
    checked(source, text, scope)
}

/// The text of `file` with `new` in place of all of it, under the line ends and the final line end that `source` has.
///
/// # Errors
/// It is the same text, or changes what is outside of `scope`.
pub fn replace_all(source: &str, new: &str, scope: &Scope) -> Result<String, Refusal> {
    let lines = Lines::of(source);
    let new: Vec<_> = Lines::of(new.trim_end_matches(['\n', '\r'])).texts().collect();
    let mut text = new.join(lines.newline());
    if source.is_empty() || source.ends_with('\n') {
        text.push_str(lines.newline());
    }
    checked(source, text, scope)
}

/// `text`, if it differs from `source`, and only where it may.
pub(crate) fn checked(source: &str, text: String, scope: &Scope) -> Result<String, Refusal> {
    let text = scope.confine(source, text)?;
    if text == source { Err(Refusal::Nothing) } else { Ok(text) }
}

/// Whether a model meant `file` by `named`: folders before it, and quotes around it, don't matter.
fn is_same_file(named: &str, file: &str) -> bool {
    let last = |path: &str| path.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
    last(named.trim_matches(['`', '"', '\'', '*', ' ', ':'])) == last(file)
}

/// What differs between two texts, line by line. Texts that have nothing in common don't take long: then it is not the shortest.
pub(crate) fn line_diff<'a>(old: &'a str, new: &'a str) -> TextDiff<'a, 'a, 'a, str> {
    const LONGEST: Duration = Duration::from_secs(1);
    TextDiff::configure().timeout(LONGEST).diff_lines(old, new)
}

/// A block with its place.
struct Change {
    span: Span,
    replacement: String,
}

fn locate(file: &str, lines: &Lines<'_>, number: usize, block: &Block) -> Result<Change, Refusal> {
    let (mut search, mut replace) = (lines_of(&block.search), lines_of(&block.replace));
    if search.iter().all(|line| line.trim().is_empty()) {
        return Err(Refusal::Empty { block: number });
    }
    let ambiguous = |found: &[usize]| Refusal::Ambiguous {
        block: number,
        file: file.to_owned(),
        lines: found.iter().map(|index| index + 1).collect(),
    };
    let exact = lines.whole(&search, |one, other| one == other);
    if let Some(index) = only(&exact, block.near).map_err(&ambiguous)? {
        return Ok(whole_lines(lines, index, search.len(), &replace));
    }
    let parts = lines.parts(&search);
    match parts[..] {
        [] => {}
        [span] => {
            let newline = lines.newline_at(lines.number_at(span.start) - 1);
            return Ok(Change { span, replacement: replace.join(newline) });
        }
        _ => {
            let found: Vec<_> = parts.iter().map(|span| lines.number_at(span.start) - 1).collect();
            return Err(ambiguous(&found));
        }
    }
    // From here on only what can't be seen differs.
    for step in [Forgive::Nothing, Forgive::LinesAround, Forgive::Gutter] {
        step.forgive(&mut search, &mut replace);
        let found = lines.whole(&search, |one, other| one.trim_end() == other.trim_end());
        if let Some(index) = only(&found, block.near).map_err(&ambiguous)? {
            return Ok(whole_lines(lines, index, search.len(), &replace));
        }
    }
    let nearest = nearest::nearest(lines, &search);
    Err(Refusal::NotFound { block: number, file: file.to_owned(), nearest })
}

/// The lines of one side of a block; none for an empty text.
fn lines_of(text: &str) -> Vec<&str> {
    if text.is_empty() {
        return Vec::new();
    }
    text.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line)).collect()
}

/// The one place, or the one that was pointed at.
fn only(found: &[usize], near: Option<usize>) -> Result<Option<usize>, &[usize]> {
    match found {
        [] => Ok(None),
        [one] => Ok(Some(*one)),
        many => match near.and_then(|line| many.iter().find(|index| **index + 1 == line)) {
            Some(index) => Ok(Some(*index)),
            None => Err(many),
        },
    }
}

/// What else a block is forgiven, step by step.
#[derive(Clone, Copy)]
enum Forgive {
    Nothing,
    /// Empty lines before and after both sides.
    LinesAround,
    /// Line numbers copied from a listing: `12 | x`.
    Gutter,
}

impl Forgive {
    fn forgive<'a>(self, search: &mut Vec<&'a str>, replace: &mut Vec<&'a str>) {
        match self {
            Self::Nothing => {}
            Self::LinesAround => {
                for side in [search, replace] {
                    while side.last().is_some_and(|line| line.trim().is_empty()) {
                        side.pop();
                    }
                    let empty = side.iter().take_while(|line| line.trim().is_empty()).count();
                    side.drain(..empty);
                }
            }
            Self::Gutter => {
                if let Some(bare) = without_gutter(search) {
                    *search = bare;
                    if let Some(bare) = without_gutter(replace) {
                        *replace = bare;
                    }
                }
            }
        }
    }
}

/// The lines without `12 | ` before each, if each has it.
fn without_gutter<'a>(lines: &[&'a str]) -> Option<Vec<&'a str>> {
    lines
        .iter()
        .map(|line| {
            let (number, rest) = line.split_once('|')?;
            let number = number.trim();
            let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| rest.strip_prefix(' ').unwrap_or(rest))
        })
        .collect()
}

fn whole_lines(lines: &Lines<'_>, first: usize, count: usize, replace: &[&str]) -> Change {
    let mut span = lines.span(first, count);
    if replace.is_empty() {
        span = lines.span_to_remove(first, count);
    }
    Change { span, replacement: replace.join(lines.newline_at(first)) }
}

#[cfg(test)]
mod tests;
