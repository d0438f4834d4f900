//! The keys there are, read off the JSON schema of the struct, so that there is no second list to keep.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::model::Config;
use super::target::Target;

/// What a path in a setting names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKind {
    /// A file or folder; a relative one starts where the setting was written.
    Path,
    /// A program; a bare name is looked for in `PATH`.
    Program,
}

/// One setting.
#[derive(Clone, Debug)]
pub struct Key {
    /// Its full name, `nvcc.path`; in an editor `stitchcuda.nvcc.path`.
    pub name: String,
    /// What it means, in Markdown.
    pub description: String,
    /// What it may be, as a JSON schema without description and default.
    pub schema: Value,
    /// What it is when nobody sets it.
    pub default: Value,
    /// Whether an untrusted workspace may not set it: it names programs, their flags, where files are written, or where code is sent.
    pub restricted: bool,
    /// What it names, if it is a path.
    pub path: Option<PathKind>,
    /// Whether its value is a table, whose entries all sources add to.
    pub is_map: bool,
    /// Whether the entries of that table are named by finding codes.
    pub has_codes: bool,
}

impl Key {
    /// The variable of the environment that sets it: `STITCHCUDA_NVCC_PATH`.
    pub fn environment_variable(&self) -> String {
        let mut variable = String::from("STITCHCUDA_");
        for character in self.name.chars() {
            match character {
                '.' => variable.push('_'),
                upper if upper.is_ascii_uppercase() => variable.extend(['_', upper]),
                other => variable.push(other.to_ascii_uppercase()),
            }
        }
        variable
    }

    /// What it may be, in words.
    pub(super) fn expected(&self) -> String {
        match self.path {
            Some(PathKind::Path) => "a path".to_owned(),
            Some(PathKind::Program) => "a path or the name of a program".to_owned(),
            None => expected(&self.schema),
        }
    }

    fn new(name: String, mut schema: Value) -> Self {
        let mut take = |word: &str| schema.as_object_mut().and_then(|object| object.remove(word));
        let description = take("description").as_ref().map(one_paragraph).unwrap_or_default();
        let default = take("default").unwrap_or_default();
        let restricted = take("x-restricted") == Some(Value::Bool(true));
        let has_codes = take("x-codes") == Some(Value::Bool(true));
        let path =
            take("x-path").map(|kind| if kind == "program" { PathKind::Program } else { PathKind::Path });
        let is_map = schema.get("additionalProperties").is_some_and(Value::is_object);
        Self { name, description, schema, default, restricted, path, is_map, has_codes }
    }
}

