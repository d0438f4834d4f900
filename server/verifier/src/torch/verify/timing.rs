//! Takes times: the parent's clock over batches of calls that each side learns only when it makes them.
//!
//! What a batch costs besides its calls (copying inputs, flushing the cache, gathering what is probed, the round trip) is measured by batches that do
//! all of it and no call, and is taken off. Elements of each timed call's outputs, at secret places, are compared between both sides, so a call that is
//! timed is a call that is checked.

use std::time::Instant;

use stitch_findings::{Speedup, Times};
use stitch_session::CancellationToken;

use super::gpu::Gpu;
use super::pair::{CONSTRUCTED, Pair};
use super::processors::Processors;
use super::report::{Report, cut};
use super::rounds::{in_words, view};
use super::secrets::Secrets;
use crate::measure::sample::{Interval, next_calls};
use crate::torch::host::{Batch, Child, ChildError, Filled, Place, Timed};
use crate::torch::judge::accuse::{self, Probe};
use crate::torch::judge::compare::compare;
use crate::torch::judge::elements::{number_of, numbers_of};
use crate::torch::judge::statistics::{self, MOST_CALLS, Outcome, Round, Spread, calls_of_batch, enough};
use crate::torch::request::{Progress, Request, TorchError};

/// Sets of inputs that live on the device.
const SETS: usize = 3;
/// What they may take together, in bytes; one is always made.
const MOST_SET_BYTES: u64 = 1 << 30;
/// Probed elements of each output of each call.
const PROBES: usize = 3;
/// The longest batch of the slower side, in seconds, unless a few calls take longer.
const LONGEST: f64 = 0.5;
/// Timed calls are made under other scales than the compared ones; their elements may be off by so many times more.
const LOOSE: f64 = 2.0;

/// Takes the times of one pair.
pub(super) struct Clock<'a, 'r> {
    pub request: &'a Request,
    pub report: &'a mut Report<'r>,
    pub secrets: &'a mut Secrets,
    pub progress: &'a Progress<'a>,
    pub cancel: &'a CancellationToken,
    pub gpu: &'a Gpu,
    pub processors: Processors,
}

/// What was timed.
pub(super) struct Contest {
    pub rounds: Vec<Round>,
    pub outcome: Outcome,
}

/// Why there are no times.
pub(super) enum Untimed {
    /// The job can't go on.
    Error(TorchError),
    /// The candidate failed, or cheated, which the report says.
    Accused,
    /// For this reason.
    Reason(String),
}

impl From<TorchError> for Untimed {
    fn from(error: TorchError) -> Self {
        Self::Error(error)
    }
}

impl Clock<'_, '_> {
    /// Times both sides of a pair, `scales` being the size of the elements of each output. `compared` says whether timed calls can be compared.
    pub async fn contest(
        &mut self,
        pair: &mut Pair,
        scales: &[f64],
        compared: bool,
    ) -> Result<Contest, Untimed> {
        let began = Instant::now();
        let shared = self.gpu.share().await?;
        let sets = self.sets(pair).await?;
        self.prepare(pair, &sets).await?;
        drop(shared);
        self.report.stage("prepare", began.elapsed().as_secs_f64());
        (self.progress)("waiting for the device", None);
        let began = Instant::now();
        // What another one runs meanwhile would be timed too.
        let _alone = self.gpu.alone().await?;
        if self.request.place != Place::Cpu {
            self.report.stage("wait", began.elapsed().as_secs_f64());
        }
        let began = Instant::now();
        let result = self.alone(pair, (scales, compared), &sets).await;
        self.report.stage("time", began.elapsed().as_secs_f64());
        result
    }

    /// What is done while nobody else uses the device.
    async fn alone(
        &mut self,
        pair: &mut Pair,
        (scales, compared): (&[f64], bool),
        sets: &[Filled],
    ) -> Result<Contest, Untimed> {
        (self.progress)("finding out how long a call takes", None);
        let reference = self.calibrate(&mut pair.reference, sets.len()).await.map_err(of_reference)?;
        let candidate = match self.calibrate(&mut pair.candidate, sets.len()).await {
            Ok(time) => time,
            Err(error) => return Err(self.candidate_failed(error)),
        };
        let calls = calls(reference, candidate);
        let mut rounds = Vec::new();
        let mut made = 0;
        let began = Instant::now();
        while !enough(
            &rounds,
            calls,
            self.request.calls,
            began.elapsed().as_secs_f64(),
            self.request.timing_seconds,
        ) {
            if self.cancel.is_cancelled() {
                return Err(TorchError::Cancelled.into());
            }
            (self.progress)(&format!("timing, round {}", rounds.len() + 1), None);
            let (round, count) = self.round(pair, calls, sets.len(), compared.then_some(scales)).await?;
            rounds.push(round);
            made += count;
        }
        self.last_outputs(pair, sets.len(), compared, reference).await?;
        let outcome = statistics::outcome(&rounds).ok_or_else(|| {
            Untimed::Reason(
                "a call is shorter than what the clock around it varies by; give larger inputs".to_owned(),
            )
        })?;
        self.tell(&outcome, made, sets);
        Ok(Contest { rounds, outcome })
    }

