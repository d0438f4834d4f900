//! Memory pools. They hold nothing back: what is freed is free.

use std::collections::HashMap;

use super::context::Context;
use super::errors::Code;
use super::ownership::Origin;
use super::protocol::{Answer, Call};
use super::work::Work;
use crate::memory::Kind;

/// The handle of the device's own pool.
const DEFAULT: u64 = 0x800;

/// What a pool takes from the device at once, in bytes: measured on an H200.
const RESERVE: u64 = 32 << 20;

/// What a pool counts and was told.
#[derive(Debug, Default, Clone)]
struct Pool {
    attributes: HashMap<u32, u64>,
    used: u64,
    most_used: u64,
}

/// All pools.
#[derive(Debug)]
pub(super) struct Pools {
    pools: HashMap<u64, Pool>,
    current: u64,
}

/// `cudaMemPoolAttr`.
const REUSE: std::ops::RangeInclusive<u32> = 1..=3;
const RELEASE_THRESHOLD: u32 = 4;
const RESERVED: u32 = 5;
const MOST_RESERVED: u32 = 6;
const USED: u32 = 7;
const MOST_USED: u32 = 8;

impl Pools {
    pub(super) fn new() -> Self {
        Self { pools: HashMap::from([(DEFAULT, Pool::default())]), current: DEFAULT }
    }
}

pub(super) fn malloc(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let (size, stream) = (call.argument(0), call.argument(2));
    let pool = if call.argument(1) == 0 { context.pools.current } else { call.argument(1) };
    if !context.pools.pools.contains_key(&pool) {
        return Err(Code::INVALID_VALUE);
    }
    context.stream(stream)?;
    if size == 0 {
        return Ok(Answer::results([0]));
    }
    if context.is_capturing(stream)? {
        let start = context.allocate(size, Kind::Device, Origin::Graph)?;
        context.capture_work(stream, &Work::Allocate(start))?;
        return Ok(Answer::results([start]));
    }
    let start = context.allocate(size, Kind::Device, Origin::Pool(pool))?;
    if let Some(pool) = context.pools.pools.get_mut(&pool) {
        pool.used += size;
        pool.most_used = pool.most_used.max(pool.used);
    }
    Ok(Answer::results([start]))
}

pub(super) fn free(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let (start, stream) = (call.argument(0), call.argument(1));
    if context.capture_work(stream, &Work::Free(start))?.is_some() || start == 0 {
        return Ok(Answer::done());
    }
    let made = context.ownership.made.get(&start).copied();
    if matches!(made, Some((Origin::Managed, _))) {
        return Err(Code::NOT_SUPPORTED);
    }
    let actions = context.release(start, Some(stream), |origin| !matches!(origin, Origin::Host(_)))?;
    if let Some((Origin::Pool(pool), size)) = made
        && let Some(pool) = context.pools.pools.get_mut(&pool)
    {
        pool.used = pool.used.saturating_sub(size);
    }
    Ok(Answer::done().with(actions))
}

pub(super) fn create(context: &mut Context) -> Answer {
    let handle = context.handle();
    context.pools.pools.insert(handle, Pool::default());
    Answer::results([handle])
}

pub(super) fn destroy(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let handle = call.argument(0);
    if handle == DEFAULT || context.pools.pools.remove(&handle).is_none() {
        return Err(Code::INVALID_VALUE);
    }
    if context.pools.current == handle {
        context.pools.current = DEFAULT;
    }
    Ok(Answer::done())
}

pub(super) fn of_device(context: &Context, call: &Call) -> Result<Answer, Code> {
    if call.argument(0) != 0 {
        return Err(Code::INVALID_DEVICE);
    }
    let current = call.argument(1) != 0;
    Ok(Answer::results([if current { context.pools.current } else { DEFAULT }]))
}

pub(super) fn set(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    if call.argument(0) != 0 || !context.pools.pools.contains_key(&call.argument(1)) {
        return Err(Code::INVALID_VALUE);
    }
    context.pools.current = call.argument(1);
    Ok(Answer::done())
}

pub(super) fn get(context: &Context, call: &Call) -> Result<Answer, Code> {
    let pool = context.pools.pools.get(&call.argument(0)).ok_or(Code::INVALID_VALUE)?;
    let attribute = call.small(1);
    let value = match attribute {
        USED => pool.used,
        MOST_USED => pool.most_used,
        RESERVED => pool.used.next_multiple_of(RESERVE),
        MOST_RESERVED => pool.most_used.next_multiple_of(RESERVE),
        RELEASE_THRESHOLD => pool.attributes.get(&attribute).copied().unwrap_or(0),
        _ if REUSE.contains(&attribute) => pool.attributes.get(&attribute).copied().unwrap_or(1),
        _ => return Err(Code::INVALID_VALUE),
    };
    Ok(Answer::results([value]))
}

pub(super) fn set_attribute(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let pool = context.pools.pools.get_mut(&call.argument(0)).ok_or(Code::INVALID_VALUE)?;
    let (attribute, value) = (call.small(1), call.argument(2));
    match attribute {
        RELEASE_THRESHOLD => {
            pool.attributes.insert(attribute, value);
        }
        _ if REUSE.contains(&attribute) => {
            pool.attributes.insert(attribute, value);
        }
        // The high marks may be set back to what is in use, with 0.
        MOST_USED | MOST_RESERVED if value == 0 => pool.most_used = pool.used,
        _ => return Err(Code::INVALID_VALUE),
    }
    Ok(Answer::done())
}
