//! Coverage-guided fuzzing with libFuzzer, of the targets in `fuzz/src/bin`.
//!
//! libFuzzer wants to know which edges were taken; LLVM's pass for that is switched on by flags that a stable rustc takes. The corpus and what was
//! found lie in `target/fuzz`, so that the next run goes on where this one ended.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

/// What `cargo xtask fuzz` takes.
#[derive(clap::Args)]
pub struct Arguments {
    /// What is fuzzed.
    target: Target,
    /// For how long, in seconds.
    #[arg(long, default_value_t = 60)]
    seconds: u32,
}

#[derive(Clone, Copy, ValueEnum)]
enum Target {
    /// The reader of PTX, the linker and the lowering of kernels.
    Ptx,
    /// The readers of fat binaries and of programs that hold them.
    Image,
    /// The protocol between the stub and the simulator.
    Protocol,
}

/// Each is a part of what `cargo fuzz` passes to rustc without a sanitizer: counters of edges, and the operands of comparisons.
const FLAGS: &[&str] = &[
    "--cfg fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
];

/// The longest input, in bytes; a minute for one is a hang.
const LIMITS: &[&str] = &["-max_len=12000", "-timeout=60", "-rss_limit_mb=4096"];

/// Builds the target and runs it. What it finds stops it; the message of libFuzzer names the file.
pub fn run(arguments: &Arguments) -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let name =
        arguments.target.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
    let target = root.join("target/fuzz");
    // A target must be named, or the flags would be those of build scripts too.
    let host = host()?;
    let built = Command::new("cargo")
        .args(["build", "--release", "--bin", &name, "--target", &host, "--manifest-path"])
        .arg(root.join("fuzz/Cargo.toml"))
        .env("CARGO_TARGET_DIR", &target)
        .env("RUSTFLAGS", FLAGS.join(" "))
        .status()
        .context("starting cargo")?;
    ensure!(built.success(), "the target was not built");
    let (corpus, found) = (target.join("corpus").join(&name), target.join("found").join(&name));
    for folder in [&corpus, &found] {
        std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    seed(&root, arguments.target, &corpus)?;
    let ran = Command::new(target.join(host).join("release").join(&name))
        .arg(&corpus)
        .args(LIMITS)
        .arg(format!("-max_total_time={}", arguments.seconds))
        .arg(format!("-artifact_prefix={}/", found.display()))
        .status()
        .with_context(|| format!("starting {name}"))?;
    ensure!(ran.success(), "{name}: something was found; it is in {}", found.display());
    Ok(())
}

/// The triple of this machine, as rustc says it.
fn host() -> Result<String> {
    let said = Command::new("rustc").arg("-vV").output().context("starting rustc")?;
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(ToOwned::to_owned).context("rustc does not say its host")
}

/// Copies what the tests have of real inputs into the corpus.
fn seed(root: &Path, target: Target, corpus: &Path) -> Result<()> {
    let simulator = root.join("server/simulator");
    let (folders, extensions): (Vec<PathBuf>, &[&str]) = match target {
        Target::Ptx => (
            ["src/machine/tests/ptx", "src/machine/tests/cases", "src/ptx/fixtures"]
                .map(|folder| simulator.join(folder))
                .to_vec(),
            &["ptx"],
        ),
        Target::Image => (vec![simulator.join("tests/images")], &["fatbin", "o"]),
        Target::Protocol => (vec![root.join("fuzz/seeds/protocol")], &[]),
    };
    for folder in folders {
        for entry in std::fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
            let path = entry?.path();
            let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
            if !extensions.is_empty() && !extensions.contains(&extension) {
                continue;
            }
            let name = path.file_name().unwrap_or_default();
            if matches!(target, Target::Ptx) {
                let text =
                    std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
                for (number, piece) in kernels(&text).into_iter().enumerate() {
                    std::fs::write(corpus.join(format!("{}-{number}", name.to_string_lossy())), piece)?;
                }
            } else {
                std::fs::copy(&path, corpus.join(name))
                    .with_context(|| format!("copying {}", path.display()))?;
            }
        }
    }
    Ok(())
}

/// A text for each function, with the lines that all of them begin with: short inputs are tried more often.
fn kernels(text: &str) -> Vec<String> {
    let begins = |line: &str| line.contains(".entry ") || line.contains(".func ");
    let head: String =
        text.lines().take_while(|line| !begins(line)).take(12).map(|line| format!("{line}\n")).collect();
    let mut pieces: Vec<String> = Vec::new();
    for line in text.lines().skip_while(|line| !begins(line)) {
        if begins(line) {
            pieces.push(head.clone());
        }
        if let Some(piece) = pieces.last_mut() {
            piece.push_str(line);
            piece.push('\n');
        }
    }
    pieces
}
