//! Verifies kernels through harnesses.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use stitch_analysis::{Analysis, Language};
use stitch_findings::{Inputs, Verdict};
use stitch_toolchain::process::Scratch;
use tokio_util::sync::CancellationToken;

use super::judge::Judge;
use super::program::{built_or_accused, not_checked, of_reference, secret, succeeded};
use super::request::{Progress, Request, VerifyError};
use crate::compare::{ElementType, Interpretation, Why};
use crate::harness::{self, Answers, Harness, Subject};
use crate::program::{Built, Program, Ran, Running, Target, build, run};
use crate::simulation::{Options, checks};

/// The inputs are drawn so many times.
const DRAWS: usize = 3;

/// A kernel of a file, with what its harness does.
pub struct Prepared {
    /// The kernel, with its namespaces.
    pub kernel: String,
    /// The harness.
    pub harness: Harness,
    /// Grid, block and shared memory of its own launch, where they are constant.
    configuration: Option<([u64; 3], [u64; 3], u64)>,
}

/// The harness of the kernel `name` in the file `path`.
///
/// # Errors
/// There is no such kernel, or something must be said about it.
pub fn prepare(path: &Path, name: &str, answers: &Answers) -> Result<Prepared, VerifyError> {
    let text = read(path)?;
    let analysis = Analysis::of(Language::Cuda, &text);
    let file = path.display().to_string();
    let (kernel, written) = harness::find(analysis.outline(), &file, name)?;
    let harness = harness::plan(analysis.outline(), &text, kernel, written.as_deref(), answers)?;
    let configuration = harness::configuration(analysis.outline(), kernel);
    Ok(Prepared { kernel: kernel.qualified_name.clone(), harness, configuration })
}

fn read(path: &Path) -> Result<String, VerifyError> {
    let file = |source| VerifyError::File { path: path.to_owned(), source };
    let bytes = std::fs::read(path).map_err(file)?;
    let decoded = stitch_analysis::decode(&bytes)
        .ok_or_else(|| file(std::io::Error::other("it is UTF-16, not UTF-8")))?;
    Ok(decoded.text.to_string())
}

pub(super) async fn verify(
    request: &Request,
    path: &Path,
    kernel: &str,
    progress: &Progress<'_>,
    cancel: &CancellationToken,
) -> Result<Verdict, VerifyError> {
    let reference = prepare(path, kernel, &request.answers)?;
    let (candidate_path, candidate_kernel, configuration) =
        candidate(&request.candidate, &request.candidate_name, &reference, &request.answers)?;
    let device = &request.builder.device;
    let mut judge = Judge::new(
        &request.reference_name,
        &request.candidate_name,
        device.to_string(),
        Some(&candidate_path),
        Some(&candidate_kernel),
    );
    let sources = Scratch::new("harness")
        .map_err(|source| VerifyError::File { path: PathBuf::from("the scratch folder"), source })?;
    let make = |name: &str, subject: &Subject| -> Result<Program, VerifyError> {
        let file = sources.path().join(name);
        std::fs::write(&file, harness::write(&reference.harness, subject))
            .map_err(|source| VerifyError::File { path: file.clone(), source })?;
        let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
        Ok(Program { name: name.to_owned(), sources: vec![file], folder, ..Program::default() })
    };
    let of_reference_ = Subject { path, kernel: &reference.kernel, configuration: None };
    let of_candidate = Subject { path: &candidate_path, kernel: &candidate_kernel, configuration };
    progress("building both");
    let [one, other] = [make("reference.cu", &of_reference_)?, make("candidate.cu", &of_candidate)?];
    let (built, result) =
        tokio::join!(build(&request.builder, &one, cancel), build(&request.builder, &other, cancel));
    let built = built.map_err(of_reference)?;
    judge.verdict.notes.extend(built.notes.clone());
    let Some(built_candidate) = built_or_accused(result, &mut judge)? else { return Ok(judge.finish()) };
    judge.verdict.inputs = Inputs::Drawn;
    for number in 0..DRAWS {
        progress(&format!("running both with inputs {} of {DRAWS}", number + 1));
        if !draw(request, (&built, &built_candidate), number == 0, &mut judge, cancel).await? {
            break;
        }
    }
    not_checked(request, &mut judge);
    judge
        .verdict
        .not_checked
        .push("The code around the kernel, its own launch among it, was not run.".to_owned());
    Ok(judge.finish())
}

type Configuration = Option<([u64; 3], [u64; 3], u64)>;

