//! Room toolchain: finds or installs nvcc, ncu, nsys and python, and runs outside programs safely.
//!
//! Architecture invariant: every outside program of StitchCUDA is started by [`process`]: in a process group of its
//! own, with a time limit, an output cap and a scratch folder, and it dies with the job.
//! Architecture invariant: this room imports nothing of ours and makes no CUDA driver call. What is known of GPUs is
//! handed in as data.
//! Architecture invariant: no address of a registry is in this code. `pip` is asked where packages are, so that a
//! person's own index, proxy and credentials are honoured.

pub mod compile_commands;
pub mod discovery;
pub mod doctor;
pub mod environment;
pub mod install;
pub mod paths;
pub mod process;
mod removal;
pub(crate) mod sentence;
