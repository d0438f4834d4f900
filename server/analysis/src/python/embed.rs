//! Finds the CUDA texts of a file: what is given to a function that compiles it, and any other text with a kernel in it.

use stitch_findings::Span;

use super::decoded::Map;
use super::facts::Compilation;
use super::names::Names;
use super::sinks::{self, Sink};
use super::texts::{Made, Site, Texts};
use super::unit::UnitRole;
use super::unknown::{UnknownSource, is_nothing, why};
use super::value::{Argument, Value, ValueKind};

/// Texts of one file that are read; a file of tests may hold more than anyone looks at.
const MOST: usize = 512;
/// So many words in a row without any sign of code are prose.
const PROSE: usize = 7;

/// A CUDA text, before it is read as CUDA.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) role: UnitRole,
    pub(super) span: Span,
    pub(super) name: String,
    pub(super) text: String,
    pub(super) map: Map,
    pub(super) options: Vec<String>,
}

/// The texts of a file, in its order, and what it gives to a compiler without saying what it is.
pub(super) fn find(source: &str, names: &Names<'_>) -> (Vec<Found>, Vec<UnknownSource>) {
    let texts = Texts::new(source, names);
    let mut found: Vec<Found> = Vec::new();
    let mut unknown = Vec::new();
    for (piece, facts) in names.facts.iter().enumerate() {
        for call in &facts.compilations {
            let site = Site { piece, level: names.level(piece, call.scope) };
            if let Some(sink) = sinks::find(&names.resolve(&call.function)) {
                compiled(call, sink, &texts, site, &mut found, &mut unknown);
            }
        }
    }
    let given: Vec<Span> = found.iter().flat_map(|found| found.map.places()).collect();
    for (piece, facts) in names.facts.iter().enumerate() {
        for text in &facts.kernel_texts {
            let whole = text.value.span.shifted(names.pieces[piece].span.start);
            if given.iter().any(|span| whole.start < span.end && span.start < whole.end) {
                continue;
            }
            let site = Site { piece, level: names.level(piece, text.scope) };
            for made in texts.of(&text.value, site) {
                push(made, UnitRole::Unknown, String::new(), Vec::new(), &mut found);
            }
        }
    }
    found.truncate(MOST);
    found.sort_by_key(|found| (found.span, found.role == UnitRole::CppSource));
    unknown.truncate(MOST);
    unknown.sort_by_key(|source| source.span);
    unknown.dedup();
    (found, unknown)
}

fn compiled(
    call: &Compilation,
    sink: &Sink,
    texts: &Texts<'_>,
    site: Site,
    found: &mut Vec<Found>,
    unknown: &mut Vec<UnknownSource>,
) {
    let (keyword, place) = sink.title;
    let title = argument(&call.arguments, &[keyword], Some(place));
    let title = title.and_then(|value| texts.constant(value, site)).unwrap_or_default();
    let options: Vec<_> = argument(&call.arguments, sink.options, None)
        .into_iter()
        .flat_map(|value| elements(value, texts, site))
        .filter_map(|(value, site)| texts.constant(&value, site))
        .collect();
    for text in sink.texts {
        let Some(value) = argument(&call.arguments, text.names, text.place) else { continue };
        for (value, site) in elements(value, texts, site) {
            let mut is_known = text.role == UnitRole::CppSource || is_nothing(&value, texts, site);
            for made in texts.of(&value, site) {
                is_known |= push(made, text.role, title.clone(), options.clone(), found);
            }
            if !is_known {
                let (span, reason) = (texts.in_file(value.span, site), why(&value, texts, site));
                unknown.push(UnknownSource { role: text.role, span, reason });
            }
        }
    }
}

/// An argument by its keyword, or by its place among those without one.
fn argument<'a>(arguments: &'a [Argument], names: &[&str], place: Option<usize>) -> Option<&'a Value> {
    let named = arguments.iter().find(|a| a.name.as_deref().is_some_and(|name| names.contains(&name)));
    let placed = || arguments.iter().filter(|a| a.name.is_none()).nth(place?);
    named.or_else(placed).map(|argument| &argument.value)
}

/// The single texts of a list, or of a name that holds one; the value itself if it is none.
fn elements(value: &Value, texts: &Texts<'_>, site: Site) -> Vec<(Value, Site)> {
    if let ValueKind::List(items) = &value.kind {
        return items.iter().map(|item| (item.clone(), site)).collect();
    }
    if let ValueKind::Name(name) = &value.kind {
        if let Some(items) = texts.grown(name, texts.in_file(value.span, site), site) {
            return items.into_iter().map(|(item, site)| (item.clone(), site)).collect();
        }
        let assigned = texts.names.assignments(site.level, name);
        let lists: Vec<_> = assigned
            .iter()
            .filter_map(|(piece, assignment)| match &assignment.value.kind {
                ValueKind::List(items) => {
                    let site = Site { piece: *piece, level: texts.names.level_of((*piece, assignment)) };
                    Some(items.iter().map(move |item| (item.clone(), site)))
                }
                _ => None,
            })
            .flatten()
            .collect();
        if !lists.is_empty() {
            return lists;
        }
    }
    vec![(value.clone(), site)]
}

/// Adds a text unless it is empty, unlikely, or there already. Whether anything is known of it.
fn push(made: Made, role: UnitRole, title: String, options: Vec<String>, found: &mut Vec<Found>) -> bool {
    let (text, map) = made.text.finish();
    if map.holes().contains(&made.span) {
        return false;
    }
    let is_there = || found.iter().any(|known| known.text == text && known.map == map);
    let unlikely = role == UnitRole::Unknown && !may_be_code(&text);
    if text.trim().is_empty() || unlikely || is_there() {
        return true;
    }
    let name = made.name.unwrap_or(title);
    found.push(Found { role, span: made.span, name, text, map, options });
    true
}

/// Whether a text that is given to nothing looks like CUDA, and not like a prompt, a template, a regular expression, or
/// a Python file with CUDA inside.
fn may_be_code(text: &str) -> bool {
    let template = ["```", "${", "{{", "{%", "(?:", "\\s", "(?P<"];
    let python = ["import ", "from ", "def ", "@"];
    let is_word = |word: &str| word.chars().all(|c| c.is_ascii_alphabetic() || c == '\'');
    let mut in_comment = false;
    !template.iter().any(|mark| text.contains(mark))
        && text.lines().all(|line| {
            let line = line.trim();
            let comment = in_comment || line.starts_with("//") || line.starts_with("/*");
            if line.starts_with("/*") {
                in_comment = true;
            }
            if line.contains("*/") {
                in_comment = false;
            }
            let mut row = 0;
            let prose = line.split_ascii_whitespace().any(|word| {
                row = if is_word(word.trim_end_matches([',', '.', ':', '!', '?'])) { row + 1 } else { 0 };
                row >= PROSE
            });
            comment || !(prose || python.iter().any(|start| line.starts_with(start)))
        })
}
