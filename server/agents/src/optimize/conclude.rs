//! How a run ended, in words.

use stitch_verifier::measure::{Cost, KernelCost};

use super::evaluate::compared;
use super::reference_cost;
use crate::run::{self, Attempt, Conclusion, Entry, Outcome, Why};

/// From this share of the bandwidth on, memory is what bounds a kernel.
const MOSTLY: f64 = 0.6;

/// The end of a run for `why`.
pub fn conclude(history: &[Entry], why: Why) -> Conclusion {
    let reference = reference_cost(history);
    let best = run::offered(history);
    let end = match why {
        Why::PlanDone => "All tasks were tried.",
        Why::NothingToDo => "There was nothing to try.",
        Why::Planned => "A plan was asked for, and no more.",
        Why::Attempts => "The budget of attempts is spent.",
        Why::Time => "The budget of time is spent.",
        Why::Tokens => "The budget of tokens is spent.",
    };
    let said = match best.and_then(|best| best.cost.as_ref().map(|cost| (best, cost))) {
        Some((best, cost)) => {
            format!("Attempt {} {}. {end}", best.number, better(best, &reference, cost))
        }
        None if why == Why::Planned => planned(history),
        None => match (run::best(history), run::composed(history)) {
            (Some(best), Some(composed)) => format!(
                "Attempt {} was {}, but can't be offered: put beside the original it was {}. {end}",
                best.number, best.said, composed.said
            ),
            _ => format!("Nothing better was found. {end} {}", state(&reference, history)),
        },
    };
    Conclusion {
        why,
        best: best.map(|best| best.number),
        gain: best.and_then(|best| best.gain),
        said,
        tried: run::tried(history),
    }
}

/// What a plan holds, of which nothing was attempted.
fn planned(history: &[Entry]) -> String {
    let titles: Vec<String> = super::plans(history)
        .flat_map(|plan| &plan.tasks)
        .enumerate()
        .map(|(index, task)| format!("{}. {}", index + 1, task.title))
        .collect();
    let tasks = if titles.len() == 1 { "1 task" } else { &format!("{} tasks", titles.len()) };
    format!("The plan has {tasks}, and nothing was attempted: {}.", titles.join("; "))
}

/// What the best attempt takes, beside the reference.
fn better(best: &Attempt, reference: &Cost, cost: &Cost) -> String {
    match (&reference.time, &cost.time) {
        (Some(one), Some(two)) if one.of == two.of => format!("is {}", compared(reference, cost)),
        (Some(_), _) | (_, Some(_)) => {
            let times = best.gain.unwrap_or(1.0);
            format!("is {times:.2} times faster, measured step by step on {}", cost.device)
        }
        (None, None) => format!("takes {}", compared(reference, cost)),
    }
}

/// How good the code already is, and what its plan had to say.
fn state(cost: &Cost, history: &[Entry]) -> String {
    let mut parts: Vec<String> = cost.kernels.iter().take(1).map(of_kernel).collect();
    parts.extend(
        cost.time
            .iter()
            .flat_map(|time| time.notes.iter().skip(usize::from(!cost.kernels.is_empty())).cloned()),
    );
    let empty = history.iter().rev().find_map(|entry| match entry {
        Entry::Plan { plan, .. } if plan.tasks.is_empty() => Some(plan.summary.clone()),
        _ => None,
    });
    parts.extend(empty);
    let wrong = run::attempts(history)
        .filter(|attempt| matches!(attempt.outcome, Outcome::Wrong | Outcome::BuildFailed))
        .count();
    if wrong > 0 {
        parts.push(format!("{wrong} of the candidates were wrong or did not compile."));
    }
    parts.join(" ")
}

#[allow(clippy::cast_precision_loss)] // Counters stay far below 2^53.
fn of_kernel(kernel: &KernelCost) -> String {
    if let Some(time) = &kernel.microseconds {
        return of_measured(kernel, time.median);
    }
    let share = |ideal: u64, actual: u64| 100.0 * ideal as f64 / actual.max(1) as f64;
    let mut parts = Vec::new();
    if kernel.sectors > 0 {
        parts.push(format!(
            "{:.0}% of the sectors that it moves are needed",
            share(kernel.ideal_sectors, kernel.sectors)
        ));
    }
    if kernel.wavefronts > 0 {
        parts.push(format!(
            "{:.0}% of its shared wavefronts are",
            share(kernel.ideal_wavefronts, kernel.wavefronts)
        ));
    }
    if parts.is_empty() {
        parts.push("it moves no memory".to_owned());
    }
    format!("Of `{}`, the dearest kernel: {}.", kernel.name, parts.join(", and "))
}

/// How good a kernel is that was timed.
fn of_measured(kernel: &KernelCost, microseconds: f64) -> String {
    let begun = format!("`{}`, the dearest kernel, takes {microseconds:.2} µs", kernel.name);
    let Some(traffic) = &kernel.traffic else { return format!("{begun}.") };
    match traffic.share(microseconds) {
        Some(share) if share >= MOSTLY => format!(
            "{begun}: already at {:.0}% of the bandwidth ({}).",
            share * 100.0,
            traffic.words(microseconds)
        ),
        _ => format!("{begun}; it moves {}.", traffic.words(microseconds)),
    }
}

#[cfg(test)]
mod tests {
    use stitch_verifier::measure::Traffic;
    use stitch_verifier::measure::sample::Interval;

    use super::*;

    fn measured(microseconds: f64, arrays: u64) -> Cost {
        let time = Interval { median: microseconds, low: microseconds, high: microseconds, samples: 12 };
        let traffic = Traffic { bytes: arrays, arrays, peak: 4_800_000_000_000, l2: 60_000_000 };
        let kernel = KernelCost {
            name: "copy".into(),
            microseconds: Some(time),
            traffic: Some(traffic),
            ..KernelCost::default()
        };
        Cost::measured("cuda:0 (NVIDIA H200)".into(), vec![kernel], vec!["How.".into(), "Too short.".into()])
    }

    #[test]
    fn where_nothing_is_better_the_bandwidth_says_why() {
        for (microseconds, arrays, said) in [
            (90.6, 400_000_000, "already at 92% of the bandwidth (at least 400 MB, 4.42 TB/s, 92% of"),
            (
                400.0,
                400_000_000,
                "it moves at least 400 MB, 1.00 TB/s, 21% of the memory's 4.80 TB/s. Too short.",
            ),
            (4.0, 1_000_000, "from and to the L2 cache"),
        ] {
            let cost = measured(microseconds, arrays);
            let history =
                [Entry::Baseline { cost, profile: String::new(), recorded: String::new(), seconds: 1.0 }];
            let conclusion = conclude(&history, Why::NothingToDo);
            assert!(conclusion.said.contains(said), "{}", conclusion.said);
            assert!(!conclusion.said.contains("How."), "{}", conclusion.said);
        }
    }
}
