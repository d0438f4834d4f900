//! Puts layers over the defaults, and says what could not be used.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use stitch_findings::CODES;

use super::expand::Expansion;
use super::keys::{Key, Table, config_table, expected, nearest, types};
use super::model::Config;
use super::severity::matches;
use super::sources::{Entry, Layer};
use super::warning::{Source, Warning};

/// A source with more mistakes than this has another format.
const MOST_WARNINGS: usize = 20;

/// Puts `layers`, later ones over earlier ones, over the defaults. `expansion` says for each where its paths start.
pub(super) fn merge<'a>(
    layers: impl IntoIterator<Item = (&'a Layer, Expansion<'a>)>,
    trusted: bool,
) -> (Config, Vec<Warning>) {
    let mut merged = Map::new();
    let mut warnings = Vec::new();
    for (layer, expansion) in layers {
        let mut problems = Vec::new();
        for entry in &layer.entries {
            match accept(config_table(), entry, &layer.source, Some(expansion), trusted) {
                Ok(Some((key, value))) => set(&mut merged, key, entry.item.as_deref(), value),
                Ok(None) => {}
                Err(message) => problems.push((entry, message)),
            }
        }
        warnings.extend(say(&layer.source, problems));
    }
    let config = serde_json::from_value(Value::Object(merged)).unwrap_or_else(|error| {
        // Every value was read alone before, so they can be read together.
        tracing::error!("the settings could not be put together: {error}");
        Config::default()
    });
    (config, warnings)
}

/// Warnings about entries of a table that nothing is set from.
pub(super) fn check_only(table: &Table, entries: &[Entry], source: &Source) -> Vec<Warning> {
    let problem = |entry| accept(table, entry, source, None, true).err().map(|message| (entry, message));
    say(source, entries.iter().filter_map(problem).collect())
}

/// The value that the entries of one table set. What can't be used is left out; [`check_only`] has said so, but for what
/// depends on the place: variables that are not set, and trust.
///
/// # Errors
/// The first entry that the place forbids or lacks a variable for, in whole sentences.
pub(super) fn read<T: DeserializeOwned>(
    table: &Table,
    entries: &[Entry],
    source: &Source,
    expansion: Expansion<'_>,
    trusted: bool,
) -> Result<T, String> {
    let mut values = Map::new();
    for entry in entries {
        if accept(table, entry, source, None, true).is_err() {
            continue;
        }
        if let Some((key, value)) = accept(table, entry, source, Some(expansion), trusted)? {
            set(&mut values, key, entry.item.as_deref(), value);
        }
    }
    serde_json::from_value(Value::Object(values)).map_err(|error| format!("It could not be read: {error}."))
}

fn say(source: &Source, mut problems: Vec<(&Entry, String)>) -> Vec<Warning> {
    problems.sort_by_key(|(entry, _)| (entry.position, entry.written.clone()));
    let more = problems.len().saturating_sub(MOST_WARNINGS);
    let mut warnings: Vec<_> = problems
        .into_iter()
        .take(MOST_WARNINGS)
        .map(|(entry, message)| Warning { source: source.clone(), position: entry.position, message })
        .collect();
    if more > 0 {
        let message = format!("{more} more settings here are not used.");
        warnings.push(Warning { source: source.clone(), position: None, message });
    }
    warnings
}

