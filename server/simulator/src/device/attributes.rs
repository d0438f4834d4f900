//! `cudaDeviceGetAttribute`, by the numbers of `cudaDeviceAttr`.
//!
//! Constants are what an H200 says; textures and surfaces are the same on every device of the table ("Technical
//! Specifications per Compute Capability").

use super::{CONSTANT, Device, MAX_BLOCK, MAX_GRID, MAX_THREADS, REGISTERS, SHARED_PER_BLOCK, WARP};

/// Where a simulated device claims to be: where the H200 was.
const PCI_BUS: u32 = 0;
const PCI_DEVICE: u32 = 6;

/// The value of an attribute, or `None` for a number that is none.
#[must_use]
#[rustfmt::skip]
pub fn attribute(device: &Device, number: u32) -> Option<u32> {
    let (limits, hopper) = (device.limits, device.capability.0 >= 9);
    Some(match number {
        1 => MAX_THREADS, // MaxThreadsPerBlock
        2 => MAX_BLOCK[0], // MaxBlockDimX
        3 => MAX_BLOCK[1], // MaxBlockDimY
        4 => MAX_BLOCK[2], // MaxBlockDimZ
        5 => MAX_GRID[0], // MaxGridDimX
        6 => MAX_GRID[1], // MaxGridDimY
        7 => MAX_GRID[2], // MaxGridDimZ
        8 => SHARED_PER_BLOCK, // MaxSharedMemoryPerBlock
        9 => CONSTANT, // TotalConstantMemory
        10 => WARP, // WarpSize
        11 => 0x7FFF_FFFF, // MaxPitch
        12 => REGISTERS, // MaxRegistersPerBlock
        13 => device.clock, // ClockRate
        14 => 512, // TextureAlignment
        15 => 1, // GpuOverlap
        16 => device.multiprocessors, // MultiProcessorCount
        17 => 0, // KernelExecTimeout
        18 => 0, // Integrated
        19 => 1, // CanMapHostMemory
        20 => 0, // ComputeMode
        21 => 131_072, // MaxTexture1DWidth
        22 => 131_072, // MaxTexture2DWidth
        23 => 65_536, // MaxTexture2DHeight
        24 => 16_384, // MaxTexture3DWidth
        25 => 16_384, // MaxTexture3DHeight
        26 => 16_384, // MaxTexture3DDepth
        27 => 32_768, // MaxTexture2DLayeredWidth
        28 => 32_768, // MaxTexture2DLayeredHeight
        29 => 2_048, // MaxTexture2DLayeredLayers
        30 => 512, // SurfaceAlignment
        31 => 1, // ConcurrentKernels
        32 => u32::from(device.ecc), // EccEnabled
        33 => PCI_BUS, // PciBusId
        34 => PCI_DEVICE, // PciDeviceId
        35 => 0, // TccDriver
        36 => device.memory_clock, // MemoryClockRate
        37 => device.bus_width, // GlobalMemoryBusWidth
        38 => device.l2, // L2CacheSize
        39 => limits.threads, // MaxThreadsPerMultiProcessor
        40 => device.copy_engines, // AsyncEngineCount
        41 => 1, // UnifiedAddressing
        42 => 32_768, // MaxTexture1DLayeredWidth
        43 => 2_048, // MaxTexture1DLayeredLayers
        45 => 32_768, // MaxTexture2DGatherWidth
        46 => 32_768, // MaxTexture2DGatherHeight
        47 => 8_192, // MaxTexture3DWidthAlt
        48 => 8_192, // MaxTexture3DHeightAlt
        49 => 32_768, // MaxTexture3DDepthAlt
        50 => 0, // PciDomainId
        51 => 32, // TexturePitchAlignment
        52 => 32_768, // MaxTextureCubemapWidth
        53 => 32_768, // MaxTextureCubemapLayeredWidth
        54 => 2_046, // MaxTextureCubemapLayeredLayers
        55 => 32_768, // MaxSurface1DWidth
        56 => 131_072, // MaxSurface2DWidth
        57 => 65_536, // MaxSurface2DHeight
        58 => 16_384, // MaxSurface3DWidth
        59 => 16_384, // MaxSurface3DHeight
        60 => 16_384, // MaxSurface3DDepth
        61 => 32_768, // MaxSurface1DLayeredWidth
        62 => 2_048, // MaxSurface1DLayeredLayers
        63 => 32_768, // MaxSurface2DLayeredWidth
        64 => 32_768, // MaxSurface2DLayeredHeight
        65 => 2_048, // MaxSurface2DLayeredLayers
        66 => 32_768, // MaxSurfaceCubemapWidth
        67 => 32_768, // MaxSurfaceCubemapLayeredWidth
        68 => 2_046, // MaxSurfaceCubemapLayeredLayers
        69 => 268_435_456, // MaxTexture1DLinearWidth
        70 => 131_072, // MaxTexture2DLinearWidth
        71 => 65_000, // MaxTexture2DLinearHeight
        72 => 2_097_120, // MaxTexture2DLinearPitch
        73 => 32_768, // MaxTexture2DMipmappedWidth
        74 => 32_768, // MaxTexture2DMipmappedHeight
        75 => device.capability.0, // ComputeCapabilityMajor
        76 => device.capability.1, // ComputeCapabilityMinor
        77 => 32_768, // MaxTexture1DMipmappedWidth
        78 => 1, // StreamPrioritiesSupported
        79 => 1, // GlobalL1CacheSupported
        80 => 1, // LocalL1CacheSupported
        81 => limits.shared, // MaxSharedMemoryPerMultiprocessor
        82 => REGISTERS, // MaxRegistersPerMultiprocessor
        83 => 1, // ManagedMemory
        84 => 0, // IsMultiGpuBoard
        85 => 0, // MultiGpuBoardGroupID
        86 => 0, // HostNativeAtomicSupported
        87 => limits.single_to_double, // SingleToDoublePrecisionPerfRatio
        88 => 0, // PageableMemoryAccess
        89 => 1, // ConcurrentManagedAccess
        90 => 1, // ComputePreemptionSupported
        91 => 1, // CanUseHostPointerForRegisteredMem
        95 => 1, // CooperativeLaunch
        96 => 1, // CooperativeMultiDeviceLaunch
        97 => limits.shared_optin, // MaxSharedMemoryPerBlockOptin
        98 => 0, // CanFlushRemoteWrites
        99 => 1, // HostRegisterSupported
        100 => 0, // PageableMemoryAccessUsesHostPageTables
        101 => 0, // DirectManagedMemAccessFromHost
        106 => limits.blocks, // MaxBlocksPerMultiprocessor
        108 => device.persisting_l2, // MaxPersistingL2CacheSize
        109 => if device.persisting_l2 > 0 { 128 << 20 } else { 0 }, // MaxAccessPolicyWindowSize
        111 => limits.shared_reserved, // ReservedSharedMemoryPerBlock
        112 => 1, // SparseCudaArraySupported
        113 => 1, // HostRegisterReadOnlySupported
        114 => 1, // TimelineSemaphoreInteropSupported
        115 => 1, // MemoryPoolsSupported
        116 => 1, // GPUDirectRDMASupported
        117 => 1, // GPUDirectRDMAFlushWritesOptions
        118 => 100, // GPUDirectRDMAWritesOrdering
        119 => if hopper { 9 } else { 1 }, // MemoryPoolSupportedHandleTypes
        120 => u32::from(hopper), // ClusterLaunch
        121 => 1, // DeferredMappingCudaArraySupported
        125 => 1, // IpcEventSupport
        126 => if hopper { 4 } else { 1 }, // MemSyncDomainCount
        130 => 0, // NumaConfig
        133 => 0, // MpsEnabled
        134 => 0, // HostNumaId
        135 => 0, // D3D12CigSupported
        138 => 0, // VulkanCigSupported
        102 => 1, // VirtualMemoryManagementSupported
        103 => 1, // HandleTypePosixFileDescriptorSupported
        107 => 1, // GenericCompressionSupported
        110 => 1, // GPUDirectRDMAWithVmmSupported
        131 => u32::MAX, // NumaId: -1, none
        139 if device.name == "h200" => 0x2335_10DE, // GpuPciDeviceId
        140 if device.name == "h200" => 0x18BF_10DE, // GpuPciSubsystemId
        // Reserved, or without a name; some are 1 on an H200.
        44 | 122..=124 | 127..=129 | 141 | 142 | 144 | 145 => 1,
        92..=94 | 104 | 105 | 132 | 136 | 137 | 139 | 140 | 143 | 146 | 147 => 0,
        _ => return None,
    })
}
