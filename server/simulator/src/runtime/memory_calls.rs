//! Allocation, and questions about pointers.

use super::context::Context;
use super::errors::Code;
use super::ownership::{Origin, Registered};
use super::processor::Task;
use super::protocol::{Action, Answer, Call};
use super::queue::Wait;
use crate::checks::DefectKind;
use crate::memory::{Kind, PAGE};

impl Context {
    /// Allocates and remembers how. The report says why where memory is short.
    pub(super) fn allocate(&mut self, size: u64, kind: Kind, origin: Origin) -> Result<u64, Code> {
        let mut allocated = self.memory().allocate(size, 512, kind);
        if allocated.is_err() && self.processor.queue.outstanding() > 0 {
            // Work that was issued may give memory back.
            let all = Wait::Until(self.processor.queue.last());
            self.settle(&all)?;
            allocated = self.memory().allocate(size, 512, kind);
        }
        match allocated {
            Ok(start) => {
                self.ownership.made.insert(start, (origin, size));
                Ok(start)
            }
            Err(error) => {
                self.shared.report().refused(&error);
                Err(Code::MEMORY_ALLOCATION)
            }
        }
    }

    /// Frees what was allocated in one of the ways that `may` admits: once a stream gets there, or, without one, once the device
    /// has done all its work.
    pub(super) fn release(
        &mut self,
        start: u64,
        stream: Option<u64>,
        may: impl Fn(Origin) -> bool,
    ) -> Result<Vec<Action>, Code> {
        let Some(&(origin, size)) = self.ownership.made.get(&start).filter(|(origin, _)| may(*origin)) else {
            let freed = self.memory().snapshot().freed(start).copied().filter(|one| one.start == start);
            let message = match freed {
                Some(one) => format!("the host frees {} bytes at {start:#x} that it freed before", one.size),
                None => {
                    format!("the host frees {start:#x}, which is not the start of an allocation of this kind")
                }
            };
            self.shared.report().wrong_call(DefectKind::DoubleFree, "", message);
            return Err(Code::INVALID_VALUE);
        };
        if stream.is_none() {
            self.settle_all()?;
        }
        if origin == Origin::Graph {
            self.graphs.allocated.remove(&start);
            return Ok(Vec::new()); // It stays as long as its graph, which may be launched again.
        }
        self.ownership.made.remove(&start);
        self.advice.forget(start, size);
        match stream {
            Some(stream) => drop(self.issue(stream, false, Task::Free(start))),
            None => drop(self.memory().free(start)),
        }
        let visible = matches!(origin, Origin::Managed | Origin::Host(_));
        let size = size.max(1).next_multiple_of(PAGE);
        Ok(if visible { vec![Action::Protect { start, size, open: false }] } else { Vec::new() })
    }
}

pub(super) fn malloc(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    if call.argument(0) == 0 {
        return Ok(Answer::results([0]));
    }
    context.check_unsafe(call)?;
    context.allocate(call.argument(0), Kind::Device, Origin::Device).map(|start| Answer::results([start]))
}

/// Rows start at multiples of this many bytes: `cudaDeviceProp::textureAlignment`.
const PITCH: u64 = 512;

pub(super) fn malloc_pitch(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    context.check_unsafe(call)?;
    let [width, height, depth] = [0, 1, 2].map(|index| call.argument(index));
    let pitch = width.checked_next_multiple_of(PITCH).ok_or(Code::INVALID_VALUE)?;
    let size = pitch
        .checked_mul(height)
        .and_then(|slice| slice.checked_mul(depth))
        .ok_or(Code::MEMORY_ALLOCATION)?;
    if size == 0 {
        return Ok(Answer::results([0, pitch]));
    }
    context.allocate(size, Kind::Device, Origin::Device).map(|start| Answer::results([start, pitch]))
}

