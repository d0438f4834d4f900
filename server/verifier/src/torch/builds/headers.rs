//! Headers that stand before a source: as much of torch's as it needs, compiled once for all.
//!
//! `torch/extension.h` leads to all of torch: modules, optimisers, data sets. A source that fails without these is built as torch builds it.
//! What stands here is a part of what the source includes itself, never more, so that nothing compiles here that torch would refuse.

use crate::units::{included, included_in_quotes, mask};

/// Which headers stand before a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Prelude {
    /// Tensors, operators, and what says them to Python.
    Bound,
    /// Tensors, operators and the CUDA runtime.
    Bare,
}

impl Prelude {
    /// Its file.
    pub fn file(self) -> &'static str {
        match self {
            Self::Bound => "stitchcuda_bound.h",
            Self::Bare => "stitchcuda_bare.h",
        }
    }

    /// Its text.
    pub fn text(self) -> String {
        match self {
            Self::Bound => {
                BOUND.iter().fold("#pragma once\n#include <torch/types.h>\n".to_owned(), |text, name| {
                    text + &format!("#if __has_include(<{name}>)\n#include <{name}>\n#endif\n")
                })
            }
            Self::Bare => format!("#pragma once\n#include <torch/types.h>\n#include <cuda.h>\n{LAUNCHING}"),
        }
    }
}

/// What `torch/python.h` includes, but for the bindings of modules.
const BOUND: [&str; 9] = [
    "torch/csrc/Device.h",
    "torch/csrc/Dtype.h",
    "torch/csrc/DynamicTypes.h",
    "torch/csrc/Exceptions.h",
    "torch/csrc/autograd/python_variable.h",
    "torch/csrc/python_headers.h",
    "torch/csrc/utils/pybind.h",
    "torch/csrc/utils/python_numbers.h",
    "torch/csrc/utils/python_tuples.h",
];

/// The file with what a launch becomes.
pub(super) const LAUNCHING_FILE: &str = "stitchcuda_launching.h";
/// Its text. nvcc has these functions in headers that a C++ compiler does not read (`crt/device_functions.h`, `cuda_runtime.h`).
pub(super) const LAUNCHING: &str = r#"#ifndef STITCHCUDA_LAUNCHING
#define STITCHCUDA_LAUNCHING
#include <cuda_runtime.h>
extern "C" unsigned CUDARTAPI __cudaPushCallConfiguration(dim3 gridDim, dim3 blockDim, size_t sharedMem, struct CUstream_st* stream);
static inline unsigned stitchcuda_push(dim3 grid, dim3 block, size_t shared = 0, struct CUstream_st* stream = nullptr) {
  return __cudaPushCallConfiguration(grid, block, shared, stream);
}
template <class T>
static inline cudaError_t cudaFuncSetAttribute(T* function, enum cudaFuncAttribute attribute, int value) {
  return ::cudaFuncSetAttribute((const void*)function, attribute, value);
}
template <class T>
static inline cudaError_t cudaFuncSetCacheConfig(T* function, enum cudaFuncCache config) {
  return ::cudaFuncSetCacheConfig((const void*)function, config);
}
template <class T>
static inline cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes* attributes, T* function) {
  return ::cudaFuncGetAttributes(attributes, (const void*)function);
}
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __cluster_dims__
#define __cluster_dims__(...)
#undef __grid_constant__
#define __grid_constant__
#endif
"#;

/// Headers that stand for themselves where a prelude has taken their place.
pub(super) const SHADOWED: [&str; 2] = ["torch/extension.h", "torch/torch.h"];

/// What comes before a device part: headers of the standard library that torch's lead to and device code uses, and torch's own half-precision types on demand.
pub(super) fn device_text(with_half: bool) -> String {
    let mut text = "#include <cuda.h>\n#include <cuda_runtime.h>\n#include <algorithm>\n#include <cmath>\n#include <cstdint>\n#include <functional>\n#include <limits>\n#include <tuple>\n#include <type_traits>\n#include <utility>\n#include <vector>\n".to_owned();
    if with_half {
        text.push_str("#include <c10/util/Half.h>\n#include <c10/util/BFloat16.h>\nnamespace at { using namespace c10; }\nnamespace torch { using namespace at; }\n");
    }
    text
}

