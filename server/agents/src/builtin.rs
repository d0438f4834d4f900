//! The engine without a model: what can be rewritten becomes tasks, and each task one candidate.
//!
//! It needs no network and gives the same plan for the same text. Whether a rewrite is worth its while is for the Verifier to say; whether
//! it is allowed, the rule that proposes it has shown.

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};

use stitch_analysis::rewrites::{self, Gain, Proposal as Rewriting, Rewrite};
use stitch_analysis::{Analysis, Language, Workspace};
use stitch_findings::Code;
use stitch_profiles::brief::{self as profile, Limit};
use stitch_profiles::units;
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

/// One task a rule and function: its places are alike, and judged together. What the profile expects most of goes first; of what it says nothing, the
/// kernel that costs most.
fn plan(brief: &Brief) -> Plan {
    let proposals = proposals(brief);
    let expected = Expected::of(brief);
    let mut tasks: Vec<(Rank, Task)> = Vec::new();
    for (function, proposal) in &proposals {
        let Rewriting::Rewrite(rewrite) = proposal else { continue };
        let Some(order) = order(rewrite, &brief.device) else { continue };
        let mut task = task(function, rewrite);
        let is_known = |(_, known): &(Rank, Task)| known.rewrite == task.rewrite && known.scope == task.scope;
        if tasks.iter().any(is_known) {
            continue;
        }
        let rank = expected.rank(function, &rewrite.expected, order);
        if rank.gain >= WORTH {
            let gain = units::percent(rank.gain);
            task.expected_gain =
                format!("{}; at most about {gain} of all, by the profile", task.expected_gain);
        }
        tasks.push((rank, task));
    }
    tasks.sort_by(|(a, _), (b, _)| a.before(b));
    let tasks: Vec<Task> = tasks.into_iter().map(|(_, task)| task).collect();
    Plan { summary: summary(&tasks, &proposals, &brief.current), tasks }
}

/// A gain of less is not told.
const WORTH: f64 = 0.005;

/// Where a task stands among the others.
#[derive(Clone, Copy, Debug)]
struct Rank {
    /// What the profile expects of it, from 0 to 1 of the cost of all kernels; 0 where it says nothing.
    gain: f64,
    /// The part of its kernel in that cost.
    share: f64,
    /// By what it makes fewer.
    order: usize,
}

impl Rank {
    fn before(&self, other: &Self) -> Ordering {
        let by_gain = other.gain.total_cmp(&self.gain);
        by_gain.then(other.share.total_cmp(&self.share)).then(self.order.cmp(&other.order))
    }
}

/// What a profile of the reference says about kernels.
#[derive(Debug, Default)]
struct Expected {
    limits: Vec<Limit>,
    shares: BTreeMap<String, f64>,
}

impl Expected {
    /// Nothing where the code is no longer what was profiled: what limited it may be gone.
    fn of(brief: &Brief) -> Self {
        match brief.recorded.as_ref().filter(|_| brief.reference == brief.current) {
            Some(profile) => Self { limits: profile::limits(profile), shares: profile::shares(profile) },
            None => Self::default(),
        }
    }

    fn rank(&self, function: &str, gain: &Gain, order: usize) -> Rank {
        let base = function.rsplit("::").next().unwrap_or(function);
        let codes = limits_of(gain);
        let is_it = |limit: &&Limit| limit.kernel == base && codes.contains(&limit.code);
        let gain = self.limits.iter().filter(is_it).map(|limit| limit.gain).fold(0.0, f64::max);
        Rank { gain, share: self.shares.get(base).copied().unwrap_or(0.0), order }
    }
}

/// What a profile calls that which a rewrite makes less of.
fn limits_of(gain: &Gain) -> &'static [Code] {
    match gain {
        Gain::Sectors { .. } => {
            &[Code::NCU_UNCOALESCED_ACCESS, Code::NCU_MISALIGNED_ACCESS, Code::NCU_LOCAL_MEMORY]
        }
        Gain::Wavefronts { .. } => &[Code::NCU_BANK_CONFLICT],
        Gain::Atomics { .. } => &[Code::NCU_ATOMIC_CONTENTION],
        Gain::Instructions { .. } => &[Code::NCU_DIVERGENCE, Code::NCU_DOUBLE_PRECISION],
        Gain::Registers { .. } => &[Code::NCU_SPILL, Code::NCU_LOW_OCCUPANCY],
        Gain::Safety { .. } => &[],
    }
}

