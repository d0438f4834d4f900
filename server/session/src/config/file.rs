//! `stitchcuda.toml`: read, taken apart, and each setting with its line.

use std::io::Read;
use std::path::Path;

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::check::check_only;
use super::keys::{config_table, target_table};
use super::sources::{Entry, Layer, Node, flatten};
use super::warning::{Position, Source, Warning};

/// No configuration is larger. What is, is something else by that name.
const LARGEST_BYTES: u64 = 1 << 20;
/// How deep values are looked into; the deepest setting is a list.
const DEEPEST_VALUE: usize = 8;
/// The group of a person's own builds.
const TARGET: &str = "target";

/// One `stitchcuda.toml`.
#[derive(Clone, Debug)]
pub(super) struct File {
    pub(super) layer: Layer,
    /// A person's own builds, by name, in the order of the text.
    pub(super) targets: Vec<(String, Vec<Entry>)>,
    /// What is wrong with the file itself, and with its targets.
    pub(super) warnings: Vec<Warning>,
}

impl File {
    /// The file at `path`; `None` if there is none.
    pub(super) fn read(path: &Path, source: Source) -> Option<Self> {
        match read_text(path) {
            Ok(text) => Some(Self::parse(text?.trim_start_matches('\u{feff}'), source)),
            Err(problem) => Some(Self::ignored(source, None, &problem)),
        }
    }

    pub(super) fn parse(text: &str, source: Source) -> Self {
        let places = Places::new(text);
        let parsed = match DeTable::parse(text) {
            Ok(parsed) => parsed.into_inner(),
            Err(error) => {
                let position = error.span().map(|span| places.at(span.start));
                return Self::ignored(source, position, error.message().lines().next().unwrap_or_default());
            }
        };
        let root = children_of(parsed, &places);
        let (targets, root): (Vec<_>, Vec<_>) = root.into_iter().partition(|(name, ..)| name == TARGET);
        let mut warnings = Vec::new();
        let mut named = Vec::new();
        for (_, position, group) in targets {
            named.extend(targets_of(position, group, &source, &mut warnings));
        }
        let entries = flatten(config_table(), root, "");
        Self { layer: Layer { source, entries }, targets: named, warnings }
    }

    fn ignored(source: Source, position: Option<Position>, problem: &str) -> Self {
        let message =
            format!("The file is not used until this is mended: {}.", problem.trim_end_matches('.'));
        let warnings = vec![Warning { source: source.clone(), position, message }];
        Self { layer: Layer { source, entries: Vec::new() }, targets: Vec::new(), warnings }
    }
}

fn read_text(path: &Path) -> Result<Option<String>, String> {
    match std::fs::metadata(path) {
        // A pipe by that name would be waited for.
        Ok(metadata) if !metadata.is_file() => return Err("it is not a file".to_owned()),
        Ok(_) => {}
        Err(error)
            if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(format!("it can't be read ({error})")),
    }
    let mut bytes = Vec::new();
    let read =
        std::fs::File::open(path).and_then(|file| file.take(LARGEST_BYTES + 1).read_to_end(&mut bytes));
    match read {
        Ok(length) if length as u64 > LARGEST_BYTES => Err("it is larger than a megabyte".to_owned()),
        Ok(_) => String::from_utf8(bytes)
            .map(Some)
            .map_err(|error| format!("it is not UTF-8 (at byte {})", error.utf8_error().valid_up_to())),
        Err(error) => Err(format!("it can't be read ({error})")),
    }
}

/// The targets of a group, with a warning for each thing in them that can't be used.
fn targets_of(
    position: Option<Position>,
    group: TomlNode<'_>,
    source: &Source,
    warnings: &mut Vec<Warning>,
) -> Vec<(String, Vec<Entry>)> {
    let not_a_table = |written: &str, position| Warning {
        source: source.clone(),
        position,
        message: format!("`{written}` must be a table, as in `[target.NAME]`. It is not used."),
    };
    let Ok(targets) = group.children() else {
        warnings.push(not_a_table(TARGET, position));
        return Vec::new();
    };
    let mut named = Vec::new();
    for (name, position, target) in targets {
        let written = format!("{TARGET}.{name}");
        match target.children() {
            Ok(keys) => {
                let entries = flatten(target_table(), keys, &format!("{written}."));
                warnings.extend(check_only(target_table(), &entries, source));
                named.push((name, entries));
            }
            Err(_) => warnings.push(not_a_table(&written, position)),
        }
    }
    named
}

/// A value of a file, with the means to say where names stand.
struct TomlNode<'a> {
    value: DeValue<'a>,
    places: &'a Places<'a>,
}

impl Node for TomlNode<'_> {
    fn children(self) -> Result<Vec<(String, Option<Position>, Self)>, Self> {
        match self.value {
            DeValue::Table(table) => Ok(children_of(table, self.places)),
            _ => Err(self),
        }
    }

    fn value(self) -> Value {
        to_json(&self.value, DEEPEST_VALUE)
    }
}

fn children_of<'a>(
    table: DeTable<'a>,
    places: &'a Places<'a>,
) -> Vec<(String, Option<Position>, TomlNode<'a>)> {
    let child = |(name, value): (Spanned<std::borrow::Cow<'_, str>>, Spanned<DeValue<'a>>)| {
        let position = places.at(name.span().start);
        (name.into_inner().into_owned(), Some(position), TomlNode { value: value.into_inner(), places })
    };
    table.into_iter().map(child).collect()
}

/// The value as JSON, which is what settings are checked as. What JSON lacks (dates, infinity) becomes a text, which no
/// setting of another type takes.
fn to_json(value: &DeValue<'_>, depth: usize) -> Value {
    if depth == 0 {
        return Value::String("nested too deeply".to_owned());
    }
    match value {
        DeValue::String(text) => Value::String(text.clone().into_owned()),
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| Value::String(number.as_str().to_owned()), Value::from),
        DeValue::Float(number) => number
            .as_str()
            .parse()
            .ok()
            .and_then(serde_json::Number::from_f64)
            .map_or_else(|| Value::String(number.as_str().to_owned()), Value::Number),
        DeValue::Datetime(date) => Value::String(date.to_string()),
        DeValue::Array(list) => list.iter().map(|item| to_json(item.get_ref(), depth - 1)).collect(),
        DeValue::Table(table) => Value::Object(
            table
                .iter()
                .map(|(name, item)| (name.get_ref().clone().into_owned(), to_json(item.get_ref(), depth - 1)))
                .collect(),
        ),
    }
}

/// Lines and columns of a text, found without reading it from the start each time.
struct Places<'a> {
    text: &'a str,
    line_starts: Vec<usize>,
}

impl<'a> Places<'a> {
    fn new(text: &'a str) -> Self {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        Self { text, line_starts: std::iter::once(0).chain(ends).collect() }
    }

    fn at(&self, offset: usize) -> Position {
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let start = self.line_starts[line - 1];
        let before = self.text.get(start..offset).unwrap_or_default();
        Position { line, column: before.chars().count() + 1 }
    }
}
