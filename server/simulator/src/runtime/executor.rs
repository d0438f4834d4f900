//! The engine that runs kernels here: [`code`](crate::code) links and lowers, [`machine`](crate::machine) executes.

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::engine::{Done, Engine, KernelShape, Launch, Linked, Stopped};
use crate::checks::Checks;
use crate::code::{self, Kernel, Program};
use crate::device::{Device, MAX_THREADS, REGISTERS, WARP};
use crate::machine::{self, Fault, Host, Limits, Options};
use crate::memory::Memory;
use crate::ptx;
use crate::ptx::ast::{Space, Variable};

/// Fewest registers that a compiler gives to a thread, about.
const FEWEST_REGISTERS: u32 = 16;

/// Runs kernels on the CPU.
#[derive(Debug, Clone, Copy)]
pub struct Executor {
    options: Options,
    limits: Limits,
}

impl Executor {
    /// As `device` would, with counters or without; `sample` simulates that share of the blocks only (above 0, up to 1).
    #[must_use]
    pub fn new(device: &Device, counters: bool, sample: Option<f64>) -> Self {
        let workers = std::thread::available_parallelism().map_or(1, NonZero::get);
        let limits = Limits {
            shared: device.limits.shared_optin,
            multiprocessors: device.multiprocessors,
            warps: device.limits.threads / WARP,
        };
        let options =
            Options { workers, counters, sample, until: None, checks: Checks::default(), caches: None };
        Self { options, limits }
    }

    /// The same, with the caches of `device` modelled where there are counters. Kernels then run on one thread.
    #[must_use]
    pub fn modelling(mut self, device: &'static Device) -> Self {
        self.options.caches = Some(device);
        self
    }

    /// The same, looking for these defects; [`Executor::new`] looks for all.
    #[must_use]
    pub fn checking(mut self, checks: Checks) -> Self {
        self.options.checks = checks;
        self
    }
}

impl Executor {
    /// The same for a program that begins now: all blocks for so long, and then a sample of each launch's, for counters alone.
    #[must_use]
    pub fn within(mut self, budget: Option<Duration>) -> Self {
        self.options.until = budget.and_then(|budget| Instant::now().checked_add(budget));
        self
    }
}

impl Engine for Executor {
    fn checks(&self) -> Checks {
        self.options.checks
    }

    fn link(&self, texts: &[String], memory: &Memory) -> Result<Arc<dyn Linked>, String> {
        let mut modules = Vec::with_capacity(texts.len());
        for text in texts {
            let module = ptx::parse(text)
                .map_err(|error| format!("line {} of its PTX: {}", error.line, error.message))?;
            modules.push(module);
        }
        // `sm_90a` counts as 90.
        let target = modules.first().map_or("", |module| module.target.as_str()).trim_start_matches("sm_");
        let arch = target.trim_end_matches(char::is_alphabetic).parse().unwrap_or(0);
        let variables = modules.iter().flat_map(|module| &module.variables);
        let constant = variables
            .filter(|one| one.space == Space::Const)
            .map(variable_bytes)
            .fold(0, u64::saturating_add);
        let program = Program::link(modules, memory).map_err(|error| error.to_string())?.on(self.limits);
        Ok(Arc::new(Image { program, arch, constant, options: self.options }))
    }
}

/// Bytes of a variable.
fn variable_bytes(variable: &Variable) -> u64 {
    let elements = variable.dimensions.iter().fold(1, |all: u64, n| all.saturating_mul(*n));
    elements.saturating_mul(u64::from(variable.vector) * u64::from(code::size(variable.ty)))
}

struct Image {
    program: Program,
    arch: u32,
    constant: u64,
    options: Options,
}

/// Output of kernels.
struct Output<'a>(&'a (dyn Fn(&[u8]) + Sync + Send));

impl Host for Output<'_> {
    fn print(&self, bytes: &[u8]) {
        (self.0)(bytes);
    }
}

impl Linked for Image {
    fn kernel(&self, name: &str) -> Option<KernelShape> {
        self.program.kernel(name).map(|kernel| self.shape(kernel))
    }

    fn may_wait(&self, name: &str) -> bool {
        let code = self.program.kernel(name).map(|kernel| kernel.code(&self.program));
        code.is_some_and(|code| code.is_ok_and(|code| code.ordered))
    }

    fn symbol(&self, name: &str) -> Option<(u64, u64)> {
        self.program.symbol(name).map(|symbol| (symbol.address, symbol.size))
    }

    fn run(
        &self,
        launch: &Launch<'_>,
        memory: &Memory,
        print: &(dyn Fn(&[u8]) + Sync + Send),
        cancel: &AtomicBool,
    ) -> Done {
        let asked = machine::Launch {
            kernel: launch.kernel,
            grid: launch.grid,
            block: launch.block,
            dynamic_shared: launch.dynamic_shared,
            parameters: launch.parameters,
            cooperative: launch.cooperative,
            cluster: launch.cluster,
        };
        let ran = machine::run_as_far_as_it_goes(
            &self.program,
            &asked,
            memory,
            &Output(print),
            &self.options,
            cancel,
        );
        Done {
            counted: ran.counted,
            defects: ran.defects,
            stopped: ran.fault.map(|fault| Box::new(stopped(fault))),
        }
    }
}

impl Image {
    fn shape(&self, kernel: &Kernel) -> KernelShape {
        let resources = kernel.resources(&self.program);
        let offsets = kernel.parameters.iter().map(|one| (u64::from(one.offset), u64::from(one.size)));
        let parameters: Vec<(u64, u64)> = offsets.collect();
        let threads = kernel.required_block.map_or(kernel.max_threads, |block| Some(block.iter().product()));
        // What ptxas allots always lets the largest block run that the kernel may have: it spills instead.
        let most = REGISTERS / threads.unwrap_or(MAX_THREADS).clamp(WARP, MAX_THREADS);
        KernelShape {
            parameter_bytes: parameters.last().map_or(0, |(offset, size)| offset + size),
            parameters,
            shared: resources.shared_bytes.into(),
            local: resources.local_bytes.into(),
            constant: self.constant,
            registers: resources.registers.max(FEWEST_REGISTERS).min(most.min(crate::device::MAX_REGISTERS)),
            max_threads: threads,
            arch: self.arch,
        }
    }
}

fn stopped(fault: Fault) -> Stopped {
    Stopped {
        kind: fault.kind,
        kernel: fault.kernel,
        block: fault.block,
        thread: fault.thread,
        place: fault.place.map(|place| (place.file, place.line)),
        ptx_line: fault.ptx_line,
        address: fault.address,
        message: fault.message,
        failed: fault.failed,
    }
}
