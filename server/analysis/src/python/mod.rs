//! Python files: functions, `torch.nn` modules, the rules for PyTorch code, and the CUDA texts inside strings.
//!
//! A text is cut into pieces (`split`), each piece is parsed and walked on its own (`parse`, `walk`, `collect`) into facts
//! that depend on its text alone, and the facts of all pieces are put together for each version of the text (`names`,
//! `outline`, `texts`, `embed`, `rules`). So the cost of a key is that of its piece, and reading a file after any history of
//! edits gives what reading it afresh gives: there is nothing else to remember.

mod collect;
mod decoded;
mod embed;
mod facts;
mod format;
mod lists;
mod literal;
mod names;
mod origin;
mod outline;
mod parse;
mod reader;
mod rules;
mod sinks;
mod split;
pub mod target;
mod texts;
mod unit;
mod unknown;
mod value;
mod walk;

#[cfg(test)]
mod tests;

pub(crate) use reader::Reader;
pub use unit::{Unit, UnitRole};
pub use unknown::UnknownSource;
