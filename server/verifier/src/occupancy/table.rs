//! What a multiprocessor of each architecture holds.
//!
//! Sources: "Technical Specifications per Compute Capability" in the CUDA C++ Programming Guide 13 (threads, warps, registers,
//! shared memory), `cuda_occupancy.h` version 12.1 of CUDA 13.5 (blocks, portions, partitions, barriers), and for 8.8, which the
//! guide lacks, `cuda/__device/arch_traits.h` of the CCCL in CUDA 13.5, where it is 8.6 by another name.
//!
//! Left out of what nvcc 13.5 takes: 10.7, for which these two headers differ (228 and 328 KiB of shared memory). Left out of what
//! nvcc 12.9 takes: 5.0 to 6.2, which CUDA 13 dropped.

use super::Limits;
use crate::architecture::Architecture;

const KIB: u32 = 1024;

/// What differs between architectures, in the order of the columns.
struct Row {
    capability: (u16, u16),
    threads: u32,
    blocks: u32,
    shared_kib: u32,
    shared_per_block_kib: u32,
    barriers_per_block: Option<u32>,
}

const fn row(
    capability: (u16, u16),
    threads: u32,
    blocks: u32,
    shared_kib: u32,
    shared_per_block_kib: u32,
    barriers_per_block: Option<u32>,
) -> Row {
    Row { capability, threads, blocks, shared_kib, shared_per_block_kib, barriers_per_block }
}

#[rustfmt::skip]
const ROWS: [Row; 15] = [
    //  capability  threads  blocks  shared  a block  barriers
    row((7, 0),     2048,    32,      96,     96,     None),
    row((7, 2),     2048,    32,      96,     96,     None),
    row((7, 5),     1024,    16,      64,     64,     None),
    row((8, 0),     2048,    32,     164,    163,     None),
    row((8, 6),     1536,    16,     100,     99,     None),
    row((8, 7),     1536,    16,     164,    163,     None),
    row((8, 8),     1536,    16,     100,     99,     None),
    row((8, 9),     1536,    24,     100,     99,     None),
    row((9, 0),     2048,    32,     228,    227,     Some(2)),
    row((10, 0),    2048,    32,     228,    227,     Some(2)),
    // Thor: `sm_101` until CUDA 12.9, `sm_110` from CUDA 13.
    row((10, 1),    1536,    24,     228,    227,     Some(1)),
    row((10, 3),    2048,    32,     228,    227,     Some(1)),
    row((11, 0),    1536,    24,     228,    227,     Some(1)),
    row((12, 0),    1536,    24,     100,     99,     Some(1)),
    row((12, 1),    1536,    24,     100,     99,     Some(1)),
];

const fn spread(row: &Row) -> Limits {
    let (major, minor) = row.capability;
    Limits {
        architecture: Architecture::new(major, minor),
        threads_per_block: 1024,
        threads: row.threads,
        blocks: row.blocks,
        registers: 64 * KIB,
        register_unit: 256,
        // The encoding has room for 256, of which one names no register.
        registers_per_thread: 255,
        partitions: 4,
        shared: row.shared_kib * KIB,
        shared_per_block: row.shared_per_block_kib * KIB,
        // CUDA 11 began to keep one KiB of each block for itself, on devices from 8.0.
        shared_reserved: if major >= 8 { KIB } else { 0 },
        shared_unit: if major >= 8 { 128 } else { 256 },
        barriers_per_block: row.barriers_per_block,
    }
}

/// Every architecture that is known, in rising order.
pub(super) static LIMITS: [Limits; ROWS.len()] = {
    let mut limits = [spread(&ROWS[0]); ROWS.len()];
    let mut index = 0;
    while index < ROWS.len() {
        limits[index] = spread(&ROWS[index]);
        index += 1;
    }
    limits
};
