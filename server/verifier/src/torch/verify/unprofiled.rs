//! What is known of code that torch's profiler can't look into: how long a call takes by our own clock, or else what the static rules say.

use std::time::Instant;

use stitch_analysis::{Analysis, Language};
use stitch_profiles::profile::{NotTaken, Profile, Way};
use stitch_profiles::python::{CallTime, PythonTime};

use super::gpu::Gpu;
use super::pair::Side;
use super::processors::Processors;
use super::profiled::way;
use super::secrets::Secrets;
use super::timing::{batch, calibrate, calls};
use crate::profile::ladder::Rung;
use crate::profile::{lower, take};
use crate::torch::host::{Batch, Child, ChildError, Place};
use crate::torch::judge::statistics::{MOST_ROUNDS, Round, enough, outcome};
use crate::torch::request::{Progress, Request, TorchError};

/// Sets of inputs that calls are made with.
const SETS: usize = 2;

/// Takes the lower rungs.
pub(super) struct Lower<'a> {
    /// As a person named it.
    pub target: &'a str,
    pub request: &'a Request,
    pub gpu: &'a Gpu,
    pub progress: &'a Progress<'a>,
}

/// Why there are no times.
enum Untimed {
    /// The code fails by itself, without a profiler too.
    Fails(ChildError),
    /// For this reason, in a sentence.
    Because(String),
    /// The job was cancelled.
    Cancelled,
}

impl From<ChildError> for Untimed {
    fn from(error: ChildError) -> Self {
        match error {
            ChildError::Cancelled => Self::Cancelled,
            ChildError::Here { what } | ChildError::TooLarge { what, .. } => Self::Because(what),
            error => Self::Fails(error),
        }
    }
}

impl From<TorchError> for Untimed {
    fn from(error: TorchError) -> Self {
        match error {
            TorchError::Cancelled => Self::Cancelled,
            error => Self::Because(error.to_string()),
        }
    }
}

impl Lower<'_> {
    /// The best of what is left, and why the profiler was not taken.
    ///
    /// # Errors
    /// The code fails by itself, or the job was cancelled.
    pub async fn take(
        &self,
        side: &mut Side,
        secrets: &mut Secrets,
        why: &str,
    ) -> Result<Profile, TorchError> {
        let mut better = way(self.request.place);
        better.not_taken.push(NotTaken { by: better.by, why: why.to_owned() });
        let mut not_taken = better.not_taken;
        match self.timed(side, secrets).await {
            Ok(call) => Ok(self.profile(
                "our own clock, around calls",
                not_taken,
                Some(PythonTime { call: Some(call), ..PythonTime::default() }),
            )),
            Err(Untimed::Cancelled) => Err(TorchError::Cancelled),
            Err(Untimed::Fails(error)) => Err(TorchError::of_reference(" for its own inputs", error)),
            Err(Untimed::Because(why)) => {
                not_taken.push(NotTaken { by: Rung::Clock.to_string(), why });
                self.statically(not_taken)
            }
        }
    }

    fn profile(&self, by: &str, not_taken: Vec<NotTaken>, python: Option<PythonTime>) -> Profile {
        let way = Way { by: by.to_owned(), measured: take::now(), not_taken, ..Way::default() };
        let device = Some(self.request.device.clone());
        Profile { device, python, ..Profile::new(self.target, way) }
    }

    /// Times calls in a process that has not been profiled.
    async fn timed(&self, side: &mut Side, secrets: &mut Secrets) -> Result<CallTime, Untimed> {
        (self.progress)("finding out how long a call takes", None);
        let request = self.request;
        let mut child = side.child().await?;
        let load = side.load(request, &request.reference, None, secrets.draw());
        child.load(&load).await?;
        let mut sets = Vec::new();
        for _ in 0..SETS {
            sets.push(child.draw(secrets.draw(), 0).await?);
        }
        child.prepare(&sets, request.l2_bytes).await?;
        // What another one runs meanwhile would be timed too.
        let _alone = self.gpu.alone().await?;
        let mut processors = Processors::of(request.place);
        let call =
            calibrate(&mut child, |calls| batch(secrets, processors.chosen, calls, sets.len())).await?;
        let count = calls(call, call);
        let (mut rounds, mut made) = (Vec::new(), 0);
        let began = Instant::now();
        loop {
            let spent = began.elapsed().as_secs_f64();
            let is_enough = enough(&rounds, count, request.calls, spent, request.timing_seconds);
            if is_enough || rounds.len() >= MOST_ROUNDS {
                break;
            }
            (self.progress)(&format!("timing, round {}", rounds.len() + 1), None);
            processors.choose(secrets.draw());
            let full = batch(secrets, processors.chosen, count, sets.len());
            let empty = Batch { empty: true, ..full.clone() };
            let without = per_call(&mut child, &empty).await?;
            let times =
                [per_call(&mut child, &full).await? - without, per_call(&mut child, &full).await? - without];
            made += 2 * full.calls.len() as u64;
            // One side alone, beside a call of one second that never varies: what is narrow then is the interval of its own times.
            rounds.push(Round { reference: times, candidate: [1.0; 2] });
        }
        let found = outcome(&rounds).ok_or_else(|| {
            Untimed::Because(
                "A call is shorter than what the clock around it varies by; give larger inputs.".to_owned(),
            )
        })?;
        Ok(self.told(found.reference.interval.times(1e9), made))
    }

    /// An interval in nanoseconds as a profile has it.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Times are above 0 and short.
    fn told(&self, time: crate::measure::sample::Interval, calls: u64) -> CallTime {
        let whole = |ns: f64| ns.max(0.0).round() as u64;
        let flushed = match (self.request.place, self.request.l2_bytes) {
            (Place::Cuda(_), 1..) => ", the L2 cache flushed before each",
            _ => "",
        };
        CallTime {
            median_ns: whole(time.median),
            low_ns: whole(time.low),
            high_ns: whole(time.high),
            calls,
            basis: format!(
                "our own wall clock around batches of calls, less batches without the calls{flushed}; the interval holds the median in 95 of 100 cases"
            ),
        }
    }

    /// What the static rules say of the file.
    fn statically(&self, not_taken: Vec<NotTaken>) -> Result<Profile, TorchError> {
        let path = &self.request.reference.path;
        let text = std::fs::read_to_string(path).map_err(|source| TorchError::System {
            what: format!("{} could not be read", path.display()),
            source,
        })?;
        let mut profile = self.profile("the static rules, without running it", not_taken, None);
        profile.notes = lower::of_rules(&Analysis::of(Language::Python, &text), &text);
        Ok(profile)
    }
}

/// The wall time of a batch for each of its calls, in seconds.
#[allow(clippy::cast_precision_loss)] // Few calls.
async fn per_call(child: &mut Child, batch: &Batch) -> Result<f64, ChildError> {
    Ok(child.time(batch).await?.wall.as_secs_f64() / batch.calls.len().max(1) as f64)
}
