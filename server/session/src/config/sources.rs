//! What each source says, as a flat list of entries: an editor nests its settings or writes dots, a file has tables, a variable and a
//! flag are text. Nothing is checked here.

use std::collections::BTreeMap;

use serde_json::Value;

use super::keys::{Key, Table, config_table, types};
use super::warning::{Position, Source};
use crate::folders;

/// The name that editors put before every key.
pub(super) const PREFIX: &str = "stitchcuda";
/// Groups of settings that belong to the plugins: how they start the server. The editor sends them along.
const EDITORS_OWN: [&str; 2] = ["server", "trace"];

/// What variables of ours begin with that are no settings: the key for a model, which is none so that it is never written down, the mark
/// of a job's processes, and what tests are given.
const OTHER_VARIABLES: [&str; 3] = ["STITCHCUDA_API_KEY", "STITCHCUDA_JOB", "STITCHCUDA_TEST_"];

/// The table that a file, or an editor that nests its settings, may have in the place of one setting: where the device is another machine's, its
/// name and the command that leads there belong together.
const TABLE: &str = "device";
/// What that table's entries set.
const IN_TABLE: [(&str, &str); 3] = [
    ("device.name", "device"),
    ("device.command", "worker.command"),
    ("device.patienceSeconds", "worker.patienceSeconds"),
];

/// One setting as it was written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    /// The full name of the key, or of what is no key.
    pub(super) key: String,
    /// The entry of the key's table.
    pub(super) item: Option<String>,
    /// What a person wrote, for messages: with a prefix, or as a variable.
    pub(super) written: String,
    pub(super) value: Value,
    pub(super) position: Option<Position>,
}

/// All that one source says.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    pub(super) source: Source,
    pub(super) entries: Vec<Entry>,
}

/// A tree of settings that can be taken apart.
pub(super) trait Node: Sized {
    /// What is inside, if it is a table, with where the name stands.
    fn children(self) -> Result<Vec<(String, Option<Position>, Self)>, Self>;
    /// All of it as a value.
    fn value(self) -> Value;
}

impl Node for Value {
    fn children(self) -> Result<Vec<(String, Option<Position>, Self)>, Self> {
        match self {
            Value::Object(object) => {
                Ok(object.into_iter().map(|(name, value)| (name, None, value)).collect())
            }
            // Lua can't tell an empty table from an empty list.
            Value::Array(list) if list.is_empty() => Ok(Vec::new()),
            other => Err(other),
        }
    }

    fn value(self) -> Value {
        self
    }
}

/// Takes a tree apart into entries; it goes no deeper than the keys do. `shown` is put before the names in messages.
pub(super) fn flatten<N: Node>(
    table: &Table,
    root: Vec<(String, Option<Position>, N)>,
    shown: &str,
) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut groups = vec![(String::new(), root)];
    while let Some((prefix, children)) = groups.pop() {
        for (word, position, node) in children {
            let key = if prefix.is_empty() { word } else { format!("{prefix}.{word}") };
            let written = format!("{shown}{key}");
            let meant = IN_TABLE.iter().find(|(word, meant)| *word == key && table.find(meant).is_some());
            let is_table = key == TABLE && IN_TABLE.iter().all(|(_, meant)| table.find(meant).is_some());
            let key = meant.map_or(key, |(_, meant)| (*meant).to_owned());
            let is_map = table.find(&key).is_some_and(|key| key.is_map);
            if !is_table && !is_map && !table.groups.contains_key(&key) {
                entries.push(Entry { key, item: None, written, value: node.value(), position });
                continue;
            }
            match node.children() {
                Ok(items) if is_map => {
                    entries.extend(items.into_iter().map(|(item, position, node)| Entry {
                        key: key.clone(),
                        written: format!("{written}.{item}"),
                        item: Some(item),
                        value: node.value(),
                        position,
                    }))
                }
                Ok(children) => groups.push((key, children)),
                Err(node) => entries.push(Entry { key, item: None, written, value: node.value(), position }),
            }
        }
    }
    entries
}

