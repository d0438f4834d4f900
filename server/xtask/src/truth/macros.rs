//! The macros of a repository, as far as kernel definitions need them.
//!
//! Without a preprocessor the includes are not followed: every definition of a name in the repository counts, since a
//! macro is often `__global__` for one compiler and nothing for another.

use std::collections::{BTreeMap, BTreeSet};

use super::lex::{Kind, Lexed};

/// What the macros of one repository stand for.
#[derive(Clone, Debug)]
pub struct Macros {
    /// Words in the bodies of macros without a block or statement, by macro: such a macro can be part of a declarator.
    words: BTreeMap<String, BTreeSet<String>>,
    /// Macros with parameters.
    function_like: BTreeSet<String>,
    /// Names whose body comes down to `__global__`, that word included.
    global: BTreeSet<String>,
}

impl Default for Macros {
    fn default() -> Macros {
        let global = BTreeSet::from(["__global__".to_owned()]);
        Macros { words: BTreeMap::new(), function_like: BTreeSet::new(), global }
    }
}

impl Macros {
    /// Adds what one file defines.
    pub fn collect(&mut self, text: &str) {
        let file = Lexed::of(text);
        for directive in file.directives.iter().filter(|directive| directive.word == "define") {
            let Some(name) = directive.tokens.first().map(|token| file.text_of(token)) else { continue };
            if directive.function_like {
                self.function_like.insert(name.to_owned());
            }
            let body = directive.body();
            if body.iter().any(|token| matches!(file.text_of(token), "{" | ";")) {
                continue;
            }
            let words = body.iter().filter(|token| token.kind == Kind::Ident);
            let known = self.words.entry(name.to_owned()).or_default();
            known.extend(words.map(|token| file.text_of(token).to_owned()));
        }
    }

    /// Finds the macros that stand for `__global__`, also through other macros. Call it after the last `collect`.
    pub fn resolve(&mut self) {
        loop {
            let more: Vec<String> = self
                .words
                .iter()
                .filter(|(name, words)| !self.global.contains(*name) && !self.global.is_disjoint(words))
                .map(|(name, _)| name.clone())
                .collect();
            if more.is_empty() {
                return;
            }
            self.global.extend(more);
        }
    }

    /// Whether the word is `__global__` or a macro for it.
    pub fn stands_for_global(&self, word: &str) -> bool {
        self.global.contains(word)
    }

    /// Whether the repository defines a macro with parameters of this name.
    pub fn is_function_like(&self, word: &str) -> bool {
        self.function_like.contains(word)
    }

    /// The macros that stand for `__global__`.
    pub fn aliases(&self) -> impl Iterator<Item = &str> {
        self.global.iter().map(String::as_str).filter(|name| *name != "__global__")
    }
}
