//! Decides whether a candidate does what a module or function of a Python file does, and how much faster.
//!
//! Both run in processes of their own, which know neither seeds nor each other's answers. In each round fresh inputs are drawn under a secret seed, the
//! candidate is called, then the reference, twice; everything that comes back is compared here. The rounds go through the reference's own
//! distribution of inputs and through others, with parameters as constructed and with other ones. Only what is right is timed, and only
//! what is timed as it was compared is called faster. What was not looked at is said.

mod baseline;
mod blame;
mod called;
mod gpu;
mod pair;
mod processors;
pub mod profiled;
mod report;
mod rounds;
mod sanitize;
mod secrets;
mod simulation;
mod timing;
mod unprofiled;

use std::sync::Arc;
use std::time::Instant;

use stitch_findings::{Degenerate, Verdict};
use stitch_session::CancellationToken;

use super::host::{Filled, Place, give_back};
use super::judge::degenerate::Detector;
use super::judge::distributions::Distribution;
use super::request::{Progress, Request, SanitizerPolicy, TorchError};
use super::simulated::Simulator;
use super::values::Dtype;
use gpu::Gpu;
use pair::{Opened, Pair, Sides};
use processors::Processors;
use report::Report;
use rounds::{Flow, Rounds};
use secrets::Secrets;
use timing::{Clock, Untimed};

/// The share of a request's time that one run on the simulator may take.
const SHARE: f64 = 0.75;

/// Secret seeds that count, at least.
const LEAST_SEEDS: u32 = 5;

/// Verifies the candidate of a request.
///
/// # Errors
/// The reference itself fails, something is missing, or the job was cancelled. Whatever is wrong with the candidate is a verdict.
pub async fn verify(
    request: &Request,
    progress: &Progress<'_>,
    cancel: &CancellationToken,
) -> Result<Verdict, TorchError> {
    let simulator = request.simulation.clone().map(|simulation| {
        // A run that is ended has to be told to the process that asked for it, which has a limit of its own.
        let limit = request.time_limit.mul_f64(SHARE);
        Arc::new(Simulator::new(simulation, limit, cancel.clone()))
    });
    let gpu = Gpu::of(request, cancel);
    let (report, secrets) = (Report::new(request, simulator.clone()), Secrets::new());
    let mut work = Work { request, progress, cancel, report, secrets, gpu };
    progress("starting Python", None);
    let began = Instant::now();
    let mut sides = Sides::start(request, simulator, cancel).await?;
    work.report.stage("start", began.elapsed().as_secs_f64());
    progress("waiting for the device", None);
    let began = Instant::now();
    let _place = work.gpu.place().await?;
    if request.place != Place::Cpu {
        work.report.stage("wait", began.elapsed().as_secs_f64());
    }
    let result = work.run(&mut sides).await;
    let Sides { reference, candidate, .. } = sides;
    // Nothing of either is left when the verdict is told.
    tokio::join!(reference.end(), candidate.end());
    give_back();
    result?;
    Ok(work.report.finish())
}

/// One verification.
struct Work<'a> {
    request: &'a Request,
    progress: &'a Progress<'a>,
    cancel: &'a CancellationToken,
    report: Report<'a>,
    secrets: Secrets,
    gpu: Gpu,
}

/// Cases of one type, which one pair of processes is loaded for.
type Group = (Option<Dtype>, Vec<usize>);

/// What rounds leave for what follows.
#[derive(Default)]
struct Left {
    /// The size of the outputs' elements in the reference's last answer to inputs of its own.
    scales: Option<Vec<f64>>,
    /// Whether outputs are random.
    random: bool,
}

