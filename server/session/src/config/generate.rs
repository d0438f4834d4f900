//! What is made from the struct: the documentation, the table of an editor's settings page, types for Lua, a schema for
//! `stitchcuda.toml`. Each is a pure function, and a test compares it with the file that is checked in.

use std::fmt::Write;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::keys::{Key, Table, config_table, target_table, types, words};
use super::model::Config;
use super::target::Target;

/// Text before the list of settings in the documentation.
const INTRODUCTION: &str = include_str!("introduction.md");

/// The JSON schema of `stitchcuda.toml`.
pub fn schema() -> Value {
    let mut schema = schema_of::<Config>();
    schema["title"] = json!("stitchcuda.toml");
    schema["properties"]["target"] = json!({
        "type": "object",
        "description": "Programs with a build of their own, by name.",
        "additionalProperties": schema_of::<Target>(),
    });
    schema
}

fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    let mut parts = vec![&mut schema];
    while let Some(part) = parts.pop() {
        match part {
            Value::Object(object) => {
                object.retain(|word, _| !word.starts_with("x-"));
                parts.extend(object.values_mut());
            }
            Value::Array(list) => parts.extend(list),
            _ => {}
        }
    }
    schema
}

/// The `contributes.configuration.properties` of a VS Code extension.
pub fn package_json_properties() -> Value {
    let property = |key: &Key| (format!("stitchcuda.{}", key.name), package_json_property(key));
    Value::Object(config_table().keys().map(property).collect())
}

fn package_json_property(key: &Key) -> Value {
    let mut property = Map::new();
    let types = types(&key.schema);
    property.insert("type".to_owned(), if let [one] = types[..] { json!(one) } else { json!(types) });
    property.insert("default".to_owned(), key.default.clone());
    property.insert("markdownDescription".to_owned(), json!(key.description));
    // Restricted ones are not taken from a workspace that is not trusted; the manifest lists them too.
    property
        .insert("scope".to_owned(), json!(if key.restricted { "machine-overridable" } else { "resource" }));
    for (name, value) in allowed(&key.schema) {
        property.insert(name, value);
    }
    if key.is_map {
        let mut entry: Map<_, _> = allowed(&key.schema["additionalProperties"]).into_iter().collect();
        entry.insert("type".to_owned(), json!(types_of_entry(key)));
        property.insert("additionalProperties".to_owned(), Value::Object(entry));
    }
    Value::Object(property)
}

fn types_of_entry(key: &Key) -> &str {
    types(&key.schema["additionalProperties"]).first().copied().unwrap_or("string")
}

/// What else a value may or may not be, in the words of a settings page.
fn allowed(schema: &Value) -> Vec<(String, Value)> {
    let bounds = ["minimum", "maximum", "pattern", "items"];
    let mut allowed: Vec<_> =
        bounds.iter().filter_map(|word| Some(((*word).to_owned(), schema.get(*word)?.clone()))).collect();
    let (words, meanings): (Vec<_>, Vec<_>) = words(schema).into_iter().unzip();
    if !words.is_empty() {
        allowed.push(("enum".to_owned(), json!(words)));
        allowed.push(("markdownEnumDescriptions".to_owned(), json!(meanings)));
    }
    allowed
}

/// The keys that an editor must not take from a workspace that is not trusted.
pub fn restricted_keys() -> Vec<String> {
    let restricted = config_table().keys().filter(|key| key.restricted);
    restricted.map(|key| format!("stitchcuda.{}", key.name)).collect()
}

/// `docs/configuration.md`.
pub fn markdown() -> String {
    let mut text = INTRODUCTION.to_owned();
    text.push_str("\n## Settings\n");
    for key in config_table().keys_of("") {
        describe(&mut text, key, "###");
    }
    for (group, description) in &config_table().groups {
        let _ = write!(text, "\n### {group}\n\n{description}\n");
        for key in config_table().keys_of(group) {
            describe(&mut text, key, "####");
        }
    }
    text.push_str(
        "\n## Programs with a build of their own\n\nEach `[target.NAME]` in a `stitchcuda.toml` describes one. `stitchcuda verify` \
         and `profile` take its name in place of a file.\n\n| key | value | meaning |\n|---|---|---|\n",
    );
    for key in target_table().keys() {
        let _ = writeln!(text, "| `{}` | {} | {} |", key.name, key.expected(), key.description);
    }
    text
}

fn describe(text: &mut String, key: &Key, heading: &str) {
    // Writing to a string can't fail.
    let _ = write!(text, "\n{heading} `{}`\n\n{}\n\n", key.name, key.description);
    let words = words(&key.schema);
    if words.is_empty() {
        let _ = writeln!(text, "- Value: {}", key.expected());
    }
    for (word, meaning) in words {
        let _ = writeln!(text, "- `{word}`: {meaning}");
    }
    let _ = writeln!(text, "- Default: {}", default_text(key));
    let _ = writeln!(text, "- Variable: `{}`", key.environment_variable());
    if key.restricted {
        text.push_str("- Not taken from a workspace that is not trusted\n");
    }
}

