//! Which part of a text an include belongs to.

use crate::units::{included, included_in_quotes, is_torch_header};

/// Who needs a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Both,
    Host,
    Device,
}

/// Headers of the CUDA toolkit that a C++ compiler reads as nvcc does.
const PLAIN: [&str; 22] = [
    "cuda.h",
    "cuda_runtime.h",
    "cuda_runtime_api.h",
    "cuda_fp16.h",
    "cuda_bf16.h",
    "cuda_fp8.h",
    "device_launch_parameters.h",
    "vector_types.h",
    "vector_functions.h",
    "driver_types.h",
    "math_constants.h",
    "library_types.h",
    "cublas.h",
    "cublas_v2.h",
    "cublasLt.h",
    "cusparse.h",
    "cusolverDn.h",
    "curand.h",
    "cufft.h",
    "cudnn.h",
    "nvToolsExt.h",
    "cuComplex.h",
];
/// Headers for device code, by how their paths begin.
const OF_DEVICE: [&str; 15] = [
    "curand_kernel.h",
    "mma.h",
    "cooperative_groups",
    "cuda/",
    "cub/",
    "thrust/",
    "cute/",
    "cutlass/",
    "cuda_pipeline",
    "cuda_awbarrier",
    "device_functions.h",
    "device_atomic_functions.h",
    "sm_",
    "math_functions.h",
    "texture_",
];
/// Headers of C; those of C++ have neither a dot nor a slash.
const OF_C: [&str; 16] = [
    "assert.h",
    "ctype.h",
    "errno.h",
    "float.h",
    "inttypes.h",
    "limits.h",
    "math.h",
    "stdarg.h",
    "stdbool.h",
    "stddef.h",
    "stdint.h",
    "stdio.h",
    "stdlib.h",
    "string.h",
    "time.h",
    "unistd.h",
];

/// Who needs the header of an `#include`.
///
/// # Errors
/// A header that nobody knows here.
pub(super) fn side(line: &str) -> Result<Side, String> {
    let Some(name) = included(line).or_else(|| included_in_quotes(line)) else {
        return Err("it includes what a macro names".to_owned());
    };
    if is_torch_header(name) || name.starts_with("caffe2/") {
        // Those with device code are read by nvcc.
        return if name.ends_with(".cuh") || name.contains("cub") {
            Err(format!("it includes {name}, which has device code of torch's"))
        } else {
            Ok(Side::Host)
        };
    }
    if OF_DEVICE.iter().any(|known| name.starts_with(known)) {
        return Ok(Side::Device);
    }
    let is_standard =
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_standard || PLAIN.contains(&name) || OF_C.contains(&name) {
        return Ok(Side::Both);
    }
    Err(format!("it includes {name}"))
}
