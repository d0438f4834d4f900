//! What `verify` and `profile` have in common: which program, which device, which toolkit.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use stitch_agents::run::Manifest;
use stitch_session::config::{Config, Device};
use stitch_toolchain::discovery;
use stitch_verifier::harness::Answers;
use stitch_verifier::program::{self, Builder, Target};
use stitch_verifier::torch::machine::{Machine, MachineError};

use crate::settings::Surrounding;
use crate::status::Status;

/// Seconds that one run may take, where nothing else is said.
const TIME_LIMIT: u64 = 600;

/// Flags that say which program, where and for how long.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ProgramArguments {
    /// Where to run: auto, cuda:N, a simulated device as sim:NAME, or for PyTorch code cpu
    #[arg(long, value_parser = device)]
    pub device: Option<Device>,
    /// The command that gives a `stitchcuda worker` on another machine, which that device is of, as in "ssh gpu01 stitchcuda worker"; an empty one
    /// is this machine
    #[arg(long, value_name = "COMMAND")]
    pub device_command: Option<String>,
    /// A further source of the program, compiled and linked with it
    #[arg(long, value_name = "FILE")]
    pub with: Vec<PathBuf>,
    /// Seconds that one run may take, or the build of a target's own
    #[arg(long, value_name = "SECONDS", default_value_t = TIME_LIMIT, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub time_limit: u64,
    /// The nvcc to compile with
    #[arg(long, value_name = "PATH")]
    pub nvcc: Option<String>,
    /// Which defects the simulator looks for: none, memory or all
    #[arg(long, value_name = "CHECKS", value_parser = ["none", "memory", "all"])]
    pub checks: Option<String>,
    /// The sizes of an array of a kernel, as in x=1024x768
    #[arg(long, value_name = "NAME=AxB", help_heading = "For a kernel without a main")]
    shape: Vec<String>,
    /// The value of a scalar, as in n=1024
    #[arg(long, value_name = "NAME=VALUE", help_heading = "For a kernel without a main")]
    scalar: Vec<String>,
    /// One more than the largest value in an array of integers, as in index=1024
    #[arg(long, value_name = "NAME=N", help_heading = "For a kernel without a main")]
    limit: Vec<String>,
    /// Template arguments, as in float,256
    #[arg(long, value_name = "ARGUMENTS", help_heading = "For a kernel without a main")]
    template: Option<String>,
    /// Blocks, as in 128 or 16x16
    #[arg(long, value_name = "AxBxC", help_heading = "For a kernel without a main")]
    grid: Option<String>,
    /// Threads of a block, as in 256 or 16x16
    #[arg(long, value_name = "AxBxC", help_heading = "For a kernel without a main")]
    block: Option<String>,
    /// Dynamic shared memory of a block in bytes
    #[arg(long, value_name = "BYTES", help_heading = "For a kernel without a main")]
    shared: Option<u64>,
    /// Arguments for the program
    #[arg(last = true)]
    pub arguments: Vec<String>,
}

/// Flags that say what PyTorch code is called with, and by which interpreter.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "For PyTorch")]
pub struct PythonArguments {
    /// What it is called with, as in "randn(32, 1024), n=4"; several are several cases
    #[arg(long, value_name = "ARGUMENTS")]
    pub inputs: Vec<String>,
    /// What a module is made with, as in "64, bias=False"
    #[arg(long, value_name = "ARGUMENTS")]
    pub init: Option<String>,
    /// The interpreter that has torch
    #[arg(long, value_name = "PATH")]
    pub python: Option<PathBuf>,
}

/// What runs PyTorch code on the device that was asked for. `Err` with the status where something is missing, which was said.
pub async fn machine(
    surrounding: &Surrounding,
    config: &Config,
    asked: &Device,
    python: Option<&Path>,
) -> std::result::Result<Machine, Status> {
    let executable = std::env::current_exe().unwrap_or_default();
    Machine::find(config, &surrounding.search(config), asked, python, &executable).await.map_err(|error| {
        anstream::eprintln!("error: {error}");
        match error {
            MachineError::Missing(_) => Status::Missing,
            MachineError::Device(_) => Status::Usage,
            MachineError::Failed(_) => Status::Bad,
        }
    })
}

/// A tolerance as it is typed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// A share from 0 to 1.
    Share(f64),
    /// That of KernelBench before its version of 2025, for every type.
    KernelBenchOld,
}

impl Tolerance {
    /// As a share.
    pub fn share(self) -> f64 {
        match self {
            Self::Share(share) => share,
            // KernelBench v0 and v0.1: atol = rtol = 1e-2 (its `src/eval.py`).
            Self::KernelBenchOld => 1e-2,
        }
    }

    /// What it is called in a verdict.
    pub fn name(self) -> &'static str {
        match self {
            Self::Share(_) => "given",
            Self::KernelBenchOld => "kernelbench-old",
        }
    }
}

/// Reads one.
///
/// # Errors
/// It is no number from 0 to 1, nor a name.
pub fn tolerance(text: &str) -> std::result::Result<Tolerance, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(Tolerance::Share(share)),
        _ if text == "kernelbench-old" => Ok(Tolerance::KernelBenchOld),
        _ => Err("a number from 0 to 1 is expected, or `kernelbench-old`".to_owned()),
    }
}

