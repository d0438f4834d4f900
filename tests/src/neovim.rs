//! A real Neovim with the plugin, in a folder of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::cli::{Folder, binary, cache};

/// The release that `cargo xtask test` installs.
pub const VERSION: &str = "0.11.4";

/// Longer than any scenario takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(600);

/// The editor that `cargo xtask test` installed; or the one that `STITCHCUDA_TEST_NEOVIM` names, to try another release.
///
/// # Errors
/// It is not there.
pub fn program() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os("STITCHCUDA_TEST_NEOVIM") {
        return Ok(named.into());
    }
    let path = cache()?.join("neovim").join(VERSION).join("bin/nvim");
    ensure!(path.is_file(), "no Neovim at {}; run `cargo xtask test`", path.display());
    Ok(path)
}

/// The plugin.
pub fn plugin() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../editors/neovim")
}

/// What Neovim is told so that it has the plugin and nothing of the user's.
pub fn arguments() -> [String; 3] {
    ["--clean".to_owned(), "--cmd".to_owned(), format!("set runtimepath^={}", plugin().display())]
}

/// The variables of a Neovim whose plugin finds `stitchcuda` in `PATH`, with a toolkit and the simulator.
///
/// # Errors
/// There is no binary, or no toolkit.
pub fn environment(folder: &Folder) -> Result<Vec<(String, String)>> {
    let command = folder.command(&[])?;
    let text = |value: &std::ffi::OsStr| value.to_string_lossy().into_owned();
    let mut variables: Vec<(String, String)> = command
        .get_envs()
        .filter_map(|(name, value)| Some((text(name), text(value?))))
        .filter(|(name, _)| name != "PATH")
        .collect();
    let home = folder.path()?.join("../home");
    let beside = binary()?.parent().context("the binary lies nowhere")?.display().to_string();
    variables.extend([
        ("PATH".to_owned(), format!("{beside}:/usr/bin:/bin")),
        ("STITCHCUDA_DEVICE".to_owned(), "sim:h200".to_owned()),
        // One candidate is enough for what is tested here.
        ("STITCHCUDA_OPTIMIZE_ATTEMPTS".to_owned(), "1".to_owned()),
        ("LANG".to_owned(), "C.UTF-8".to_owned()),
    ]);
    for name in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"] {
        let place = home.join(name.to_lowercase());
        std::fs::create_dir_all(&place).with_context(|| format!("making {}", place.display()))?;
        variables.push((name.to_owned(), place.display().to_string()));
    }
    Ok(variables)
}

/// Runs a scenario of the plugin's tests in a folder, with further variables, and gives what it printed if it failed.
///
/// # Errors
/// The scenario failed, or Neovim can't be run.
pub fn scenario(folder: &Folder, name: &str, variables: &[(&str, &str)]) -> Result<()> {
    scenario_with(folder, name, variables, &arguments())
}

/// The same in a Neovim that is told by these arguments where its plugin is.
///
/// # Errors
/// As above.
pub fn scenario_with(
    folder: &Folder,
    name: &str,
    variables: &[(&str, &str)],
    arguments: &[String],
) -> Result<()> {
    let tests = plugin().join("tests");
    let log = folder.path()?.join("../neovim.log");
    let output = std::fs::File::create(&log).context("making a log")?;
    let mut child = Command::new(program()?)
        .arg("--headless")
        .args(arguments)
        .arg("-c")
        .arg(format!("luafile {}", tests.join("scenarios").join(format!("{name}.lua")).display()))
        .current_dir(folder.path()?)
        .env_clear()
        .envs(environment(folder)?)
        .env("STITCHCUDA_TEST_HARNESS", tests.join("harness.lua"))
        .env("STITCHCUDA_TEST_PLUGIN", plugin())
        .envs(variables.iter().copied())
        .envs(std::env::var("STITCHCUDA_TEST_PATIENCE").map(|seconds| ("STITCHCUDA_TEST_PATIENCE", seconds)))
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
        .context("starting Neovim")?;
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if begun.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let said = std::fs::read_to_string(&log).unwrap_or_default();
    ensure!(
        status.is_some_and(|status| status.success()),
        "the scenario {name} failed ({status:?}):\n{said}"
    );
    Ok(())
}
