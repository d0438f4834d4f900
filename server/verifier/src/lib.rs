//! Judges code by evidence: compiles it, and says what the compiler knows of each kernel.
//!
//! Architecture invariant: calls of the CUDA driver live only here, in [`device`] and
//! [`sandbox`]. Architecture invariant: what goes wrong with tools
//! is a [`compile::Trouble`], never a finding.

pub mod architecture;
pub mod clang;
mod clock;
pub mod compare;
pub mod compile;
pub mod compiler_text;
pub mod declared;
pub mod demangle;
pub mod device;
pub mod guard;
pub mod harness;
pub mod includes;
pub mod line_directives;
pub mod locate;
pub mod measure;
pub mod occupancy;
pub mod paths;
pub mod profile;
pub mod program;
pub mod ptxas;
pub mod sandbox;
pub mod simulation;
pub mod torch;
pub mod units;
pub mod verify;
mod watch;
