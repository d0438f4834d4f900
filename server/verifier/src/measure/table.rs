//! What was measured as a text, for prompts, reports and terminals.

use std::fmt::Write;
use std::path::Path;

use super::Measured;
use crate::demangle;

/// Lines of a kernel that are shown.
const MOST_LINES: usize = 12;

/// A table of what was counted by kernel and line. Lines of `file` are by number alone, others with the name of their file.
pub fn table(measured: &Measured, file: &Path) -> String {
    let mut text = format!(
        "Counted on {}; an estimate of {:.0} cycles in all, no measured time.\n",
        measured.cost.device, measured.cost.cycles
    );
    for kernel in &measured.report.kernels {
        // Writing to a string can't fail.
        let _ = writeln!(
            text,
            "{}: {}\n  {}",
            demangle::name(&kernel.name).display(),
            kernel.shape(),
            kernel.totals()
        );
        for line in kernel.heaviest(MOST_LINES) {
            let _ = writeln!(text, "  {}: {}", place(&line.file, line.line, file), line.count.words());
        }
    }
    text
}

fn place(file: &str, line: u32, of: &Path) -> String {
    let name = Path::new(file).file_name();
    match name {
        Some(name) if name != of.file_name().unwrap_or_default() => {
            format!("{}:{line}", name.to_string_lossy())
        }
        _ => format!("line {line}"),
    }
}
