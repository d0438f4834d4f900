//! What of a Python file can be optimised, what inputs it is tried with, and how an accepted candidate gets into the file.
//!
//! Pure, like all of this room: texts in, plain data out. What runs these texts is the Verifier.

mod comments;
pub mod compose;
pub mod denote;
pub mod inputs;
pub mod propose;
mod source;
pub mod statements;
pub mod targets;

#[cfg(test)]
mod tests;
