//! Measures on a GPU: one version for itself, or two against each other.
//!
//! A kernel is timed in its harness; a program by those of its kernels that can be put in harnesses from its own launches, and by its
//! whole processes where one of them can't. The device is held meanwhile.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use stitch_toolchain::process::Scratch;
use tokio_util::sync::CancellationToken;

use super::cost::{Cost, KernelCost};
use super::harnesses::{Key, Ready};
use super::pick::{self, Change};
use super::sample::{Contest, Interval, PATIENCE};
use super::stopwatch::{Failure, Stopwatch, microseconds};
use super::{MeasureError, Measured, Measurement, counted, harness_program};
use crate::harness;
use crate::program::{Built, Running, Target, build, hold};
use crate::simulation::{Options, Report};
use crate::verify::{VerifyError, harness_around};

/// What the second of two versions is worth against the first.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// What the first costs.
    pub before: Cost,
    /// What the second costs; of what is the same in both, what it cost before.
    pub after: Cost,
    /// How many times faster the second is in what was timed.
    pub ratio: Interval,
    /// How it was measured, in sentences.
    pub notes: Vec<String>,
    /// What was not looked at, in sentences.
    pub not_checked: Vec<String>,
    /// Whether nothing was timed, since a device does the same for both.
    pub is_same_code: bool,
}

/// What is said of a number that was measured in harnesses.
pub const HARNESS_NOTE: &str = "Timed from outside, by the clock of another process: calls in a row on the same data, so that what fits in the L2 cache is read from there, and what a call changes is what the next one finds.";
/// What is said of a whole process's time.
const PROCESS_NOTE: &str = "The whole process was timed, with its start and its copies";
/// What is said where the versions' processes could not live at the same time.
const APART: &str = "The device took one of the two processes at a time (its memory may not hold the arrays of both), so each was timed in processes of its own, by turns; their starts make that less exact.";
/// Calls shorter than this, in microseconds, take about as long as launching them: 3.5 to 4.6 µs from one process to the next, of a kernel that does
/// next to nothing on an H200.
const LAUNCH_BOUND: f64 = 5.0;
const UNVARIED: &str = "What the timed calls leave was compared, but they all get the same data; a kernel that remembers what it was given would be timed too well.";
const SECONDS_TO_MICROSECONDS: f64 = 1e6;

/// What a version costs.
///
/// # Errors
/// It does not build or run, or the job was cancelled.
pub(super) async fn baseline(
    measurement: &Measurement,
    reference: &Target,
    version: &Target,
    cancel: &CancellationToken,
) -> Result<Measured, MeasureError> {
    let work = Work { measurement, reference, progress: &|_| {}, cancel };
    let (kernels, mut why) = work.kernels()?;
    let report = Arc::new(Report::default());
    if !kernels.is_empty() {
        match work.kernel_baselines(version, &kernels).await {
            Ok(measured) => return Ok(measured),
            Err(failure) => why = work.fall_back(failure)?,
        }
    }
    let built = work.built_program(version).await?;
    let _held = hold(&measurement.builder.device, cancel).await?;
    let rounds = work.stopwatch().programs(&[&built]).await.map_err(failed)?;
    let time = microseconds(&rounds, 0).ok_or(MeasureError::Unresolved)?;
    let cost =
        Cost::of_process(measurement.builder.device.to_string(), time, vec![process_note(&why, &time)]);
    Ok(Measured { cost, report })
}

/// Times two versions against each other; `to_beat` is what the first costs.
///
/// # Errors
/// The second fails or computes something else, neither can be timed, or the job was cancelled.
pub async fn compare(
    measurement: &Measurement,
    reference: &Target,
    [before, after]: [&Target; 2],
    to_beat: &Cost,
    progress: &(dyn Fn(&str) + Send + Sync),
    cancel: &CancellationToken,
) -> Result<Comparison, MeasureError> {
    let work = Work { measurement, reference, progress, cancel };
    let (kernels, mut why) = work.kernels()?;
    if !kernels.is_empty() {
        match work.change([before, after], kernels)? {
            Change::Elsewhere(clause) => clause.clone_into(&mut why),
            Change::Kernels { kernels, host } => {
                match work.contests([before, after], &kernels, to_beat, host).await {
                    Ok(comparison) => return Ok(comparison),
                    Err(failure) => why = work.fall_back(failure)?,
                }
            }
        }
    }
    work.processes([before, after], &why).await
}

