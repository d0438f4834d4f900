//! What a run does next, from what happened so far alone.
//!
//! Pure, so that a run that was killed goes on as if it had not been, and so that every way through the loop can be tested as data.

use crate::run::{self, Attempt, Budget, Entry, Outcome, Why};

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Measure the reference.
    Baseline,
    /// Write the first plan.
    Plan,
    /// Write another plan, for this reason.
    Replan(String),
    /// Attempt this task of this plan, both from 0.
    Code {
        /// The plan.
        plan: usize,
        /// The task.
        task: usize,
    },
    /// Put the best attempt beside the original, and judge that.
    Compose {
        /// Its number.
        of: u32,
    },
    /// Come to an end.
    Finish(Why),
}

/// Tasks in a row that led to nothing, after which the plan is thought over.
const FRUITLESS_TASKS: usize = 3;

/// What to do next. `composes` says whether the best attempt is put beside the original before it is offered.
pub fn decide(history: &[Entry], budget: &Budget, composes: bool) -> Step {
    match (next(history, budget), run::best(history)) {
        (Step::Finish(_), Some(best)) if composes && run::composed(history).is_none() => {
            Step::Compose { of: best.number }
        }
        (step, _) => step,
    }
}

/// What to do next, without thinking of how it is offered.
fn next(history: &[Entry], budget: &Budget) -> Step {
    let is_work = |entry: &&Entry| match entry {
        Entry::Conclusion(_) => false,
        Entry::Attempt(attempt) => attempt.composed_of.is_none(),
        Entry::Baseline { .. } | Entry::Plan { .. } => true,
    };
    let past: Vec<&Entry> = history.iter().filter(is_work).collect();
    if past.is_empty() {
        return Step::Baseline;
    }
    if budget.is_only_plan() {
        return only_plan(&past, budget);
    }
    if let Some(why) = spent(&past, budget) {
        return Step::Finish(why);
    }
    let plans: Vec<usize> = past
        .iter()
        .filter_map(|entry| match entry {
            Entry::Plan { plan, .. } => Some(plan.tasks.len()),
            _ => None,
        })
        .collect();
    let Some((plan, tasks)) = plans.iter().copied().enumerate().next_back() else { return Step::Plan };
    let attempts: Vec<&Attempt> = past
        .iter()
        .filter_map(|entry| match entry {
            Entry::Attempt(attempt) if attempt.plan == plan => Some(&**attempt),
            _ => None,
        })
        .collect();
    if tasks == 0 {
        return Step::Finish(if plan == 0 { Why::NothingToDo } else { Why::PlanDone });
    }
    let may_replan = plan < usize::try_from(budget.replans).unwrap_or(usize::MAX);
    let task = match attempts.last() {
        None => 0,
        Some(last) if is_over(&attempts, last.task, budget) => last.task + 1,
        Some(last) => last.task,
    };
    let fruitless = fruitless_tasks(&attempts, task);
    if task >= tasks {
        // A new plan is worth its price after something was gained, or where something failed that may be done otherwise.
        let gained = attempts.iter().any(|attempt| attempt.outcome == Outcome::Kept);
        let failed = attempts.iter().any(|attempt| may_be_done_otherwise(attempt.outcome));
        return match (may_replan, gained, failed) {
            (true, true, _) => Step::Replan("the plan is done, and more may be gained now".to_owned()),
            (true, false, true) => Step::Replan("the plan is done, and nothing of it helped".to_owned()),
            _ => Step::Finish(Why::PlanDone),
        };
    }
    if fruitless >= FRUITLESS_TASKS && may_replan && budget.attempts_of_task > 1 {
        return Step::Replan(format!("the last {fruitless} tasks led to nothing"));
    }
    Step::Code { plan, task }
}

/// What to do next where a plan is all that is asked for, after the baseline.
fn only_plan(past: &[&Entry], budget: &Budget) -> Step {
    let tasks = past.iter().find_map(|entry| match entry {
        Entry::Plan { plan, .. } => Some(plan.tasks.len()),
        _ => None,
    });
    match (tasks, out_of(past, budget)) {
        (Some(0), _) => Step::Finish(Why::NothingToDo),
        (Some(_), _) => Step::Finish(Why::Planned),
        (None, Some(why)) => Step::Finish(why),
        (None, None) => Step::Plan,
    }
}

