//! The seam between the runtime and what executes kernels: PTX is linked into a program, and kernels of it are run.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::Serialize;

use crate::checks::{Checks, Defect};
use crate::counters::LaunchCounters;
use crate::machine::{Failed, FaultKind};
use crate::memory::Memory;

/// Links PTX.
pub trait Engine: Send + Sync {
    /// What it looks for while kernels run.
    fn checks(&self) -> Checks {
        Checks::None
    }

    /// Links the texts of one image, and places its variables in `memory`.
    ///
    /// # Errors
    /// Where a text can't be read, or a symbol is missing: what a person has to know of it.
    fn link(&self, texts: &[String], memory: &Memory) -> Result<Arc<dyn Linked>, String>;
}

/// A linked image.
pub trait Linked: Send + Sync {
    /// What is known of a kernel, by its mangled name.
    fn kernel(&self, name: &str) -> Option<KernelShape>;

    /// Whether a kernel reads what others may write while it runs, so that it may wait for them.
    fn may_wait(&self, name: &str) -> bool;

    /// Address and size in bytes of a variable, by its mangled name.
    fn symbol(&self, name: &str) -> Option<(u64, u64)>;

    /// Runs a kernel. Device `printf` goes to `print`.
    fn run(
        &self,
        launch: &Launch<'_>,
        memory: &Memory,
        print: &(dyn Fn(&[u8]) + Sync + Send),
        cancel: &AtomicBool,
    ) -> Done;
}

/// What came of a launch.
#[derive(Debug, Default)]
pub struct Done {
    /// What was counted.
    pub counted: LaunchCounters,
    /// What is wrong with it.
    pub defects: Vec<Defect>,
    /// Why it stopped where it did not come to its end: it can't be run, faults, or is cancelled.
    pub stopped: Option<Box<Stopped>>,
}

/// What the runtime has to know of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelShape {
    /// Offset and size in bytes of each parameter.
    pub parameters: Vec<(u64, u64)>,
    /// Bytes of all parameters.
    pub parameter_bytes: u64,
    /// Static shared memory in bytes.
    pub shared: u64,
    /// Local memory of a thread in bytes.
    pub local: u64,
    /// Constant variables of its image in bytes.
    pub constant: u64,
    /// Registers of a thread: an estimate, never so high that a launch would be refused for it.
    pub registers: u32,
    /// Most threads of a block, where the kernel says so (`__launch_bounds__`).
    pub max_threads: Option<u32>,
    /// `.target` of its PTX: 90.
    pub arch: u32,
}

/// A launch.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    /// Mangled name of the kernel.
    pub kernel: &'a str,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub dynamic_shared: u32,
    /// The parameters as they lie in parameter space.
    pub parameters: &'a [u8],
    /// All blocks are resident together, and may wait for each other.
    pub cooperative: bool,
    /// Blocks of a cluster.
    pub cluster: [u32; 3],
}

/// Why a kernel stopped before its end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stopped {
    /// The kind.
    pub kind: FaultKind,
    /// Mangled name of the kernel.
    pub kernel: String,
    /// Block.
    pub block: [u32; 3],
    /// Thread.
    pub thread: [u32; 3],
    /// Source file and line, where known.
    pub place: Option<(String, u32)>,
    /// Line of the PTX.
    pub ptx_line: u32,
    /// The address that was accessed.
    pub address: Option<u64>,
    /// What happened, in a sentence.
    pub message: String,
    /// Assertions that failed.
    #[serde(skip)]
    pub failed: Vec<Failed>,
}
