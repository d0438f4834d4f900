//! Reads code off an answer: which of its parts is the candidate, and what text the file has with it.
//!
//! Edits win over a diff, a diff over code blocks. Among the blocks, the one that is the whole file, else those that define a function
//! that was asked for; the last where several define the same. A block that quotes the code as it was, or in another language, is none.

use std::collections::BTreeMap;

use stitch_analysis::{Analysis, Language};

use super::blocks::{Fenced, fenced};
use super::{diff, first_words, functions, refusal};
use crate::edit::{self, Malformed, Refusal, Scope};

/// Longer explanations are shown by their beginning; in characters.
const LONGEST_EXPLANATION: usize = 1500;
/// Names that models give to CUDA code after a fence.
const CUDA_NAMES: [&str; 13] =
    ["", "cuda", "cu", "cuh", "cuda-cpp", "cpp", "c++", "cxx", "cc", "c", "h", "hpp", "cuda-c++"];
const PYTHON_NAMES: [&str; 5] = ["", "python", "py", "python3", "pytorch"];

/// What an answer is about.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The name of the file, without folders.
    pub file: &'a str,
    /// Its text.
    pub text: &'a str,
    /// Names of the kernels and functions that were asked for; empty for any.
    pub targets: &'a [String],
    /// What of it may be changed.
    pub scope: &'a Scope,
}

/// What was read.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    /// New code.
    Candidate {
        /// The file's whole new text.
        text: String,
        /// What the answer says about it.
        explanation: String,
        /// What was unusual about the answer, each in a sentence.
        notes: Vec<String>,
    },
    /// The model says that there is nothing to do.
    Declined {
        /// Why.
        reason: String,
    },
}

/// Why there is no candidate in an answer. The message is meant for whoever wrote it.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CodeError {
    /// No text at all.
    #[error("The answer is empty.")]
    Empty,
    /// The model will not do it.
    #[error("The answer refuses: \"{said}\"")]
    Refused {
        /// Its words.
        said: String,
    },
    /// It ends in the middle of its code.
    #[error(
        "The answer is cut off: its code block, from line {line} of the answer on, is not complete. Answer with SEARCH/REPLACE blocks \
         for the changed lines only, so that it fits."
    )]
    Cut {
        /// Where the block begins.
        line: usize,
    },
    /// It leaves code out.
    #[error(
        "The answer leaves code out: `{line}`. Write all of the code, or SEARCH/REPLACE blocks for the lines that change."
    )]
    Omitted {
        /// The comment that stands in for it.
        line: String,
    },
    /// No code.
    #[error(
        "The answer holds no code: no SEARCH/REPLACE block and no code block. It begins with \"{begins}\"."
    )]
    NoCode {
        /// How it begins.
        begins: String,
    },
    /// Code for something else.
    #[error(
        "No code block of the answer defines {wanted}{}. Keep its name, or answer with SEARCH/REPLACE blocks.",
        if found.is_empty() { String::new() } else { format!("; there is {found}") }
    )]
    NoTarget {
        /// What was asked for.
        wanted: String,
        /// What is defined instead.
        found: String,
    },
    /// Edits that are not well-formed.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A diff that is not well-formed.
    #[error(
        "The diff can't be read: line {line} of it is neither context nor a change. Use SEARCH/REPLACE blocks."
    )]
    Diff {
        /// Which line, from 1.
        line: usize,
    },
    /// Code that can't be put in place.
    #[error("{0} Use SEARCH/REPLACE blocks.")]
    Place(String),
    /// Edits that can't be applied.
    #[error(transparent)]
    Edit(#[from] Refusal),
}

/// Reads the candidate off an answer without thinking in it.
///
/// # Errors
/// There is none in it, or it can't be applied.
pub fn read_code(answer: &str, source: Source<'_>) -> Result<Reading, CodeError> {
    if answer.trim().is_empty() {
        return Err(CodeError::Empty);
    }
    let fenced = fenced(answer);
    let explanation = explanation(answer, &fenced, source.file);
    let candidate = |text, notes| Reading::Candidate { text, explanation: explanation.clone(), notes };
    // Where nothing sets the code apart, nothing tells what is said about it.
    let bare = |text, notes| Reading::Candidate { text, explanation: String::new(), notes };
    let has_fence = !fenced.is_empty();
    if edit::has_blocks(answer) {
        let blocks = edit::blocks(answer)?;
        for block in &blocks {
            check_complete(&block.replace, source.text)?;
        }
        let text = edit::apply(source.file, source.text, &blocks, source.scope)?;
        return Ok(candidate(text, Vec::new()));
    }
    if let Some(blocks) = diff::read(answer, &fenced) {
        let text = edit::apply(source.file, source.text, &blocks?, source.scope)?;
        let notes = vec!["The answer is a unified diff.".to_owned()];
        return Ok(if has_fence { candidate(text, notes) } else { bare(text, notes) });
    }
    if let Some(reason) = declined(answer) {
        return Ok(Reading::Declined { reason });
    }
    let (text, notes) = of_blocks(answer, fenced, source)?;
    Ok(if has_fence { candidate(text, notes) } else { bare(text, notes) })
}

