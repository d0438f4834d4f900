//! From bytes to a judgement: draws secret inputs, compares answers, weighs times, and says what looks like cheating.
//!
//! Pure: bytes, numbers and seeds come in, plain data goes out. What a candidate's process says is a claim, so every size is looked at.

pub mod accuse;
pub mod compare;
pub mod degenerate;
pub mod distributions;
pub mod elements;
pub mod oracle;
mod parallel;
pub mod statistics;

#[cfg(test)]
mod tests;

pub use compare::{Part, Rule, compare};
pub use elements::View;
