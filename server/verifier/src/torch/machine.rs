//! What of this machine runs PyTorch code: the interpreter, the device, the toolkit, the sandbox. Found once, and used for every verification.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use stitch_session::cache::Cache;
use stitch_session::config::{Config, Device};
use stitch_session::folders::Folders;
use stitch_toolchain::discovery::{self, Search};

use super::confine::confined;
use super::host::{Place, Python, Wrap, bare, find_python};
use super::judge::Rule;
use super::judge::statistics::LEAST_CALLS;
use super::request::{Request, SanitizerPolicy};
use super::simulated::Simulation;
use super::subject::Subject;
use crate::device::devices;
use crate::program::{self, Builder};
use crate::sandbox::Sandbox;

/// The L2 cache is overwritten by so many times its size.
const FLUSH: u64 = 2;
/// How long one request to a process may take where nothing else is said: building an extension against torch's headers takes a minute.
const TIME_LIMIT: Duration = Duration::from_secs(600);

/// What runs PyTorch code here.
#[derive(Clone)]
pub struct Machine {
    python: Python,
    place: Place,
    device: String,
    kind_of_device: String,
    l2_bytes: u64,
    driver: Option<String>,
    environment: Vec<(OsString, OsString)>,
    readable: Vec<PathBuf>,
    sanitizer: Option<PathBuf>,
    wrap: Wrap,
    sandbox: String,
    cache: Cache,
    simulation: Option<Simulation>,
    timing_seconds: f64,
}

/// Why nothing can be run.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// Something must be got first: exit status 3.
    #[error("{0}")]
    Missing(String),
    /// The device runs no PyTorch: exit status 2.
    #[error("{0}")]
    Device(String),
    /// Looking for it failed.
    #[error("looking for Python failed: {0}")]
    Failed(String),
}

/// A device that is there.
struct Chosen {
    place: Place,
    name: String,
    kind: String,
    l2_bytes: u64,
    driver: Option<String>,
}

impl Machine {
    /// Looks for what runs PyTorch code on the `asked` device. `python` is the interpreter that was named, and `executable` our own program,
    /// which makes the sandbox.
    ///
    /// # Errors
    /// There is no interpreter with torch, or the device is not there.
    pub async fn find(
        config: &Config,
        search: &Search,
        asked: &Device,
        python: Option<&Path>,
        executable: &Path,
    ) -> Result<Self, MachineError> {
        let folders = Folders::find();
        let (named, cache, searched) = (python.map(PathBuf::from), folders.cache.clone(), search.clone());
        let found =
            tokio::task::spawn_blocking(move || find_python(named.as_deref(), &searched, cache.as_deref()));
        let python = match found.await {
            Ok(Ok(python)) => python,
            Ok(Err(error)) => return Err(MachineError::Missing(error.to_string())),
            Err(error) => return Err(MachineError::Failed(error.to_string())),
        };
        let simulation = match asked {
            Device::Simulator(_) => Some(simulated(config, search, asked, executable).await?),
            _ => None,
        };
        let Chosen { place, name, kind, l2_bytes, driver } = choose(asked, &python).await?;
        let mut environment = Vec::new();
        let mut readable = programs(search);
        let mut sanitizer = None;
        if matches!(place, Place::Cuda(_)) {
            let toolkit = discovery::find(search).chosen;
            sanitizer = discovery::compute_sanitizer(search, toolkit.as_ref());
            readable.extend(toolkit.iter().map(|toolkit| toolkit.root.clone()));
            environment.extend(toolkit.map(|toolkit| ("CUDA_HOME".into(), toolkit.root.into_os_string())));
        }
        let probed = match place {
            Place::Cpu => Sandbox::probe(executable).await,
            Place::Cuda(_) => Sandbox::probe_for_gpu(executable).await,
        };
        let (sandbox, wrap) = match probed {
            Ok(sandbox) => (sandbox.active().to_string(), confined(sandbox)),
            Err(error) => (format!("None: both versions ran with your own rights. {error}"), bare()),
        };
        let sandbox = match simulation {
            Some(_) => format!(
                "{sandbox} The programs of extensions run outside of it, beside the simulator, with your own rights."
            ),
            None => sandbox,
        };
        let cache = Cache::configured(&config.cache, &folders);
        Ok(Self {
            python,
            place,
            device: name,
            kind_of_device: kind,
            l2_bytes,
            driver,
            environment,
            readable,
            sanitizer,
            wrap,
            sandbox,
            cache,
            simulation,
            timing_seconds: config.verify.timing_seconds,
        })
    }

    /// The device on which PyTorch code is timed where `configured` is: a simulated one measures no time, so what is on this machine takes its place.
    pub fn timed(configured: &Device) -> Device {
        match configured {
            Device::Simulator(_) => Device::Auto,
            device => device.clone(),
        }
    }

    /// The device as a verdict names it: `cpu`, `cuda:0 (NVIDIA H200)`.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// The device's short name: `cpu`, `cuda:0`.
    pub fn device_id(&self) -> String {
        match self.place {
            // A simulated device has no other name.
            Place::Cpu => self.device.clone(),
            Place::Cuda(index) => format!("cuda:{index}"),
        }
    }

