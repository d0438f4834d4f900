//! From what a person types to what is called: `model.py`, `model.py::Name`, with inputs where the file has none.
//!
//! A file without a name follows KernelBench's convention: the module `Model` with `get_inputs` and `get_init_inputs`, and for a candidate
//! `ModelNew`, or else the reference's own name.

use std::path::{Path, PathBuf};

use super::subject::{Callable, Case, Source, Subject};
use super::values::{Dtype, Tree};

/// The module of a reference, its inputs, the arguments it is made with (KernelBench, `src/eval.py`).
const MODEL: &str = "Model";
const INPUTS: &str = "get_inputs";
const INIT: &str = "get_init_inputs";
/// The module of a candidate.
const NEW_MODEL: &str = "ModelNew";

/// What was said besides the name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Said {
    /// Argument lists, each a case.
    pub inputs: Vec<String>,
    /// The argument list that a module is made with.
    pub init: Option<String>,
    /// Types that inputs and parameters are turned into, each with every case.
    pub dtypes: Vec<Dtype>,
}

/// Why a name means nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    /// There is no such file.
    #[error("{} can't be read: {reason}.", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// It has no such class or function.
    #[error("{} has neither a class nor a function `{name}` at its top level{}", path.display(), known(names))]
    NoName {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
        /// Those that there are.
        names: Vec<String>,
    },
    /// Nothing says what it is called with.
    #[error(
        "Nothing says what `{name}` of {} is called with. Give it: `--inputs \"randn(32, 1024)\"`, or a function `get_inputs` in the file.",
        path.display()
    )]
    NoInputs {
        /// The file.
        path: PathBuf,
        /// The name.
        name: String,
    },
}

fn known(names: &[String]) -> String {
    if names.is_empty() { ", nor any other.".to_owned() } else { format!("; it has {}.", names.join(", ")) }
}

/// Whether a name is that of a Python file, or of something in one.
pub fn is_python(text: &str) -> bool {
    let file = text.split_once("::").map_or(text, |(file, _)| file);
    Path::new(file).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("py"))
}

/// The reference that a person named in `folder`.
///
/// # Errors
/// There is no such file or name, or nothing says what it is called with.
pub fn reference(text: &str, folder: &Path, said: &Said) -> Result<Subject, FindError> {
    let file = File::read(text, folder)?;
    let name = file.asked.clone().unwrap_or_else(|| MODEL.to_owned());
    let is_class = file.kind(&name)?;
    let init = match &said.init {
        Some(text) => Some(Source::Expression { text: text.clone() }),
        None => (name == MODEL && file.has(INIT)).then(|| Source::Function { name: INIT.to_owned() }),
    };
    let inputs: Vec<Source> = if said.inputs.is_empty() {
        if !file.has(INPUTS) {
            return Err(FindError::NoInputs { path: file.path, name });
        }
        vec![Source::Function { name: INPUTS.to_owned() }]
    } else {
        said.inputs.iter().map(|text| Source::Expression { text: text.clone() }).collect()
    };
    let dtypes: Vec<Option<Dtype>> =
        if said.dtypes.is_empty() { vec![None] } else { said.dtypes.iter().copied().map(Some).collect() };
    let cases = dtypes
        .iter()
        .flat_map(|dtype| inputs.iter().map(|inputs| Case { inputs: inputs.clone(), dtype: *dtype }))
        .collect();
    let callable = if is_class { Callable::Module { name, init } } else { Callable::Function { name } };
    Ok(Subject { path: file.path, callable, cases })
}

/// The candidate for a reference.
///
/// # Errors
/// There is no such file or name.
pub fn candidate(text: &str, folder: &Path, reference: &Subject) -> Result<Subject, FindError> {
    let file = File::read(text, folder)?;
    let (wanted, init) = match &reference.callable {
        Callable::Module { name, init } => (name.clone(), init.clone()),
        Callable::Function { name } => (name.clone(), None),
        Callable::Statements { .. } => {
            return Ok(Subject { path: file.path, ..reference.clone() });
        }
    };
    let name = match &file.asked {
        Some(name) => name.clone(),
        None if matches!(reference.callable, Callable::Module { .. }) && file.has(NEW_MODEL) => {
            NEW_MODEL.to_owned()
        }
        None => wanted,
    };
    let callable =
        if file.kind(&name)? { Callable::Module { name, init } } else { Callable::Function { name } };
    Ok(Subject { path: file.path, callable, cases: reference.cases.clone() })
}

