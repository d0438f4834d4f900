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
pub mod checks;
mod coalescing;
mod environment;
mod evaluate;
mod expansion;
pub mod facts;
mod floating;
mod groups;
mod host;
pub mod index;
pub mod kind;
mod lanes;
mod launches;
mod loops;
mod memory;
pub mod names;
mod operators;
mod reach;
mod reduction;
mod report;
pub mod scope;
mod trips;
pub mod types;
pub mod value;
pub mod walk;

pub use environment::{Changed, Environment, Outer, Piece};

use stitch_findings::Finding;
use tree_sitter::Node;

use crate::outline::{Function, TemplateParameter};

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

/// What the rules find in one CUDA function, in the order of the text. Of a template that is launched with several lists of
/// arguments, it is what they find with each.
pub fn check_cuda_function(context: &FunctionContext) -> Vec<Finding> {
    let parameters = &context.function.template_parameters;
    let instances = match context.environment.instances(&context.function.name) {
        [first, rest @ ..] if !parameters.is_empty() => (first.as_slice(), rest),
        _ => (&[][..], &[][..]),
    };
    let (first, rest) = instances;
    let mut findings = findings_of(context, first);
    for other in rest {
        let also = findings_of(context, other);
        findings.retain_mut(|finding| {
            let same = also.iter().find(|same| same.code == finding.code && same.span == finding.span);
            if same.is_some_and(|same| same.message != finding.message) {
                let with = instance_in_words(parameters, first);
                if !finding.message.ends_with(&with) {
                    finding.message.push_str(&with);
                }
            }
            same.is_some()
        });
    }
    findings
}

fn findings_of(context: &FunctionContext, instance: &[Option<i64>]) -> Vec<Finding> {
    let walker = walk::walk(context, instance);
    let mut report = report::Report::new(&walker);
    for rule in RULES {
        rule(&walker, &mut report);
    }
    report.finish()
}

/// Behind a message whose numbers hold for one list of template arguments: which.
fn instance_in_words(parameters: &[TemplateParameter], instance: &[Option<i64>]) -> String {
    let known = parameters.iter().enumerate().filter_map(|(at, parameter)| {
        let value = match instance.get(at) {
            Some(value) => (*value)?.to_string(),
            None => parameter.default.clone()?,
        };
        Some(format!("`{} = {value}`", parameter.name))
    });
    format!(" The numbers are those of the launch with {}.", known.collect::<Vec<_>>().join(", "))
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
