//! The forms of the tools below the compilers: `ptxas error   : message`, `nvlink error   : …`, `nvcc fatal   : …`, and the
//! lines that are about nothing.

use super::{Level, Message, Origin, SourcePlace, leading_number};

/// Reads one line. `Some(None)` for a line that is known and says nothing; `None` for one that is no tool's.
pub(super) fn read(line: &str) -> Option<Option<Message>> {
    if is_noise(line) {
        return Some(None);
    }
    let trimmed = line.trim_start();
    let tools = [
        ("ptxas", Origin::Ptxas),
        ("nvlink", Origin::Nvlink),
        ("nvcc", Origin::Driver),
        ("fatbinary", Origin::Driver),
    ];
    let (origin, rest) =
        tools.iter().find_map(|(tool, origin)| Some((*origin, trimmed.strip_prefix(tool)?)))?;
    let rest = rest.strip_prefix(' ')?;
    if let Some(found) = level_and_text(rest) {
        let (level, text) = found?;
        let spill = origin == Origin::Ptxas && crate::ptxas::spill_warning(&text).is_some();
        return Some((!spill).then(|| message(level, origin, None, text)));
    }
    // `ptxas file.ptx, line 21; error   : message`
    let (file, after) = rest.split_once(", line ")?;
    let (line, after) = leading_number(after)?;
    let (level, text) = level_and_text(after.strip_prefix(';')?.trim_start())??;
    let place = SourcePlace { file: file.to_owned(), line, column: None, echo: None };
    Some(Some(message(level, origin, Some(place), text)))
}

fn message(level: Level, origin: Origin, place: Option<SourcePlace>, text: String) -> Message {
    Message { level, origin, place, text, number: None, notes: Vec::new() }
}

/// Reads `error   : text`. `Some(None)` for information, which is read elsewhere.
fn level_and_text(text: &str) -> Option<Option<(Level, String)>> {
    let (word, said) = text.split_once(':')?;
    let level = match word.trim().to_ascii_lowercase().as_str() {
        "error" | "fatal" => Level::Error,
        "warning" => Level::Warning,
        "info" => return Some(None),
        _ => return None,
    };
    Some(Some((level, said.trim().to_owned())))
}

/// Counts, hints about switches, echoes of file names: lines that are about no place and no fault.
fn is_noise(line: &str) -> bool {
    let line = line.trim();
    let counts = [" detected in the compilation of ", " generated.", " generated when compiling "];
    let counted =
        line.starts_with(|c: char| c.is_ascii_digit()) && counts.iter().any(|count| line.contains(count));
    counted
        || line.starts_with("Remark: The warnings can be suppressed")
        || line.starts_with("Error limit reached")
        || line == "compilation terminated."
        || line == "Compilation terminated."
        || line.starts_with("tmpxft_")
}
