//! The text of a program around an extension: what stands in for torch, the extension's own texts, and a `main` that takes one call.
//!
//! Pure. The texts keep the line numbers that they have in what torch's `load_inline` compiles, so that one reading of a compiler's messages
//! serves both.

use std::path::Path;

use stitch_analysis::{Analysis, FunctionKind, Language};

use crate::compiler_text::{self, Level, Message};
use crate::torch::host::{Extension, Unassisted};

/// What stands in for torch, by file name.
pub(super) const SUPPORT: [(&str, &str); 3] = [
    ("tensor.cuh", include_str!("tensor.cuh")),
    ("extension.cuh", include_str!("extension.cuh")),
    ("main.cuh", include_str!("main.cuh")),
];
/// The first line of the C++ and of the CUDA texts in what torch compiles: its includes come before (torch/utils/cpp_extension.py).
const FIRST: [usize; 2] = [2, 4];
/// What torch compiles the texts as.
pub(super) const NAMES: [&str; 2] = ["main.cpp", "cuda.cu"];
/// Headers that the stand-in takes the place of, by how their paths begin.
const HEADERS: [&str; 6] = ["torch/", "ATen/", "c10/", "pybind11/", "caffe2/", "Python.h"];
/// Names that only torch has: a message about one is about the stand-in, which may lack it.
const OF_TORCH: [&str; 8] = ["torch", "at::", "c10", "pybind", "ATen", "Tensor", "stitch", "AT_"];
/// Flags for nvcc that change what the code means, by how they begin; the rest are about speed, or about another device.
const FLAGS: [&str; 10] = [
    "-D",
    "-U",
    "-std=",
    "--std=",
    "--use_fast_math",
    "-use_fast_math",
    "--expt-",
    "-expt-",
    "--extended-lambda",
    "--fmad",
];

/// The CUDA texts, one after the other as torch joins them.
pub(super) fn cuda(extension: &Extension) -> String {
    extension.cuda.join("\n")
}

/// The text of the program; the files of [`SUPPORT`] lie in `folder`.
pub(super) fn program(extension: &Extension, folder: &Path) -> String {
    let include = |name: &str| format!("#include \"{}\"\n", folder.join(name).display());
    let mut text = include("tensor.cuh") + &include("extension.cuh");
    // What registers the functions comes before the CUDA texts, as torch compiles it apart from them: what is not declared does not compile.
    let cpp = without_headers(&extension.cpp.join("\n"));
    text.push_str(&format!("#line {} \"{}\"\n{cpp}\n", FIRST[0], NAMES[0]));
    if !extension.functions.is_empty() {
        text.push_str("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n");
        for function in extension.functions.iter().filter(|name| is_name(name)) {
            text.push_str(&format!("  m.def(\"{function}\", torch::wrap_pybind_function({function}));\n"));
        }
        text.push_str("}\n");
    }
    text.push_str(&format!("#line {} \"{}\"\n{}\n", FIRST[1], NAMES[1], without_headers(&cuda(extension))));
    text + &include("main.cuh")
}

/// The flags that are kept.
pub(super) fn flags(extension: &Extension) -> impl Iterator<Item = String> + '_ {
    let means = |flag: &&String| FLAGS.iter().any(|known| flag.starts_with(known));
    extension.flags.iter().filter(means).cloned()
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == ':')
}

/// The text with torch's includes blanked, so that lines stay where they are.
fn without_headers(text: &str) -> String {
    let is_torch = |line: &str| {
        let rest = line.trim_start().strip_prefix('#').map(str::trim_start);
        let path = rest.and_then(|rest| rest.strip_prefix("include")).map(str::trim_start);
        let path = path.and_then(|path| path.strip_prefix(['<', '"']));
        path.is_some_and(|path| HEADERS.iter().any(|header| path.starts_with(header)))
    };
    text.lines().map(|line| if is_torch(line) { "" } else { line }).collect::<Vec<_>>().join("\n")
}

