//! End-to-end tests: shared helpers.

pub mod lsp_client;