impl<'a> Work<'a> {
    async fn run(&mut self, sides: &mut Sides) -> Result<(), TorchError> {
        let groups = groups(self.request);
        let mut first = None;
        for (index, group) in groups.iter().enumerate() {
            let began = Instant::now();
            (self.progress)("loading both versions", None);
            let seeds = [self.secrets.draw() >> 1, self.secrets.draw() >> 1];
            let opened = sides.open(self.request, group.0, seeds, &mut self.report).await?;
            self.report.stage("load", began.elapsed().as_secs_f64());
            let Opened::Pair(mut pair) = opened else { return Ok(()) };
            let began = Instant::now();
            let left = self.compare(sides, &mut pair, group, seeds).await;
            self.report.stage("compare", began.elapsed().as_secs_f64());
            let left = left?;
            if !self.report.is_good() {
                return Ok(());
            }
            if index == 0 {
                first = Some((pair, left));
            }
        }
        let Some((mut pair, left)) = first else { return Ok(()) };
        let faster = self.time(sides, &mut pair, &left).await?;
        if self.report.is_good() {
            self.sanitize(sides, pair, faster).await?;
        }
        Ok(())
    }

    /// The rounds of a group of cases.
    async fn compare(
        &mut self,
        sides: &mut Sides,
        pair: &mut Box<Pair>,
        group: &Group,
        seeds: [u64; 2],
    ) -> Result<Left, TorchError> {
        let planned = rounds::plan(&group.1, &mut self.secrets);
        let mut left = Left::default();
        let mut case = None;
        let mut detector = Detector::default();
        let mut last = None;
        let mut threads = [Vec::new(), Vec::new()];
        let mut own_finite = true;
        let mut planned = planned;
        let mut index = 0;
        let mut ahead = None;
        let mut scales = Vec::new();
        while index < planned.len() || self.report.seeds() < LEAST_SEEDS {
            if index == planned.len() {
                // Some did not count; the reference's own inputs always do.
                let case = group.1.first().copied().unwrap_or(0);
                planned.push(rounds::Planned {
                    case,
                    distribution: Distribution::Own,
                    randomised: true,
                    look: false,
                });
            }
            let round = &planned[index];
            if case.is_some_and(|case| case != round.case) {
                self.degenerate(&detector);
                detector = Detector::default();
            }
            case = Some(round.case);
            #[allow(clippy::cast_precision_loss)] // Few.
            let share = index as f32 / planned.len() as f32;
            index += 1;
            (self.progress)(&format!("comparing, round {index} of {}", planned.len()), Some(share));
            let mut rounds = Rounds {
                request: self.request,
                report: &mut self.report,
                secrets: &mut self.secrets,
                progress: self.progress,
                cancel: self.cancel,
                detector: std::mem::take(&mut detector),
                last: last.take(),
                threads: std::mem::take(&mut threads),
                own_finite,
                random: left.random,
                gpu: &self.gpu,
                ahead: ahead.take(),
                in_place: index.is_multiple_of(2),
                scales: std::mem::take(&mut scales),
            };
            let next = planned.get(index).map(|next| next.case);
            let flow = rounds.round(pair, *round, next).await?;
            (detector, last, threads) = (rounds.detector, rounds.last, rounds.threads);
            (own_finite, left.random) = (rounds.own_finite, rounds.random);
            (ahead, scales) = (rounds.ahead, rounds.scales);
            if round.case == group.1.first().copied().unwrap_or(0) && last.is_some() {
                left.scales = Some(scales.clone());
            }
            match flow {
                Flow::Next => {}
                Flow::Stop => return Ok(left),
                Flow::Reopen => {
                    let opened = sides.open(self.request, group.0, seeds, &mut self.report).await?;
                    let Opened::Pair(new) = opened else { return Ok(left) };
                    *pair = new;
                    ahead = None;
                }
            }
        }
        self.degenerate(&detector);
        Ok(left)
    }

    /// Notes what passes without work in every round of a case.
    fn degenerate(&mut self, detector: &Detector) {
        for (output, trivial) in detector.found() {
            let list = &mut self.report.verdict.evidence.degenerate;
            if !list.iter().any(|known| known.output == output) {
                list.push(Degenerate { output, by: trivial.words() });
            }
        }
    }