/// The description without the line ends of the source.
fn one_paragraph(description: &Value) -> String {
    description.as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The keys of one struct, and how to tell what fits it.
pub(super) struct Table {
    keys: BTreeMap<String, Key>,
    /// What the groups of keys are for, by name.
    pub(super) groups: BTreeMap<String, String>,
    /// Whether a whole struct fits; what is not given has its default.
    fits: fn(Value) -> bool,
}

impl Table {
    fn of<T: JsonSchema + Serialize + DeserializeOwned + Default>() -> Self {
        let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
        let root = settings.into_generator().into_root_schema_for::<T>().to_value();
        let mut table = Self {
            keys: BTreeMap::new(),
            groups: BTreeMap::new(),
            fits: |value| serde_json::from_value::<T>(value).is_ok(),
        };
        let mut groups = vec![(String::new(), root)];
        while let Some((prefix, mut group)) = groups.pop() {
            let Some(Value::Object(properties)) = group.get_mut("properties").map(Value::take) else {
                continue;
            };
            for (word, schema) in properties {
                let name = if prefix.is_empty() { word } else { format!("{prefix}.{word}") };
                if schema.get("properties").is_some() {
                    let description = schema.get("description").map(one_paragraph).unwrap_or_default();
                    table.groups.insert(name.clone(), description);
                    groups.push((name, schema));
                } else {
                    table.keys.insert(name.clone(), Key::new(name, schema));
                }
            }
        }
        table
    }

    pub(super) fn find(&self, name: &str) -> Option<&Key> {
        self.keys.get(name)
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.keys.values()
    }

    /// The keys of a group, without those of groups inside it; those in no group for the empty name.
    pub(super) fn keys_of(&self, group: &str) -> impl Iterator<Item = &Key> {
        self.keys().filter(move |key| key.name.rsplit_once('.').map_or("", |(before, _)| before) == group)
    }

    /// Whether `key` may have this value; for a map, whether its entry `item` may.
    pub(super) fn fits(&self, key: &Key, item: Option<&str>, value: &Value) -> bool {
        let schema = match item {
            Some(_) => &key.schema["additionalProperties"],
            None => &key.schema,
        };
        // Bounds are in the schema only; the types are checked by reading them.
        let bound = |word: &str| schema.get(word).and_then(Value::as_f64);
        if let Some(number) = value.as_f64()
            && (bound("minimum").is_some_and(|least| number < least)
                || bound("maximum").is_some_and(|most| number > most))
        {
            return false;
        }
        let value = match item {
            Some(item) => json!({ item: value }),
            None => value.clone(),
        };
        let whole = key.name.rsplit('.').fold(value, |inner, word| json!({ word: inner }));
        (self.fits)(whole)
    }

    /// The key that was probably meant by `name`.
    pub(super) fn suggest(&self, name: &str) -> Option<&str> {
        nearest(name, self.keys.keys().map(String::as_str))
    }
}

/// The one of `known` that `name` is most like, if it is like any.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    /// No key is near as long, and the comparison takes the product of the lengths.
    const LONGEST: usize = 100;
    /// Fewer letters begin too many keys.
    const LEAST_BEGINNING: usize = 5;
    if name.len() > LONGEST {
        return None;
    }
    let plain = |text: &str| text.replace(['-', '_', '.', ' '], "").to_lowercase();
    let name = plain(name);
    let distance = |candidate: &str| {
        let candidate = plain(candidate);
        // What begins the same was cut short rather than misspelt.
        let begins_it = name.len() >= LEAST_BEGINNING && candidate.starts_with(&name);
        if begins_it { 1 } else { strsim::osa_distance(&name, &candidate) }
    };
    known
        .map(|candidate| (distance(candidate), candidate))
        .min()
        .filter(|(distance, _)| *distance <= (name.chars().count() / 3).max(1))
        .map(|(_, candidate)| candidate)
}

static CONFIG: LazyLock<Table> = LazyLock::new(Table::of::<Config>);
static TARGET: LazyLock<Table> = LazyLock::new(Table::of::<Target>);

pub(super) fn config_table() -> &'static Table {
    &CONFIG
}

pub(super) fn target_table() -> &'static Table {
    &TARGET
}

/// Every setting there is, by name.
pub fn keys() -> impl Iterator<Item = &'static Key> {
    CONFIG.keys()
}

/// The words that a value may be, with what each means; empty if it is not one of a few words.
pub(super) fn words(schema: &Value) -> Vec<(&str, String)> {
    let mut found = Vec::new();
    let lists = ["oneOf", "anyOf"].iter().filter_map(|word| schema.get(*word)?.as_array()).flatten();
    for part in std::iter::once(schema).chain(lists) {
        let description = part.get("description").map(one_paragraph).unwrap_or_default();
        found.extend(part.get("const").and_then(Value::as_str).map(|word| (word, description)));
        let plain = part.get("enum").and_then(Value::as_array).into_iter().flatten();
        found.extend(plain.filter_map(Value::as_str).map(|word| (word, String::new())));
        if part.get("oneOf").is_some() && !std::ptr::eq(part, schema) {
            let inner = part["oneOf"].as_array().into_iter().flatten();
            found.extend(inner.filter_map(|part| {
                Some((
                    part.get("const")?.as_str()?,
                    part.get("description").map(one_paragraph).unwrap_or_default(),
                ))
            }));
        }
    }
    found
}

