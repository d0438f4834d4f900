//! `cargo xtask test`: everything that must hold before a change lands, on a machine with no GPU and no key.
//!
//! The compiler that the end-to-end tests use is installed by the product itself, into the build folder, so that
//! installing is tested each time on a new machine and nothing of the user's is touched.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::editors::{self, Surroundings};
use crate::machine;

/// The CUDA release that the end-to-end tests compile with.
const TEST_CUDA: &str = "13";

/// What to leave out.
#[derive(clap::Args)]
pub struct Arguments {
    /// Skip formatting and lints.
    #[arg(long)]
    no_lints: bool,
    /// Skip the tests in editors.
    #[arg(long)]
    no_editors: bool,
    /// Of the tests, only those in editors.
    #[arg(long, conflicts_with = "no_editors")]
    editors: bool,
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
    if !arguments.no_lints && !arguments.editors {
        step(cargo(&root).args(["fmt", "--all", "--check"]))?;
        step(cargo(&root).args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    }
    let target = target_directory(&root)?;
    let cache = target.join("test-cache");
    if !arguments.no_lints {
        editors::neovim::lint(&root, &cache)?;
    }
    step(cargo(&root).args(["build", "--package", "stitchcuda"]))?;
    let binary = target.join("debug").join(format!("stitchcuda{}", std::env::consts::EXE_SUFFIX));
    step(
        Command::new(&binary).args(["toolchain", "install", TEST_CUDA]).env("STITCHCUDA_CACHE_DIR", &cache),
    )?;
    let with_editors = cfg!(target_os = "linux") && !arguments.no_editors;
    let missing = machine::prepare(with_editors)?;
    if with_editors {
        editors::neovim::install(&cache)?;
    }
    run_tests(arguments, &root, &binary, &cache, &missing)?;
    // A filter means single tests of the workspace.
    if arguments.no_editors || !arguments.rest.is_empty() {
        return Ok(());
    }
    step(cargo(&root).args(["build", "--package", "stitch-tests", "--bin", "scripted_endpoint"]))?;
    editors::test(&Surroundings {
        endpoint: target.join("debug").join(format!("scripted_endpoint{}", std::env::consts::EXE_SUFFIX)),
        toolkit: newest_toolkit(&cache)?,
        server: binary,
        root,
        target,
    })
}

/// The toolkit that was installed: the newest in the cache folder.
fn newest_toolkit(cache: &Path) -> Result<PathBuf> {
    let toolkits = cache.join("toolkits");
    let entries = std::fs::read_dir(&toolkits).with_context(|| format!("reading {}", toolkits.display()))?;
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    found.retain(|folder| folder.join("bin/nvcc").is_file());
    found.sort();
    found.pop().with_context(|| format!("no toolkit in {}", toolkits.display()))
}

fn run_tests(
    arguments: &Arguments,
    root: &Path,
    binary: &Path,
    cache: &Path,
    missing: &[(&str, &str)],
) -> Result<()> {
    let mut tests = cargo(root);
    let nextest = has_nextest(root);
    tests.args(if nextest { ["nextest", "run"].as_slice() } else { &["test"] }).arg("--no-fail-fast");
    if arguments.editors {
        tests.args(["--package", "stitch-tests"]);
        tests.args(IN_EDITORS.iter().flat_map(|name| ["--test", name]));
    } else {
        tests.arg("--workspace");
    }
    if arguments.no_editors && nextest {
        let names: Vec<_> = IN_EDITORS.iter().map(|name| format!("binary(={name})")).collect();
        tests.args(["--filterset", &format!("not ({})", names.join(" + "))]);
    }
    step(
        tests
            .args(&arguments.rest)
            .env("STITCHCUDA_TEST_BINARY", binary)
            .env("STITCHCUDA_TEST_CACHE", cache)
            .envs(missing.iter().copied())
            // The same cases every time: what a change broke, not what chance found. Other seeds look for more.
            .env("PROPTEST_RNG_SEED", std::env::var("PROPTEST_RNG_SEED").unwrap_or_else(|_| "1".to_owned())),
    )
}

/// The tests of the workspace that run an editor; those of VS Code are programs of its extension.
const IN_EDITORS: [&str; 3] = ["neovim", "neovim_terminal", "eglot"];

/// Runs a command, and says which.
///
/// # Errors
/// It can't be started, or fails; by its command line.
pub fn step(command: &mut Command) -> Result<()> {
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
pub fn cargo(root: &Path) -> Command {
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