/// What a failed build says of the extension. Code that runs on the device, and the shape of any code, is the candidate's own; a wrapper that
/// does not compile may use of torch what the stand-in lacks.
pub(super) fn refusal(extension: &Extension, output: &str) -> Unassisted {
    let messages = compiler_text::parse(output.as_bytes());
    let errors: Vec<&Message> = messages.iter().filter(|message| message.level == Level::Error).collect();
    let source = cuda(extension);
    let analysis = Analysis::of(Language::Cuda, &source);
    let starts: Vec<usize> =
        std::iter::once(0).chain(source.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let on_device = |message: &Message| {
        let place = message.place.as_ref().filter(|place| place.file.ends_with(NAMES[1]));
        let line = place.and_then(|place| usize::try_from(place.line).ok()?.checked_sub(FIRST[1]));
        let start = line.and_then(|line| starts.get(line)).copied();
        let text = start.and_then(|start| source.get(start..));
        let indented = text.map_or(0, |text| text.len() - text.trim_start().len());
        let function = start.and_then(|start| analysis.outline().function_at(start + indented));
        function.is_some_and(|function| {
            matches!(function.kind, FunctionKind::Kernel | FunctionKind::Device)
                && !OF_TORCH.iter().any(|name| message.text.contains(name))
        })
    };
    let is_shape = |message: &Message| message.text.starts_with("expected a");
    if errors.first().is_some_and(|first| on_device(first) || is_shape(first)) {
        return Unassisted::Wrong(output.to_owned());
    }
    let said = errors.first().map_or_else(|| crate::program::said(output), |first| first.text.clone());
    Unassisted::Refused(format!(
        "the C++ around the kernels does not compile against what stands in for torch here: {}",
        said.trim_end_matches('.')
    ))
}

/// The kernels that the texts define.
pub(super) fn kernels(extension: &Extension) -> Vec<String> {
    let text = format!("{}\n{}", extension.cpp.join("\n"), cuda(extension));
    let analysis = Analysis::of(Language::Cuda, &text);
    analysis.outline().kernels().map(|kernel| kernel.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extension() -> Extension {
        Extension {
            name: "x".into(),
            cpp: vec!["torch::Tensor f(torch::Tensor x);".into()],
            cuda: vec!["#include <torch/extension.h>\n # include \"ATen/ATen.h\"\n#include <cmath>\n__global__ void k(float* y) {\n  y[0] = z;\n}\ntorch::Tensor f(torch::Tensor x) { k<<<1, 1>>>(x.data_ptr<float>()); return x; }\n".into()],
            functions: vec!["f".into()],
            flags: vec!["-O3".into(), "-DN=4".into(), "--use_fast_math".into(), "-arch=sm_90".into()],
        }
    }

    #[test]
    fn lines_stay_where_torch_has_them() {
        let text = program(&extension(), Path::new("/w"));
        let (before, cuda) = text.split_once("#line 4 \"cuda.cu\"\n").unwrap();
        assert!(before.contains("#line 2 \"main.cpp\"\ntorch::Tensor f(torch::Tensor x);\n"));
        assert!(before.contains("m.def(\"f\", torch::wrap_pybind_function(f));"));
        assert!(cuda.starts_with("\n\n#include <cmath>\n__global__ void k"), "{cuda}");
        assert!(text.ends_with("#include \"/w/main.cuh\"\n"));
        assert_eq!(flags(&extension()).collect::<Vec<_>>(), ["-DN=4", "--use_fast_math"]);
        assert_eq!(kernels(&extension()), ["k"]);
    }

    #[test]
    fn an_error_in_a_kernel_is_the_candidates_and_one_around_it_may_be_the_stand_ins() {
        let wrong = "cuda.cu(8): error: identifier \"z\" is undefined\n    y[0] = z;\n           ^\n";
        assert!(
            matches!(refusal(&extension(), wrong), Unassisted::Wrong(text) if text.contains("undefined"))
        );
        let around = "cuda.cu(10): error: namespace \"torch\" has no member \"matmul\"\n";
        let Unassisted::Refused(said) = refusal(&extension(), around) else { panic!() };
        assert!(said.contains("has no member \"matmul\""), "{said}");
        let torn = "cuda.cu(10): error: expected a \";\"\n";
        assert!(matches!(refusal(&extension(), torn), Unassisted::Wrong(_)));
        let linker = "/usr/bin/ld: x.o: undefined reference to `cublasSgemm_v2'\n";
        assert!(matches!(refusal(&extension(), linker), Unassisted::Refused(_)));
    }
}