fn visible(
    context: &mut Context,
    call: &Call,
    size: u64,
    kind: Kind,
    origin: Origin,
) -> Result<Answer, Code> {
    context.check_unsafe(call)?;
    let start = context.allocate(size, kind, origin)?;
    let size = size.next_multiple_of(PAGE);
    Ok(Answer::results([start]).with(vec![Action::Protect { start, size, open: true }]))
}

/// `cudaMemAttachGlobal`, `cudaMemAttachHost`.
const ATTACH: [u32; 2] = [1, 2];

pub(super) fn malloc_managed(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    if !ATTACH.contains(&call.small(1)) {
        return Err(Code::INVALID_VALUE);
    }
    // An H200 gives a place to nothing.
    visible(context, call, call.argument(0).max(1), Kind::Managed, Origin::Managed)
}

/// Portable, mapped, write-combined.
const HOST_FLAGS: u32 = 7;
/// All host memory of a device with unified addresses is mapped.
const MAPPED: u32 = 2;
/// Portable, mapped, of a device's registers, read-only.
const REGISTER_FLAGS: u32 = 15;

pub(super) fn host_alloc(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let flags = call.small(1);
    if flags & !HOST_FLAGS != 0 {
        return Err(Code::INVALID_VALUE);
    }
    if call.argument(0) == 0 {
        return Ok(Answer::results([0]));
    }
    visible(context, call, call.argument(0), Kind::Pinned, Origin::Host(flags | MAPPED))
}

pub(super) fn free(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    context.check_unsafe(call)?;
    if call.argument(0) == 0 {
        return Ok(Answer::done());
    }
    let actions = context.release(call.argument(0), None, |origin| !matches!(origin, Origin::Host(_)))?;
    Ok(Answer::done().with(actions))
}

pub(super) fn free_host(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    context.check_unsafe(call)?;
    if call.argument(0) == 0 {
        return Ok(Answer::done());
    }
    let actions = context.release(call.argument(0), None, |origin| matches!(origin, Origin::Host(_)))?;
    Ok(Answer::done().with(actions))
}

pub(super) fn host_register(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let (start, size, flags) = (call.argument(0), call.argument(1), call.small(2));
    let end = start.checked_add(size).filter(|&end| size > 0 && start > 0 && end < 1 << 47);
    let end = end.filter(|_| flags & !REGISTER_FLAGS == 0).ok_or(Code::INVALID_VALUE)?;
    context.check_unsafe(call)?;
    let pages = start / PAGE * PAGE;
    let length = end.next_multiple_of(PAGE) - pages;
    let flags = flags | MAPPED;
    let registered = || context.ownership.registered.values();
    if registered().any(|one| start < one.start + one.size && one.start < end) {
        return Err(Code::ALREADY_REGISTERED);
    }
    // Another part of pages that are registered already.
    let holds = |one: &&Registered| one.pages <= pages && pages + length <= one.pages + one.length;
    if let Some(&one) = registered().find(holds) {
        context.ownership.registered.insert(start, Registered { start, size, flags, ..one });
        return Ok(Answer::done());
    }
    if registered().any(|one| pages < one.pages + one.length && one.pages < pages + length) {
        return Err(Code::ALREADY_REGISTERED);
    }
    if context.memory().find(start).is_some() {
        return Err(Code::INVALID_VALUE);
    }
    let backing = context.memory().allocate(length, PAGE, Kind::Pinned).map_err(|error| {
        context.shared.report().refused(&error);
        Code::MEMORY_ALLOCATION
    })?;
    if let Err(error) = context.memory().adopt(pages, length, backing) {
        let _ = context.memory().free(backing);
        context.shared.report().note(format!("host memory at {start:#x} can't be registered: {error}"));
        return Err(Code::NOT_SUPPORTED);
    }
    let one = Registered { start, size, pages, length, backing, flags };
    context.ownership.registered.insert(start, one);
    Ok(Answer::done().with(vec![Action::Share { own: pages, region: backing, size: length }]))
}