fn spent(past: &[&Entry], budget: &Budget) -> Option<Why> {
    let attempts = past.iter().filter(|entry| matches!(entry, Entry::Attempt(_))).count();
    if attempts >= usize::try_from(budget.attempts).unwrap_or(usize::MAX) {
        return Some(Why::Attempts);
    }
    out_of(past, budget)
}

/// Whether time or tokens are spent.
fn out_of(past: &[&Entry], budget: &Budget) -> Option<Why> {
    let seconds: f64 = past.iter().map(|entry| entry.seconds()).sum();
    let tokens: u64 = past.iter().map(|entry| entry.tokens()).sum();
    if seconds >= std::time::Duration::from_secs(budget.seconds).as_secs_f64() {
        return Some(Why::Time);
    }
    budget.tokens.filter(|budget| tokens >= *budget).map(|_| Why::Tokens)
}

/// Whether a task is over: done, declined, or attempted as often as is allowed.
fn is_over(attempts: &[&Attempt], task: usize, budget: &Budget) -> bool {
    let of_task: Vec<_> = attempts.iter().filter(|attempt| attempt.task == task).collect();
    let is_done =
        of_task.last().is_some_and(|attempt| matches!(attempt.outcome, Outcome::Kept | Outcome::Declined));
    is_done || of_task.len() >= usize::try_from(budget.attempts_of_task).unwrap_or(usize::MAX)
}

/// How many tasks right before `task` kept nothing.
fn fruitless_tasks(attempts: &[&Attempt], task: usize) -> usize {
    let kept =
        |task: usize| attempts.iter().any(|attempt| attempt.task == task && attempt.outcome == Outcome::Kept);
    (0..task).rev().take_while(|task| !kept(*task)).count()
}

