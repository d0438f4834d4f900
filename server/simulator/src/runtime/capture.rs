//! Capture: work of a stream becomes nodes of a graph. A stream that waits for an event of a captured stream joins it.

use std::collections::HashSet;

use super::context::Context;
use super::errors::Code;
use super::protocol::{Answer, Call};
use super::streams::{Capture, LEGACY, NON_BLOCKING, RELAXED};
use super::work::Work;

/// `cudaStreamCaptureStatus`.
const ACTIVE: u64 = 1;
const INVALIDATED: u64 = 2;

impl Context {
    pub(super) fn is_capturing(&mut self, stream: u64) -> Result<bool, Code> {
        Ok(self.stream(stream)?.capture.is_some())
    }

    /// The capture of a stream, if there is one and it is still good.
    pub(super) fn check_capture(&mut self, stream: u64) -> Result<Option<u64>, Code> {
        let Some(id) = self.stream(stream)?.capture.as_ref().map(|(id, _)| *id) else { return Ok(None) };
        match self.streams.captures.get(&id) {
            Some(capture) if !capture.invalid => Ok(Some(id)),
            _ => Err(Code::CAPTURE_INVALIDATED),
        }
    }

    /// Adds work to the graph that the stream is captured into, if it is. Returns its node.
    pub(super) fn capture_work(&mut self, stream: u64, work: &Work) -> Result<Option<u64>, Code> {
        let Some(id) = self.check_capture(stream)? else {
            if self.resolve(stream) == LEGACY {
                self.check_legacy()?;
            }
            return Ok(None);
        };
        let dependencies =
            self.stream(stream)?.capture.as_ref().map(|(_, tips)| tips.clone()).unwrap_or_default();
        let graph = self.streams.captures.get(&id).map_or(0, |capture| capture.graph);
        let node = self.add_node(graph, work.clone(), dependencies)?;
        self.stream(stream)?.capture = Some((id, vec![node]));
        Ok(Some(node))
    }

    /// Captures of blocking streams.
    fn captures_beside_legacy(&self) -> HashSet<u64> {
        let blocking = |one: &&super::streams::Stream| one.flags & NON_BLOCKING == 0;
        let captured = self.streams.streams.values().filter(blocking).filter_map(|one| one.capture.as_ref());
        captured.map(|(id, _)| *id).collect()
    }

    /// Whether the stream that a capture began in comes after these nodes.
    pub(super) fn waited_for(&self, graph: u64, origin: u64, nodes: &[u64]) -> bool {
        let last = self.streams.streams.get(&origin).and_then(|stream| stream.capture.as_ref());
        let joined = self.graphs.ancestors(graph, last.map_or(&[], |(_, tips)| tips));
        nodes.iter().all(|node| joined.contains(node))
    }

    /// What waits for all of the device is forbidden during any capture.
    pub(super) fn check_any_capture(&mut self) -> Result<(), Code> {
        let captures: HashSet<u64> = self.streams.captures.keys().copied().collect();
        if captures.is_empty() {
            return Ok(());
        }
        self.streams.invalidate(&captures);
        Err(Code::CAPTURE_UNSUPPORTED)
    }

    /// Work of the legacy stream would wait for every blocking stream: while one of them is captured, it can't.
    pub(super) fn check_legacy(&mut self) -> Result<(), Code> {
        let captures = self.captures_beside_legacy();
        if captures.is_empty() {
            return Ok(());
        }
        self.streams.invalidate(&captures);
        Err(Code::CAPTURE_IMPLICIT)
    }

