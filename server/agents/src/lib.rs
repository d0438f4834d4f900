//! Planner and Coder: plans, candidates, the loop that has them verified, and the folder that a run leaves.
//!
//! Architecture invariant: HTTP to a model lives only here.

pub mod answer;
pub mod chat;
pub mod edit;
pub mod engine;
pub mod llm;
mod plan;
pub mod prompts;

pub use plan::{Plan, Task};
