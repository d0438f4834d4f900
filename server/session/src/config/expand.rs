//! Variables and relative paths in values: `${workspaceFolder}`, `${env:NAME}`, `~`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::keys::PathKind;

/// What variables stand for, at the place where a setting was written and for the folder it is read for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expansion<'a> {
    pub(super) workspace_folder: Option<&'a Path>,
    pub(super) home: Option<&'a Path>,
    pub(super) environment: &'a BTreeMap<String, String>,
    /// Where relative paths start.
    pub(super) base: Option<&'a Path>,
}

impl Expansion<'_> {
    /// The value with its variables replaced, in it and in its list, and its path made absolute.
    ///
    /// # Errors
    /// What a variable lacks, in a sentence.
    pub(super) fn expand(&self, value: Value, path: Option<PathKind>) -> Result<Value, String> {
        match value {
            Value::String(text) => {
                let text = self.variables(&text)?;
                match path {
                    Some(kind) => self.path(&text, kind),
                    None => Ok(Value::String(text)),
                }
            }
            Value::Array(list) => {
                let list = list.into_iter().map(|item| match item {
                    Value::String(text) => self.variables(&text).map(Value::String),
                    other => Ok(other),
                });
                list.collect::<Result<_, _>>().map(Value::Array)
            }
            other => Ok(other),
        }
    }

    fn variables(&self, text: &str) -> Result<String, String> {
        let mut expanded = String::new();
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            let Some(length) = rest[start..].find('}') else { break };
            expanded.push_str(&rest[..start]);
            expanded.push_str(&self.variable(&rest[start + 2..start + length])?);
            // Not looked at again: what a variable holds is taken as it is.
            rest = &rest[start + length + 1..];
        }
        expanded.push_str(rest);
        Ok(expanded)
    }

    fn variable(&self, name: &str) -> Result<String, String> {
        if name == "workspaceFolder" {
            let folder =
                self.workspace_folder.ok_or("there is no workspace folder for `${workspaceFolder}`")?;
            return Ok(folder.to_string_lossy().into_owned());
        }
        match name.strip_prefix("env:") {
            Some(variable) => match self.environment.get(variable) {
                Some(value) => Ok(value.clone()),
                None => Err(format!("the variable `{variable}` is not set")),
            },
            None => {
                Err(format!("`${{{name}}}` is not known; `${{workspaceFolder}}` and `${{env:NAME}}` are"))
            }
        }
    }

    fn path(&self, text: &str, kind: PathKind) -> Result<Value, String> {
        // The settings page of an editor leaves an empty text behind.
        if text.is_empty() {
            return Ok(Value::Null);
        }
        let path = match text.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with(['/', '\\']) => {
                let home = self.home.ok_or("no home folder is known for `~`")?;
                home.join(rest.trim_start_matches(['/', '\\']))
            }
            _ => PathBuf::from(text),
        };
        let is_bare_name = kind == PathKind::Program && path.components().count() == 1;
        let path = match self.base {
            Some(base) if !is_bare_name => base.join(path),
            _ => path,
        };
        // By its components, which drops each `.` and a slash at the end.
        Ok(path.components().collect::<PathBuf>().to_string_lossy().into())
    }
}