pub(super) fn host_unregister(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let address = call.argument(0);
    context.check_unsafe(call)?;
    if address == 0 {
        return Err(Code::INVALID_VALUE);
    }
    if context.ownership.registered.contains_key(&address) {
        context.settle_all()?;
    }
    let Some(one) = context.ownership.registered.remove(&address) else {
        // Within a registration, or memory of the runtime's own.
        let known = context.memory().find(address).is_some();
        return Err(if known { Code::INVALID_VALUE } else { Code::NOT_REGISTERED });
    };
    if context.ownership.shares_pages(&one) {
        return Ok(Answer::done());
    }
    let _ = context.memory().release(one.pages);
    // The backing stays until the context ends: the stub copies from it after this answer.
    context.ownership.made.insert(one.backing, (Origin::Graph, one.length));
    Ok(Answer::done().with(vec![Action::Unshare { own: one.pages, region: one.backing, size: one.length }]))
}

pub(super) fn host_device_pointer(context: &Context, call: &Call) -> Result<Answer, Code> {
    let address = call.argument(0);
    let pinned = context.ownership.pinned(address);
    let pinned = pinned && context.memory().find(address).is_some_and(|found| found.kind == Kind::Pinned);
    if call.argument(1) != 0 || !pinned {
        return Err(Code::INVALID_VALUE);
    }
    Ok(Answer::results([address]))
}

pub(super) fn host_flags(context: &Context, call: &Call) -> Result<Answer, Code> {
    let address = call.argument(0);
    if let Some(one) = context.ownership.registration(address) {
        return Ok(Answer::results([u64::from(one.flags)]));
    }
    let start = context.memory().find(address).map(|found| found.start);
    match start.and_then(|start| context.ownership.made.get(&start)) {
        Some((Origin::Host(flags), _)) => Ok(Answer::results([u64::from(*flags)])),
        Some((Origin::Managed, _)) => Ok(Answer::results([u64::from(MAPPED)])),
        _ => Err(Code::INVALID_VALUE),
    }
}

pub(super) fn info(context: &Context) -> Answer {
    let total = context.memory().limit();
    Answer::results([total.saturating_sub(context.memory().used()), total])
}

/// `cudaMemoryType`.
const UNREGISTERED: u64 = 0;
const HOST: u64 = 1;
const DEVICE: u64 = 2;
const MANAGED: u64 = 3;

/// No device: `cudaInvalidDeviceId` is -2 for memory that is none's.
const NO_DEVICE: u64 = 0xFFFF_FFFE;

pub(super) fn pointer_attributes(context: &Context, call: &Call) -> Answer {
    let address = call.argument(0);
    let results = match context.memory().find(address).map(|found| found.kind) {
        None => [UNREGISTERED, NO_DEVICE, 0, address],
        Some(Kind::Managed) => [MANAGED, 0, address, address],
        Some(Kind::Module) if context.ownership.is_managed_variable(address) => {
            [MANAGED, 0, address, address]
        }
        Some(Kind::Pinned) if context.ownership.pinned(address) => [HOST, 0, address, address],
        Some(Kind::Pinned) => [UNREGISTERED, NO_DEVICE, 0, address],
        Some(Kind::Device | Kind::Module | Kind::Heap) => [DEVICE, 0, address, 0],
    };
    Answer::results(results)
}

/// `cudaStreamAttachMemAsync`.
pub(super) fn attach(context: &Context, call: &Call) -> Result<Answer, Code> {
    check_managed(context, call.argument(0), call.argument(1), true).map(|()| Answer::done())
}

/// Refuses what is no managed memory, or not the whole of an allocation where that is wanted.
pub(super) fn check_managed(context: &Context, address: u64, size: u64, whole: bool) -> Result<(), Code> {
    let found = context.memory().find(address).ok_or(Code::INVALID_VALUE)?;
    let managed = found.kind == Kind::Managed || context.ownership.is_managed_variable(address);
    let fits = if whole {
        found.start == address && (size == 0 || size == found.size)
    } else {
        size > 0 && found.contains(address, size)
    };
    if managed && fits { Ok(()) } else { Err(Code::INVALID_VALUE) }
}
