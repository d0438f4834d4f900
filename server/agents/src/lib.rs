//! Planner and Coder: plans, candidates, the loop that has them verified, and the folder that a run leaves.
//!
//! Architecture invariant: HTTP to a model lives only here.

pub mod engine;
mod plan;

pub use plan::{Plan, Task};
