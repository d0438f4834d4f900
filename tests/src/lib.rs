//! End-to-end tests: shared helpers.

/// Says that a test is left out, since something is missing. On the machines of CI that is a failure.
///
/// # Panics
/// `STITCHCUDA_TEST_REQUIRE_EDITORS` is set.
pub fn skip(missing: &str) {
    let is_required = std::env::var_os("STITCHCUDA_TEST_REQUIRE_EDITORS").is_some();
    assert!(!is_required, "{missing}, and STITCHCUDA_TEST_REQUIRE_EDITORS is set");
    eprintln!("skipped: {missing}");
}

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
