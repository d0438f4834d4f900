//! Runs CUDA programs on the CPU.
//!
//! A program's kernels arrive as PTX, the virtual instruction set that nvcc writes. [`ptx`] reads it into a syntax tree;
//! the rest of the crate lowers that tree to a compact form, runs it warp by warp on memory shared with the program, and
//! counts what the memory system of a GPU would have done for each instruction.
//!
//! It is a functional model with counters, not a timing model. What it cannot run it names and refuses.

mod caches;
pub mod checks;
pub mod code;
pub mod counters;
pub mod device;
pub mod estimate;
pub mod image;
pub mod machine;
pub mod math;
pub mod memory;
pub mod perturb;
pub mod ptx;
pub mod runtime;
