//! Times what a person would use without a candidate: torch.compile of the reference, in each of its modes, each in a process that has seen nothing else.
//!
//! Compiling takes minutes, so times are kept under all that they depend on: the file, what is called, the device, the versions, the mode.

use std::time::Instant;

use stitch_session::cache::Key;

use super::pair::{Pair, Side};
use super::report::cut;
use super::timing::{Clock, Contest, speedup_of, times_of};
use crate::torch::host::{Batch, Child, ChildError, Filled, Place};
use crate::torch::judge::statistics::{LEAST_ROUNDS, Round, calls_of_batch, outcome};
use crate::torch::request::TorchError;

/// Modes of torch.compile.
const MODES: [&str; 3] = ["default", "reduce-overhead", "max-autotune"];
/// The one that times kernels while it compiles, and so has the device alone meanwhile; the others compile on the processor, for minutes.
const TUNING: &str = "max-autotune";
/// Rounds of one mode.
const ROUNDS: usize = LEAST_ROUNDS;
/// Calls before times are taken: the first ones compile and record graphs.
const WARM: u64 = 3;

/// Two times of a call for each round, in seconds.
type Times = Vec<[f64; 2]>;

impl Clock<'_, '_> {
    /// Times torch.compile's modes and compares the candidate with the best.
    pub async fn compiled(
        &mut self,
        side: &mut Side,
        pair: &Pair,
        contest: &Contest,
    ) -> Result<(), TorchError> {
        if self.request.place == Place::Cpu {
            self.report.not_checked("torch.compile was not timed: it is compared with on GPUs only.");
            return Ok(());
        }
        let began = Instant::now();
        let mut best: Option<(&str, Times, f64)> = None;
        for mode in MODES {
            (self.progress)(&format!("timing torch.compile, {mode}"), None);
            let key = self.key(pair, mode);
            let kept = self.kept(&key).await;
            let times = match kept {
                Some(times) => Ok(times),
                None => self.mode(side, pair, mode).await?,
            };
            match times {
                Ok(times) => {
                    let rounds: Vec<Round> = with(&times, contest);
                    let Some(found) = outcome(&rounds) else { continue };
                    let what = format!("torch.compile ({mode})");
                    let calls = times.len() as u64 * 2;
                    self.report.verdict.evidence.times.push(times_of(
                        &what,
                        found.reference,
                        calls,
                        "as the reference; calls counts batches",
                    ));
                    let median = found.reference.interval.median;
                    if best.as_ref().is_none_or(|best| median < best.2) {
                        best = Some((mode, times.clone(), median));
                    }
                    self.keep(key, times).await;
                }
                Err(reason) => {
                    self.report.not_checked(format!("torch.compile ({mode}) was not timed: {reason}."))
                }
            }
        }
        if let Some((mode, times, _)) = best
            && let Some(found) = outcome(&with(&times, contest))
        {
            let over = format!("torch.compile ({mode}, the best of {} modes)", MODES.len());
            self.report.verdict.evidence.speedups.push(speedup_of(&over, found.speedup));
        }
        self.report.stage("torch.compile", began.elapsed().as_secs_f64());
        Ok(())
    }

    /// Times one mode in a process of its own. The inner error is a reason.
    async fn mode(
        &mut self,
        side: &mut Side,
        pair: &Pair,
        mode: &str,
    ) -> Result<Result<Times, String>, TorchError> {
        let mut child = side.child().await?;
        let load = side.load(self.request, &self.request.reference, pair.dtype, self.secrets.draw());
        match self.time_mode(&mut child, &load, pair.state.as_ref(), mode).await {
            Ok(times) => Ok(Ok(times)),
            Err(ChildError::Cancelled) => Err(TorchError::Cancelled),
            Err(error) => Ok(Err(cut(&error.to_string()).trim_end_matches('.').to_owned())),
        }
    }

    async fn time_mode(
        &mut self,
        child: &mut Child,
        load: &crate::torch::host::Load,
        state: Option<&Filled>,
        mode: &str,
    ) -> Result<Times, ChildError> {
        child.load(load).await?;
        if let Some(state) = state {
            child.set_state(state).await?;
        }
        child.compile(mode).await?;
        let case = self.request.reference.cases.iter().position(|case| case.dtype == load.dtype).unwrap_or(0);
        let mut sets = Vec::new();
        for _ in 0..2 {
            sets.push(child.draw(self.secrets.draw(), case).await?);
        }
        child.prepare(&sets, self.request.l2_bytes).await?;
        let mut alone = None;
        if mode == TUNING {
            alone = self.gpu.alone().await.map_err(waited)?;
        }
        for _ in 0..WARM {
            let batch = self.batch(1, sets.len());
            child.time(&batch).await?;
        }
        if alone.is_none() {
            alone = self.gpu.alone().await.map_err(waited)?;
        }
        let call = self.calibrate(child, sets.len()).await?;
        let calls = calls_of_batch(call);
        let mut times = Times::new();
        for _ in 0..ROUNDS {
            self.processors.choose(self.secrets.draw());
            let (one, two) = (self.batch(calls, sets.len()), self.batch(calls, sets.len()));
            let without = Batch { empty: true, ..one.clone() };
            let empty = per_call(&without, child).await?;
            times.push([per_call(&one, child).await? - empty, per_call(&two, child).await? - empty]);
        }
        drop(alone);
        Ok(times)
    }

    fn key(&self, pair: &Pair, mode: &str) -> Key {
        let request = self.request;
        let text = std::fs::read(&request.reference.path).unwrap_or_default();
        let subject = serde_json::to_vec(&request.reference).unwrap_or_default();
        let rest = format!(
            "{:?}\n{}\n{}\n{:?}\n{:?}\n{}\n{:?}\n{}",
            pair.dtype,
            request.device,
            request.python.torch,
            request.python.cuda,
            request.driver,
            request.l2_bytes,
            request.train,
            mode
        );
        Key::of("torch.compile times", [text.as_slice(), subject.as_slice(), rest.as_bytes()])
    }

    async fn kept(&self, key: &Key) -> Option<Times> {
        let (cache, key) = (self.request.cache.clone(), *key);
        let bytes = tokio::task::spawn_blocking(move || cache.get(&key)).await.ok()??;
        serde_json::from_slice(&bytes).ok()
    }

    async fn keep(&self, key: Key, times: Times) {
        let cache = self.request.cache.clone();
        if let Ok(bytes) = serde_json::to_vec(&times) {
            let _ = tokio::task::spawn_blocking(move || cache.put(&key, &bytes)).await;
        }
    }
}

/// Why the device could not be had, as a reason not to time.
fn waited(error: TorchError) -> ChildError {
    match error {
        TorchError::Cancelled => ChildError::Cancelled,
        error => ChildError::Here { what: error.to_string() },
    }
}

/// The wall time of a batch for each of its calls, in seconds.
#[allow(clippy::cast_precision_loss)] // Few calls.
async fn per_call(batch: &Batch, child: &mut Child) -> Result<f64, ChildError> {
    Ok(child.time(batch).await?.wall.as_secs_f64() / batch.calls.len().max(1) as f64)
}

/// A baseline's times beside the candidate's. They were not taken in turns, so their rounds stand beside each other in any order.
fn with(times: &Times, contest: &Contest) -> Vec<Round> {
    let candidate = contest.rounds.iter().map(|round| round.candidate).cycle();
    let count = times.len().max(contest.rounds.len());
    times
        .iter()
        .copied()
        .cycle()
        .zip(candidate)
        .take(count)
        .map(|(reference, candidate)| Round { reference, candidate })
        .collect()
}