/// The key and the value that an entry sets, if it sets one; or why it can't, in whole sentences.
fn accept<'t>(
    table: &'t Table,
    entry: &Entry,
    source: &Source,
    expansion: Option<Expansion<'_>>,
    trusted: bool,
) -> Result<Option<(&'t Key, Value)>, String> {
    let written = shortened(&entry.written);
    let Some(key) = table.find(&entry.key) else { return Err(unknown(table, entry)) };
    if key.restricted && !trusted && matches!(source, Source::Workspace(_)) {
        return Err(format!(
            "`{written}` is not taken from a workspace that you have not trusted, since it can run programs, write files or \
             send your code away."
        ));
    }
    let mut value = as_wanted(key, entry.value.clone());
    if let Some(expansion) = expansion {
        value = expansion
            .expand(value, key.path)
            .map_err(|problem| format!("`{written}` is not used: {problem}."))?;
    }
    let fits = table.fits(key, entry.item.as_deref(), &value);
    if !fits || (entry.item.is_none() && key.is_map) {
        let expected =
            if entry.item.is_some() { expected(&key.schema["additionalProperties"]) } else { key.expected() };
        return Err(format!("`{written}` must be {expected}, but is {}. It is not used.", got(&entry.value)));
    }
    if let Some(item) = entry.item.as_deref().filter(|_| key.has_codes) {
        check_code(item)?;
    }
    // An editor sends the defaults of its own table along, which must not hide what a file says.
    let is_unset = *source == Source::Editor && (value.is_null() || value == key.default);
    Ok((!is_unset).then_some((key, value)))
}

/// The value as the key wants it, where JSON and Lua leave a choice: `5.0` for 5, an empty table for an empty list.
fn as_wanted(key: &Key, value: Value) -> Value {
    let types = types(&key.schema);
    match &value {
        Value::Object(object) if object.is_empty() && types.contains(&"array") => Value::Array(Vec::new()),
        Value::Number(number) if types.contains(&"integer") && number.is_f64() => match number.as_f64() {
            // Every whole number that fits a setting is exact in a float.
            Some(float) if float.fract() == 0.0 && (0.0..=1e15).contains(&float) => Value::from(float as u64),
            _ => value,
        },
        _ => value,
    }
}

fn set(merged: &mut Map<String, Value>, key: &Key, item: Option<&str>, value: Value) {
    let mut words: Vec<_> = key.name.split('.').chain(item).collect();
    let last = words.pop().unwrap_or_default();
    let mut group = merged;
    for word in words {
        let inner = group.entry(word).or_insert_with(|| Value::Object(Map::new()));
        // Groups and keys have different names, so what is there is a group.
        let Value::Object(inner) = inner else { return };
        group = inner;
    }
    group.insert(last.to_owned(), value);
}

fn unknown(table: &Table, entry: &Entry) -> String {
    let written = shortened(&entry.written);
    if entry.written.is_empty() {
        return format!("The settings must be a table, but are {}. They are not used.", got(&entry.value));
    }
    if table.groups.contains_key(&entry.key) {
        let first = table.keys_of(&entry.key).next().map_or("", |key| key.name.as_str());
        return format!("`{written}` is a group of settings, like `{first}`, but is {}.", got(&entry.value));
    }
    let before = entry.written.strip_suffix(&entry.key).unwrap_or_default();
    // A variable is compared with variables.
    let variables: Vec<_> = table.keys().map(Key::environment_variable).collect();
    let suggestion = match before.is_empty() && entry.key.starts_with("STITCHCUDA_") {
        true => nearest(&entry.key, variables.iter().map(String::as_str)),
        false => table.suggest(&entry.key),
    };
    match suggestion {
        Some(near) => format!("The setting `{written}` is not known. Did you mean `{before}{near}`?"),
        None => format!("The setting `{written}` is not known."),
    }
}

/// What to say of a finding's code that there is none of, or of a pattern for none.
fn check_code(code: &str) -> Result<(), String> {
    if CODES.iter().any(|info| matches(code, info.code.as_str())) {
        return Ok(());
    }
    let written = shortened(code);
    Err(match nearest(code, CODES.iter().map(|info| info.code.as_str())) {
        Some(near) => format!("No finding has the code `{written}`. Did you mean `{near}`?"),
        None => format!("No finding has the code `{written}`."),
    })
}

/// A value in a message: its kind, and its text where that is short.
fn got(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => format!("{value}"),
        Value::Number(number) => format!("{number}"),
        Value::String(text) => format!("the text \"{}\"", shortened(text)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a table".to_owned(),
    }
}

fn shortened(text: &str) -> String {
    const LONGEST: usize = 60;
    let plain: String =
        text.chars().take(LONGEST).map(|one| if one.is_control() { ' ' } else { one }).collect();
    if text.chars().nth(LONGEST).is_some() { format!("{plain}…") } else { plain }
}
