//! A whole CUDA program as a target: what a person named, how it is built, how it is run.
//!
//! A program is built and run in folders of its own outside of the workspace, under the limits of every outside program, for a real
//! device or for a simulated one. Nothing here judges what it prints; that is for [`crate::verify`].

pub(crate) mod build;
mod copy;
mod device;
mod own;
mod run;
mod target;
mod watch;

pub(crate) use build::said;
pub use build::{BuildError, Builder, Built, build};
pub(crate) use build::{Listing, build_and};
pub use device::{DeviceError, RunDevice, choose};
pub use run::{Command, End, Ran, RunError, Running, run};
pub(crate) use run::{Observer, hold, run_held, run_observed};
pub use target::{OwnBuild, Program, Target, TargetError, find};
