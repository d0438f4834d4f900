//! From a `__global__` token to the kernel's name, and to what ends the declarator.
//!
//! The grammar of attributes, types and macros between the two is open, so it isn't followed. What is known: the name
//! is a word before a parenthesis, attributes with arguments are few, and only the parameters are followed by `{` or
//! `;`. When two words qualify, the macros of the repository decide, or nobody does.

use super::Class;
use super::lex::{Kind, Lexed, Token};
use super::macros::Macros;

/// Which branch of a conditional to read when one is in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branch {
    /// As if the first condition held.
    First,
    /// As if only the `#else` was left.
    Last,
}

/// What the tokens before a `__global__` say about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// Nothing, or a template header.
    Plain,
    /// `template` without parameters.
    Instantiation,
    /// An open parenthesis: an argument of a macro, perhaps.
    InsideParentheses,
}

/// One way to read a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// What it is.
    pub class: Class,
    /// The name, or the best guess.
    pub name: String,
    /// Where the name is.
    pub name_at: Option<usize>,
    /// Why it is not plain.
    pub why: String,
}

impl Reading {
    /// Keeps the name as a guess, and says why it is one.
    pub fn doubt(&mut self, why: &str) {
        self.class = Class::Unsure;
        if !self.why.is_empty() {
            self.why.push_str("; ");
        }
        self.why.push_str(why);
    }

    fn nameless(class: Class, why: &str) -> Reading {
        Reading { class, name: String::new(), name_at: None, why: why.to_owned() }
    }
}

/// Attributes and specifiers whose parenthesis holds arguments, never parameters.
const WITH_ARGUMENTS: &[&str] = &[
    "__launch_bounds__",
    "__cluster_dims__",
    "__maxnreg__",
    "__block_size__",
    "__attribute__",
    "__align__",
    "__declspec",
    "alignas",
    "decltype",
    "noexcept",
    "explicit",
];

/// Types that are keywords: a parenthesis after one opens a declarator, not parameters.
const TYPES: &[&str] =
    &["void", "auto", "int", "float", "double", "char", "bool", "unsigned", "signed", "long"];

/// Words that never stand between `__global__` and a body: the reading has left the declarator.
const NOT_HERE: &[&str] =
    &["template", "using", "typedef", "namespace", "return", "if", "for", "while", "switch", "case", "goto"];

/// Reads forward from the `__global__` at `index`.
pub fn read(file: &Lexed<'_>, index: usize, macros: &Macros, branch: Branch) -> Reading {
    let mut cursor = Cursor { file, at: index + 1, branch };
    if macros.is_function_like(file.text_of(&file.tokens[index])) && cursor.text() == "(" {
        cursor.skip_group();
    }
    let mut names = Vec::new();
    match walk(&mut cursor, &mut names) {
        Ok(End::Body) => judge(file, &names, macros, Class::Definition),
        Ok(End::Semicolon) if names.is_empty() => Reading::nameless(Class::Other, "no parameters"),
        Ok(End::Semicolon) => judge(file, &names, macros, Class::Declaration),
        Err(Stop::Pointer) => Reading::nameless(Class::Other, "pointer to a function"),
        Err(Stop::Lost(why)) => {
            let mut reading = judge(file, &names, macros, Class::Unsure);
            reading.doubt(why);
            reading
        }
    }
}

/// Reads backward from the `__global__` at `index`, to the end of the statement before.
pub fn before(file: &Lexed<'_>, index: usize) -> Before {
    let mut depth = 0usize;
    let mut after = "";
    for token in file.tokens[..index].iter().rev().filter(|token| !matches!(token.kind, Kind::Directive(_))) {
        let text = file.text_of(token);
        match text {
            ")" | "]" => depth += 1,
            "(" | "[" if depth == 0 => return Before::InsideParentheses,
            "(" | "[" => depth -= 1,
            ";" | "{" | "}" if depth == 0 => break,
            "template" if depth == 0 && after != "<" => return Before::Instantiation,
            _ => {}
        }
        after = text;
    }
    Before::Plain
}