/// Builds what [`compare`] will time, which is kept until then. Whatever is wrong is said there.
pub async fn build_ahead(
    measurement: &Measurement,
    reference: &Target,
    [before, after]: [&Target; 2],
    cancel: &CancellationToken,
) {
    let work = Work { measurement, reference, progress: &|_| {}, cancel };
    let Ok((kernels, _)) = work.kernels() else { return };
    if kernels.is_empty() {
        return;
    }
    let Ok(Change::Kernels { kernels, .. }) = work.change([before, after], kernels) else { return };
    for kernel in &kernels {
        let _ = tokio::join!(work.built_harness(before, kernel), work.built_harness(after, kernel));
    }
}

/// One measurement of a target.
struct Work<'a> {
    measurement: &'a Measurement,
    reference: &'a Target,
    progress: &'a (dyn Fn(&str) + Send + Sync),
    cancel: &'a CancellationToken,
}

impl Work<'_> {
    fn stopwatch(&self) -> Stopwatch<'_> {
        let Measurement { builder, arguments, time_limit, executable, tolerance, .. } = self.measurement;
        let running = Running {
            device: builder.device.clone(),
            arguments: arguments.clone(),
            time_limit: (*time_limit).max(Duration::from_secs(1)),
            simulation: Options { executable: executable.clone(), ..Options::default() },
        };
        let (progress, cancel) = (self.progress, self.cancel);
        Stopwatch { running, tolerance: *tolerance, patience: PATIENCE, progress, cancel }
    }

    /// The kernels that may be timed by themselves, or why there are none.
    fn kernels(&self) -> Result<(Vec<String>, String), MeasureError> {
        Ok(match self.reference {
            Target::Kernel { kernel, .. } => (vec![kernel.clone()], String::new()),
            Target::Program(program) if program.own.is_some() || program.sources.len() != 1 => {
                (Vec::new(), "its kernels are built with other files".to_owned())
            }
            Target::Program(_) => {
                let found = pick::kernels(&text(self.reference)?, &self.measurement.scope);
                (found, "none of its kernels may be changed".to_owned())
            }
        })
    }

    /// What differs between two versions.
    fn change(&self, [before, after]: [&Target; 2], kernels: Vec<String>) -> Result<Change, MeasureError> {
        Ok(match self.reference {
            Target::Kernel { .. } => Change::Kernels { kernels, host: false },
            Target::Program(_) => pick::change(&text(before)?, &text(after)?, &kernels),
        })
    }

    /// Why the whole program is timed after kernels could not be, in a clause; an error where that is no way either.
    fn fall_back(&self, failure: Failure) -> Result<String, MeasureError> {
        match (self.reference, failure) {
            (Target::Kernel { .. }, failure) => Err(failed(failure)),
            (_, Failure::Error(error)) => match error {
                MeasureError::Build(_) | MeasureError::Harness(_) | MeasureError::Unresolved => {
                    Ok(words(&error))
                }
                error => Err(error),
            },
            (_, Failure::Fails(0, how)) => Ok(format!("a kernel run by itself {how}")),
            (_, Failure::Fails(_, how)) => Ok(format!("the candidate's kernel run by itself {how}")),
            (_, Failure::Differs(how)) => Ok(format!("on drawn inputs the kernels differ ({how})")),
        }
    }

    async fn kernel_baselines(&self, version: &Target, kernels: &[String]) -> Result<Measured, Failure> {
        let (mut costs, mut report) = (Vec::new(), Report::default());
        // All that needs the processor alone first, at once.
        let prepared = kernels.iter().map(async |kernel| {
            let harness = self.harness(version, kernel, harness::write)?;
            let (ready, counted) = tokio::join!(
                self.built_harness(version, kernel),
                counted::of(self.measurement, &harness, self.cancel)
            );
            Ok::<_, MeasureError>((kernel, ready?, counted))
        });
        for (kernel, ready, counted) in futures::future::try_join_all(prepared).await? {
            let timing = {
                let _held = hold(&self.measurement.builder.device, self.cancel).await?;
                self.stopwatch().harnesses(&[&ready.built]).await?
            };
            let time = microseconds(&timing.rounds, 0).ok_or(MeasureError::Unresolved)?;
            let traffic = counted.as_ref().and_then(|counted| counted.traffic);
            report.kernels.extend(counted.into_iter().flat_map(|counted| counted.report.kernels));
            costs.push(KernelCost {
                name: kernel.clone(),
                launches: 1,
                microseconds: Some(time),
                traffic,
                ..KernelCost::default()
            });
        }
        let device = self.measurement.builder.device.to_string();
        let notes = notes(&costs);
        Ok(Measured { cost: Cost::measured(device, costs, notes), report: Arc::new(report) })
    }

    /// Times those kernels that differ, and puts the times beside those of the others.
    async fn contests(
        &self,
        [before, after]: [&Target; 2],
        kernels: &[String],
        to_beat: &Cost,
        host: bool,
    ) -> Result<Comparison, Failure> {
        let mut sums: Vec<[f64; 2]> = Vec::new();
        let (mut changed, mut same) = (Vec::new(), Vec::new());
        let mut is_side_by_side = true;
        for kernel in kernels {
            (self.progress)("building harnesses to time");
            let (one, other) =
                tokio::try_join!(self.built_harness(before, kernel), self.built_harness(after, kernel))?;
            if one.does_the_same(&other) {
                same.push(format!("`{kernel}`"));
                continue;
            }
            let timing = {
                let _held = hold(&self.measurement.builder.device, self.cancel).await?;
                self.stopwatch().harnesses(&[&one.built, &other.built]).await?
            };
            is_side_by_side &= timing.is_side_by_side;
            let rounds: Vec<[f64; 2]> = timing.rounds.iter().map(|round| [round[0], round[1]]).collect();
            changed.push((kernel.clone(), Contest::of(&rounds).ok_or(MeasureError::Unresolved)?));
            sums.resize(if sums.is_empty() { rounds.len() } else { sums.len().min(rounds.len()) }, [0.0; 2]);
            for (sum, round) in sums.iter_mut().zip(&rounds) {
                sum[0] += round[0];
                sum[1] += round[1];
            }
        }
        let is_same_code = changed.is_empty();
        let ratio = match is_same_code {
            true => Interval { median: 1.0, low: 1.0, high: 1.0, samples: 0 },
            false => Contest::of(&sums).ok_or(MeasureError::Unresolved)?.ratio,
        };
        let device = self.measurement.builder.device.to_string();
        let (kernels_before, kernels_after) = beside(to_beat, &changed);
        let mut not_checked = if is_same_code { Vec::new() } else { vec![UNVARIED.to_owned()] };
        if host {
            not_checked.push("Host code differs too; what that takes was not timed.".to_owned());
        }
        let mut after = Cost::measured(device.clone(), kernels_after, Vec::new());
        let mut notes = notes(&after.kernels);
        if !is_side_by_side {
            notes.push(APART.to_owned());
        }
        if !same.is_empty() {
            notes.push(format!(
                "nvcc makes the same machine code of {} as before, so that was not timed again.",
                same.join(", ")
            ));
        }
        if let Some(time) = &mut after.time {
            time.notes.clone_from(&notes);
        }
        Ok(Comparison {
            before: Cost::measured(device, kernels_before, Vec::new()),
            after,
            ratio,
            notes,
            not_checked,
            is_same_code,
        })
    }

    async fn processes(&self, versions: [&Target; 2], why: &str) -> Result<Comparison, MeasureError> {
        (self.progress)("building the programs to time");
        let built = tokio::try_join!(self.built_program(versions[0]), self.built_program(versions[1]))?;
        let rounds = {
            let _held = hold(&self.measurement.builder.device, self.cancel).await?;
            self.stopwatch().programs(&[&built.0, &built.1]).await.map_err(failed)?
        };
        let rounds: Vec<[f64; 2]> = rounds.iter().map(|round| [round[0], round[1]]).collect();
        let contest = Contest::of(&rounds).ok_or(MeasureError::Unresolved)?;
        let device = self.measurement.builder.device.to_string();
        let [before, after] = [contest.before, contest.after].map(|time| time.times(SECONDS_TO_MICROSECONDS));
        let notes = vec![process_note(why, &before)];
        Ok(Comparison {
            before: Cost::of_process(device.clone(), before, Vec::new()),
            after: Cost::of_process(device, after, notes.clone()),
            ratio: contest.ratio,
            notes,
            not_checked: vec!["What the timed runs of the program gave was not compared.".to_owned()],
            is_same_code: false,
        })
    }

    /// The harness around a version's kernel, built, or kept from an earlier build.
    async fn built_harness(&self, version: &Target, kernel: &str) -> Result<Ready, MeasureError> {
        let harness = self.harness(version, kernel, harness::write_timed)?;
        let path = path_of(version)?;
        let (kept, key) = (&self.measurement.harnesses, Key::of(&harness, &path)?);
        let built = match kept.get(key) {
            Some(built) => built,
            None => {
                let scratch = scratch()?;
                let program = harness_program(&harness.text, &harness.path, kernel, &scratch)?;
                let built = build(&self.measurement.builder, &program, self.cancel).await?;
                kept.put(key, &built);
                built
            }
        };
        Ok(Ready::new(built, &harness, &path))
    }

    /// The harness of the reference's kernel around a version's.
    fn harness(&self, version: &Target, kernel: &str, write: Write) -> Result<Harness, MeasureError> {
        let path = path_of(self.reference)?;
        let version = match version {
            Target::Program(_) => Target::Kernel { path: path_of(version)?, kernel: kernel.to_owned() },
            Target::Kernel { .. } => version.clone(),
        };
        let text = harness_around((&path, kernel), &version, &self.measurement.answers, write)?;
        Ok(Harness { text, path, kernel: kernel.to_owned() })
    }

    async fn built_program(&self, version: &Target) -> Result<Built, MeasureError> {
        let scratch = scratch()?;
        let program = super::program_of(version, &self.measurement.answers, &scratch)?;
        Ok(build(&self.measurement.builder, &program, self.cancel).await?)
    }
}

