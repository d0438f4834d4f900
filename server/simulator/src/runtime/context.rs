//! What the runtime knows of one program: the state behind every call.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::advice::Advice;
use super::calls;
use super::engine::Engine;
use super::errors::Code;
use super::events::Event;
use super::graphs::Graphs;
use super::limits::{self, Limits};
use super::modules::Modules;
use super::ownership::Ownership;
use super::pools::Pools;
use super::processor::{Processor, Task};
use super::protocol::{Answer, Call, Operation, Rows};
use super::queue::Wait;
use super::report::Report;
use super::streams::Streams;
use super::watch::Watcher;
use crate::device::Device;
use crate::memory::Memory;

/// How much output of kernels is kept until the program synchronises, in bytes: the default of `cudaLimitPrintfFifoSize`.
const PRINT_BUFFER: usize = 1 << 20;

/// A run: what outlives a connection.
pub(super) struct Shared {
    pub device: &'static Device,
    pub memory: Memory,
    pub engine: Box<dyn Engine>,
    pub cancel: AtomicBool,
    pub report: Mutex<Report>,
    pub watch: Watcher,
}

impl Shared {
    pub(super) fn report(&self) -> MutexGuard<'_, Report> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The state of one process that uses the device.
pub(super) struct Context {
    pub shared: Arc<Shared>,
    /// 12 or 13: which runtime the program was built for.
    pub version: u32,
    pub modules: Modules,
    pub ownership: Ownership,
    pub advice: Advice,
    pub pools: Pools,
    pub streams: Streams,
    /// In the call that is being answered, 0 means the per-thread default stream.
    pub per_thread: bool,
    pub events: HashMap<u64, Event>,
    pub graphs: Graphs,
    pub limits: Limits,
    pub flags: u32,
    /// What does the work.
    pub processor: Arc<Processor>,
    /// Launches return when their kernel has ended: `CUDA_LAUNCH_BLOCKING=1`.
    pub blocking: bool,
    /// A fault that every call returns from now on.
    pub sticky: Option<Code>,
    /// A copy to the device whose bytes the program writes after the last answer.
    pub announced: Option<Rows>,
    /// Calls that go on when the program comes back.
    tickets: HashMap<u64, Ticket>,
    /// What the call that is being answered has to wait for.
    unready: Option<Wait>,
    /// It has waited for it.
    resumed: bool,
    handles: u64,
}

/// How a call goes on.
pub(super) enum Ticket {
    /// Answered anew, once something is over.
    Again { call: Call, wait: Wait },
    /// Done, once something is over.
    Blocked { wait: Wait },
    /// The program has put bytes aside for a copy.
    Staged { stream: u64, rows: Rows, aside: u64 },
}

/// How long a call is held before the program is told to sleep: other threads of it can't call meanwhile.
const BRIEF: Duration = Duration::from_millis(2);

/// Work that a program may be ahead of its device; then launches wait. As far as an H200 lets it.
const MOST_AHEAD: u64 = 1024;

impl Context {
    pub(super) fn new(processor: Arc<Processor>, version: u32, blocking: bool) -> Self {
        let shared = Arc::clone(&processor.shared);
        shared.memory.limit_heap(limits::DEFAULT_HEAP);
        Self {
            limits: Limits::new(shared.device),
            pools: Pools::new(),
            shared,
            version,
            modules: Modules::default(),
            ownership: Ownership::default(),
            advice: Advice::default(),
            streams: Streams::default(),
            per_thread: false,
            events: HashMap::new(),
            graphs: Graphs::default(),
            flags: limits::MAP_HOST,
            processor,
            blocking,
            sticky: None,
            announced: None,
            tickets: HashMap::new(),
            unready: None,
            resumed: false,
            handles: 0x1000,
        }
    }

    pub(super) fn device(&self) -> &'static Device {
        self.shared.device
    }

    pub(super) fn memory(&self) -> &Memory {
        &self.shared.memory
    }

    /// A handle that was never used. Not a small number, and a multiple of 16, as pointers are.
    pub(super) fn handle(&mut self) -> u64 {
        self.handles += 16;
        self.handles
    }

