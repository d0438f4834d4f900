//! Planner and Coder: plans, candidates, the loop that has them verified, and the folder that a run leaves.
//!
//! Architecture invariant: HTTP to a model lives only here.

pub mod answer;
pub mod builtin;
pub mod chat;
pub mod edit;
pub mod engine;
pub mod engines;
pub mod llm;
pub mod optimize;
pub mod patch;
mod plan;
pub mod prompts;
pub mod run;

pub use plan::{Plan, Task};
