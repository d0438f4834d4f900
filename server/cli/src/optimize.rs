//! `stitchcuda optimize TARGET`: from a target to a verified edit.

mod human;
mod work;

use std::io::Write;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use stitch_agents::optimize::{aim, aim_python, read};
use stitch_agents::run::{Budget, Manifest};
use stitch_findings::Span;
use stitch_session::config::{EngineChoice, Precision};
use stitch_session::folders::Folders;
use stitch_verifier::declared::{self, Declared};
use stitch_verifier::program::Target;
use stitch_verifier::torch::find::{Asked, is_python};

use crate::format::Format;
use crate::settings::Surrounding;
use crate::setup::{self, ProgramArguments, PythonArguments, Tolerance};
use crate::status::Status;

pub use human::print_record;
pub use work::{Aimed, Order, go_on};

/// Arguments of `optimize`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// What to make faster: a CUDA program (file.cu), a kernel (file.cu::name), a [target.NAME] of stitchcuda.toml, or a PyTorch module or
    /// function (file.py::Name)
    target: String,
    /// Change only the functions that these lines touch, as in 10:42
    #[arg(long, value_name = "FIRST:LAST", value_parser = lines)]
    select: Option<RangeInclusive<usize>>,
    /// Measure the target and write the plan, and try nothing of it; `runs resume` goes on from there
    #[arg(long, conflicts_with_all = ["attempts", "apply"])]
    plan_only: bool,
    #[command(flatten)]
    spending: Spending,
    /// How far a number may be off, relative to it, from 0 to 1; beside the kernel: `// stitchcuda: tolerance=1e-5`
    #[arg(long, value_name = "SHARE", value_parser = setup::tolerance)]
    tolerance: Option<setup::Tolerance>,
    /// The precision that may not be lowered: fp64, fp32, tf32, fp16, bf16, fp8
    #[arg(long, value_name = "FORMAT", value_parser = precision)]
    precision: Option<Precision>,
    #[command(flatten)]
    ending: Ending,
    #[command(flatten)]
    called: PythonArguments,
    /// Verify a module in training mode
    #[arg(long, help_heading = "For PyTorch")]
    train: bool,
    /// Verify a module in evaluation mode; usual but for KernelBench's `Model`, which stays as it constructs itself
    #[arg(long, conflicts_with = "train", help_heading = "For PyTorch")]
    eval: bool,
    #[command(flatten)]
    program: ProgramArguments,
}

impl Arguments {
    /// A whole program, with everything as it is configured, in so many seconds.
    pub fn of_demo(path: &Path, format: Format, seconds: u64) -> Self {
        Self {
            target: path.display().to_string(),
            select: None,
            plan_only: false,
            spending: Spending { seconds: Some(seconds), ..Spending::default() },
            tolerance: None,
            precision: None,
            ending: Ending { apply: false, format },
            called: PythonArguments::default(),
            train: false,
            eval: false,
            program: ProgramArguments::unsaid(),
        }
    }
}

/// What may be spent.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Spending {
    /// What plans and codes: auto, builtin (no model), llm
    #[arg(long, value_name = "ENGINE", value_parser = engine)]
    pub engine: Option<EngineChoice>,
    /// The model, as the endpoint calls it
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Tokens of a model that the run may spend
    #[arg(long, value_name = "N")]
    tokens: Option<u64>,
    /// Candidates that may be tried
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    attempts: Option<u32>,
    /// Minutes that the run may take
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    minutes: Option<u64>,
    /// Seconds instead, of what is not typed.
    #[arg(skip)]
    seconds: Option<u64>,
}

impl Spending {
    /// The budget where nothing else is said.
    pub fn over(&self, mut budget: Budget) -> Budget {
        budget.attempts = self.attempts.unwrap_or(budget.attempts);
        budget.seconds = self.minutes.map(|minutes| minutes * 60).or(self.seconds).unwrap_or(budget.seconds);
        budget.tokens = self.tokens.or(budget.tokens);
        budget
    }
}

/// What becomes of the answer.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Ending {
    /// Write the best attempt to the file, if that has not changed meanwhile
    #[arg(long)]
    pub apply: bool,
    /// How to print; json prints one event a line
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

fn lines(text: &str) -> std::result::Result<RangeInclusive<usize>, String> {
    let expected = || "two line numbers are expected, as in 10:42".to_owned();
    let (first, last) = text.split_once(':').ok_or_else(expected)?;
    let [first, last] = [first, last].map(|line| line.trim().parse::<usize>().ok());
    match (first, last) {
        (Some(first), Some(last)) if 1 <= first && first <= last => Ok(first..=last),
        _ => Err(expected()),
    }
}

fn engine(text: &str) -> std::result::Result<EngineChoice, &'static str> {
    match text {
        "auto" => Ok(EngineChoice::Auto),
        "builtin" => Ok(EngineChoice::Builtin),
        "llm" => Ok(EngineChoice::Llm),
        _ => Err("auto, builtin or llm is expected"),
    }
}

fn precision(text: &str) -> std::result::Result<Precision, &'static str> {
    declared::precision(text).ok_or("fp64, fp32, tf32, fp16, bf16 or fp8 is expected")
}

