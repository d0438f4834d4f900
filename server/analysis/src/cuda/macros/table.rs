//! The attribute macros of libraries that many people use: `grammars/macros.toml`.

use std::sync::OnceLock;

use serde::Deserialize;

use super::{Attribute, Names, Runs};

#[derive(Deserialize)]
struct Table {
    attribute: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    names: Vec<String>,
    #[serde(default)]
    call: bool,
    runs: Option<String>,
}

fn runs_of(name: &str) -> Option<Runs> {
    Some(match name {
        "kernel" => Runs { kernel: true, ..Runs::default() },
        "device" => Runs { device: true, ..Runs::default() },
        "host" => Runs { host: true, ..Runs::default() },
        "host-device" => Runs { device: true, host: true, kernel: false },
        _ => return None,
    })
}

fn read_table(text: &str) -> Result<Names<Option<Attribute>>, String> {
    let table: Table = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut names = Names::default();
    for row in table.attribute {
        let runs = match &row.runs {
            None => Runs::default(),
            Some(name) => {
                runs_of(name).ok_or_else(|| format!("`{name}` is no place where a function runs"))?
            }
        };
        for name in row.names {
            names.insert(name.into_bytes().into(), Some(Attribute { runs, call: row.call }));
        }
    }
    Ok(names)
}

/// The built-in table. A test reads it, so it can't be broken in a build.
pub(super) fn built_in() -> &'static Names<Option<Attribute>> {
    static TABLE: OnceLock<Names<Option<Attribute>>> = OnceLock::new();
    TABLE.get_or_init(|| read_table(include_str!("../../../../../grammars/macros.toml")).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::lexer::Lexer;

    #[test]
    fn the_built_in_table_is_sound() {
        let table = read_table(include_str!("../../../../../grammars/macros.toml")).unwrap();
        assert!(table.len() > 50);
        for name in table.keys() {
            let text = std::str::from_utf8(name).unwrap();
            assert_eq!(Lexer::at(text, 0).next().unwrap().end, text.len(), "{text} is one word");
        }
        assert!(read_table("[[attribute]]\nnames = [\"A\"]\nruns = \"gpu\"\n").is_err());
    }
}