    /// A stream waits for work of a capture: from then on it is captured too.
    pub(super) fn join_capture(&mut self, stream: u64, capture: u64, nodes: &[u64]) -> Result<(), Code> {
        if self.streams.captures.get(&capture).is_none_or(|one| one.invalid) {
            return Err(Code::CAPTURED_EVENT);
        }
        if self.resolve(stream) == LEGACY {
            self.streams.invalidate(&HashSet::from([capture]));
            return Err(Code::CAPTURE_IMPLICIT);
        }
        let own = &mut self.stream(stream)?.capture;
        match own {
            Some((id, _)) if *id != capture => {
                let both = HashSet::from([*id, capture]);
                self.streams.invalidate(&both);
                return Err(Code::CAPTURE_MERGE);
            }
            Some((_, tips)) => {
                tips.extend(nodes);
                tips.sort_unstable();
                tips.dedup();
            }
            None => *own = Some((capture, nodes.to_vec())),
        }
        Ok(())
    }

    /// A captured stream waits for work outside of its capture.
    pub(super) fn isolation(&mut self, stream: u64) -> Code {
        if let Ok(Some(id)) = self.check_capture(stream) {
            self.streams.invalidate(&HashSet::from([id]));
        }
        Code::CAPTURE_ISOLATION
    }
}

pub(super) fn begin(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let (origin, mode) = (context.resolve(call.argument(0)), call.small(1));
    if mode > RELAXED {
        return Err(Code::INVALID_VALUE);
    }
    if origin == LEGACY {
        return Err(Code::CAPTURE_UNSUPPORTED);
    }
    if context.is_capturing(origin)? {
        return Err(Code::ILLEGAL_STATE);
    }
    let (id, graph) = (context.handle(), context.new_graph());
    context.streams.captures.insert(id, Capture { graph, origin, mode, thread: call.thread, invalid: false });
    context.stream(origin)?.capture = Some((id, Vec::new()));
    Ok(Answer::done())
}

pub(super) fn end(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let stream = context.resolve(call.argument(0));
    let Some((id, tips)) = context.stream(stream)?.capture.clone() else { return Err(Code::ILLEGAL_STATE) };
    let Some(capture) = context.streams.captures.get(&id).cloned() else {
        return Err(Code::CAPTURE_INVALIDATED);
    };
    if capture.origin != stream {
        context.streams.invalidate(&HashSet::from([id]));
        return Err(Code::CAPTURE_UNMATCHED);
    }
    let other_thread = capture.mode != RELAXED && capture.thread != call.thread;
    let joined = context.graphs.ancestors(capture.graph, &tips);
    let mut unjoined = false;
    for (&handle, other) in &mut context.streams.streams {
        if let Some((_, others)) = other.capture.take_if(|(other, _)| *other == id) {
            unjoined |= handle != stream && others.iter().any(|tip| !joined.contains(tip));
        }
    }
    context.streams.captures.remove(&id);
    let failure = match () {
        () if other_thread => Some(Code::CAPTURE_WRONG_THREAD),
        () if capture.invalid => Some(Code::CAPTURE_INVALIDATED),
        () if unjoined => Some(Code::CAPTURE_UNJOINED),
        () => None,
    };
    if failure.is_some() || call.argument(1) == 0 {
        context.graphs.remove(capture.graph);
    }
    failure.map_or_else(|| Ok(Answer::results([capture.graph])), Err)
}

pub(super) fn state(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let stream = context.resolve(call.argument(0));
    let Some((id, tips)) = context.stream(stream)?.capture.clone() else {
        // The legacy stream can't be asked while a blocking one is captured.
        if stream == LEGACY && !context.captures_beside_legacy().is_empty() {
            return Err(Code::CAPTURE_IMPLICIT);
        }
        return Ok(Answer::results([0, 0, 0]));
    };
    let (state, graph) = match context.streams.captures.get(&id) {
        Some(capture) if !capture.invalid => (ACTIVE, capture.graph),
        _ => (INVALIDATED, 0),
    };
    let blob = tips.iter().flat_map(|tip| tip.to_le_bytes()).collect();
    Ok(Answer { blob, ..Answer::results([state, id, graph]) })
}

pub(super) fn exchange_mode(context: &mut Context, call: &Call) -> Answer {
    let before = context.streams.modes.insert(call.thread, call.small(0));
    Answer::results([u64::from(before.unwrap_or(0))])
}
