//! The CUDA toolkit that `cargo xtask test` installs.

use std::fs;
use std::path::{Path, PathBuf};

/// The newest one in the cache.
pub fn newest() -> PathBuf {
    let cache = std::env::var_os("STITCHCUDA_TEST_CACHE").map_or_else(
        || std::env::current_exe().unwrap().ancestors().nth(3).unwrap().join("test-cache"),
        PathBuf::from,
    );
    let toolkits = fs::read_dir(cache.join("toolkits")).expect("no toolkit; run `cargo xtask test`");
    let mut found: Vec<PathBuf> = toolkits.flatten().map(|entry| entry.path()).collect();
    found.retain(|folder| folder.join("bin/nvcc").is_file());
    found.sort();
    found.pop().expect("no toolkit; run `cargo xtask test`")
}

/// 12 or 13: which runtime the toolkit's headers are of.
pub fn version(toolkit: &Path) -> u32 {
    let header = fs::read_to_string(toolkit.join("include/cuda_runtime_api.h")).unwrap();
    let line = header.lines().find_map(|line| line.trim().strip_prefix("#define CUDART_VERSION")).unwrap();
    line.trim().parse::<u32>().unwrap() / 1000
}
