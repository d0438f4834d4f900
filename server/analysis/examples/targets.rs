//! What is found in Python files: `cargo run -p stitch-analysis --example targets -- [--show] FOLDER…`.
//!
//! Counts files, targets, those with inputs, those with proposals; `--show` prints each proposal.

#![allow(clippy::print_stdout, reason = "its output")]

use std::path::{Path, PathBuf};

use stitch_analysis::decode;
use stitch_analysis::target::inputs::{Inputs, inputs_of};
use stitch_analysis::target::targets::{TargetKind, targets};

#[derive(Debug, Default)]
struct Counts {
    files: usize,
    modules: usize,
    functions: usize,
    given: usize,
    proposed: usize,
    nothing: usize,
    errors: usize,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let show = arguments.iter().any(|argument| argument == "--show");
    for folder in arguments.iter().filter(|argument| !argument.starts_with("--")) {
        let mut counts = Counts::default();
        for path in files(Path::new(folder)) {
            count(&path, show, &mut counts);
        }
        println!("{folder}: {counts:?}");
    }
}

fn count(path: &Path, show: bool, counts: &mut Counts) {
    let Ok(bytes) = std::fs::read(path) else { return };
    let Some(decoded) = decode(&bytes) else { return };
    counts.files += 1;
    for target in targets(&decoded.text) {
        match target.kind {
            TargetKind::Module => counts.modules += 1,
            TargetKind::Function => counts.functions += 1,
        }
        match inputs_of(&decoded.text, &target) {
            Ok(Inputs::Given(_)) => counts.given += 1,
            Ok(Inputs::Missing { proposals, .. }) if proposals.is_empty() => counts.nothing += 1,
            Ok(Inputs::Missing { proposals, .. }) => {
                counts.proposed += 1;
                for proposal in proposals.iter().filter(|_| show) {
                    let comment = proposal.comment.replace('\n', " | ");
                    println!("{}::{}\t{comment}\t{}", path.display(), target.name, proposal.origin);
                }
            }
            Err(error) => {
                counts.errors += 1;
                println!("{}::{}: {error}", path.display(), target.name);
            }
        }
    }
}

/// The Python files below a folder, or the file itself.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut todo = vec![folder.to_owned()];
    while let Some(path) = todo.pop() {
        if path.is_dir() && !path.is_symlink() {
            todo.extend(std::fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        } else if path.extension().is_some_and(|extension| extension == "py") {
            found.push(path);
        }
    }
    found.sort();
    found
}
