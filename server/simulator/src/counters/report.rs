//! Counters as they leave the simulator: by instruction, by source line.

use std::collections::BTreeMap;

use crate::code::SourcePlace;
use crate::counters::{Count, InstructionClass};

/// Counters of one PTX instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionCounters {
    /// Line of the PTX text, from 1.
    pub ptx_line: u32,
    /// Source place, where the PTX names it.
    pub place: Option<SourcePlace>,
    /// Opcode with its modifiers: `ld.global.f32`.
    pub opcode: String,
    /// What was counted.
    pub count: Count,
}

impl InstructionCounters {
    /// What the instruction is for.
    #[must_use]
    pub fn class(&self) -> InstructionClass {
        InstructionClass::of(&self.opcode)
    }
}

/// Counters of one source line: the sums over its instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineCounters {
    /// Path as the PTX names it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// What was counted.
    pub count: Count,
    /// Branches that warps executed; [`Count::divergent`] of them parted lanes.
    pub branches: u64,
}

/// Counters of one class of instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassCounters {
    /// The class.
    pub class: InstructionClass,
    /// Instructions in the PTX, not in what ran.
    pub instructions: u64,
    /// What was counted.
    pub count: Count,
}

/// Counters of one launch; no instructions where they were off.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LaunchCounters {
    /// In the order of the code.
    pub instructions: Vec<InstructionCounters>,
    /// Blocks that ran.
    pub blocks: u64,
    /// Blocks of the grid; more than [`blocks`](Self::blocks) where a share was simulated.
    pub grid_blocks: u64,
    /// Instructions that warps executed, counted whether counters are on or not.
    pub warp_instructions: u64,
    /// Where caches were modelled: the most updates by atomics of one line of 128 bytes.
    pub hottest_line: Option<u64>,
}

impl LaunchCounters {
    /// Sums by source line, in the order of file and line. Instructions of inlined functions count for the line of the
    /// function itself.
    #[must_use]
    pub fn by_line(&self) -> Vec<LineCounters> {
        let mut lines: BTreeMap<(&str, u32), (Count, u64)> = BTreeMap::new();
        for instruction in &self.instructions {
            if let Some(place) = &instruction.place {
                let (count, branches) = lines.entry((&place.file, place.line)).or_default();
                count.add(&instruction.count);
                let is_branch =
                    instruction.opcode.starts_with("bra") || instruction.opcode.starts_with("brx");
                *branches += if is_branch { instruction.count.warps } else { 0 };
            }
        }
        let line = |((file, line), (count, branches)): ((&str, u32), (Count, u64))| LineCounters {
            file: file.to_owned(),
            line,
            count,
            branches,
        };
        lines.into_iter().map(line).collect()
    }

    /// Sums by class of instruction, in the order of [`InstructionClass::ALL`]; classes that the kernel lacks are left out.
    #[must_use]
    pub fn by_class(&self) -> Vec<ClassCounters> {
        let of = |class| {
            let mut sum = ClassCounters { class, instructions: 0, count: Count::default() };
            for instruction in self.instructions.iter().filter(|i| i.class() == class) {
                sum.instructions += 1;
                sum.count.add(&instruction.count);
            }
            sum
        };
        InstructionClass::ALL.into_iter().map(of).filter(|sum| sum.instructions > 0).collect()
    }

    /// The sum over all instructions.
    #[must_use]
    pub fn total(&self) -> Count {
        let mut total = Count::default();
        self.instructions.iter().for_each(|instruction| total.add(&instruction.count));
        total
    }
}
