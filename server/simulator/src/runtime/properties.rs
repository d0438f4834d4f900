//! `cudaGetDeviceProperties`: the structure as each runtime lays it out.

use super::context::Context;
use super::errors::Code;
use super::protocol::{Answer, Call};
use crate::device::Device;
use crate::device::attributes::attribute;

/// Which runtimes have a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Since {
    Both,
    Until12,
    From13,
}

/// What a field is in C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Type {
    Int,
    Size,
}

use Since::{Both, From13, Until12};
use Type::{Int, Size};

/// Name, runtimes, type and the attributes (`cudaDeviceAttr`) that fill it, in order. Before these lie the name, two
/// identifiers, and the size of memory; after them a reserve.
#[rustfmt::skip]
const FIELDS: &[(&str, Since, Type, &[u32])] = &[
    ("sharedMemPerBlock", Both, Size, &[8]),
    ("regsPerBlock", Both, Int, &[12]),
    ("warpSize", Both, Int, &[10]),
    ("memPitch", Both, Size, &[11]),
    ("maxThreadsPerBlock", Both, Int, &[1]),
    ("maxThreadsDim", Both, Int, &[2, 3, 4]),
    ("maxGridSize", Both, Int, &[5, 6, 7]),
    ("clockRate", Until12, Int, &[13]),
    ("totalConstMem", Both, Size, &[9]),
    ("major", Both, Int, &[75]),
    ("minor", Both, Int, &[76]),
    ("textureAlignment", Both, Size, &[14]),
    ("texturePitchAlignment", Both, Size, &[51]),
    ("deviceOverlap", Until12, Int, &[15]),
    ("multiProcessorCount", Both, Int, &[16]),
    ("kernelExecTimeoutEnabled", Until12, Int, &[17]),
    ("integrated", Both, Int, &[18]),
    ("canMapHostMemory", Both, Int, &[19]),
    ("computeMode", Until12, Int, &[20]),
    ("maxTexture1D", Both, Int, &[21]),
    ("maxTexture1DMipmap", Both, Int, &[77]),
    ("maxTexture1DLinear", Until12, Int, &[69]),
    ("maxTexture2D", Both, Int, &[22, 23]),
    ("maxTexture2DMipmap", Both, Int, &[73, 74]),
    ("maxTexture2DLinear", Both, Int, &[70, 71, 72]),
    ("maxTexture2DGather", Both, Int, &[45, 46]),
    ("maxTexture3D", Both, Int, &[24, 25, 26]),
    ("maxTexture3DAlt", Both, Int, &[47, 48, 49]),
    ("maxTextureCubemap", Both, Int, &[52]),
    ("maxTexture1DLayered", Both, Int, &[42, 43]),
    ("maxTexture2DLayered", Both, Int, &[27, 28, 29]),
    ("maxTextureCubemapLayered", Both, Int, &[53, 54]),
    ("maxSurface1D", Both, Int, &[55]),
    ("maxSurface2D", Both, Int, &[56, 57]),
    ("maxSurface3D", Both, Int, &[58, 59, 60]),
    ("maxSurface1DLayered", Both, Int, &[61, 62]),
    ("maxSurface2DLayered", Both, Int, &[63, 64, 65]),
    ("maxSurfaceCubemap", Both, Int, &[66]),
    ("maxSurfaceCubemapLayered", Both, Int, &[67, 68]),
    ("surfaceAlignment", Both, Size, &[30]),
    ("concurrentKernels", Both, Int, &[31]),
    ("ECCEnabled", Both, Int, &[32]),
    ("pciBusID", Both, Int, &[33]),
    ("pciDeviceID", Both, Int, &[34]),
    ("pciDomainID", Both, Int, &[50]),
    ("tccDriver", Both, Int, &[35]),
    ("asyncEngineCount", Both, Int, &[40]),
    ("unifiedAddressing", Both, Int, &[41]),
    ("memoryClockRate", Until12, Int, &[36]),
    ("memoryBusWidth", Both, Int, &[37]),
    ("l2CacheSize", Both, Int, &[38]),
    ("persistingL2CacheMaxSize", Both, Int, &[108]),
    ("maxThreadsPerMultiProcessor", Both, Int, &[39]),
    ("streamPrioritiesSupported", Both, Int, &[78]),
    ("globalL1CacheSupported", Both, Int, &[79]),
    ("localL1CacheSupported", Both, Int, &[80]),
    ("sharedMemPerMultiprocessor", Both, Size, &[81]),
    ("regsPerMultiprocessor", Both, Int, &[82]),
    ("managedMemory", Both, Int, &[83]),
    ("isMultiGpuBoard", Both, Int, &[84]),
    ("multiGpuBoardGroupID", Both, Int, &[85]),
    ("hostNativeAtomicSupported", Both, Int, &[86]),
    ("singleToDoublePrecisionPerfRatio", Until12, Int, &[87]),
    ("pageableMemoryAccess", Both, Int, &[88]),
    ("concurrentManagedAccess", Both, Int, &[89]),
    ("computePreemptionSupported", Both, Int, &[90]),
    ("canUseHostPointerForRegisteredMem", Both, Int, &[91]),
    ("cooperativeLaunch", Both, Int, &[95]),
    ("cooperativeMultiDeviceLaunch", Until12, Int, &[96]),
    ("sharedMemPerBlockOptin", Both, Size, &[97]),
    ("pageableMemoryAccessUsesHostPageTables", Both, Int, &[100]),
    ("directManagedMemAccessFromHost", Both, Int, &[101]),
    ("maxBlocksPerMultiProcessor", Both, Int, &[106]),
    ("accessPolicyMaxWindowSize", Both, Int, &[109]),
    ("reservedSharedMemPerBlock", Both, Size, &[111]),
    ("hostRegisterSupported", Both, Int, &[99]),
    ("sparseCudaArraySupported", Both, Int, &[112]),
    ("hostRegisterReadOnlySupported", Both, Int, &[113]),
    ("timelineSemaphoreInteropSupported", Both, Int, &[114]),
    ("memoryPoolsSupported", Both, Int, &[115]),
    ("gpuDirectRDMASupported", Both, Int, &[116]),
    ("gpuDirectRDMAFlushWritesOptions", Both, Int, &[117]),
    ("gpuDirectRDMAWritesOrdering", Both, Int, &[118]),
    ("memoryPoolSupportedHandleTypes", Both, Int, &[119]),
    ("deferredMappingCudaArraySupported", Both, Int, &[121]),
    ("ipcEventSupported", Both, Int, &[125]),
    ("clusterLaunch", Both, Int, &[120]),
    ("unifiedFunctionPointers", Both, Int, &[120]),
    ("deviceNumaConfig", From13, Int, &[130]),
    ("deviceNumaId", From13, Int, &[131]),
    ("mpsEnabled", From13, Int, &[133]),
    ("hostNumaId", From13, Int, &[134]),
    ("gpuPciDeviceID", From13, Int, &[139]),
    ("gpuPciSubsystemID", From13, Int, &[140]),
    ("hostNumaMultinodeIpcSupported", From13, Int, &[143]),
];

