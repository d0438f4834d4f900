//! `# stitchcuda: inputs(...)` and `# stitchcuda: init(...)`: inputs that a person writes beside the code.
//!
//! The parentheses may go on over several comment lines. What stands in them is a Python argument list; `dtype=float16` and
//! `file="x.pt"` are ours and are taken out of it.

use stitch_findings::Span;

use super::inputs::{Given, GivenCase, InputError};
use super::source::{Source, all, span};

/// Begins what is addressed to us in a comment.
const MARK: &str = "stitchcuda:";
/// What floating-point inputs can be turned into.
pub(super) const DTYPES: &[&str] = &["float64", "float32", "float16", "bfloat16"];
/// Other names that torch has for them.
const ALIASES: &[(&str, &str)] = &[
    ("double", "float64"),
    ("float", "float32"),
    ("half", "float16"),
    ("fp64", "float64"),
    ("fp32", "float32"),
    ("fp16", "float16"),
    ("bf16", "bfloat16"),
];

/// What the comments about one target say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Declared {
    pub(super) init: Option<Given>,
    pub(super) cases: Vec<GivenCase>,
}

/// Reads the comments in `region`, and those right above `start`, where the target begins.
pub(super) fn declared(source: &Source<'_>, region: Span, start: usize) -> Result<Declared, InputError> {
    let first = above(source, start);
    let comments: Vec<Span> = all(source.root(), &["comment"])
        .into_iter()
        .map(span)
        .filter(|comment| comment.start >= first && comment.start < region.end)
        .collect();
    let mut declared = Declared::default();
    let mut index = 0;
    while let Some(comment) = comments.get(index) {
        index += 1;
        let text = &source.text[comment.range()];
        let body = text.trim_start_matches('#').trim_start();
        let Some(rest) = body.strip_prefix(MARK) else { continue };
        let mut at = comment.end - rest.len();
        let mut rest = rest.to_owned();
        // Several in one comment stand one behind the other.
        loop {
            let trimmed = rest.trim_start_matches([' ', '\t', ',']);
            at += rest.len() - trimmed.len();
            let Some((word, open)) = ["inputs", "init"].iter().find_map(|word| {
                let behind = trimmed.strip_prefix(word)?;
                let list = behind.trim_start();
                list.starts_with('(').then(|| (*word, trimmed.len() - list.len()))
            }) else {
                check_word(trimmed, at)?;
                break;
            };
            let mut joined = trimmed[open..].to_owned();
            let place = Span::new(at, comment.end);
            let end = loop {
                match closing(&joined) {
                    Some(end) => break end,
                    None => {
                        match comments.get(index).filter(|next| follows(source, comments[index - 1], **next))
                        {
                            Some(next) => {
                                joined.push('\n');
                                joined.push_str(source.text[next.range()].trim_start_matches('#').trim());
                                index += 1;
                            }
                            None => {
                                return Err(InputError::new(
                                    place,
                                    format!("The parenthesis of `{word}(` is not closed."),
                                ));
                            }
                        }
                    }
                }
            };
            let list = joined[1..end].trim().to_owned();
            add(&mut declared, word, &list, place)?;
            at = comment.end;
            rest = joined[end + 1..].to_owned();
        }
    }
    Ok(declared)
}

/// A word that is none of ours is a mistake; others of this tool (`tolerance=…`) are not ours to judge.
fn check_word(text: &str, at: usize) -> Result<(), InputError> {
    let word: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    let call = text[word.len()..].trim_start().starts_with('(');
    if call || matches!(word.as_str(), "inputs" | "init" | "input") {
        let message = format!("`{word}` is not known here; write `inputs(...)` or `init(...)`.");
        return Err(InputError::new(Span::new(at, at + word.len()), message));
    }
    Ok(())
}

