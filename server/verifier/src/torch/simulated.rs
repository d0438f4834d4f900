//! The CUDA extensions of a candidate, run on the simulator: PyTorch code without a GPU.
//!
//! The candidate's Python runs on the CPU as always. Where it builds an extension from CUDA texts, its process asks here, and a program is made
//! of them: the texts, what stands in for torch's tensors, and a `main` that takes one call. Each call of a function is one run of that
//! program, on a simulated device that checks every access. So kernels and the C++ around them run as they are written; but that C++ meets
//! a stand-in, and the Python's tensors lie on the CPU, and both are said not to be verified.

mod text;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use stitch_session::CancellationToken;
use stitch_toolchain::process::Scratch;

use super::host::{Assistant, Doing, Extension, Unassisted};
use crate::program::{BuildError, Builder, Built, End, Program, Ran, Running, build, run};
use crate::simulation::{Fault, Options};

/// A call's answer is no larger, in bytes.
const MOST_BYTES: u64 = 4 << 30;

/// How extensions are built and run.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// Builds for the simulated device.
    pub builder: Builder,
    /// Our own program, which is the simulator's process.
    pub executable: PathBuf,
}

/// What was seen of a candidate's kernels.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Kernels that the texts define, by name.
    pub kernels: Vec<String>,
    /// Functions that Python may call.
    pub functions: Vec<String>,
    /// Launches by kernel.
    pub launched: BTreeMap<String, u64>,
    /// Calls of functions.
    pub calls: u64,
    /// The simulator's estimate for all launches, in nanoseconds: a roofline, no measurement.
    pub estimated_ns: u64,
    /// What kernels did wrong.
    pub faults: Vec<Fault>,
    /// Why something could not be run, in sentences without their end.
    pub refused: Vec<String>,
}

/// The assistant of one verification.
pub(super) struct Simulator {
    simulation: Simulation,
    time_limit: Duration,
    cancel: CancellationToken,
    /// What was built, each with the folder of its text.
    built: Mutex<Vec<(Arc<Built>, Scratch)>>,
    seen: Mutex<Seen>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Simulator {
    /// One that has built nothing. A run may take so long.
    pub fn new(simulation: Simulation, time_limit: Duration, cancel: CancellationToken) -> Self {
        Self { simulation, time_limit, cancel, built: Mutex::default(), seen: Mutex::default() }
    }

    /// What was seen so far.
    pub fn seen(&self) -> Seen {
        locked(&self.seen).clone()
    }

    fn refuse(&self, reason: &str) -> Unassisted {
        let mut seen = locked(&self.seen);
        if !seen.refused.iter().any(|known| known == reason) {
            seen.refused.push(reason.to_owned());
        }
        Unassisted::Refused(reason.to_owned())
    }

    async fn built(&self, extension: Extension) -> Result<usize, Unassisted> {
        {
            let mut seen = locked(&self.seen);
            for kernel in text::kernels(&extension) {
                if !seen.kernels.contains(&kernel) {
                    seen.kernels.push(kernel);
                }
            }
            for function in &extension.functions {
                if !seen.functions.contains(function) {
                    seen.functions.push(function.clone());
                }
            }
        }
        let failed = |what: std::io::Error| self.refuse(&format!("no folder could be written ({what})"));
        let scratch = Scratch::new("extension").map_err(failed)?;
        let file = write(&extension, scratch.path()).map_err(failed)?;
        let mut builder = self.simulation.builder.clone();
        let mut config = (*builder.config).clone();
        config.nvcc.extra_flags.extend(text::flags(&extension));
        builder.config = Arc::new(config);
        let program = Program {
            name: extension.name.clone(),
            sources: vec![file],
            folder: scratch.path().to_owned(),
            arguments: Vec::new(),
            inputs: Vec::new(),
            own: None,
            tolerance: None,
            precision: None,
            device: None,
        };
        match build(&builder, &program, &self.cancel).await {
            Ok(built) => {
                let mut list = locked(&self.built);
                list.push((Arc::new(built), scratch));
                Ok(list.len() - 1)
            }
            Err(BuildError::Compiler { text, .. }) => Err(match text::refusal(&extension, &text) {
                Unassisted::Refused(reason) => self.refuse(&reason),
                wrong @ Unassisted::Wrong(_) => wrong,
            }),
            Err(error) => Err(self.refuse(error.to_string().trim_end_matches('.'))),
        }
    }

    async fn called(&self, number: usize, call: Vec<u8>) -> Result<Vec<u8>, Unassisted> {
        let built = locked(&self.built).get(number).map(|(built, _)| Arc::clone(built));
        let built = built.ok_or_else(|| self.refuse("a call of an extension that was not built"))?;
        let folder = built
            .new_folder("call")
            .map_err(|(path, source)| self.refuse(&format!("{}: {source}", path.display())))?;
        let answer = self.run(&built, &folder, &call).await;
        let _ = std::fs::remove_dir_all(&folder);
        answer
    }

    async fn run(&self, built: &Built, folder: &Path, call: &[u8]) -> Result<Vec<u8>, Unassisted> {
        let failed =
            |source: std::io::Error| self.refuse(&format!("a call could not be passed on: {source}"));
        let (asked, answered) = (folder.join("call"), folder.join("answer"));
        std::fs::write(&asked, call).map_err(failed)?;
        let running = Running {
            device: self.simulation.builder.device.clone(),
            arguments: vec![asked.display().to_string(), answered.display().to_string()],
            time_limit: self.time_limit,
            simulation: Options { executable: self.simulation.executable.clone(), ..Options::default() },
        };
        let ran = match run(built, &running, &self.cancel).await {
            Ok(ran) => ran,
            Err(error) => return Err(self.refuse(error.to_string().trim_end_matches('.'))),
        };
        self.note(&ran);
        match ran.end {
            End::Status(0) => read(&answered).map_err(failed),
            End::TimedOut => Err(self.refuse(&format!(
                "one call ran longer than {:.0} s on the simulator, which is thousands of times slower than a GPU; give smaller inputs (`--inputs`)",
                self.time_limit.as_secs_f64()
            ))),
            end => Err(Unassisted::Wrong(format!("its program {}", crate::verify::ended(&end)))),
        }
    }

    /// Takes in what the simulator reports of a run.
    fn note(&self, ran: &Ran) {
        let Some(report) = &ran.report else { return };
        let mut seen = locked(&self.seen);
        seen.calls += 1;
        for kernel in &report.kernels {
            let name = crate::demangle::name(&kernel.name).base().to_owned();
            *seen.launched.entry(name).or_default() += kernel.launches;
            seen.estimated_ns += kernel.estimated_ns;
        }
        seen.faults.extend(report.faults.iter().cloned());
    }
}

impl Assistant for Simulator {
    fn build(&self, extension: Extension) -> Doing<'_, usize> {
        Box::pin(self.built(extension))
    }

    fn call(&self, extension: usize, call: Vec<u8>) -> Doing<'_, Vec<u8>> {
        Box::pin(self.called(extension, call))
    }
}

/// Writes the program's text and what it includes, and gives the file to compile.
fn write(extension: &Extension, folder: &Path) -> std::io::Result<PathBuf> {
    for (name, text) in text::SUPPORT {
        std::fs::write(folder.join(name), text)?;
    }
    let file = folder.join("extension.cu");
    std::fs::write(&file, text::program(extension, folder))?;
    Ok(file)
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let size = std::fs::symlink_metadata(path)?;
    if !size.is_file() || size.len() > MOST_BYTES {
        return Err(std::io::Error::other("its answer is too large"));
    }
    std::fs::read(path)
}
