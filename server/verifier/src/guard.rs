//! Looks a candidate's text over for what no comparison of numbers shows: a precision that was lowered.
//!
//! Numbers within the tolerance say nothing about inputs of other sizes, where a narrow format runs out of range. So a format
//! narrower than what the reference uses is refused, unless the person said that it may be used.

use stitch_analysis::words;
use stitch_findings::{Code, Finding, Span};
use stitch_session::config::Precision;

use crate::declared::{name, rank};

/// Words that stand for a format: types of CUDA's headers, of `wmma` and of PTX.
const FORMATS: &[(Precision, &[&str])] = &[
    (
        Precision::Fp8,
        &[
            "__nv_fp8_e4m3",
            "__nv_fp8_e5m2",
            "__nv_fp8_storage_t",
            "__nv_fp8x2_e4m3",
            "__nv_fp8x2_e5m2",
            "__nv_fp8x4_e4m3",
            "__nv_fp8x4_e5m2",
            "__nv_fp4_e2m1",
            "__nv_fp6_e2m3",
            "__nv_fp6_e3m2",
        ],
    ),
    (
        Precision::Bf16,
        &["__nv_bfloat16", "__nv_bfloat162", "nv_bfloat16", "nv_bfloat162", "__float2bfloat16"],
    ),
    (
        Precision::Fp16,
        &["__half", "__half2", "half", "half2", "__float2half", "__float2half_rn", "__floats2half2_rn"],
    ),
    (Precision::Tf32, &["tf32", "__float_to_tf32"]),
    (Precision::Fp32, &["float", "float2", "float3", "float4"]),
    (Precision::Fp64, &["double", "double2", "double3", "double4"]),
];

/// What was lowered in `candidate`: a format narrower than all of `reference`, and than `least` if that was said. Of an
/// undeclared precision, the reference's own formats are the bound.
pub fn lowered(reference: &str, candidate: &str, least: Option<Precision>) -> Option<Finding> {
    let (format, start, word) = narrowest(candidate)?;
    let own = narrowest(reference).map(|(format, ..)| format);
    // A text without any format at all (integers) may get floats.
    let bound = match (least, own) {
        (Some(least), Some(own)) if rank(own) < rank(least) => own,
        (Some(least), _) => least,
        (None, Some(own)) => own,
        (None, None) => return None,
    };
    if rank(format) >= rank(bound) {
        return None;
    }
    let span = Span { start, end: start + word.len() };
    let said = if least.is_some() { "was said to be the least" } else { "is the least of the reference" };
    let message = format!("The candidate uses `{word}`, of {}, where {} {said}.", name(format), name(bound));
    Some(Finding::new(Code::VERIFY_PRECISION_LOWERED, span, message).advise(format!(
        "Keep {}, or allow less with `// stitchcuda: precision={}` beside the kernel.",
        name(bound),
        name(format)
    )))
}

/// Whether a text uses a format, or includes the header of its type.
pub(crate) fn uses(text: &str, format: Precision) -> bool {
    let header = match format {
        Precision::Fp16 => "cuda_fp16",
        Precision::Bf16 => "cuda_bf16",
        _ => "",
    };
    let names = FORMATS.iter().filter(|(known, _)| *known == format).flat_map(|(_, names)| names.iter());
    let names: Vec<&str> = names.copied().chain([header]).collect();
    words(text).into_iter().any(|(_, word)| names.contains(&word))
}

/// The narrowest format that a text uses, and the first word that says so.
fn narrowest(text: &str) -> Option<(Precision, usize, &str)> {
    let of = |word: &str| FORMATS.iter().find(|(_, names)| names.contains(&word)).map(|(format, _)| *format);
    let used = words(text).into_iter().filter_map(|(at, word)| Some((of(word)?, at, word)));
    used.min_by_key(|(format, ..)| rank(*format))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrower_format_is_refused_unless_it_was_there_or_allowed() {
        let float = "__global__ void k(float* x) { x[0] *= 0.5f; }";
        let half = "#include <cuda_fp16.h>\n__global__ void k(float* x) { __half h = __float2half(x[0]); }";
        let double = "__global__ void k(double* x) { x[0] *= 0.5; }";
        let finding = lowered(float, half, None).unwrap();
        assert_eq!(&half[finding.span.start..finding.span.end], "__half");
        assert!(finding.message.contains("fp16, where fp32"), "{}", finding.message);
        assert!(lowered(float, half, Some(Precision::Fp16)).is_none());
        assert!(lowered(half, half, Some(Precision::Fp32)).is_none(), "it was there");
        assert!(lowered(double, float, None).is_some());
        assert!(lowered(double, float, Some(Precision::Fp32)).is_none());
        assert!(lowered(float, double, None).is_none());
        assert!(lowered("int a;", float, None).is_none());
        assert!(lowered(float, "float f; // half of it", None).is_none());
    }
}