/// Rewrites that make instructions fewer or cheaper, those first that usually do most: a general power takes some hundred instructions, a double one of a
/// consumer GPU's 64 cycles, and a load that need not wait is seldom seen.
const BY_INSTRUCTIONS: [Code; 7] = [
    Code::POWERS_TO_PRODUCTS,
    Code::FLOAT_LITERALS,
    Code::SEQUENTIAL_ADDRESSING,
    Code::WARP_SHUFFLE_TAIL,
    Code::VECTOR_ACCESS,
    Code::GRID_STRIDE_LOOP,
    Code::CONST_RESTRICT,
];

/// What moves most goes first. `None` for what makes nothing faster, or nothing that the device shows: a simulated one has no
/// registers.
fn order(rewrite: &Rewrite, device: &str) -> Option<usize> {
    const INSTRUCTIONS: usize = 2;
    let last = INSTRUCTIONS + BY_INSTRUCTIONS.len();
    match rewrite.expected {
        Gain::Sectors { .. } => Some(0),
        Gain::Wavefronts { .. } | Gain::Atomics { .. } => Some(1),
        Gain::Instructions { .. } => {
            let place = BY_INSTRUCTIONS.iter().position(|code| *code == rewrite.rule.code);
            Some(place.map_or(last, |place| INSTRUCTIONS + place))
        }
        Gain::Registers { .. } if device.starts_with("sim:") => None,
        Gain::Registers { .. } => Some(last + 1),
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
    use std::sync::Arc;

    use stitch_profiles::kernel::{Estimate, KernelLaunch, KernelName, Work};
    use stitch_profiles::profile::{Profile, Way};

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
    fn what_the_profile_expects_most_of_goes_first() {
        let text = "__global__ void small(float* y, const float* x) { y[threadIdx.x] = powf(x[threadIdx.x], 2.0f); }\n\
                    __global__ void large(float* y, const float* x) { y[threadIdx.x] = powf(x[threadIdx.x], 2.0f); }\n";
        let launch = |name: &str, cycles| KernelLaunch {
            kernel: KernelName { base: name.into(), ..KernelName::default() },
            estimate: Some(Estimate::of([(Work::Instructions, cycles)])),
            ..KernelLaunch::default()
        };
        let mut seen = Profile::new("k.cu", Way::default());
        seen.launches = vec![launch("small", 10.0), launch("large", 90.0)];
        let of = |recorded| {
            let current = text.to_owned();
            let tasks =
                plan(&Brief { reference: current.clone(), current, recorded, ..Brief::default() }).tasks;
            let powers = |task: &&Task| task.rewrite.as_deref() == Some("rewrite/powers-to-products");
            tasks.iter().filter(powers).map(|task| task.scope.join("")).collect::<Vec<_>>()
        };
        assert_eq!(of(None), ["small", "large"]);
        assert_eq!(of(Some(Arc::new(seen))), ["large", "small"]);
        // A known gain goes before a large kernel, and that before what is usual for its kind.
        let rank = |gain, share, order| Rank { gain, share, order };
        let mut ranks = [rank(0.0, 0.1, 0), rank(0.0, 0.9, 3), rank(0.2, 0.1, 2)];
        ranks.sort_by(Rank::before);
        assert_eq!(ranks.map(|rank| rank.order), [2, 3, 0]);
    }

    #[test]
    fn of_one_kernel_what_usually_does_most_goes_first() {
        let current = include_str!("../../../tests/examples/chain.cu").to_owned();
        let tasks = plan(&Brief { current, device: "cuda:0".into(), ..Brief::default() }).tasks;
        let of_energy = tasks.iter().filter(|task| task.scope == ["energy"]);
        let found: Vec<&str> = of_energy.filter_map(|task| task.rewrite.as_deref()).collect();
        assert_eq!(
            found,
            [
                "rewrite/powers-to-products",
                "rewrite/float-literals",
                "rewrite/vector-access",
                "rewrite/const-restrict",
                "rewrite/launch-bounds"
            ]
        );
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
