//! Stands in for the CUDA runtime: a program runs natively, and what it asks of a device is done here.
//!
//! The library that the program loads as libcudart is a [stub]. It passes each call over a socket ([`protocol`]) to this
//! process, which holds the state of the device and executes kernels. So a program can neither change a counter nor take the
//! simulator down with it.
//!
//! Work of streams is [issued](queue), and done by threads of this process while the program goes on; calls that wait for it
//! do, and events have times from an estimated clock. Errors are those of a real device; faults of kernels are reported late,
//! as there, and stay.

mod advice;
mod calls;
mod capture;
mod connection;
mod context;
mod converse;
mod copies;
mod ending;
pub mod engine;
pub mod errors;
mod estimate;
mod events;
mod executor;
mod graph_calls;
mod graphs;
mod helper;
mod launch;
mod limits;
mod memory_calls;
mod modules;
mod occupancy;
mod ownership;
mod pools;
mod processor;
mod properties;
pub mod protocol;
mod queue;
pub mod report;
mod serve;
mod streams;
pub mod stub;
mod watch;
mod work;

pub use converse::converse;
pub use ending::cancelled_by_signals;
pub use executor::Executor;
pub use serve::{Config, ServeError, serve};
pub use watch::Watch;