    /// Draws the sets of inputs.
    pub async fn sets(&mut self, pair: &mut Pair) -> Result<Vec<Filled>, Untimed> {
        let mut sets: Vec<Filled> = Vec::new();
        let case = self.request.reference.cases.iter().position(|case| case.dtype == pair.dtype).unwrap_or(0);
        while sets.len() < SETS && sets.iter().map(|set| set.values.bytes).sum::<u64>() * 2 <= MOST_SET_BYTES
        {
            let drawn = pair.reference.draw(self.secrets.draw(), case).await;
            sets.push(
                drawn.map_err(|error| {
                    Untimed::Error(TorchError::of_reference(" to draw its inputs", error))
                })?,
            );
        }
        Ok(sets)
    }

    /// Brings both sides to the constructed state and gives them the sets.
    async fn prepare(&mut self, pair: &mut Pair, sets: &[Filled]) -> Result<(), Untimed> {
        pair.forget();
        let state = pair.state.take();
        let brought = pair.bring_candidate(CONSTRUCTED, state.as_ref()).await;
        let brought = match brought {
            Ok(()) => pair.candidate.prepare(sets, self.request.l2_bytes).await,
            Err(error) => Err(error),
        };
        let brought = match brought {
            Ok(()) => pair.candidate.give_back().await,
            Err(error) => Err(error),
        };
        let result = match brought {
            Ok(()) => {
                let ready = match pair.bring_reference(CONSTRUCTED, state.as_ref()).await {
                    Ok(()) => pair.reference.prepare(sets, self.request.l2_bytes).await,
                    Err(error) => Err(error),
                };
                let ready = match ready {
                    Ok(()) => pair.reference.give_back().await,
                    Err(error) => Err(error),
                };
                ready.map_err(of_reference)
            }
            Err(error) => Err(self.candidate_failed(error)),
        };
        pair.state = state;
        result
    }

    fn candidate_failed(&mut self, error: ChildError) -> Untimed {
        match self.report.failed(error, " when it was timed") {
            Ok(()) => Untimed::Accused,
            Err(error) => Untimed::Error(error),
        }
    }

    /// A batch of about so many calls.
    pub fn batch(&mut self, calls: u64, sets: usize) -> Batch {
        batch(self.secrets, self.processors.chosen, calls, sets)
    }

    /// Roughly how long a call takes, in seconds.
    pub async fn calibrate(&mut self, child: &mut Child, sets: usize) -> Result<f64, ChildError> {
        calibrate(child, |calls| self.batch(calls, sets)).await
    }

    /// One round: A B B A, and what is no call of either side in between. How many calls each side made.
    async fn round(
        &mut self,
        pair: &mut Pair,
        calls: u64,
        sets: usize,
        scales: Option<&[f64]>,
    ) -> Result<(Round, u64), Untimed> {
        self.processors.choose(self.secrets.draw());
        let (first, second) = (self.batch(calls, sets), self.batch(calls, sets));
        let without = Batch { empty: true, ..first.clone() };
        let a1 = pair.reference.time(&first).await.map_err(of_reference)?;
        let b1 = self.of_candidate(pair, &first).await?;
        let b0 = self.of_candidate(pair, &without).await?;
        let b2 = self.of_candidate(pair, &second).await?;
        let a2 = pair.reference.time(&second).await.map_err(of_reference)?;
        let a0 = pair.reference.time(&without).await.map_err(of_reference)?;
        if let Some(scales) = scales {
            for (batch, wanted, got) in [(&first, &a1, &b1), (&second, &a2, &b2)] {
                self.probes(pair, batch, (wanted, got), scales).await?;
            }
        }
        #[allow(clippy::cast_precision_loss)] // Few.
        let count = |batch: &Batch| batch.calls.len() as f64;
        let empty = |timed: &Timed| timed.wall.as_secs_f64() / count(&first);
        let of = |timed: &Timed, batch: &Batch, empty: f64| timed.wall.as_secs_f64() / count(batch) - empty;
        let round = Round {
            reference: [of(&a1, &first, empty(&a0)), of(&a2, &second, empty(&a0))],
            candidate: [of(&b1, &first, empty(&b0)), of(&b2, &second, empty(&b0))],
        };
        Ok((round, (first.calls.len() + second.calls.len()) as u64))
    }