/// How a harness is written.
type Write = fn(&harness::Harness, &harness::Subject) -> String;

/// A harness that was written: its text, the reference's file, the kernel.
pub(super) struct Harness {
    pub text: String,
    pub path: PathBuf,
    pub kernel: String,
}

fn scratch() -> Result<Scratch, MeasureError> {
    let file = |source| VerifyError::File { path: PathBuf::from("the scratch folder"), source };
    Ok(Scratch::new("harness").map_err(file)?)
}

fn path_of(target: &Target) -> Result<PathBuf, MeasureError> {
    let path = match target {
        Target::Kernel { path, .. } => Some(path.clone()),
        Target::Program(program) => program.sources.first().cloned(),
    };
    path.ok_or_else(|| VerifyError::Mismatch("The program has no file.".to_owned()).into())
}

fn text(target: &Target) -> Result<String, MeasureError> {
    let path = path_of(target)?;
    let bytes = std::fs::read(&path).map_err(|source| VerifyError::File { path: path.clone(), source })?;
    Ok(stitch_analysis::decode(&bytes).map(|decoded| decoded.text.to_string()).unwrap_or_default())
}

/// The kernels' costs before and after: those that were timed now, and those of the others as they were. What was timed now keeps to the
/// scale of what was timed before, so that a device which has become slower meanwhile does not look like a gain or a loss.
fn beside(to_beat: &Cost, changed: &[(String, Contest)]) -> (Vec<KernelCost>, Vec<KernelCost>) {
    let of = |name: &String, time: Interval| KernelCost {
        name: name.clone(),
        launches: 1,
        microseconds: Some(time.times(SECONDS_TO_MICROSECONDS)),
        ..KernelCost::default()
    };
    let is_known = |name: &String| {
        to_beat.kernels.iter().any(|kernel| kernel.name == *name && kernel.microseconds.is_some())
    };
    if !changed.iter().all(|(name, _)| is_known(name)) {
        let take = |which: fn(&Contest) -> Interval| {
            changed.iter().map(|(name, contest)| of(name, which(contest))).collect()
        };
        return (take(|contest| contest.before), take(|contest| contest.after));
    }
    let before = to_beat.kernels.clone();
    let after = before.iter().map(|kernel| match changed.iter().find(|(name, _)| *name == kernel.name) {
        Some((_, contest)) => {
            let scale = kernel.microseconds.map_or(1.0, |time| time.median / contest.before.median);
            KernelCost { microseconds: Some(contest.after.times(scale)), ..kernel.clone() }
        }
        None => kernel.clone(),
    });
    let after = after.collect();
    (before, after)
}

