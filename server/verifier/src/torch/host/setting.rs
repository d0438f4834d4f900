//! Where and under which limits processes run.

use std::ffi::OsString;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use stitch_toolchain::environment::Environment;
use stitch_toolchain::process::{Finished, Program, Scratch};
use tokio_util::sync::CancellationToken;

use super::python::Python;
use crate::torch::builds::Builds;
use stitch_session::folders::Folders;

/// Where tensors live.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// On the CPU.
    Cpu,
    /// On this GPU, as `CUDA_VISIBLE_DEVICES` of our own environment counts them. The processes see only this one.
    Cuda(u32),
}

/// What a process needs, for whoever puts it into a sandbox.
#[derive(Clone, Debug)]
pub struct Needs {
    /// The interpreter.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Its whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Folders and files that it reads besides the system's.
    pub readable: Vec<PathBuf>,
    /// Where its tensors live: whether it needs a GPU's device files.
    pub place: Place,
    /// How much memory it and its children may take, in bytes.
    pub memory_bytes: Option<u64>,
}

/// A process that runs to its end, or until it is cancelled: what it printed, or why it was ended, in words.
pub type Running = Pin<Box<dyn Future<Output = Result<Finished, String>> + Send>>;

/// Turns needs into a process that may write in the scratch folder alone. It starts when it is first polled, and ends when the token says
/// so; nothing of it is left then. What it could not do is said in words.
pub type Wrap = Arc<dyn Fn(&Needs, &Scratch, CancellationToken) -> Result<Running, String> + Send + Sync>;

/// A process lives as long as its job, whose requests have limits of their own.
pub const LIFE: Duration = Duration::from_secs(7 * 24 * 3600);
/// What is kept of what a zygote itself prints, in bytes. Children print into pipes of their own.
pub const OUTPUT_LIMIT: usize = 256 << 10;

/// No sandbox: the interpreter itself, with the needed environment and no other.
pub fn bare() -> Wrap {
    Arc::new(|needs, scratch, end| {
        let variables = needs.environment.iter().map(|(name, value)| (name.clone(), value.clone()));
        let program = Program::new(&needs.program)
            .args(&needs.arguments)
            .environment(Environment::from_variables(variables))
            .current_dir(scratch.path())
            .scratch(scratch)
            .output_limit(OUTPUT_LIMIT)
            .time_limit(LIFE);
        Ok(Box::pin(async move { program.run(&end).await.map_err(|error| error.to_string()) }))
    })
}

/// How processes are started.
#[derive(Clone)]
pub struct Setting<'a> {
    /// The interpreter, which has torch.
    pub python: &'a Python,
    /// Where tensors live.
    pub place: Place,
    /// Where they may write. One zygote each.
    pub scratch: &'a Scratch,
    /// Where extensions are built, if [`super::Load::build`] names no other place. In a sandbox both must lie in the scratch folder.
    pub build_folder: PathBuf,
    /// Files and folders of the person's that the processes read: of the reference alone, or of the candidate alone.
    pub readable: Vec<PathBuf>,
    /// How long one request may take.
    pub time_limit: Duration,
    /// How much memory a process may take, in bytes, where the sandbox can see to it.
    pub memory_bytes: Option<u64>,
    /// Variables besides the usual: `CUDA_HOME`.
    pub environment: Vec<(OsString, OsString)>,
    /// Puts the process into a sandbox.
    pub wrap: Wrap,
    /// Whether children are forks of the process. Without, it becomes the only child itself, for programs that must see each start of a process.
    pub forks: bool,
}

impl<'a> Setting<'a> {
    /// The CPU, no sandbox, ten minutes a request, extensions built in the scratch folder.
    pub fn new(python: &'a Python, scratch: &'a Scratch) -> Self {
        Self {
            python,
            place: Place::Cpu,
            scratch,
            build_folder: scratch.path().join("build"),
            readable: Vec::new(),
            time_limit: Duration::from_secs(600),
            memory_bytes: None,
            environment: Vec::new(),
            wrap: bare(),
            forks: true,
        }
    }
}

