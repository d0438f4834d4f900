//! What the simulator caught, as findings of a file.

use std::path::Path;

use stitch_analysis::{Analysis, Language};
use stitch_findings::{Code, Finding, Place, Span};

use super::report::{Defect, Lines, Report};
use crate::demangle;

/// The kinds of defects as the simulator names them, their codes, and what to do.
const KINDS: &[(&str, Code, &str)] = &[
    (
        "block-race",
        Code::SIM_BLOCK_RACE,
        "Write to another array than the one that is read, or use two launches.",
    ),
    (
        "divergent-barrier",
        Code::SIM_DIVERGENT_BARRIER,
        "Move the barrier to where all threads of the block come by.",
    ),
    ("double-free", Code::SIM_DOUBLE_FREE, "Free each allocation once."),
    (
        "host-pointer",
        Code::SIM_HOST_POINTER,
        "Copy the data to memory from `cudaMalloc`, or allocate it with `cudaMallocManaged`.",
    ),
    ("invalid-launch", Code::SIM_INVALID_LAUNCH, "Launch with sizes that the device and the kernel allow."),
    ("misaligned", Code::SIM_MISALIGNED, "Access wider types only at multiples of their size."),
    ("missing-lanes", Code::SIM_MISSING_LANES, "Name in the mask exactly the threads that come to it."),
    ("out-of-bounds", Code::SIM_OUT_OF_BOUNDS, "Guard the access by the number of elements."),
    ("shared-race", Code::SIM_SHARED_RACE, "Put a barrier between the two accesses."),
    ("stack-overflow", Code::SIM_STACK_OVERFLOW, "Bound the depth of the calls."),
    ("uninitialised-read", Code::SIM_UNINITIALISED_READ, "Fill the memory before it is read."),
    ("use-after-free", Code::SIM_USE_AFTER_FREE, "Free the memory after its last use."),
];

/// A file that a run's defects are told about.
pub struct Source<'a> {
    path: &'a Path,
    text: &'a str,
    /// Bytes of each line, without its blanks.
    lines: Vec<Span>,
    analysis: Analysis,
}

impl<'a> Source<'a> {
    /// A CUDA file and its text.
    pub fn new(path: &'a Path, text: &'a str) -> Self {
        let mut start = 0;
        let mut lines = Vec::new();
        for line in text.split_inclusive('\n') {
            let blanks = line.len() - line.trim_start().len();
            let end = start + line.trim_end().len();
            lines.push(Span::new((start + blanks).min(end), end));
            start += line.len();
        }
        Self { path, text, lines, analysis: Analysis::of(Language::Cuda, text) }
    }

    /// The span of a line, from 1.
    fn line(&self, number: u32) -> Option<Span> {
        self.lines.get((number as usize).checked_sub(1)?).copied()
    }

    /// The line of this file that a place is at, or that what holds it was inlined at.
    fn here(&self, lines: &Lines) -> Option<Span> {
        let own = |place: &Option<(String, u32)>| {
            let (file, line) = place.as_ref()?;
            self.is_this(Path::new(file)).then(|| self.line(*line)).flatten()
        };
        own(&lines.place).or_else(|| own(&lines.inlined_at))
    }

    /// Programs are built from copies, so that only the name need be the same.
    fn is_this(&self, file: &Path) -> bool {
        file == self.path || file.file_name() == self.path.file_name()
    }

    /// Where a defect is told of that no line of this file is known for: at the kernel's launch, at its name, or at the first line.
    fn stand_in(&self, defect: &Defect) -> Span {
        let name = demangle::name(&defect.kernel);
        let call = match defect.kind.as_str() {
            "double-free" if defect.kernel.is_empty() => self.text.rfind("cudaFree"),
            "invalid-launch" => self.text.find(&format!("{}<<<", name.base())),
            _ => None,
        };
        let line_at = |at: usize| self.lines.iter().copied().find(|line| line.end > at);
        let kernel = || {
            let mut kernels = self.analysis.outline().kernels();
            kernels
                .find(|kernel| kernel.qualified_name == name.path.join("::"))
                .map(|kernel| kernel.name_span)
        };
        call.and_then(line_at).or_else(kernel).unwrap_or(Span::new(0, 0))
    }

    /// Where a variable in shared memory is declared.
    fn declaration(&self, name: &str) -> Option<Span> {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        self.lines.iter().copied().find(|line| {
            let text = &self.text[line.start..line.end];
            text.contains("__shared__") && text.split(|c| !is_word(c)).any(|word| word == name)
        })
    }
}

impl Report {
    /// What is wrong with a program, about its file: each defect at its line, with the other access of a race and the variable
    /// concerned beside it.
    pub fn findings(&self, source: &Source<'_>) -> Vec<Finding> {
        self.defects.iter().filter_map(|defect| finding(defect, source)).collect()
    }

