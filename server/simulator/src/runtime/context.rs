//! What the runtime knows of one program: the state behind every call.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::calls;
use super::engine::Engine;
use super::errors::Code;
use super::events::Event;
use super::graphs::Graphs;
use super::limits::{self, Limits};
use super::modules::Modules;
use super::ownership::Ownership;
use super::pools::Pools;
use super::protocol::{Answer, Call, Operation};
use super::report::Report;
use super::streams::Streams;
use super::watch::Watcher;
use super::work::Work;
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
    pub pools: Pools,
    pub streams: Streams,
    /// In the call that is being answered, 0 means the per-thread default stream.
    pub per_thread: bool,
    pub events: HashMap<u64, Event>,
    pub graphs: Graphs,
    pub limits: Limits,
    pub flags: u32,
    /// Estimated time on the device, in nanoseconds.
    pub clock: u64,
    /// What kernels printed since the program last synchronised.
    pub printed: Mutex<Vec<u8>>,
    /// What belongs on standard error: failed assertions.
    pub complaints: String,
    /// A fault that the program has not been told yet.
    pub pending: Option<Code>,
    /// A fault that every call returns from now on.
    pub sticky: Option<Code>,
    /// Work of graphs that goes on after the stub did its part.
    pub unfinished: HashMap<u64, VecDeque<Work>>,
    handles: u64,
}

impl Context {
    pub(super) fn new(shared: Arc<Shared>, version: u32) -> Self {
        shared.memory.limit_heap(limits::DEFAULT_HEAP);
        Self {
            limits: Limits::new(shared.device),
            pools: Pools::new(),
            shared,
            version,
            modules: Modules::default(),
            ownership: Ownership::default(),
            streams: Streams::default(),
            per_thread: false,
            events: HashMap::new(),
            graphs: Graphs::default(),
            flags: limits::MAP_HOST,
            clock: 0,
            printed: Mutex::new(Vec::new()),
            complaints: String::new(),
            pending: None,
            sticky: None,
            unfinished: HashMap::new(),
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

    /// Answers a call. The flag is set where the stub has to write out what kernels printed.
    pub(super) fn answer(&mut self, call: &Call) -> (Result<Answer, Code>, Vec<u8>) {
        self.per_thread = call.per_thread;
        let result = self.gate(call.operation).and_then(|()| calls::answer(self, call));
        let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        let flush = synchronises(call) || printed.len() > PRINT_BUFFER;
        let text = if flush { std::mem::take(&mut *printed) } else { Vec::new() };
        (result, text)
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
        if !queued && let Some(code) = self.pending.take() {
            self.sticky = Some(code);
            return Err(code);
        }
        Ok(())
    }

    /// Forgets everything but what the program registered: `cudaDeviceReset`.
    pub(super) fn reset(&mut self) -> Vec<super::protocol::Action> {
        let lost = self.sticky.or(self.pending).is_some();
        let actions = self.ownership.free_all(&self.shared.memory);
        let modules = std::mem::take(&mut self.modules).unlinked();
        let (version, handles) = (self.version, self.handles);
        let printed = std::mem::take(&mut *self.printed.lock().unwrap_or_else(PoisonError::into_inner));
        let fresh = Self::new(Arc::clone(&self.shared), version);
        *self = Self { modules, handles, printed: Mutex::new(printed), clock: self.clock, ..fresh };
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
}

/// Whether a call waits for the device: then output of kernels is written.
fn synchronises(call: &Call) -> bool {
    use Operation as O;
    match call.operation {
        O::DeviceSynchronize | O::StreamSynchronize | O::EventSynchronize | O::DeviceReset | O::Free => true,
        O::StreamQuery | O::EventQuery => true,
        O::Copy => call.argument(11) == 0,
        _ => false,
    }
}
