//! `rewrite/tiled-transpose`: a copy whose loads or stores go down a column, through a shared tile.
//!
//! The kernel is `if (guard) out[p] = in[q];`, where each thread of a square block computes guard, `p` and `q` from its own
//! number. If the value crosses to the thread with x and y swapped by way of shared memory, that thread can do the strided
//! half, and does it along the row. That holds for any guard and any indices, since swapping x and y only renames the threads
//! of a square block; what the indices are decides only whether it is worthwhile.

use stitch_findings::{Code, Span};
use tree_sitter::Node;

use super::context::span;
use super::expression::{has_no_effect, unused_name};
use super::launched::{Launched, blocks, in_words, launches_of};
use super::statements::{body, condition, declared, is_bare_return, negated, statements};
use super::threads::{is_known, is_uniform, names_builtin};
use super::uses::nodes;
use super::{Context, Edit, Function, Gain, Proposal, Rule};
use crate::rules::facts::Access;
use crate::rules::index::Coefficient;
use crate::rules::kind::Kind;
use crate::rules::types::maths;
use crate::rules::value::Memory;

/// The rule.
pub static RULE: Rule = Rule {
    code: Code::TILED_TRANSPOSE,
    title: "Transpose through a shared tile",
    finding: Some(Code::ROW_MAJOR_SLOW_AXIS),
    find,
};

/// The smallest side of a block for which a tile is worth it: 8 words are one sector.
const LEAST_SIDE: i64 = 8;
/// The largest square of threads.
const MOST_SIDE: i64 = 32;
/// Bytes of static shared memory a block: CUDA C++ Programming Guide, "Compute Capabilities".
const MOST_SHARED: i64 = 48 << 10;

/// Which half of the copy is strided.
#[derive(Clone, Copy, PartialEq)]
enum Strided {
    Load,
    Store,
}

/// What is rewritten.
struct Copy<'c> {
    store: Access<'c>,
    /// The load that crosses the tile where it is the strided half.
    load: Access<'c>,
    strided: Strided,
}

fn find(context: &Context) -> Vec<Proposal> {
    let kernels = context.kernels();
    kernels
        .filter_map(|kernel| {
            let copy = strided_copy(kernel)?;
            let place = span(statement_of(copy.store.node));
            let proposal = rewrite(context, kernel, &copy);
            Some(proposal.unwrap_or_else(|reason| RULE.refuse(place, reason)))
        })
        .collect()
}

/// Whether neighbouring threads go along a row, or down a column whose rows are the block's other axis.
fn along(access: &Access) -> Option<bool> {
    let one = Coefficient::Number(1);
    match (access.index.x, access.index.y) {
        (x, Coefficient::Symbol(_)) if x == one => Some(true),
        (x, Coefficient::Number(stride)) if x == one && stride >= LEAST_SIDE => Some(true),
        (Coefficient::Symbol(_), y) if y == one => Some(false),
        (Coefficient::Number(stride), y) if y == one && stride >= LEAST_SIDE => Some(false),
        _ => None,
    }
}

/// The copy in a kernel that stores one element of global memory: strided on one side, along the rows on the other.
fn strided_copy<'c>(kernel: &Function<'c>) -> Option<Copy<'c>> {
    let accesses = &kernel.walker().facts.accesses;
    let global = |access: &&Access| access.base.memory == Memory::Global;
    let mut stores = accesses.iter().filter(global).filter(|access| access.is_store);
    let store = stores.next().filter(|_| stores.next().is_none())?;
    let is_plain = store.node.parent()?;
    let operator = is_plain.child_by_field_name("operator").map_or("", |operator| operator.kind());
    if Kind::of(is_plain) != Kind::Assignment || operator != "=" {
        return None;
    }
    let loads: Vec<&Access> = accesses.iter().filter(global).filter(|access| !access.is_store).collect();
    let wanted = !along(store)?;
    let mut crossing = loads.iter().filter(|load| along(load) == Some(wanted));
    let load = **crossing.next()?;
    if crossing.next().is_some() {
        return None;
    }
    let strided = if wanted { Strided::Store } else { Strided::Load };
    // A load down a column beside the strided store would lose what the store wins.
    (strided == Strided::Load || loads.len() == 1).then_some(Copy { store: *store, load, strided })
}

