//! The passage that a SEARCH text probably means.

use std::collections::HashSet;
use std::fmt;

use super::Lines;

/// Longer lines are not compared letter by letter: the time taken is the product of the lengths.
const LONGEST_LINE: usize = 400;
/// More lines than this are not compared letter by letter.
const MOST_LINES: usize = 20_000;
/// How alike two lines must be to be worth showing; 1 for the same.
const LEAST_ALIKE: f64 = 0.5;
/// Longer passages are shown by their beginning.
const MOST_SHOWN: usize = 40;

/// The passage of a file that is most like a SEARCH text.
#[derive(Clone, Debug, PartialEq)]
pub struct Nearest {
    /// The number of its first line, from 1.
    pub line: usize,
    /// The passage as it stands in the file.
    pub passage: String,
    /// The first line that differs: its number, what the file has, and what the SEARCH has.
    pub difference: Option<(usize, String, String)>,
}

impl fmt::Display for Nearest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.line + self.passage.lines().count().max(1) - 1;
        write!(formatter, "The nearest passage is at lines {} to {last}:\n{}\n", self.line, self.passage)?;
        match &self.difference {
            Some((line, file, search)) if file.trim() == search.trim() => write!(
                formatter,
                "They differ first in line {line}, in spaces or tabs at its beginning: the file has {:?}, the SEARCH has {:?}.",
                indentation(file),
                indentation(search)
            )?,
            Some((line, file, search)) => write!(
                formatter,
                "They differ first in line {line}: the file has {}, the SEARCH has {}.",
                quoted(file),
                quoted(search)
            )?,
            None => {}
        }
        formatter.write_str(" Copy the lines exactly as they stand in the file.")
    }
}

fn quoted(line: &str) -> String {
    if line.trim().is_empty() { "an empty line".to_owned() } else { format!("`{}`", line.trim()) }
}

fn indentation(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

/// The passage of as many lines as `search` that shares most lines with it; by its first line, where it shares none.
pub(super) fn nearest(lines: &Lines<'_>, search: &[&str]) -> Option<Nearest> {
    if lines.len() == 0 || search.is_empty() {
        return None;
    }
    let count = search.len().min(lines.len());
    let wanted: HashSet<&str> = search.iter().map(|line| line.trim()).filter(|line| line.len() > 1).collect();
    let shared: Vec<usize> = lines.texts().map(|line| usize::from(wanted.contains(line.trim()))).collect();
    let mut sum: usize = shared[..count].iter().sum();
    let (mut best, mut most) = (0, sum);
    for first in 1..=lines.len() - count {
        sum = sum + shared[first + count - 1] - shared[first - 1];
        if sum > most {
            (best, most) = (first, sum);
        }
    }
    let first = if most > 0 { aligned(lines, search, best, count) } else { alike(lines, search)? };
    Some(shown(lines, search, first))
}

/// Where the passage begins, if the first lines in common stand at different places in it and in the SEARCH.
fn aligned(lines: &Lines<'_>, search: &[&str], best: usize, count: usize) -> usize {
    for (place, line) in search.iter().enumerate() {
        let line = line.trim();
        let is_it = |index: &usize| line.len() > 1 && lines.text(*index).trim() == line;
        if let Some(index) = (best..best + count).find(is_it) {
            return index.saturating_sub(place);
        }
    }
    best
}

/// The line that is most like one of the SEARCH, as where the passage would begin.
fn alike(lines: &Lines<'_>, search: &[&str]) -> Option<usize> {
    let place = search.iter().position(|line| line.trim().len() > 1)?;
    let wanted = search[place].trim();
    if wanted.len() > LONGEST_LINE || lines.len() > MOST_LINES {
        return None;
    }
    let likeness = |line: &str| {
        // Lines of very different lengths can't be alike.
        let (short, long) = (line.len().min(wanted.len()), line.len().max(wanted.len()));
        if short * 2 < long { 0.0 } else { strsim::normalized_levenshtein(line, wanted) }
    };
    lines
        .texts()
        .enumerate()
        .map(|(index, line)| (likeness(line.trim()), index))
        .filter(|(alike, _)| *alike >= LEAST_ALIKE)
        .max_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)))
        .map(|(_, index)| index.saturating_sub(place))
}

fn shown(lines: &Lines<'_>, search: &[&str], first: usize) -> Nearest {
    let count = search.len().min(lines.len() - first);
    let passage: Vec<_> = (first..first + count.min(MOST_SHOWN)).map(|index| lines.text(index)).collect();
    let difference = search
        .iter()
        .enumerate()
        .find(|(place, line)| lines.text(first + place).trim_end() != line.trim_end())
        .map(|(place, line)| (first + place + 1, lines.text(first + place).to_owned(), (*line).to_owned()));
    Nearest { line: first + 1, passage: passage.join("\n"), difference }
}
