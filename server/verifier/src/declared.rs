//! What a person declares beside the code: `// stitchcuda: tolerance=1e-5 precision=fp32`.
//!
//! A comment holds for the kernel that it stands in or right above of; elsewhere it holds for the file.

use stitch_analysis::Function;
use stitch_findings::Span;
use stitch_session::config::Precision;

/// What was declared.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Declared {
    /// How far a number may be off, relative to it.
    pub tolerance: Option<f64>,
    /// The precision that may not be lowered.
    pub precision: Option<Precision>,
}

/// A declaration that can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Line {line} declares `{text}`, which can't be read: {expected}.")]
pub struct BadDeclaration {
    /// The line, from 1.
    pub line: usize,
    /// What stands there.
    pub text: String,
    /// What may stand there.
    pub expected: &'static str,
}

/// What starts a declaration in a comment.
const MARK: &str = "stitchcuda:";

impl Declared {
    /// What holds for a kernel, or for all of the file where `kernel` is `None`: then of several the strictest.
    ///
    /// # Errors
    /// A declaration can't be read.
    pub fn of(text: &str, kernel: Option<&Function>) -> Result<Self, BadDeclaration> {
        let all = declarations(text)?;
        let near = kernel.map(|kernel| surroundings(text, kernel.span));
        let of_kernel =
            all.iter().filter(|(at, _)| near.is_none_or(|near| near.start <= *at && *at < near.end));
        let declared = of_kernel.fold(Self::default(), |sum, (_, one)| sum.strictest(*one));
        let everywhere = all.iter().fold(Self::default(), |sum, (_, one)| sum.strictest(*one));
        Ok(if kernel.is_some() && declared == Self::default() && all.len() == 1 {
            everywhere
        } else {
            declared
        })
    }

    fn strictest(self, other: Self) -> Self {
        let least = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let highest = |a: Option<Precision>, b: Option<Precision>| match (a, b) {
            (Some(a), Some(b)) => Some(if rank(a) >= rank(b) { a } else { b }),
            (a, b) => a.or(b),
        };
        Self {
            tolerance: least(self.tolerance, other.tolerance),
            precision: highest(self.precision, other.precision),
        }
    }
}

/// Formats by how many bits their numbers keep: the higher, the more.
pub(crate) fn rank(precision: Precision) -> u8 {
    match precision {
        Precision::Fp64 => 5,
        Precision::Fp32 => 4,
        Precision::Tf32 => 3,
        Precision::Fp16 => 2,
        Precision::Bf16 => 1,
        Precision::Fp8 => 0,
    }
}

/// A format as it is written.
pub fn name(precision: Precision) -> &'static str {
    match precision {
        Precision::Fp64 => "fp64",
        Precision::Fp32 => "fp32",
        Precision::Tf32 => "tf32",
        Precision::Fp16 => "fp16",
        Precision::Bf16 => "bf16",
        Precision::Fp8 => "fp8",
    }
}

/// A format by its name.
pub fn precision(text: &str) -> Option<Precision> {
    use Precision::{Bf16, Fp8, Fp16, Fp32, Fp64, Tf32};
    [Fp64, Fp32, Tf32, Bf16, Fp16, Fp8].into_iter().find(|precision| name(*precision) == text)
}

/// The function with the lines of comment right above it.
fn surroundings(text: &str, span: Span) -> Span {
    let before = text.get(..span.start).unwrap_or_default();
    let line = before.rfind('\n').map_or(0, |at| at + 1);
    let mut start = line;
    for above in before[..line].lines().rev() {
        let is_comment = ["//", "/*", "*"].iter().any(|mark| above.trim_start().starts_with(mark));
        if !is_comment {
            break;
        }
        // Lines that end with CR LF are one byte longer than they look.
        start = before[..start.saturating_sub(1)].rfind('\n').map_or(0, |at| at + 1);
    }
    Span { start, end: span.end }
}

/// All declarations of a text, by where their mark stands.
fn declarations(text: &str) -> Result<Vec<(usize, Declared)>, BadDeclaration> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices(MARK) {
        let line_start = text[..at].rfind('\n').map_or(0, |start| start + 1);
        let before = text[line_start..at].trim_end();
        if !["//", "/*", "*", "#"].iter().any(|mark| before.ends_with(mark)) {
            continue;
        }
        let line = text[..at].matches('\n').count() + 1;
        let rest = text[at + MARK.len()..].lines().next().unwrap_or_default();
        let rest = rest.split("*/").next().unwrap_or_default();
        let mut declared = Declared::default();
        for word in rest.split_whitespace() {
            let refuse = |expected| BadDeclaration { line, text: word.to_owned(), expected };
            match word.split_once('=') {
                Some(("tolerance", value)) => {
                    let expected = "a tolerance is a number from 0 to 1, as in `tolerance=1e-5`";
                    let value = value.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
                    declared.tolerance = Some(value.ok_or_else(|| refuse(expected))?);
                }
                Some(("precision", value)) => {
                    let expected =
                        "a precision is fp64, fp32, tf32, fp16, bf16 or fp8, as in `precision=fp32`";
                    declared.precision = Some(precision(value).ok_or_else(|| refuse(expected))?);
                }
                // `inputs(...)` and whatever else other parts read.
                _ => {}
            }
        }
        if declared != Declared::default() {
            found.push((at, declared));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use stitch_analysis::{Analysis, Language};

    use super::*;

    fn declared(text: &str, kernel: Option<&str>) -> Result<Declared, BadDeclaration> {
        let analysis = Analysis::of(Language::Cuda, text);
        let kernel =
            kernel.map(|name| analysis.outline().kernels().find(|kernel| kernel.name == name).unwrap());
        Declared::of(text, kernel)
    }

    #[test]
    fn a_comment_holds_for_its_kernel() {
        let text = "// stitchcuda: tolerance=1e-5 precision=fp32\r\n// Adds.\r\n__global__ void a() {}\r\n\
                    int x = 1;\n__global__ void b() {\n  /* stitchcuda: tolerance=0.5 */\n}\n__global__ void c() {}\n";
        let a = Declared { tolerance: Some(1e-5), precision: Some(Precision::Fp32) };
        assert_eq!(declared(text, Some("a")).unwrap(), a);
        assert_eq!(declared(text, Some("b")).unwrap(), Declared { tolerance: Some(0.5), precision: None });
        assert_eq!(declared(text, Some("c")).unwrap(), Declared::default());
        assert_eq!(declared(text, None).unwrap(), a, "the strictest of all");
    }

    #[test]
    fn what_cannot_be_read_is_said_with_its_line() {
        let error = declared("\n// stitchcuda: tolerance=2\n__global__ void a() {}", None).unwrap_err();
        assert_eq!((error.line, error.text.as_str()), (2, "tolerance=2"));
        assert!(declared("// stitchcuda: precision=fp12", None).is_err());
        assert_eq!(declared("printf(\"stitchcuda: tolerance=2\");", None).unwrap(), Declared::default());
    }
}