/// The reason of an answer that declines: behind `DECLINE:` at the beginning of a line.
fn declined(answer: &str) -> Option<String> {
    answer.lines().enumerate().find_map(|(index, line)| {
        let bare = line.trim().trim_matches('*');
        let after = bare.strip_prefix("DECLINED").or_else(|| bare.strip_prefix("DECLINE"))?;
        let reason = after.strip_prefix(':')?.trim_start_matches('*').trim();
        let rest = answer.lines().skip(index + 1).collect::<Vec<_>>().join("\n");
        Some(format!("{reason}\n{rest}").trim().to_owned())
    })
}

fn of_blocks(
    answer: &str,
    fenced: Vec<Fenced>,
    source: Source<'_>,
) -> Result<(String, Vec<String>), CodeError> {
    let is_python = source.file.ends_with(".py");
    let names: &[&str] = if is_python { &PYTHON_NAMES } else { &CUDA_NAMES };
    let mut notes = Vec::new();
    let mut blocks: Vec<_> =
        fenced.into_iter().filter(|block| names.contains(&block.language.as_str())).collect();
    if blocks.is_empty() {
        if let Some(said) = refusal(answer) {
            return Err(CodeError::Refused { said });
        }
        if !looks_like_code(answer) {
            return Err(CodeError::NoCode { begins: first_words(answer) });
        }
        notes.push("The answer is code without a fence around it.".to_owned());
        let text = answer.to_owned() + "\n";
        blocks.push(Fenced { language: String::new(), text, is_closed: true, lines: (0, 0) });
    }
    if let Some(open) = blocks.iter().find(|block| !block.is_closed) {
        if is_python || !functions::is_balanced(&open.text) {
            return Err(CodeError::Cut { line: open.lines.0 + 1 });
        }
        notes.push("The last code block has no closing fence, but is complete.".to_owned());
    }
    let old = squeezed(source.text);
    let is_new = |block: &Fenced| !squeezed(&block.text).is_empty() && !old.contains(&squeezed(&block.text));
    let count = blocks.len();
    blocks.retain(is_new);
    if blocks.is_empty() && count > 0 {
        return Err(CodeError::Edit(Refusal::Nothing));
    }
    let text = if is_python { of_python(&blocks, source)? } else { of_cuda(&blocks, source)? };
    Ok((text, notes))
}

fn of_cuda(blocks: &[Fenced], source: Source<'_>) -> Result<String, CodeError> {
    let file = Analysis::of(Language::Cuda, source.text);
    let read: Vec<_> = blocks.iter().map(|block| Analysis::of(Language::Cuda, &block.text)).collect();
    if let Some(whole) = read.iter().rev().find(|block| functions::is_whole(&file, block)) {
        check_complete(whole.source(), source.text)?;
        return Ok(edit::replace_all(source.text, whole.source(), source.scope)?);
    }
    let known =
        |name: &String| file.outline().functions.iter().any(|one| one.is_definition && one.name == *name);
    // A plan may name what it wants to add; only what is there can be asked for.
    let targets: Vec<_> = source.targets.iter().filter(|name| known(name)).cloned().collect();
    let is_wanted = |name: &String| targets.is_empty() || targets.contains(name);
    let defined = |block: &Analysis| -> Vec<String> {
        block.outline().functions.iter().filter(|one| one.is_definition).map(|one| one.name.clone()).collect()
    };
    // The last block that defines a function has it; the others of that block come along.
    let mut last = BTreeMap::new();
    for (index, block) in read.iter().enumerate() {
        for name in defined(block).into_iter().filter(|name| is_wanted(name) && known(name)) {
            last.insert(name, index);
        }
    }
    let mut chosen: Vec<_> = last.into_values().collect();
    chosen.sort_unstable();
    chosen.dedup();
    if chosen.is_empty() {
        let quoted =
            |names: Vec<String>| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let wanted = if targets.is_empty() { "a function of the file".to_owned() } else { quoted(targets) };
        let found = quoted(read.iter().flat_map(defined).collect());
        return Err(CodeError::NoTarget { wanted, found });
    }
    let chosen: Vec<_> = chosen.into_iter().map(|index| &read[index]).collect();
    for block in &chosen {
        check_complete(block.source(), source.text)?;
    }
    let text = functions::put_in_place(&file, &chosen).map_err(CodeError::Place)?;
    Ok(edit::checked(source.text, text, source.scope)?)
}

