//! The processes of the versions that are timed against each other.
//!
//! They live side by side, and one of them works at a time. Where the device has no room for the arrays of both, or lets one process in
//! at a time, each is ended before the other starts.

use super::process::TimedProcess;
use super::sample::{Interval, Sample, Schedule, next_calls};
use super::stopwatch::{Failure, Stopwatch};
use crate::program::Built;
use crate::verify::{Files, secret};

/// Seconds of calls that a version makes before it is timed, after its start: a device needs a while to reach its clock.
const WARM: f64 = 0.1;
/// Of calls that take so many seconds the first is as good as any other: what it has to load is little beside it.
const LONG: f64 = 0.5;
/// Most calls after which arrays are compared that each call changes.
const FEW: u64 = 4;

/// The versions, and what is known of each.
pub(super) struct Versions<'a> {
    stopwatch: &'a Stopwatch<'a>,
    seed: u64,
    all: Vec<Version<'a>>,
    is_side_by_side: bool,
}

struct Version<'a> {
    built: &'a Built,
    process: Option<TimedProcess>,
    /// Once it is known how long a call takes.
    schedule: Option<Schedule>,
}

/// How often a version is called before its arrays are looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    /// In a row, as when it is timed.
    pub many: u64,
    /// After that, from the first contents of the arrays on.
    pub few: u64,
}

/// What a version's arrays hold.
pub(super) struct Left {
    /// After many calls, where these are not the few.
    pub after_many: Option<Files>,
    pub after_few: Files,
}

/// The samples of a version in one round.
#[derive(Default)]
struct Samples {
    taken: Vec<Sample>,
    empties: Vec<f64>,
}

impl Samples {
    /// The time of a call.
    fn call(&self) -> f64 {
        let median = |values: &[f64]| Interval::of(values).map_or(0.0, |interval| interval.median);
        let empty = median(&self.empties);
        median(&self.taken.iter().map(|sample| sample.call(empty)).collect::<Vec<_>>())
    }
}