/// What an editor's settings say: `{"nvcc": {"path": …}}`, `{"nvcc.path": …}`, either inside `{"stitchcuda": …}` or with that prefix.
/// Null is what an editor sends for what is not set.
pub(super) fn editor(settings: Value) -> Layer {
    let mut root = Vec::new();
    let mut odd = odd_settings(&settings);
    for (name, position, value) in settings.children().unwrap_or_default() {
        match name.strip_prefix(PREFIX) {
            Some("") => {
                odd = odd.or_else(|| odd_settings(&value));
                root.extend(value.children().unwrap_or_default());
            }
            Some(rest) if rest.starts_with('.') => root.push((rest[1..].to_owned(), position, value)),
            _ => root.push((name, position, value)),
        }
    }
    let mut entries = flatten(config_table(), root, &format!("{PREFIX}."));
    entries.retain(|entry| {
        let group = entry.key.split('.').next().unwrap_or_default();
        !entry.value.is_null() && !EDITORS_OWN.contains(&group)
    });
    entries.extend(odd);
    Layer { source: Source::Editor, entries }
}

/// What stands for settings that are no table, under a name that no setting has. An empty list is how Lua writes an empty table.
fn odd_settings(settings: &Value) -> Option<Entry> {
    let is_nothing = settings.is_null() || settings.as_array().is_some_and(Vec::is_empty);
    let written = String::new();
    (!settings.is_object() && !is_nothing).then(|| Entry {
        key: written.clone(),
        item: None,
        written,
        value: settings.clone(),
        position: None,
    })
}

/// What the environment says: `STITCHCUDA_NVCC_PATH=…`.
pub(super) fn environment(variables: &BTreeMap<String, String>) -> Layer {
    let table = config_table();
    let names: BTreeMap<_, _> = table.keys().map(|key| (key.environment_variable(), key)).collect();
    let mut entries = Vec::new();
    for (variable, text) in variables {
        if !variable.starts_with("STITCHCUDA_") || is_no_setting(variable) {
            continue;
        }
        match names.get(variable) {
            // An empty variable is how a shell unsets one for a command.
            Some(_) if text.is_empty() => {}
            Some(key) => entries.extend(from_text(key, variable, text)),
            None => entries.push(Entry {
                key: variable.clone(),
                item: None,
                written: variable.clone(),
                value: Value::String(text.clone()),
                position: None,
            }),
        }
    }
    Layer { source: Source::Environment, entries }
}

/// Whether a variable of ours is for something else than a setting.
fn is_no_setting(variable: &str) -> bool {
    folders::OVERRIDES.contains(&variable) || OTHER_VARIABLES.iter().any(|start| variable.starts_with(start))
}

/// What flags of the command line say: pairs of a key and a text.
pub(super) fn flags(flags: &[(String, String)]) -> Layer {
    let table = config_table();
    let entries = flags.iter().flat_map(|(name, text)| match table.find(name) {
        Some(key) => from_text(key, name, text),
        None => vec![Entry {
            key: name.clone(),
            item: None,
            written: name.clone(),
            value: Value::String(text.clone()),
            position: None,
        }],
    });
    Layer { source: Source::Flag, entries: entries.collect() }
}

/// A value written as text, in the type that the key wants; a text that is not of that type stays one, and is warned of later.
fn from_text(key: &Key, written: &str, text: &str) -> Vec<Entry> {
    let as_text = || Value::String(text.to_owned());
    let types = types(&key.schema);
    let value = match types.first().copied() {
        Some("boolean") => match text.to_ascii_lowercase().as_str() {
            "true" | "1" | "on" | "yes" => Value::Bool(true),
            "false" | "0" | "off" | "no" => Value::Bool(false),
            _ => as_text(),
        },
        Some("integer" | "number") => {
            text.trim().parse::<serde_json::Number>().map_or_else(|_| as_text(), Value::Number)
        }
        Some("object") => serde_json::from_str(text).unwrap_or_else(|_| as_text()),
        Some("array") if text.trim_start().starts_with('[') => {
            serde_json::from_str(text).unwrap_or_else(|_| as_text())
        }
        Some("array") => shell_words::split(text).map_or_else(|_| as_text(), Value::from),
        _ => as_text(),
    };
    let entry =
        |item, written: String, value| Entry { key: key.name.clone(), item, written, value, position: None };
    match value {
        Value::Object(object) if key.is_map => object
            .into_iter()
            .map(|(item, value)| entry(Some(item.clone()), format!("{written}: {item}"), value))
            .collect(),
        value => vec![entry(None, written.to_owned(), value)],
    }
}