/// A word before a parenthesis.
struct Named {
    token: Token,
    /// `name(..)(..)`: the first parenthesis can't hold parameters.
    called_twice: bool,
    operator: Option<String>,
}

enum End {
    Body,
    Semicolon,
}

enum Stop {
    Pointer,
    Lost(&'static str),
}

fn walk(cursor: &mut Cursor<'_, '_>, names: &mut Vec<Named>) -> Result<End, Stop> {
    loop {
        let Some(token) = cursor.peek() else { return Err(Stop::Lost("the file ends")) };
        match cursor.text() {
            "{" if names.is_empty() => return Err(Stop::Lost("a body without a name")),
            "{" => return Ok(End::Body),
            ";" => return Ok(End::Semicolon),
            "(" if cursor.after_open() == "*" => return Err(Stop::Pointer),
            "(" => return Err(Stop::Lost("a parenthesis without a name before")),
            "[" => cursor.skip_group(),
            "->" => return cursor.skip_to_end(),
            "::" | "*" | "&" => cursor.bump(),
            "=" if names.is_empty() => return Err(Stop::Lost("an assignment")),
            "=" => return cursor.skip_to_end(),
            text if token.kind == Kind::Ident => word(cursor, token, text, names)?,
            _ if token.kind == Kind::Literal => cursor.bump(),
            _ => return Err(Stop::Lost("a token that belongs to no declarator")),
        }
    }
}

/// One word between `__global__` and the end: an attribute, part of a type, or a name.
fn word(cursor: &mut Cursor<'_, '_>, token: Token, text: &str, names: &mut Vec<Named>) -> Result<(), Stop> {
    cursor.bump();
    let mut operator = None;
    match text {
        _ if WITH_ARGUMENTS.contains(&text) => {
            if cursor.text() == "(" {
                cursor.skip_group();
            }
            return Ok(());
        }
        "requires" => return requirement(cursor),
        _ if TYPES.contains(&text) => return Ok(()),
        _ if NOT_HERE.contains(&text) || (text == "__global__" && !names.is_empty()) => {
            return Err(Stop::Lost("another declaration begins"));
        }
        "operator" => operator = Some(cursor.operator()),
        _ if cursor.text() == "<" => cursor.skip_angles()?,
        _ => {}
    }
    if cursor.text() == "(" {
        cursor.skip_group();
        let called_twice = cursor.text() == "(";
        names.push(Named { token, called_twice, operator });
        if called_twice {
            cursor.skip_group();
        }
    }
    Ok(())
}

/// A `requires` clause up to the body; one with a `requires` expression has braces of its own.
fn requirement(cursor: &mut Cursor<'_, '_>) -> Result<(), Stop> {
    while let Some(token) = cursor.peek() {
        match cursor.text() {
            "{" | ";" => return Ok(()),
            "requires" => return Err(Stop::Lost("a requires expression")),
            "(" | "[" => cursor.skip_group(),
            // `requires A<T> void k(..)`, before the declarator: the type ends the clause.
            text if token.kind == Kind::Ident && TYPES.contains(&text) => return Ok(()),
            _ => cursor.bump(),
        }
    }
    Err(Stop::Lost("the file ends"))
}

fn judge(file: &Lexed<'_>, names: &[Named], macros: &Macros, class: Class) -> Reading {
    let plain: Vec<&Named> =
        names.iter().filter(|named| !macros.is_function_like(file.text_of(&named.token))).collect();
    let (named, doubt) = match (&plain[..], names) {
        (_, []) => return Reading::nameless(class, ""),
        ([one], _) => (*one, ""),
        ([], [one]) => (one, "the name is also a macro with parameters"),
        ([], [.., last]) => (last, "several macros and no name"),
        ([.., last], _) => (*last, "several words before parentheses"),
    };
    let name = named.operator.clone().unwrap_or_else(|| file.text_of(&named.token).to_owned());
    let mut reading = Reading { class, name, name_at: Some(named.token.start), why: String::new() };
    if !doubt.is_empty() {
        reading.doubt(doubt);
    }
    if named.called_twice {
        reading.doubt("two parentheses after the name");
    }
    reading
}

/// A place among the tokens that moves along one branch of every conditional.
struct Cursor<'f, 'a> {
    file: &'f Lexed<'a>,
    at: usize,
    branch: Branch,
}

impl<'a> Cursor<'_, 'a> {
    /// The token here, after any preprocessor lines.
    fn peek(&mut self) -> Option<Token> {
        loop {
            let token = *self.file.tokens.get(self.at)?;
            let Kind::Directive(which) = token.kind else { return Some(token) };
            self.at = self.past_directive(which);
        }
    }

