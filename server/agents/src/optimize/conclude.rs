//! How a run ended, in words.

use stitch_verifier::measure::{Cost, KernelCost};

use super::evaluate::compared;
use super::reference_cost;
use crate::run::{self, Conclusion, Entry, Outcome, Why};

/// The end of a run for `why`.
pub fn conclude(history: &[Entry], why: Why) -> Conclusion {
    let reference = reference_cost(history);
    let best = run::best(history);
    let end = match why {
        Why::PlanDone => "All tasks were tried.",
        Why::NothingToDo => "There was nothing to try.",
        Why::Attempts => "The budget of attempts is spent.",
        Why::Time => "The budget of time is spent.",
        Why::Tokens => "The budget of tokens is spent.",
    };
    let said = match best.and_then(|best| best.cost.as_ref().map(|cost| (best, cost))) {
        Some((best, cost)) => {
            format!("Attempt {} takes {}. {end}", best.number, compared(&reference, cost))
        }
        None => format!("Nothing better was found. {end} {}", state(&reference, history)),
    };
    Conclusion {
        why,
        best: best.map(|best| best.number),
        gain: best.and_then(|best| best.gain),
        said,
        tried: run::tried(history),
    }
}

/// How good the code already is, and what its plan had to say.
fn state(cost: &Cost, history: &[Entry]) -> String {
    let mut parts: Vec<String> = cost.kernels.iter().take(1).map(of_kernel).collect();
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
