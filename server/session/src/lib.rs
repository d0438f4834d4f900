//! What the server and the command line share: configuration, jobs and their events, a cache on disk, locks of
//! devices between processes, and the folders these live in.
//!
//! Nothing here fails for want of a folder, a readable file or a sensible setting: each part says what it did without, once.

pub mod cache;
pub mod config;
pub mod folders;
pub mod jobs;
pub mod locks;

/// The token that every job's, and every stage's, token descends from.
pub use tokio_util::sync::CancellationToken;
