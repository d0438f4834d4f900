//! Reads a unified diff as edits: each hunk is a passage and what comes in its place. Its line numbers only decide between several
//! places, for models count badly.

use super::blocks::Fenced;
use super::code::CodeError;
use crate::edit::Block;

/// The hunks of the diff in an answer, if there is one: in a block that says so, in one that looks like one, or in the plain text.
pub(super) fn read(answer: &str, fenced: &[Fenced]) -> Option<Result<Vec<Block>, CodeError>> {
    let has_hunk = |text: &str| text.lines().any(|line| line.starts_with("@@ ") || line.trim_end() == "@@");
    let blocks: Vec<_> = fenced.iter().filter(|block| has_hunk(&block.text)).collect();
    if let Some(open) = blocks.iter().find(|block| !block.is_closed) {
        return Some(Err(CodeError::Cut { line: open.lines.0 + 1 }));
    }
    let text = match blocks[..] {
        [] if fenced.is_empty() && has_hunk(answer) => answer.to_owned(),
        [] => return None,
        _ => blocks.iter().map(|block| block.text.as_str()).collect(),
    };
    Some(hunks(&text))
}

fn hunks(text: &str) -> Result<Vec<Block>, CodeError> {
    let mut found: Vec<Block> = Vec::new();
    let mut file = None;
    let mut hunk: Option<Hunk> = None;
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("--- ") || line.starts_with("diff ") || line.starts_with("index ") {
            found.extend(hunk.take().map(Hunk::block));
        } else if let Some(name) = line.strip_prefix("+++ ") {
            let name = name.split('\t').next().unwrap_or_default().trim();
            file = (name != "/dev/null").then(|| name.to_owned());
        } else if line.starts_with("@@") {
            found.extend(hunk.take().map(Hunk::block));
            hunk = Some(Hunk { near: old_line(line), file: file.clone(), ..Hunk::default() });
        } else if let Some(hunk) = &mut hunk {
            match line.split_at_checked(1) {
                None => hunk.both(""),
                Some((" ", rest)) => hunk.both(rest),
                Some(("-", rest)) => hunk.old.push(rest.to_owned()),
                Some(("+", rest)) => hunk.new.push(rest.to_owned()),
                Some(("\\", _)) => {}
                Some(_) => return Err(CodeError::Diff { line: index + 1 }),
            }
        }
    }
    found.extend(hunk.map(Hunk::block));
    Ok(found)
}

#[derive(Default)]
struct Hunk {
    file: Option<String>,
    near: Option<usize>,
    old: Vec<String>,
    new: Vec<String>,
}

impl Hunk {
    fn both(&mut self, line: &str) {
        self.old.push(line.to_owned());
        self.new.push(line.to_owned());
    }

    fn block(mut self) -> Block {
        // Empty lines at the end belong to the text around the diff.
        while self.old.last().is_some_and(String::is_empty) && self.new.last().is_some_and(String::is_empty) {
            self.old.pop();
            self.new.pop();
        }
        Block { file: self.file, search: self.old.join("\n"), replace: self.new.join("\n"), near: self.near }
    }
}

/// The first line that `@@ -12,7 +12,9 @@` is about.
fn old_line(header: &str) -> Option<usize> {
    let numbers = header.split('-').nth(1)?;
    numbers.split([',', ' ']).next()?.parse().ok()
}
