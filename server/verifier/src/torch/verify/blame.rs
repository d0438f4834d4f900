//! Which line of a person's file an error is about.
//!
//! A traceback names lines of the file itself. A compiler names lines of a text that torch wrote for it: `load_inline` puts a few lines of its own
//! before the strings that it was given. The line that the compiler echoes says which string it is.

use std::path::Path;

use stitch_analysis::{Analysis, Language, Unit, UnitRole};
use stitch_findings::Span;

use crate::compiler_text::{self, Level, Message, SourcePlace};
use crate::locate::Lines;
use crate::torch::host::Frame;

/// Lines that torch's `load_inline` puts before the first of `cuda_sources` and of `cpp_sources`: its includes (torch/utils/cpp_extension.py). Another
/// torch, or another function, puts another number of lines, at most this many.
const MOST_BEFORE: usize = 8;
/// Compiler messages that a finding tells.
const MOST_MESSAGES: usize = 3;

/// A person's file.
pub(super) struct Source {
    text: String,
    path: std::path::PathBuf,
}

/// What a compiler refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    /// Where, in the person's file.
    pub span: Option<Span>,
    /// The first messages, each with its line in the person's file where that is known.
    pub message: String,
}

impl Source {
    /// Reads the file; one that can't be read has no lines.
    pub fn read(path: &Path) -> Self {
        let text = std::fs::read(path)
            .ok()
            .and_then(|bytes| Some(stitch_analysis::decode(&bytes)?.text.to_string()));
        Self { text: text.unwrap_or_default(), path: path.to_owned() }
    }

    /// The line of the innermost frame in this file, from one, and its span.
    pub fn of_frames(&self, frames: &[Frame]) -> Option<(u32, Span)> {
        let own = |frame: &&Frame| frame.file == self.path || frame.file.file_name() == self.path.file_name();
        let frame = frames.iter().rev().find(own)?;
        let line = usize::try_from(frame.line).ok()?.checked_sub(1)?;
        let span = Lines::new(&self.text).trimmed(line)?;
        Some((frame.line, span))
    }

    /// Where a line of a text that is compiled lies in this file.
    pub fn of_line(&self, file: &str, line: u32) -> Option<Span> {
        let place = SourcePlace { file: file.to_owned(), line, column: None, echo: None };
        self.locate(&place, Analysis::of(Language::Python, &self.text).units())
    }

    /// The line, from one, that a place in the file is on.
    pub fn line_of(&self, span: Span) -> usize {
        Lines::new(&self.text).line_of(span.start).0 + 1
    }

