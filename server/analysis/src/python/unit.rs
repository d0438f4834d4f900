//! A CUDA text inside a Python file, and the way between its offsets and the file's.

use std::sync::Arc;

use serde::Serialize;
use stitch_findings::{Finding, Place, Span};

use super::decoded::Map;
use crate::{Analysis, Expression, Function, Launch};

/// What a CUDA text in a Python file is given to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnitRole {
    /// `cuda_sources` of `load_inline`. It puts the torch and CUDA headers before the text.
    CudaSource,
    /// `cpp_sources` of `load_inline`: host code.
    CppSource,
    /// `cupy.RawKernel`.
    RawKernel,
    /// `cupy.RawModule`.
    RawModule,
    /// `pycuda.compiler.SourceModule`.
    SourceModule,
    /// NVRTC, directly or through `cuda.core`, `pynvrtc` or `torch.cuda`.
    Nvrtc,
    /// Nothing that was seen; it holds a kernel.
    Unknown,
}

/// A CUDA text inside a Python file.
#[derive(Clone, Debug)]
pub struct Unit {
    /// What it is given to.
    pub role: UnitRole,
    /// The expression that makes it, in the file. Parts of the text may stand elsewhere.
    pub span: Span,
    /// The text as the compiler gets it: escapes decoded, parts joined, `dedent` and the like applied.
    pub text: Arc<str>,
    /// Whether it can only be compiled with the headers of torch.
    pub needs_torch: bool,
    /// The options it is compiled with, those that are written out.
    pub options: Vec<String>,
    /// The variable that holds it, or else the name of the module or kernel; may be empty.
    pub name: String,
    /// The places in the file whose text is only known when the program runs. In the text a name stands for each, or
    /// nothing where it has a line to itself. With any of these, what a compiler says of the text is not about the program.
    pub holes: Vec<Span>,
    /// The text read as CUDA.
    pub analysis: Arc<Analysis>,
    pub(super) map: Map,
}

impl Unit {
    /// The file's offset for the text's; for a byte that an escape makes, the start of the escape.
    pub fn to_file(&self, offset: usize) -> usize {
        self.map.to_file(offset).unwrap_or(self.span.start)
    }

    /// The file's span for the text's, widened to whole escapes. A span over the seam of a concatenation covers the seam; one
    /// that goes on elsewhere in the file ends where its first part ends. `None` for an empty text.
    pub fn span_to_file(&self, span: Span) -> Option<Span> {
        self.map.span_to_file(span)
    }

    /// The text's offset for the file's; `None` where the file's byte is no part of the text.
    pub fn to_text(&self, offset: usize) -> Option<usize> {
        self.map.to_text(offset)
    }

    /// A function of the text, in the file.
    pub(super) fn function_to_file(&self, function: &Function, index: usize) -> Option<Function> {
        let mut function = function.clone();
        function.span = self.span_to_file(function.span)?;
        function.name_span = self.span_to_file(function.name_span)?;
        function.body = function.body.and_then(|body| self.span_to_file(body));
        for parameter in &mut function.parameters {
            parameter.span = self.span_to_file(parameter.span)?;
        }
        if let Some(bounds) = &mut function.launch_bounds {
            self.expression_to_file(&mut bounds.max_threads);
            bounds.min_blocks.iter_mut().for_each(|expression| self.expression_to_file(expression));
            bounds.max_cluster.iter_mut().for_each(|expression| self.expression_to_file(expression));
        }
        function.unit = Some(index);
        Some(function)
    }

    /// A launch of the text, in the file.
    pub(super) fn launch_to_file(&self, launch: &Launch, index: usize) -> Option<Launch> {
        let mut launch = launch.clone();
        launch.span = self.span_to_file(launch.span)?;
        launch.name_span = self.span_to_file(launch.name_span)?;
        let parts = [&mut launch.grid, &mut launch.block, &mut launch.shared, &mut launch.stream];
        for expression in parts.into_iter().flatten() {
            self.expression_to_file(expression);
        }
        launch.unit = Some(index);
        Some(launch)
    }

    /// A finding in the text, in the file. `None` where it is about something that is not known.
    pub(super) fn finding_to_file(&self, finding: &Finding) -> Option<Finding> {
        let mut finding = finding.clone();
        finding.span = self.span_to_file(finding.span)?;
        let overlaps = |hole: &Span| hole.start < finding.span.end && finding.span.start < hole.end;
        if self.holes.iter().any(overlaps) {
            return None;
        }
        for related in &mut finding.related {
            if let Place::Here(span) = &mut related.place {
                *span = self.span_to_file(*span)?;
            }
        }
        Some(finding)
    }

    fn expression_to_file(&self, expression: &mut Expression) {
        if let Some(span) = self.span_to_file(expression.span) {
            expression.span = span;
        }
    }
}

/// Whether a text uses what only the headers of torch define. Comments count as code: the price is a slower check.
pub(super) fn needs_torch(text: &str) -> bool {
    const INCLUDES: &[&str] = &["torch/", "ATen/", "c10/", "pybind11"];
    const NAMES: &[&str] = &[
        "torch::",
        "at::",
        "c10::",
        "py::",
        "AT_DISPATCH_",
        "TORCH_",
        "C10_",
        "PYBIND11_",
        "AT_ERROR",
        "AT_ASSERT",
    ];
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let whole_word = |name: &str| {
        memchr::memmem::find_iter(text.as_bytes(), name)
            .any(|at| at == 0 || !is_word(text.as_bytes()[at - 1]))
    };
    let includes = |line: &str| {
        line.trim_start().strip_prefix('#').is_some_and(|rest| {
            rest.trim_start().starts_with("include") && INCLUDES.iter().any(|header| rest.contains(header))
        })
    };
    NAMES.iter().any(|name| whole_word(name)) || text.lines().any(includes)
}

#[cfg(test)]
mod tests {
    use super::needs_torch;

    #[test]
    fn torch_is_needed_for_its_headers_and_names_only() {
        for text in [
            "#include <torch/extension.h>",
            " #  include \"ATen/cuda/CUDAContext.h\"",
            "at::Tensor f();",
            "x = torch::empty_like(y);",
            "TORCH_CHECK(x.is_cuda());",
        ] {
            assert!(needs_torch(text), "{text}");
        }
        for text in
            ["#include <cuda_runtime.h>", "float::x", "cat::dog();", "flashlight::torchlight", "int at = 1;"]
        {
            assert!(!needs_torch(text), "{text}");
        }
    }
}
