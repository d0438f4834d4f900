//! Deterministic rewrites of CUDA code, each exact in what it requires: source in, text edits out.
//!
//! A rule looks at one file, finds what it could rewrite, and says of each place either the edits and what they rely on, or why
//! it leaves the place alone. It relies on nothing that it did not read in the file; what no single file can show (that no other
//! file launches a kernel) is said beside the edits. Nothing here compiles or runs a candidate: that is the Verifier's.
//!
//! ```text
//! Analysis -> Context (trees, launches, directives) -> Rule::find -> Proposal, edits checked -> apply
//! ```
//!
//! **Invariant:** no edit touches a macro's body or a region under `#if`, and a candidate that was rewritten is not rewritten by
//! the same rule again.

mod allocated;
mod answers;
mod atomics;
mod context;
mod cover;
mod edit;
mod elementwise;
mod expression;
mod grid_stride;
mod launch_bounds;
mod launch_check;
mod launched;
mod literals;
mod padding;
mod powers;
mod reduction;
mod restrict;
mod statements;
mod step;
mod threads;
mod tile_text;
mod tiled_transpose;
mod uses;
mod vectors;
mod warp_shuffle;
mod warp_tail;

#[cfg(test)]
mod tests;

use serde::Serialize;
use stitch_findings::{Code, Span};

use crate::{Analysis, Language, Workspace};
pub use answers::{ANSWERS, answering, answers};
pub use context::{Context, Function};
pub use edit::{Edit, apply};

/// One kind of rewrite.
#[derive(Debug)]
pub struct Rule {
    /// `rewrite/…`; its page says what it requires.
    pub code: Code,
    /// What it does, in a few words.
    pub title: &'static str,
    /// The static rule whose findings it answers, if there is one.
    pub finding: Option<Code>,
    /// Looks at a file. The proposals may come in any order; [`propose`] checks their edits.
    pub find: fn(&Context) -> Vec<Proposal>,
}

/// One deterministic rewrite as text edits, with what it relies on.
#[derive(Clone, Debug)]
pub struct Rewrite {
    /// The rule.
    pub rule: &'static Rule,
    /// What is rewritten: the expression, the declaration, the loop.
    pub place: Span,
    /// What is done, for a menu: "Pad each row of `tile` by one element".
    pub title: String,
    /// In the file's own bytes, sorted, disjoint.
    pub edits: Vec<Edit>,
    /// What was shown to hold, in words for the evidence beside the diff: "the only launch, line 40, has 256 threads a block".
    pub proven: Vec<String>,
    /// What the file can't show and the edits rely on all the same: "no other file launches `k`".
    pub assumed: Vec<String>,
    /// Whether the last bits of a floating result may differ.
    pub changes_rounding: bool,
    /// What should get better.
    pub expected: Gain,
}

/// A place that a rule would rewrite if it could show that the result is the same.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The rule.
    pub rule: &'static Rule,
    /// What would have been rewritten.
    pub place: Span,
    /// Why it is not: "the block size of the launch at line 40 is not known".
    pub reason: String,
}

/// What a rule says of one place.
#[derive(Clone, Debug)]
pub enum Proposal {
    /// It can be rewritten.
    Rewrite(Rewrite),
    /// It can't.
    Refused(Refusal),
}

impl Proposal {
    /// The rule.
    pub fn rule(&self) -> &'static Rule {
        match self {
            Self::Rewrite(rewrite) => rewrite.rule,
            Self::Refused(refusal) => refusal.rule,
        }
    }

    /// The place.
    pub fn place(&self) -> Span {
        match self {
            Self::Rewrite(rewrite) => rewrite.place,
            Self::Refused(refusal) => refusal.place,
        }
    }
}

/// What a rewrite is expected to make better, and where that is to be seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "of", rename_all = "kebab-case")]
pub enum Gain {
    /// Sectors of 32 bytes a request to global memory.
    Sectors {
        /// Before.
        from: u32,
        /// After.
        to: u32,
    },
    /// Wavefronts a request to shared memory.
    Wavefronts {
        /// Before.
        from: u32,
        /// After.
        to: u32,
    },
    /// Fewer or cheaper instructions.
    Instructions {
        /// Which.
        words: String,
    },
    /// Fewer lanes for which an atomic has to be done one after the other.
    Atomics {
        /// How.
        words: String,
    },
    /// Registers better planned.
    Registers {
        /// How.
        words: String,
    },
    /// Nothing gets faster; something gets safer.
    Safety {
        /// What.
        words: String,
    },
}

