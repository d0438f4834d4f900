//! Takes the wall-clock times of whole processes on a GPU, from outside of them.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::sample::{Interval, LEAST_ROUNDS, Schedule, next_calls, slope};
use super::{MeasureError, Measurement};
use crate::compare::{Interpretation, Why, compare_bytes};
use crate::program::{Built, End, Ran, Running, run_held};
use crate::simulation::Options;
use crate::verify::{Files, VerifyError, ended, read_outputs, secret};

/// The time of each version in each round, in seconds: of a call, or of the process.
pub(super) type Rounds = Vec<Vec<f64>>;

/// Why there are no times.
#[derive(Debug)]
pub(super) enum Failure {
    /// Nothing could be run.
    Error(MeasureError),
    /// A version failed: its number, and how.
    Fails(usize, String),
    /// The second version's outputs after its calls are not those of the first; where.
    Differs(String),
}

impl<E: Into<MeasureError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Error(error.into())
    }
}

/// Times processes on a device that the caller holds.
pub(super) struct Stopwatch<'a> {
    pub measurement: &'a Measurement,
    pub progress: &'a (dyn Fn(&str) + Send + Sync),
    pub cancel: &'a CancellationToken,
}

impl Stopwatch<'_> {
    /// Times calls of the kernels in harnesses, one for each version. The outputs of the second are compared with those of the first.
    pub async fn harnesses(&self, versions: &[&Built]) -> Result<Rounds, Failure> {
        let seed = secret();
        (self.progress)("finding out how long a call takes");
        // The first process of a kind loads what later ones find in memory.
        for (version, built) in versions.iter().enumerate() {
            self.once((version, built), seed, 1).await?;
        }
        let (mut calls, mut starts) = (0.0, 0.0);
        for (version, built) in versions.iter().enumerate() {
            let (call, start) = self.calibrate((version, built), seed).await?;
            calls += call;
            starts += start;
        }
        #[allow(clippy::cast_precision_loss)] // Two at most.
        let count = versions.len().max(1) as f64;
        let schedule = Schedule::of(calls / count, starts / count, versions.len());
        if let [first, second] = versions {
            (self.progress)("comparing what both leave after as many calls");
            let [few, many] = schedule.counts(secret());
            let expected = self.outputs((0, first), seed, few).await?;
            let again = self.outputs((0, first), seed, many).await?;
            for calls in [few, many] {
                let got = self.outputs((1, second), seed, calls).await?;
                self.same(&expected, &again, &got)?;
            }
        }
        let mut rounds = Rounds::new();
        for round in 0..schedule.rounds {
            (self.progress)(&format!("timing, round {} of {}", round + 1, schedule.rounds));
            let counts = schedule.counts(secret());
            let mut times = vec![[0.0; 2]; versions.len()];
            for (version, which) in nested(versions.len(), round) {
                times[version][which] = self.once((version, versions[version]), seed, counts[which]).await?;
            }
            rounds.push(times.iter().map(|times| slope(counts, *times)).collect());
        }
        Ok(rounds)
    }

    /// Times whole processes.
    pub async fn programs(&self, versions: &[&Built]) -> Result<Rounds, Failure> {
        let mut walls = Vec::new();
        for (version, built) in versions.iter().enumerate() {
            self.whole((version, built)).await?;
            walls.push(self.whole((version, built)).await?);
        }
        let planned = Schedule::rounds(2.0 * walls.iter().sum::<f64>()).max(LEAST_ROUNDS);
        let mut rounds = Rounds::new();
        for round in 0..planned {
            (self.progress)(&format!("timing the program, round {} of {planned}", round + 1));
            let mut times = vec![0.0; versions.len()];
            for (version, _) in nested(versions.len(), round) {
                times[version] += self.whole((version, versions[version])).await? / 2.0;
            }
            rounds.push(times);
        }
        Ok(rounds)
    }

    /// How long a call takes, roughly, and a process without any; in seconds.
    async fn calibrate(&self, version: (usize, &Built), seed: u64) -> Result<(f64, f64), Failure> {
        let start = self.once(version, seed, 2).await?;
        let mut calls = 8;
        loop {
            let over = self.once(version, seed, calls).await? - start;
            match next_calls(calls, over) {
                Some(more) => calls = more,
                None => {
                    #[allow(clippy::cast_precision_loss)] // Calls stay far below 2^53.
                    let call = (over / (calls - 2) as f64).max(0.0);
                    return Ok((call, start));
                }
            }
        }
    }

    /// The seconds of one process, which writes no files: these take longer, and longer by more, than much that is timed.
    async fn once(&self, (version, built): (usize, &Built), seed: u64, calls: u64) -> Result<f64, Failure> {
        let arguments = vec![seed.to_string(), String::new(), calls.to_string()];
        well(version, &self.run(built, arguments).await?)
    }

    /// What a process leaves after its calls.
    async fn outputs(
        &self,
        (version, built): (usize, &Built),
        seed: u64,
        calls: u64,
    ) -> Result<Files, Failure> {
        let file = |(path, source)| MeasureError::from(VerifyError::File { path, source });
        let folder = built.new_folder("outputs").map_err(file)?;
        let arguments = vec![seed.to_string(), folder.display().to_string(), calls.to_string()];
        well(version, &self.run(built, arguments).await?)?;
        let outputs = read_outputs(&folder).map_err(MeasureError::from)?;
        let _ = std::fs::remove_dir_all(&folder);
        Ok(outputs)
    }

    async fn whole(&self, (version, built): (usize, &Built)) -> Result<f64, Failure> {
        let ran = self.run(built, self.measurement.arguments.clone()).await?;
        well(version, &ran)
    }

    async fn run(&self, built: &Built, arguments: Vec<String>) -> Result<Ran, MeasureError> {
        let running = Running {
            device: self.measurement.builder.device.clone(),
            arguments,
            time_limit: self.measurement.time_limit.max(Duration::from_secs(1)),
            simulation: Options { executable: self.measurement.executable.clone(), ..Options::default() },
        };
        Ok(run_held(built, &running, self.cancel).await?)
    }

    /// Whether a version's outputs are those of the first.
    fn same(&self, expected: &Files, again: &Files, got: &Files) -> Result<(), Failure> {
        for ((name, element), bytes) in expected {
            let key = (name.clone(), *element);
            let interpretation = Interpretation { element: *element, why: Why::Declared };
            let again = again.get(&key).map(Vec::as_slice);
            let got = got.get(&key).map(Vec::as_slice).unwrap_or_default();
            let result = compare_bytes(interpretation, bytes, again, got, self.measurement.tolerance);
            if !result.is_same() {
                let outside = result.array.outside;
                return Err(Failure::Differs(format!(
                    "after the timed calls, {outside} of {} elements of `{name}` differ",
                    result.array.count
                )));
            }
        }
        Ok(())
    }
}