/// The candidate's file, its kernel, and how it is launched if its own file says it.
fn candidate(
    candidate: &Target,
    candidate_name: &str,
    reference: &Prepared,
    answers: &Answers,
) -> Result<(PathBuf, String, Configuration), VerifyError> {
    let (path, name) = match candidate {
        Target::Kernel { path, kernel } => (path.clone(), Some(kernel.clone())),
        Target::Program(program) => match program.sources.first() {
            Some(path) => (path.clone(), None),
            None => return Err(VerifyError::Mismatch(format!("{candidate_name} has no file."))),
        },
    };
    let text = read(&path)?;
    let analysis = Analysis::of(Language::Cuda, &text);
    let only: Vec<_> = analysis.outline().kernels().map(|kernel| kernel.qualified_name.clone()).collect();
    let name = name.unwrap_or_else(|| match &only[..] {
        [only] => only.clone(),
        _ => reference.kernel.clone(),
    });
    let (kernel, _) = harness::find(analysis.outline(), candidate_name, &name)?;
    let said = answers.grid.is_some() || answers.block.is_some();
    let own = harness::configuration(analysis.outline(), kernel)
        .filter(|_| !said && reference.configuration.is_some());
    Ok((path, kernel.qualified_name.clone(), own))
}

/// The text of the harness that a candidate is run in: the reference's, around the candidate's kernel, as `write` writes it.
///
/// # Errors
/// There is no such kernel, or something must be said about it.
pub fn harness_around(
    (path, kernel): (&Path, &str),
    candidate_target: &Target,
    answers: &Answers,
    write: fn(&Harness, &Subject) -> String,
) -> Result<String, VerifyError> {
    let reference = prepare(path, kernel, answers)?;
    let (path, kernel, configuration) = candidate(candidate_target, "the candidate", &reference, answers)?;
    Ok(write(&reference.harness, &Subject { path: &path, kernel: &kernel, configuration }))
}

/// Runs both on inputs drawn anew, and compares their outputs. Whether it is worth going on.
async fn draw(
    request: &Request,
    (reference, candidate): (&Built, &Built),
    is_first: bool,
    judge: &mut Judge,
    cancel: &CancellationToken,
) -> Result<bool, VerifyError> {
    const DRAWN: &str = "drawn";
    let seed = secret();
    let expected = outputs(request, reference, seed, request.time_limit, cancel).await?;
    succeeded(&expected.ran)?;
    let again = match is_first {
        true => Some(outputs(request, reference, seed, request.time_limit, cancel).await?),
        false => None,
    };
    let got = outputs(request, candidate, seed, request.time_limit, cancel).await?;
    judge.defects(&expected.ran, &got.ran, DRAWN);
    if !judge.ended_alike(&expected.ran, &got.ran, DRAWN) {
        return Ok(false);
    }
    for ((name, element), bytes) in &expected.files {
        let key = (name.clone(), *element);
        let again = again.as_ref().and_then(|again| again.files.get(&key)).map(Vec::as_slice);
        let empty = Vec::new();
        let got = got.files.get(&key).unwrap_or(&empty);
        let interpretation = Interpretation { element: *element, why: Why::Declared };
        judge.bytes(
            format!("output `{name}`"),
            interpretation,
            (bytes, again, got),
            request.tolerance,
            DRAWN,
        );
    }
    Ok(judge.verdict.is_good())
}

/// The arrays that a harness wrote, by name and type.
pub(crate) type Files = BTreeMap<(String, ElementType), Vec<u8>>;

struct Outputs {
    ran: Ran,
    /// By name and type.
    files: Files,
}

async fn outputs(
    request: &Request,
    built: &Built,
    seed: u64,
    time_limit: Duration,
    cancel: &CancellationToken,
) -> Result<Outputs, VerifyError> {
    let folder = built.new_folder("outputs").map_err(|(path, source)| VerifyError::File { path, source })?;
    let running = Running {
        device: request.builder.device.clone(),
        arguments: vec![seed.to_string(), folder.display().to_string()],
        time_limit,
        simulation: Options {
            executable: request.executable.clone(),
            checks: checks(request.builder.config.simulator.checks),
            ..Options::default()
        },
    };
    let ran = run(built, &running, cancel).await?;
    let files = read_outputs(&folder)?;
    // What the reference gave must not lie where a candidate could read it.
    let _ = std::fs::remove_dir_all(&folder);
    Ok(Outputs { ran, files })
}

/// The arrays that a harness wrote into a folder.
///
/// # Errors
/// One of them can't be read.
pub(crate) fn read_outputs(folder: &Path) -> Result<Files, VerifyError> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let (Some(name), Some(element)) = (path.file_stem(), path.extension()) else { continue };
        let Some(element) = ElementType::parse(&element.to_string_lossy()) else { continue };
        let bytes =
            std::fs::read(&path).map_err(|source| VerifyError::File { path: path.clone(), source })?;
        files.insert((name.to_string_lossy().into_owned(), element), bytes);
    }
    Ok(files)
}
