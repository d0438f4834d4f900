//! The server in this process, over a pipe in memory.

mod client;
mod compile;
mod documents;
mod features;
mod guards;
pub mod hooks;
mod protocol;
mod settings;
