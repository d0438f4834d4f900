//! Branches, calls, returns, exits.

use crate::code::{Code, Handler, NONE, Op, handler};
use crate::machine::fault::FaultKind;
use crate::machine::lanes::lanes;
use crate::machine::warp::{Group, Row, Wait};
use crate::machine::{Exec, Next};

/// Bytes of local memory that a thread may use, frames of called functions included.
///
/// The real limit is set by `cudaLimitStackSize` (1 KiB by default, to which the driver adds what the compiler could
/// foresee); only endless recursion reaches this one.
pub const STACK: u32 = 256 << 10;

/// Calls that may nest.
pub const DEPTH: u32 = 24 << 10;

/// `bra`: to op `immediate`.
pub(crate) fn branch() -> Handler {
    handler!(run_branch)
}

#[inline(always)]
unsafe fn run_branch(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    go(x, op.immediate as u32, mask)
}

/// Sends the lanes of `mask` to `target`, the others of the group to the next op.
#[inline(always)]
fn go(x: &mut Exec<'_>, target: u32, mask: u32) -> Next {
    let here = x.group.pc;
    let rest = x.group.mask & !mask;
    if rest == 0 {
        x.group.pc = target;
        return if target <= here { x.went_back() } else { Next::Jump };
    }
    if let Some(counts) = &mut x.counts {
        counts.ops[here as usize].divergent += 1;
    }
    let taken = Group { pc: target, mask, ..x.group };
    let passed = Group { pc: here + 1, mask: rest, ..x.group };
    if target <= here {
        // The lanes that stay in the loop count their rounds.
        x.warp.add(passed);
        x.group = taken;
        return x.went_back();
    }
    if passed.pc == target {
        x.group.pc = target;
        return Next::Jump;
    }
    x.warp.add(taken);
    x.group = passed;
    x.stop = x.stop.min(target);
    Next::Jump
}

/// `brx.idx`: to the op of the table `aux` that slot 0 picks, lane by lane.
pub(crate) fn branch_indexed() -> Handler {
    handler!(run_branch_indexed)
}

#[inline(always)]
unsafe fn run_branch_indexed(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    let code = x.code;
    let table = &code.tables[op.aux as usize];
    for lane in lanes(mask) {
        // SAFETY: lowering gives this op a single row.
        let index = unsafe { x.registers.get::<u32>(op.slots[0], lane) };
        let Some(&pc) = table.get(index as usize) else {
            let message = format!("brx.idx picks target {index} of {}", table.len());
            return x.fault(FaultKind::InvalidPc, lane, None, message);
        };
        let same = Group { pc, mask: 1 << lane, ..x.group };
        x.warp.add(same);
    }
    let rest = x.group.mask & !mask;
    if rest != 0 {
        x.warp.add(Group { pc: x.group.pc + 1, mask: rest, ..x.group });
    }
    Next::Switch
}

/// `call` of function `aux`, with the argument lists `immediate`.
pub(crate) fn call() -> Handler {
    handler!(run_call)
}

#[inline(always)]
unsafe fn run_call(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    let next = enter_function(x, op.aux, op.immediate as u32, mask);
    if next == Next::Switch {
        let rest = x.group.mask & !mask;
        if rest != 0 {
            x.warp.add(Group { pc: x.group.pc + 1, mask: rest, ..x.group });
        }
    }
    next
}

/// `call` through the pointer in slot 0.
pub(crate) fn call_indirect() -> Handler {
    handler!(run_call_indirect)
}

#[inline(always)]
unsafe fn run_call_indirect(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    let mut left = mask;
    while left != 0 {
        let first = left.trailing_zeros() as usize;
        // SAFETY: lowering gives this op a double row.
        let pointer = |lane| unsafe { x.registers.get::<u64>(op.slots[0], lane) };
        let target = pointer(first);
        let same = lanes(left).filter(|&lane| pointer(lane) == target).fold(0, |m, lane| m | 1 << lane);
        let Some(&function) = x.code.pointers.get(&target) else {
            let message = format!("called {target:#x}, which is not the address of a device function");
            return x.fault(FaultKind::InvalidPc, first, Some(target), message);
        };
        let next = enter_function(x, function, op.immediate as u32, same);
        if next == Next::Fault {
            return next;
        }
        left &= !same;
    }
    let rest = x.group.mask & !mask;
    if rest != 0 {
        x.warp.add(Group { pc: x.group.pc + 1, mask: rest, ..x.group });
    }
    Next::Switch
}

