//! Verifies whole programs.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::path::Path;
use std::time::Duration;

use stitch_findings::{Answer, Code, Inputs, Verdict};
use tokio_util::sync::CancellationToken;

use super::judge::{self, Judge};
use super::request::{Progress, Request, VerifyError};
use crate::clock;
use crate::compare::Types;
use crate::program::{BuildError, Built, End, Program, Ran, RunDevice, Running, Target, build, run};
use crate::simulation::{Checks, Options, checks};

/// A candidate gets so many times what the reference took, and at least [`LEAST_TIME`].
const PATIENCE: u32 = 20;
/// The least time a candidate gets.
const LEAST_TIME: Duration = Duration::from_secs(30);

pub(super) async fn verify(
    request: &Request,
    reference: &Program,
    progress: &Progress<'_>,
    cancel: &CancellationToken,
) -> Result<Verdict, VerifyError> {
    let Target::Program(candidate) = &request.candidate else {
        return Err(VerifyError::Mismatch(format!(
            "{} is a whole program and {} a kernel; name a kernel in both, or in neither.",
            request.reference_name, request.candidate_name
        )));
    };
    let candidate =
        if candidate.own.is_some() { Program::clone(candidate) } else { reference.with_candidate(candidate) };
    let device = &request.builder.device;
    let file = candidate.sources.first().map(|file| file.as_path());
    let mut judge =
        Judge::new(&request.reference_name, &request.candidate_name, device.to_string(), file, None);
    progress("building both");
    let (built, result) =
        tokio::join!(build(&request.builder, reference, cancel), build(&request.builder, &candidate, cancel));
    let built = built.map_err(of_reference)?;
    judge.verdict.notes.extend(built.notes.clone());
    let Some(built_candidate) = built_or_accused(result, &mut judge)? else { return Ok(judge.finish()) };
    let date = clock::today();
    let mut rounds = Rounds { request, cancel, progress, wall: Duration::ZERO, date };
    rounds.run(&built, &built_candidate, reference, &mut judge).await?;
    not_checked(request, &mut judge);
    Ok(judge.finish())
}

/// An error in building the reference: no verdict.
pub(super) fn of_reference(error: BuildError) -> VerifyError {
    match error {
        BuildError::Cancelled => VerifyError::Cancelled,
        error @ BuildError::Compiler { .. } => VerifyError::ReferenceBuild(error),
        error => VerifyError::Build(error),
    }
}

/// The built candidate; `None` where it does not compile, which is a verdict.
pub(super) fn built_or_accused(
    result: Result<Built, BuildError>,
    judge: &mut Judge,
) -> Result<Option<Built>, VerifyError> {
    match result {
        Ok(built) => Ok(Some(built)),
        Err(BuildError::Cancelled) => Err(VerifyError::Cancelled),
        Err(error @ BuildError::Compiler { .. }) => {
            let message = error.to_string();
            judge.accuse(Code::VERIFY_BUILD_FAILED, Answer::BuildFailed, message, "");
            Ok(None)
        }
        Err(error) => Err(VerifyError::Build(error)),
    }
}

/// What a verdict says of speed as long as nobody timed the candidate.
pub const UNTIMED: &str = "Whether the candidate is faster was not measured.";

/// Said of a program that would have other data in each run.
const SEEDED: &str = "The program seems to seed its random numbers by the clock or the system: all runs that are compared were told the same date and random numbers.";

/// What no verdict of today looks at.
pub(super) fn not_checked(request: &Request, judge: &mut Judge) {
    let device = &request.builder.device;
    let list = &mut judge.verdict.not_checked;
    list.push(UNTIMED.to_owned());
    list.push("What is written to standard error or to files was not compared.".to_owned());
    let configured = checks(request.builder.config.simulator.checks);
    if !matches!(device, RunDevice::Simulator(_)) || configured != Checks::All {
        list.push("Races between threads were not looked for.".to_owned());
    }
    if matches!(device, RunDevice::Simulator(_)) {
        list.push("Nothing ran on a GPU: the simulator ran the PTX, not the machine code.".to_owned());
    }
}

/// A number that nobody can guess: the hash function's key comes from the system.
pub(crate) fn secret() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The runs of one verification.
struct Rounds<'a> {
    request: &'a Request,
    cancel: &'a CancellationToken,
    progress: &'a Progress<'a>,
    /// How long the reference took.
    wall: Duration,
    /// The date at which each run begins, in seconds since 1970; other inputs have another one.
    date: u64,
}