/// A device as it is typed.
///
/// # Errors
/// There is none of that form.
pub fn device(text: &str) -> std::result::Result<Device, &'static str> {
    Device::try_from(text.to_owned())
}

impl ProgramArguments {
    /// What was said of a kernel.
    ///
    /// # Errors
    /// A flag can't be read.
    pub fn answers(&self) -> Result<Answers> {
        let mut answers = Answers::default();
        for shape in &self.shape {
            answers.shape(shape)?;
        }
        for scalar in &self.scalar {
            answers.scalar(scalar)?;
        }
        for limit in &self.limit {
            answers.limit(limit)?;
        }
        answers.grid = self.grid.as_deref().map(|grid| Answers::dimensions("grid", grid)).transpose()?;
        answers.block = self.block.as_deref().map(|block| Answers::dimensions("block", block)).transpose()?;
        answers.shared = self.shared;
        answers.template = self.template.as_deref().map(stitch_verifier::harness::split);
        Ok(answers)
    }

    /// Nothing was said.
    pub fn unsaid() -> Self {
        Self { time_limit: TIME_LIMIT, ..Self::default() }
    }

    /// The flags with which a run was begun.
    ///
    /// # Errors
    /// Its device can't be read.
    pub fn of_run(manifest: &Manifest) -> Result<Self> {
        let device = Device::try_from(manifest.device.clone()).map_err(|error| anyhow::anyhow!(error))?;
        Ok(Self {
            device: Some(device),
            with: manifest.with.clone(),
            time_limit: manifest.time_limit_seconds,
            arguments: manifest.arguments.clone(),
            ..Self::default()
        })
    }

    /// The settings that these flags are.
    pub fn surrounding(&self) -> Result<Surrounding> {
        let flags = [
            ("nvcc.path", &self.nvcc),
            ("simulator.checks", &self.checks),
            ("worker.command", &self.device_command),
        ];
        let given = flags.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value.clone()?)));
        Surrounding::read(given.collect())
    }

    /// The time limit.
    pub fn limit(&self) -> Duration {
        Duration::from_secs(self.time_limit)
    }
}

/// Finds what a person named.
///
/// # Errors
/// There is no such thing.
pub fn target(surrounding: &Surrounding, name: &str, with: &[PathBuf]) -> Result<Target> {
    Ok(program::find(name, &surrounding.folder, with, surrounding.settings())?)
}

/// The file that a target's configuration is that of, and that a candidate takes the place of.
pub fn file(target: &Target) -> Option<&Path> {
    match target {
        Target::Program(program) => program.sources.first().map(PathBuf::as_path),
        Target::Kernel { path, .. } => Some(path),
    }
}

/// The device that is asked for: by a flag, by the target, or by the settings.
pub fn asked(arguments: &ProgramArguments, target: &Target, config: &Config) -> Device {
    let of_target = match target {
        Target::Program(program) => program.device.clone(),
        Target::Kernel { .. } => None,
    };
    arguments.device.clone().or(of_target).unwrap_or_else(|| config.device.clone())
}

/// Decides how `target` is built and where it runs. `Err` with the status where something is missing, which was said.
///
/// # Errors
/// The device that was asked for is not there, or the runtime of a simulated one can't be made.
pub async fn builder(
    surrounding: &Surrounding,
    arguments: &ProgramArguments,
    target: &Target,
) -> Result<std::result::Result<Builder, Status>> {
    let config = surrounding.config_for(file(target));
    let asked = asked(arguments, target, &config);
    let device = match program::choose(&asked).await {
        Ok(device) => device,
        Err(error) => {
            anstream::eprintln!("error: {error}");
            return Ok(Err(Status::Missing));
        }
    };
    let found = discovery::find(&surrounding.search(&config));
    let Some(toolkit) = found.chosen.clone() else {
        anstream::eprintln!("error: {}", found.advice());
        return Ok(Err(Status::Missing));
    };
    match Builder::prepare(device, toolkit, config, Some(workspace(surrounding, target))).await {
        Ok(mut builder) => {
            // A person's own build is bounded like a run of theirs; a compile by nvcc as it is configured.
            if matches!(target, Target::Program(program) if program.own.is_some()) {
                builder.time_limit = arguments.limit();
            }
            Ok(Ok(builder))
        }
        Err(error) => {
            anstream::eprintln!("error: {error}");
            Ok(Err(Status::Missing))
        }
    }
}

/// The folder that headers and compile databases are looked for in: that of the command, or the one the file belongs to.
fn workspace(surrounding: &Surrounding, target: &Target) -> PathBuf {
    workspace_around(surrounding, file(target))
}

/// The same for a file.
pub fn workspace_around(surrounding: &Surrounding, file: Option<&Path>) -> PathBuf {
    match file {
        Some(file) if !file.starts_with(&surrounding.folder) => {
            stitch_session::config::workspace_of(file).unwrap_or_else(|| surrounding.folder.clone())
        }
        _ => surrounding.folder.clone(),
    }
}
