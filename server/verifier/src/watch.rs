//! Sees what a program on a real device copies, and gives it other inputs, as the simulator does for its programs.
//!
//! A small library stands in front of the driver's (`front/`, see [`library`]): the driver is where the copies of every program
//! come by, whichever runtime it is linked with and however. The library decides nothing. It sends what is copied to the device
//! to this process before it is copied, and gets it back perturbed or left as it is; and it sends what came back from the device
//! ([`service`]). So the seed, the reference's answers and the count of what was perturbed stay here.
//!
//! What this does not protect from: the program's process holds the channel, so a program that looks for it can send answers that
//! its device never computed, as it can print them. They are compared all the same, under inputs that it did not know before, so they
//! have to be right. A program that copies past the library (in graphs, in batches, by kernels that write to memory of the
//! host, by a driver that it opened by its full path) is not seen: then it copies back less than its reference, which is wrong; or its
//! reference does the same, which is said.

mod library;
mod protocol;
mod service;

pub(crate) use library::{LibraryError, compile_in, front, search_path};
pub(crate) use service::Service;

/// What was seen of a program's copies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Watched {
    /// Processes of the run that loaded the driver through the library in front of it.
    pub processes: usize,
    /// Copies to the device that were perturbed.
    pub perturbed: usize,
    /// Copies to the host, in the order in which they were asked for.
    pub copies: Vec<Vec<u8>>,
    /// What was not seen, in sentences.
    pub unseen: Vec<String>,
}

/// The variable that tells the library in front of the driver where its watcher is.
pub(crate) const VARIABLE: &str = "STITCHCUDA_WATCH";

#[cfg(test)]
mod tests;