/// Length of the structure in bytes.
/// Source: `sizeof(cudaDeviceProp)` with the headers of CUDA 12.9 and 13.5.
const fn length(version: u32) -> usize {
    if version >= 13 { 1008 } else { 1032 }
}

/// Offset of the size of memory: after a name of 256 bytes, 16 and 8 bytes of identifiers and an int.
const MEMORY: usize = 288;

/// Where a field of that size lies that comes after `offset` bytes.
fn align(offset: usize, ty: Type) -> usize {
    offset.next_multiple_of(if ty == Size { 8 } else { 4 })
}

/// Each field with its offset.
fn layout(
    version: u32,
) -> impl Iterator<Item = (usize, &'static (&'static str, Since, Type, &'static [u32]))> {
    let has = move |since| match since {
        Both => true,
        Until12 => version < 13,
        From13 => version >= 13,
    };
    let mut end = MEMORY + 8;
    FIELDS.iter().filter(move |(_, since, ..)| has(*since)).map(move |field| {
        let offset = align(end, field.2);
        end = offset + field.3.len() * if field.2 == Size { 8 } else { 4 };
        (offset, field)
    })
}

/// The structure of a device with `memory` bytes.
fn bytes(device: &Device, memory: u64, version: u32) -> Vec<u8> {
    let mut bytes = vec![0; length(version)];
    bytes[..device.product.len()].copy_from_slice(device.product.as_bytes());
    // An identifier that is always the same for a kind of device.
    let identifier = &mut bytes[256..272];
    identifier[..10].copy_from_slice(b"STITCHCUDA");
    identifier[10..10 + device.name.len().min(6)]
        .copy_from_slice(&device.name.as_bytes()[..device.name.len().min(6)]);
    bytes[MEMORY..MEMORY + 8].copy_from_slice(&memory.to_le_bytes());
    for (offset, (_, _, ty, attributes)) in layout(version) {
        for (index, &number) in attributes.iter().enumerate() {
            let value = attribute(device, number).unwrap_or(0);
            if *ty == Size {
                bytes[offset + index * 8..][..8].copy_from_slice(&u64::from(value).to_le_bytes());
            } else {
                bytes[offset + index * 4..][..4].copy_from_slice(&value.to_le_bytes());
            }
        }
    }
    bytes
}

pub(super) fn properties(context: &Context, call: &Call) -> Result<Answer, Code> {
    if call.argument(0) != 0 {
        return Err(Code::INVALID_DEVICE);
    }
    let blob = bytes(context.device(), context.memory().limit(), context.version);
    Ok(Answer { blob, ..Answer::done() })
}

pub(super) fn attribute_call(context: &Context, call: &Call) -> Result<Answer, Code> {
    if call.argument(1) != 0 {
        return Err(Code::INVALID_DEVICE);
    }
    let value = attribute(context.device(), call.small(0)).ok_or(Code::INVALID_VALUE)?;
    Ok(Answer::results([u64::from(value)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The offsets that a C compiler gives with the headers of each toolkit.
    #[test]
    fn fields_lie_where_the_headers_say() {
        for (version, table) in [
            (12, include_str!("../../tests/cudaDeviceProp-12.txt")),
            (13, include_str!("../../tests/cudaDeviceProp-13.txt")),
        ] {
            let expected: Vec<(&str, usize)> = table
                .lines()
                .map(|line| line.split_once(' ').unwrap())
                .map(|(a, b)| (a, b.parse().unwrap()))
                .collect();
            let ours: Vec<(&str, usize)> = layout(version).map(|(offset, field)| (field.0, offset)).collect();
            assert_eq!(ours, expected);
        }
    }

    #[test]
    fn a_device_says_its_name_and_size() {
        let device = Device::named("h200").unwrap();
        let bytes = bytes(device, 77, 13);
        assert_eq!(&bytes[..12], b"NVIDIA H200\0");
        assert_eq!(bytes[MEMORY], 77);
    }
}
