//! The engine without a model: what can be rewritten becomes tasks, and each task one candidate.
//!
//! It needs no network and gives the same plan for the same text. Whether a rewrite is worth its while is for the Verifier to say; whether
//! it is allowed, the rule that proposes it has shown.

use std::collections::HashSet;

use stitch_analysis::rewrites::{self, Gain, Proposal as Rewriting, Rewrite};
use stitch_analysis::{Analysis, Language, Workspace};
use tokio_util::sync::CancellationToken;

use crate::engine::{Brief, Engine, EngineError, Feedback, Proposal, Watch};
use crate::{Plan, Task};

/// Reasons that are given where nothing can be rewritten.
const MOST_REASONS: usize = 6;

/// The engine without a model.
#[derive(Clone, Copy, Debug, Default)]
pub struct Builtin;

impl Engine for Builtin {
    async fn plan(
        &mut self,
        brief: &Brief,
        _watch: &dyn Watch,
        _cancel: &CancellationToken,
    ) -> Result<Plan, EngineError> {
        Ok(plan(brief))
    }

    async fn replan(
        &mut self,
        brief: &Brief,
        _plan: &Plan,
        _reason: &str,
        _watch: &dyn Watch,
        _cancel: &CancellationToken,
    ) -> Result<Plan, EngineError> {
        let tried: HashSet<&str> = brief.tried.iter().map(|tried| tried.task.as_str()).collect();
        let mut plan = plan(brief);
        let before = plan.tasks.len();
        plan.tasks.retain(|task| !tried.contains(task.title.as_str()));
        if plan.tasks.is_empty() && before > 0 {
            plan.summary = "Every rewrite that applies was tried.".to_owned();
        }
        Ok(plan)
    }

    async fn code(
        &mut self,
        brief: &Brief,
        task: &Task,
        _feedback: Option<&Feedback>,
        _watch: &dyn Watch,
        _cancel: &CancellationToken,
    ) -> Result<Proposal, EngineError> {
        Ok(code(brief, task))
    }
}

/// What can be rewritten in a text, with the function that each place is in.
fn proposals(brief: &Brief) -> Vec<(String, Rewriting)> {
    let analysis = Analysis::of(Language::Cuda, &brief.current);
    let of = |proposal: &Rewriting| {
        let function = analysis.outline().function_at(proposal.place().start);
        function.map(|function| function.qualified_name.clone()).unwrap_or_default()
    };
    rewrites::propose(&analysis, &Workspace::default(), None)
        .into_iter()
        .map(|proposal| (of(&proposal), proposal))
        .filter(|(function, _)| brief.scope.is_empty() || brief.scope.contains(function))
        .collect()
}

/// One task a rule and function: its places are alike, and judged together.
fn plan(brief: &Brief) -> Plan {
    let proposals = proposals(brief);
    let mut tasks: Vec<(u8, Task)> = Vec::new();
    for (function, proposal) in &proposals {
        let Rewriting::Rewrite(rewrite) = proposal else { continue };
        let Some(order) = order(&rewrite.expected, &brief.device) else { continue };
        let task = task(function, rewrite);
        let is_known = |(_, known): &(u8, Task)| known.rewrite == task.rewrite && known.scope == task.scope;
        if !tasks.iter().any(is_known) {
            tasks.push((order, task));
        }
    }
    tasks.sort_by_key(|(order, _)| *order);
    let tasks: Vec<Task> = tasks.into_iter().map(|(_, task)| task).collect();
    Plan { summary: summary(&tasks, &proposals, &brief.current), tasks }
}

/// What moves most goes first. `None` for what makes nothing faster, or nothing that the device shows: a simulated one has no
/// registers.
fn order(gain: &Gain, device: &str) -> Option<u8> {
    match gain {
        Gain::Sectors { .. } => Some(0),
        Gain::Wavefronts { .. } => Some(1),
        Gain::Atomics { .. } => Some(1),
        Gain::Instructions { .. } => Some(2),
        Gain::Registers { .. } if device.starts_with("sim:") => None,
        Gain::Registers { .. } => Some(3),
        Gain::Safety { .. } => None,
    }
}

fn task(function: &str, rewrite: &Rewrite) -> Task {
    Task {
        title: if function.is_empty() {
            rewrite.title.clone()
        } else {
            format!("{} in {function}", rewrite.title)
        },
        description: rewrite.proven.join(" "),
        scope: vec![function.to_owned()],
        expected_gain: rewrite.expected.in_words(),
        test: if rewrite.changes_rounding {
            "The same results within the tolerance: the order of additions or their rounding changes."
                .to_owned()
        } else {
            "The same results, bit by bit.".to_owned()
        },
        rewrite: Some(rewrite.rule.code.as_str().to_owned()),
    }
}

