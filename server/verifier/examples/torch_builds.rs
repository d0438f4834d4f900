//! Builds extensions as a verification does, from folders in which `torch.utils.cpp_extension` has written a build file.
//!
//! `torch_builds KEPT FOLDER...` puts each library beside its build file, and prints a line of JSON for each: how long it took, and what was
//! not taken apart. `torch_builds --look FILE...` says of CUDA files alone whether they can be. `KEPT` is the folder of compiled headers and of what was built. There is no sandbox: `tests/device/builds.py` uses it.

#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use stitch_session::CancellationToken;
use stitch_session::cache::Cache;
use stitch_verifier::torch::builds::{Answer, Asked, Builds, can_be_taken_apart};
use stitch_verifier::torch::host::bare;

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next().context("the first argument is a folder")?;
    if first == "--look" {
        for path in arguments {
            let text = String::from_utf8_lossy(&std::fs::read(&path)?).into_owned();
            println!("{path}\t{}", can_be_taken_apart(&text).err().unwrap_or_default());
        }
        return Ok(());
    }
    let kept = PathBuf::from(first);
    for folder in arguments {
        let cache = Cache::open(Some(&kept.join("results")), 4 << 30);
        let variables = std::env::vars_os().collect();
        let builds =
            Builds::new(bare(), variables, Vec::new(), kept.join("builds"), cache, CancellationToken::new());
        let asked = asked(&folder)?;
        let began = Instant::now();
        let answer = builds.build(asked).await;
        let seconds = began.elapsed().as_secs_f64();
        let (how, text) = match answer {
            Answer::Built { bytes, name } => {
                std::fs::write(Path::new(&folder).join(name), bytes)?;
                ("built", String::new())
            }
            Answer::Wrong(text) => ("wrong", text),
            Answer::Ordinary(reason) => ("ordinary", reason),
        };
        let seen = builds.seen();
        let line = serde_json::json!({ "folder": folder, "how": how, "seconds": seconds, "found": seen.found, "ordinary": seen.ordinary, "text": text });
        println!("{line}");
    }
    Ok(())
}

/// What a child would say of a folder.
fn asked(folder: &str) -> Result<Asked> {
    let ninja = std::fs::read_to_string(Path::new(folder).join("build.ninja"))?;
    let mut sources = BTreeMap::new();
    for line in ninja.lines().filter(|line| line.starts_with("build ")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["build", _, "compile" | "cuda_compile", source] = words[..] {
            sources.insert(source.to_owned(), std::fs::read_to_string(source)?);
        }
    }
    let environment = std::env::vars().collect();
    Ok(Asked { folder: folder.to_owned(), ninja, sources, environment })
}
