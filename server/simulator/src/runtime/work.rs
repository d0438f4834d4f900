//! Work of a stream: what is issued, or becomes a node of a graph while the stream is captured.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::context::Context;
use super::copies::{self, CopyWork, FillWork};
use super::engine::Stopped;
use super::errors::Code;
use super::events::Event;
use super::modules::Function;
use super::processor::Task;
use super::protocol::Answer;
use crate::machine::{Failed, FaultKind};

/// One piece of work.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Work {
    Kernel(Box<KernelWork>),
    Copy(Box<CopyWork>),
    Fill(Box<FillWork>),
    Host { function: u64, data: u64, callback: Option<u64> },
    Child(u64),
    Empty,
    Wait(u64),
    Record(u64),
    Allocate(u64),
    Free(u64),
}

/// A launch, as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KernelWork {
    pub function: u64,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub dynamic_shared: u64,
    pub cooperative: bool,
    pub cluster: [u32; 3],
    pub parameters: Vec<u8>,
}

impl KernelWork {
    /// Of all blocks.
    pub(super) fn threads(&self) -> u64 {
        self.grid.iter().chain(&self.block).fold(1, |all, &size| u64::saturating_mul(all, size.into()))
    }
}

impl Work {
    /// Its `cudaGraphNodeType`.
    pub(super) fn node_type(&self) -> u64 {
        match self {
            Self::Kernel(_) => 0,
            Self::Copy(_) => 1,
            Self::Fill(_) => 2,
            Self::Host { .. } => 3,
            Self::Child(_) => 4,
            Self::Empty => 5,
            Self::Wait(_) => 6,
            Self::Record(_) => 7,
            Self::Allocate(_) => 10,
            Self::Free(_) => 11,
        }
    }
}

impl Context {
    /// Issues a stream's work, or adds it to the graph that the stream is captured into.
    pub(super) fn submit(&mut self, stream: u64, work: Work) -> Result<Answer, Code> {
        if self.capture_work(stream, &work)?.is_none() {
            self.issue_work(stream, work)?;
        }
        Ok(Answer::done())
    }

    /// Issues work, whose stream exists.
    pub(super) fn issue_work(&mut self, stream: u64, work: Work) -> Result<(), Code> {
        let (may_wait, task) = match work {
            Work::Kernel(work) => {
                let shared = Arc::clone(&self.shared);
                let Function { image, name, .. } = self.modules.function(work.function)?.clone();
                let linked = self.modules.linked(image, &shared)?;
                (linked.may_wait(&name), Task::Kernel { linked, name, work })
            }
            Work::Copy(copy) => (false, Task::Copy(copy)),
            Work::Fill(fill) => (false, Task::Fill(fill)),
            Work::Host { function, data, callback } => (true, Task::Host { function, data, callback }),
            Work::Record(event) => {
                let time = Arc::new(AtomicU64::new(0));
                let number = self.issue(stream, false, Task::Record(Arc::clone(&time)));
                if let Some(event) = self.events.get_mut(&event) {
                    event.record(number, time);
                }
                return Ok(());
            }
            Work::Wait(event) => {
                let recorded = self.events.get(&event).and_then(Event::recorded);
                self.stream(stream)?.tail.extend(recorded);
                return Ok(());
            }
            Work::Child(_) | Work::Empty | Work::Allocate(_) | Work::Free(_) => return Ok(()),
        };
        self.issue(stream, may_wait, task);
        Ok(())
    }

    /// Issues work in order.
    pub(super) fn issue_all(&mut self, stream: u64, list: Vec<Work>) -> Result<Answer, Code> {
        for work in &list {
            copies::check(self.memory(), work)?;
        }
        for work in list {
            self.issue_work(stream, work)?;
        }
        Ok(Answer::done())
    }
}

/// The error that a device gives for it.
pub(super) fn code_of(kind: FaultKind) -> Code {
    match kind {
        // A deep recursion runs out of its stack; nonsense that is called is no address of code.
        FaultKind::IllegalAddress | FaultKind::StackOverflow | FaultKind::InvalidPc => Code::ILLEGAL_ADDRESS,
        FaultKind::Misaligned => Code::MISALIGNED,
        FaultKind::Assert => Code::ASSERT,
        // A device would hang: this is what a display's watchdog makes of it.
        FaultKind::BarrierDeadlock => Code::LAUNCH_TIMEOUT,
        FaultKind::Unsupported => Code::NOT_SUPPORTED,
        FaultKind::InvalidLaunch => Code::INVALID_CONFIGURATION,
        FaultKind::Trap | FaultKind::Cancelled => Code::LAUNCH_FAILURE,
    }
}

impl Stopped {
    /// What the runtime writes to standard error: a line for each assertion that failed.
    #[must_use]
    pub fn complaint(&self) -> String {
        let line = |one: &Failed| {
            let (place, rest) = one.message.split_once(": assertion `")?;
            let ([a, b, c], [x, y, z]) = (one.block, one.thread);
            let condition = rest.strip_suffix("` failed")?;
            Some(format!(
                "{place}: block: [{a},{b},{c}], thread: [{x},{y},{z}] Assertion `{condition}` failed.\n"
            ))
        };
        self.failed.iter().filter_map(line).collect()
    }

    /// The name of the error that the program sees.
    #[must_use]
    pub fn error_name(&self) -> &'static str {
        code_of(self.kind).name()
    }
}