    /// The definition of a class or function of this name, or else the start of the file.
    pub fn definition(&self, name: &str) -> Span {
        let name = name.rsplit('.').next().unwrap_or(name);
        for keyword in ["class ", "def "] {
            for (at, _) in self.text.match_indices(&format!("{keyword}{name}")) {
                let begins = at == 0 || self.text[..at].ends_with(['\n', ' ', '\t']);
                let start = at + keyword.len();
                let end = start + name.len();
                let ends = !self.text[end..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
                if begins && ends {
                    return Span::new(start, end);
                }
            }
        }
        Span::new(0, 0)
    }

    /// What a compiler said, on the lines of the strings that it was given. `None` where no message is an error.
    pub fn of_compiler(&self, output: &str) -> Option<Refused> {
        let messages = compiler_text::parse(output.as_bytes());
        let errors: Vec<&Message> = messages.iter().filter(|message| message.level == Level::Error).collect();
        let analysis = Analysis::of(Language::Python, &self.text);
        let spans: Vec<Option<Span>> =
            errors.iter().map(|message| self.locate(message.place.as_ref()?, analysis.units())).collect();
        let first = spans.iter().flatten().next().copied();
        let told: Vec<String> = errors
            .iter()
            .zip(&spans)
            .take(MOST_MESSAGES)
            .map(|(message, span)| match span {
                Some(span) => format!("line {}: {}", self.line_of(*span), message.text),
                None => message.text.clone(),
            })
            .collect();
        let more = errors.len().saturating_sub(told.len());
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        (!told.is_empty()).then(|| Refused { span: first, message: format!("{}{more}", told.join("; ")) })
    }

    /// Where a place of a text that torch wrote lies in this file.
    fn locate(&self, place: &SourcePlace, units: &[Unit]) -> Option<Span> {
        let is_cuda = Path::new(&place.file).extension().is_some_and(|ending| ending == "cu");
        let fits =
            |unit: &&Unit| is_cuda == (unit.role != UnitRole::CppSource) && unit.role != UnitRole::Unknown;
        let line = usize::try_from(place.line).ok()?;
        let mut best = None;
        // Strings of one list lie behind each other in the text that is compiled.
        let mut before = 0;
        for unit in units.iter().filter(fits) {
            let lines = Lines::new(&unit.text);
            for header in (0..=MOST_BEFORE).rev() {
                let Some(within) = line.checked_sub(header + before + 1) else { continue };
                let (Some(span), Some(text)) = (lines.trimmed(within), lines.line(within)) else { continue };
                let echoed = place
                    .echo
                    .as_deref()
                    .is_some_and(|echo| echo.trim() == text.trim() && !text.trim().is_empty());
                let usual = header == if is_cuda { 3 } else { 1 };
                if echoed && usual {
                    return unit.span_to_file(span);
                }
                if echoed || (usual && place.echo.is_none()) {
                    best = best.or_else(|| unit.span_to_file(span));
                }
            }
            before += unit.text.lines().count();
        }
        best.or_else(|| {
            // The echoed line alone, wherever it stands.
            let echo = place.echo.as_deref().map(str::trim).filter(|echo| echo.len() > 3)?;
            units.iter().filter(fits).find_map(|unit| {
                let at = unit.text.find(echo)?;
                unit.span_to_file(Span::new(at, at + echo.len()))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"import torch
from torch.utils.cpp_extension import load_inline

CUDA = """
__global__ void twice(float* y, const float* x) {
  y[threadIdx.x] = 2.0f * missing[threadIdx.x];
}
"""
ext = load_inline(name="twice", cpp_sources="void twice();", cuda_sources=CUDA, functions=["twice"])

class ModelNew(torch.nn.Module):
    def forward(self, x):
        return ext.twice(x)
"#;

    fn source() -> Source {
        Source { text: FILE.to_owned(), path: "/somewhere/cand.py".into() }
    }

    #[test]
    fn an_error_in_a_string_sits_on_the_string() {
        // The string's first line is empty, so the fourth line of the text is torch's last, the kernel's is the fifth, and this one the sixth.
        let output = "FAILED: cuda.cuda.o\n/tmp/build/twice/cuda.cu(6): error: identifier \"missing\" is undefined\n    y[threadIdx.x] = 2.0f * missing[threadIdx.x];\n                            ^\n\n1 error detected in the compilation of \"/tmp/build/twice/cuda.cu\".\nninja: build stopped: subcommand failed.\n";
        let refused = source().of_compiler(output).unwrap();
        let span = refused.span.unwrap();
        assert_eq!(&FILE[span.start..span.end], "y[threadIdx.x] = 2.0f * missing[threadIdx.x];");
        assert_eq!(refused.message, "line 6: identifier \"missing\" is undefined");
        assert_eq!(source().of_compiler("ninja: no work to do."), None);
    }

    #[test]
    fn a_traceback_sits_on_its_innermost_line_of_the_file() {
        let frame = |file: &str, line| Frame { file: file.into(), line, function: "forward".into() };
        let frames = [
            frame("/somewhere/cand.py", 9),
            frame("/somewhere/cand.py", 13),
            frame("/usr/lib/torch/nn.py", 1190),
        ];
        let (line, span) = source().of_frames(&frames).unwrap();
        assert_eq!((line, &FILE[span.start..span.end]), (13, "return ext.twice(x)"));
        assert_eq!(source().of_frames(&[frame("/other.py", 1)]), None);
        let named = source().definition("ModelNew");
        assert_eq!(&FILE[named.start..named.end], "ModelNew");
        assert_eq!(source().definition("Nothing"), Span::new(0, 0));
    }
}
