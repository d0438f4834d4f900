//! The table.
//!
//! Sources. H200: what `cudaDeviceGetAttribute` said on one (driver 580.159). The others: NVIDIA's data sheets and
//! architecture white papers (H100 SXM5, A100 SXM4 80 GB, A10G, "Ada GPU Architecture", V100 SXM2 16 GB, T4); their memory is
//! the capacity on the data sheet, of which a real device keeps a few percent for itself. L4: its data sheet (58 multiprocessors,
//! 24 GB, 300 GB/s, 121 TFLOPS of dense f16), boost clock, bus and L2 as topcpu.net lists them. B200: what the driver said on one (pytorch/ao, pull request 4002: bus, memory clock, L2, multiprocessors, memory);
//! clock such that its 148 multiprocessors make the 75 TFLOPS of f32 of the data sheet. RTX PRO 6000: NVIDIA's announcement at GTC
//! 2025 (188 multiprocessors, 96 GB, 1,792 GB/s, 125 TFLOPS, which makes 2.6 GHz; 128 MB of L2). What of the L2 these may set aside was not found
//! out, so they offer nothing.
//!
//! Unified memory: the tuning guides of each architecture (128 KiB on Volta, 192 on A100, 128 on GA10x and Ada, 256 on Hopper and
//! B200, 128 on RTX PRO 6000; 96 on Turing). Halves of the L2: "NVIDIA A100 Tensor Core GPU Architecture", "A100 L2 Cache", and the same since
//! in its successors; that both keep copies is seen in what an H200 writes back (`docs/estimates.md`). Tensor cores: the dense f16
//! rates of the data sheets, divided by clock and multiprocessors.

use super::{Device, Limits};

const KIB: u32 = 1024;
const MIB: u32 = 1024 * KIB;
const GIB: u64 = 1 << 30;

#[rustfmt::skip]
const fn limits(
    capability: (u32, u32), threads: u32, blocks: u32, [unified_kib, shared_kib, optin_kib]: [u32; 3], single_to_double: u32, lanes: u32,
) -> Limits {
    let modern = capability.0 >= 8;
    Limits {
        capability, threads, blocks,
        unified: unified_kib * KIB,
        shared: shared_kib * KIB,
        shared_optin: optin_kib * KIB,
        shared_reserved: if modern { KIB } else { 0 },
        shared_unit: if modern { 128 } else { 256 },
        single_to_double, lanes,
    }
}

//                                capability threads blocks unified shared a block  64-bit  lanes
static VOLTA: Limits = limits((7, 0), 2048, 32, [128, 96, 96], 2, 64);
static TURING: Limits = limits((7, 5), 1024, 16, [96, 64, 64], 32, 64);
static AMPERE: Limits = limits((8, 0), 2048, 32, [192, 164, 163], 2, 64);
static AMPERE_GA10X: Limits = limits((8, 6), 1536, 16, [128, 100, 99], 64, 128);
static ADA: Limits = limits((8, 9), 1536, 24, [128, 100, 99], 64, 128);
static HOPPER: Limits = limits((9, 0), 2048, 32, [256, 228, 227], 2, 128);
static BLACKWELL: Limits = limits((10, 0), 2048, 32, [256, 228, 227], 2, 128);
static BLACKWELL_GB20X: Limits = limits((12, 0), 1536, 24, [128, 100, 99], 64, 128);

/// Every device that can be simulated, the newest first.
pub static DEVICES: [Device; 10] = [
    Device {
        name: "b200",
        product: "NVIDIA B200",
        capability: (10, 0),
        multiprocessors: 148,
        memory: 191_501_854_310,
        clock: 1_980_000,
        memory_clock: 3_996_000,
        bus_width: 7680,
        l2: 126 * MIB + 512 * KIB,
        l2_parts: 2,
        tensor: 4096,
        persisting_l2: 0,
        copy_engines: 4,
        ecc: true,
        limits: &BLACKWELL,
    },
    Device {
        name: "rtxpro6000",
        product: "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
        capability: (12, 0),
        multiprocessors: 188,
        memory: 96 * GIB,
        clock: 2_600_000,
        memory_clock: 14_000_000,
        bus_width: 512,
        l2: 128 * MIB,
        l2_parts: 1,
        tensor: 512,
        persisting_l2: 0,
        copy_engines: 2,
        ecc: true,
        limits: &BLACKWELL_GB20X,
    },
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
        l2_parts: 2,
        tensor: 2048,
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
        l2_parts: 2,
        tensor: 2048,
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
        l2_parts: 2,
        tensor: 1024,
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
        l2_parts: 1,
        tensor: 256,
        persisting_l2: 4_325_376,
        copy_engines: 2,
        ecc: true,
        limits: &AMPERE_GA10X,
    },
    Device {
        name: "l4",
        product: "NVIDIA L4",
        capability: (8, 9),
        multiprocessors: 58,
        memory: 24 * GIB,
        clock: 2_040_000,
        memory_clock: 6_251_000,
        bus_width: 192,
        l2: 48 * MIB,
        l2_parts: 1,
        tensor: 512,
        persisting_l2: 0,
        copy_engines: 2,
        ecc: true,
        limits: &ADA,
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
        l2_parts: 1,
        tensor: 256,
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
        l2_parts: 1,
        tensor: 512,
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
        l2_parts: 1,
        tensor: 512,
        persisting_l2: 0,
        copy_engines: 3,
        ecc: true,
        limits: &TURING,
    },
];
