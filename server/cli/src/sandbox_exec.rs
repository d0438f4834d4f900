//! `stitchcuda sandbox-exec`: the stages of the sandbox, which `verify` and others start; and for developers, a way to run any command
//! inside, to see which ways this machine has, and to see that a GPU works in each.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;
use stitch_toolchain::environment::Environment;
use stitch_toolchain::process::{ProgramError, Scratch};
use stitch_verifier::sandbox::{self, Isolation, Plan, Policy, Sandbox, SandboxError};
use tokio_util::sync::CancellationToken;

use crate::status::Status;

/// Arguments of `sandbox-exec`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Say what can be done in this process, as JSON; the value is the home folder outside
    #[arg(long, num_args = 0..=1, default_missing_value = "")]
    look: Option<PathBuf>,
    /// Run a kernel in this process, and say how it went, as JSON
    #[arg(long)]
    probe_gpu: bool,
    /// Try every way of making a sandbox, with each layer and without, and a kernel in each with `--gpu`
    #[arg(long)]
    all: bool,
    /// Way to make the sandbox: auto, bubblewrap, user, user-without-mounts, root, root-without-mounts, none
    #[arg(long, default_value = "auto")]
    isolation: String,
    /// Show `/proc` as it is outside
    #[arg(long)]
    outer_proc: bool,
    /// Leave Landlock out
    #[arg(long)]
    no_landlock: bool,
    /// Leave the filter on system calls out
    #[arg(long)]
    no_seccomp: bool,
    /// Path that may be read besides the system
    #[arg(long = "read", value_name = "PATH")]
    readable: Vec<PathBuf>,
    /// Variable that the command gets
    #[arg(long = "env", value_name = "NAME=VALUE")]
    variables: Vec<String>,
    /// Folder in which the scratch folder is made
    #[arg(long)]
    scratch: Option<PathBuf>,
    /// Bytes that the scratch folder may hold
    #[arg(long)]
    scratch_limit: Option<u64>,
    /// Bytes of memory
    #[arg(long, default_value_t = sandbox::DEFAULT_MEMORY)]
    memory: u64,
    /// Processes and threads
    #[arg(long, default_value_t = sandbox::DEFAULT_TASKS)]
    tasks: u64,
    /// Seconds of processor time
    #[arg(long, default_value_t = sandbox::DEFAULT_CPU.as_secs())]
    cpu: u64,
    /// Seconds that it may run
    #[arg(long, default_value_t = 600)]
    time: u64,
    /// Let it use the GPUs
    #[arg(long)]
    gpu: bool,
    /// Say on standard error what was active, as JSON
    #[arg(long)]
    report: bool,
    /// The command
    #[arg(last = true)]
    command: Vec<OsString>,
}

/// Is a stage, or does what a developer asks for.
pub fn run(arguments: Arguments) -> ExitCode {
    if sandbox::is_stage() {
        sandbox::stage();
    }
    match act(&arguments) {
        Ok(code) => code,
        Err(error) => {
            anstream::eprintln!("error: {error:#}");
            Status::Usage.into()
        }
    }
}

fn act(arguments: &Arguments) -> Result<ExitCode> {
    if let Some(home) = &arguments.look {
        let home = Some(home.as_path()).filter(|home| !home.as_os_str().is_empty());
        return say(&sandbox::look(home)).map(|()| ExitCode::SUCCESS);
    }
    if arguments.probe_gpu {
        return say(&sandbox::prove()).map(|()| ExitCode::SUCCESS);
    }
    let executable = std::env::current_exe().context("this program does not know where it lies")?;
    let runtime = tokio::runtime::Runtime::new().context("no threads to work with")?;
    if arguments.all {
        return runtime.block_on(all(&executable, arguments.gpu)).map(|()| ExitCode::SUCCESS);
    }
    runtime.block_on(command(&executable, arguments))
}

fn say(value: &impl serde::Serialize) -> Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, value)?;
    writeln!(out)?;
    Ok(())
}

/// One object a line for each way, and for each way that works, with and without Landlock and seccomp.
async fn all(executable: &Path, gpu: bool) -> Result<()> {
    for attempt in Sandbox::attempts(executable).await {
        let plan = &attempt.plan;
        if let Err(why) = &attempt.sandbox {
            say(&json!({ "isolation": plan.isolation.to_string(), "plan": plan, "why": why }))?;
            continue;
        }
        for (landlock, seccomp) in [(true, true), (true, false), (false, true), (false, false)] {
            let plan = Plan { landlock, seccomp, ..plan.clone() };
            let sandbox = Sandbox::with_plan(executable, plan.clone()).await?;
            let proof = if gpu { Some(sandbox.prove_gpu().await) } else { None };
            let isolation = plan.isolation.to_string();
            say(&json!({ "isolation": isolation, "plan": plan, "active": sandbox.active(), "gpu": proof }))?;
        }
    }
    Ok(())
}

