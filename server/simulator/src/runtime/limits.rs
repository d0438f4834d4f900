//! `cudaDeviceSetLimit`, and flags of the device.

use std::collections::HashMap;

use super::context::Context;
use super::errors::Code;
use super::protocol::{Answer, Call};

/// `cudaLimit` with the values that a device starts with.
///
/// Source: what `cudaDeviceGetLimit` returns on an H200 under driver 580 (stack, FIFO, heap, depth, launches,
/// granularity, set-aside L2).
const DEFAULTS: [(u32, u64); 7] =
    [(0, 1024), (1, 1 << 20), (2, 8 << 20), (3, 2), (4, 2048), (5, 128), (6, 0)];

/// The limits of a context.
pub(super) struct Limits(HashMap<u32, u64>);

impl Limits {
    pub(super) fn new() -> Self {
        Self(DEFAULTS.into())
    }
}

pub(super) fn get(context: &Context, call: &Call) -> Result<Answer, Code> {
    let value = context.limits.0.get(&call.small(0)).ok_or(Code(215))?;
    Ok(Answer::results([*value]))
}

pub(super) fn set(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let value = context.limits.0.get_mut(&call.small(0)).ok_or(Code(215))?;
    *value = call.argument(1);
    Ok(Answer::done())
}

pub(super) fn check_device(call: &Call) -> Result<Answer, Code> {
    if call.argument(0) == 0 { Ok(Answer::results([0])) } else { Err(Code::INVALID_DEVICE) }
}

/// Scheduling (bits 0 to 2), mapping of host memory, resizing of local memory, synchronous copies.
const KNOWN_FLAGS: u32 = 0x9F;

pub(super) fn set_flags(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let flags = call.small(0);
    if flags & !KNOWN_FLAGS != 0 {
        return Err(Code::INVALID_VALUE);
    }
    context.flags = flags;
    Ok(Answer::done())
}
