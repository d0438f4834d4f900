//! What kernels a CUDA file defines, said by a scanner that shares nothing with `stitch-analysis`.
//!
//! The production outline comes from tree-sitter behind a mask, and it can only be measured against something that
//! fails in other ways. So this works on plain tokens: it finds every `__global__` (or a macro of the repository that
//! stands for it), and reads forward from there to the name, the parameters and what follows them. It knows nothing of
//! scopes, types or the rest of the file, so an error elsewhere can't spread. Where the tokens allow two readings it
//! says [`Class::Unsure`] instead of guessing, and a person decides (`recall --unsure`).
//!
//! Text that no build compiles (`#if 0`, the `#else` of `#if 1`) is no code; every other branch is.

mod declarator;
mod lex;
mod macros;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

pub use macros::Macros;

use declarator::{Branch, Reading};
use lex::{Kind, Lexed};

/// What one `__global__` token is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// A kernel with its body.
    Definition,
    /// A kernel without a body.
    Declaration,
    /// `template __global__ void k<int>(int);`
    Instantiation,
    /// Text of a macro: what it makes depends on the uses.
    MacroBody,
    /// Not a function: a condition of the preprocessor, a pointer to a function.
    Other,
    /// Two readings are possible; a person has to look.
    Unsure,
}

/// One `__global__` token, or one use of a macro that stands for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// What it is part of.
    pub class: Class,
    /// The kernel's name without template arguments and qualifiers; the best guess when unsure; empty if there is none.
    pub name: String,
    /// Byte offset of the name; several when both branches of an `#if` write it; none if there is no name.
    pub name_at: Vec<usize>,
    /// Byte offset of the `__global__` token.
    pub token_at: usize,
    /// Line of the `__global__` token, counted from 1.
    pub line: usize,
    /// Why it is unsure or other; empty for the plain classes.
    pub why: String,
}

/// What a file holds according to the scanner.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    /// Every `__global__`, in the order of the text.
    pub sites: Vec<Site>,
    /// Byte offset of every `<<<` outside macro bodies, comments and literals.
    pub launches: Vec<usize>,
}

/// Scans one file; `macros` are those of its whole repository.
pub fn scan(text: &str, macros: &Macros) -> Truth {
    let file = Lexed::of(text);
    let mut truth = Truth::default();
    let mut named = BTreeSet::new();
    let mut groups = Groups::default();
    for (index, token) in file.tokens.iter().enumerate() {
        if index < groups.alive_from {
            continue;
        }
        if let Kind::Directive(which) = token.kind {
            groups.pass(&file, which);
        }
        match token.kind {
            Kind::Launch if !follows_operator(&file, index) => truth.launches.push(token.start),
            Kind::Ident if macros.stands_for_global(file.text_of(token)) => {
                let site = classify(&file, index, macros);
                // `CUDF_KERNEL __global__ void k` is one kernel with two tokens.
                if site.name.is_empty() || named.insert(site.name_at.clone()) {
                    truth.sites.push(site);
                }
            }
            Kind::Directive(which) => directive_sites(&file, which, macros, &mut truth.sites),
            _ => {}
        }
    }
    truth
}

/// The conditionals around a token, as far as literals decide them.
#[derive(Default)]
struct Groups {
    /// For each open one: whether a branch was certain, so that no later one is compiled.
    decided: Vec<bool>,
    /// Tokens before this index are in a branch that no build compiles.
    alive_from: usize,
}

impl Groups {
    fn pass(&mut self, file: &Lexed<'_>, which: usize) {
        let directive = &file.directives[which];
        match directive.word.as_str() {
            "endif" => drop(self.decided.pop()),
            _ if directive.opens() => self.decided.push(false),
            _ if directive.continues() => {}
            _ => return,
        }
        let Some(decided) = self.decided.last_mut().filter(|_| directive.word != "endif") else { return };
        let value = match directive.tokens.as_slice() {
            [only] if directive.word == "if" || directive.word == "elif" => file.text_of(only),
            _ => "",
        };
        if *decided || matches!(value, "0" | "false") {
            self.alive_from = directive.next_branch.unwrap_or(file.tokens.len());
        }
        *decided |= matches!(value, "1" | "true");
    }
}

/// `operator<<<T>(..)` is a shift operator with template arguments.
fn follows_operator(file: &Lexed<'_>, index: usize) -> bool {
    index > 0 && file.text_of(&file.tokens[index - 1]) == "operator"
}

/// A `__global__` in a preprocessor line is text of a macro, or a test whether it is defined.
fn directive_sites(file: &Lexed<'_>, which: usize, macros: &Macros, sites: &mut Vec<Site>) {
    let directive = &file.directives[which];
    let is_define = directive.word == "define";
    for token in directive.body() {
        if token.kind != Kind::Ident || !macros.stands_for_global(file.text_of(token)) {
            continue;
        }
        let (class, why) = match is_define {
            true => (Class::MacroBody, String::new()),
            false => (Class::Other, format!("in #{}", directive.word)),
        };
        let name = String::new();
        let line = file.line(token.start);
        sites.push(Site { class, name, name_at: Vec::new(), token_at: token.start, line, why });
    }
}

/// Reads one site along both branches of any conditional in the way; different readings are no reading.
fn classify(file: &Lexed<'_>, index: usize, macros: &Macros) -> Site {
    let token = &file.tokens[index];
    let first = declarator::read(file, index, macros, Branch::First);
    let last = declarator::read(file, index, macros, Branch::Last);
    let mut name_at: Vec<usize> = first.name_at.iter().chain(&last.name_at).copied().collect();
    name_at.dedup();
    let mut reading = match (first.class, &first.name) == (last.class, &last.name) {
        true => first,
        false => disagreement(first, last),
    };
    match declarator::before(file, index) {
        declarator::Before::InsideParentheses => reading.doubt("inside parentheses"),
        declarator::Before::Instantiation if reading.class == Class::Declaration => {
            reading.class = Class::Instantiation;
        }
        declarator::Before::Instantiation => reading.doubt("`template` without `<`, yet no declaration"),
        declarator::Before::Plain => {}
    }
    Site {
        class: reading.class,
        name: reading.name,
        name_at,
        token_at: token.start,
        line: file.line(token.start),
        why: reading.why,
    }
}

fn disagreement(first: Reading, last: Reading) -> Reading {
    // A conditional around a whole kernel may leave nothing to read along the other branch.
    let why = format!(
        "#if in the way: first branch {:?} `{}`, last branch {:?} `{}`",
        first.class, first.name, last.class, last.name
    );
    let mut reading = if first.class == Class::Unsure { last } else { first };
    reading.doubt(&why);
    reading
}
