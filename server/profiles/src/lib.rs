//! Reads what profilers wrote, and explains it.
//!
//! A file of Nsight Systems, Nsight Compute, PyTorch's profiler or compute-sanitizer is streamed into a small model of its own kind; rules
//! over that model say what limits a kernel or a program, by how much, where, and what to do. No process is started here, and no file is
//! opened that was not given.

pub mod brief;
pub mod kernel;
pub mod ncu;
pub mod note;
pub mod nsys;
pub mod place;
pub mod profile;
pub mod python;
pub mod read_error;
pub mod report;
pub mod sanitizer;
pub mod sniff;
pub mod system;
pub mod text;
pub mod trace;
pub mod units;
mod utf16;
