//! Launches: what is refused as a device would, and what is handed on.

use std::collections::HashSet;
use std::sync::Arc;

use super::context::Context;
use super::engine::KernelShape;
use super::errors::Code;
use super::modules::Function;
use super::occupancy;
use super::protocol::{Answer, Call};
use super::work::{KernelWork, Work};
use crate::checks::DefectKind;
use crate::device::{Device, MAX_BLOCK, MAX_GRID, MAX_THREADS, REGISTERS, SHARED_PER_BLOCK};

/// The largest cluster that every device with clusters has.
/// Source: CUDA C++ Programming Guide, "Thread Block Clusters": "a maximum of 8 thread blocks in a cluster is supported as a
/// portable cluster size".
pub(super) const MAX_CLUSTER: u32 = 8;
/// The largest that a kernel may ask for on Hopper (`cudaFuncAttributeNonPortableClusterSizeAllowed`), as an H200 says.
pub(super) const MAX_LARGE_CLUSTER: u32 = 16;

/// The kernel of a host function, linked.
pub(super) fn kernel(context: &mut Context, host: u64) -> Result<(Function, KernelShape), Code> {
    let shared = Arc::clone(&context.shared);
    context.modules.kernel(host, &shared)
}

pub(super) fn parameters(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let (_, shape) = kernel(context, call.argument(0))?;
    let blob = shape.parameters.iter().flat_map(|&(offset, size)| [offset, size]).flat_map(u64::to_le_bytes);
    let results = vec![shape.parameters.len() as u64, shape.parameter_bytes];
    Ok(Answer { blob: blob.collect(), ..Answer::results(results) })
}

/// Three numbers of a call.
fn triple(call: &Call, first: usize) -> [u32; 3] {
    [call.small(first), call.small(first + 1), call.small(first + 2)]
}

pub(super) fn launch(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let work = KernelWork {
        function: call.argument(0),
        grid: triple(call, 1),
        block: triple(call, 4),
        dynamic_shared: call.argument(7),
        cooperative: call.argument(9) != 0,
        cluster: triple(call, 10),
        parameters: call.blob.clone(),
    };
    let stream = call.argument(8);
    if let Err(code) = validate(context, &work) {
        blame(context, &work, code);
        // What the driver refuses, not the runtime, spoils a capture.
        let driver = [Code::INVALID_VALUE, Code::COOPERATIVE_TOO_LARGE, Code::INVALID_CLUSTER_SIZE];
        if driver.contains(&code)
            && let Some((capture, _)) = context.stream(stream)?.capture
        {
            context.streams.invalidate(&HashSet::from([capture]));
        }
        return Err(code);
    }
    if context.capture_work(stream, &Work::Kernel(Box::new(work.clone())))?.is_some() {
        return Ok(Answer::done());
    }
    context.keep_short()?;
    context.issue_work(stream, Work::Kernel(Box::new(work)))?;
    context.block_if_asked(stream)
}

/// Writes a refused launch down.
fn blame(context: &Context, work: &KernelWork, code: Code) {
    let Ok(function) = context.modules.function(work.function) else { return };
    let message = format!(
        "a launch of {:?} blocks of {:?} threads with {} bytes of dynamic shared memory is refused: {}",
        work.grid,
        work.block,
        work.dynamic_shared,
        code.name()
    );
    context.shared.report().wrong_call(DefectKind::InvalidLaunch, &function.name, message);
}

/// Refuses what a device refuses.
pub(super) fn validate(context: &mut Context, work: &KernelWork) -> Result<(), Code> {
    let device = context.device();
    check_shape(work.grid, work.block).map_err(|()| context.out_of_bounds())?;
    let (function, shape) = kernel(context, work.function)?;
    let threads = work.block.iter().product::<u32>();
    if shape.max_threads.is_some_and(|most| threads > most) {
        return Err(Code::INVALID_VALUE);
    }
    check_shared(device, &function, &shape, work.dynamic_shared)?;
    check_cluster(device, &function, work)?;
    if work.cooperative {
        let resident = occupancy::active_blocks(device, &shape, threads, work.dynamic_shared);
        let blocks = work.grid.iter().map(|&blocks| u64::from(blocks)).product::<u64>();
        if blocks > u64::from(resident) * u64::from(device.multiprocessors) {
            return Err(Code::COOPERATIVE_TOO_LARGE);
        }
    }
    Ok(())
}