fn statement_of(expression: Node) -> Node {
    let mut at = expression;
    while let Some(parent) = at.parent() {
        if matches!(Kind::of(at), Kind::ExpressionStatement | Kind::Declaration) {
            break;
        }
        at = parent;
    }
    at
}

/// The kernel as it must be: declarations and guards, then the copy.
struct Shape<'c> {
    /// Declarations outside the guard.
    outside: Vec<Node<'c>>,
    /// Declarations inside it.
    inside: Vec<Node<'c>>,
    /// The conditions that all hold where the copy is made.
    guards: Vec<String>,
    /// Their nodes, for what they mention.
    conditions: Vec<Node<'c>>,
    /// Where the new code goes: from the first guard to the end of the last statement.
    place: Span,
}

fn shape<'c>(context: &Context<'c>, kernel: &Function<'c>, copy: &Copy<'c>) -> Result<Shape<'c>, String> {
    let target = statement_of(copy.store.node);
    let elsewhere = |node: Node| {
        let line = context.line(node.start_byte());
        format!("line {line} is more than an index, a guard or the copy")
    };
    let mut found = Shape {
        outside: Vec::new(),
        inside: Vec::new(),
        guards: Vec::new(),
        conditions: Vec::new(),
        place: Span::new(target.end_byte(), target.end_byte()),
    };
    let top = body(kernel);
    let mut open = top.clone();
    let mut is_inside = false;
    let mut done = false;
    while !open.is_empty() {
        let list = std::mem::take(&mut open);
        let mut rest = list.as_slice();
        while let [statement, after @ ..] = rest {
            rest = after;
            if done {
                return Err(elsewhere(*statement));
            }
            if *statement == target {
                done = true;
                if found.place.is_empty() {
                    found.place = span(*statement);
                }
                continue;
            }
            match Kind::of(*statement) {
                Kind::Declaration if is_inside => found.inside.push(*statement),
                Kind::Declaration => found.outside.push(*statement),
                Kind::If => {
                    let asked = condition(*statement).ok_or_else(|| elsewhere(*statement))?;
                    let then = statement.child_by_field_name("consequence");
                    let then = then.ok_or_else(|| elsewhere(*statement))?;
                    if statement.child_by_field_name("alternative").is_some()
                        || !has_no_effect(context, asked)
                    {
                        return Err(elsewhere(*statement));
                    }
                    if found.place.is_empty() {
                        found.place = span(*statement);
                    }
                    found.conditions.push(asked);
                    if is_bare_return(then) {
                        found.guards.push(negated(context, asked));
                        is_inside = true;
                    } else if after.is_empty() {
                        found.guards.push(context.text(asked).to_owned());
                        is_inside = true;
                        open = statements(then);
                    } else {
                        return Err(elsewhere(after[0]));
                    }
                }
                _ => return Err(elsewhere(*statement)),
            }
        }
    }
    let end = top.last().map_or(found.place.end, |last| last.end_byte());
    found.place = Span::new(found.place.start, end);
    Ok(found)
}

/// The side of the square blocks of all launches.
fn side(context: &Context, kernel: &Function, launched: &Launched) -> Result<i64, String> {
    let blocks = blocks(context, launched)?;
    let [x, y, z] = blocks[0];
    if blocks.iter().any(|block| *block != blocks[0]) {
        return Err(format!("the launches of `{}` have different blocks", kernel.outline.name));
    }
    if x != y || z != 1 {
        return Err(format!("the block of {x} x {y} x {z} threads is no square"));
    }
    if !(LEAST_SIDE..=MOST_SIDE).contains(&x) {
        return Err(format!("a tile of {x} x {x} is too small or too large"));
    }
    Ok(x)
}

/// Why loads and stores may not change their order: they may be of the same memory.
fn apart(
    context: &Context,
    kernel: &Function,
    launched: &Launched,
    copy: &Copy,
) -> Result<Vec<String>, String> {
    let names = &kernel.walker().names;
    let name_of = |access: &Access| access.base.variable.map(|id| names.variables[id as usize].name);
    let (Some(input), Some(output)) = (name_of(&copy.load), name_of(&copy.store)) else {
        return Err("what is copied is no parameter of the kernel".to_owned());
    };
    if input == output {
        return Err(format!(
            "`{input}` is read and written: an element may be overwritten before it is read"
        ));
    }
    let at = |name: &str| kernel.outline.parameters.iter().position(|parameter| parameter.name == name);
    let (Some(from), Some(to)) = (at(input), at(output)) else {
        return Err("what is copied is no parameter of the kernel".to_owned());
    };
    for launch in &launched.launches {
        if launch.arguments.get(from) == launch.arguments.get(to) {
            let line = context.line(launch.span.start);
            return Err(format!("the launch at line {line} reads and writes the same memory"));
        }
    }
    Ok(vec![format!("`{input}` and `{output}` do not overlap")])
}