    async fn of_candidate(&mut self, pair: &mut Pair, batch: &Batch) -> Result<Timed, Untimed> {
        match pair.candidate.time(batch).await {
            Ok(timed) => Ok(timed),
            Err(error) => Err(self.candidate_failed(error)),
        }
    }

    /// Compares the probed elements of both. Before it accuses, it looks whether the reference repeats itself.
    async fn probes(
        &mut self,
        pair: &mut Pair,
        batch: &Batch,
        (wanted, got): (&Timed, &Timed),
        scales: &[f64],
    ) -> Result<(), Untimed> {
        let Some(difference) = self.first_difference(batch, wanted, got, scales) else { return Ok(()) };
        let again = pair.reference.time(batch).await.map_err(of_reference)?;
        if self.first_difference(batch, wanted, &again, scales).is_some() {
            self.report
                .not_checked("The reference does not repeat its timed calls, so these were not compared.");
            return Ok(());
        }
        self.report
            .dishonest(format!("The candidate answers otherwise when it is timed: {}.", difference.words()));
        Err(Untimed::Accused)
    }

    fn first_difference(&self, batch: &Batch, wanted: &Timed, got: &Timed, scales: &[f64]) -> Option<Probe> {
        let probe = |call: usize, tensor: usize, k: usize, expected: f64, found: f64| {
            let count = wanted.outputs.get(tensor).and_then(|tensor| tensor.count()).unwrap_or(0);
            let element = batch.place(call, k, count).unwrap_or(0);
            Probe { call, place: format!("output {tensor}"), element, expected, got: found }
        };
        if wanted.outputs.len() != got.outputs.len() {
            return Some(probe(0, 0, 0, f64::NAN, f64::NAN));
        }
        for (call, (expected, found)) in wanted.probed.iter().zip(&got.probed).enumerate() {
            for (tensor, (expected, found)) in expected.iter().zip(found).enumerate() {
                let (a, b) = (wanted.outputs.get(tensor)?, got.outputs.get(tensor)?);
                if a.dtype != b.dtype || expected.len() != found.len() {
                    return Some(probe(call, tensor, 0, f64::NAN, f64::NAN));
                }
                let tolerance = self.request.rule.of(a.dtype) * LOOSE;
                let scale = scales.get(tensor).copied().unwrap_or(1.0);
                let pairs = numbers_of(a.dtype, expected).into_iter().zip(numbers_of(a.dtype, found));
                for (at, (expected, found)) in pairs.enumerate() {
                    let allowed = tolerance * (expected.abs() + scale);
                    let same = crate::compare::relative_error(expected, found) == 0.0
                        || (expected - found).abs() <= allowed && found.is_finite() && expected.is_finite();
                    if !same {
                        return Some(probe(call, tensor, number_of(a.dtype, at), expected, found));
                    }
                }
            }
        }
        None
    }

    /// One more batch on each side, whose last answer is fetched whole: compared, and its way timed.
    async fn last_outputs(
        &mut self,
        pair: &mut Pair,
        sets: usize,
        compared: bool,
        call: f64,
    ) -> Result<(), Untimed> {
        let batch = self.batch(2, sets);
        self.of_candidate(pair, &batch).await?;
        let (got, candidate_took) = match pair.candidate.last_output().await {
            Ok(got) => got,
            Err(error) => return Err(self.candidate_failed(error)),
        };
        pair.reference.time(&batch).await.map_err(of_reference)?;
        let (wanted, reference_took) = pair.reference.last_output().await.map_err(of_reference)?;
        let call = std::time::Duration::try_from_secs_f64(call).unwrap_or_default();
        if let Some(words) = accuse::put_off(got.values.bytes, candidate_took, reference_took, call) {
            self.report.dishonest(format!("Of the candidate, {words}."));
            return Err(Untimed::Accused);
        }
        if !compared {
            return Ok(());
        }
        let rule = crate::torch::judge::Rule { tolerance: self.request.rule.tolerance };
        let parts = compare("output of the last timed call", view(&wanted), None, view(&got), &rule);
        if parts.iter().all(|part| part.is_same()) {
            self.report.compared(&parts, "timed");
            return Ok(());
        }
        pair.reference.time(&batch).await.map_err(of_reference)?;
        let (again, _) = pair.reference.last_output().await.map_err(of_reference)?;
        if compare("output", view(&wanted), None, view(&again), &rule).iter().any(|part| !part.is_same()) {
            self.report
                .not_checked("The reference does not repeat its timed calls, so these were not compared.");
            return Ok(());
        }
        self.report.compared(&parts, "timed");
        Err(Untimed::Accused)
    }

