//! Reads the loop of a reduction tree by doubling strides, in its common spellings.

use tree_sitter::Node;

use super::Context;
use super::uses::nodes;
use crate::rules::kind::Kind;

/// The parts of `for (s = 1; s < bound; s *= 2) { if (test) array[thread] += array[thread + s]; __syncthreads(); }`.
pub struct Step<'c> {
    /// `s`.
    pub stride: &'c str,
    /// Whether the loop declares `s`.
    pub declares_stride: bool,
    /// The `1` that it starts from.
    pub start: Node<'c>,
    /// `s < bound`.
    pub condition: Node<'c>,
    /// The number of threads.
    pub bound: Node<'c>,
    /// `s *= 2`.
    pub update: Node<'c>,
    /// What picks the working threads: `tid % (2 * s) == 0`, or `index < bound`.
    pub test: Node<'c>,
    /// `tid`.
    pub thread: &'c str,
    /// The array's name.
    pub array: &'c str,
    /// `+`, `max`, …
    pub operation: &'c str,
    /// `int index = 2 * s * tid;` and the uses of `index` in the step.
    pub index: Option<(Node<'c>, Vec<Node<'c>>)>,
    /// Whether the barrier is the first thing of the body.
    pub begins_with_barrier: bool,
}

/// Operations that are associative and commutative, but for rounding.
const OPERATORS: &[(&str, &str)] = &[("+=", "+"), ("*=", "*"), ("&=", "&"), ("|=", "|"), ("^=", "^")];
const FUNCTIONS: &[&str] = &["min", "max", "fminf", "fmaxf", "fmin", "fmax"];

/// What is said of a body that is not understood.
const UNKNOWN: &str = "the body of the loop is no step of a reduction that is known";

/// The step of a loop; `None` for a loop that is no reduction by doubling strides.
///
/// # Errors
/// What of a loop that looks like one is not understood.
pub fn read_step<'c>(context: &Context<'c>, around: Node<'c>) -> Result<Option<Step<'c>>, String> {
    let Some(header) = header(context, around) else { return Ok(None) };
    let Some(body) = around.child_by_field_name("body") else { return Ok(None) };
    let stride = header.stride;
    // Whether threads are picked by multiples of the stride.
    let picks = nodes(body).any(|node| {
        let text = spaceless(context.text(node));
        Kind::of(node) == Kind::Binary
            && (text.contains(&format!("2*{stride}")) || text.contains(&format!("{stride}*2")))
    });
    let has_branch = nodes(body).any(|node| Kind::of(node) == Kind::If);
    if !picks || !has_branch {
        return Ok(None);
    }
    let (declaration, branch, begins_with_barrier) = body_of(context, body)?;
    let unknown = || UNKNOWN.to_owned();
    let clause =
        branch.child_by_field_name("condition").and_then(|clause| clause.child_by_field_name("value"));
    let test = clause.ok_or_else(unknown)?;
    let consequence = branch.child_by_field_name("consequence").ok_or_else(unknown)?;
    let [work] = statements_of(consequence)[..] else { return Err(unknown()) };
    let work =
        work.named_child(0).filter(|_| Kind::of(work) == Kind::ExpressionStatement).ok_or_else(unknown)?;
    let (left, operation, right) = combination(context, work).ok_or_else(unknown)?;
    let (array, own) = element(context, left).ok_or_else(unknown)?;
    let (other, far) = element(context, right).ok_or_else(unknown)?;
    let sum = spaceless(far);
    if array != other || (sum != format!("{own}+{stride}") && sum != format!("{stride}+{own}")) {
        return Err(unknown());
    }
    let (thread, index) = match declaration {
        None => (own, None),
        Some(declaration) => {
            let thread = scaled_index(context, declaration, own, stride).ok_or_else(unknown)?;
            let names = nodes(branch)
                .filter(|node| Kind::of(*node) == Kind::Identifier && context.text(*node) == own);
            let used = names.filter(|node| !super::uses::is_within(*node, test)).collect();
            (thread, Some((declaration, used)))
        }
    };
    let picked = match &index {
        None => is_multiple(context, test, thread, stride, context.text(header.bound)),
        Some(_) => is_below(context, test, own, stride, context.text(header.bound)),
    };
    if !picked {
        return Err(format!("`{}` picks threads in a way that is not known", context.text(test)));
    }
    Ok(Some(Step {
        stride,
        declares_stride: header.declares,
        start: header.start,
        condition: header.condition,
        bound: header.bound,
        update: header.update,
        test,
        thread,
        array,
        operation,
        index,
        begins_with_barrier,
    }))
}

