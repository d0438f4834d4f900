//! From what a person writes, `path` or `path::Name`, to what is called and with what: the [`Subject`].

use std::path::{Path, PathBuf};

use stitch_analysis::decode;
use stitch_analysis::target::compose::candidate_name;
use stitch_analysis::target::inputs::{
    Given, GivenCase, InputError, Inputs, case_of_text, inputs_of, inputs_of_statements,
};
use stitch_analysis::target::propose::Proposal;
use stitch_analysis::target::statements::{self, Statements};
use stitch_analysis::target::targets::{Target, TargetKind, named, targets};

use super::subject::{Callable, Case, Source, Subject};
use super::values::Dtype;

/// The module of a candidate in KernelBench's convention (its `src/eval.py`).
const NEW_MODEL: &str = "ModelNew";

/// What was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The file.
    pub path: PathBuf,
    /// A class, a function, or lines (`12-14`, `12`); without, the only module of the file, or its `Model`.
    pub name: Option<String>,
    /// What to make a module with, as the text of an argument list; instead of what the file says.
    pub init: Option<String>,
    /// Sets of inputs, each the text of an argument list as in `# stitchcuda: inputs(...)`; instead of what the file says.
    pub inputs: Vec<String>,
}

impl Asked {
    /// Reads `path` or `path::Name`.
    pub fn of(text: &str) -> Self {
        match text.rsplit_once("::") {
            Some((path, name)) if !name.is_empty() => {
                Self { path: path.into(), name: Some(name.to_owned()), ..Self::default() }
            }
            _ => Self { path: text.into(), ..Self::default() },
        }
    }

    /// The same with its path as seen from a folder.
    pub fn within(mut self, folder: &Path) -> Self {
        self.path = crate::paths::canonical(&folder.join(&self.path));
        self
    }
}

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
    let asked =
        Asked { init: said.init.clone(), inputs: said.inputs.clone(), ..Asked::of(text) }.within(folder);
    let mut subject = find(&asked)?;
    if !said.dtypes.is_empty() {
        let cases = std::mem::take(&mut subject.cases);
        let of = |dtype: &Dtype| {
            cases.iter().map(|case| Case { dtype: Some(*dtype), ..case.clone() }).collect::<Vec<_>>()
        };
        subject.cases = said.dtypes.iter().flat_map(of).collect();
    }
    Ok(subject)
}

/// The candidate for a reference that a person named in `folder`: `path`, where its name follows from the reference's, or `path::Name`.
///
/// # Errors
/// There is no such file or name.
pub fn candidate(text: &str, folder: &Path, reference: &Subject) -> Result<Subject, FindError> {
    let Asked { path, name, .. } = Asked::of(text).within(folder);
    let Some(name) = name else {
        let found = candidate_of(reference, &path);
        // A function may do what a module does that has nothing to be made with.
        let is_function = || {
            let text = read(&path).unwrap_or_default();
            named(&text, NEW_MODEL).is_ok_and(|target| target.kind == TargetKind::Function)
        };
        if found.is_err() && is_function() {
            let callable = Callable::Function { name: NEW_MODEL.to_owned() };
            return Ok(Subject { path, callable, cases: reference.cases.clone() });
        }
        return found;
    };
    let target = named(&read(&path)?, &name).map_err(|why| FindError::Target { path: path.clone(), why })?;
    let callable = match (target.kind, &reference.callable) {
        (TargetKind::Module, Callable::Module { init, .. }) => Callable::Module { name, init: init.clone() },
        (TargetKind::Module, _) => Callable::Module { name, init: None },
        (TargetKind::Function, _) => Callable::Function { name },
    };
    Ok(Subject { path, callable, cases: reference.cases.clone() })
}

/// Why nothing can be called.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// The file can't be read.
    #[error("{} can't be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What happened.
        source: std::io::Error,
    },
    /// The file is no text that Python reads.
    #[error("{} is no text in an encoding that can be read; save it as UTF-8", path.display())]
    Encoding {
        /// The file.
        path: PathBuf,
    },
    /// The name is missing, unknown, or of something that can't be called.
    #[error("{}: {why}", path.display())]
    Target {
        /// The file.
        path: PathBuf,
        /// One sentence, with the names that there are.
        why: String,
    },
    /// A comment or a text of inputs can't be read.
    #[error("{place}: {message}")]
    Inputs {
        /// `file.py:12`, or the flag.
        place: String,
        /// What is wrong with it.
        message: String,
    },
    /// Nothing says what to call it with.
    #[error("{}: {what} {}", path.display(), advice(proposals))]
    NoInputs {
        /// The file.
        path: PathBuf,
        /// What is missing.
        what: String,
        /// What could be given.
        proposals: Vec<Proposal>,
    },
}

