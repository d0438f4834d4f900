//! The table.
//!
//! Each row says where its numbers are from (`sources`); the documents are in `sources.rs`. Memory is the capacity on the data sheet, of which a real
//! device keeps a few percent for itself, except where a driver's number was at hand.

use super::sources::*;
use super::{Device, Limits};

const KIB: u32 = 1024;
const MIB: u32 = 1024 * KIB;
const GIB: u64 = 1 << 30;

#[rustfmt::skip]
const fn limits(
    capability: (u32, u32), threads: u32, blocks: u32, [unified_kib, shared_kib, optin_kib]: [u32; 3], single_to_double: u32, lanes: u32,
    guide: &'static [Origin],
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
        sources: guide,
    }
}

/// The sources of a capability's limits, of which the size of the unified memory is in the guide of its architecture.
macro_rules! guide {
    ($guide:ident) => {
        &[
            from(
                &CAPABILITIES,
                "\"Technical Specifications per Compute Capability\"",
                &["capability", "threads", "blocks", "shared", "shared_optin"],
            ),
            from(
                &CAPABILITIES,
                "\"Arithmetic Instructions\", results a cycle and multiprocessor",
                &["single_to_double", "lanes"],
            ),
            from(&OCCUPANCY, "allocation of shared memory", &["shared_reserved", "shared_unit"]),
            from(&$guide, "\"Unified Shared Memory/L1/Texture Cache\"", &["unified"]),
        ]
    };
}