/// Starts a frame for the lanes of `mask` and adds their group.
fn enter_function(x: &mut Exec<'_>, function: u32, call: u32, mask: u32) -> Next {
    let code: &Code = x.code;
    let caller = &x.warp.frames[x.group.frame as usize];
    let (depth, base) = (caller.depth + 1, caller.local);
    // Doubles and vectors are aligned by where a frame begins: 16 bytes.
    let local = caller.top.next_multiple_of(4);
    let shape = &code.functions[function as usize];
    let top = local + shape.local_rows;
    if top * 4 > STACK || depth > DEPTH {
        let message = format!(
            "calls nest {depth} deep and need {} bytes of stack a thread; {STACK} bytes and {DEPTH} calls is the limit",
            top * 4
        );
        return x.fault(FaultKind::StackOverflow, mask.trailing_zeros() as usize, None, message);
    }
    if x.warp.local.len() < top as usize {
        x.warp.local.resize(top as usize, Row([0; 32]));
    }
    x.warp.forget_local(local, top, mask);
    for &(from, to, rows) in &code.calls[call as usize].arguments {
        copy_rows(&mut x.warp.local, base + from, local + to, rows, mask);
    }
    let at = x.warp.frame(code, function);
    let frame = &mut x.warp.frames[at as usize];
    (frame.parent, frame.return_pc, frame.call) = (x.group.frame, x.group.pc + 1, call);
    (frame.depth, frame.local, frame.top, frame.lanes) = (depth, local, top, mask);
    x.warp.add(Group { frame: at, pc: shape.entry, mask, ..x.group });
    Next::Switch
}

/// Copies the lanes of `mask` of rows of local memory.
fn copy_rows(local: &mut [Row], from: u32, to: u32, rows: u32, mask: u32) {
    for row in 0..rows {
        let source = local[(from + row) as usize].0;
        let target = &mut local[(to + row) as usize].0;
        for lane in lanes(mask) {
            target[lane] = source[lane];
        }
    }
}

/// `ret`: of a kernel, `exit`.
pub(crate) fn ret() -> Handler {
    handler!(run_ret)
}

#[inline(always)]
unsafe fn run_ret(x: &mut Exec<'_>, _op: &Op, mask: u32) -> Next {
    let code = x.code;
    let frame = &mut x.warp.frames[x.group.frame as usize];
    if frame.depth == 0 {
        return leave_kernel(x, mask);
    }
    frame.lanes &= !mask;
    let (local, parent, pc) = (frame.local, frame.parent, frame.return_pc);
    let call = frame.call;
    if frame.lanes == 0 {
        x.warp.free.push(x.group.frame);
    }
    let caller = x.warp.frames[parent as usize].local;
    for &(from, to, rows) in &code.calls[call as usize].returns {
        copy_rows(&mut x.warp.local, local + from, caller + to, rows, mask);
    }
    x.warp.add(Group { frame: parent, pc, mask, ..x.group });
    let rest = x.group.mask & !mask;
    if rest != 0 {
        x.warp.add(Group { pc: x.group.pc + 1, mask: rest, ..x.group });
    }
    Next::Switch
}

/// `exit`.
pub(crate) fn exit() -> Handler {
    handler!(run_exit)
}

#[inline(always)]
unsafe fn run_exit(x: &mut Exec<'_>, _op: &Op, mask: u32) -> Next {
    leave_kernel(x, mask)
}

pub(crate) fn leave_kernel(x: &mut Exec<'_>, mask: u32) -> Next {
    x.check_leaving(mask);
    x.warp.live &= !mask;
    // Frames that only these lanes were in are not free again before the warp restarts: kernels seldom exit in a function.
    x.block.threads_left(x.warp.index, mask);
    // Lanes that waited for these wait no longer.
    crate::machine::sync::release(x.warp);
    let rest = x.group.mask & !mask;
    if rest != 0 {
        x.warp.add(Group { pc: x.group.pc + 1, mask: rest, ..x.group });
    }
    Next::Switch
}

/// `trap`.
pub(crate) fn trap() -> Handler {
    handler!(run_trap)
}

#[inline(always)]
unsafe fn run_trap(x: &mut Exec<'_>, _op: &Op, mask: u32) -> Next {
    x.fault(FaultKind::Trap, mask.trailing_zeros() as usize, None, "the kernel executed trap".to_owned())
}

/// Sleeps for `nanoseconds`, but not long: others of the block may have work. What the kernel waits for may be the host's to do.
fn rest(nanoseconds: u32) {
    /// Less is not worth going to sleep for.
    const LEAST: u32 = 50_000;
    if nanoseconds >= LEAST {
        std::thread::sleep(std::time::Duration::from_nanos(LEAST.into()));
    }
}

/// `nanosleep`, and other hints to let others run.
pub(crate) fn pause() -> Handler {
    handler!(run_pause)
}

#[inline(always)]
unsafe fn run_pause(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    if op.slots[0] != NONE {
        // SAFETY: lowering gave the op a row of numbers of 32 bits.
        rest(unsafe { x.registers.get::<u32>(op.slots[0], mask.trailing_zeros() as usize) });
    }
    x.warp.polls += 1;
    x.group.pc += 1;
    if x.warp.groups.is_empty() {
        return Next::Jump;
    }
    x.group.wait = Wait::Nothing;
    x.group.yielded = true;
    x.leave();
    Next::Switch
}