fn default_text(key: &Key) -> String {
    match &key.default {
        Value::Null => "unset".to_owned(),
        Value::String(text) => format!("`{text}`"),
        other => format!("`{other}`"),
    }
}

/// LuaCATS types of the settings, for completion in a Neovim configuration.
pub fn luacats() -> String {
    let mut text = String::from(
        "---@meta\n\n-- Generated from the server's configuration (server/session/src/config). UPDATE_EXPECT=1 with the tests of\n\
         -- stitch-session rewrites it.\n",
    );
    let table = config_table();
    let _ = write!(text, "\n---@class stitchcuda.Config\n");
    for (group, description) in &table.groups {
        let _ = writeln!(text, "---{description}\n---@field {group}? stitchcuda.Config.{group}");
    }
    lua_fields(&mut text, table, "");
    for (group, description) in &table.groups {
        let _ = write!(text, "\n---{description}\n---@class stitchcuda.Config.{group}\n");
        lua_fields(&mut text, table, group);
    }
    text
}

fn lua_fields(text: &mut String, table: &Table, group: &str) {
    for key in table.keys_of(group) {
        let name = key.name.rsplit('.').next().unwrap_or_default();
        let _ = writeln!(text, "---{}\n---@field {name}? {}", key.description, lua_type(&key.schema));
    }
}

fn lua_type(schema: &Value) -> String {
    let words = words(schema);
    if !words.is_empty() {
        return words.iter().map(|(word, _)| format!("\"{word}\"")).collect::<Vec<_>>().join("|");
    }
    match types(schema).first().copied() {
        Some("boolean") => "boolean".to_owned(),
        Some("integer") => "integer".to_owned(),
        Some("number") => "number".to_owned(),
        Some("array") => "string[]".to_owned(),
        Some("object") => format!("table<string, {}>", lua_type(&schema["additionalProperties"])),
        _ => "string".to_owned(),
    }
}

/// The columns of a help page of Vim.
const HELP_WIDTH: usize = 78;

/// The settings as a help page for Neovim, with a tag for each.
pub fn vimdoc() -> String {
    let rule = "=".repeat(HELP_WIDTH);
    let mut text = format!(
        "*stitchcuda-settings.txt*  Settings of StitchCUDA\n\n{rule}\nSETTINGS{:>70}\n\n",
        "*stitchcuda-settings*"
    );
    fill(
        &mut text,
        "They go into `vim.g.stitchcuda.settings`, nested by their dots; a `stitchcuda.toml` beside the code and variables of the \
         environment set them too.",
        "",
    );
    text.push_str(
        "\n>lua\n    vim.g.stitchcuda = {\n      settings = { device = 'sim:h200', inlayHints = { stale = 'dim' } },\n    }\n<\n",
    );
    for key in config_table().keys() {
        let tag = format!("*stitchcuda-settings.{}*", key.name);
        let _ = writeln!(
            text,
            "{}{tag:>width$}",
            key.name,
            width = (HELP_WIDTH - key.name.len()).max(tag.len() + 1)
        );
        fill(&mut text, &key.description, "    ");
        let words = words(&key.schema);
        if words.is_empty() {
            fill(&mut text, &format!("Value: {}.", key.expected()), "    ");
        }
        for (word, meaning) in words {
            fill(&mut text, &format!("`{word}`: {meaning}"), "    ");
        }
        fill(&mut text, &format!("Default: {}.", default_text(key)), "    ");
        if key.restricted {
            fill(&mut text, "Not taken from a workspace that is not trusted.", "    ");
        }
        text.push('\n');
    }
    text.push_str(" vim:tw=78:ft=help:norl:\n");
    text
}

/// Adds a paragraph in lines of the width of a help page, each after `indent`.
fn fill(text: &mut String, paragraph: &str, indent: &str) {
    let mut line = indent.to_owned();
    for word in paragraph.split_whitespace() {
        if line.len() > indent.len() && line.chars().count() + 1 + word.chars().count() > HELP_WIDTH {
            let _ = writeln!(text, "{line}");
            line = indent.to_owned();
        }
        if line.len() > indent.len() {
            line.push(' ');
        }
        line.push_str(word);
    }
    let _ = writeln!(text, "{line}");
}

#[cfg(test)]
mod tests {
    use expect_test::{expect, expect_file};

    use super::*;

    /// Rewritten by `UPDATE_EXPECT=1`.
    #[test]
    fn the_documentation_is_up_to_date() {
        expect_file!["../../../../docs/configuration.md"].assert_eq(&markdown());
    }