/// In Python a candidate is a whole module: the last block that defines what was asked for, or `ModelNew`.
fn of_python(blocks: &[Fenced], source: Source<'_>) -> Result<String, CodeError> {
    let defines = |text: &str, name: &str| {
        text.lines().any(|line| {
            let rest = line.strip_prefix("class ").or_else(|| line.strip_prefix("def "));
            rest.and_then(|rest| rest.strip_prefix(name))
                .is_some_and(|rest| rest.starts_with(['(', ':', ' ']))
        })
    };
    let mut names: Vec<_> = source.targets.iter().map(String::as_str).collect();
    names.push("ModelNew");
    let block = blocks.iter().rev().find(|block| names.iter().any(|name| defines(&block.text, name)));
    let block = block.ok_or_else(|| CodeError::NoTarget {
        wanted: names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or "),
        found: String::new(),
    })?;
    check_complete(&block.text, source.text)?;
    Ok(edit::replace_all(source.text, &block.text, source.scope)?)
}

/// Refuses code in which a comment like `// ... rest unchanged` stands in for code.
fn check_complete(code: &str, before: &str) -> Result<(), CodeError> {
    const WORDS: [&str; 8] =
        ["rest of", "remaining", "unchanged", "same as", "existing", "as before", "omitted", "previous"];
    for line in code.lines() {
        let bare = line.trim();
        let Some(comment) = ["//", "/*", "#"].iter().find_map(|sign| bare.strip_prefix(sign)) else {
            if matches!(bare, "..." | "\u{2026}") {
                return Err(CodeError::Omitted { line: bare.to_owned() });
            }
            continue;
        };
        let comment = comment.trim_end_matches("*/").trim().to_lowercase();
        let has_dots = comment.contains("...") || comment.contains('\u{2026}');
        let only_dots = has_dots && comment.chars().all(|one| matches!(one, '.' | '\u{2026}' | ' '));
        let is_stand_in = only_dots || (has_dots && WORDS.iter().any(|word| comment.contains(word)));
        if is_stand_in && !before.contains(bare) {
            return Err(CodeError::Omitted { line: bare.to_owned() });
        }
    }
    Ok(())
}

/// Whether a text without fences is code alone.
fn looks_like_code(text: &str) -> bool {
    const STARTS: [&str; 12] = [
        "#include", "#define", "#pragma", "//", "/*", "__", "template", "extern", "static", "using",
        "import ", "from ",
    ];
    let text = text.trim_start();
    STARTS.iter().any(|start| text.starts_with(start)) && functions::is_balanced(text)
}

/// The text without spaces, to tell whether it is the same code.
fn squeezed(text: &str) -> String {
    text.chars().filter(|one| !one.is_whitespace()).collect()
}

/// What an answer says around its code.
fn explanation(answer: &str, fenced: &[Fenced], file: &str) -> String {
    let mut text = String::new();
    let mut is_edit = false;
    for (index, line) in answer.lines().enumerate() {
        is_edit |= line.starts_with("<<<<<");
        let is_code = fenced.iter().any(|block| (block.lines.0..block.lines.1).contains(&index));
        // The line that names the file of an edit says nothing.
        let is_name =
            line.trim().trim_matches(['*', '`', ':', '#', ' ']).ends_with(file) && !line.trim().contains(' ');
        let is_gap = line.trim().is_empty() && text.ends_with("\n\n");
        if !is_edit && !is_code && !is_name && !is_gap {
            text.push_str(line.trim_end());
            text.push('\n');
        }
        is_edit &= !line.starts_with(">>>>>");
    }
    let text = text.trim();
    match text.char_indices().nth(LONGEST_EXPLANATION) {
        Some((at, _)) => format!("{}…", text[..at].trim_end()),
        None => text.to_owned(),
    }
}