//                                capability threads blocks unified shared a block  64-bit  lanes
static VOLTA: Limits = limits((7, 0), 2048, 32, [128, 96, 96], 2, 64, guide!(VOLTA_GUIDE));
static TURING: Limits = limits((7, 5), 1024, 16, [96, 64, 64], 32, 64, guide!(TURING_GUIDE));
static AMPERE: Limits = limits((8, 0), 2048, 32, [192, 164, 163], 2, 64, guide!(AMPERE_GUIDE));
static AMPERE_GA10X: Limits = limits((8, 6), 1536, 16, [128, 100, 99], 64, 128, guide!(AMPERE_GUIDE));
static ADA: Limits = limits((8, 9), 1536, 24, [128, 100, 99], 64, 128, guide!(ADA_GUIDE));
static HOPPER: Limits = limits((9, 0), 2048, 32, [256, 228, 227], 2, 128, guide!(HOPPER_GUIDE));
static BLACKWELL: Limits = limits((10, 0), 2048, 32, [256, 228, 227], 2, 128, guide!(BLACKWELL_GUIDE));
static BLACKWELL_GB20X: Limits = limits((12, 0), 1536, 24, [128, 100, 99], 64, 128, guide!(BLACKWELL_GUIDE));

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
        sources: &[
            from(&CUDA_GPUS, "10.0", &["capability"]),
            from(
                &B200_QUERY,
                "7680 bits, 3996 MHz, 178.35 GiB, 126.5 MiB, 148, ECC",
                &["multiprocessors", "memory", "memory_clock", "bus_width", "l2", "ecc"],
            ),
            from(&B200_SHEET, "75 TFLOPS of f32 / (148 · 128 · 2)", &["clock"]),
            from(
                &B200_SHEET,
                "2.25 PFLOPS of dense f16 / (148 · 1.86 GHz · 2), to a power of two",
                &["tensor"],
            ),
            from(&BLACKWELL_GUIDE, "two dies, one L2 each", &["l2_parts"]),
            from(
                &NOT_PUBLISHED,
                "as in the other devices; nothing to set aside",
                &["copy_engines", "persisting_l2"],
            ),
        ],
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
        sources: &[
            from(&CUDA_GPUS, "12.0", &["capability"]),
            from(
                &RTXPRO_SHEET,
                "24,064 cores / 128; 96 GB with ECC; 512 bits; 1792 GB/s / (512 bits · 2)",
                &["multiprocessors", "memory", "memory_clock", "bus_width", "ecc"],
            ),
            from(&RTXPRO_SHEET, "125 TFLOPS of f32 / (188 · 128 · 2)", &["clock"]),
            from(
                &RTXPRO_SHEET,
                "4000 TOPS of sparse FP4, an eighth of it for dense f16, / (188 · 2.6 GHz · 2), to a power of two",
                &["tensor"],
            ),
            from(&RTXPRO_NEWS, "128 MB, one for all", &["l2", "l2_parts"]),
            from(
                &NOT_PUBLISHED,
                "as in the RTX 4090; nothing to set aside",
                &["copy_engines", "persisting_l2"],
            ),
        ],
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
        sources: &[
            from(
                &H200_QUERY,
                "as it said",
                &[
                    "capability",
                    "multiprocessors",
                    "memory",
                    "clock",
                    "memory_clock",
                    "bus_width",
                    "l2",
                    "persisting_l2",
                    "copy_engines",
                    "ecc",
                ],
            ),
            from(&H100_PAPER, "\"H100 SM Architecture\": 4 tensor cores of 512 multiply-adds", &["tensor"]),
            from(
                &A100_PAPER,
                "\"A100 L2 Cache\": two partitions; the H200 writes back as if so (below)",
                &["l2_parts"],
            ),
        ],
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
        sources: &[
            from(&CUDA_GPUS, "9.0", &["capability"]),
            from(
                &DEVICE_QUERY,
                "H100 80GB HBM3",
                &["multiprocessors", "clock", "memory_clock", "bus_width", "l2", "copy_engines", "ecc"],
            ),
            from(&H100_SHEET, "80 GB", &["memory"]),
            from(&H100_PAPER, "\"H100 SM Architecture\": 4 tensor cores of 512 multiply-adds", &["tensor"]),
            from(
                &A100_PAPER,
                "\"A100 L2 Cache\": two partitions; the H200 writes back as if so (below)",
                &["l2_parts"],
            ),
            from(&L2_RULE, "5/8 of 50 MiB, as on an H200", &["persisting_l2"]),
        ],
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
        sources: &[
            from(&CUDA_GPUS, "8.0", &["capability"]),
            from(
                &A100_PAPER,
                "Table 4: 108, 1410 MHz, 5120 bits, 40960 KB",
                &["multiprocessors", "clock", "bus_width", "l2"],
            ),
            from(&A100_PAPER, "\"A100 SM Architecture\": 4 tensor cores of 256 multiply-adds", &["tensor"]),
            from(&A100_PAPER, "\"A100 L2 Cache\": two partitions", &["l2_parts"]),
            from(&A100_SHEET, "80 GB; 2,039 GB/s / (5120 bits · 2)", &["memory", "memory_clock"]),
            from(&DEVICE_QUERY, "A100-SXM4-80GB", &["copy_engines", "ecc"]),
            from(&L2_RULE, "three quarters of 40 MiB, as the guide's example sets aside", &["persisting_l2"]),
        ],
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
        sources: &[
            from(&CUDA_GPUS, "8.6", &["capability"]),
            from(
                &A10_SHEET,
                "80, 24 GB with ECC, 1710 MHz, 600 GB/s of 384 bits",
                &["multiprocessors", "memory", "clock", "memory_clock", "bus_width", "ecc"],
            ),
            from(
                &A10_PAPER,
                "GA102: 6144 KB, one for all; 70 TFLOPS of dense f16 / (80 · 1.71 GHz · 2)",
                &["l2", "l2_parts", "tensor"],
            ),
            from(
                &NOT_PUBLISHED,
                "11/16 of the L2, as a test of another runtime has it of the RTX 4090",
                &["persisting_l2"],
            ),
            from(&NOT_PUBLISHED, "as in the other GA10x", &["copy_engines"]),
        ],
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
        sources: &[
            from(&CUDA_GPUS, "8.9", &["capability"]),
            from(
                &DEVICE_QUERY,
                "L4",
                &["multiprocessors", "clock", "memory_clock", "bus_width", "l2", "copy_engines", "ecc"],
            ),
            from(
                &L4_SHEET,
                "24 GB; 242 TFLOPS of sparse f16, half of it dense, / (58 · 2.04 GHz · 2)",
                &["memory", "tensor"],
            ),
            from(&ADA_PAPER, "one L2 for all", &["l2_parts"]),
            from(&NOT_PUBLISHED, "nothing to set aside", &["persisting_l2"]),
        ],
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
        sources: &[
            from(&CUDA_GPUS, "8.9", &["capability"]),
            from(
                &ADA_PAPER,
                "Appendix A, Table 2: 128, 24 GB, 2520 MHz, 384 bits of 21 Gbit/s, 73728 KB",
                &["multiprocessors", "memory", "clock", "memory_clock", "bus_width", "l2", "l2_parts"],
            ),
            from(
                &ADA_PAPER,
                "Appendix A, Table 2: 165.2 TFLOPS of dense f16 with f32 sums / (128 · 2.52 GHz · 2)",
                &["tensor"],
            ),
            from(&DEVICE_QUERY, "GeForce RTX 4090", &["copy_engines", "ecc"]),
            from(&NOT_PUBLISHED, "11/16 of the L2, as a test of another runtime has it", &["persisting_l2"]),
        ],
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
        copy_engines: 4,
        ecc: true,
        limits: &VOLTA,
        sources: &[
            from(&CUDA_GPUS, "7.0", &["capability"]),
            from(
                &V100_PAPER,
                "Table 1: 80, 16 GB, 1530 MHz, 4096 bits, 6144 KB",
                &["multiprocessors", "memory", "clock", "bus_width", "l2", "l2_parts"],
            ),
            from(&V100_PAPER, "\"Tensor Cores\": 8 of 64 multiply-adds", &["tensor"]),
            from(&V100_QUERY, "877 MHz; 4 (on other hosts 6)", &["memory_clock", "copy_engines", "ecc"]),
            from(&CAPABILITIES, "before 8.0, nothing can be set aside", &["persisting_l2"]),
        ],
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
        sources: &[
            from(&CUDA_GPUS, "7.5", &["capability"]),
            from(
                &T4_PAPER,
                "Appendix, Tesla T4: 40, 16 GB, 1590 MHz, 320 GB/s of 256 bits, 4096 KB",
                &["multiprocessors", "memory", "clock", "memory_clock", "bus_width", "l2", "l2_parts", "ecc"],
            ),
            from(&T4_PAPER, "8 tensor cores of 64 multiply-adds", &["tensor"]),
            from(&CAPABILITIES, "before 8.0, nothing can be set aside", &["persisting_l2"]),
            from(&NOT_PUBLISHED, "as in the other devices for data centres", &["copy_engines"]),
        ],
    },
];