    /// What was looked for, in a sentence; nothing where a run did not say.
    pub fn checked(&self) -> Option<String> {
        Some(match self.checks.as_str() {
            "all" => "The simulator looked for accesses out of bounds, reads of what was never written, races, and barriers and warps that are not complete.".to_owned(),
            "memory" => "The simulator looked for accesses out of bounds and reads of what was never written, not for races or incomplete barriers (`--checks memory`).".to_owned(),
            "none" => "The simulator looked for accesses out of bounds only (`--checks none`).".to_owned(),
            _ => return None,
        })
    }
}

fn finding(defect: &Defect, source: &Source<'_>) -> Option<Finding> {
    let &(_, code, advice) = KINDS.iter().find(|(kind, ..)| *kind == defect.kind)?;
    let at = source.here(&defect.lines);
    let span = at.unwrap_or_else(|| source.stand_in(defect));
    let mut message = defect.words();
    if let (None, Some((file, line))) = (at, &defect.lines.place) {
        message.push_str(&format!(" It is at {file}:{line}."));
    }
    let mut finding = Finding::new(code, span, message).advise(advice);
    if !defect.kernel.is_empty() {
        finding = finding.about(demangle::name(&defect.kernel).display());
    }
    if let Some(other) = &defect.other
        && let Some(span) = source.here(&other.lines)
    {
        finding = finding.relate(Place::Here(span), format!("the other access, a {}", other.what));
    }
    let variable = defect.object.as_ref().and_then(|object| object.strip_prefix('`')?.split('`').next());
    if let Some(span) = variable.and_then(|name| source.declaration(name)) {
        finding = finding.relate(Place::Here(span), "the variable is declared here");
    }
    Some(finding)
}

impl Defect {
    /// What happened, where in the grid, and how often, in sentences.
    pub fn words(&self) -> String {
        let message = self.message.trim_end_matches('.');
        let mut first = message.chars();
        let message: String = first.next().into_iter().flat_map(char::to_uppercase).chain(first).collect();
        if self.kernel.is_empty() {
            return format!("{message}.");
        }
        let kernel = demangle::name(&self.kernel).display();
        if self.lines.place.is_none() && self.kind == "invalid-launch" {
            return format!("{message}. The kernel is `{kernel}`.");
        }
        let [block, thread] = [self.block, self.thread].map(|at| at.map(|size| size.to_string()).join(", "));
        let often = if self.times > 1 { format!(" Seen {} times.", self.times) } else { String::new() };
        format!("{message}. In `{kernel}`, first seen in block ({block}), thread ({thread}).{often}")
    }
}

#[cfg(test)]
mod tests {
    use stitch_findings::Severity;

    use super::*;
    use crate::simulation::report::Other;

    const TEXT: &str = "__global__ void pair(int* out) {\n  __shared__ int tile[64];\n  tile[threadIdx.x] = 1;\n  out[threadIdx.x] = tile[63];\n}\nint main() { pair<<<1, 64>>>(0); cudaFree(0); }\n";

    fn at(line: u32) -> Lines {
        Lines { place: Some(("/elsewhere/a.cu".to_owned(), line)), inlined_at: None }
    }

    fn found(defect: Defect) -> Finding {
        let source = Source::new(Path::new("/here/a.cu"), TEXT);
        let report = Report { defects: vec![defect], ..Report::default() };
        report.findings(&source).swap_remove(0)
    }

    #[test]
    fn a_race_names_both_lines_and_the_variable() {
        let finding = found(Defect {
            kind: "shared-race".to_owned(),
            kernel: "_Z4pairPi".to_owned(),
            lines: at(4),
            thread: [63, 0, 0],
            message: "read of 4 bytes".to_owned(),
            object: Some("`tile` (256 bytes of shared memory)".to_owned()),
            other: Some(Other { what: "write".to_owned(), lines: at(3), ..Other::default() }),
            times: 2,
            ..Defect::default()
        });
        assert_eq!((finding.code, finding.severity), (Code::SIM_SHARED_RACE, Severity::Warning));
        assert_eq!(&TEXT[finding.span.start..finding.span.end], "out[threadIdx.x] = tile[63];");
        assert_eq!(
            finding.message,
            "Read of 4 bytes. In `pair`, first seen in block (0, 0, 0), thread (63, 0, 0). Seen 2 times."
        );
        let related: Vec<&str> = finding
            .related
            .iter()
            .map(|one| match &one.place {
                Place::Here(span) => &TEXT[span.start..span.end],
                Place::File { .. } => "elsewhere",
            })
            .collect();
        assert_eq!(related, ["tile[threadIdx.x] = 1;", "__shared__ int tile[64];"]);
    }

    #[test]
    fn calls_of_the_host_are_told_at_their_text() {
        let refused = found(Defect {
            kind: "invalid-launch".to_owned(),
            kernel: "_Z4pairPi".to_owned(),
            message: "refused".to_owned(),
            ..Defect::default()
        });
        assert!(TEXT[refused.span.start..].starts_with("int main"));
        assert_eq!(
            (refused.severity, refused.message.as_str()),
            (Severity::Error, "Refused. The kernel is `pair`.")
        );
        let freed = found(Defect {
            kind: "double-free".to_owned(),
            message: "freed".to_owned(),
            ..Defect::default()
        });
        assert!(TEXT[freed.span.start..].starts_with("int main"));
    }
}
