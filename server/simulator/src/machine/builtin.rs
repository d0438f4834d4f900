//! Functions that no module defines: the device runtime's.

use crate::checks::DefectKind;
use crate::code::{Handler, NONE, Op, handler};
use crate::machine::control::leave_kernel;
use crate::machine::fault::{Failed, FaultKind};
use crate::machine::lanes::lanes;
use crate::machine::printf;
use crate::machine::{Exec, Next};
use crate::memory::Kind;

/// The slot of a function's result: like those of its arguments, bytes from the start of the frame's local memory.
pub(crate) const RESULT: usize = 7;

/// A function's handler, and how many arguments and results it has.
pub(crate) fn find(name: &str) -> Option<(Handler, usize, usize)> {
    Some(match name {
        "vprintf" => (handler!(run_printf), 2, 1),
        "malloc" => (handler!(run_malloc), 1, 1),
        "free" => (handler!(run_free), 1, 0),
        "__assertfail" => (handler!(run_assert), 5, 0),
        _ => return None,
    })
}

/// Does nothing.
pub(crate) fn nothing() -> Handler {
    handler!(run_nothing)
}

#[inline(always)]
unsafe fn run_nothing(_: &mut Exec<'_>, _: &Op, _: u32) -> Next {
    Next::Advance
}

impl Exec<'_> {
    /// Where an argument of the running call lies in local memory.
    fn place(&self, slot: u32) -> u64 {
        u64::from(self.warp.frames[self.group.frame as usize].local) * 4 + u64::from(slot)
    }

    fn argument(&mut self, op: &Op, at: usize, lane: usize) -> u64 {
        let place = self.place(op.slots[at]);
        self.load_local::<u64>(lane, place).unwrap_or(0)
    }

    fn argument_u32(&mut self, op: &Op, at: usize, lane: usize) -> u32 {
        let place = self.place(op.slots[at]);
        self.load_local::<u32>(lane, place).unwrap_or(0)
    }

    fn give_u64(&mut self, op: &Op, lane: usize, value: u64) {
        if op.slots[RESULT] != NONE {
            let place = self.place(op.slots[RESULT]);
            // Lowering made room for it.
            let _ = self.store_local(lane, place, value);
        }
    }
}

#[inline(always)]
unsafe fn run_printf(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    for lane in lanes(mask) {
        let (format, values) = (x.argument(op, 0, lane), x.argument(op, 1, lane));
        let Some(text) = x.text(lane, format) else {
            let message = format!("printf's format at {format:#x} is no string");
            return x.fault(FaultKind::IllegalAddress, lane, Some(format), message);
        };
        let (bytes, arguments) = printf::format(x, lane, &text, values);
        x.grid.host.print(&bytes);
        if op.slots[RESULT] != NONE {
            let place = x.place(op.slots[RESULT]);
            // Lowering made room for it.
            let _ = x.store_local(lane, place, arguments);
        }
    }
    Next::Advance
}

#[inline(always)]
unsafe fn run_malloc(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    for lane in lanes(mask) {
        let size = x.argument(op, 0, lane);
        let address = if size == 0 { 0 } else { x.grid.memory.allocate(size, 16, Kind::Heap).unwrap_or(0) };
        x.give_u64(op, lane, address);
    }
    Next::Advance
}

#[inline(always)]
unsafe fn run_free(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    for lane in lanes(mask) {
        let address = x.argument(op, 0, lane);
        let is_heap = x.grid.memory.find(address).is_some_and(|found| found.kind == Kind::Heap);
        if address != 0 && !(is_heap && x.grid.memory.free(address).is_ok()) {
            let message = format!("free of {address:#x}, which malloc did not return");
            let freed = x.grid.memory.snapshot().freed(address).is_some_and(|one| one.start == address);
            let message =
                if freed { format!("free of {address:#x}, which was freed before") } else { message };
            let kind = FaultKind::IllegalAddress;
            return x.fault_of(DefectKind::DoubleFree, kind, lane, Some(address), message, None);
        }
        if let Some(checker) = &mut x.checker {
            checker.forget();
        }
        x.span = crate::machine::access::Span::default();
        *x.allocations = x.grid.memory.snapshot();
    }
    Next::Advance
}

#[inline(always)]
unsafe fn run_assert(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    let lane = mask.trailing_zeros() as usize;
    let mut text = |at: usize| {
        let address = x.argument(op, at, lane);
        String::from_utf8_lossy(&x.text(lane, address).unwrap_or_default()).into_owned()
    };
    let (condition, file, function) = (text(0), text(1), text(3));
    let line = x.argument_u32(op, 2, lane);
    let message = format!("{file}:{line}: {function}: assertion `{condition}` failed");
    let (block, first) = (x.block.index, x.warp.index * 32);
    let threads = (0..32).filter(|lane| mask >> lane & 1 != 0).map(|lane| x.grid.thread_index(first + lane));
    let failed: Vec<Failed> =
        threads.map(|thread| Failed { block, thread, message: message.clone() }).collect();
    if x.failed.is_empty() {
        x.failed_at = x.group.pc;
    }
    x.failed.extend(failed);
    // The threads end here. Others go on for a little: on a device too, each thread says so that gets to a failing assertion
    // before the device has stopped them all.
    leave_kernel(x, mask)
}
