//! The table.
//!
//! Sources. H200: what `cudaDeviceGetAttribute` said on one (driver 580.159). The others: NVIDIA's data sheets and
//! architecture white papers (H100 SXM5, A100 SXM4 80 GB, A10G, "Ada GPU Architecture", V100 SXM2 16 GB, T4); their memory is
//! the capacity on the data sheet, of which a real device keeps a few percent for itself.

use super::{Device, Limits};

const KIB: u32 = 1024;
const MIB: u32 = 1024 * KIB;
const GIB: u64 = 1 << 30;

#[rustfmt::skip]
const fn limits(
    capability: (u32, u32), threads: u32, blocks: u32, shared_kib: u32, optin_kib: u32, single_to_double: u32, lanes: u32,
) -> Limits {
    let modern = capability.0 >= 8;
    Limits {
        capability, threads, blocks,
        shared: shared_kib * KIB,
        shared_optin: optin_kib * KIB,
        shared_reserved: if modern { KIB } else { 0 },
        shared_unit: if modern { 128 } else { 256 },
        single_to_double, lanes,
    }
}

//                             capability threads blocks shared a block  64-bit  lanes
static VOLTA: Limits = limits((7, 0), 2048, 32, 96, 96, 2, 64);
static TURING: Limits = limits((7, 5), 1024, 16, 64, 64, 32, 64);
static AMPERE: Limits = limits((8, 0), 2048, 32, 164, 163, 2, 64);
static AMPERE_GA10X: Limits = limits((8, 6), 1536, 16, 100, 99, 64, 128);
static ADA: Limits = limits((8, 9), 1536, 24, 100, 99, 64, 128);
static HOPPER: Limits = limits((9, 0), 2048, 32, 228, 227, 2, 128);

/// Every device that can be simulated, the newest first.
pub static DEVICES: [Device; 7] = [
    Device {
        name: "h200",
        product: "NVIDIA H200",
        capability: (9, 0),
        multiprocessors: 132,
        memory: 150_109_880_320,
        clock: 1_980_000,
        memory_clock: 3_201_000,
        bus_width: 6016,
        l2: 60 * MIB,
        persisting_l2: 39_321_600,
        copy_engines: 3,
        ecc: true,
        limits: &HOPPER,
    },
    Device {
        name: "h100",
        product: "NVIDIA H100 80GB HBM3",
        capability: (9, 0),
        multiprocessors: 132,
        memory: 80 * GIB,
        clock: 1_980_000,
        memory_clock: 2_619_000,
        bus_width: 5120,
        l2: 50 * MIB,
        persisting_l2: 32_768_000,
        copy_engines: 3,
        ecc: true,
        limits: &HOPPER,
    },
    Device {
        name: "a100",
        product: "NVIDIA A100-SXM4-80GB",
        capability: (8, 0),
        multiprocessors: 108,
        memory: 80 * GIB,
        clock: 1_410_000,
        memory_clock: 1_593_000,
        bus_width: 5120,
        l2: 40 * MIB,
        persisting_l2: 30 * MIB,
        copy_engines: 3,
        ecc: true,
        limits: &AMPERE,
    },
    Device {
        name: "a10g",
        product: "NVIDIA A10G",
        capability: (8, 6),
        multiprocessors: 80,
        memory: 24 * GIB,
        clock: 1_710_000,
        memory_clock: 6_251_000,
        bus_width: 384,
        l2: 6 * MIB,
        persisting_l2: 4_325_376,
        copy_engines: 2,
        ecc: true,
        limits: &AMPERE_GA10X,
    },
    Device {
        name: "rtx4090",
        product: "NVIDIA GeForce RTX 4090",
        capability: (8, 9),
        multiprocessors: 128,
        memory: 24 * GIB,
        clock: 2_520_000,
        memory_clock: 10_501_000,
        bus_width: 384,
        l2: 72 * MIB,
        persisting_l2: 51_904_512,
        copy_engines: 2,
        ecc: false,
        limits: &ADA,
    },
    Device {
        name: "v100",
        product: "Tesla V100-SXM2-16GB",
        capability: (7, 0),
        multiprocessors: 80,
        memory: 16 * GIB,
        clock: 1_530_000,
        memory_clock: 877_000,
        bus_width: 4096,
        l2: 6 * MIB,
        persisting_l2: 0,
        copy_engines: 5,
        ecc: true,
        limits: &VOLTA,
    },
    Device {
        name: "t4",
        product: "Tesla T4",
        capability: (7, 5),
        multiprocessors: 40,
        memory: 16 * GIB,
        clock: 1_590_000,
        memory_clock: 5_001_000,
        bus_width: 256,
        l2: 4 * MIB,
        persisting_l2: 0,
        copy_engines: 3,
        ecc: true,
        limits: &TURING,
    },
];
