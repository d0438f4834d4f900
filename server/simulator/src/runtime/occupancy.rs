//! How many blocks a multiprocessor holds, as programs ask.

use super::context::Context;
use super::engine::KernelShape;
use super::errors::Code;
use super::launch::{allowed_shared, kernel};
use super::protocol::{Answer, Call};
use crate::device::Device;

/// Resident blocks of a multiprocessor, with `threads` threads and `dynamic` bytes of dynamic shared memory a block.
pub(super) fn active_blocks(device: &Device, shape: &KernelShape, threads: u32, dynamic: u64) -> u32 {
    device.resident(shape.registers, threads, shape.shared + dynamic)
}

pub(super) fn blocks(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let (function, shape) = kernel(context, call.argument(0))?;
    let (threads, dynamic) = (call.small(1), call.argument(2));
    if threads.cast_signed() <= 0 {
        return Err(Code::INVALID_VALUE);
    }
    let device = context.device();
    let all = dynamic.saturating_add(shape.shared);
    let fits = all <= allowed_shared(device, &function, &shape);
    let blocks = if fits { active_blocks(device, &shape, threads, dynamic) } else { 0 };
    Ok(Answer::results([u64::from(blocks)]))
}

/// The most dynamic shared memory with which `blocks` blocks stay resident, in bytes.
pub(super) fn shared(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let (function, shape) = kernel(context, call.argument(0))?;
    let (blocks, threads) = (call.small(1), call.small(2));
    let device = context.device();
    if blocks == 0 || active_blocks(device, &shape, threads, 0) < blocks {
        return Err(Code::INVALID_VALUE);
    }
    let limits = device.limits;
    let each = limits.shared / blocks / limits.shared_unit * limits.shared_unit;
    // An H200 leaves out what the system takes of each block.
    let free = u64::from(each).min(allowed_shared(device, &function, &shape));
    Ok(Answer::results([free.saturating_sub(shape.shared)]))
}

pub(super) fn clusters(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let (function, shape) = kernel(context, call.argument(0))?;
    let device = context.device();
    let cluster = call.argument(3);
    if device.capability.0 < 9 || !(1..=u64::from(function.max_cluster())).contains(&cluster) {
        return Err(Code::INVALID_CLUSTER_SIZE);
    }
    let blocks = active_blocks(device, &shape, call.small(1), call.argument(2)) * device.multiprocessors;
    Ok(Answer::results([u64::from(blocks) / cluster]))
}

pub(super) fn cluster_size(context: &mut Context, call: &Call) -> Result<Answer, Code> {
    let (function, _) = kernel(context, call.argument(0))?;
    if context.device().capability.0 < 9 {
        return Err(Code::NOT_SUPPORTED);
    }
    Ok(Answer::results([u64::from(function.max_cluster())]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(registers: u32, shared: u64) -> KernelShape {
        let (parameters, local, constant, max_threads, arch) = (Vec::new(), 0, 0, None, 90);
        KernelShape { parameters, parameter_bytes: 0, shared, local, constant, registers, max_threads, arch }
    }

    /// Against what NVIDIA's `cuda_occupancy.h` computes.
    #[test]
    fn agrees_with_the_calculator_of_the_toolkit() {
        let table = include_str!("../../tests/occupancy.txt");
        let mut compared = 0;
        let mut different = Vec::new();
        for line in table.lines().filter(|line| !line.starts_with('#')) {
            let numbers: Vec<u32> = line.split(' ').map(|number| number.parse().unwrap()).collect();
            let [arch, registers, shared, barriers, threads, blocks, _] = numbers[..] else {
                panic!("{line}")
            };
            let device = crate::device::DEVICES.iter().find(|device| device.arch() == arch);
            let Some(device) = device.filter(|_| barriers <= 1) else { continue };
            let found = active_blocks(device, &shape(registers, shared.into()), threads, 0);
            if found != blocks {
                different.push(format!("{line}: {found}"));
            }
            compared += 1;
        }
        assert!(compared > 100, "{compared}");
        assert!(different.is_empty(), "{} of {compared} differ: {:#?}", different.len(), different);
    }
}
