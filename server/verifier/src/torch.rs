//! The Verifier for PyTorch: a module, a function or statements of a Python file, and a candidate for it.
//!
//! Reference and candidate run in processes of their own (`server/runner`), which know neither seeds nor each other's answers. Here are the
//! secrets, the clock, the comparison and the verdict.

pub mod builds;
mod confine;
pub mod find;
pub mod host;
pub mod judge;
mod literal;
pub mod machine;
pub mod request;
pub mod simulated;
pub mod subject;
pub mod values;
pub mod verify;
