//! `static/divergent-reduction`: a tree in which the working threads are spread over all warps.

use stitch_findings::Code;

use super::kind::Kind;
use super::report::Report;
use super::walk::Walker;

/// Adds a finding for each `thread % divisor == 0` whose divisor doubles in the loop around it.
pub fn check(walker: &Walker, report: &mut Report) {
    if walker.facts.multiples.is_empty() {
        return;
    }
    let stores = walker.facts.accesses.iter().filter(|access| access.is_store);
    let mut stores: Vec<usize> = stores.map(|access| access.node.start_byte()).collect();
    stores.sort_unstable();
    for test in &walker.facts.multiples {
        let Some(within) = test.within.and_then(|id| walker.facts.loops.get(id as usize)) else { continue };
        let divisor = walker.text(test.divisor);
        let Some(step) = doubled(walker, within.node) else { continue };
        // A tree in memory, not one in registers, where the branch is a mere select.
        let next = stores.partition_point(|start| *start <= test.node.end_byte());
        let writes = stores.get(next).is_some_and(|start| *start < test.branch.end_byte());
        if !mentions(divisor, step) || !writes {
            continue;
        }
        let condition = report.quote(test.node);
        let message = format!(
            "{condition} keeps every `{divisor}`-th thread while `{step}` doubles: until few threads are left, each warp of \
             the block still runs with most of its lanes idle."
        );
        report.add(
            Code::DIVERGENT_REDUCTION,
            test.node,
            message,
            "Halve a stride from the block size and let `threadIdx.x < stride` work, or reduce within the warp by \
             `__shfl_down_sync`.",
        );
    }
}

/// The variable that a `for` loop doubles: `s *= 2`, `s <<= 1`, `s += s`, `s = s * 2`.
fn doubled<'t>(walker: &Walker<'t>, node: tree_sitter::Node<'t>) -> Option<&'t str> {
    let update = match Kind::of(node) {
        Kind::For => node.child_by_field_name("update")?,
        _ => return None,
    };
    let name = walker.text(update.child_by_field_name("left")?);
    let (operator, right) =
        (update.child_by_field_name("operator")?.kind(), walker.text(update.child_by_field_name("right")?));
    let spaceless: String = right.chars().filter(|c| !c.is_whitespace()).collect();
    let doubles = match operator {
        "*=" => spaceless == "2",
        "<<=" => spaceless == "1",
        "+=" => spaceless == name,
        "=" => [format!("{name}*2"), format!("2*{name}"), format!("{name}<<1"), format!("{name}+{name}")]
            .contains(&spaceless),
        _ => false,
    };
    doubles.then_some(name)
}

/// Whether a text holds a name as a word of its own.
fn mentions(text: &str, name: &str) -> bool {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == name)
}