/// The parts of a loop's body: the index's declaration, the branch, and whether the barrier comes first.
fn body_of<'c>(context: &Context, body: Node<'c>) -> Result<(Option<Node<'c>>, Node<'c>, bool), String> {
    let statements = statements_of(body);
    let is_barrier = |node: &Node| spaceless(context.text(*node)) == "__syncthreads();";
    let barriers = statements.iter().filter(|node| is_barrier(node)).count();
    let work: Vec<Node> = statements.iter().copied().filter(|node| !is_barrier(node)).collect();
    if barriers != 1 {
        return Err(format!("the loop has {barriers} barriers a step, not one"));
    }
    let first = statements.first().is_some_and(is_barrier);
    let last = statements.last().is_some_and(is_barrier);
    let (declaration, branch) = match work.as_slice() {
        [branch] if first || last => (None, *branch),
        [declaration, branch] if first || last => (Some(*declaration), *branch),
        _ => return Err(UNKNOWN.to_owned()),
    };
    if Kind::of(branch) != Kind::If || branch.child_by_field_name("alternative").is_some() {
        return Err(UNKNOWN.to_owned());
    }
    Ok((declaration, branch, first))
}

struct Header<'c> {
    stride: &'c str,
    declares: bool,
    start: Node<'c>,
    condition: Node<'c>,
    bound: Node<'c>,
    update: Node<'c>,
}

/// `for (int s = 1; s < bound; s *= 2)`
fn header<'c>(context: &Context<'c>, around: Node<'c>) -> Option<Header<'c>> {
    let initializer = around.child_by_field_name("initializer")?;
    let condition = around.child_by_field_name("condition")?;
    let update = around.child_by_field_name("update")?;
    let (name, start) = if Kind::of(initializer) == Kind::Declaration {
        let declarator = initializer.child_by_field_name("declarator")?;
        (declarator.child_by_field_name("declarator")?, declarator.child_by_field_name("value")?)
    } else {
        (initializer.child_by_field_name("left")?, initializer.child_by_field_name("right")?)
    };
    let stride = context.text(name);
    let bound = condition.child_by_field_name("right")?;
    let counts = Kind::of(name) == Kind::Identifier
        && context.text(start) == "1"
        && Kind::of(condition) == Kind::Binary
        && condition.child_by_field_name("operator")?.kind() == "<"
        && context.text(condition.child_by_field_name("left")?) == stride;
    let doubled = spaceless(context.text(update));
    let doubles = [
        format!("{stride}*=2"),
        format!("{stride}<<=1"),
        format!("{stride}+={stride}"),
        format!("{stride}={stride}*2"),
        format!("{stride}=2*{stride}"),
        format!("{stride}={stride}<<1"),
    ]
    .contains(&doubled);
    let declares = Kind::of(initializer) == Kind::Declaration;
    (counts && doubles).then_some(Header { stride, declares, start, condition, bound, update })
}

/// The statements of a block, or the statement itself.
fn statements_of(node: Node) -> Vec<Node> {
    if Kind::of(node) != Kind::Compound {
        return vec![node];
    }
    let mut cursor = node.walk();
    node.named_children(&mut cursor).filter(|child| Kind::of(*child) != Kind::Comment).collect()
}

/// `a += b`, `a = a + b`, `a = max(a, b)`: what is combined, and how.
fn combination<'c>(context: &Context<'c>, work: Node<'c>) -> Option<(Node<'c>, &'c str, Node<'c>)> {
    let (left, right) = (work.child_by_field_name("left")?, work.child_by_field_name("right")?);
    let operator = work.child_by_field_name("operator")?.kind();
    if let Some((_, operation)) = OPERATORS.iter().find(|(written, _)| *written == operator) {
        return Some((left, operation, right));
    }
    let same = |node: Node| spaceless(context.text(node)) == spaceless(context.text(left));
    let pair = match Kind::of(right) {
        Kind::Binary => {
            let inner = right.child_by_field_name("operator")?.kind();
            let (_, operation) = OPERATORS.iter().find(|(_, operation)| *operation == inner)?;
            (*operation, right.child_by_field_name("left")?, right.child_by_field_name("right")?)
        }
        Kind::Call => {
            let name = context.text(right.child_by_field_name("function")?);
            let known = FUNCTIONS.iter().find(|known| **known == name && !context.defines(name))?;
            let arguments = right.child_by_field_name("arguments")?;
            (*known, arguments.named_child(0)?, arguments.named_child(1)?)
        }
        _ => return None,
    };
    let (operation, first, second) = pair;
    match operator {
        "=" if same(first) => Some((left, operation, second)),
        "=" if same(second) => Some((left, operation, first)),
        _ => None,
    }
}

