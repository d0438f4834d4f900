//! The run of a program: what each device did, what the host did meanwhile, and the rules that say what that costs.
//!
//! Readers ([`crate::nsys`], [`crate::trace`]) give [`event::Event`]s in the order of their starts to a [`sweep::Sweep`], which adds them up
//! in little memory; its end is a [`System`].

pub mod calls;
mod causes;
pub mod device;
pub mod drawing;
pub mod durations;
pub mod event;
pub mod finish;
pub mod insight;
mod look;
pub mod model;
pub mod names;
pub mod rules;
pub mod sweep;

pub use calls::CallClass;
pub use device::TINY_KERNEL_NS;
pub use drawing::{Column, Drawing, DrawnRow, Row};
pub use event::{Direction, Launch, Memory, Route};
pub use insight::{Gain, Insight, SourceLine, explain};
pub use model::{
    CallSum, CopySum, Device, DeviceTime, Gaps, Idle, KernelSum, RangeSum, SetSum, Source, StreamSum, System,
};