/// What to do where inputs are missing.
fn advice(proposals: &[Proposal]) -> String {
    let flags = "Give them with --inputs 'randn(8, 64)' (and --init '64' for what a module is made with), or write a comment above it:";
    if proposals.is_empty() {
        return format!("{flags}\n  # stitchcuda: inputs(randn(8, 64))");
    }
    let mut text = flags.to_owned();
    for proposal in proposals {
        for line in proposal.comment.lines() {
            text.push_str(&format!("\n  {line}"));
        }
        text.push_str(&format!("\n    from {}", proposal.origin));
    }
    text
}

/// Finds what to call, reading the file.
///
/// # Errors
/// What is missing or wrong, and what to do.
pub fn find(asked: &Asked) -> Result<Subject, FindError> {
    let text = read(&asked.path)?;
    find_in(asked, &text)
}

/// Finds what to call in the text of the file; no I/O.
///
/// # Errors
/// What is missing or wrong, and what to do.
pub fn find_in(asked: &Asked, text: &str) -> Result<Subject, FindError> {
    if let Some(lines) = asked.name.as_deref().and_then(line_range) {
        return of_statements(asked, text, lines);
    }
    let wrong = |why| FindError::Target { path: asked.path.clone(), why };
    let target = match &asked.name {
        Some(name) => named(text, name).map_err(wrong)?,
        None => only(text).map_err(wrong)?,
    };
    let cases = given_cases(asked)?;
    let init = asked.init.as_ref().map(|text| Source::Expression { text: text.trim().to_owned() });
    let found = match inputs_of(text, &target).map_err(|error| in_file(asked, text, error))? {
        Inputs::Given(given) => given,
        Inputs::Missing { what, given, lacks_init, proposals } => {
            let lacks_cases = given.cases.is_empty() && cases.is_empty();
            if lacks_cases || lacks_init && init.is_none() {
                return Err(FindError::NoInputs { path: asked.path.clone(), what, proposals });
            }
            given
        }
    };
    let init = init.or_else(|| found.init.map(|given| source_of(asked, given)));
    let cases = if cases.is_empty() {
        found.cases.into_iter().map(|case| case_of(asked, case)).collect()
    } else {
        cases
    };
    let callable = match target.kind {
        TargetKind::Module => Callable::Module { name: target.name, init },
        TargetKind::Function => Callable::Function { name: target.name },
    };
    Ok(Subject { path: asked.path.clone(), callable, cases })
}

/// The subject of a candidate: the same inputs as the reference's, evaluated in the reference; the candidate's own name.
///
/// # Errors
/// Which names the candidate has, where none is meant.
pub fn candidate_of(reference: &Subject, path: &Path) -> Result<Subject, FindError> {
    let text = read(path)?;
    candidate_in(reference, path, &text)
}

/// The same for a text; no I/O.
///
/// # Errors
/// Which names the candidate has, where none is meant.
pub fn candidate_in(reference: &Subject, path: &Path, text: &str) -> Result<Subject, FindError> {
    let (kind, name) = match &reference.callable {
        Callable::Module { name, .. } => (TargetKind::Module, name.as_str()),
        Callable::Function { name } => (TargetKind::Function, name.as_str()),
        Callable::Statements { .. } => (TargetKind::Function, "statements"),
    };
    let wrong = |why| FindError::Target { path: path.to_owned(), why };
    let found = candidate_name(text, kind, name).map_err(wrong)?;
    let callable = match &reference.callable {
        Callable::Module { init, .. } => Callable::Module { name: found, init: init.clone() },
        _ => Callable::Function { name: found },
    };
    Ok(Subject { path: path.to_owned(), callable, cases: reference.cases.clone() })
}

fn read(path: &Path) -> Result<String, FindError> {
    let bytes =
        std::fs::read(path).map_err(|source| FindError::Unreadable { path: path.to_owned(), source })?;
    let decoded = decode(&bytes).ok_or_else(|| FindError::Encoding { path: path.to_owned() })?;
    Ok(decoded.text.into_owned())
}