    /// A verification with everything as usual: modules as they construct themselves, no gradients, times against eager and compiled code.
    pub fn request(&self, reference: Subject, candidate: Subject) -> Request {
        let name = |subject: &Subject| subject.path.display().to_string();
        Request {
            reference_name: name(&reference),
            candidate_name: name(&candidate),
            reference,
            candidate,
            place: self.place,
            simulation: self.simulation.clone(),
            device: self.device.clone(),
            kind_of_device: self.kind_of_device.clone(),
            stands_for: None,
            l2_bytes: self.l2_bytes,
            driver: self.driver.clone(),
            python: self.python.clone(),
            rule: Rule { tolerance: None },
            tolerance_name: "usual".to_owned(),
            gradients: false,
            train: None,
            sanitizer: SanitizerPolicy::default(),
            sanitizer_program: self.sanitizer.clone(),
            compile_baseline: true,
            calls: LEAST_CALLS,
            timing_seconds: self.timing_seconds,
            time_limit: TIME_LIMIT,
            memory_bytes: None,
            wrap: self.wrap.clone(),
            sandbox: self.sandbox.clone(),
            environment: self.environment.clone(),
            readable: self.readable.clone(),
            cache: self.cache.clone(),
        }
    }
}

/// What builds and runs a candidate's extensions for a simulated device.
async fn simulated(
    config: &Config,
    search: &Search,
    asked: &Device,
    executable: &Path,
) -> Result<Simulation, MachineError> {
    let device = program::choose(asked).await.map_err(|error| MachineError::Device(error.to_string()))?;
    let toolkit = discovery::find(search).chosen.ok_or_else(|| {
        MachineError::Missing(
            "No nvcc was found, which compiles CUDA texts for the simulator. `stitchcuda toolchain install` gets one."
                .to_owned(),
        )
    })?;
    let builder = Builder::prepare(device, toolkit, Arc::new(config.clone()), None).await;
    let builder = builder.map_err(MachineError::Missing)?;
    Ok(Simulation { builder, executable: executable.to_owned() })
}

/// Where the programs lie that a build may need: what `PATH` names, and the compilers that variables name. Of one that lies in a `bin` outside of
/// the home folder all of its installation is meant, since a compiler finds its own headers beside it.
fn programs(search: &Search) -> Vec<PathBuf> {
    let path = search.environment.get("PATH").map(std::env::split_paths);
    let named = COMPILERS.iter().filter_map(|name| search.environment.get(name)).map(PathBuf::from);
    let folders =
        path.into_iter().flatten().chain(named.filter_map(|program| Some(program.parent()?.to_owned())));
    let home = search.environment.get("HOME").map(PathBuf::from);
    let is_at_home = |folder: &Path| home.as_ref().is_some_and(|home| folder.starts_with(home));
    let installation = |folder: PathBuf| match folder.parent() {
        Some(parent) if folder.ends_with("bin") && parent != Path::new("/") && !is_at_home(&folder) => {
            parent.to_owned()
        }
        _ => folder,
    };
    let mut found: Vec<PathBuf> =
        folders.filter(|folder| folder.is_absolute() && folder.is_dir()).map(installation).collect();
    found.sort();
    found.dedup();
    found
}

/// Variables that name a compiler.
const COMPILERS: &[&str] = &["CC", "CXX", "CUDAHOSTCXX", "NVCC_CCBIN"];

/// The device that was asked for; for `auto` the first GPU, where torch can use it, or else the processor.
async fn choose(asked: &Device, python: &Python) -> Result<Chosen, MachineError> {
    let cpu = || Chosen {
        place: Place::Cpu,
        name: "cpu".to_owned(),
        kind: "cpu".to_owned(),
        l2_bytes: 0,
        driver: None,
    };
    let index = match asked {
        Device::Cpu => return Ok(cpu()),
        Device::Simulator(name) => {
            let name = format!("sim:{}", name.to_lowercase());
            return Ok(Chosen { name: name.clone(), kind: name, ..cpu() });
        }
        Device::Auto => None,
        Device::Cuda(index) => Some(*index),
    };
    let gpus = devices().await;
    let found = gpus.iter().find(|device| index.is_none_or(|index| device.index == index));
    match (found, index) {
        (Some(device), _) if python.cuda.is_some() => Ok(Chosen {
            place: Place::Cuda(device.index),
            name: format!("cuda:{} ({})", device.index, device.name),
            kind: format!("cuda:{}.{}", device.architecture.major, device.architecture.minor),
            l2_bytes: FLUSH * device.l2,
            driver: Some(format!("{}.{}", device.driver.0, device.driver.1)),
        }),
        (_, None) => Ok(cpu()),
        (None, Some(index)) => Err(MachineError::Missing(format!(
            "There is no GPU cuda:{index} on this machine. Take another device, or `--device cpu`."
        ))),
        (Some(_), Some(_)) => Err(MachineError::Missing(format!(
            "The torch of {} was built without CUDA. Install one with it, or name another interpreter: `--python PATH`.",
            python.path.display()
        ))),
    }
}
