//! Sources that are given to a compiler but not known from the file, and why.

use serde::Serialize;
use stitch_findings::Span;

use super::texts::{Site, Texts};
use super::unit::UnitRole;
use super::value::{Value, ValueKind};

/// Names of names are followed so far.
const DEPTH: usize = 8;
/// The longest expression that a reason quotes, in characters.
const QUOTED: usize = 48;

/// A CUDA source that a program gives to a compiler, of which the file does not say what is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnknownSource {
    /// What it is given to.
    pub role: UnitRole,
    /// The expression that makes it, in the file.
    pub span: Span,
    /// Why it is not known: `SRC` is imported from `kernels`. No full stop at the end.
    pub reason: String,
}

/// Whether a value says that there is no source.
pub(super) fn is_nothing(value: &Value, texts: &Texts<'_>, site: Site) -> bool {
    let text = texts.written(value, site);
    text == "None" || matches!(&value.kind, ValueKind::List(items) if items.is_empty())
}

/// Why nothing is known of a value.
pub(super) fn why(value: &Value, texts: &Texts<'_>, site: Site) -> String {
    let (mut value, mut site) = (value, site);
    for _ in 0..DEPTH {
        let name = match &value.kind {
            ValueKind::Name(name) => name,
            ValueKind::Call(path) => return called(path, texts),
            _ => break,
        };
        if let Some(module) = texts.names.imported_from(name) {
            return format!("`{name}` is imported from `{module}`");
        }
        match texts.names.assignments(site.level, name).last() {
            // What the list was at first says little.
            Some((_, assignment)) if matches!(assignment.value.kind, ValueKind::List(_)) => break,
            Some((piece, assignment)) => {
                site = Site { piece: *piece, level: texts.names.level_of((*piece, assignment)) };
                value = &assignment.value;
            }
            None if texts.names.is_parameter(site.level, name) => {
                return format!("`{name}` is a parameter");
            }
            None => return format!("nothing here says what `{name}` is"),
        }
    }
    let written = texts.written(value, site);
    let mut line = written.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = line.char_indices().nth(QUOTED) {
        line.truncate(end);
        line.push('…');
    }
    format!("`{line}` is put together when the program runs")
}

fn called(path: &str, texts: &Texts<'_>) -> String {
    match texts.names.imported_from(path) {
        Some(module) => format!("`{path}`, imported from `{module}`, makes it when the program runs"),
        None => format!("`{path}` makes it when the program runs"),
    }
}