/// The seconds of a process that ended well.
fn well(version: usize, ran: &Ran) -> Result<f64, Failure> {
    match &ran.end {
        End::Status(0) => Ok(ran.wall.as_secs_f64()),
        end => {
            let said = ran.stderr.lines().last().map(|line| format!(" ({line})")).unwrap_or_default();
            Err(Failure::Fails(version, format!("{}{said}", ended(end))))
        }
    }
}

/// The order of the processes in a round: each version twice, nested in each other, and the other way round in every second round.
fn nested(versions: usize, round: usize) -> Vec<(usize, usize)> {
    let mut order: Vec<usize> = (0..versions).collect();
    if round % 2 == 1 {
        order.reverse();
    }
    let back = order.iter().rev().map(|version| (*version, 1)).collect::<Vec<_>>();
    order.iter().map(|version| (*version, 0)).chain(back).collect()
}

/// The interval of one version's times, in microseconds.
pub(super) fn microseconds(rounds: &Rounds, version: usize) -> Option<Interval> {
    let times: Vec<f64> = rounds.iter().map(|round| round[version] * 1e6).collect();
    Interval::of(&times).filter(|interval| interval.median > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_nested_and_take_turns() {
        assert_eq!(nested(2, 0), [(0, 0), (1, 0), (1, 1), (0, 1)]);
        assert_eq!(nested(2, 1), [(1, 0), (0, 0), (0, 1), (1, 1)]);
        assert_eq!(nested(1, 5), [(0, 0), (0, 1)]);
    }
}
