//! End-to-end tests: shared helpers.

pub mod cli;
#[cfg(unix)]
pub mod endless;
pub mod endpoint;
pub mod lsp_client;
#[cfg(target_os = "linux")]
pub mod neovim;
#[cfg(target_os = "linux")]
pub mod optimizing;
pub mod recorded;
#[cfg(target_os = "linux")]
pub mod worker;
