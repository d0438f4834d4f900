//! From what a person points at to what can be optimised: a program, or one kernel in a harness.

use stitch_analysis::target::denote::{Denoted, denoted};
use stitch_analysis::target::statements;
use stitch_analysis::target::targets::named as named_target;
use stitch_analysis::{Analysis, FunctionKind, Language};
use stitch_findings::Span;
use stitch_verifier::program::Target;
use stitch_verifier::torch::find::{Asked, find_in};
use stitch_verifier::torch::subject::{Callable, Subject};

/// What is optimised.
#[derive(Clone, Debug, PartialEq)]
pub struct Aim {
    /// The target; a kernel where the file has no `main`.
    pub target: Target,
    /// The kernel, for such a one.
    pub kernel: Option<String>,
    /// The functions that may be changed; all of the file where it is empty.
    pub scope: Vec<String>,
}

/// Why what a person points at can't be optimised.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AimError {
    /// There is no GPU code.
    #[error("there is no kernel in this file")]
    NoKernel,
    /// The selection holds none.
    #[error("the selection touches no function; select a kernel, or a function that launches one")]
    NothingSelected,
    /// The file has no `main`, and which kernel is meant is not said.
    #[error("the file has no `main`, so one kernel is run by itself; say which: {}", kernels.join(", "))]
    WhichKernel {
        /// Those that there are, as targets.
        kernels: Vec<String>,
    },
    /// The target has no file.
    #[error("the target names no file that may be changed; give it `files` in stitchcuda.toml")]
    NoFile,
}

/// Takes aim at a target, whose file has this text. `selection` is in bytes of it.
///
/// # Errors
/// There is nothing to optimise there; the message is short enough for a disabled menu entry.
pub fn aim(target: &Target, text: &str, selection: Option<Span>) -> Result<Aim, AimError> {
    let analysis = Analysis::of(Language::Cuda, text);
    let outline = analysis.outline();
    let kernels: Vec<String> = outline
        .kernels()
        .filter(|kernel| kernel.is_definition)
        .map(|kernel| kernel.qualified_name.clone())
        .collect();
    if kernels.is_empty() {
        return Err(AimError::NoKernel);
    }
    let selected = scope(&analysis, selection);
    if selection.is_some() && selected.is_empty() {
        return Err(AimError::NothingSelected);
    }
    match target {
        Target::Kernel { kernel, .. } => Ok(Aim {
            target: target.clone(),
            kernel: Some(kernel.clone()),
            scope: if selection.is_some() { selected } else { named(&kernels, kernel) },
        }),
        Target::Program(program) => {
            let path = program.sources.first().ok_or(AimError::NoFile)?.clone();
            let is_main = |function: &&stitch_analysis::Function| {
                function.name == "main" && function.kind == FunctionKind::Host && function.is_definition
            };
            let stands_alone = program.own.is_some() || program.sources.len() > 1;
            if stands_alone || outline.functions.iter().any(|function| is_main(&function)) {
                return Ok(Aim { target: target.clone(), kernel: None, scope: selected });
            }
            let meant: Vec<&String> = match selection {
                Some(_) => kernels.iter().filter(|kernel| selected.contains(kernel)).collect(),
                None => kernels.iter().collect(),
            };
            match meant[..] {
                [kernel] => Ok(Aim {
                    target: Target::Kernel { path, kernel: kernel.clone() },
                    kernel: Some(kernel.clone()),
                    scope: if selection.is_some() { selected } else { vec![kernel.clone()] },
                }),
                _ => {
                    let name = |kernel: &String| format!("{}::{kernel}", program.name);
                    Err(AimError::WhichKernel { kernels: kernels.iter().map(name).collect() })
                }
            }
        }
    }
}

/// What is optimised in a Python file.
#[derive(Clone, Debug, PartialEq)]
pub struct PythonAim {
    /// What is called, and with what.
    pub subject: Subject,
    /// The same in the text of the file.
    pub denoted: Denoted,
    /// The class or function that may be changed, or the lines.
    pub scope: Vec<String>,
}

