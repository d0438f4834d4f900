//! One job: checks what it asks for, runs it, and reads how it ended.

use std::path::{Path, PathBuf};
use std::time::Duration;

use stitch_toolchain::environment::Environment;
use stitch_toolchain::process::{Finished, Program, ProgramError, Scratch};
use tokio_util::sync::CancellationToken;

use super::message::{End, LONGEST_ORDER, Order, Report, VARIABLE};
use super::{Active, Isolation, Policy, SUBCOMMAND, Sandbox, SandboxError, homes, layout};

/// A job that is ready to run.
#[derive(Debug)]
pub struct Wrapped {
    program: Program,
    path: PathBuf,
    policy: Policy,
    report: PathBuf,
    #[cfg(target_os = "linux")]
    group: Option<super::cgroup::Group>,
}

/// A job that ran to its end.
#[derive(Clone, Debug)]
pub struct Ran {
    /// How it ended and what it printed.
    pub finished: Finished,
    /// What of the sandbox was active.
    pub active: Active,
}

impl Wrapped {
    pub(super) fn new(
        sandbox: &Sandbox,
        mut policy: Policy,
        scratch: &Scratch,
    ) -> Result<Self, SandboxError> {
        check(&policy, scratch)?;
        if policy.gpu
            && let Some(folder) = crate::device::library().as_deref().and_then(Path::parent)
        {
            policy = policy.readable(folder);
        }
        let refuse = |reason: String| SandboxError::Policy { program: policy.program.clone(), reason };
        #[cfg(target_os = "linux")]
        let group = match &sandbox.groups {
            Some(groups) => Some(
                groups
                    .make(policy.memory, policy.tasks + super::outer::OWN_TASKS)
                    .map_err(|error| refuse(format!("its cgroup can't be made ({error}); run it again")))?,
            ),
            None => None,
        };
        // Beside the scratch folder, where the job does not see it, and which is swept as the scratch folders are.
        let report = scratch.path().with_extension("report.json");
        let order = Order {
            policy: policy.clone(),
            plan: sandbox.plan.clone(),
            scratch: scratch.path().to_owned(),
            scratch_limit: scratch.size_limit(),
            report: report.clone(),
            #[cfg(target_os = "linux")]
            cgroup: group.as_ref().map(|group| group.path().to_owned()),
            #[cfg(not(target_os = "linux"))]
            cgroup: None,
            known: sandbox.known.clone(),
            messages: None,
            outside: Vec::new(),
            mark: None,
        };
        let text = serde_json::to_string(&order).map_err(|error| refuse(error.to_string()))?;
        if text.len() > LONGEST_ORDER {
            return Err(refuse("its arguments and environment are too long; pass them in a file".into()));
        }
        let environment = Environment::from_variables([(VARIABLE, text)]);
        let mut program =
            Program::new(&sandbox.executable).arg(SUBCOMMAND).environment(environment).scratch(scratch);
        if policy.large_files {
            program = program.large_files();
        }
        Ok(Self {
            program,
            path: policy.program.clone(),
            policy,
            report,
            #[cfg(target_os = "linux")]
            group,
        })
    }