    /// Times both, and the baselines. Whether the candidate is faster.
    async fn time(&mut self, sides: &mut Sides, pair: &mut Pair, left: &Left) -> Result<bool, TorchError> {
        if self.request.simulation.is_some() {
            return Ok(false);
        }
        let Some(scales) = left.scales.as_ref().filter(|_| self.request.calls > 0) else {
            self.report.not_checked(crate::verify::UNTIMED);
            return Ok(false);
        };
        let compared = !left.random && self.report.verdict.left_out.is_empty();
        if !compared {
            self.report.not_checked(
                "Answers of timed calls were not compared, since the reference does not repeat its own.",
            );
        }
        let mut clock = Clock {
            request: self.request,
            report: &mut self.report,
            secrets: &mut self.secrets,
            progress: self.progress,
            cancel: self.cancel,
            gpu: &self.gpu,
            processors: Processors::of(self.request.place),
        };
        let result = clock.contest(pair, scales, compared).await;
        let contest = match result {
            Ok(contest) => contest,
            Err(Untimed::Error(error)) => return Err(error),
            Err(Untimed::Accused) => return Ok(false),
            Err(Untimed::Reason(reason)) => {
                let reason = reason.trim_end_matches('.');
                self.report
                    .not_checked(format!("Whether the candidate is faster was not measured: {reason}."));
                return Ok(false);
            }
        };
        if self.request.compile_baseline {
            clock.compiled(&mut sides.reference, pair, &contest).await?;
        } else {
            self.report.not_checked("The candidate was not timed against torch.compile.");
        }
        Ok(contest.outcome.speedup.low > 1.0)
    }

    /// Runs compute-sanitizer, as the policy says.
    async fn sanitize(&mut self, sides: &Sides, mut pair: Box<Pair>, faster: bool) -> Result<(), TorchError> {
        if self.request.place == Place::Cpu {
            return Ok(());
        }
        const UNLOOKED: &str = "Out-of-bounds accesses, uninitialised reads and races were not looked for";
        let wanted = match self.request.sanitizer {
            SanitizerPolicy::Always => true,
            SanitizerPolicy::Final => faster,
            SanitizerPolicy::Never => false,
        };
        if !wanted {
            let why = if self.request.sanitizer == SanitizerPolicy::Never {
                "as was asked"
            } else {
                "since the candidate is not faster"
            };
            self.report.not_checked(format!("{UNLOOKED}, {why}."));
            return Ok(());
        }
        let Some(program) = &self.request.sanitizer_program else {
            self.report.not_checked(format!(
                "{UNLOOKED}: compute-sanitizer was not found; it comes with the CUDA toolkit."
            ));
            return Ok(());
        };
        let mut smallest: Option<Filled> = None;
        for (case, _) in
            self.request.reference.cases.iter().enumerate().filter(|(_, case)| case.dtype == pair.dtype)
        {
            let drawn = pair.reference.draw(self.secrets.draw(), case).await;
            let drawn = drawn.map_err(|error| TorchError::of_reference(" to draw its inputs", error))?;
            if smallest.as_ref().is_none_or(|smallest| drawn.values.bytes < smallest.values.bytes) {
                smallest = Some(drawn);
            }
        }
        let Some(inputs) = smallest else { return Ok(()) };
        let Pair { reference, candidate, state, dtype, .. } = *pair;
        drop((reference, candidate));
        // Both processes are gone by now, with the memory that they took.
        let subject = sanitize::Subject { inputs: &inputs, state: state.as_ref(), dtype };
        let Self { request, progress, cancel, report, secrets, gpu } = self;
        let mut look = sanitize::Look { request, program, report, secrets, progress, cancel, gpu };
        look.at(sides, &subject).await
    }
}

/// The cases by their types, in the order in which these come.
fn groups(request: &Request) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (index, case) in request.reference.cases.iter().enumerate() {
        match groups.iter_mut().find(|group| group.0 == case.dtype) {
            Some(group) => group.1.push(index),
            None => groups.push((case.dtype, vec![index])),
        }
    }
    groups
}
