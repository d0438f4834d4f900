//! `cudaDeviceSetLimit`, and flags of the device.
//!
//! Values, bounds and units are those that an H200 gives (driver 580.159.04, CUDA 13.0).

use std::collections::HashMap;

use super::context::Context;
use super::errors::Code;
use super::protocol::{Answer, Call};
use crate::device::Device;
use crate::memory::Kind;

/// `cudaLimit`.
const STACK: u32 = 0;
const PRINT_BUFFER: u32 = 1;
pub(super) const HEAP: u32 = 2;
const SYNC_DEPTH: u32 = 3;
const PENDING_LAUNCHES: u32 = 4;
const FETCH_GRANULARITY: u32 = 5;
const PERSISTING_L2: u32 = 6;
const SHARED: u32 = 7;

/// Stacks are given out in multiples of this, in bytes, and are at most this long.
const STACK_UNIT: u64 = 16;
const LONGEST_STACK: u64 = 511 << 10;
/// The least that the buffer of `printf` and the heap may have, in bytes.
const LEAST_PRINT_BUFFER: u64 = 512 << 10;
const LEAST_HEAP: u64 = 4 << 20;
/// Units of both, in bytes.
const PRINT_BUFFER_UNIT: u64 = 256;
const HEAP_UNIT: u64 = 64 << 10;
/// The most bytes that the L2 cache may fetch at once.
const LONGEST_FETCH: u64 = 128;
/// The default of the heap, in bytes.
pub(super) const DEFAULT_HEAP: u64 = 8 << 20;

/// The part of the L2 cache that may be set aside is given out in tenths.
fn persisting_unit(device: &Device) -> u64 {
    u64::from(device.persisting_l2 / 10).max(1)
}

/// The limits of a context.
pub(super) struct Limits(HashMap<u32, u64>);

impl Limits {
    pub(super) fn new(device: &Device) -> Self {
        Self(HashMap::from([
            (STACK, 1024),
            // As much for each multiprocessor.
            (PRINT_BUFFER, u64::from(device.multiprocessors) * (64 << 10)),
            (HEAP, DEFAULT_HEAP),
            (PENDING_LAUNCHES, 2048),
            (FETCH_GRANULARITY, 64),
            (PERSISTING_L2, 3 * u64::from(device.persisting_l2 / 10)),
            (SHARED, u64::from(device.limits.shared_optin)),
        ]))
    }
}

fn rounded(asked: u64, unit: u64) -> Result<u64, Code> {
    asked.checked_next_multiple_of(unit).ok_or(Code::INVALID_VALUE)
}

fn known(limit: u32) -> Result<(), Code> {
    match limit {
        // Kernels that wait for kernels that they launched: gone since CUDA 12.
        SYNC_DEPTH => Err(Code::UNSUPPORTED_LIMIT),
        STACK..=SHARED => Ok(()),
        _ => Err(Code::INVALID_VALUE),
    }
}

pub(super) fn get(context: &Context, call: &Call) -> Result<Answer, Code> {
    known(call.small(0))?;
    let value = context.limits.0.get(&call.small(0)).ok_or(Code::INVALID_VALUE)?;
    Ok(Answer::results([*value]))
}

pub(super) fn set(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    context.check_unsafe(call)?;
    let (limit, asked) = (call.small(0), call.argument(1));
    known(limit)?;
    let value = match limit {
        SHARED => return Err(Code::NOT_PERMITTED),
        STACK if asked > LONGEST_STACK => return Err(Code::INVALID_VALUE),
        STACK => asked.next_multiple_of(STACK_UNIT),
        PRINT_BUFFER => rounded(asked.max(LEAST_PRINT_BUFFER), PRINT_BUFFER_UNIT)?,
        // Kernels hold pointers into it.
        HEAP if context.memory().snapshot().as_slice().iter().any(|one| one.kind == Kind::Heap) => {
            return Err(Code::INVALID_VALUE);
        }
        HEAP => rounded(asked.max(LEAST_HEAP), HEAP_UNIT)?,
        FETCH_GRANULARITY if asked > LONGEST_FETCH => return Err(Code::INVALID_VALUE),
        PERSISTING_L2 if asked > u64::from(context.device().persisting_l2) => {
            return Err(Code::INVALID_VALUE);
        }
        PERSISTING_L2 => rounded(asked, persisting_unit(context.device()))?,
        _ => asked,
    };
    if limit == HEAP {
        context.memory().limit_heap(value);
    }
    context.limits.0.insert(limit, value);
    Ok(Answer::done())
}

pub(super) fn check_device(call: &Call) -> Result<Answer, Code> {
    if call.argument(0) == 0 { Ok(Answer::results([0])) } else { Err(Code::INVALID_DEVICE) }
}

/// Flags that are taken, and those of them that are kept: how the host waits (one way at most), resizing of local memory,
/// synchronous copies. That host memory is mapped is always set.
const TAKEN_FLAGS: u32 = 0xFF;
const KEPT_FLAGS: u32 = 0x9F;
const WAYS_TO_WAIT: u32 = 7;
pub(super) const MAP_HOST: u32 = 8;

pub(super) fn set_flags(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let flags = call.small(0);
    if flags & !TAKEN_FLAGS != 0 || (flags & WAYS_TO_WAIT).count_ones() > 1 {
        return Err(Code::INVALID_VALUE);
    }
    context.flags = flags & KEPT_FLAGS | MAP_HOST;
    Ok(Answer::done())
}
