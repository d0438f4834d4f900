//! Takes wall-clock times on a GPU, by our own clock: of calls that harnesses make when they are told to, and of whole programs.

use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::MeasureError;
use super::sample::{Interval, are_enough, process_rounds};
use super::versions::{Left, Versions};
use crate::compare::{Interpretation, Why, compare_bytes};
use crate::program::{Built, End, Ran, Running, run_held};
use crate::verify::{Files, ended};

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
    /// How processes are run; a program with these arguments, a harness with its own.
    pub running: Running,
    /// How far a number may be off after timed calls, relative to it, where it was said.
    pub tolerance: Option<f64>,
    /// Seconds after which no further round begins, if there are enough for an interval.
    pub patience: f64,
    pub progress: &'a (dyn Fn(&str) + Send + Sync),
    pub cancel: &'a CancellationToken,
}

impl Stopwatch<'_> {
    /// Times calls of the kernels in harnesses, one for each version. The outputs of the second are compared with those of the first.
    pub async fn harnesses(&self, built: &[&Built]) -> Result<Timing, Failure> {
        let mut versions = Versions::new(self, built);
        let timed = async {
            versions.start().await?;
            let rounds = self.rounds(&mut versions, built.len()).await?;
            if built.len() == 2 {
                (self.progress)("comparing what the timed calls of both leave");
                self.compare(&mut versions).await?;
            }
            versions.quit().await?;
            Ok(Timing { rounds, is_side_by_side: versions.is_side_by_side() })
        };
        let timed = timed.await;
        versions.end().await;
        timed
    }

    /// Times so many versions in as many rounds as are enough. The processes of the last are left.
    async fn rounds(&self, versions: &mut Versions<'_>, count: usize) -> Result<Rounds, Failure> {
        let mut rounds = Rounds::new();
        let began = Instant::now();
        loop {
            (self.progress)(&format!("timing, round {}", rounds.len() + 1));
            rounds.push(versions.round(&in_turn(count, rounds.len())).await?);
            let time = began.elapsed().as_secs_f64() / self.patience;
            if are_enough(rounds.len(), time, width(&rounds)) {
                return Ok(rounds);
            }
            versions.quit().await?;
        }
    }

    /// Compares what the arrays of two versions hold after as many calls, of which their processes can't tell that no sample follows them.
    async fn compare(&self, versions: &mut Versions<'_>) -> Result<(), Failure> {
        let counts = versions.counts();
        let expected = versions.left(0, counts).await?;
        let again = versions.left(0, counts).await?;
        let got = versions.left(1, counts).await?;
        self.same(counts.few, &expected.after_few, Some(&again.after_few), &got.after_few)?;
        // Where each call changes what the one before left, rounding grows with the calls in ways that differ between right versions.
        let Left { after_many: Some(many), after_few } = &expected else { return Ok(()) };
        match self.same(counts.many, after_few, Some(&again.after_few), many) {
            Ok(()) => {
                let got = got.after_many.unwrap_or_default();
                self.same(counts.many, many, again.after_many.as_ref(), &got)
            }
            Err(_) => Ok(()),
        }
    }

    /// Times whole processes.
    pub async fn programs(&self, versions: &[&Built]) -> Result<Rounds, Failure> {
        let mut walls = Vec::new();
        for (version, built) in versions.iter().enumerate() {
            self.whole((version, built)).await?;
            walls.push(self.whole((version, built)).await?);
        }
        let planned = process_rounds(2.0 * walls.iter().sum::<f64>());
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

    async fn whole(&self, (version, built): (usize, &Built)) -> Result<f64, Failure> {
        let ran = run_held(built, &self.running, self.cancel).await.map_err(MeasureError::from)?;
        well(version, &ran)
    }

    /// Whether what a version's arrays hold after so many calls is what they should.
    fn same(&self, calls: u64, expected: &Files, again: Option<&Files>, got: &Files) -> Result<(), Failure> {
        for ((name, element), bytes) in expected {
            let key = (name.clone(), *element);
            let interpretation = Interpretation { element: *element, why: Why::Declared };
            let again = again.and_then(|again| again.get(&key)).map(Vec::as_slice);
            let got = got.get(&key).map(Vec::as_slice).unwrap_or_default();
            let result = compare_bytes(interpretation, bytes, again, got, self.tolerance);
            if !result.is_same() {
                let outside = result.array.outside;
                let calls = if calls == 1 { "a call".to_owned() } else { format!("{calls} calls") };
                return Err(Failure::Differs(format!(
                    "after {calls} in the process that is timed, {outside} of {} elements of `{name}` differ",
                    result.array.count
                )));
            }
        }
        Ok(())
    }
}

/// What timing harnesses gave.
#[derive(Debug)]
pub(super) struct Timing {
    pub rounds: Rounds,
    /// Whether the versions' processes lived at the same time.
    pub is_side_by_side: bool,
}

/// How wide the interval is that is asked for: of the ratio of two versions, or of the time of one.
fn width(rounds: &Rounds) -> f64 {
    let values: Vec<f64> =
        rounds.iter().map(|round| round.get(1).map_or(round[0], |after| round[0] / after)).collect();
    Interval::of(&values).map_or(f64::INFINITY, |interval| interval.width())
}

/// The seconds of a process that ended well.
pub(super) fn well(version: usize, ran: &Ran) -> Result<f64, Failure> {
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

/// The order of the versions in a round: the other way round in every second one.
fn in_turn(versions: usize, round: usize) -> Vec<usize> {
    let order = 0..versions;
    if round % 2 == 1 { order.rev().collect() } else { order.collect() }
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
        assert_eq!([in_turn(2, 0), in_turn(2, 1), in_turn(1, 1)], [vec![0, 1], vec![1, 0], vec![0]]);
    }
}
