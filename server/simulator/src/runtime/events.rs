//! Events. Their times are those of the estimated clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::context::Context;
use super::errors::Code;
use super::protocol::{Answer, Call};
use super::queue::Wait;
use super::streams::external;
use super::work::Work;

/// `cudaEventDisableTiming`.
const NO_TIMING: u32 = 2;
/// Blocking, no timing, interprocess.
const KNOWN: u32 = 7;

/// An event.
#[derive(Debug, Clone, Default)]
pub(super) struct Event {
    flags: u32,
    /// The work that recorded it last, and where that writes its time, in nanoseconds.
    recorded: Option<(u64, Arc<AtomicU64>)>,
    /// Last recorded in a stream that was being captured: in which capture, and after which nodes.
    pub captured: Option<(u64, Vec<u64>)>,
}

impl Event {
    /// Recorded by this work.
    pub(super) fn record(&mut self, number: u64, time: Arc<AtomicU64>) {
        self.recorded = Some((number, time));
        self.captured = None;
    }

    /// The work that recorded it last.
    pub(super) fn recorded(&self) -> Option<u64> {
        self.recorded.as_ref().map(|(number, _)| *number)
    }
}

pub(super) fn create(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let flags = call.small(0);
    // An event for other processes can't have times.
    if flags & !KNOWN != 0 || flags & 6 == 4 {
        return Err(Code::INVALID_VALUE);
    }
    let handle = context.handle();
    context.events.insert(handle, Event { flags, ..Event::default() });
    Ok(Answer::results([handle]))
}

pub(super) fn destroy(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    context.events.remove(&call.argument(0)).map(|_| Answer::done()).ok_or(Code::INVALID_HANDLE)
}

pub(super) fn record(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let (event, stream) = (call.argument(0), call.argument(1));
    if !context.events.contains_key(&event) {
        return Err(Code::INVALID_HANDLE);
    }
    let captured = context.stream(stream)?.capture.clone();
    if !external(call.small(2), captured.is_some())? && captured.is_some() {
        context.check_capture(stream)?;
        if let Some(event) = context.events.get_mut(&event) {
            event.captured = captured;
        }
        return Ok(Answer::done());
    }
    context.submit(stream, Work::Record(event))
}

pub(super) fn synchronize(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let event = context.events.get(&call.argument(0)).ok_or(Code::INVALID_HANDLE)?;
    if let Some((capture, _)) = &event.captured {
        let Some(live) = context.streams.captures.get_mut(capture).filter(|one| !one.invalid) else {
            return Err(Code::INVALID_VALUE);
        };
        live.invalid = true;
        return Err(Code::CAPTURED_EVENT);
    }
    let before = Wait::Each(event.recorded().into_iter().collect());
    context.check_unsafe(call)?;
    context.await_or_ask(call, &before)
}

pub(super) fn elapsed(context: &Context, call: &Call) -> Result<Answer, Code> {
    let find = |index| context.events.get(&call.argument(index)).ok_or(Code::INVALID_HANDLE);
    let (start, end) = (find(0)?, find(1)?);
    match (&start.recorded, &end.recorded) {
        _ if start.captured.is_some() || end.captured.is_some() => Err(Code::INVALID_VALUE),
        _ if (start.flags | end.flags) & NO_TIMING != 0 => Err(Code::INVALID_HANDLE),
        (Some((first, start)), Some((last, end))) => {
            if !context.processor.queue.wait(&Wait::Each(vec![*first, *last]), Duration::ZERO) {
                return Err(Code::NOT_READY);
            }
            let [start, end] = [start, end].map(|time| time.load(Ordering::Relaxed));
            Ok(Answer::results([end.wrapping_sub(start)]))
        }
        _ => Err(Code::INVALID_HANDLE),
    }
}
