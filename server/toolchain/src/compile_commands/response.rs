//! Puts the contents of response files in place of their names.
//!
//! nvcc takes `--options-file f`, `-optf f`, both with `=` and with several files between commas; `@f` is what host compilers
//! take. A file may name others. Within it quotes hold blanks together and a backslash escapes, as in a shell, and a
//! backslash before anything else is itself, for Windows paths.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Response files within response files, beyond which a chain is taken for a mistake.
const MOST_FILES: usize = 256;

/// What could not be read, and why.
type Unreadable = (PathBuf, String);

/// One piece of work: a word, or the end of a file that was entered.
enum Work {
    Word(String),
    Leave(PathBuf),
}

/// The words with every response file expanded, names of files relative to `directory`.
pub(super) fn expand(words: &[String], directory: &Path) -> Result<Vec<String>, Unreadable> {
    let mut work: Vec<Work> = words.iter().rev().cloned().map(Work::Word).collect();
    let mut expanded = Vec::with_capacity(words.len());
    let mut inside = HashSet::new();
    let mut files = 0;
    while let Some(item) = work.pop() {
        let word = match item {
            Work::Word(word) => word,
            Work::Leave(path) => {
                inside.remove(&path);
                continue;
            }
        };
        let named = match response_names(&word) {
            Named::Here(names) => names.to_owned(),
            Named::Next => match work.pop() {
                Some(Work::Word(next)) => next,
                other => {
                    work.extend(other);
                    expanded.push(word);
                    continue;
                }
            },
            Named::Nothing => {
                expanded.push(word);
                continue;
            }
        };
        for name in split_names(&named, directory).into_iter().rev() {
            files += 1;
            let path = directory.join(&name);
            if files > MOST_FILES || !inside.insert(path.clone()) {
                return Err((path, "it includes itself, or too many others".to_owned()));
            }
            let bytes = std::fs::read(&path).map_err(|error| (path.clone(), error.to_string()))?;
            work.push(Work::Leave(path));
            let words = split_words(&String::from_utf8_lossy(&bytes));
            work.extend(words.into_iter().rev().map(Work::Word));
        }
    }
    Ok(expanded)
}

enum Named<'a> {
    Here(&'a str),
    Next,
    Nothing,
}

fn response_names(word: &str) -> Named<'_> {
    for option in ["--options-file", "-optf", "-options-file"] {
        match word.strip_prefix(option) {
            Some("") => return Named::Next,
            Some(rest) if rest.starts_with('=') => return Named::Here(&rest[1..]),
            _ => {}
        }
    }
    match word.strip_prefix('@') {
        Some(name) if !name.is_empty() => Named::Here(name),
        _ => Named::Nothing,
    }
}

/// nvcc takes several files between commas; a file whose name has a comma is taken whole.
fn split_names(named: &str, directory: &Path) -> Vec<String> {
    let whole = named.trim_matches('"');
    if !whole.contains(',') || directory.join(whole).is_file() {
        return vec![whole.to_owned()];
    }
    whole.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn split_words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut begun, mut quote) = (Vec::new(), String::new(), false, None);
    let mut characters = text.trim_start_matches('\u{feff}').chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' if quote != Some('\'') => match characters.peek() {
                Some(&next) if matches!(next, '"' | '\'' | '\\') || (next == ' ' && quote.is_none()) => {
                    word.push(next);
                    begun = true;
                    characters.next();
                }
                Some('\n') => {
                    characters.next();
                }
                _ => {
                    word.push('\\');
                    begun = true;
                }
            },
            '"' | '\'' if quote.is_none() => {
                quote = Some(character);
                begun = true;
            }
            _ if quote == Some(character) => quote = None,
            _ if character.is_whitespace() && quote.is_none() => {
                if std::mem::take(&mut begun) {
                    words.push(std::mem::take(&mut word));
                }
            }
            _ => {
                word.push(character);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    words
}