/// A file and the names at its top level.
struct File {
    path: PathBuf,
    /// The name behind `::`.
    asked: Option<String>,
    /// Names, and whether each is a class.
    names: Vec<(String, bool)>,
}

impl File {
    fn read(text: &str, folder: &Path) -> Result<Self, FindError> {
        let (file, asked) = match text.split_once("::") {
            Some((file, name)) => (file, Some(name.to_owned())),
            None => (text, None),
        };
        let path = folder.join(file);
        let refuse = |reason: String| FindError::File { path: path.clone(), reason };
        let bytes = std::fs::read(&path).map_err(|error| refuse(error.to_string()))?;
        let decoded = stitch_analysis::decode(&bytes).ok_or_else(|| refuse("it is no text".to_owned()))?;
        Ok(Self { asked, names: names(decoded.text.as_ref()), path: crate::paths::canonical(&path) })
    }

    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|known| known.0 == name)
    }

    /// Whether a name is that of a class. A name with dots is what its first part is: `Class.method` is a function.
    fn kind(&self, name: &str) -> Result<bool, FindError> {
        let first = name.split('.').next().unwrap_or(name);
        match self.names.iter().rev().find(|known| known.0 == first) {
            Some((_, is_class)) => Ok(*is_class && first == name),
            None => Err(FindError::NoName {
                path: self.path.clone(),
                name: name.to_owned(),
                names: self.names.iter().map(|known| known.0.clone()).collect(),
            }),
        }
    }
}

/// Names that a file defines or sets at its top level, and whether each is a class.
fn names(text: &str) -> Vec<(String, bool)> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let name_of = |rest: &str| rest.chars().take_while(|c| is_name(*c)).collect::<String>();
    let mut names = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("class ") {
            names.push((name_of(rest), true));
        } else if let Some(rest) = line.strip_prefix("def ") {
            names.push((name_of(rest), false));
        } else if let Some((left, right)) = line.split_once('=')
            && !left.is_empty()
            && left.trim_end().chars().all(is_name)
            && !left.starts_with(char::is_whitespace)
            && !right.starts_with('=')
        {
            // `forward = torch.compile(f)` is a function; `ModelNew = Model` is what the other is.
            let is_class = names.iter().any(|known: &(String, bool)| known.0 == right.trim() && known.1);
            names.push((left.trim_end().to_owned(), is_class));
        }
    }
    names.retain(|name| !name.0.is_empty());
    names
}

/// Arguments as Python would write them: `(3, 0.5), mode="mean"`. `None` where a tensor is among them.
pub(super) fn literal(arguments: &Tree) -> Option<String> {
    match arguments {
        Tree::Tuple { items } | Tree::List { items } => list(items),
        Tree::Named { items, .. } => {
            let part = |name: &str| items.iter().find(|item| item.0 == name).map(|item| &item.1);
            let (Some(Tree::Tuple { items: positional }), Some(Tree::Dict { items: named })) =
                (part("args"), part("kwargs"))
            else {
                return None;
            };
            let named: Option<Vec<String>> =
                named.iter().map(|(name, value)| Some(format!("{name}={}", value_of(value)?))).collect();
            let parts = [list(positional)?, named?.join(", ")];
            Some(parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", "))
        }
        _ => None,
    }
}

fn list(items: &[Tree]) -> Option<String> {
    Some(items.iter().map(value_of).collect::<Option<Vec<_>>>()?.join(", "))
}

fn value_of(tree: &Tree) -> Option<String> {
    Some(match tree {
        Tree::Tensor { .. } | Tree::Named { .. } => return None,
        Tree::Int { v } => v.clone(),
        Tree::Float { v } => format!("float({})", quoted(v)),
        Tree::Bool { v } => if *v { "True" } else { "False" }.to_owned(),
        Tree::Str { v } => quoted(v),
        Tree::None => "None".to_owned(),
        Tree::Tuple { items } if items.is_empty() => "()".to_owned(),
        Tree::Tuple { items } => format!("({},)", list(items)?),
        Tree::List { items } => format!("[{}]", list(items)?),
        Tree::Dict { items } => {
            let items: Option<Vec<String>> = items
                .iter()
                .map(|(key, value)| Some(format!("{}: {}", quoted(key), value_of(value)?)))
                .collect();
            format!("{{{}}}", items?.join(", "))
        }
    })
}