    /// Answers a call, with what kernels printed where it is time to write that.
    pub(super) fn answer(&mut self, call: &Call) -> (Result<Answer, Code>, Vec<u8>) {
        // The program has done what the last answer said.
        if let Some(rows) = self.announced.take() {
            self.shared.watch.to_device(&rows);
        }
        if call.operation == Operation::Continue {
            return self.go_on(call);
        }
        self.resumed = false;
        self.try_to_answer(call)
    }

    fn try_to_answer(&mut self, call: &Call) -> (Result<Answer, Code>, Vec<u8>) {
        self.per_thread = call.per_thread;
        self.unready = None;
        let result = self.gate(call.operation).and_then(|()| calls::answer(self, call));
        if let Some(wait) = self.unready.take() {
            return (Ok(self.hold(Ticket::Again { call: call.clone(), wait })), Vec::new());
        }
        let held = result.as_ref().is_ok_and(|answer| answer.more != 0);
        let flush = !held && self.synchronises(call) || self.processor.printed() > PRINT_BUFFER;
        (result, if flush { self.processor.take_printed() } else { Vec::new() })
    }

    /// The program comes back for the rest of a call.
    fn go_on(&mut self, call: &Call) -> (Result<Answer, Code>, Vec<u8>) {
        let Some(ticket) = self.tickets.remove(&call.argument(0)) else {
            return (Err(Code::INVALID_VALUE), Vec::new());
        };
        match ticket {
            Ticket::Again { ref wait, .. } | Ticket::Blocked { ref wait }
                if !self.processor.queue.wait(wait, BRIEF) =>
            {
                (Ok(self.hold(ticket)), Vec::new())
            }
            Ticket::Again { call, .. } => {
                self.resumed = true;
                self.try_to_answer(&call)
            }
            Ticket::Blocked { .. } => {
                (self.check_lost().map(|()| Answer::done()), self.processor.take_printed())
            }
            Ticket::Staged { stream, rows, aside } => {
                self.issue(stream, false, Task::Staged { rows: Box::new(rows), aside });
                (Ok(Answer::done()), Vec::new())
            }
        }
    }

    /// Keeps a call for when the program comes back.
    pub(super) fn ticket(&mut self, ticket: Ticket) -> u64 {
        let number = self.handle();
        self.tickets.insert(number, ticket);
        number
    }

    /// Sends the program to sleep until the bell rings, whose count it is told.
    fn hold(&mut self, ticket: Ticket) -> Answer {
        let mut count = self.memory().bell().count();
        if let Ticket::Again { wait, .. } | Ticket::Blocked { wait } = &ticket
            && !self.processor.queue.want(wait)
        {
            // It is over by now: with another count, nobody sleeps.
            count = count.wrapping_sub(1);
        }
        let more = self.ticket(ticket);
        Answer { more, ..Answer::results([u64::from(count)]) }
    }

    /// Whether the call that is being answered has waited already.
    pub(super) fn has_waited(&self) -> bool {
        self.resumed
    }

    /// Goes on once something is over; until then, the call is put off.
    fn put_off(&mut self, wait: &Wait) -> Result<(), Code> {
        if self.resumed || self.processor.queue.wait(wait, BRIEF) {
            return Ok(());
        }
        self.unready = Some(wait.clone());
        Err(Code::NOT_READY)
    }

    /// Waits for work, and returns the fault that it may have ended with.
    pub(super) fn settle(&mut self, wait: &Wait) -> Result<(), Code> {
        self.put_off(wait)?;
        self.check_lost()
    }

    /// Waits for all work.
    pub(super) fn settle_all(&mut self) -> Result<(), Code> {
        let all = Wait::Until(self.processor.queue.last());
        self.settle(&all)
    }

    /// Waits for all work, however it ends.
    pub(super) fn idle(&mut self) -> Result<(), Code> {
        let all = Wait::Until(self.processor.queue.last());
        self.put_off(&all)
    }