fn notes(kernels: &[KernelCost]) -> Vec<String> {
    let mut notes = vec![HARNESS_NOTE.to_owned()];
    let is_short = |kernel: &&KernelCost| kernel.microseconds.is_some_and(|time| time.median < LAUNCH_BOUND);
    let short: Vec<String> =
        kernels.iter().filter(is_short).map(|kernel| format!("`{}`", kernel.name)).collect();
    if !short.is_empty() {
        notes.push(format!(
            "A call of {} takes about as long as launching it, so that a faster kernel can hardly be seen; give it more data.",
            short.join(", ")
        ));
    }
    notes
}

fn process_note(why: &str, time: &Interval) -> String {
    format!(
        "{PROCESS_NOTE}, since {}: {:.1} ms ± {:.1} ms. A gain of less than {:.1}% of that can't be seen; to see one of a kernel, name it: `file.cu::name`.",
        why.trim_end_matches('.'),
        time.median / 1e3,
        (time.high - time.low) / 2e3,
        100.0 * time.spread().max(0.01),
    )
}

/// Why no harness was timed, in a clause.
fn words(error: &MeasureError) -> String {
    let text = error.to_string();
    let mut lines = text.lines().map(str::trim);
    let first = lines.next().unwrap_or_default();
    let first = match lines.next() {
        Some(second) if first.ends_with(':') => format!("{first} {second}"),
        _ => first.to_owned(),
    };
    format!("a kernel can't be run by itself ({})", first.trim_end_matches('.'))
}

