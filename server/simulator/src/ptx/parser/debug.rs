//! Source places: `.file`, `.loc`, and the strings of `.section .debug_str`.
//!
//! Source: PTX ISA, section "Debugging Directives". The other sections hold DWARF, which nothing here reads.

use super::{Kind, ParseError, Parser};
use crate::ptx::ast::{Location, Module, Statement};

impl Parser<'_> {
    /// `.file 1 "path" [, timestamp, size]`.
    pub(super) fn read_file(&mut self) -> Result<(), ParseError> {
        let index = self.expect_u32("the index of a file")?;
        let Kind::Text(path) = self.token.kind else { return self.unexpected("a path in quotes") };
        self.module.files.insert(index, unescape(path));
        self.take()?;
        while self.takes_mark(b',')? {
            self.expect_int("a time or a size")?;
        }
        Ok(())
    }

    /// What follows `.loc`.
    pub(super) fn read_location(&mut self) -> Result<Location, ParseError> {
        let (file, line, column) = self.read_place()?;
        let mut location = Location { file, line, column, function: None, inlined_at: None };
        while self.takes_mark(b',')? {
            match self.expect_word("`function_name` or `inlined_at`")? {
                "function_name" => {
                    let label = self.expect_word("the label of a function's name")?;
                    let offset = self.offset()?;
                    location.function =
                        Some(if offset == 0 { label.to_owned() } else { format!("{label}+{offset}") });
                }
                "inlined_at" => location.inlined_at = Some(self.read_place()?),
                other => return self.fail(format!("`.loc` has no part `{other}`")),
            }
        }
        Ok(location)
    }

    /// File, line and column.
    fn read_place(&mut self) -> Result<(u32, u32, u32), ParseError> {
        Ok((
            self.expect_u32("the index of a file")?,
            self.expect_u32("a line")?,
            self.expect_u32("a column")?,
        ))
    }

    /// `.pragma "…", "…";`: the texts.
    pub(super) fn read_pragma(&mut self) -> Result<Vec<String>, ParseError> {
        let mut texts = Vec::new();
        loop {
            let Kind::Text(text) = self.token.kind else { return self.unexpected("a text in quotes") };
            texts.push(unescape(text));
            self.take()?;
            if !self.takes_mark(b',')? {
                self.expect_mark(b';', "after `.pragma`")?;
                return Ok(texts);
            }
        }
    }

    /// `.section .name { … }`.
    pub(super) fn read_section(&mut self) -> Result<(), ParseError> {
        self.take()?;
        let strings = self.token.kind == Kind::Dot("debug_str");
        if !matches!(self.token.kind, Kind::Dot(_) | Kind::Word(_)) {
            return self.unexpected("the name of a section");
        }
        self.take()?;
        if !self.is_mark(b'{') {
            return self.unexpected("`{` after the name of a section");
        }
        if strings {
            self.take()?;
            return self.read_strings();
        }
        self.lexer.skip_block()?;
        self.take()?;
        Ok(())
    }

    /// `label: .b8 95, 90, 0;` until the brace. A string ends at its zero; the bytes after it, which a `label+offset` may
    /// point into, are kept until the next label.
    fn read_strings(&mut self) -> Result<(), ParseError> {
        let mut label: Option<&str> = None;
        let mut bytes: Vec<u8> = Vec::new();
        loop {
            match self.token.kind {
                Kind::Word(word) => {
                    self.keep_string(label, &mut bytes);
                    label = Some(word);
                    self.take()?;
                    self.expect_mark(b':', "after a label of `.debug_str`")?;
                }
                Kind::Int(byte) => {
                    bytes.push(byte as u8);
                    self.take()?;
                }
                Kind::Dot(_) | Kind::Mark(b',' | b';') => drop(self.take()?),
                Kind::Mark(b'}') => {
                    self.keep_string(label, &mut bytes);
                    self.take()?;
                    return Ok(());
                }
                _ => return self.unexpected("a string of `.debug_str`, or `}`"),
            }
        }
    }

    fn keep_string(&mut self, label: Option<&str>, bytes: &mut Vec<u8>) {
        if let Some(label) = label {
            self.module.strings.insert(label.to_owned(), String::from_utf8_lossy(bytes).into_owned());
        }
        bytes.clear();
    }
}

/// Gives every `label+offset` of a `.loc` its own entry, and cuts each string at its zero.
pub(super) fn resolve_offsets(module: &mut Module) {
    let mut found = Vec::new();
    let mut waiting: Vec<&Statement> =
        module.functions.iter().filter_map(|f| f.body.as_ref()).flatten().collect();
    while let Some(statement) = waiting.pop() {
        match statement {
            Statement::Block(inner) => waiting.extend(inner),
            Statement::Location(Location { function: Some(key), .. }) => {
                if let Some((label, offset)) = key.split_once('+')
                    && let Some(text) = module.strings.get(label)
                    && let Some(rest) = offset.parse().ok().and_then(|offset: usize| text.get(offset..))
                {
                    found.push((key.clone(), rest.to_owned()));
                }
            }
            _ => {}
        }
    }
    module.strings.extend(found);
    for text in module.strings.values_mut() {
        if let Some(end) = text.find('\0') {
            text.truncate(end);
        }
    }
}

/// The text of a string literal: `\\`, `\"`, `\n`, `\t`; another escape stays as it is.
fn unescape(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut characters = raw.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            text.push(character);
            continue;
        }
        match characters.next() {
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some(other @ ('\\' | '"')) => text.push(other),
            Some(other) => text.extend(['\\', other]),
            None => text.push('\\'),
        }
    }
    text
}