/// Variables of our own that a process inherits: where programs and libraries lie, how many threads there are, how text is written.
/// By whole name, or by how it begins where it ends in `*`.
const INHERITED: &[&str] = &[
    "PATH",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "LD_LIBRARY_PATH",
    "LIBRARY_PATH",
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "CC",
    "CXX",
    "CUDA_HOME",
    "CUDA_PATH",
    "CUDA_DEVICE_ORDER",
    "CUDACXX",
    "CUDAHOSTCXX",
    "NVCC_CCBIN",
    "NVCC_PREPEND_FLAGS",
    "NVCC_APPEND_FLAGS",
    "NVIDIA_*",
    "TORCH_CUDA_ARCH_LIST",
    "MAX_JOBS",
    "OMP_*",
    "MKL_*",
    "KMP_*",
    "OPENBLAS_NUM_THREADS",
    "CONDA_PREFIX",
    "VIRTUAL_ENV",
    "PYTHONPATH",
    "PYTHONHOME",
    "TRITON_PTXAS_PATH",
];

impl Setting<'_> {
    /// What builds the extensions of its processes: in their environment, with sandboxes of its own. Headers that were compiled are kept in
    /// the user's cache folder.
    pub fn builds(&self, cache: stitch_session::cache::Cache, cancel: &CancellationToken) -> Builds {
        let folder = Folders::find().cache.unwrap_or_else(std::env::temp_dir).join("torch").join("builds");
        let mut readable = vec![self.python.folder.clone()];
        readable.extend(self.python.prefixes.iter().chain(&self.readable).cloned());
        let variables = self.variables(&Environment::of_this_process());
        Builds::new(self.wrap.clone(), variables, readable, folder, cache, cancel.clone())
    }

    /// The environment of a process, without what belongs to the channel.
    pub(super) fn variables(&self, own: &Environment) -> Vec<(OsString, OsString)> {
        let is_inherited = |name: &str| {
            INHERITED.iter().any(|known| match known.strip_suffix('*') {
                Some(beginning) => name.starts_with(beginning),
                None => name == *known,
            })
        };
        let mut variables: Vec<(OsString, OsString)> = own
            .variables()
            .filter(|(name, _)| name.to_str().is_some_and(is_inherited))
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        let scratch = self.scratch.path();
        let visible = match self.place {
            Place::Cpu => String::new(),
            Place::Cuda(index) => visible(own, index),
        };
        let build = &self.build_folder;
        let mut set = |name: &str, value: OsString| {
            variables.retain(|(known, _)| known != name);
            variables.push((name.into(), value));
        };
        set("HOME", scratch.into());
        set("TMPDIR", scratch.into());
        set("CUDA_VISIBLE_DEVICES", visible.into());
        set("PYTHONDONTWRITEBYTECODE", "1".into());
        set("PYTHONUNBUFFERED", "1".into());
        set("PYTHONIOENCODING", "utf-8:backslashreplace".into());
        if let Some(base) = &self.python.user_base {
            set("PYTHONUSERBASE", base.into());
        }
        set("TORCH_EXTENSIONS_DIR", build.into());
        set("TORCHINDUCTOR_CACHE_DIR", build.join("inductor").into());
        set("TRITON_CACHE_DIR", build.join("triton").into());
        set("CUDA_CACHE_PATH", build.join("driver").into());
        for (name, value) in &self.environment {
            variables.retain(|(known, _)| known != name);
            variables.push((name.clone(), value.clone()));
        }
        variables
    }
}

/// What `CUDA_VISIBLE_DEVICES` must be for the process to see only the GPU that we count as `index`.
fn visible(own: &Environment, index: u32) -> String {
    let listed = own.get("CUDA_VISIBLE_DEVICES").and_then(|list| list.to_str());
    let entry = listed.and_then(|list| list.split(',').nth(index as usize)).map(str::trim);
    entry.filter(|entry| !entry.is_empty()).map_or_else(|| index.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_is_counted_as_our_own_environment_counts_it() {
        let with = |list: &str| Environment::from_variables([("CUDA_VISIBLE_DEVICES", list)]);
        assert_eq!(visible(&with("3,5"), 1), "5");
        assert_eq!(visible(&with("GPU-abc, GPU-def"), 1), "GPU-def");
        assert_eq!(visible(&with(""), 2), "2");
        assert_eq!(visible(&with("3"), 2), "2");
    }
}
