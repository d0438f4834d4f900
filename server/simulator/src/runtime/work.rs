//! Work of a stream: what is done at once, or becomes a node of a graph while the stream is captured.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};

use super::context::Context;
use super::copies::{self, CopyWork, FillWork};
use super::engine::{Launch, Stopped};
use super::errors::Code;
use super::estimate;
use super::protocol::{Action, Answer};
use crate::machine::FaultKind;

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
    /// Does a stream's work, or adds it to the graph that the stream is captured into.
    pub(super) fn submit(&mut self, stream: u64, work: Work) -> Result<Answer, Code> {
        if self.capture_work(stream, &work)?.is_some() {
            return Ok(Answer::done());
        }
        let actions = self.perform(&work)?;
        Ok(Answer::done().with(actions))
    }

    /// Does one piece of work; what the stub has to do for it is returned.
    pub(super) fn perform(&mut self, work: &Work) -> Result<Vec<Action>, Code> {
        match work {
            Work::Kernel(kernel) => {
                self.run_kernel(kernel);
                Ok(Vec::new())
            }
            Work::Copy(copy) => copies::perform_copy(self, copy),
            Work::Fill(fill) => copies::perform_fill(self, fill).map(|()| Vec::new()),
            Work::Host { function, data, callback } => {
                // After a fault, callbacks are told of it, and other functions are not called.
                let error = self.sticky.or(self.pending);
                if error.is_some() && callback.is_none() {
                    return Ok(Vec::new());
                }
                let callback = callback.map(|stream| (stream, error.map_or(0, |Code(code)| code)));
                Ok(vec![Action::Call { function: *function, data: *data, callback }])
            }
            Work::Record(event) => {
                let clock = self.clock;
                if let Some(event) = self.events.get_mut(event) {
                    event.record(clock);
                }
                Ok(Vec::new())
            }
            Work::Child(_) | Work::Empty | Work::Wait(_) | Work::Allocate(_) | Work::Free(_) => {
                Ok(Vec::new())
            }
        }
    }

    /// Does work in order. Where the stub has a part in it that later work may depend on, it is sent off to do that first.
    pub(super) fn perform_all(&mut self, mut queue: VecDeque<Work>) -> Result<Answer, Code> {
        while let Some(work) = queue.pop_front() {
            let actions = self.perform(&work)?;
            if !actions.is_empty() {
                let mut answer = Answer::done().with(actions);
                if !queue.is_empty() {
                    answer.more = self.handle();
                    self.unfinished.insert(answer.more, queue);
                }
                return Ok(answer);
            }
        }
        Ok(Answer::done())
    }

    fn run_kernel(&mut self, work: &KernelWork) {
        if self.pending.is_some() {
            return; // The device is lost; the program has not asked yet.
        }
        let shared = Arc::clone(&self.shared);
        let Ok(function) = self.modules.function(work.function).cloned() else { return };
        let Ok(linked) = self.modules.linked(function.image, &shared) else { return };
        shared.watch.before_use(&shared.memory);
        let launch = Launch {
            kernel: &function.name,
            grid: work.grid,
            block: work.block,
            dynamic_shared: u32::try_from(work.dynamic_shared).unwrap_or(u32::MAX),
            parameters: &work.parameters,
            cooperative: work.cooperative,
            cluster: work.cluster.map(|size| size.max(1)),
        };
        let printed = &self.printed;
        let print =
            |bytes: &[u8]| printed.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        match linked.run(&launch, &shared.memory, &print, &shared.cancel) {
            Ok(counted) => {
                let time = estimate::kernel(shared.device, &counted);
                self.clock += time;
                shared.report().launched(&launch, time, counted);
            }
            Err(stopped) => {
                self.pending = Some(code_of(stopped.kind));
                if let Some(text) = stopped.complaint() {
                    self.complaints.push_str(&text);
                }
                shared.report().stopped(&launch, *stopped);
            }
        }
    }
}

/// The error that a device gives for it.
fn code_of(kind: FaultKind) -> Code {
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
    /// What the runtime writes to standard error: of failed assertions.
    #[must_use]
    pub fn complaint(&self) -> Option<String> {
        let (place, rest) = self.message.split_once(": assertion `")?;
        let condition = rest.strip_suffix("` failed").filter(|_| self.kind == FaultKind::Assert)?;
        let ([a, b, c], [x, y, z]) = (self.block, self.thread);
        Some(format!(
            "{place}: block: [{a},{b},{c}], thread: [{x},{y},{z}] Assertion `{condition}` failed.\n"
        ))
    }

    /// The name of the error that the program sees.
    #[must_use]
    pub fn error_name(&self) -> &'static str {
        code_of(self.kind).name()
    }
}