    /// How long it may run.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.program = self.program.time_limit(limit);
        self
    }

    /// How much is kept of each of its output streams, in bytes.
    pub fn output_limit(mut self, bytes: usize) -> Self {
        self.program = self.program.output_limit(bytes);
        self
    }

    /// What it reads on standard input.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.program = self.program.stdin(bytes);
        self
    }

    /// Runs it to its end, whatever its exit status is.
    ///
    /// # Errors
    /// It did not start, was ended by a limit or by `cancel`. Nothing of it is left in any case.
    pub async fn run(self, cancel: &CancellationToken) -> Result<Ran, SandboxError> {
        let finished = self.program.run(cancel).await;
        let report = std::fs::read(&self.report).ok();
        let report = report.and_then(|bytes| serde_json::from_slice::<Report>(&bytes).ok());
        // One that was never written is not there.
        let _ = std::fs::remove_file(&self.report);
        #[cfg(target_os = "linux")]
        drop(self.group);
        let program = self.path;
        let finished = match finished {
            Ok(finished) => finished,
            Err(ProgramError::NotFound { program: executable }) => {
                return Err(SandboxError::NotMade {
                    program,
                    what: "starting StitchCUDA's own program".into(),
                    why: format!("{} is not there", executable.display()),
                });
            }
            Err(error) => return Err(SandboxError::Program(named(error, program))),
        };
        let Some(Report { active, end: Some(end) }) = report else {
            let said = finished.stderr_text();
            return Err(SandboxError::NoReport { program, said: last_line(&said) });
        };
        match end {
            End::Itself(_) => Ok(Ran { finished, active }),
            End::Failed(failure) => {
                let said = last_line(&finished.stderr_text());
                Err(SandboxError::NotMade { program, what: failure.what, why: failure.why + &said })
            }
            End::NotExecuted(error) => {
                Err(SandboxError::NotExecutable { program, source: std::io::Error::from_raw_os_error(error) })
            }
            End::Memory(used) => Err(SandboxError::Memory { program, limit: self.policy.memory, used }),
            End::Tasks(count) => Err(SandboxError::Tasks { program, limit: self.policy.tasks, count }),
            End::Cpu(_) => Err(SandboxError::Cpu { program, limit: self.policy.cpu.as_secs() }),
        }
    }
}

/// The last line that was printed, as an addition to a sentence.
fn last_line(text: &str) -> String {
    let line = text.lines().rev().find(|line| !line.trim().is_empty());
    line.map_or(String::new(), |line| format!(" ({})", line.trim()))
}

/// The same error about the program that was meant, not the stage that started it.
fn named(error: ProgramError, meant: PathBuf) -> ProgramError {
    match error {
        ProgramError::TimedOut { limit, output, .. } => {
            ProgramError::TimedOut { program: meant, limit, output }
        }
        ProgramError::Cancelled { .. } => ProgramError::Cancelled { program: meant },
        ProgramError::ScratchFull { folder, limit, output, .. } => {
            ProgramError::ScratchFull { program: meant, folder, limit, output }
        }
        ProgramError::Flooded { limit, output, .. } => {
            ProgramError::Flooded { program: meant, limit, output }
        }
        ProgramError::Lost { .. } => ProgramError::Lost { program: meant },
        error => error,
    }
}

/// Whether a policy can be.
fn check(policy: &Policy, scratch: &Scratch) -> Result<(), SandboxError> {
    let refuse = |reason: String| Err(SandboxError::Policy { program: policy.program.clone(), reason });
    let homes = homes();
    if !cfg!(target_os = "linux") {
        return refuse("only Linux has what it takes; use a machine or a container with Linux".into());
    }
    if !policy.program.is_absolute() {
        return refuse("its path is relative; give it from the root on".into());
    }
    for path in policy.all_readable().chain(policy.folder.as_deref()) {
        match layout::shows_home(path, &homes) {
            Ok(false) => {}
            Ok(true) if path == policy.folder.as_deref().unwrap_or(Path::new("")) => {}
            Ok(true) => {
                return refuse(format!(
                    "showing {} would show the home folder; name the folders in it that are needed",
                    path.display()
                ));
            }
            Err(error) => return refuse(format!("{} can't be shown: {error}", path.display())),
        }
    }
    if policy.memory == 0 || policy.tasks == 0 || policy.cpu.is_zero() || scratch.size_limit() == 0 {
        return refuse("a limit of nothing leaves nothing to run with; raise it".into());
    }
    if policy
        .environment
        .iter()
        .any(|(name, value)| bad_variable(name.as_encoded_bytes(), value.as_encoded_bytes()))
    {
        return refuse("a variable has no name, or has `=` or NUL in it where it may not".into());
    }
    Ok(())
}

fn bad_variable(name: &[u8], value: &[u8]) -> bool {
    name.is_empty() || name.contains(&b'=') || name.contains(&0) || value.contains(&0)
}

impl Isolation {
    /// Whether processes that get away from their parents end with the first process inside.
    pub(super) fn ends_all(&self) -> bool {
        !matches!(self, Self::None)
    }
}