fn may_be_done_otherwise(outcome: Outcome) -> bool {
    !matches!(outcome, Outcome::Kept | Outcome::Declined)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Tokens;
    use crate::{Plan, Task};

    const BUDGET: Budget =
        Budget { attempts: 9, seconds: 100, tokens: Some(1_000), attempts_of_task: 2, replans: 1 };

    /// A history in short: `b` the baseline, `3` a plan of three tasks, `K N F R D U` what became of attempts, each
    /// at the task that is next.
    fn history(text: &str) -> Vec<Entry> {
        let (mut entries, mut plans, mut number) = (Vec::new(), 0, 0);
        for letter in text.chars() {
            let entry = match letter {
                'b' => Entry::Baseline {
                    cost: Default::default(),
                    profile: String::new(),
                    recorded: String::new(),
                    seconds: 1.0,
                },
                '0'..='9' => {
                    plans += 1;
                    let count = letter.to_digit(10).unwrap() as usize;
                    let plan = Plan { summary: String::new(), tasks: vec![Task::default(); count] };
                    let tokens = Tokens { prompt: 50, completion: 50, estimated: false };
                    Entry::Plan { plan, reason: None, seconds: 1.0, tokens }
                }
                _ => {
                    number += 1;
                    let Step::Code { plan, task } = decide(&entries, &BUDGET, false) else {
                        panic!("{text}: no attempt is due at {letter}")
                    };
                    assert_eq!(plan + 1, plans);
                    let outcome = match letter {
                        'K' => Outcome::Kept,
                        'N' => Outcome::NotBetter,
                        'F' => Outcome::BuildFailed,
                        'R' => Outcome::Refused,
                        'D' => Outcome::Declined,
                        _ => Outcome::Unusable,
                    };
                    Entry::Attempt(Box::new(Attempt {
                        number,
                        plan,
                        task,
                        composed_of: None,
                        title: String::new(),
                        outcome,
                        said: String::new(),
                        explanation: String::new(),
                        gain: None,
                        interval: None,
                        cost: None,
                        profile: String::new(),
                        verdict: None,
                        findings: Vec::new(),
                        seconds: 5.0,
                        tokens: Tokens { prompt: 10, completion: 10, estimated: true },
                    }))
                }
            };
            entries.push(entry);
        }
        entries
    }

    #[test]
    fn the_way_through_the_loop() {
        let code = |plan, task| Step::Code { plan, task };
        for (past, expected) in [
            ("", Step::Baseline),
            ("b", Step::Plan),
            ("b0", Step::Finish(Why::NothingToDo)),
            ("b3", code(0, 0)),
            ("b3K", code(0, 1)),
            ("b3F", code(0, 0)),
            ("b3FF", code(0, 1)),
            ("b3D", code(0, 1)),
            ("b3KKK", Step::Replan("the plan is done, and more may be gained now".into())),
            ("b2NNFF", Step::Replan("the plan is done, and nothing of it helped".into())),
            ("b1D", Step::Finish(Why::PlanDone)),
            ("b5DDD", Step::Replan("the last 3 tasks led to nothing".into())),
            ("b1K1", code(1, 0)),
            ("b1K1K", Step::Finish(Why::PlanDone)),
            ("b1K0", Step::Finish(Why::PlanDone)),
            ("b9KKKKKKKKK", Step::Finish(Why::Attempts)),
        ] {
            assert_eq!(decide(&history(past), &BUDGET, false), expected, "{past}");
        }
    }

    #[test]
    fn a_budget_ends_a_run_and_a_larger_one_takes_it_up_again() {
        let mut past = history("b3KF");
        assert_eq!(decide(&past, &Budget { seconds: 12, ..BUDGET }, false), Step::Finish(Why::Time));
        assert_eq!(decide(&past, &Budget { tokens: Some(140), ..BUDGET }, false), Step::Finish(Why::Tokens));
        let budget = Budget { attempts: 2, ..BUDGET };
        assert_eq!(decide(&past, &budget, false), Step::Finish(Why::Attempts));
        past.push(Entry::Conclusion(crate::run::Conclusion {
            why: Why::Attempts,
            best: None,
            gain: None,
            said: String::new(),
            tried: Vec::new(),
        }));
        assert_eq!(decide(&past, &budget, false), Step::Finish(Why::Attempts));
        assert_eq!(decide(&past, &BUDGET, false), Step::Code { plan: 0, task: 1 });
    }

    #[test]
    fn a_plan_alone_is_measured_written_and_taken_up_by_a_larger_budget() {
        let only_plan = BUDGET.only_plan();
        for (past, expected) in [
            ("", Step::Baseline),
            ("b", Step::Plan),
            ("b3", Step::Finish(Why::Planned)),
            ("b0", Step::Finish(Why::NothingToDo)),
        ] {
            assert_eq!(decide(&history(past), &only_plan, true), expected, "{past}");
        }
        let late = Budget { seconds: 1, ..only_plan };
        assert_eq!(decide(&history("b"), &late, false), Step::Finish(Why::Time));
        assert_eq!(decide(&history("b3"), &BUDGET, false), Step::Code { plan: 0, task: 0 });
    }

    #[test]
    fn the_best_is_put_beside_the_original_once_and_again_where_it_is_beaten() {
        let composed = |mut history: Vec<Entry>, of: u32| {
            let Some(Entry::Attempt(last)) = history.last().cloned() else { panic!("no attempt") };
            let number = last.number + 1;
            history.push(Entry::Attempt(Box::new(Attempt { number, composed_of: Some(of), ..*last })));
            history
        };
        let past = history("b1K1D");
        assert_eq!(decide(&past, &BUDGET, true), Step::Compose { of: 1 });
        let past = composed(past, 1);
        assert_eq!(decide(&past, &BUDGET, true), Step::Finish(Why::PlanDone));
        assert_eq!(run::offered(&past).map(|attempt| attempt.number), None, "it was declined");
        assert_eq!(decide(&history("b1D"), &BUDGET, true), Step::Finish(Why::PlanDone));
        // With a larger budget the run goes on from the best itself, and what beats it is put beside the original in its turn.
        let budget = Budget { attempts: 1, ..BUDGET };
        let past = composed(history("b3K"), 1);
        assert_eq!(decide(&past, &budget, true), Step::Finish(Why::Attempts));
        assert_eq!(run::offered(&past).map(|attempt| attempt.number), Some(2));
        assert_eq!(run::best(&past).map(|attempt| attempt.number), Some(1));
        assert_eq!(decide(&past, &BUDGET, true), Step::Code { plan: 0, task: 1 });
    }
}
