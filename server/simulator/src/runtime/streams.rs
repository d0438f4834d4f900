//! Streams: what the next work of each comes after, and which are being captured.

use std::collections::{HashMap, HashSet};

use super::context::Context;
use super::errors::Code;
use super::processor::Task;
use super::protocol::{Answer, Call, Operation};
use super::queue::Wait;
use super::work::Work;

/// The legacy default stream, also written as 1, and the per-thread default stream.
pub(super) const LEGACY: u64 = 0;
const LEGACY_HANDLE: u64 = 1;
const PER_THREAD: u64 = 2;

/// `cudaStreamNonBlocking`.
pub(super) const NON_BLOCKING: u32 = 1;

/// Priorities that are clamped to: `cudaDeviceGetStreamPriorityRange`.
const GREATEST_PRIORITY: i32 = -5;

/// A stream.
#[derive(Debug, Clone, Default)]
pub(super) struct Stream {
    pub flags: u32,
    pub priority: i32,
    /// What its next work comes after: its last work, and events that it waits for.
    pub tail: Vec<u64>,
    /// The capture that it takes part in, and the nodes that its next node depends on.
    pub capture: Option<(u64, Vec<u64>)>,
}

/// A capture that is going on.
#[derive(Debug, Clone)]
pub(super) struct Capture {
    pub graph: u64,
    /// The stream that it began in.
    pub origin: u64,
    /// `cudaStreamCaptureMode`: global, thread-local, relaxed.
    pub mode: u32,
    /// The thread that began it.
    pub thread: u64,
    /// A forbidden call came in between.
    pub invalid: bool,
}

/// `cudaStreamCaptureMode`.
const GLOBAL: u32 = 0;
pub(super) const RELAXED: u32 = 2;

/// All streams and captures.
#[derive(Debug)]
pub(super) struct Streams {
    pub streams: HashMap<u64, Stream>,
    /// Work of blocking streams that were destroyed.
    pub orphans: Vec<u64>,
    pub captures: HashMap<u64, Capture>,
    /// What `cudaThreadExchangeStreamCaptureMode` set, by thread; global where it was not called.
    pub modes: HashMap<u64, u32>,
}

impl Default for Streams {
    fn default() -> Self {
        let streams = HashMap::from([(LEGACY, Stream::default()), (PER_THREAD, Stream::default())]);
        Self { streams, orphans: Vec::new(), captures: HashMap::new(), modes: HashMap::new() }
    }
}

impl Streams {
    /// Captures that forbid a thread calls which may wait: its own, and global ones of others unless it looks at its own only.
    pub(super) fn strict_captures(&self, thread: u64) -> HashSet<u64> {
        let mode = self.modes.get(&thread).copied().unwrap_or(GLOBAL);
        let strict = |one: &Capture| {
            one.mode != RELAXED && (one.thread == thread || one.mode == GLOBAL && mode == GLOBAL)
        };
        let captures = self.captures.iter().filter(|(_, one)| mode != RELAXED && strict(one));
        captures.map(|(&id, _)| id).collect()
    }

    pub(super) fn invalidate(&mut self, captures: &HashSet<u64>) {
        for (_, one) in self.captures.iter_mut().filter(|(id, _)| captures.contains(id)) {
            one.invalid = true;
        }
    }
}

impl Context {
    /// The stream that a handle means.
    pub(super) fn resolve(&self, handle: u64) -> u64 {
        match handle {
            LEGACY if self.per_thread => PER_THREAD,
            LEGACY_HANDLE => LEGACY,
            other => other,
        }
    }

    /// What work of a stream comes after: what is before it in the stream; work of the legacy stream comes after that of all
    /// blocking streams too, and they come after it.
    fn after(&mut self, stream: u64) -> Vec<u64> {
        let stream = self.resolve(stream);
        let Streams { streams, orphans, .. } = &mut self.streams;
        let queue = &self.processor.queue;
        let mut after = Vec::new();
        let blocks = |one: &Stream| one.flags & NON_BLOCKING == 0;
        let blocking = streams.get(&stream).is_some_and(blocks);
        for (&handle, other) in streams.iter_mut() {
            let related =
                handle == stream || stream == LEGACY && blocks(other) || blocking && handle == LEGACY;
            if related {
                queue.keep_outstanding(&mut other.tail);
                after.extend(&other.tail);
            }
        }
        if stream == LEGACY {
            queue.keep_outstanding(orphans);
            after.extend(orphans.iter());
        }
        after.sort_unstable();
        after.dedup();
        after
    }

    /// What must have ended before work of a stream is done.
    pub(super) fn before(&mut self, stream: u64) -> Wait {
        Wait::Each(self.after(stream))
    }

    /// Whether work of a stream would have to wait.
    pub(super) fn is_busy(&mut self, stream: u64) -> bool {
        !self.after(stream).is_empty()
    }

    /// Adds work to a stream, and returns its number.
    pub(super) fn issue(&mut self, stream: u64, may_wait: bool, task: Task) -> u64 {
        let done = if may_wait { Err(task) } else { self.processor.do_now(task) };
        let number = match done {
            Ok(number) => number,
            Err(task) => {
                let after = self.after(stream);
                self.processor.queue.add(after, may_wait, task)
            }
        };
        if let Ok(stream) = self.stream(stream) {
            stream.tail = vec![number];
        }
        number
    }

