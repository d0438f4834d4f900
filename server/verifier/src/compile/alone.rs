//! Compiles a text that was taken out of its program, in a scratch folder: a string of a Python file, or the device part of a
//! source that needs torch.

use std::path::{Path, PathBuf};

use stitch_analysis::Outline;
use stitch_toolchain::process::Scratch;
use tokio_util::sync::CancellationToken;

use super::foreign::Foreign;
use super::{CompileReport, CompileRequest, Trouble, blocking, cached, plan, workings};
use crate::{includes, units};

/// What torch's extension builder passes to nvcc.
const TORCH_FLAGS: [&str; 6] = [
    "-D__CUDA_NO_HALF_OPERATORS__",
    "-D__CUDA_NO_HALF_CONVERSIONS__",
    "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-D__CUDA_NO_HALF2_OPERATORS__",
    "--expt-relaxed-constexpr",
    "-std=c++17",
];

const SOURCE: &str = "unit.cu";
/// The file of stand-ins.
pub(super) const PROLOGUE: &str = "prologue.h";

/// A text as it is given to nvcc.
pub(super) struct Source {
    text: String,
    flags: Vec<String>,
    needs_prologue: bool,
    foreign: Foreign,
}

/// What a compile of a text found; its file is in a scratch folder that is gone.
pub(super) struct Alone {
    pub report: CompileReport,
    /// What the report calls the text.
    pub file: PathBuf,
}

impl Source {
    /// A text that can be compiled as it is.
    pub(super) fn whole(text: &str, flags: Vec<String>) -> Self {
        let foreign = Foreign { lines: count(text), ..Foreign::default() };
        Self { text: text.to_owned(), flags, needs_prologue: false, foreign }
    }

    /// The device part of a text that needs torch. `None` if it has none.
    pub(super) fn without_torch(text: &str, outline: &Outline, mut flags: Vec<String>) -> Option<Self> {
        let has_standard = flags.iter().any(|flag| flag.contains("std="));
        let added = TORCH_FLAGS.iter().filter(|flag| !(has_standard && flag.starts_with("-std=")));
        flags.splice(0..0, added.map(|flag| (*flag).to_owned()));
        let part = units::device_part(text);
        let foreign = Foreign {
            left_out: part.left_out.into_iter().collect(),
            whole: Some(text.into()),
            lines: count(text),
            guessed_types: text.contains("AT_DISPATCH"),
            ..Foreign::default()
        };
        let text = format!("{}{}", part.text, units::instantiations(text, outline));
        part.has_device_code.then_some(Self { text, flags, needs_prologue: true, foreign })
    }

    /// The same without the headers of the project that lead to torch's, which would end the compile. What they declare is
    /// then as unknown as what torch declares.
    pub(super) fn without_headers_that_need_torch(mut self, path: &Path) -> Self {
        let mut kept = String::with_capacity(self.text.len());
        for line in self.text.split_inclusive('\n') {
            match text_that_needs_torch(path, line) {
                Some(text) => {
                    self.foreign.others.push_str(&text);
                    kept.extend(line.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
                }
                None => kept.push_str(line),
            }
        }
        self.text = kept;
        self
    }

    /// The same, in a program with other texts.
    pub(super) fn among(mut self, others: String) -> Self {
        self.foreign.others = others;
        self
    }
}

/// The text of the headers that a line of `path` leads to, if one of them needs torch.
fn text_that_needs_torch(path: &Path, line: &str) -> Option<String> {
    units::included_in_quotes(line)?;
    let texts: Vec<String> =
        includes::headers(path, line).iter().filter_map(|header| includes::read(header)).collect();
    let needs_torch = |text: &String| text.lines().filter_map(units::included).any(units::is_torch_header);
    texts.iter().any(needs_torch).then(|| texts.join("\n"))
}

fn count(text: &str) -> u32 {
    u32::try_from(text.lines().count()).unwrap_or(u32::MAX)
}

/// Compiles `source`, which stands in the file `path` or comes from there.
pub(super) async fn compile(
    request: &CompileRequest,
    path: &Path,
    source: Source,
    cancel: &CancellationToken,
) -> Result<Alone, Trouble> {
    let scratch = cached::scratch()?;
    let file = write(&scratch, &source)?;
    let mut flags = source.flags;
    if source.needs_prologue {
        flags.push(format!("-include={}", scratch.path().join(PROLOGUE).display()));
    }
    if let Some(folder) = path.parent() {
        flags.extend(["-I".to_owned(), folder.display().to_string()]);
    }
    let plan = plan::plan_alone(request, file.clone(), scratch.path(), flags);
    let embedded = if source.needs_prologue { units::PROLOGUE } else { "" };
    let outcome = cached::run_in(request, &plan, &scratch, embedded, cancel).await?;
    let workings = workings::Workings {
        unit: file.clone(),
        asked: file.clone(),
        asked_text: source.text.into(),
        block_size: request.block_size,
        tool: plan.tool.clone(),
        directory: plan.directory.clone(),
        system: plan.system_folders(),
        default_architecture: plan.architecture.clone(),
        foreign: Some(source.foreign),
    };
    let mut report = blocking(move || workings.report(&outcome)).await??;
    report.notes.splice(0..0, plan.notes);
    Ok(Alone { report, file })
}

fn write(scratch: &Scratch, source: &Source) -> Result<PathBuf, Trouble> {
    let refuse = |error: std::io::Error| Trouble::Failed {
        reason: format!("could not write to the scratch folder: {error}; free some space"),
    };
    let file = scratch.path().join(SOURCE);
    std::fs::write(&file, &source.text).map_err(refuse)?;
    std::fs::write(scratch.path().join(PROLOGUE), units::PROLOGUE).map_err(refuse)?;
    Ok(crate::paths::canonical(&file))
}