/// A text as a literal of Python: what is no plain character is escaped by its number.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            ' '..='~' if c != '"' && c != '\\' => quoted.push(c),
            _ => quoted.push_str(&format!("\\U{:08x}", u32::from(c))),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "import torch\nN = 4\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x\n\
                        class ModelNew(Model): pass\ndef scale(x):\n    return x\nOther = Model\n\
                        def get_inputs():\n    return [torch.rand(N)]\ndef get_init_inputs():\n    return [1]\n";

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("m.py"), FILE).unwrap();
        std::fs::write(folder.path().join("bare.py"), "def scale(x):\n    return x\nclass Model: pass\n")
            .unwrap();
        let path = folder.path().to_owned();
        (folder, path)
    }

    #[test]
    fn names_become_subjects() {
        let (_keep, folder) = folder();
        let kernelbench = reference("m.py", &folder, &Said::default()).unwrap();
        assert_eq!(
            kernelbench.callable,
            Callable::Module { name: "Model".into(), init: Some(Source::Function { name: INIT.into() }) }
        );
        assert_eq!(
            kernelbench.cases,
            [Case { inputs: Source::Function { name: INPUTS.into() }, dtype: None }]
        );
        let new = candidate("m.py", &folder, &kernelbench).unwrap();
        assert!(matches!(&new.callable, Callable::Module { name, init: Some(_) } if name == "ModelNew"));
        let same = candidate("bare.py", &folder, &kernelbench).unwrap();
        assert!(matches!(&same.callable, Callable::Module { name, .. } if name == "Model"));
        let said = Said {
            inputs: vec!["randn(3)".into(), "randn(5)".into()],
            dtypes: vec![Dtype::Float32, Dtype::Float16],
            ..Said::default()
        };
        let function = reference("bare.py::scale", &folder, &said).unwrap();
        assert_eq!(function.callable, Callable::Function { name: "scale".into() });
        assert_eq!(function.cases.len(), 4);
        assert_eq!(candidate("m.py", &folder, &function).unwrap().callable, function.callable);
        let alias = reference("m.py::Other", &folder, &Said::default()).unwrap();
        assert!(matches!(alias.callable, Callable::Module { init: None, .. }));
    }

    #[test]
    fn what_means_nothing_is_said() {
        let (_keep, folder) = folder();
        let said = |text: &str| reference(text, &folder, &Said::default()).unwrap_err().to_string();
        assert!(said("no.py").contains("no.py can't be read"));
        assert!(said("m.py::Modle").contains("it has N, Model, ModelNew, scale"));
        assert!(said("bare.py::scale").contains("--inputs"));
        assert!(is_python("a.py::B") && is_python("a.py") && !is_python("a.cu::py") && !is_python("a.cu"));
    }

    #[test]
    fn arguments_become_text() {
        let int = |v: &str| Tree::Int { v: v.into() };
        let positional = Tree::Tuple {
            items: vec![
                int("3"),
                Tree::Float { v: "inf".into() },
                Tree::List { items: vec![Tree::None] },
                Tree::Str { v: "a\"\n".into() },
            ],
        };
        let text = "3, float(\"inf\"), [None], \"a\\U00000022\\U0000000a\"";
        assert_eq!(literal(&positional).unwrap(), text);
        let named = Tree::Dict { items: vec![("bias".into(), Tree::Bool { v: true })] };
        let both = Tree::Named {
            name: "arguments".into(),
            items: vec![("args".into(), positional), ("kwargs".into(), named)],
        };
        assert_eq!(literal(&both).unwrap(), format!("{text}, bias=True"));
        assert_eq!(literal(&Tree::Tuple { items: vec![Tree::Tensor { i: 0 }] }), None);
        assert_eq!(
            literal(&Tree::Tuple { items: vec![Tree::Tuple { items: vec![int("1")] }] }).unwrap(),
            "(1,)"
        );
    }
}
