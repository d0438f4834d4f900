//! The file that is typed in: kernels and their launches, over and over under other names, as generated code looks.

use std::path::Path;

use anyhow::{Context, Result};

/// One block of the file; `@` stands for its number.
const BLOCK: &str = include_str!("block.cu");

/// What clangd needs to know of CUDA, in place of its headers.
const STUB: &str = include_str!("stub.h");

/// A file of at least so many lines.
pub fn generate(lines: usize) -> String {
    let blocks = lines.div_ceil(BLOCK.lines().count());
    (0..blocks).map(|number| BLOCK.replace('@', &number.to_string())).collect()
}

/// Puts the file, and what clangd needs beside it, into a folder.
pub fn write_project(folder: &Path, text: &str) -> Result<()> {
    let flags =
        "-xcuda\n-nocudainc\n-nocudalib\n--cuda-gpu-arch=sm_90\n--cuda-device-only\n-include\nstub.h\n";
    for (name, text) in [("bench.cu", text), ("stub.h", STUB), ("compile_flags.txt", flags)] {
        std::fs::write(folder.join(name), text).with_context(|| format!("writing {name}"))?;
    }
    Ok(())
}

/// The folder's URI.
pub fn folder_uri(folder: &Path) -> String {
    format!("file://{}", folder.display())
}

/// The file's URI.
pub fn uri(folder: &Path) -> String {
    format!("{}/bench.cu", folder_uri(folder))
}