/// `12-14` or `12`.
fn line_range(name: &str) -> Option<(u32, u32)> {
    match name.split_once('-') {
        Some((first, last)) => Some((first.parse().ok()?, last.parse().ok()?)),
        None => name.parse().ok().map(|line| (line, line)),
    }
}

/// The target of a file of which none was named.
fn only(text: &str) -> Result<Target, String> {
    let all = targets(text);
    let modules: Vec<&Target> = all.iter().filter(|target| target.kind == TargetKind::Module).collect();
    if let Some(model) = modules.iter().find(|target| target.name == "Model") {
        return Ok((*model).clone());
    }
    let names =
        |list: &[&Target]| list.iter().map(|target| target.name.as_str()).collect::<Vec<_>>().join(", ");
    match (&modules[..], &all[..]) {
        ([only], _) => Ok((*only).clone()),
        ([], [only]) => Ok(only.clone()),
        ([], []) => {
            Err("It has no class derived from torch.nn.Module and no function of tensors.".to_owned())
        }
        ([], _) => Err(format!(
            "It has several functions; write which one, as in path::{}: {}.",
            all[0].name,
            names(&all.iter().collect::<Vec<_>>())
        )),
        (several, _) => Err(format!(
            "It has several modules; write which one, as in path::{}: {}.",
            several[0].name,
            names(several)
        )),
    }
}

/// What was given on the command line.
fn given_cases(asked: &Asked) -> Result<Vec<Case>, FindError> {
    let read = |text: &String| {
        let case = case_of_text(text).map_err(|error| FindError::Inputs {
            place: format!("--inputs '{text}'"),
            message: error.message,
        })?;
        Ok(case_of(asked, case))
    };
    asked.inputs.iter().map(read).collect()
}

fn of_statements(asked: &Asked, text: &str, (first, last): (u32, u32)) -> Result<Subject, FindError> {
    let wrong = |why| FindError::Target { path: asked.path.clone(), why };
    let found: Statements = statements::on_lines(text, first, last).map_err(wrong)?;
    let mut cases = given_cases(asked)?;
    if cases.is_empty() {
        match inputs_of_statements(text, &found).map_err(|error| in_file(asked, text, error))? {
            Inputs::Given(given) => {
                cases = given.cases.into_iter().map(|case| case_of(asked, case)).collect()
            }
            Inputs::Missing { what, proposals, .. } => {
                return Err(FindError::NoInputs { path: asked.path.clone(), what, proposals });
            }
        }
    }
    let callable = Callable::Statements { lines: found.lines, reads: found.reads, sets: found.sets };
    Ok(Subject { path: asked.path.clone(), callable, cases })
}

/// An error with its line.
fn in_file(asked: &Asked, text: &str, error: InputError) -> FindError {
    let before = text.get(..error.span.start).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    FindError::Inputs { place: format!("{}:{line}", asked.path.display()), message: error.message }
}

fn source_of(asked: &Asked, given: Given) -> Source {
    match given {
        Given::Function { name, .. } => Source::Function { name },
        Given::Expression { text, .. } => Source::Expression { text },
        // Beside the Python file.
        Given::File { path, .. } => {
            Source::File { path: asked.path.parent().unwrap_or(Path::new("")).join(path) }
        }
    }
}