    /// Rewritten by `UPDATE_EXPECT=1`, and nothing else of the manifest is.
    #[test]
    fn the_manifest_of_the_vs_code_extension_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../editors/vscode/package.json");
        let mut text = std::fs::read_to_string(path).unwrap();
        let mut restricted = vec!["stitchcuda.server.path".to_owned()];
        restricted.extend(restricted_keys());
        let parts = [
            ("/contributes/configuration/0/properties", "\"properties\": ", package_json_properties()),
            (
                "/capabilities/untrustedWorkspaces/restrictedConfigurations",
                "\"restrictedConfigurations\": ",
                json!(restricted),
            ),
        ];
        for (pointer, before, expected) in parts {
            let manifest: Value = serde_json::from_str(&text).unwrap();
            if manifest.pointer(pointer) == Some(&expected) {
                continue;
            }
            assert!(
                std::env::var_os("UPDATE_EXPECT").is_some(),
                "{pointer} of {path} is not what the configuration says; run this test with UPDATE_EXPECT=1"
            );
            // The settings that are generated are the first of their name.
            let start = text.find(before).unwrap() + before.len();
            let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
            values.next().unwrap().unwrap();
            let end = start + values.byte_offset();
            let line = text[..start].rfind('\n').unwrap() + 1;
            let indent = text[line..].len() - text[line..].trim_start().len();
            let sorted: std::collections::BTreeMap<_, _> =
                expected.as_object().into_iter().flatten().collect();
            let written = match expected.is_array() {
                true => serde_json::to_string_pretty(&expected),
                false => serde_json::to_string_pretty(&sorted),
            };
            text.replace_range(
                start..end,
                &written.unwrap().replace('\n', &format!("\n{}", " ".repeat(indent))),
            );
            std::fs::write(path, &text).unwrap();
        }
    }

    #[test]
    fn a_settings_page_knows_what_each_may_be() {
        let properties = package_json_properties();
        assert_eq!(properties.as_object().unwrap().len(), config_table().keys().count());
        let mut text = String::new();
        for name in [
            "nvcc.path",
            "inlayHints.stale",
            "occupancy.assumedBlockSize",
            "diagnostics.severity",
            "nvcc.extraFlags",
        ] {
            let property = properties[format!("stitchcuda.{name}")].as_object().unwrap();
            // Sorted, for another crate may ask for maps in the order of insertion.
            let mut lines: Vec<_> =
                property.iter().map(|(word, value)| format!("  {word}: {value}\n")).collect();
            lines.retain(|line| !line.starts_with("  markdownDescription"));
            lines.sort();
            text.push_str(&format!("{name}\n{}", lines.concat()));
        }
        expect![[r#"
            nvcc.path
              default: null
              scope: "machine-overridable"
              type: ["string","null"]
            inlayHints.stale
              default: "hide"
              enum: ["dim","hide"]
              markdownEnumDescriptions: ["It stays, marked as from before the edit.","It is gone until it is measured again, or the edit is undone."]
              scope: "resource"
              type: "string"
            occupancy.assumedBlockSize
              default: 256
              maximum: 1024
              minimum: 1
              scope: "resource"
              type: "integer"
            diagnostics.severity
              additionalProperties: {"enum":["off","hint","information","warning","error"],"markdownEnumDescriptions":["Not shown.","Minor.","Worth reading.","A likely defect.","Does not compile, or computes wrong."],"type":"string"}
              default: {}
              scope: "resource"
              type: "object"
            nvcc.extraFlags
              default: []
              items: {"type":"string"}
              scope: "machine-overridable"
              type: "array"
        "#]].assert_eq(&text);
        assert!(
            properties
                .as_object()
                .unwrap()
                .values()
                .all(|property| property["markdownDescription"].is_string())
        );
    }

    /// Rewritten by `UPDATE_EXPECT=1`.
    #[test]
    fn the_plugin_for_neovim_is_up_to_date() {
        expect_file!["../../../../editors/neovim/lua/stitchcuda/settings.lua"].assert_eq(&luacats());
        expect_file!["../../../../editors/neovim/doc/stitchcuda-settings.txt"].assert_eq(&vimdoc());
    }

    #[test]
    fn help_names_every_key_within_its_width() {
        let text = vimdoc();
        for key in config_table().keys() {
            assert!(text.contains(&format!("*stitchcuda-settings.{}*", key.name)), "{}", key.name);
        }
        // A word may be longer than a line, as a path is.
        let long = text.lines().filter(|line| line.trim().contains(' ') && line.chars().count() > HELP_WIDTH);
        assert_eq!(long.collect::<Vec<_>>(), Vec::<&str>::new());
    }

    #[test]
    fn the_schema_describes_the_file_and_refuses_other_keys() {
        let schema = schema();
        for key in config_table().keys() {
            let place = format!("/properties/{}", key.name.replace('.', "/properties/"));
            let part = schema.pointer(&place).unwrap();
            assert!(part["description"].is_string(), "{}", key.name);
            assert!(part.get("x-path").is_none() && part.get("x-restricted").is_none(), "{}", key.name);
        }
        for place in ["", "/properties/nvcc", "/properties/target/additionalProperties"] {
            assert_eq!(schema.pointer(place).unwrap()["additionalProperties"], json!(false), "{place}");
        }
        assert!(!schema.to_string().contains("$ref"));
    }
}
