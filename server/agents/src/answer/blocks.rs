//! The fenced code blocks of an answer.

/// An answer with more blocks than this is looked at only so far.
const MOST_BLOCKS: usize = 200;
/// So many lines that could close a block are tried.
const MOST_CLOSINGS: usize = 16;

/// A fenced block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fenced {
    /// The first word after the fence, in small letters: `cuda`; empty for none.
    pub(super) language: String,
    /// Its lines, ended by LF.
    pub(super) text: String,
    /// Whether its closing fence is there.
    pub(super) is_closed: bool,
    /// Lines of the answer it takes, fences included: the first, and the one after the last.
    pub(super) lines: (usize, usize),
}

/// An opening fence.
struct Fence {
    sign: char,
    length: usize,
    indentation: usize,
    language: String,
}

impl Fence {
    /// The fence that this line is.
    fn of(line: &str) -> Option<Self> {
        let bare = line.trim_start();
        let sign = bare.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
        let after = bare.trim_start_matches(sign);
        let length = bare.len() - after.len();
        if length < 3 || (sign == '`' && after.contains('`')) {
            return None;
        }
        let word = after.trim_start_matches([' ', '{', '.']).split([' ', ',', '{', '}', ':', '\t']).next();
        let language = word.unwrap_or_default().to_lowercase();
        Some(Self { sign, length, indentation: line.len() - bare.len(), language })
    }

    /// Whether this line closes the block: the same sign, at least as often, and nothing else.
    fn is_closed_by(&self, line: &str) -> bool {
        let line = line.trim();
        line.len() >= self.length && line.chars().all(|sign| sign == self.sign)
    }
}

/// All fenced blocks, in order. One that is not closed reaches to the end.
///
/// A line of fence signs inside a comment or a docstring does not close its block: while the text so far is not balanced and a later
/// closing fence makes it so, the block goes on to that one.
pub(super) fn fenced(answer: &str) -> Vec<Fenced> {
    let lines: Vec<_> = answer.lines().collect();
    let mut found = Vec::new();
    let mut index = 0;
    while index < lines.len() && found.len() < MOST_BLOCKS {
        let Some(fence) = Fence::of(lines[index]) else {
            index += 1;
            continue;
        };
        let end = closing(&fence, &lines, index + 1);
        let last = end.unwrap_or(lines.len());
        let text: String =
            lines[index + 1..last].iter().map(|line| dedented(line, fence.indentation) + "\n").collect();
        let after = (last + 1).min(lines.len());
        found.push(Fenced {
            language: fence.language,
            text,
            is_closed: end.is_some(),
            lines: (index, after),
        });
        index = after;
    }
    found
}

/// The line that closes the block beginning at `start`.
fn closing(fence: &Fence, lines: &[&str], start: usize) -> Option<usize> {
    let mut first = None;
    let mut tried = 0;
    for (index, line) in lines.iter().enumerate().skip(start) {
        if !fence.is_closed_by(line) {
            // The next block opens, so one of those before must have closed this.
            if first.is_some() && Fence::of(line).is_some_and(|next| !next.language.is_empty()) {
                break;
            }
            continue;
        }
        if is_balanced(&lines[start..index]) {
            return Some(index);
        }
        first = first.or(Some(index));
        tried += 1;
        if tried == MOST_CLOSINGS {
            break;
        }
    }
    first
}

/// Whether comments and docstrings that were begun are ended.
fn is_balanced(lines: &[&str]) -> bool {
    let count = |word: &str| lines.iter().map(|line| line.matches(word).count()).sum::<usize>();
    count("\"\"\"").is_multiple_of(2) && count("'''").is_multiple_of(2) && count("/*") <= count("*/")
}

/// The line without the spaces that its block is set in by, as far as it has them.
fn dedented(line: &str, by: usize) -> String {
    let spaces = line.len() - line.trim_start_matches([' ', '\t']).len();
    line.trim_end_matches('\r')[spaces.min(by).min(line.trim_end_matches('\r').len())..].to_owned()
}
