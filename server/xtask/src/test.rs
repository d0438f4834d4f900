//! `cargo xtask test`: everything that must hold before a change lands, on a machine with no GPU and no key.
//!
//! The compiler that the end-to-end tests use is installed by the product itself, into the build folder, so that
//! installing is tested each time on a new machine and nothing of the user's is touched.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The CUDA release that the end-to-end tests compile with.
const TEST_CUDA: &str = "13";

/// What to leave out.
#[derive(clap::Args)]
pub struct Arguments {
    /// Skip formatting and lints.
    #[arg(long)]
    no_lints: bool,
    /// Passed on to the test runner, for example a name to filter by.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

/// Runs the steps one after the other and stops at the first that fails.
///
/// # Errors
/// The first step that can't be started or that fails, by its command line.
pub fn run(arguments: &Arguments) -> Result<()> {
    let root = workspace_root();
    if !arguments.no_lints {
        step(cargo(&root).args(["fmt", "--all", "--check"]))?;
        step(cargo(&root).args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    }
    let target = target_directory(&root)?;
    let cache = target.join("test-cache");
    step(cargo(&root).args(["build", "--package", "stitchcuda"]))?;
    let binary = target.join("debug").join(format!("stitchcuda{}", std::env::consts::EXE_SUFFIX));
    step(
        Command::new(&binary).args(["toolchain", "install", TEST_CUDA]).env("STITCHCUDA_CACHE_DIR", &cache),
    )?;
    let missing = prepare_machine();
    let mut tests = cargo(&root);
    if has_nextest(&root) {
        tests.args(["nextest", "run", "--workspace", "--no-fail-fast"]);
    } else {
        tests.args(["test", "--workspace", "--no-fail-fast"]);
    }
    step(
        tests
            .args(&arguments.rest)
            .env("STITCHCUDA_TEST_BINARY", &binary)
            .env("STITCHCUDA_TEST_CACHE", &cache)
            .envs(missing)
            // The same cases every time: what a change broke, not what chance found. Other seeds look for more.
            .env("PROPTEST_RNG_SEED", std::env::var("PROPTEST_RNG_SEED").unwrap_or_else(|_| "1".to_owned())),
    )
}

/// The package that the test of clang's check between keystrokes wants.
const CLANG: &str = "clang-22";
/// A PyTorch without CUDA, for the tests of the Verifier for PyTorch. The one of PyPI brings 5 GB.
const TORCH: &str = "python3-torch";
/// Interpreters that may have PyTorch: the active one, and the one that a distribution's packages are for.
const PYTHONS: [&str; 2] = ["python3", "/usr/bin/python3"];
/// Says to the tests that there is no PyTorch, and that this is known.
const WITHOUT_TORCH: &str = "STITCHCUDA_TESTS_WITHOUT_TORCH";

/// Gets what some tests need besides, where that is ours to do; gives the variables that say what is missing.
fn prepare_machine() -> Vec<(&'static str, &'static str)> {
    if said(CLANG, &["--version"]).is_none() {
        install(CLANG, "the test that needs clang is skipped");
    }
    let has_torch = || PYTHONS.iter().any(|python| said(python, &["-c", "import torch"]).is_some());
    if !has_torch() {
        install(TORCH, "the tests that need PyTorch are skipped");
    }
    if has_torch() { Vec::new() } else { vec![(WITHOUT_TORCH, "1")] }
}

/// Installs a package as root with apt-get, as on a new machine for CI. Elsewhere nothing is done; where it fails, that is said.
fn install(package: &str, otherwise: &str) {
    let is_root = said("id", &["-u"]).is_some_and(|id| id.trim() == "0");
    if !is_root || said("apt-get", &["--version"]).is_none() {
        eprintln!("{package} is not installed: {otherwise}");
        return;
    }
    let apt = |arguments: &[&str]| {
        step(Command::new("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    let get = || apt(&["install", "--yes", "--no-install-recommends", package]);
    // A new machine may know no packages yet.
    if let Err(error) = get().or_else(|_| apt(&["update"]).and_then(|()| get())) {
        eprintln!("{error:#}; {otherwise}");
    }
}

/// What a program prints, if it can be run and ends well.
fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output =
        Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn step(command: &mut Command) -> Result<()> {
    let line = command.get_args().map(|argument| argument.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let line = format!("{} {line}", Path::new(command.get_program()).display());
    eprintln!("\n$ {line}");
    let status = command.status().with_context(|| format!("`{line}` could not be started"))?;
    if !status.success() {
        bail!("`{line}` failed: {status}");
    }
    Ok(())
}

/// Cargo as it runs us, so that a pinned toolchain stays the same.
fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

fn has_nextest(root: &Path) -> bool {
    cargo(root).args(["nextest", "--version"]).output().is_ok_and(|output| output.status.success())
}

/// The folder of the workspace's `Cargo.toml`.
pub fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// Where cargo builds to, which the user may have moved.
///
/// # Errors
/// `cargo metadata` can't be run, or says something unexpected.
pub fn target_directory(root: &Path) -> Result<PathBuf> {
    let output = cargo(root)
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .output()
        .context("`cargo metadata` could not be started")?;
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).context("`cargo metadata` did not print JSON")?;
    let target = metadata["target_directory"].as_str().context("`cargo metadata` names no target folder")?;
    Ok(PathBuf::from(target))
}
