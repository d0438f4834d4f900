//! The smallest change of one resource that lets more warps be resident.

use super::{Limits, Occupancy, Usage, WARP, theoretical_occupancy};

/// A change of one resource, and what is resident then.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What the launch would ask for.
    pub usage: Usage,
    /// What would fit.
    pub occupancy: Occupancy,
    /// What was changed, in words: `at most 56 registers a thread (now 64)`.
    pub change: String,
}

impl Step {
    /// In words: `at most 56 registers a thread (now 64): 4 blocks, 50%`.
    pub fn label(&self) -> String {
        let blocks = self.occupancy.active_blocks;
        let blocks = if blocks == 1 { "1 block".to_owned() } else { format!("{blocks} blocks") };
        format!("{}: {blocks}, {:.0}%", self.change, self.occupancy.ratio() * 100.0)
    }
}

/// What would have to change for more warps to be resident: registers, shared memory, or, where neither does it alone, the size of the block. `None`
/// where all that fit are resident, and where no change of one of these does it.
pub fn step(limits: &Limits, usage: &Usage) -> Option<Step> {
    let now = theoretical_occupancy(limits, usage);
    if now.active_warps >= now.max_warps || usage.block == 0 {
        return None;
    }
    let better = |usage: Usage, change: String| {
        let occupancy = theoretical_occupancy(limits, &usage);
        (occupancy.active_warps > now.active_warps).then_some(Step { usage, occupancy, change })
    };
    let registers = || {
        (1..usage.registers).rev().find_map(|registers| {
            let change = format!("at most {registers} registers a thread (now {})", usage.registers);
            better(Usage { registers, ..*usage }, change)
        })
    };
    registers()
        .or_else(|| less_shared(limits, usage, &better))
        .or_else(|| other_block(limits, usage, &better))
}

/// The most shared memory with which more blocks fit. Blocks are limited by it in portions, so that a search over the number of blocks does.
fn less_shared(
    limits: &Limits,
    usage: &Usage,
    better: &dyn Fn(Usage, String) -> Option<Step>,
) -> Option<Step> {
    if usage.shared == 0 {
        return None;
    }
    let unit = u64::from(limits.shared_unit);
    let reserved = u64::from(limits.shared_reserved);
    (1..=u64::from(limits.blocks)).find_map(|blocks| {
        let each = u64::from(limits.shared) / blocks / unit * unit;
        let shared = each.checked_sub(reserved).filter(|shared| *shared < usage.shared)?;
        let change = format!("at most {shared} bytes of shared memory a block (now {})", usage.shared);
        better(Usage { shared, ..*usage }, change)
    })
}

/// The size of the block nearest to the present one with which more warps fit, the larger one of two that are as near.
fn other_block(
    limits: &Limits,
    usage: &Usage,
    better: &dyn Fn(Usage, String) -> Option<Step>,
) -> Option<Step> {
    let now = i64::from(usage.block);
    let mut sizes: Vec<u32> = (1..=limits.threads_per_block / WARP).map(|warps| warps * WARP).collect();
    sizes.sort_by_key(|size| ((i64::from(*size) - now).abs(), std::cmp::Reverse(*size)));
    sizes.into_iter().find_map(|block| {
        better(Usage { block, ..*usage }, format!("blocks of {block} threads (now {})", usage.block))
    })
}

#[cfg(test)]
mod tests {
    use super::super::limits;
    use super::*;
    use crate::architecture::Architecture;

    fn label(registers: u32, shared: u64, block: u32) -> Option<String> {
        let limits = limits(Architecture::new(9, 0)).unwrap();
        step(limits, &Usage { registers, shared, barriers: 1, block }).map(|step| step.label())
    }

    #[test]
    fn the_smallest_change_is_told() {
        assert_eq!(label(32, 0, 256), None, "all are resident");
        assert_eq!(
            label(64, 0, 256).as_deref(),
            Some("at most 48 registers a thread (now 64): 5 blocks, 62%")
        );
        assert_eq!(
            label(32, 60_000, 256).as_deref(),
            Some("at most 57344 bytes of shared memory a block (now 60000): 4 blocks, 50%")
        );
        assert_eq!(label(16, 0, 32).as_deref(), Some("blocks of 64 threads (now 32): 32 blocks, 100%"));
        assert_eq!(label(16, 0, 0), None);
    }

    #[test]
    fn what_is_told_holds_and_a_register_more_does_not() {
        let limits = limits(Architecture::new(9, 0)).unwrap();
        for registers in [40, 72, 128, 255] {
            for block in [64, 96, 256, 1024] {
                let usage = Usage { registers, shared: 0, barriers: 1, block };
                let now = theoretical_occupancy(limits, &usage);
                let Some(step) = step(limits, &usage) else { continue };
                assert!(theoretical_occupancy(limits, &step.usage).active_warps > now.active_warps);
                if step.usage.registers != registers {
                    let more = Usage { registers: step.usage.registers + 1, ..step.usage };
                    assert!(
                        theoretical_occupancy(limits, &more).active_warps <= now.active_warps,
                        "{step:?}"
                    );
                }
            }
        }
    }
}