/// The array and the index of `array[index]`.
fn element<'c>(context: &Context<'c>, node: Node<'c>) -> Option<(&'c str, &'c str)> {
    let array = node.child_by_field_name("argument").filter(|_| Kind::of(node) == Kind::Subscript)?;
    let index = node.child_by_field_name("indices")?.named_child(0)?;
    (Kind::of(array) == Kind::Identifier).then(|| (context.text(array), context.text(index)))
}

/// The thread's name in `int index = 2 * s * tid;`.
fn scaled_index<'c>(
    context: &Context<'c>,
    declaration: Node<'c>,
    index: &str,
    stride: &str,
) -> Option<&'c str> {
    let declarator = declaration
        .child_by_field_name("declarator")
        .filter(|_| Kind::of(declaration) == Kind::Declaration)?;
    if context.text(declarator.child_by_field_name("declarator")?) != index {
        return None;
    }
    let value = declarator.child_by_field_name("value")?;
    nodes(value).map(|node| context.text(node)).find(|text| {
        let written = spaceless(context.text(value)).replace(['(', ')'], "");
        [
            ("2", stride, *text),
            (stride, "2", *text),
            ("2", *text, stride),
            (*text, "2", stride),
            (*text, stride, "2"),
            (stride, *text, "2"),
        ]
        .iter()
        .any(|(a, b, c)| written == format!("{a}*{b}*{c}") && *text != stride && *text != "2")
    })
}

/// Whether a condition is `thread % (2 * stride) == 0` in one of its spellings, perhaps with `thread + stride < bound`.
fn is_multiple(context: &Context, test: Node, thread: &str, stride: &str, bound: &str) -> bool {
    let mut found = false;
    let all = conjuncts(test).into_iter().all(|part| {
        let text = spaceless(context.text(part)).replace(['(', ')'], "");
        let doubles = [format!("2*{stride}"), format!("{stride}*2"), format!("{stride}<<1")];
        let is_multiple = doubles.iter().any(|twice| {
            text == format!("{thread}%{twice}==0")
                || text == format!("0=={thread}%{twice}")
                || text == format!("!{thread}%{twice}")
                || text == format!("{thread}&{twice}-1==0")
                || text == format!("!{thread}&{twice}-1")
        });
        found |= is_multiple;
        (is_multiple && has_brackets(context, part, thread, stride))
            || is_within_bound(&text, thread, stride, bound)
    });
    found && all
}

/// Whether `%` divides by the whole of `2 * stride`: without parentheses it does not.
fn has_brackets(context: &Context, test: Node, thread: &str, stride: &str) -> bool {
    let text = spaceless(context.text(test));
    let bare =
        [format!("{thread}%2*{stride}"), format!("{thread}%{stride}*2"), format!("{thread}%{stride}<<1")];
    // Nor is `tid & 2 * s - 1 == 0` what it looks like.
    let masked = text.contains('&');
    let negated = text.contains('!') && !text.contains("!=");
    !bare.iter().any(|bare| text.contains(bare.as_str()))
        && (!negated || text.contains("!("))
        && (!masked || text.contains(")==0") || text.starts_with("!("))
}

/// Whether a condition is `index < bound`, perhaps with `index + stride < bound`.
fn is_below(context: &Context, test: Node, index: &str, stride: &str, bound: &str) -> bool {
    let mut found = false;
    let all = conjuncts(test).into_iter().all(|part| {
        let text = spaceless(context.text(part)).replace(['(', ')'], "");
        let is_below = text == format!("{index}<{bound}");
        let is_within = is_within_bound(&text, index, stride, bound);
        found |= is_below || is_within;
        is_below || is_within
    });
    found && all
}

fn is_within_bound(text: &str, index: &str, stride: &str, bound: &str) -> bool {
    let bound = spaceless(bound);
    text == format!("{index}+{stride}<{bound}") || text == format!("{stride}+{index}<{bound}")
}

/// The parts of a condition that are joined by `&&`.
fn conjuncts(test: Node) -> Vec<Node> {
    let mut open = vec![test];
    let mut parts = Vec::new();
    while let Some(node) = open.pop() {
        let is_and = node.child_by_field_name("operator").is_some_and(|operator| operator.kind() == "&&");
        match Kind::of(node) {
            Kind::Binary if is_and => {
                let sides = ["left", "right"].map(|side| node.child_by_field_name(side));
                open.extend(sides.into_iter().flatten());
            }
            _ => parts.push(node),
        }
    }
    parts
}

fn spaceless(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}