    /// Lets the program be so far ahead, and no further.
    pub(super) fn keep_short(&mut self) -> Result<(), Code> {
        let last = self.processor.queue.last();
        if last < MOST_AHEAD { Ok(()) } else { self.put_off(&Wait::Until(last - MOST_AHEAD)) }
    }

    /// After a launch: waits for it, if the program asked for that.
    pub(super) fn block_if_asked(&mut self, stream: u64) -> Result<Answer, Code> {
        if !self.blocking {
            return Ok(Answer::done());
        }
        let wait = self.before(stream);
        if self.processor.queue.wait(&wait, BRIEF) {
            return self.check_lost().map(|()| Answer::done());
        }
        Ok(self.hold(Ticket::Blocked { wait }))
    }

    /// Returns a fault that the program has not been told yet.
    pub(super) fn check_lost(&mut self) -> Result<(), Code> {
        match self.processor.lost() {
            Some(code) => {
                self.sticky = Some(code);
                Err(code)
            }
            None => Ok(()),
        }
    }

    /// Faults come late, as on a device: a launch succeeds, and the next call that waits for it, or needs the device,
    /// returns the error. From then on every call does.
    fn gate(&mut self, operation: Operation) -> Result<(), Code> {
        use Operation as O;
        if matches!(
            operation,
            O::Image | O::Function | O::Variable | O::Missing | O::Profiler | O::DeviceReset
        ) {
            return Ok(());
        }
        // What the host alone knows.
        let about = matches!(
            operation,
            O::DeviceProperties
                | O::DeviceAttribute
                | O::DeviceGetFlags
                | O::PointerAttributes
                | O::GraphDestroy
                | O::GraphExecDestroy
        );
        if about || operation == O::DeviceCheck && self.sticky != Some(Code::DEVICES_UNAVAILABLE) {
            return Ok(());
        }
        if let Some(code) = self.sticky {
            return Err(code);
        }
        let queued = matches!(
            operation,
            O::Parameters
                | O::Launch
                | O::HostFunction
                | O::FunctionCheck
                | O::Continue
                | O::EventRecord
                | O::StreamWait
        );
        if queued { Ok(()) } else { self.check_lost() }
    }

    /// Forgets everything but what the program registered: `cudaDeviceReset`.
    pub(super) fn reset(&mut self) -> Vec<super::protocol::Action> {
        let lost = self.sticky.or(self.processor.lost()).is_some();
        let actions = self.ownership.free_all(&self.shared.memory);
        let modules = std::mem::take(&mut self.modules).unlinked();
        let (version, handles, blocking) = (self.version, self.handles, self.blocking);
        self.processor.restore();
        let fresh = Self::new(Arc::clone(&self.processor), version, blocking);
        *self = Self { modules, handles, ..fresh };
        if lost {
            // A process whose kernel faulted gets no device again.
            self.sticky = Some(Code::DEVICES_UNAVAILABLE);
        }
        actions
    }

    /// What a launch that is out of bounds returns. CUDA 12 looks itself; CUDA 13 hands it to the driver, whose error it is.
    pub(super) fn out_of_bounds(&self) -> Code {
        if self.version >= 13 { Code::INVALID_VALUE } else { Code::INVALID_CONFIGURATION }
    }

    /// Whether any captures forbid calls that could wait for the device.
    pub(super) fn check_unsafe(&mut self, call: &Call) -> Result<(), Code> {
        let strict: HashSet<u64> = self.streams.strict_captures(call.thread);
        if strict.is_empty() {
            return Ok(());
        }
        self.streams.invalidate(&strict);
        Err(Code::CAPTURE_UNSUPPORTED)
    }

    /// Whether a call waits for the device: then output of kernels is written.
    fn synchronises(&self, call: &Call) -> bool {
        use Operation as O;
        match call.operation {
            O::DeviceSynchronize | O::StreamSynchronize | O::EventSynchronize | O::DeviceReset | O::Free => {
                true
            }
            O::StreamQuery | O::EventQuery => true,
            O::Launch => self.blocking,
            O::Copy => call.argument(11) == 0,
            _ => false,
        }
    }
}