/// The bytes of lines of a text.
fn span(text: &str, lines: &RangeInclusive<usize>) -> Result<Span> {
    let mut starts = vec![0];
    starts.extend(text.match_indices('\n').map(|(at, _)| at + 1));
    let start = starts.get(lines.start() - 1).filter(|start| **start < text.len());
    let start = *start.with_context(|| format!("the file has no line {}", lines.start()))?;
    let end = starts.get(*lines.end()).copied().unwrap_or(text.len());
    Ok(Span::new(start, end))
}

/// What is to be optimised, with the text of its file.
struct Chosen {
    aimed: Aimed,
    file: PathBuf,
    text: String,
    selection: Option<Span>,
    kernel: Option<String>,
    scope: Vec<String>,
    tolerance: Option<f64>,
    precision: Option<Precision>,
}

/// Optimises and prints.
///
/// # Errors
/// Wrong usage; writing to `out`; a system that gives no threads.
pub fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Status> {
    let surrounding = arguments.program.surrounding()?;
    let chosen = match is_python(&arguments.target) {
        true => python(arguments, &surrounding)?,
        false => cuda(arguments, &surrounding)?,
    };
    let runs =
        Folders::find().state.context("no folder for runs is known; set STITCHCUDA_STATE_DIR")?.join("runs");
    let manifest = Manifest {
        schema: Manifest::SCHEMA.to_owned(),
        id: String::new(),
        started: Manifest::now(),
        target: arguments.target.clone(),
        folder: surrounding.folder.clone(),
        file: chosen.file,
        kernel: chosen.kernel,
        with: arguments.program.with.clone(),
        selection: chosen.selection,
        scope: chosen.scope,
        device: String::new(),
        engine: String::new(),
        model: None,
        tolerance: arguments.tolerance.map(Tolerance::share).or(chosen.tolerance),
        precision: arguments.precision.or(chosen.precision),
        arguments: arguments.program.arguments.clone(),
        answers: arguments.program.answers()?,
        inputs: arguments.called.inputs.clone(),
        init: arguments.called.init.clone(),
        train: (arguments.train || arguments.eval).then_some(arguments.train),
        python: arguments.called.python.clone(),
        time_limit_seconds: arguments.program.time_limit,
        budget: Budget::BUILTIN,
    };
    let order = Order {
        surrounding,
        program: arguments.program.clone(),
        aimed: chosen.aimed,
        runs,
        begin: Some((manifest, chosen.text)),
        resume: None,
        python: arguments.called.python.clone(),
        spending: arguments.spending.clone(),
        plan_only: arguments.plan_only,
        ending: arguments.ending.clone(),
    };
    go_on(order, out)
}

/// A CUDA program or kernel.
fn cuda(arguments: &Arguments, surrounding: &Surrounding) -> Result<Chosen> {
    let named = setup::target(surrounding, &arguments.target, &arguments.program.with)?;
    let file = setup::file(&named).context("the target names no file that may be changed")?.to_owned();
    let text = text_of(&file)?;
    let selection = arguments.select.as_ref().map(|lines| span(&text, lines)).transpose()?;
    let aim = aim(&named, &text, selection)
        .map_err(|error| anyhow::anyhow!("{} can't be optimised: {error}", arguments.target))?;
    let analysis = stitch_analysis::Analysis::of(stitch_analysis::Language::Cuda, &text);
    let kernel = aim.kernel.as_ref().and_then(|name| {
        analysis
            .outline()
            .kernels()
            .find(|kernel| aim.scope.contains(&kernel.qualified_name) || kernel.name == *name)
    });
    let declared = Declared::of(&text, kernel)?;
    let of_target = match &named {
        Target::Program(program) => (program.tolerance, program.precision),
        Target::Kernel { .. } => (None, None),
    };
    Ok(Chosen {
        aimed: Aimed::Cuda(aim.target),
        file,
        selection,
        kernel: aim.kernel,
        scope: aim.scope,
        tolerance: declared.tolerance.or(of_target.0),
        precision: declared.precision.or(of_target.1),
        text,
    })
}

/// A module or function of a Python file.
fn python(arguments: &Arguments, surrounding: &Surrounding) -> Result<Chosen> {
    let asked = Asked {
        init: arguments.called.init.clone(),
        inputs: arguments.called.inputs.clone(),
        ..Asked::of(&arguments.target).within(&surrounding.folder)
    };
    let text = text_of(&asked.path)?;
    let selection = arguments.select.as_ref().map(|lines| span(&text, lines)).transpose()?;
    let aim = aim_python(&asked, &text, selection)
        .map_err(|error| anyhow::anyhow!("{} can't be optimised: {error}", arguments.target))?;
    let declared = Declared::of(&text, None)?;
    Ok(Chosen {
        file: asked.path,
        selection,
        kernel: None,
        scope: aim.scope.clone(),
        aimed: Aimed::Python(Box::new(aim)),
        tolerance: declared.tolerance,
        precision: declared.precision,
        text,
    })
}

fn text_of(file: &Path) -> Result<String> {
    read(file).with_context(|| format!("{} could not be read", file.display()))
}
