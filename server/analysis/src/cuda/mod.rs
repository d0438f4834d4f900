//! CUDA documents: a scanner cuts a file into items, a mask makes each one readable for the grammar, and the tree and the
//! tokens of each give its functions, kernels and launches.
//!
//! ```text
//! text -> lexer -> items -> mask -> parse -> functions -+-> document (kept edit by edit) -> Analysis
//!                    |                kernels, launches -+
//!                    +- conditionals, head
//! ```

mod allocations;
mod arguments;
mod assume;
mod conditionals;
mod declarators;
mod document;
mod functions;
mod head;
mod head_attributes;
mod item;
mod items;
mod kernels;
mod launches;
mod lexer;
mod locals;
mod macros;
mod mask;
mod parse;
mod reading;
mod sizes;
mod tidy;
mod words;
mod workspace;

#[cfg(test)]
mod tests;

pub use assume::{Assumed, assume};
pub use document::Document;
pub use lexer::{Kind as TokenKind, Lexer, Token};
pub use parse::KeepGoing;
pub use reading::{Directives, Reading};
pub use words::words;
pub use workspace::Workspace;