/// Takes aim at what was asked for in a Python file, whose text this is; a selection, in bytes of it, denotes the module or function around it.
///
/// # Errors
/// There is nothing that can be called there, or nothing says with what; in sentences.
pub fn aim_python(asked: &Asked, text: &str, selection: Option<Span>) -> Result<PythonAim, String> {
    let mut asked = asked.clone();
    if let Some(selection) = selection {
        let around = match denoted(text, selection)? {
            // Statements are changed within what they belong to, which is what is called.
            Denoted::Statements(_) => denoted(text, Span::new(selection.start, selection.start))?,
            around => around,
        };
        asked.name = Some(around.title());
    }
    let subject = find_in(&asked, text).map_err(|error| error.to_string())?;
    let name = match &subject.callable {
        Callable::Module { name, .. } | Callable::Function { name } => name.clone(),
        Callable::Statements { lines, .. } => return aim_statements(text, *lines, subject),
    };
    let denoted = Denoted::Target(named_target(text, &name)?);
    Ok(PythonAim { subject, denoted, scope: vec![name] })
}

/// Takes aim at statements on lines of a file.
fn aim_statements(text: &str, lines: [u32; 2], subject: Subject) -> Result<PythonAim, String> {
    let found = statements::on_lines(text, lines[0], lines[1])?;
    if found.function.is_none() {
        return Err("The lines stand in no function, so they run once; name what they call, or put them into a function.".to_owned());
    }
    if let Some(own) = found.reads.iter().find(|name| name.contains('.')) {
        return Err(format!(
            "The lines read `{own}`, which belongs to the object around them; name its class to optimise it."
        ));
    }
    let denoted = Denoted::Statements(found);
    Ok(PythonAim { subject, scope: vec![denoted.title()], denoted })
}

/// The kernels that a person's name may mean, with their namespaces and without template arguments.
fn named(kernels: &[String], name: &str) -> Vec<String> {
    let bare = name.split('<').next().unwrap_or(name).trim();
    let is_meant =
        |kernel: &&String| *kernel == bare || kernel.rsplit("::").next().is_some_and(|last| last == bare);
    kernels.iter().filter(is_meant).cloned().collect()
}

/// The functions that a selection touches.
fn scope(analysis: &Analysis, selection: Option<Span>) -> Vec<String> {
    let Some(selection) = selection else { return Vec::new() };
    let touches =
        |span: Span| span.start < selection.end.max(selection.start + 1) && selection.start < span.end;
    let functions = analysis.outline().functions.iter();
    functions
        .filter(|function| function.is_definition && touches(function.span))
        .map(|function| function.qualified_name.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use stitch_verifier::program::Program;

    use super::*;

    const TWO: &str = "namespace n { __global__ void a(int* x) {} }\n__global__ void b(int* x) {}\n";

    fn of(text: &str, selected: Option<&str>) -> Result<Aim, AimError> {
        let program = Program { name: "f.cu".into(), sources: vec!["/w/f.cu".into()], ..Program::default() };
        let selection = selected.map(|part| {
            let start = text.find(part).unwrap();
            Span::new(start, start + part.len())
        });
        aim(&Target::Program(Box::new(program)), text, selection)
    }

    #[test]
    fn a_selection_says_which_kernel_and_a_main_makes_a_program() {
        let a = of(TWO, Some("void a")).unwrap();
        assert_eq!((a.kernel.as_deref(), a.scope), (Some("n::a"), vec!["n::a".to_owned()]));
        let error = of(TWO, None).unwrap_err().to_string();
        assert!(error.contains("f.cu::n::a, f.cu::b"), "{error}");
        let with_main = format!("{TWO}int main() {{ b<<<1, 1>>>(0); }}\n");
        let program = of(&with_main, Some("void b")).unwrap();
        assert_eq!((program.kernel, program.scope), (None, vec!["b".to_owned()]));
        assert_eq!(of(&with_main, None).unwrap().scope, Vec::<String>::new());
        assert_eq!(of("int main() {}", None).unwrap_err(), AimError::NoKernel);
        assert_eq!(of(&format!("// x\n{TWO}"), Some("// x")).unwrap_err(), AimError::NothingSelected);
        let kernel = Target::Kernel { path: "/w/f.cu".into(), kernel: "a".into() };
        assert_eq!(aim(&kernel, TWO, None).unwrap().scope, ["n::a"]);
    }
}