fn failed(failure: Failure) -> MeasureError {
    match failure {
        Failure::Error(error) => error,
        Failure::Fails(_, how) => MeasureError::Fails { how },
        Failure::Differs(how) => MeasureError::Differs { how },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(median: f64) -> Interval {
        Interval { median, low: median, high: median, samples: 9 }
    }

    fn contest(before: f64, after: f64) -> Contest {
        Contest { before: interval(before), after: interval(after), ratio: interval(before / after) }
    }

    fn cost(kernels: &[(&str, f64)]) -> Cost {
        let of = |(name, time): &(&str, f64)| KernelCost {
            name: (*name).to_owned(),
            microseconds: Some(interval(*time)),
            ..KernelCost::default()
        };
        Cost::measured("cuda:0".into(), kernels.iter().map(of).collect(), Vec::new())
    }

    #[test]
    fn a_changed_kernel_is_put_beside_the_others_on_their_scale() {
        let known = cost(&[("a", 10.0), ("b", 30.0)]);
        // The device is twice as slow as at the baseline, and the candidate twice as fast as the best.
        let (before, after) = beside(&known, &[("b".into(), contest(60e-6, 30e-6))]);
        let [before, after] =
            [before, after].map(|kernels| Cost::measured("cuda:0".into(), kernels, Vec::new()));
        let total = |cost: &Cost| cost.time.as_ref().unwrap().microseconds.median;
        assert_eq!(total(&before), 40.0);
        assert!((total(&after) - 25.0).abs() < 1e-9, "{after:?}");
        let (before, after) = beside(&Cost::default(), &[("b".into(), contest(60e-6, 30e-6))]);
        assert!((before[0].microseconds.unwrap().median - 60.0).abs() < 1e-9);
        assert!((after[0].microseconds.unwrap().median - 30.0).abs() < 1e-9);
    }

    #[test]
    fn notes_say_how_and_how_well() {
        let long = notes(&cost(&[("a", 10.0)]).kernels);
        assert_eq!(long, [HARNESS_NOTE]);
        let short = notes(&cost(&[("a", 10.0), ("b", 4.0)]).kernels);
        assert!(short[1].contains("`b`") && !short[1].contains("`a`"), "{short:?}");
        let note = process_note(
            "it has no kernel.",
            &Interval { median: 312e3, low: 306e3, high: 318e3, samples: 12 },
        );
        assert!(
            note.contains("since it has no kernel: 312.0 ms ± 6.0 ms. A gain of less than 1.9%"),
            "{note}"
        );
    }
}