impl<'a> Versions<'a> {
    /// The versions, of which nothing runs yet.
    pub fn new(stopwatch: &'a Stopwatch<'a>, versions: &[&'a Built]) -> Self {
        let of = |built: &&'a Built| Version { built, process: None, schedule: None };
        let all = versions.iter().map(of).collect();
        Self { stopwatch, seed: secret(), all, is_side_by_side: true }
    }

    /// Starts a process of each version.
    pub async fn start(&mut self) -> Result<(), Failure> {
        for version in 0..self.all.len() {
            (self.stopwatch.progress)("finding out how long a call takes");
            let Err(failure) = self.ready(version).await else { continue };
            if version == 0 || !matches!(failure, Failure::Fails(..)) {
                return Err(failure);
            }
            // Perhaps it fails beside another only.
            self.is_side_by_side = false;
            self.ready(version).await?;
            tracing::info!("the versions are timed in one process at a time: {failure:?}");
        }
        Ok(())
    }

    /// Whether the processes live at the same time.
    pub fn is_side_by_side(&self) -> bool {
        self.is_side_by_side
    }

    /// The time of a call of each version, in seconds, in processes of their own that have started in this order, on inputs of their own.
    pub async fn round(&mut self, order: &[usize]) -> Result<Vec<f64>, Failure> {
        let mut samples: Vec<Samples> = self.all.iter().map(|_| Samples::default()).collect();
        let mut wanted = 0;
        for version in order {
            let (_, schedule) = self.ready(*version).await?;
            wanted = wanted.max(schedule.samples);
            if !self.is_side_by_side {
                for _ in 0..schedule.samples {
                    self.sample(*version, &mut samples[*version]).await?;
                }
            }
        }
        for turn in 0..if self.is_side_by_side { wanted } else { 0 } {
            for place in 0..order.len() {
                let place = if turn % 2 == 0 { place } else { order.len() - 1 - place };
                self.sample(order[place], &mut samples[order[place]]).await?;
            }
        }
        Ok(samples.iter().map(Samples::call).collect())
    }

    /// Takes a sample of a version, and right before it what a command to make no call takes.
    async fn sample(&mut self, version: usize, samples: &mut Samples) -> Result<(), Failure> {
        let (process, schedule) = self.ready(version).await?;
        process.fill().await?;
        process.run(schedule.lead).await?;
        samples.empties.push(process.run(0).await?);
        let calls = schedule.count(secret());
        samples.taken.push(Sample { calls, seconds: process.run(calls).await? });
        Ok(())
    }

    /// What a version's arrays hold after so many calls.
    pub async fn left(&mut self, version: usize, counts: Counts) -> Result<Left, Failure> {
        let built = self.all[version].built;
        let (process, _) = self.ready(version).await?;
        let mut after_many = None;
        if counts.many > counts.few {
            process.fill().await?;
            process.run(counts.many).await?;
            after_many = Some(process.arrays(built).await?);
        }
        process.fill().await?;
        process.run(counts.few).await?;
        Ok(Left { after_many, after_few: process.arrays(built).await? })
    }

    /// Numbers of calls that no version's process has been told yet: many as in a sample of one of them, and few.
    pub fn counts(&self) -> Counts {
        let drawn = self.all.iter().filter_map(|version| Some(version.schedule?.count(secret())));
        let many = drawn.min().unwrap_or(1);
        Counts { many, few: many.min(1 + secret() % FEW) }
    }

    /// Tells all processes to end, and waits until they have. Those that are needed again start anew, on other inputs.
    pub async fn quit(&mut self) -> Result<(), Failure> {
        for version in &mut self.all {
            if let Some(process) = version.process.take() {
                process.quit().await?;
            }
        }
        self.seed = secret();
        Ok(())
    }

    /// Ends all processes that are left.
    pub async fn end(&mut self) {
        for version in &mut self.all {
            if let Some(mut process) = version.process.take() {
                process.end().await;
            }
        }
    }

    /// The process of a version, which has started, has made calls and may be timed.
    async fn ready(&mut self, version: usize) -> Result<(&mut TimedProcess, Schedule), Failure> {
        if !self.is_side_by_side {
            for (index, other) in self.all.iter_mut().enumerate() {
                if index != version
                    && let Some(process) = other.process.take()
                {
                    process.quit().await?;
                }
            }
        }
        let Stopwatch { running, cancel, .. } = self.stopwatch;
        let Version { built, process, schedule } = &mut self.all[version];
        let process = match process {
            Some(process) => process,
            none => {
                let mut started = TimedProcess::start((version, built), self.seed, running, cancel).await?;
                *schedule = Some(warmed(&mut started, *schedule).await?);
                none.insert(started)
            }
        };
        Ok((process, schedule.unwrap_or(Schedule::of(LONG))))
    }
}

/// Makes a new process's first calls, and finds out how long one takes, where that is not known.
async fn warmed(process: &mut TimedProcess, known: Option<Schedule>) -> Result<Schedule, Failure> {
    if let Some(schedule) = known.filter(|schedule| schedule.call >= LONG) {
        return Ok(schedule);
    }
    // The first call loads what later ones find.
    let mut seconds = process.run(1).await?;
    let schedule = match known {
        Some(schedule) => schedule,
        None if seconds >= LONG => return Ok(Schedule::of(seconds)),
        None => {
            let mut calls = 1;
            loop {
                process.fill().await?;
                seconds = process.run(calls).await?;
                let Some(more) = next_calls(calls, seconds) else { break };
                calls = more;
            }
            Schedule::of(Sample { calls, seconds }.call(0.0))
        }
    };
    let mut warm = seconds;
    while warm < WARM {
        process.fill().await?;
        warm += process.run(schedule.calls).await?;
    }
    Ok(schedule)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_takes_without_a_call_is_no_part_of_a_call() {
        let sample = |calls, seconds| Sample { calls, seconds };
        let taken = vec![sample(10, 1.5), sample(4, 1.25), sample(10, 99.0)];
        assert_eq!(Samples { taken, empties: vec![0.25, 0.5, 0.125] }.call(), 0.25);
        assert_eq!(Samples::default().call(), 0.0);
    }
}