/// Parts of torch that a prelude has not, by the name behind `torch::`. Each is included by `torch/extension.h`.
const PARTS: [(&str, &str); 16] = [
    ("nn", "torch/nn.h"),
    ("autograd", "torch/autograd.h"),
    ("optim", "torch/optim.h"),
    ("data", "torch/data.h"),
    ("jit", "torch/jit.h"),
    ("cuda", "torch/cuda.h"),
    ("fft", "torch/fft.h"),
    ("linalg", "torch/linalg.h"),
    ("special", "torch/special.h"),
    ("sparse", "torch/sparse.h"),
    ("nested", "torch/nested.h"),
    ("save", "torch/serialize.h"),
    ("load", "torch/serialize.h"),
    ("NoGradGuard", "torch/utils.h"),
    ("AutoGradMode", "torch/utils.h"),
    ("manual_seed", "torch/utils.h"),
];

/// The prelude of a text, and further headers of torch that it needs. `None` where it has to be compiled as it stands.
pub(super) fn prelude(text: &str, is_cuda: bool, binds: bool) -> Option<(Prelude, Vec<&'static str>)> {
    let masked = mask(text);
    let mut whole = false;
    for (bare, line) in masked.lines().zip(text.lines()) {
        let Some(rest) = bare.trim_start().strip_prefix('#') else { continue };
        let rest = rest.trim_start();
        // What is defined before an include may change what it means.
        if rest.starts_with("define") || rest.starts_with("undef") || rest.starts_with("if") {
            break;
        }
        let name = included(line).or_else(|| included_in_quotes(line)).unwrap_or_default();
        if SHADOWED.contains(&name) {
            whole = true;
            break;
        }
        if name == "torch/types.h"
            && is_cuda
            && !text.contains("torch/extension.h")
            && !text.contains("torch/torch.h")
        {
            return Some((Prelude::Bare, Vec::new()));
        }
    }
    if !whole {
        return None;
    }
    let mut more = Vec::new();
    for (at, _) in masked.match_indices("torch::") {
        let rest = &masked[at + "torch::".len()..];
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        if let Some((_, header)) = PARTS.iter().find(|(name, _)| *name == &rest[..end])
            && !more.contains(header)
        {
            more.push(*header);
        }
    }
    Some((if is_cuda && !binds { Prelude::Bare } else { Prelude::Bound }, more))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prelude_is_a_part_of_what_the_source_includes() {
        let of = |text: &str, is_cuda| prelude(text, is_cuda, false);
        assert_eq!(
            of("#include <vector>\n#include <torch/extension.h>\n", false),
            Some((Prelude::Bound, vec![]))
        );
        assert_eq!(
            of("#include <torch/types.h>\n#include <cuda.h>\nint x;\n", true),
            Some((Prelude::Bare, vec![]))
        );
        assert_eq!(
            of("#include <torch/types.h>\n#include <cuda.h>\n#include <torch/extension.h>\n", true),
            Some((Prelude::Bare, vec![]))
        );
        assert_eq!(of("#include <torch/types.h>\nint x;\n", false), None);
        assert_eq!(of("#define PY_SSIZE_T_CLEAN\n#include <torch/extension.h>\n", false), None);
        assert_eq!(of("// #include <torch/extension.h>\n#include <ATen/ATen.h>\n", false), None);
        let nn =
            "#include <torch/extension.h>\ntorch::Tensor f(torch::nn::Linear l) { torch::NoGradGuard g; }\n";
        assert_eq!(of(nn, false), Some((Prelude::Bound, vec!["torch/nn.h", "torch/utils.h"])));
    }
}