    fn past_directive(&self, which: usize) -> usize {
        let directive = &self.file.directives[which];
        match self.branch {
            // The branch that was being read is over.
            _ if directive.continues() => self.end_of_conditional(which),
            Branch::Last if directive.opens() => self.last_branch(which),
            _ => self.at + 1,
        }
    }

    fn end_of_conditional(&self, mut which: usize) -> usize {
        loop {
            match self.next_branch(which) {
                Some((index, next)) if self.file.directives[next].word == "endif" => return index + 1,
                Some((_, next)) => which = next,
                None => return self.at + 1,
            }
        }
    }

    /// Inside the `#else`, or behind the `#endif` if there is none.
    fn last_branch(&self, mut which: usize) -> usize {
        loop {
            match self.next_branch(which) {
                Some((index, next)) if matches!(&*self.file.directives[next].word, "else" | "endif") => {
                    return index + 1;
                }
                Some((_, next)) => which = next,
                None => return self.at + 1,
            }
        }
    }

    fn next_branch(&self, which: usize) -> Option<(usize, usize)> {
        let index = self.file.directives[which].next_branch?;
        match self.file.tokens[index].kind {
            Kind::Directive(next) => Some((index, next)),
            _ => None,
        }
    }

    fn text(&mut self) -> &'a str {
        self.peek().map(|token| self.file.text_of(&token)).unwrap_or_default()
    }

    fn bump(&mut self) {
        if self.peek().is_some() {
            self.at += 1;
        }
    }

    /// The text after the token here.
    fn after_open(&self) -> &'a str {
        let mut ahead = Cursor { file: self.file, at: self.at + 1, branch: self.branch };
        ahead.text()
    }

    /// Passes a bracket and all up to its partner.
    fn skip_group(&mut self) {
        let mut depth = 0usize;
        while self.peek().is_some() {
            match self.text() {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return;
            }
        }
    }

    fn skip_angles(&mut self) -> Result<(), Stop> {
        let mut depth = 0usize;
        while self.peek().is_some() {
            match self.text() {
                "<" => depth += 1,
                ">" => depth = depth.saturating_sub(1),
                "(" | "[" | "{" => {
                    self.skip_group();
                    continue;
                }
                ";" | "}" | ")" => break,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Ok(());
            }
        }
        Err(Stop::Lost("template arguments that don't end"))
    }

    /// `()`, `==`, `new`: what follows the word `operator`, up to the parameters.
    fn operator(&mut self) -> String {
        let mut name = "operator".to_owned();
        if self.text() == "(" && self.after_open() == ")" {
            self.skip_group();
            return name + "()";
        }
        while self.peek().is_some() && !matches!(self.text(), "(" | "{" | ";") {
            name.push_str(self.text());
            self.bump();
        }
        name
    }

    /// A trailing return type or `= delete`: nothing in it is a name.
    fn skip_to_end(&mut self) -> Result<End, Stop> {
        while self.peek().is_some() {
            match self.text() {
                "{" => return Ok(End::Body),
                ";" => return Ok(End::Semicolon),
                "(" | "[" => self.skip_group(),
                text if NOT_HERE.contains(&text) || text == "__global__" => {
                    return Err(Stop::Lost("another declaration begins"));
                }
                _ => self.bump(),
            }
        }
        Err(Stop::Lost("the file ends"))
    }
}