impl Gain {
    /// In words, with what to look at.
    pub fn in_words(&self) -> String {
        match self {
            Self::Sectors { from, to } => {
                format!("{to} instead of {from} sectors a request (sectors per request of the access)")
            }
            Self::Wavefronts { from, to } => {
                format!("{to} instead of {from} wavefronts a request (bank conflicts of the access)")
            }
            Self::Instructions { words } => format!("{words} (instructions executed)"),
            Self::Atomics { words } => {
                format!("{words} (lanes serialised by atomics; a few more instructions)")
            }
            Self::Registers { words } => format!("{words} (registers and spills that ptxas reports)"),
            Self::Safety { words } => format!("{words} (no time is won)"),
        }
    }
}

/// Every rule there is, in the order in which they are tried.
pub static RULES: &[&Rule] = &[
    &tiled_transpose::RULE,
    &reduction::RULE,
    &warp_shuffle::RULE,
    &padding::RULE,
    &literals::RULE,
    &powers::RULE,
    &vectors::RULE,
    &atomics::RULE,
    &restrict::RULE,
    &launch_bounds::RULE,
    &grid_stride::RULE,
    &launch_check::RULE,
];

/// What the rules can do in a CUDA file, in the order of the text. `scope` is a selection: only places in it are proposed, though a
/// rewrite may edit the launches of a selected kernel wherever they are. An empty one stands for the function around it.
///
/// A Python file has no proposals, nor has a text too large to be analysed.
pub fn propose(analysis: &Analysis, workspace: &Workspace, scope: Option<Span>) -> Vec<Proposal> {
    propose_with(RULES, analysis, workspace, scope)
}

/// The same with these rules alone.
pub fn propose_with(
    rules: &[&'static Rule],
    analysis: &Analysis,
    workspace: &Workspace,
    scope: Option<Span>,
) -> Vec<Proposal> {
    if analysis.language() != Language::Cuda || analysis.is_too_large() {
        return Vec::new();
    }
    let reading = crate::cuda::Reading::of(analysis.source(), workspace);
    let context = Context::new(analysis, &reading);
    let scope = scope.map(|scope| match analysis.outline().function_at(scope.start) {
        Some(function) if scope.is_empty() => function.span,
        _ => scope,
    });
    let inside = |place: Span| scope.is_none_or(|scope| place.start < scope.end && scope.start < place.end);
    let mut proposals: Vec<Proposal> = rules
        .iter()
        .flat_map(|rule| (rule.find)(&context))
        .filter(|proposal| inside(proposal.place()))
        .map(|proposal| edit::checked(proposal, &context))
        .collect();
    proposals.sort_by_key(|proposal| (proposal.place(), proposal.rule().code));
    proposals
}

/// More rewrites than this are not made of one text.
const MOST_REWRITES: usize = 1000;

/// The text after every rewrite that `rules` propose, one after the other, each found in the text that the one before left; and
/// how many these were.
pub fn rewritten(rules: &[&'static Rule], source: &str, workspace: &Workspace) -> (String, usize) {
    let mut text = source.to_owned();
    for count in 0..MOST_REWRITES {
        let analysis = analysis_of(&text, workspace);
        let mut proposals = propose_with(rules, &analysis, workspace, None).into_iter();
        let edits = proposals.find_map(|proposal| match proposal {
            Proposal::Rewrite(rewrite) => Some(rewrite.edits),
            Proposal::Refused(_) => None,
        });
        match edits.and_then(|edits| apply(&text, &edits)) {
            Some(after) => text = after,
            None => return (text, count),
        }
    }
    (text, MOST_REWRITES)
}

fn analysis_of(source: &str, workspace: &Workspace) -> std::sync::Arc<Analysis> {
    let analyzed = crate::Analyzer::new(Language::Cuda).update(source.into(), workspace, &|| true);
    // Nothing cuts it off, so it can only succeed.
    analyzed.unwrap_or_else(|crate::CutOff| Analysis::of(Language::Cuda, source).into())
}
