//! `static/divergent-reduction`: a tree in which the working threads are spread over all warps.

use stitch_findings::Code;
use tree_sitter::Node;

use super::facts::MultipleTest;
use super::kind::Kind;
use super::report::Report;
use super::walk::Walker;

/// How many nodes of a loop are looked at to see what it doubles.
const MOST_NODES: usize = 4096;

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
        let Some((from, to)) = work(test, within.node) else { continue };
        // A tree in memory, not one in registers, where the branch is a mere select.
        let next = stores.partition_point(|start| *start <= from);
        if stores.get(next).is_none_or(|start| *start >= to) {
            continue;
        }
        let Some(step) = Growth::of(walker, within.node).in_divisor(test.divisor) else { continue };
        let condition = report.quote(test.node);
        let divisor = report.quote(test.divisor);
        let keeps = if test.is_for_others { "leaves only" } else { "keeps" };
        let message = format!(
            "{condition} {keeps} every {divisor}-th thread at work while `{step}` doubles: until few threads are left, each \
             warp of the block still runs with most of its lanes idle."
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

/// Where the work of the threads that are kept starts and ends. `None` if the others do not leave.
fn work(test: &MultipleTest, around: Node) -> Option<(usize, usize)> {
    if !test.is_for_others {
        return Some((test.node.end_byte(), test.branch.end_byte()));
    }
    let branch = test.branch.child_by_field_name("consequence")?;
    let first = if Kind::of(branch) == Kind::Compound { branch.named_child(0)? } else { branch };
    matches!(first.kind(), "return_statement" | "continue_statement")
        .then(|| (test.branch.end_byte(), around.end_byte()))
}

/// What grows by a factor of two in each pass of a loop.
struct Growth<'w, 't> {
    walker: &'w Walker<'t>,
    around: Node<'t>,
    /// Names that are doubled.
    doubled: Vec<&'t str>,
    /// Names that are counted up: `1 << name` doubles.
    counted: Vec<&'t str>,
}

impl<'w, 't> Growth<'w, 't> {
    /// Looks at the assignments of a loop, those of inner loops left out.
    fn of(walker: &'w Walker<'t>, around: Node<'t>) -> Self {
        let mut growth = Self { walker, around, doubled: Vec::new(), counted: Vec::new() };
        let mut pending = vec![around];
        for _ in 0..MOST_NODES {
            let Some(node) = pending.pop() else { break };
            match Kind::of(node) {
                kind if kind.is_loop() && node != around => continue,
                Kind::Assignment => growth.assignment(node),
                Kind::Update if walker.text(node).contains("++") => {
                    growth.counted.extend(node.child_by_field_name("argument").map(|name| walker.text(name)));
                }
                _ => {}
            }
            let mut cursor = node.walk();
            pending.extend(node.named_children(&mut cursor));
        }
        growth
    }

    /// `s *= 2`, `s <<= 1`, `s += s`, `s = s * 2`; `i += 1`.
    fn assignment(&mut self, node: Node<'t>) {
        let field = |name| node.child_by_field_name(name);
        let (Some(left), Some(operator), Some(right)) = (field("left"), field("operator"), field("right"))
        else {
            return;
        };
        let name = self.walker.text(left);
        let right = spaceless(self.walker.text(right));
        let doubles = match operator.kind() {
            "*=" => right == "2",
            "<<=" => right == "1",
            "+=" => right == name,
            "=" => {
                let right = right.trim_start_matches('(').trim_end_matches(')');
                [format!("{name}*2"), format!("2*{name}"), format!("{name}<<1"), format!("{name}+{name}")]
                    .iter()
                    .any(|doubled| doubled == right)
            }
            _ => false,
        };
        if doubles {
            self.doubled.push(name);
        } else if operator.kind() == "+=" && right == "1" {
            self.counted.push(name);
        }
    }

    /// What doubles in a divisor: a name, or `1 << i`. A divisor that divides by it shrinks.
    fn in_divisor(&self, divisor: Node<'t>) -> Option<String> {
        let text = self.walker.text(divisor);
        if let Some(name) = self.in_text(text) {
            return Some(name);
        }
        // A local name, set in each pass.
        let words = names(text).filter_map(|word| {
            let id = self.walker.names.resolve(word, divisor.start_byte())?;
            let variable = &self.walker.names.variables[id];
            let initial = variable.initial.filter(|_| variable.writes.is_empty())?;
            let is_inside = self.around.byte_range().contains(&initial.start_byte());
            (is_inside && self.in_text(self.walker.text(initial)).is_some()).then(|| word.to_owned())
        });
        words.into_iter().next()
    }

    fn in_text(&self, text: &str) -> Option<String> {
        if text.contains('/') || text.contains(">>") {
            return None;
        }
        if let Some(name) = names(text).find(|word| self.doubled.contains(word)) {
            return Some(name.to_owned());
        }
        let text = spaceless(text);
        self.counted.iter().find_map(|name| {
            ["1", "2", "1u", "2u", "1U", "2U"]
                .iter()
                .flat_map(|one| [format!("{one}<<{name}"), format!("{one}<<({name}+1)")])
                .find(|power| {
                    text.strip_prefix('(').unwrap_or(&text).starts_with(power.as_str())
                        || text.ends_with(&format!("({power})"))
                })
        })
    }
}

fn spaceless(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// The names in a text.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}