    fn tell(&mut self, outcome: &Outcome, calls: u64, sets: &[Filled]) {
        let inputs = sets.first().map(|set| in_words(&set.values)).unwrap_or_default();
        let inputs = if inputs.is_empty() { "no tensors".to_owned() } else { cut(&inputs) };
        let flushed = if self.request.l2_bytes > 0 { ", the L2 cache flushed before each" } else { "" };
        let basis = format!(
            "our own wall clock around batches of calls, less batches without the calls{flushed}; inputs {inputs}"
        );
        let times = [("reference", outcome.reference), ("candidate", outcome.candidate)];
        for (what, spread) in times {
            self.report.verdict.evidence.times.push(times_of(what, spread, calls, &basis));
        }
        self.report.verdict.evidence.speedups.push(speedup_of("reference", outcome.speedup));
    }
}

/// A batch of about so many calls, on so many sets of inputs.
pub(super) fn batch(secrets: &mut Secrets, processor: Option<usize>, calls: u64, sets: usize) -> Batch {
    let calls = calls + secrets.draw() % (calls / 10 + 1);
    let sets = sets.max(1) as u64;
    Batch {
        calls: (0..calls)
            .map(|_| {
                let set = usize::try_from(secrets.draw() % sets).unwrap_or(0);
                // Never larger than it was drawn: what is a probability stays one.
                (set, 0.5 + secrets.uniform() / 2.0)
            })
            .collect(),
        probe: (0..PROBES).map(|_| secrets.draw()).collect(),
        seed: secrets.draw() >> 1,
        empty: false,
        warm: false,
        processor,
    }
}

/// Roughly how long a call takes, in seconds, by batches of as many calls as are asked for.
pub(super) async fn calibrate(
    child: &mut Child,
    mut batch: impl FnMut(u64) -> Batch,
) -> Result<f64, ChildError> {
    let mut calls = 1;
    loop {
        let mut batch = batch(calls);
        batch.warm = true;
        // The first batch of a size may load what later ones find in memory.
        if calls == 1 {
            child.time(&batch).await?;
        }
        let full = child.time(&batch).await?.wall.as_secs_f64();
        batch.empty = true;
        let empty = child.time(&batch).await?.wall.as_secs_f64();
        #[allow(clippy::cast_precision_loss)] // Few.
        let made = batch.calls.len() as f64;
        match next_calls(calls, full - empty).filter(|more| *more <= MOST_CALLS && full < LONGEST) {
            Some(more) => calls = more,
            None => return Ok(((full - empty) / made).max(0.0)),
        }
    }
}

/// How many calls a batch makes.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Clamped.
pub(super) fn calls(reference: f64, candidate: f64) -> u64 {
    let slower = reference.max(candidate).max(1e-9);
    let most = (LONGEST / slower).clamp(1.0, 1e9) as u64;
    calls_of_batch(reference.min(candidate)).min(most)
}

/// A speedup as a verdict has it.
pub(super) fn speedup_of(over: &str, ratio: Interval) -> Speedup {
    Speedup {
        over: over.to_owned(),
        ratio: ratio.median,
        low: ratio.low,
        high: ratio.high,
        basis: "the ratio of the median times of a call; 95% interval by a bootstrap over rounds".to_owned(),
    }
}

/// Times as a verdict has them: seconds become microseconds.
pub(super) fn times_of(what: &str, spread: Spread, calls: u64, basis: &str) -> Times {
    let interval = spread.interval.times(1e6);
    Times {
        what: what.to_owned(),
        median: interval.median,
        p5: spread.p5 * 1e6,
        p95: spread.p95 * 1e6,
        low: interval.low,
        high: interval.high,
        calls,
        basis: basis.to_owned(),
    }
}

/// The reference can't be timed: no accusation, and no end of the verification.
fn of_reference(error: ChildError) -> Untimed {
    match error {
        ChildError::Cancelled => Untimed::Error(TorchError::Cancelled),
        error => {
            Untimed::Reason(format!("the reference fails when it is timed: {}", cut(&error.to_string())))
        }
    }
}