fn rewrite<'c>(context: &Context<'c>, kernel: &Function<'c>, copy: &Copy<'c>) -> Result<Proposal, String> {
    context.is_whole(kernel)?;
    let shape = shape(context, kernel, copy)?;
    let launched = launches_of(context, kernel)?;
    let side = side(context, kernel, &launched)?;
    if nodes(kernel.node).any(|node| node.kind() == "__shared__") {
        return Err("the kernel uses shared memory already".to_owned());
    }
    if names_builtin(context, kernel, "threadIdx.z") {
        return Err("the kernel uses `threadIdx.z`".to_owned());
    }
    plain(context, kernel, copy, &shape)?;
    let overlap = apart(context, kernel, &launched, copy)?;
    let moved = match copy.strided {
        Strided::Store => copy.store,
        Strided::Load => copy.load,
    };
    let (Some(element), Some(ty)) = (moved.element.bytes(), element_text(kernel, &moved)) else {
        return Err("the type of the elements is not known here".to_owned());
    };
    if element * side * (side + 1) > MOST_SHARED {
        return Err(format!("a tile of {side} x {} elements does not fit", side + 1));
    }
    let text = Writer { context, kernel, shape: &shape, copy, side, ty }.write()?;
    let title = format!("Transpose by tiles of {side} x {side} in shared memory");
    // A warp is `32 / side` rows of the block: down a column each row's element has a sector of its own, which the next row shares.
    let sectors = (32 / side) * ((side * element + 31) / 32);
    let number = |count: i64| u32::try_from(count).unwrap_or_default();
    let gain = Gain::Sectors { from: number(side), to: number(sectors) };
    let mut rewrite =
        RULE.rewrite(shape.place, title, vec![Edit::replace(shape.place, text.trim_start())], gain);
    rewrite.proven = vec![
        format!("{} has {side} x {side} threads a block", in_words(context, &launched)),
        "the kernel is one guarded copy: no other store, no shared memory, no barrier".to_owned(),
    ];
    rewrite.assumed = launched.assumed;
    rewrite.assumed.extend(overlap);
    Ok(Proposal::Rewrite(rewrite))
}

/// That every name is a variable, a constant or a parameter, so that swapping the threads is swapping these; and that nothing is
/// called but functions of the maths library.
fn plain<'c>(
    context: &Context<'c>,
    kernel: &Function<'c>,
    copy: &Copy<'c>,
    shape: &Shape<'c>,
) -> Result<(), String> {
    let assignment = copy.store.node.parent();
    let all = shape.outside.iter().chain(&shape.inside).chain(&shape.conditions).copied().chain(assignment);
    for node in all.flat_map(nodes) {
        let text = context.text(node);
        if Kind::of(node) == Kind::Call {
            let name = node.child_by_field_name("function").map_or("", |callee| context.text(callee));
            if maths(name).is_none() || context.defines(name) {
                return Err(format!("`{name}` is called"));
            }
        }
        let is_built_in = matches!(text, "threadIdx" | "blockIdx" | "blockDim" | "gridDim");
        if Kind::of(node) == Kind::Identifier
            && !is_built_in
            && node.parent().is_none_or(|parent| !is_declarator(parent, node))
            && kernel.walker().names.resolve(text, node.start_byte()).is_none()
            && maths(text).is_none()
            && !is_known(context, kernel, text)
        {
            return Err(format!("what `{text}` stands for is not known"));
        }
    }
    Ok(())
}

/// Whether a name stands where it is declared.
fn is_declarator(parent: Node, name: Node) -> bool {
    parent.child_by_field_name("declarator") == Some(name) || Kind::of(parent) == Kind::Declaration
}

