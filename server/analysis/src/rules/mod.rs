//! The static rules for CUDA: what a function's text alone tells about how the hardware will run it.
//!
//! One walk over a function evaluates every expression bottom-up (`walk`): how an index depends on the thread
//! (`index`), of what type it is (`types`), whether it is a constant (`constants`). The rules are asked at the nodes that
//! concern them, with the values at hand, so that a function costs one pass however many rules there are. What lies
//! outside the function is in the [`Environment`], which is built from cached [`Piece`]s, one a top-level item.
//!
//! A rule is silent where it does not know: a false alarm costs more than a missed hit.

pub mod constants;

mod arithmetic;
mod banks;
mod bounds;
mod call;
mod checks;
mod coalescing;
mod environment;
mod evaluate;
mod facts;
mod floating;
mod groups;
mod host;
mod index;
mod kind;
mod launches;
mod loops;
mod memory;
mod names;
mod operators;
mod reach;
mod reduction;
mod report;
mod scope;
mod types;
mod value;
mod walk;

pub use environment::{Changed, Environment, Outer, Piece};

use stitch_findings::Finding;
use tree_sitter::Node;

use crate::outline::Function;

/// One function to be checked.
pub struct FunctionContext<'a> {
    /// The file's own text (not the masked one).
    pub source: &'a str,
    /// The function's definition in the tree of the masked text; its body alone will do.
    pub node: Node<'a>,
    /// What the outline says about it.
    pub function: &'a Function,
    /// What the rest of the file says.
    pub environment: &'a Environment,
}

/// What the rules find in one CUDA function, in the order of the text.
pub fn check_cuda_function(context: &FunctionContext) -> Vec<Finding> {
    let walker = walk::walk(context);
    let mut report = report::Report::new(&walker);
    for rule in RULES {
        rule(&walker, &mut report);
    }
    report.finish()
}

type Rule = fn(&walk::Walker, &mut report::Report);

const RULES: &[Rule] = &[
    coalescing::check,
    banks::check,
    bounds::check,
    reduction::check,
    arithmetic::check,
    launches::check,
    host::check,
];

#[cfg(test)]
mod tests;