fn check_shape(grid: [u32; 3], block: [u32; 3]) -> Result<(), ()> {
    let inside = |sizes: [u32; 3], most: [u32; 3]| {
        sizes.iter().zip(most).all(|(&size, most)| size > 0 && size <= most)
    };
    let threads = block.iter().fold(1, |all: u64, &size| all.saturating_mul(size.into()));
    if inside(grid, MAX_GRID) && inside(block, MAX_BLOCK) && threads <= u64::from(MAX_THREADS) {
        Ok(())
    } else {
        Err(())
    }
}

/// The most shared memory, static and dynamic, that a block of a kernel may have, in bytes.
pub(super) fn allowed_shared(device: &Device, function: &Function, shape: &KernelShape) -> u64 {
    let asked = function.max_dynamic_shared;
    let allowed = asked.map_or(u64::from(SHARED_PER_BLOCK), |asked| u64::from(asked) + shape.shared);
    allowed.min(u64::from(device.limits.shared_optin))
}

fn check_shared(device: &Device, function: &Function, shape: &KernelShape, dynamic: u64) -> Result<(), Code> {
    let fits =
        dynamic.checked_add(shape.shared).is_some_and(|all| all <= allowed_shared(device, function, shape));
    if fits { Ok(()) } else { Err(Code::INVALID_VALUE) }
}

fn check_cluster(device: &Device, function: &Function, work: &KernelWork) -> Result<(), Code> {
    if work.cluster == [0; 3] || work.cluster == [1; 3] {
        return Ok(());
    }
    if device.capability.0 < 9 {
        return Err(Code::NOT_SUPPORTED);
    }
    let blocks = work.cluster.iter().fold(1, |all: u64, &size| all.saturating_mul(size.into()));
    if blocks == 0 || blocks > u64::from(function.max_cluster()) {
        return Err(Code::INVALID_CLUSTER_SIZE);
    }
    let divides = work.grid.iter().zip(work.cluster).all(|(blocks, size)| blocks % size == 0);
    if divides { Ok(()) } else { Err(Code::INVALID_CLUSTER_SIZE) }
}

pub(super) fn check(context: &Context, call: &Call) -> Result<Answer, Code> {
    context.modules.function(call.argument(0)).map(|_| Answer::done())
}

pub(super) fn name(context: &Context, call: &Call) -> Result<Answer, Code> {
    let function = context.modules.function(call.argument(0))?;
    let blob = function.name.bytes().chain([0]).collect();
    Ok(Answer { blob, ..Answer::done() })
}

pub(super) fn attributes(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let (function, shape) = kernel(context, call.argument(0))?;
    let device = context.device();
    let dynamic = function
        .max_dynamic_shared
        .map_or_else(|| u64::from(SHARED_PER_BLOCK).saturating_sub(shape.shared), u64::from);
    let by_registers = REGISTERS / shape.registers.max(1) / crate::device::WARP * crate::device::WARP;
    let threads = shape.max_threads.unwrap_or(MAX_THREADS).min(by_registers.min(MAX_THREADS));
    let carveout = i64::from(function.carveout).cast_unsigned();
    Ok(Answer::results(vec![
        shape.shared,
        shape.constant,
        shape.local,
        u64::from(threads),
        u64::from(shape.registers),
        u64::from(shape.arch),
        u64::from(device.arch()),
        dynamic,
        carveout,
    ]))
}

/// `cudaFuncAttribute`.
const MAX_DYNAMIC_SHARED: u32 = 8;
const CARVEOUT: u32 = 9;
const LARGE_CLUSTER: u32 = 14;

pub(super) fn set_attribute(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let (_, shape) = kernel(context, call.argument(0))?;
    let most = u64::from(context.device().limits.shared_optin);
    let function = context.modules.function_mut(call.argument(0))?;
    let value = call.small(2);
    match call.small(1) {
        MAX_DYNAMIC_SHARED if u64::from(value) + shape.shared <= most => {
            function.max_dynamic_shared = Some(value)
        }
        CARVEOUT if (-1..=100).contains(&value.cast_signed()) => function.carveout = value.cast_signed(),
        LARGE_CLUSTER => function.large_cluster = value != 0,
        // Clusters: the launch says what is needed.
        11..=15 => {}
        _ => return Err(Code::INVALID_VALUE),
    }
    Ok(Answer::done())
}