fn summary(tasks: &[Task], proposals: &[(String, Rewriting)], text: &str) -> String {
    if !tasks.is_empty() {
        let places = if tasks.len() == 1 { "One rewrite" } else { "Several rewrites" };
        return format!(
            "{places} can be shown to keep the result; each is kept only if it is right and costs less."
        );
    }
    let refusals = proposals.iter().filter_map(|(_, proposal)| match proposal {
        Rewriting::Refused(refusal) => {
            let line = text[..refusal.place.start].matches('\n').count() + 1;
            Some(format!("{} at line {line}: {}", refusal.rule.title, refusal.reason.trim_end_matches('.')))
        }
        Rewriting::Rewrite(_) => None,
    });
    let refusals: Vec<String> = refusals.take(MOST_REASONS).collect();
    if refusals.is_empty() {
        "None of the builtin rewrites applies to this code.".to_owned()
    } else {
        format!("None of the builtin rewrites can be shown to keep the result. {}.", refusals.join(". "))
    }
}

/// A fact as a sentence.
fn sentence(fact: &str) -> String {
    let mut characters = fact.trim_end_matches('.').chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", characters.as_str())
}

/// All places of a task's rule in its function, rewritten.
fn code(brief: &Brief, task: &Task) -> Proposal {
    let mut edits = Vec::new();
    let mut said = Vec::new();
    let mut reason = "the code that it was for has changed, and the rule finds nothing there now".to_owned();
    for (function, proposal) in proposals(brief) {
        let is_of_task =
            task.rewrite.as_deref() == Some(proposal.rule().code.as_str()) && task.scope.contains(&function);
        match proposal {
            Rewriting::Rewrite(rewrite) if is_of_task => {
                let overlaps = rewrite.edits.iter().any(|edit| {
                    edits.iter().any(|other: &rewrites::Edit| {
                        edit.span.start < other.span.end.max(other.span.start + 1)
                            && other.span.start < edit.span.end.max(edit.span.start + 1)
                    })
                });
                if overlaps {
                    continue;
                }
                said.push(sentence(&rewrite.title));
                said.extend(rewrite.proven.iter().chain(&rewrite.assumed).map(|fact| sentence(fact)));
                edits.extend(rewrite.edits);
            }
            Rewriting::Refused(refusal) if is_of_task => reason = refusal.reason,
            _ => {}
        }
    }
    if edits.is_empty() {
        return Proposal::Declined { reason };
    }
    edits.sort_by_key(|edit| edit.span);
    said.dedup();
    match rewrites::apply(&brief.current, &edits) {
        Some(text) => Proposal::Candidate { text, explanation: said.join(" ") },
        None => Proposal::Declined { reason: "its edits do not fit the text".to_owned() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "__global__ void squares(float* y, const float* x, int n) {\n\
        \x20 int i = blockIdx.x * blockDim.x + threadIdx.x;\n\
        \x20 if (i < n) y[i] = powf(x[i], 2.0f);\n}\n\
        __global__ void copy(float* y, const float* x) { y[threadIdx.x] = x[threadIdx.x]; }\n";

    fn brief(scope: &[&str]) -> Brief {
        Brief {
            current: TEXT.to_owned(),
            scope: scope.iter().map(|name| (*name).to_owned()).collect(),
            ..Brief::default()
        }
    }

    #[test]
    fn what_can_be_rewritten_becomes_a_task_and_the_task_a_candidate() {
        let plan = plan(&brief(&["squares"]));
        let task = plan
            .tasks
            .iter()
            .find(|task| task.rewrite.as_deref() == Some("rewrite/powers-to-products"))
            .unwrap();
        let Proposal::Candidate { text, explanation } = code(&brief(&[]), task) else { panic!() };
        assert!(!text.contains("powf") && text.contains("copy"), "{text}");
        assert!(!explanation.is_empty());
        let after = Brief { current: text, ..brief(&[]) };
        assert!(matches!(code(&after, task), Proposal::Declined { .. }));
    }

    #[test]
    fn an_empty_plan_says_why() {
        let text = "__global__ void copy(int* y) { y[threadIdx.x] = 1; }".to_owned();
        let plan = plan(&Brief { current: text, ..Brief::default() });
        assert!(plan.tasks.iter().all(|task| task.rewrite.is_some()));
        if plan.tasks.is_empty() {
            assert!(plan.summary.starts_with("None of the builtin rewrites"), "{}", plan.summary);
        }
    }
}