    /// Waits until all that was issued before, and may be done before, is done: for work that the call does itself. So it is done in
    /// the order of the calls too, in each run.
    pub(super) fn take_turn(&mut self, stream: u64) -> Result<(), Code> {
        if self.has_waited() || self.processor.queue.outstanding() == 0 {
            return self.check_lost();
        }
        let turn = self.issue(stream, false, Task::Turn);
        self.settle(&Wait::Each(vec![turn]))
    }

    /// Waits, where the call does; else says whether it is over.
    pub(super) fn await_or_ask(&mut self, call: &Call, before: &Wait) -> Result<Answer, Code> {
        if matches!(call.operation, Operation::StreamQuery | Operation::EventQuery) {
            if !self.processor.queue.wait(before, std::time::Duration::ZERO) {
                return Err(Code::NOT_READY);
            }
            self.check_lost()?;
        } else {
            self.settle(before)?;
        }
        Ok(Answer::done())
    }

    /// The stream of a handle.
    pub(super) fn stream(&mut self, handle: u64) -> Result<&mut Stream, Code> {
        let stream = self.resolve(handle);
        self.streams.streams.get_mut(&stream).ok_or(Code::INVALID_HANDLE)
    }
}

pub(super) fn create(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let flags = call.small(0);
    if flags > NON_BLOCKING {
        return Err(Code::INVALID_VALUE);
    }
    let priority = call.small(1).cast_signed().clamp(GREATEST_PRIORITY, 0);
    let handle = context.handle();
    context.streams.streams.insert(handle, Stream { flags, priority, ..Stream::default() });
    Ok(Answer::results([handle]))
}

pub(super) fn destroy(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let handle = context.resolve(call.argument(0));
    if handle == LEGACY || handle == PER_THREAD {
        return Err(Code::INVALID_HANDLE);
    }
    let stream = context.streams.streams.remove(&handle).ok_or(Code::INVALID_HANDLE)?;
    if stream.flags & NON_BLOCKING == 0 {
        context.processor.queue.keep_outstanding(&mut context.streams.orphans);
        context.streams.orphans.extend(stream.tail);
    }
    if let Some((capture, tips)) = stream.capture {
        // A capture ends with the stream that it began in.
        match context.streams.captures.get(&capture).map(|one| (one.origin, one.graph)) {
            Some((origin, graph)) if origin == handle => {
                context.streams.captures.remove(&capture);
                context.graphs.remove(graph);
            }
            // Work of a joined stream that nobody waited for would be lost.
            Some((origin, graph)) if context.waited_for(graph, origin, &tips) => {}
            _ => context.streams.invalidate(&HashSet::from([capture])),
        }
    }
    Ok(Answer::done())
}

/// Waits for a stream, or asks whether it is done.
pub(super) fn synchronize(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let capture = context.stream(call.argument(0))?.capture.as_ref().map(|(capture, _)| *capture);
    if let Some(capture) = capture {
        context.streams.invalidate(&HashSet::from([capture]));
        return Err(Code::CAPTURE_UNSUPPORTED);
    }
    let legacy = context.resolve(call.argument(0)) == LEGACY;
    if legacy {
        context.check_legacy()?;
    }
    context.check_unsafe(call)?;
    let before = if legacy {
        context.before(LEGACY_HANDLE)
    } else {
        Wait::Each(context.stream(call.argument(0))?.tail.clone())
    };
    context.await_or_ask(call, &before)
}

pub(super) fn get(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let handle = context.resolve(call.argument(0));
    let stream = context.stream(handle)?;
    let value = match call.argument(1) {
        0 => u64::from(stream.flags),
        1 => i64::from(stream.priority).cast_unsigned(),
        2 => handle,
        _ => 0,
    };
    Ok(Answer::results([value]))
}

pub(super) fn wait(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let (stream, event) = (call.argument(0), call.argument(1));
    context.stream(stream)?;
    let captured = context.events.get(&event).ok_or(Code::INVALID_HANDLE)?.captured.clone();
    let capturing = context.is_capturing(stream)?;
    external(call.small(2), capturing)?;
    match captured {
        Some((capture, _)) if !context.streams.captures.contains_key(&capture) => {
            return Err(Code::INVALID_VALUE);
        }
        Some((capture, nodes)) => context.join_capture(stream, capture, &nodes)?,
        None if capturing && call.small(2) == 0 => return Err(context.isolation(stream)),
        None => {
            context.submit(stream, Work::Wait(event))?;
        }
    }
    Ok(Answer::done())
}

/// `cudaEventRecordExternal`, `cudaEventWaitExternal`: nodes of their own, and only while captured.
pub(super) fn external(flags: u32, capturing: bool) -> Result<bool, Code> {
    match flags {
        0 => Ok(false),
        1 if capturing => Ok(true),
        1 => Err(Code::ILLEGAL_STATE),
        _ => Err(Code::INVALID_VALUE),
    }
}

pub(super) fn host_function(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let [stream, function, data, callback] = [0, 1, 2, 3].map(|index| call.argument(index));
    if function == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let callback = (callback != 0).then_some(stream);
    if callback.is_some()
        && let Some((capture, _)) = context.stream(stream)?.capture
    {
        context.streams.invalidate(&HashSet::from([capture]));
        return Err(Code::CAPTURE_UNSUPPORTED);
    }
    context.submit(stream, Work::Host { function, data, callback })
}