async fn command(executable: &Path, arguments: &Arguments) -> Result<ExitCode> {
    let Some((program, rest)) = arguments.command.split_first() else {
        bail!("no command; write it after `--`");
    };
    let sandbox = made(executable, arguments).await?;
    let mut policy = Policy::new(find(program)?).args(rest).memory(arguments.memory).tasks(arguments.tasks);
    policy = policy.cpu(Duration::from_secs(arguments.cpu));
    for path in &arguments.readable {
        policy = policy.readable(std::path::absolute(path)?);
    }
    for variable in &arguments.variables {
        let (name, value) = variable.split_once('=').context("a variable is written NAME=VALUE")?;
        policy = policy.env(name, value);
    }
    if arguments.gpu {
        stitch_verifier::device::devices().await;
        policy = policy.gpu();
    }
    let scratch = match &arguments.scratch {
        Some(folder) => Scratch::new_in(folder, "sandbox"),
        None => Scratch::new("sandbox"),
    };
    let mut scratch = scratch.context("making a scratch folder")?;
    if let Some(bytes) = arguments.scratch_limit {
        scratch = scratch.limit(bytes);
    }
    let job = sandbox.wrap(policy, &scratch)?.time_limit(Duration::from_secs(arguments.time));
    let cancel = CancellationToken::new();
    let running = job.run(&cancel);
    tokio::pin!(running);
    let ended = tokio::select! {
        ended = &mut running => ended,
        _ = tokio::signal::ctrl_c() => {
            cancel.cancel();
            running.await
        }
    };
    show(ended, arguments.report)
}

fn show(ended: Result<sandbox::Ran, SandboxError>, report: bool) -> Result<ExitCode> {
    let print = |out: &[u8], err: &[u8]| {
        std::io::stdout().write_all(out).and_then(|()| std::io::stderr().write_all(err))
    };
    match ended {
        Ok(ran) => {
            print(&ran.finished.stdout, &ran.finished.stderr)?;
            if report {
                anstream::eprintln!("{}", serde_json::to_string(&ran.active)?);
            }
            let status = ran.finished.status;
            let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
            Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
        }
        Err(error) => {
            if let SandboxError::Program(
                ProgramError::TimedOut { output, .. }
                | ProgramError::ScratchFull { output, .. }
                | ProgramError::Flooded { output, .. },
            ) = &error
            {
                print(&output.stdout, &output.stderr)?;
            }
            anstream::eprintln!("error: {error}");
            Ok(Status::Bad.into())
        }
    }
}

/// The sandbox that was asked for.
async fn made(executable: &Path, arguments: &Arguments) -> Result<Sandbox> {
    let automatic = !arguments.outer_proc && !arguments.no_landlock && !arguments.no_seccomp;
    if arguments.isolation == "auto" {
        ensure!(automatic, "name a way with --isolation, to leave something out of it");
        return Ok(Sandbox::probe(executable).await?);
    }
    let isolation = match arguments.isolation.as_str() {
        "bubblewrap" => Isolation::Bubblewrap(find(&"bwrap".into())?),
        "user" => Isolation::User { mounts: true },
        "user-without-mounts" => Isolation::User { mounts: false },
        "root" => Isolation::Root { mounts: true },
        "root-without-mounts" => Isolation::Root { mounts: false },
        "none" => Isolation::None,
        other => bail!("there is no way `{other}` to make a sandbox; see --help"),
    };
    let plan = Plan {
        isolation,
        fresh_proc: !arguments.outer_proc,
        landlock: !arguments.no_landlock,
        seccomp: !arguments.no_seccomp,
    };
    Ok(Sandbox::with_plan(executable, plan).await?)
}

fn find(program: &OsString) -> Result<PathBuf> {
    let path = Path::new(program);
    if path.components().count() > 1 {
        return Ok(std::path::absolute(path)?);
    }
    let name = program.to_str().context("a name that is no text")?;
    Environment::of_this_process().find_program(name).with_context(|| format!("`{name}` is not on PATH"))
}
