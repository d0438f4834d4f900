//! Text of one file in the style of another: indentation, line ends, names that are free.

use std::collections::HashSet;

use tree_sitter::Node;

use super::super::source::{Source, all};

/// Code that is put into a file, with `\n` as its line end.
///
/// Every line of `span` is moved from the indentation `from` to the indentation `to`, its own steps turned into those of the file; lines inside
/// of strings stay as they are, since they are data.
pub(super) fn moved(
    source: &Source<'_>,
    start: usize,
    end: usize,
    from: &str,
    to: &str,
    steps: (&str, &str),
) -> String {
    let text = &source.text[start..end];
    let inside = string_lines(source, start, end);
    let mut result = String::with_capacity(text.len() + 64);
    let mut at = start;
    for line in text.split_inclusive('\n') {
        let body = line.trim_end_matches(['\n', '\r']);
        if at == start && source.line_start(start) != start {
            // The first line begins behind its indentation.
            result.push_str(to);
            result.push_str(body);
        } else if inside.contains(&at) {
            result.push_str(body);
        } else if !body.trim().is_empty() {
            let rest = body.strip_prefix(from).unwrap_or_else(|| body.trim_start());
            result.push_str(to);
            result.push_str(&restepped(rest, steps));
        }
        at += line.len();
        if line.ends_with('\n') {
            result.push('\n');
        }
    }
    result
}

/// A line with its steps of indentation exchanged.
fn restepped(line: &str, (old, new): (&str, &str)) -> String {
    if old == new || old.is_empty() {
        return line.to_owned();
    }
    let mut rest = line;
    let mut result = String::new();
    while let Some(deeper) = rest.strip_prefix(old) {
        result.push_str(new);
        rest = deeper;
    }
    result + rest
}

/// The beginnings of lines that lie inside of strings.
fn string_lines(source: &Source<'_>, start: usize, end: usize) -> HashSet<usize> {
    let mut lines = HashSet::new();
    for string in all(source.root(), &["string"]) {
        let (first, last) = (string.start_byte().max(start), string.end_byte().min(end));
        let Some(text) = source.text.get(first..last) else { continue };
        lines.extend(text.match_indices('\n').map(|(at, _)| first + at + 1));
    }
    lines
}

/// Every name that a file uses for anything.
pub(super) fn names(source: &Source<'_>) -> HashSet<String> {
    all(source.root(), &["identifier"]).into_iter().map(|node| source.of(node).to_owned()).collect()
}

/// A name that is not used yet: `wanted`, or with a number.
pub(super) fn free(wanted: &str, used: &mut HashSet<String>) -> String {
    let mut name = wanted.to_owned();
    let mut number = 2;
    while !used.insert(name.clone()) {
        name = format!("{wanted}_{number}");
        number += 1;
    }
    name
}

/// Where the comments right above a statement begin.
pub(super) fn with_comments(source: &Source<'_>, node: Node) -> usize {
    let mut start = source.line_start(node.start_byte());
    if !source.text[start..node.start_byte()].trim().is_empty() {
        return node.start_byte();
    }
    while start > 0 {
        let before = source.text[..start].trim_end_matches('\n').trim_end_matches('\r').len();
        let line = source.line_start(before.min(start - 1));
        if !source.text[line..start].trim_start_matches([' ', '\t']).starts_with('#') {
            break;
        }
        start = line;
    }
    start
}