impl Rounds<'_> {
    async fn run(
        &mut self,
        reference: &Built,
        candidate: &Built,
        program: &Program,
        judge: &mut Judge,
    ) -> Result<(), VerifyError> {
        const AS_THEY_ARE: &str = "as they are";
        (self.progress)("running the reference");
        let first = self.reference(reference, None).await?;
        succeeded(&first)?;
        (self.progress)("running the reference again");
        let again = self.reference(reference, None).await?;
        (self.progress)("running the candidate");
        let got = self.candidate(candidate, None).await?;
        judge.defects(&first, &got, AS_THEY_ARE);
        if !judge.ended_alike(&first, &got, AS_THEY_ARE) {
            judge.verdict.inputs =
                Inputs::Fixed { reason: "the candidate failed before others were tried.".into() };
            return Ok(());
        }
        let tolerance = self.request.tolerance.or(program.tolerance);
        if first.report.as_ref().is_some_and(|report| report.kernels.is_empty()) {
            judge
                .verdict
                .not_checked
                .push("The reference launched no kernel; only the host's work was compared.".to_owned());
        }
        let texts = texts(program);
        let says = |word: &str| texts.iter().any(|text| text.contains(word));
        let types = judge::types(&texts);
        if ["cudaMallocManaged", "__managed__", "cudaHostAlloc", "cudaHostRegister"]
            .iter()
            .any(|word| says(word))
        {
            judge.verdict.not_checked.push(
                "What the host reads without a copy (managed, mapped memory) was compared only as far as it was printed.".to_owned(),
            );
        }
        if texts.iter().any(|text| clock::seeds_by_the_clock(text)) {
            judge.verdict.notes.push(SEEDED.to_owned());
        }
        judge.text(&first.stdout, &again.stdout, &got.stdout, tolerance, AS_THEY_ARE);
        judge.unseen(&first, &got);
        let Some(expected) = &first.copies else {
            let reason = first.unseen.first().cloned().unwrap_or_else(|| "its copies are not seen.".into());
            judge.verdict.inputs = Inputs::Fixed { reason };
            judge.verdict.not_checked.push(
                "What was copied back from the device was not seen; only printed text was compared.".into(),
            );
            return Ok(());
        };
        let copies =
            (expected.as_slice(), again.copies.as_deref(), got.copies.as_deref().unwrap_or_default());
        judge.copies(copies, &types, tolerance, AS_THEY_ARE);
        self.perturbed(reference, candidate, &first, (tolerance, &types), judge).await
    }

    /// Runs both once more, with what is first copied to each buffer perturbed.
    async fn perturbed(
        &mut self,
        reference: &Built,
        candidate: &Built,
        unperturbed: &Ran,
        (tolerance, types): (Option<f64>, &Types),
        judge: &mut Judge,
    ) -> Result<(), VerifyError> {
        const PERTURBED: &str = "perturbed";
        let seed = secret();
        self.date = clock::earlier(self.date, secret());
        (self.progress)("running the reference with other inputs");
        let expected = self.reference(reference, Some(seed)).await?;
        let buffers = expected.perturbed;
        if buffers == 0 {
            let reason = "it copies no floating-point numbers to the device that could be perturbed.";
            judge.verdict.inputs = Inputs::Fixed { reason: reason.into() };
            return Ok(());
        }
        if !matches!(expected.end, End::Status(_)) {
            let how = judge::words(&expected.end);
            let reason = format!("with its inputs perturbed, the reference itself {how}.");
            judge.verdict.inputs = Inputs::Fixed { reason };
            return Ok(());
        }
        judge.verdict.inputs = Inputs::Perturbed { buffers };
        let near = "The perturbed inputs have the signs and about the sizes of the program's own; other ones were not tried.";
        judge.verdict.not_checked.push(near.to_owned());
        // A simulator repeats itself.
        let again = match self.request.builder.device {
            RunDevice::Simulator(_) => None,
            RunDevice::Cuda { .. } => {
                (self.progress)("running the reference with other inputs again");
                Some(self.reference(reference, Some(seed)).await?)
            }
        };
        let again = again.as_ref().unwrap_or(&expected);
        (self.progress)("running the candidate with other inputs");
        let got = self.candidate(candidate, Some(seed)).await?;
        judge.defects(&expected, &got, PERTURBED);
        if !judge.ended_alike(&expected, &got, PERTURBED) {
            return Ok(());
        }
        judge.text(&expected.stdout, &again.stdout, &got.stdout, tolerance, PERTURBED);
        if let (Some(before), Some(copies)) = (&unperturbed.copies, &expected.copies) {
            // A candidate whose copies are not seen has none.
            let got = got.copies.as_deref().unwrap_or_default();
            judge.copies((copies, again.copies.as_deref(), got), types, tolerance, PERTURBED);
            if before == copies && unperturbed.stdout == expected.stdout {
                let said = "The reference's answer did not change when its inputs were perturbed, so this tells little of the candidate.";
                judge.verdict.not_checked.push(said.to_owned());
            }
        }
        Ok(())
    }

    async fn reference(&mut self, built: &Built, perturb: Option<u64>) -> Result<Ran, VerifyError> {
        let ran = self.once(built, perturb, self.request.time_limit).await?;
        self.wall = self.wall.max(ran.wall);
        Ok(ran)
    }

    async fn candidate(&self, built: &Built, perturb: Option<u64>) -> Result<Ran, VerifyError> {
        let patience = (self.wall * PATIENCE).max(LEAST_TIME).min(self.request.time_limit);
        self.once(built, perturb, patience).await
    }

    async fn once(
        &self,
        built: &Built,
        perturb: Option<u64>,
        time_limit: Duration,
    ) -> Result<Ran, VerifyError> {
        let running = Running {
            device: self.request.builder.device.clone(),
            arguments: self.request.arguments.clone(),
            time_limit,
            simulation: Options {
                executable: self.request.executable.clone(),
                perturb,
                record: true,
                date: Some(self.date),
                counters: false,
                caches: false,
                sample: None,
                budget: None,
                checks: checks(self.request.builder.config.simulator.checks),
            },
        };
        Ok(run(built, &running, self.cancel).await?)
    }
}

/// Refuses a reference that fails by itself.
pub(super) fn succeeded(ran: &Ran) -> Result<(), VerifyError> {
    let fault = ran.report.as_ref().and_then(|report| report.faults.first());
    let how = match (&ran.end, fault) {
        (End::Status(0), None) => return Ok(()),
        (_, Some(fault)) => format!("faults. {}", fault.words().trim_end_matches('.')),
        (end, None) => judge::words(end),
    };
    Err(VerifyError::ReferenceFails { how, said: judge::last_words(ran) })
}

/// The texts of a program's sources, as far as they can be read.
fn texts(program: &Program) -> Vec<String> {
    let read = |path: &Path| {
        stitch_analysis::decode(&std::fs::read(path).ok()?).map(|decoded| decoded.text.to_string())
    };
    program.sources.iter().filter_map(|path| read(path)).collect()
}