fn case_of(asked: &Asked, case: GivenCase) -> Case {
    let dtype = case.dtype.as_deref().and_then(|name| match name {
        "float64" => Some(Dtype::Float64),
        "float32" => Some(Dtype::Float32),
        "float16" => Some(Dtype::Float16),
        "bfloat16" => Some(Dtype::Bfloat16),
        _ => None,
    });
    Case { inputs: source_of(asked, case.inputs), dtype }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "import torch.nn as nn\nclass Block(nn.Module):\n    def __init__(self, dim: int):\n        super().__init__()\n        \
        self.fc = nn.Linear(dim, dim)\n    def forward(self, x):\n        return self.fc(x)\nclass Net(nn.Module):\n    \
        # stitchcuda: inputs(randn(4, 8), dtype=half)\n    # stitchcuda: inputs(file=\"x.pt\")\n    def forward(self, x):\n        return x\n";

    fn asked(target: &str, init: Option<&str>, inputs: &[&str]) -> Asked {
        let inputs = inputs.iter().map(|text| (*text).to_owned()).collect();
        Asked { init: init.map(str::to_owned), inputs, ..Asked::of(target) }
    }

    fn message(target: &str, text: &str) -> String {
        find_in(&Asked::of(target), text).unwrap_err().to_string()
    }

    #[test]
    fn a_problem_of_kernelbench_needs_no_name() {
        let text = "import torch\nclass Part(torch.nn.Module):\n    def forward(self, x): return x\nclass Model(torch.nn.Module):\n    \
                    def __init__(self, n): super().__init__()\n    def forward(self, x): return x\ndef get_inputs(): return [1]\n\
                    def get_init_inputs(): return [1]\n";
        let subject = find_in(&Asked::of("1_x.py"), text).unwrap();
        let function = |name: &str| Source::Function { name: name.to_owned() };
        let callable = Callable::Module { name: "Model".to_owned(), init: Some(function("get_init_inputs")) };
        let cases = vec![Case { inputs: function("get_inputs"), dtype: None }];
        assert_eq!(subject, Subject { path: "1_x.py".into(), callable, cases: cases.clone() });
        let candidate =
            candidate_in(&subject, Path::new("c.py"), &text.replace("Model(", "ModelNew(")).unwrap();
        let callable =
            Callable::Module { name: "ModelNew".to_owned(), init: Some(function("get_init_inputs")) };
        assert_eq!(candidate, Subject { path: "c.py".into(), callable, cases });
    }

    #[test]
    fn comments_give_cases_and_flags_go_before_them() {
        let subject = find_in(&Asked::of("a/n.py::Net"), TWO).unwrap();
        let expression = |text: &str| Source::Expression { text: text.to_owned() };
        let first = Case { inputs: expression("randn(4, 8)"), dtype: Some(Dtype::Float16) };
        let second = Case { inputs: Source::File { path: "a/x.pt".into() }, dtype: None };
        assert_eq!(subject.cases, [first, second]);
        let subject =
            find_in(&asked("n.py::Block", Some("16"), &["randn(2, 16)", "randn(3, 16), dtype=bf16"]), TWO)
                .unwrap();
        assert_eq!(
            subject.callable,
            Callable::Module { name: "Block".to_owned(), init: Some(expression("16")) }
        );
        assert_eq!(
            subject.cases[1],
            Case { inputs: expression("randn(3, 16)"), dtype: Some(Dtype::Bfloat16) }
        );
        assert!(find_in(&asked("n.py::Block", Some("16"), &[]), TWO).is_err());
        assert!(find_in(&asked("n.py::Block", None, &["randn(2, 16)"]), TWO).is_err());
    }

    #[test]
    fn what_is_missing_is_said_with_what_could_be_given() {
        assert_eq!(
            message("n.py", TWO),
            "n.py: It has several modules; write which one, as in path::Block: Block, Net."
        );
        assert_eq!(
            message("n.py::Nets", TWO),
            "n.py: No class or function is named `Nets`; the file has Block, Net."
        );
        let text = message("n.py::Block", TWO);
        assert!(text.contains("--inputs"), "{text}");
        assert!(
            text.contains("\n  # stitchcuda: init(64)\n  # stitchcuda: inputs(randn(8, 64))\n    from "),
            "{text}"
        );
        let broken = TWO.replace("file=\"x.pt\"", "file=x.pt");
        assert!(
            message("n.py::Net", &broken).starts_with("n.py:10: `file=` takes"),
            "{}",
            message("n.py::Net", &broken)
        );
        assert!(message("nowhere/n.py", "x = 1").contains("no class derived"));
        assert!(find(&Asked::of("nowhere/n.py")).unwrap_err().to_string().contains("can't be read"));
    }

    #[test]
    fn lines_are_a_target() {
        let text = "import torch\ndef f(x, w):\n    y = x @ w\n    z = y.relu()\n    return z + y\n";
        let subject = find_in(&asked("f.py::3-4", None, &["randn(2, 2), randn(2, 2)"]), text).unwrap();
        let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let (reads, sets) = (names(&["x", "w"]), names(&["y", "z"]));
        assert_eq!(subject.callable, Callable::Statements { lines: [3, 4], reads, sets });
        assert!(message("f.py::5", text).contains("returns"), "{}", message("f.py::5", text));
        let candidate =
            candidate_in(&subject, Path::new("c.py"), "def fast(x, w):\n    return x, w\n").unwrap();
        assert_eq!(candidate.callable, Callable::Function { name: "fast".to_owned() });
    }
}
