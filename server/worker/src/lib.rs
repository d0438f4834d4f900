//! A device elsewhere: what runs, verifies and profiles on another machine what is edited on this one.
//!
//! `stitchcuda worker` there speaks JSON lines on its standard streams ([`protocol`]), whoever carries them: `ssh`, `srun`, `docker exec`. It does
//! what is ordered with the same functions that do it here ([`perform`]). The side of the person ([`client`]) sends files by their contents, and
//! only those that the machine does not have yet.
//!
//! Architecture invariant: paths travel as they are here. The worker lays a job's files out under a folder of its own at those paths, and
//! takes that folder out of all that it answers; so nothing else of either side knows that there are two machines.

pub mod client;
pub mod files;
pub mod health;
pub mod host;
pub mod judge;
mod lines;
pub mod order;
pub mod perform;
pub mod protocol;
mod relocate;
mod store;