/// The JSON types that a value may have.
pub(super) fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::Array(types)) => types.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(one)) => vec![one],
        _ => {
            let parts = schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array);
            let mut types: Vec<_> = parts.into_iter().flatten().flat_map(types).collect();
            types.dedup();
            types
        }
    }
}

/// What a value may be, in words.
pub(super) fn expected(schema: &Value) -> String {
    if let Some(text) = schema.get("x-expected").and_then(Value::as_str) {
        return text.to_owned();
    }
    let words = words(schema);
    if !words.is_empty() {
        let mut words: Vec<_> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
        let last = words.pop().unwrap_or_default();
        return if words.is_empty() { last } else { format!("{} or {last}", words.join(", ")) };
    }
    let types = types(schema);
    let bounds = || {
        let [least, most] = ["minimum", "maximum"].map(|word| schema.get(word).map(Value::to_string));
        least.zip(most).map(|(least, most)| format!(" from {least} to {most}")).unwrap_or_default()
    };
    match types.first() {
        Some(&"boolean") => "true or false".to_owned(),
        Some(&"integer") => format!("a whole number{}", bounds()),
        Some(&"number") => format!("a number{}", bounds()),
        Some(&"array") => "a list of texts".to_owned(),
        Some(&"object") => format!("a table whose values are {}", expected(&schema["additionalProperties"])),
        _ => "a text".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_description_and_a_default_that_fits() {
        for table in [config_table(), target_table()] {
            for key in table.keys() {
                assert!(key.description.ends_with('.'), "{}: {}", key.name, key.description);
                assert!(table.fits(key, None, &key.default), "{}", key.name);
                assert!(!types(&key.schema).is_empty(), "{}: {}", key.name, key.schema);
            }
            assert!(table.groups.values().all(|description| description.ends_with('.')));
        }
    }

    #[test]
    fn keys_that_name_programs_or_places_to_write_to_are_restricted() {
        let restricted: Vec<_> = keys().filter(|key| key.restricted).map(|key| key.name.as_str()).collect();
        assert_eq!(
            restricted,
            [
                "cache.folder",
                "clang.path",
                "log.file",
                "model.endpoint",
                "nvcc.extraFlags",
                "nvcc.path",
                "worker.command"
            ]
        );
        assert!(keys().filter(|key| key.path.is_some()).all(|key| key.restricted));
        let target: Vec<_> =
            target_table().keys().filter(|key| key.restricted).map(|key| key.name.as_str()).collect();
        assert_eq!(target, ["args", "build", "cwd", "files", "run"]);
    }

    #[test]
    fn variables_of_the_environment_are_all_different() {
        let variables: std::collections::HashSet<_> = keys().map(Key::environment_variable).collect();
        assert_eq!(variables.len(), keys().count());
        assert!(variables.contains("STITCHCUDA_NVCC_EXTRA_FLAGS") && variables.contains("STITCHCUDA_DEVICE"));
        assert!(crate::folders::OVERRIDES.iter().all(|name| !variables.contains(*name)));
    }

    #[test]
    fn the_nearest_key_is_suggested_if_it_is_near() {
        let cases = [
            ("nvcc.pth", Some("nvcc.path")),
            ("nvccPath", Some("nvcc.path")),
            ("nvcc.extra_flags", Some("nvcc.extraFlags")),
            ("compile.onsave", Some("compile.onSave")),
            ("inlay-hints.enable", Some("inlayHints.enable")),
            ("devise", Some("device")),
            ("nvcc.arch", Some("nvcc.architecture")),
            ("something.else", None),
            ("", None),
        ];
        for (name, expected) in cases {
            assert_eq!(config_table().suggest(name), expected, "{name}");
        }
        assert_eq!(config_table().suggest(&"x".repeat(1_000_000)), None);
    }
}
