//! Makes a program of a kernel that has no `main`: a small `.cu` that a person can read, edit and keep.
//!
//! Sizes, grid, block and scalars are read from a launch in the kernel's own file, where it has one with constant values, and asked for
//! where it has none. The inputs are drawn from a seed that the Verifier gives, another each time and the same for both versions; every
//! array that the kernel may write is given back whole. The seed of one run says nothing of those of others, so it
//! gives a candidate no more than the inputs themselves do.
//!
//! Pure: text comes in, text goes out.

mod answers;
mod kernel;
mod model;
mod needs;
mod parameter;
mod plan;
mod write;

pub use answers::{Answers, BadAnswer};
pub use kernel::{KernelError, find, split};
pub use model::{Argument, Array, Harness, Scalar};
pub use needs::Needs;
pub use parameter::{Parameter, Role, element_type as parameter_element};
pub use plan::{PlanError, configuration, plan};
pub use write::{Subject, write, write_timed};
