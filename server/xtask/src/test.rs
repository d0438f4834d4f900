//! `cargo xtask test`: everything that must hold before a change lands, on a machine with no GPU and no key.
//!
//! The compiler that the end-to-end tests use is installed by the product itself, into the build folder, so that
//! installing is tested each time on a new machine and nothing of the user's is touched.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::editors::{self, Surroundings};

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
    let missing = prepare_machine();
    if cfg!(target_os = "linux") && !arguments.no_editors {
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

/// The package that the test of clang's check between keystrokes wants.
const CLANG: &str = "clang-22";
/// A PyTorch without CUDA, for the tests of the Verifier for PyTorch. The one of PyPI brings 5 GB.
const TORCH: &str = "python3-torch";
/// What builds extensions of PyTorch, and the package that has it.
const NINJA: &str = "ninja";
const NINJA_PACKAGE: &str = "ninja-build";
/// The daemon that a worker is reached through in a test, where it may lie, and the package that has it.
const SSHD: [&str; 2] = ["/usr/sbin/sshd", "/usr/local/sbin/sshd"];
const SSHD_PACKAGE: &str = "openssh-server";
/// Interpreters that may have PyTorch: the active one, and the one that a distribution's packages are for.
const PYTHONS: [&str; 2] = ["python3", "/usr/bin/python3"];
/// Says to the tests that there is no PyTorch, and that this is known.
const WITHOUT_TORCH: &str = "STITCHCUDA_TESTS_WITHOUT_TORCH";

/// Gets what some tests need besides, where that is ours to do; gives the variables that say what is missing.
fn prepare_machine() -> Vec<(&'static str, &'static str)> {
    let get = |name: &str, otherwise: &str| {
        if let Err(error) = install_package(name) {
            eprintln!("{error:#}; {otherwise}");
        }
    };
    if said(CLANG, &["--version"]).is_none() {
        get(CLANG, "the test that needs clang is skipped");
    }
    let has_torch = || PYTHONS.iter().any(|python| said(python, &["-c", "import torch"]).is_some());
    if !has_torch() {
        get(TORCH, "the tests that need PyTorch are skipped");
    }
    if said(NINJA, &["--version"]).is_none() {
        get(NINJA_PACKAGE, "the tests that build extensions of PyTorch fail");
    }
    if !SSHD.iter().any(|path| Path::new(path).is_file()) {
        get(SSHD_PACKAGE, "the test of a worker behind ssh is skipped");
    }
    if has_torch() { Vec::new() } else { vec![(WITHOUT_TORCH, "1")] }
}

/// Installs a package of the system's, where that is ours to do.
///
/// # Errors
/// We are not root, there is no apt-get, or it fails.
pub fn install_package(name: &str) -> Result<()> {
    if said("id", &["-u"]).is_none_or(|id| id.trim() != "0") || said("apt-get", &["--version"]).is_none() {
        bail!("`{name}` is not installed, and only root may install it, with apt-get");
    }
    let apt = |arguments: &[&str]| {
        step(Command::new("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    let get = || apt(&["install", "--yes", "--no-install-recommends", name]);
    // A new machine may know no packages yet.
    get().or_else(|_| apt(&["update"]).and_then(|()| get()))
}

/// What a program prints, if it can be run and ends well.
fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output =
        Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

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