/// Adds one list.
fn add(declared: &mut Declared, word: &str, list: &str, place: Span) -> Result<(), InputError> {
    let mut dtype = None;
    let mut file = None;
    let mut kept = Vec::new();
    for argument in arguments(list) {
        let (name, value) = keyword(argument);
        match name {
            Some("dtype") => {
                dtype = Some(known_dtype(value).ok_or_else(|| {
                    let known = DTYPES.join(", ");
                    InputError::new(place, format!("`dtype={value}` is not known; use one of {known}."))
                })?)
            }
            Some("file") => {
                file = Some(unquoted(value).ok_or_else(|| {
                    InputError::new(
                        place,
                        "`file=` takes the path of a file in quotes, relative to this file.".to_owned(),
                    )
                })?)
            }
            _ => kept.push(argument),
        }
    }
    let given = match file {
        Some(_) if !kept.is_empty() => {
            let message = "`file=` stands alone: the file holds all inputs.".to_owned();
            return Err(InputError::new(place, message));
        }
        Some(path) => Given::File { path, span: place },
        None => Given::Expression { text: kept.join(", "), span: place },
    };
    if word == "inputs" {
        declared.cases.push(GivenCase { inputs: given, dtype });
    } else if declared.init.is_some() {
        return Err(InputError::new(place, "There are two `init(...)` for one module.".to_owned()));
    } else if dtype.is_some() {
        let message =
            "`dtype=` belongs to `inputs(...)`: it turns inputs and parameters into that type.".to_owned();
        return Err(InputError::new(place, message));
    } else {
        declared.init = Some(given);
    }
    Ok(())
}

/// Reads the text of an argument list given elsewhere: `--inputs 'randn(8, 3), dtype=float16'`.
pub(super) fn case_of(list: &str) -> Result<GivenCase, InputError> {
    let mut declared = Declared::default();
    add(&mut declared, "inputs", list.trim(), Span::default())?;
    declared.cases.pop().ok_or_else(|| InputError::new(Span::default(), "Nothing is given.".to_owned()))
}

/// Where the comments right above a target begin; comments, not blank lines.
fn above(source: &Source<'_>, start: usize) -> usize {
    let mut first = source.line_start(start);
    while first > 0 {
        let line = source.line_start(first - 1 - usize::from(source.text[..first].ends_with("\r\n")));
        if !source.text[line..first].trim_start().starts_with('#') {
            break;
        }
        first = line;
    }
    first
}

/// Whether `next` is a comment on the line after `comment`.
fn follows(source: &Source<'_>, comment: Span, next: Span) -> bool {
    source.line_start(next.start) == source.line_end(comment.end) && !source.text[next.range()].contains(MARK)
}

/// Cuts an argument list at its commas.
pub(super) fn arguments(list: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    for (at, byte, depth) in outside_strings(list) {
        if byte == b',' && depth == 0 {
            found.push(list[start..at].trim());
            start = at + 1;
        }
    }
    found.push(list[start.min(list.len())..].trim());
    found.retain(|argument| !argument.is_empty());
    found
}

/// Cuts `name=value`.
pub(super) fn keyword(argument: &str) -> (Option<&str>, &str) {
    let Some((name, value)) = argument.split_once('=') else { return (None, argument) };
    let name = name.trim();
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    if is_name && !value.starts_with('=') { (Some(name), value.trim()) } else { (None, argument) }
}

/// Where the parenthesis that a text begins with is closed.
fn closing(text: &str) -> Option<usize> {
    outside_strings(text).find(|(at, byte, depth)| *at > 0 && *byte == b')' && *depth == 0).map(|(at, ..)| at)
}

/// The bytes of a Python text that are in no string, each with the depth of parentheses around it; a closing one has that outside of it.
fn outside_strings(text: &str) -> impl Iterator<Item = (usize, u8, usize)> {
    let bytes = text.as_bytes();
    let mut quote = None;
    let mut escaped = false;
    let mut depth = 0usize;
    bytes.iter().enumerate().filter_map(move |(at, byte)| {
        if let Some(open) = quote {
            if escaped {
                escaped = false;
            } else if *byte == b'\\' {
                escaped = true;
            } else if *byte == open {
                quote = None;
            }
            return None;
        }
        match byte {
            b'"' | b'\'' => quote = Some(*byte),
            b'(' | b'[' | b'{' => {
                depth += 1;
                return Some((at, *byte, depth - 1));
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        Some((at, *byte, depth))
    })
}

/// torch's name of a floating-point type.
fn known_dtype(text: &str) -> Option<String> {
    let name = text.trim().trim_matches(['"', '\'']);
    let name = name.strip_prefix("torch.").unwrap_or(name);
    let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, full)| full);
    DTYPES.contains(&name).then(|| name.to_owned())
}

/// The text in quotes.
fn unquoted(text: &str) -> Option<String> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    (!inner.is_empty() && !inner.contains(quote)).then(|| inner.to_owned())
}
