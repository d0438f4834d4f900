//! End-to-end tests: shared helpers.

pub mod cli;
pub mod lsp_client;
