//! PTX text and its syntax tree.
//!
//! Source: "Parallel Thread Execution ISA", NVIDIA, versions 6.0 to 9.x. The tree keeps opcodes and modifiers as they are
//! written; what they mean is decided where the tree is lowered, so that an instruction that is not known there can be
//! named, with its line, exactly as it stands in the text.

pub mod ast;
mod display;
mod lexer;
mod parser;
#[cfg(test)]
mod tests;

pub use ast::Module;

/// Why a text is not PTX.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("PTX line {line}: {message}")]
pub struct ParseError {
    /// Line of the text, from 1.
    pub line: u32,
    /// What was expected and what stands there.
    pub message: String,
}

/// Reads a PTX module.
///
/// The time is linear in the length of the text; nesting is limited, so the stack is too. Instructions are not checked: a
/// modifier or an opcode that nobody knows is kept as it is written.
///
/// # Errors
///
/// The first place where the text departs from the grammar: a truncated or damaged text, or one that is no PTX at all.
pub fn parse(text: &str) -> Result<Module, ParseError> {
    parser::module(text)
}
