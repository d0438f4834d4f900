//! Local memory that a function takes while it runs: `alloca`, `stacksave`, `stackrestore`.
//!
//! Lanes of a frame share its top, so each gets addresses that none of its own earlier arrays has.

use crate::code::{Handler, Op, handler};
use crate::machine::control::STACK;
use crate::machine::fault::FaultKind;
use crate::machine::lanes::lanes;
use crate::machine::warp::Row;
use crate::machine::{Exec, Next};

/// `alloca`: slots are the address in local memory, the size in bytes; the immediate is the alignment.
pub(crate) fn allocate() -> Handler {
    handler!(run_allocate)
}

#[inline(always)]
unsafe fn run_allocate(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    let r = x.registers;
    // SAFETY: lowering gives this op double rows.
    let most = lanes(mask).map(|lane| unsafe { r.get::<u64>(op.slots[1], lane) }).max().unwrap_or(0);
    let frame = &mut x.warp.frames[x.group.frame as usize];
    let start = (u64::from(frame.top) * 4).next_multiple_of((op.immediate as u64).max(4));
    let end = start.saturating_add(most);
    if end > u64::from(STACK) {
        let message =
            format!("alloca of {most} bytes needs {end} bytes of stack a thread; {STACK} is the limit");
        return x.fault(FaultKind::StackOverflow, mask.trailing_zeros() as usize, None, message);
    }
    frame.top = end.div_ceil(4) as u32;
    if x.warp.local.len() < frame.top as usize {
        x.warp.local.resize(frame.top as usize, Row([0; 32]));
    }
    let top = frame.top;
    x.warp.forget_local((start / 4) as u32, top, mask);
    // SAFETY: as above.
    unsafe { r.fill::<u64>(op.slots[0], mask, |_| [start; 8]) };
    Next::Advance
}

/// `stacksave`: slot 0 takes the top.
pub(crate) fn save() -> Handler {
    handler!(run_save)
}

#[inline(always)]
unsafe fn run_save(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    let top = u64::from(x.warp.frames[x.group.frame as usize].top) * 4;
    // SAFETY: lowering gives this op a double row.
    unsafe { x.registers.fill::<u64>(op.slots[0], mask, |_| [top; 8]) };
    Next::Advance
}

/// `stackrestore`: slot 1 is what `stacksave` gave. Where lanes of the frame are elsewhere they may still use what lies above,
/// so the top stays until the function returns.
pub(crate) fn restore() -> Handler {
    handler!(run_restore)
}

#[inline(always)]
unsafe fn run_restore(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    let r = x.registers;
    // SAFETY: lowering gives this op a double row.
    let highest = lanes(mask).map(|lane| unsafe { r.get::<u64>(op.slots[1], lane) }).max().unwrap_or(0);
    let live = x.warp.live;
    let frame = &mut x.warp.frames[x.group.frame as usize];
    if frame.lanes & live & !mask == 0 {
        frame.top = frame.top.min(highest.div_ceil(4).min(u64::from(STACK)) as u32);
    }
    Next::Advance
}