/// The element type of a pointer parameter, as written.
fn element_text(kernel: &Function, access: &Access) -> Option<String> {
    let names = &kernel.walker().names;
    let variable = &names.variables[access.base.variable? as usize];
    let words = variable.class.split_whitespace().filter(|word| *word != "const").collect::<Vec<_>>();
    (variable.ty.pointers == 1 && variable.dimensions.is_empty() && !words.contains(&"volatile"))
        .then(|| words.join(" "))
}

struct Writer<'w, 'c> {
    context: &'w Context<'c>,
    kernel: &'w Function<'c>,
    shape: &'w Shape<'c>,
    copy: &'w Copy<'c>,
    side: i64,
    ty: String,
}

impl<'c> Writer<'_, 'c> {
    fn write(&self) -> Result<String, String> {
        let tile = unused_name(self.context, self.kernel, "tile");
        let own = self.context.indentation(self.shape.place.start);
        let unit = self.context.indentation_unit(self.kernel);
        let assignment = self.copy.store.node.parent();
        let value = assignment.and_then(|node| node.child_by_field_name("right"));
        let value = value.ok_or("the copy could not be read")?;
        let here = format!("{tile}[threadIdx.y][threadIdx.x]");
        let across = format!("{tile}[threadIdx.x][threadIdx.y]");
        let store = self.context.text(self.copy.store.node);
        let (first, second) = match self.copy.strided {
            // The value crosses, and the store is the other thread's.
            Strided::Store => {
                let first = self.half(&format!("{here} = {};", self.context.text(value)), &[value], false)?;
                let other = self.renamed(self.copy.store.node, &self.renames(&[self.copy.store.node])?);
                (first, self.half(&format!("{other} = {across};"), &[self.copy.store.node], true)?)
            }
            Strided::Load => {
                let other = self.renamed(self.copy.load.node, &self.renames(&[self.copy.load.node])?);
                let first = self.half(&format!("{here} = {other};"), &[self.copy.load.node], true)?;
                let (load, from) = (span(self.copy.load.node), value.start_byte());
                let text = self.context.text(value);
                let rest = format!("{}{across}{}", &text[..load.start - from], &text[load.end - from..]);
                (first, self.half(&format!("{store} = {rest};"), &[value, self.copy.store.node], false)?)
            }
        };
        let mut text = format!("{own}__shared__ {} {tile}[{}][{}];\n", self.ty, self.side, self.side + 1);
        for comment in nodes(self.kernel.node).filter(|node| Kind::of(*node) == Kind::Comment) {
            if self.shape.place.contains(span(comment)) {
                text += &format!("{own}{}\n", self.context.text(comment).trim_end());
            }
        }
        for (index, half) in [first, second].iter().enumerate() {
            let Half { outer, guard, inner } = half;
            outer.iter().for_each(|line| text += &format!("{own}{line}\n"));
            match guard {
                Some(guard) => {
                    text += &format!("{own}if ({guard}) {{\n");
                    inner.iter().for_each(|line| text += &format!("{own}{unit}{line}\n"));
                    text += &format!("{own}}}\n");
                }
                None => inner.iter().for_each(|line| text += &format!("{own}{line}\n")),
            }
            if index == 0 {
                text += &format!("{own}__syncthreads();\n");
            }
        }
        Ok(text.trim_end().to_owned())
    }

    /// One half of the copy, by the thread itself or by the one with x and y swapped.
    fn half(&self, statement: &str, uses: &[Node<'c>], is_swapped: bool) -> Result<Half, String> {
        let mut all = uses.to_vec();
        all.extend(&self.shape.conditions);
        let needed = self.needed(&all)?;
        let renames = if is_swapped { self.renames(&all)? } else { Vec::new() };
        let mut half = Half { outer: Vec::new(), guard: self.guard(&renames), inner: Vec::new() };
        for declaration in &needed {
            let is_inside = self.shape.inside.contains(declaration);
            if !is_inside && !is_swapped {
                continue;
            }
            let line = if is_swapped {
                self.renamed(*declaration, &renames)
            } else {
                self.context.text(*declaration).to_owned()
            };
            // Indices that a guard inside early returns needs are computed before it, all being free of effects.
            let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
            half.outer.push(line);
        }
        half.inner.push(statement.to_owned());
        Ok(half)
    }

    fn guard(&self, renames: &[(String, String)]) -> Option<String> {
        let guards: Vec<String> = self
            .shape
            .guards
            .iter()
            .map(|guard| {
                let text = rename_words(guard, renames);
                if self.shape.guards.len() > 1 && text.contains("||") { format!("({text})") } else { text }
            })
            .collect();
        (!guards.is_empty()).then(|| guards.join(" && "))
    }

    /// The declarations that these expressions need, in the order of the text.
    fn needed(&self, uses: &[Node<'c>]) -> Result<Vec<Node<'c>>, String> {
        let names = &self.kernel.walker().names;
        let mut open = uses.to_vec();
        let mut found: Vec<Node> = Vec::new();
        while let Some(next) = open.pop() {
            for name in nodes(next).filter(|node| Kind::of(*node) == Kind::Identifier) {
                let Some(id) = names.resolve(self.context.text(name), name.start_byte()) else { continue };
                let variable = &names.variables[id];
                if variable.storage == crate::rules::names::Storage::Parameter {
                    if !variable.writes.is_empty() {
                        return Err(format!("`{}` is changed", variable.name));
                    }
                    continue;
                }
                let all = self.shape.outside.iter().chain(&self.shape.inside);
                let mut all =
                    all.filter(|node| names_declared(self.context, **node).contains(&variable.name));
                let declaration = all.next().ok_or_else(|| format!("`{}` is changed", variable.name))?;
                if !variable.writes.is_empty() || !has_no_effect(self.context, *declaration) {
                    return Err(format!("`{}` is more than an index", variable.name));
                }
                if !found.contains(declaration) {
                    found.push(*declaration);
                    open.push(*declaration);
                }
            }
        }
        found.retain(|node| {
            !is_self_uniform(self.context, self.kernel, *node) || self.shape.inside.contains(node)
        });
        if let Some(node) = found.iter().find(|node| nodes(**node).any(|n| Kind::of(n) == Kind::Subscript)) {
            let line = self.context.line(node.start_byte());
            return Err(format!("line {line} reads memory to compute an index"));
        }
        found.sort_by_key(|node| node.start_byte());
        Ok(found)
    }

    /// New names for what the swapped thread computes, and its own coordinates.
    fn renames(&self, uses: &[Node<'c>]) -> Result<Vec<(String, String)>, String> {
        let mut renames = vec![
            ("threadIdx.x".to_owned(), "threadIdx.y".to_owned()),
            ("threadIdx.y".to_owned(), "threadIdx.x".to_owned()),
        ];
        let mut all = uses.to_vec();
        all.extend(&self.shape.conditions);
        for declaration in self.needed(&all)? {
            for name in names_declared(self.context, declaration) {
                let word = if name.contains('_') { "_across" } else { "Across" };
                let new = unused_name(self.context, self.kernel, &format!("{name}{word}"));
                renames.push((name.to_owned(), new));
            }
        }
        Ok(renames)
    }

    fn renamed(&self, node: Node, renames: &[(String, String)]) -> String {
        rename_words(self.context.text(node), renames)
    }
}

struct Half {
    outer: Vec<String>,
    guard: Option<String>,
    inner: Vec<String>,
}

/// Whether a declaration's values are the same for all threads, so that no other thread's are needed.
fn is_self_uniform<'c>(context: &Context<'c>, kernel: &Function<'c>, declaration: Node<'c>) -> bool {
    declared(context, kernel, declaration).is_some_and(|(_, value)| is_uniform(context, kernel, value))
}

/// The names that a declaration declares.
fn names_declared<'c>(context: &Context<'c>, declaration: Node<'c>) -> Vec<&'c str> {
    let mut cursor = declaration.walk();
    let declarators = declaration.children_by_field_name("declarator", &mut cursor);
    declarators
        .map(|declarator| context.text(declarator.child_by_field_name("declarator").unwrap_or(declarator)))
        .collect()
}

/// A text with whole words, or `threadIdx.` with its member, replaced.
fn rename_words(text: &str, renames: &[(String, String)]) -> String {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if !is_word(first) {
            result.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let mut end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        if &rest[..end] == "threadIdx" && rest[end..].starts_with('.') {
            end = rest[end + 1..].find(|c| !is_word(c)).map_or(rest.len(), |at| end + 1 + at);
        }
        let word = &rest[..end];
        let is_member = result.ends_with('.') || result.ends_with("->");
        let new = renames.iter().find(|(old, _)| old == word && !is_member);
        result.push_str(new.map_or(word, |(_, new)| new.as_str()));
        rest = &rest[end..];
    }
    result
}
