//! `rewrite/launch-bounds`: `__launch_bounds__` with the block size of the only launch.

use stitch_findings::Code;

use super::launched::{Launched, blocks, in_words, launches_of};
use super::{Context, Edit, Function, Gain, Proposal, Rule};
use crate::cuda::{Lexer, TokenKind};
use crate::outline::Launch;
use crate::rules::constants::Constants;

/// The rule.
pub static RULE: Rule =
    Rule { code: Code::LAUNCH_BOUNDS, title: "Bound the kernel's block size", finding: None, find };

/// Most threads a block on every device so far: CUDA C++ Programming Guide, "Compute Capabilities".
const MOST_THREADS: i64 = 1024;

fn find(context: &Context) -> Vec<Proposal> {
    // A kernel that is launched elsewhere has no block size here.
    let is_launched = |kernel: &&Function| {
        context.outline.launches.iter().any(|launch| launch.kernel == kernel.outline.name)
    };
    let kernels = context.kernels().filter(|kernel| kernel.outline.launch_bounds.is_none());
    kernels
        .filter(is_launched)
        .map(|kernel| {
            let proposal = rewrite(context, kernel);
            proposal.unwrap_or_else(|reason| RULE.refuse(kernel.outline.name_span, reason))
        })
        .collect()
}

fn rewrite<'c>(context: &Context<'c>, kernel: &Function<'c>) -> Result<Proposal, String> {
    let name = kernel.outline.name.as_str();
    let launched = launches_of(context, kernel)?;
    if let Some(other) = context.outline.functions.iter().find(|f| f.name == name && !f.is_definition) {
        let line = context.line(other.span.start);
        return Err(format!("the declaration at line {line} would lack the bounds of the definition"));
    }
    let blocks = blocks(context, &launched)?;
    let [x, y, z] = blocks[0];
    if blocks.iter().any(|block| block.iter().product::<i64>() != x * y * z) {
        return Err(format!("the launches of `{name}` have blocks of different sizes"));
    }
    let threads = x * y * z;
    if !(1..=MOST_THREADS).contains(&threads) {
        return Err(format!("a block of {threads} threads can't be launched"));
    }
    let written = constant_name(context, kernel, &launched).unwrap_or_else(|| threads.to_string());
    let text = format!("__launch_bounds__({written})");
    let at = kernel.outline.name_span.start;
    let title = format!("Bound the blocks of `{name}` to the {threads} threads they have");
    let words = format!(
        "the compiler plans registers for {threads} threads a block: fewer spills, or no launch that lacks registers"
    );
    let mut rewrite = RULE.rewrite(
        kernel.outline.name_span,
        title,
        vec![Edit::insert(at, format!("{text} "))],
        Gain::Registers { words },
    );
    rewrite.proven.push(format!("{} has {threads} threads a block", in_words(context, &launched)));
    rewrite.proven.push(format!("no declaration of `{name}` lacks the bounds"));
    rewrite.assumed = launched.assumed;
    Ok(Proposal::Rewrite(rewrite))
}

/// The constant that the only launch has for its block, where the kernel can use it too: a macro that is defined once, before
/// the kernel.
fn constant_name(context: &Context, kernel: &Function, launched: &Launched) -> Option<String> {
    let [Launch { block: Some(block), .. }] = launched.launches.as_slice() else { return None };
    let name = block.text.trim();
    let bytes = context.source.as_bytes();
    let mut places = context.directives.lines.iter().filter(|line| {
        let mut words = Lexer::within(context.source, line.start + 1, line.end).skip(1);
        words.next().is_some_and(|word| word.kind == TokenKind::Word && word.text(bytes) == name.as_bytes())
    });
    let only = places.next().filter(|line| line.end <= kernel.outline.span.start)?;
    let is_known = context.environment.value(name) == Some(block.value?[0]);
    (places.next().is_none() && is_known && !context.is_conditional(*only)).then(|| name.to_owned())
}
