//! Whether the grid of a launch has a thread for every element: `blocks * threads >= n`.
//!
//! Sizes are compared as polynomials in the names they are made of, with the values of names put in where these never change:
//! `(n + 255) / 256` covers `n` with blocks of 256 since `n + 255 - n - 256 + 1` is not negative.

use std::collections::BTreeMap;

use tree_sitter::Node;

use super::launched::Launched;
use super::statements::{bare, binary, fixed_value, is_written};
use super::{Context, Function};
use crate::outline::Launch;
use crate::rules::constants::{Constants, fold_text};
use crate::rules::kind::Kind;
use crate::rules::scope::Scope;
use crate::rules::types::floating_literal;

/// Products of names, sorted, with their factors; the empty product is the constant.
type Sum = BTreeMap<Vec<String>, i64>;

/// How deep expressions and names are followed.
const MOST_DEPTH: u32 = 24;

/// That every launch has a thread for each number below `bound`, an expression of the kernel.
///
/// # Errors
/// Which launch may not have.
pub fn covers<'c>(
    context: &Context<'c>,
    kernel: &Function<'c>,
    launched: &Launched<'c>,
    bound: Node<'c>,
) -> Result<(), String> {
    for launch in &launched.launches {
        if launch_covers(context, kernel, launch, bound) != Some(true) {
            let line = context.line(launch.span.start);
            return Err(format!(
                "the grid of the launch at line {line} is not seen to have a thread for each `{}`",
                context.text(bound)
            ));
        }
    }
    Ok(())
}

/// The number of elements of the smallest launch, where all are known.
pub fn least<'c>(
    context: &Context<'c>,
    kernel: &Function<'c>,
    launched: &Launched<'c>,
    bound: Node<'c>,
) -> Option<i64> {
    let counts = launched.launches.iter().map(|launch| {
        let caller = context.functions.iter().filter(|f| f.outline.span.contains(launch.span));
        let caller = caller.min_by_key(|f| f.outline.span.len())?;
        let host = Sizes { context, function: caller, at: launch.span.start };
        number(&host.of_kernel(kernel, launch, bound)?)
    });
    counts.collect::<Option<Vec<i64>>>()?.into_iter().min()
}

fn launch_covers<'c>(
    context: &Context<'c>,
    kernel: &Function<'c>,
    launch: &Launch,
    bound: Node<'c>,
) -> Option<bool> {
    let caller = context.functions.iter().filter(|f| f.outline.span.contains(launch.span));
    let caller = caller.min_by_key(|f| f.outline.span.len())?;
    let host = Sizes { context, function: caller, at: launch.span.start };
    let wanted = host.of_kernel(kernel, launch, bound)?;
    let block = match launch.block.as_ref()?.value {
        Some([x, ..]) => constant(x),
        None => host.sum(one_size(context, caller, node_at(caller, launch.block.as_ref()?.span)?)?, 0)?,
    };
    if let (Some([blocks, 1, 1]), Some(threads), Some(count)) =
        (launch.grid.as_ref()?.value, number(&block), number(&wanted))
    {
        return Some(blocks.checked_mul(threads)? >= count);
    }
    let grid = one_size(context, caller, node_at(caller, launch.grid.as_ref()?.span)?)?;
    host.quotient_covers(grid, &block, &wanted)
}

/// The node of a piece of a launch.
pub fn node_at<'c>(function: &Function<'c>, place: stitch_findings::Span) -> Option<Node<'c>> {
    let mut node = function.node.named_descendant_for_byte_range(place.start, place.end)?;
    while let Some(parent) = node.parent()
        && parent.start_byte() == place.start
        && parent.end_byte() == place.end
    {
        node = parent;
    }
    (node.start_byte() == place.start && node.end_byte() == place.end).then_some(node)
}

/// The one size of `dim3(size)`, of the name of a `dim3` made of one, or of a plain number.
pub fn one_size<'c>(context: &Context<'c>, function: &Function<'c>, node: Node<'c>) -> Option<Node<'c>> {
    let node = bare(node);
    let single = |list: Node<'c>| {
        let is_one = |at: u32| list.named_child(at).is_none_or(|size| context.text(size) == "1");
        list.named_child(0).filter(|_| is_one(1) && is_one(2))
    };
    match Kind::of(node) {
        Kind::Call if context.text(node.child_by_field_name("function")?) == "dim3" => {
            single(node.child_by_field_name("arguments")?)
        }
        Kind::Identifier => {
            let names = &function.walker().names;
            let id = names.resolve(context.text(node), node.start_byte())?;
            let variable = &names.variables[id];
            if variable.class != "dim3" {
                return Some(node);
            }
            let initial = variable.initial.filter(|_| variable.writes.is_empty())?;
            match Kind::of(initial) {
                Kind::Arguments | Kind::InitializerList => single(initial),
                Kind::Call => one_size(context, function, initial),
                _ => Some(initial),
            }
        }
        _ => Some(node),
    }
}

fn constant(value: i64) -> Sum {
    if value == 0 { Sum::new() } else { Sum::from([(Vec::new(), value)]) }
}

/// The value of a sum without names.
fn number(sum: &Sum) -> Option<i64> {
    match sum.len() {
        0 => Some(0),
        1 => sum.get(&Vec::new()).copied(),
        _ => None,
    }
}

fn plus(left: &Sum, right: &Sum, factor: i64) -> Option<Sum> {
    let mut sum = left.clone();
    for (names, count) in right {
        let entry = sum.entry(names.clone()).or_default();
        *entry = entry.checked_add(count.checked_mul(factor)?)?;
    }
    sum.retain(|_, count| *count != 0);
    Some(sum)
}

fn times(left: &Sum, right: &Sum) -> Option<Sum> {
    let mut sum = Sum::new();
    for (one, a) in left {
        for (two, b) in right {
            let mut names = [one.as_slice(), two.as_slice()].concat();
            names.sort_unstable();
            let entry = sum.entry(names).or_default();
            *entry = entry.checked_add(a.checked_mul(*b)?)?;
        }
    }
    sum.retain(|_, count| *count != 0);
    Some(sum)
}

/// Sizes as a function of the host computes them before a launch.
struct Sizes<'s, 'c> {
    context: &'s Context<'c>,
    function: &'s Function<'c>,
    /// The launch.
    at: usize,
}

impl<'c> Sizes<'_, 'c> {
    /// An expression of the kernel, in the names of the launch's function.
    fn of_kernel(&self, kernel: &Function<'c>, launch: &Launch, bound: Node<'c>) -> Option<Sum> {
        let bound = bare(bound);
        let text = self.context.text(bound);
        if let Some((left, operator, right)) = binary(bound) {
            let (left, right) =
                (self.of_kernel(kernel, launch, left)?, self.of_kernel(kernel, launch, right)?);
            return combined(&left, operator, &right);
        }
        match Kind::of(bound) {
            Kind::Number => Some(constant(fold_text(text, &())?)),
            Kind::Identifier => {
                let names = &kernel.walker().names;
                let Some(id) = names.resolve(text, bound.start_byte()) else {
                    return self.outside(text);
                };
                if let Some(initial) = fixed_value(self.context, kernel, bound) {
                    return self.of_kernel(kernel, launch, initial);
                }
                let at = kernel.outline.parameters.iter().position(|parameter| parameter.name == text)?;
                if !names.variables[id].writes.is_empty() {
                    return None;
                }
                if let Some(value) = launch.argument_facts.get(at).and_then(|facts| facts.value) {
                    return Some(constant(value));
                }
                let call = node_at(self.function, launch.span)?;
                let argument = call.child_by_field_name("arguments")?.named_child(u32::try_from(at).ok()?)?;
                self.sum(argument, 0)
            }
            _ => None,
        }
    }

    /// A name from outside the function: a constant, or a variable that is not known to stay the same.
    fn outside(&self, name: &str) -> Option<Sum> {
        self.context.environment.value(name).map(constant)
    }

    fn sum(&self, node: Node<'c>, depth: u32) -> Option<Sum> {
        if depth > MOST_DEPTH {
            return None;
        }
        let node = bare(node);
        let text = self.context.text(node);
        if let Some((left, operator, right)) = binary(node) {
            return combined(&self.sum(left, depth + 1)?, operator, &self.sum(right, depth + 1)?);
        }
        match Kind::of(node) {
            Kind::Number => Some(constant(fold_text(text, &())?)),
            Kind::Cast => {
                let ty =
                    self.context.environment.type_of(self.context.text(node.child_by_field_name("type")?));
                let fits = ty.is_integer() && matches!(ty.bytes(), Some(4 | 8));
                self.sum(node.child_by_field_name("value").filter(|_| fits)?, depth + 1)
            }
            Kind::Field => {
                let argument = node.child_by_field_name("argument")?;
                let scope = Scope::new(self.function.walker(), node.start_byte());
                let axis = ["x", "y", "z"].iter().position(|axis| {
                    node.child_by_field_name("field").is_some_and(|f| self.context.text(f) == *axis)
                })?;
                if let Some(sizes) = scope.dimensions(self.context.text(argument)) {
                    return Some(constant(sizes[axis]));
                }
                let size = one_size(self.context, self.function, argument).filter(|_| axis == 0)?;
                (size != argument).then(|| self.sum(size, depth + 1))?
            }
            Kind::Identifier => {
                let names = &self.function.walker().names;
                let Some(id) = names.resolve(text, node.start_byte()) else { return self.outside(text) };
                if let Some(initial) = fixed_value(self.context, self.function, node)
                    && let Some(sum) = self.sum(initial, depth + 1)
                {
                    return Some(sum);
                }
                let variable = &names.variables[id];
                let is_size =
                    variable.ty.is_integer() && variable.dimensions.is_empty() && !variable.is_reference;
                let stays = !is_written(self.function, text, node.start_byte())
                    || self.is_settled(id, node.start_byte());
                (is_size && stays).then(|| Sum::from([(vec![format!("{text}#{id}")], 1)]))
            }
            _ => None,
        }
    }

    /// Whether a variable that is written to keeps from `at` to the launch what it has there: it is written before, and not
    /// in a loop around the launch.
    fn is_settled(&self, id: usize, at: usize) -> bool {
        let uses = super::uses::uses(self.context, self.function, id);
        let written = uses.into_iter().filter(|node| {
            let mut at = *node;
            while let Some(parent) = at.parent() {
                let is_target = match Kind::of(parent) {
                    Kind::Assignment => parent.child_by_field_name("left") == Some(at),
                    Kind::Update => true,
                    Kind::Pointer => parent.child(0).is_some_and(|o| o.kind() == "&"),
                    // A reference may be taken of an argument, or of a stream's target.
                    Kind::Arguments => false,
                    Kind::Parenthesized => {
                        at = parent;
                        continue;
                    }
                    _ => parent.child_by_field_name("operator").is_some_and(|o| o.kind() == ">>"),
                };
                return is_target;
            }
            false
        });
        let around = |node: Node, place: usize| {
            let mut outer = node.parent();
            while let Some(next) = outer {
                if Kind::of(next).is_loop() && next.start_byte() <= place && place < next.end_byte() {
                    return true;
                }
                outer = next.parent();
            }
            false
        };
        written.into_iter().all(|node| node.end_byte() <= at.min(self.at) && !around(node, self.at))
    }

    /// Whether `grid`, one of the usual ways to round `wanted / block` up, has a block for each rest.
    fn quotient_covers(&self, grid: Node<'c>, block: &Sum, wanted: &Sum) -> Option<bool> {
        let mut grid = bare(grid);
        let mut more = 0i64;
        for _ in 0..MOST_DEPTH {
            if Kind::of(grid) == Kind::Identifier {
                grid = bare(fixed_value(self.context, self.function, grid)?);
            } else if Kind::of(grid) == Kind::Cast {
                let ty = self.context.text(grid.child_by_field_name("type")?);
                let fits = self.context.environment.type_of(ty).is_integer();
                grid = bare(grid.child_by_field_name("value").filter(|_| fits)?);
            } else if let Some((left, "+", right)) = binary(grid) {
                let number_of = |node| self.sum(node, 0).as_ref().and_then(number);
                (grid, more) = match (number_of(left), number_of(right)) {
                    (None, Some(right)) => (bare(left), more + right),
                    (Some(left), None) => (bare(right), more + left),
                    _ => return None,
                };
            } else {
                break;
            }
        }
        if Kind::of(grid) == Kind::Call {
            let name = self.context.text(grid.child_by_field_name("function")?);
            let arguments = grid.child_by_field_name("arguments")?;
            if name.trim_start_matches("std::") == "ceil" {
                return self.ceil_covers(arguments.named_child(0)?, block, wanted, more);
            }
            let rounds = rounds_up(self.context, name) && arguments.named_child_count() == 2;
            let (count, size) = (arguments.named_child(0)?, arguments.named_child(1)?);
            let left = self.sum(count, 0).filter(|_| rounds)?;
            return Some(
                self.sum(size, 0)? == *block
                    && at_least(&plus(&left, wanted, -1)?, wanted, block)
                    && more >= 0,
            );
        }
        let (top, divisor) = match binary(grid)? {
            (top, "/", divisor) => (self.sum(top, 0)?, self.sum(divisor, 0)?),
            (top, ">>", bits) => {
                let bits = number(&self.sum(bits, 0)?).filter(|bits| (0..31).contains(bits))?;
                (self.sum(top, 0)?, constant(1 << bits))
            }
            _ => return None,
        };
        // floor(top / block) + more >= ceil(wanted / block) where top + more * block >= wanted + block - 1.
        let rest =
            plus(&plus(&plus(&top, &times(&constant(more - 1), block)?, 1)?, wanted, -1)?, &constant(1), 1)?;
        let divides = number(wanted).zip(number(block)).is_some_and(|(n, b)| b > 0 && n % b == 0);
        let exact = divides && at_least(&plus(&top, wanted, -1)?, wanted, block);
        Some(divisor == *block && (at_least(&rest, wanted, block) || exact))
    }

    /// `ceil((double)n / block)`; a float may lose the last digits of a large `n`.
    fn ceil_covers(&self, quotient: Node<'c>, block: &Sum, wanted: &Sum, more: i64) -> Option<bool> {
        const EXACT_IN_FLOAT: i64 = 1 << 24;
        let (top, operator, divisor) = binary(quotient)?;
        let as_float = |node: Node<'c>| {
            let node = bare(node);
            let ty = node.child_by_field_name("type").map_or("", |ty| self.context.text(ty));
            let value = node.child_by_field_name("value")?;
            (Kind::of(node) == Kind::Cast && matches!(ty, "float" | "double"))
                .then_some((value, ty == "double"))
        };
        let (count, size, is_double) = match (as_float(top), as_float(divisor)) {
            (Some((count, one)), Some((size, two))) => (count, size, one && two),
            (Some((count, wide)), None) => (count, divisor, wide),
            (None, Some((size, wide))) => (top, size, wide),
            (None, None) if whole_literal(self.context.text(bare(divisor))).is_some() => {
                (top, divisor, false)
            }
            (None, None) => {
                let (count, factor) = match binary(top)? {
                    (one, "*", two) => (one, two),
                    _ => return None,
                };
                let is_one = |node: Node| matches!(self.context.text(node), "1.0" | "1.");
                let count = if is_one(factor) {
                    count
                } else if is_one(count) {
                    factor
                } else {
                    return None;
                };
                (count, divisor, true)
            }
        };
        let count = self.sum(count, 0)?;
        if let Some((literal, is_wide)) = whole_literal(self.context.text(bare(size))) {
            let is_exact = is_wide || is_double || number(&count).is_some_and(|count| count < EXACT_IN_FLOAT);
            let enough = at_least(&plus(&count, wanted, -1)?, wanted, block);
            return Some(operator == "/" && is_exact && more >= 0 && enough && constant(literal) == *block);
        }
        let is_exact = is_double || number(&count).is_some_and(|count| count < EXACT_IN_FLOAT);
        let enough = at_least(&plus(&count, wanted, -1)?, wanted, block);
        Some(operator == "/" && is_exact && more >= 0 && enough && self.sum(size, 0)? == *block)
    }
}

/// A floating literal that is a whole number, and whether it is a double.
fn whole_literal(text: &str) -> Option<(i64, bool)> {
    let (value, ty) = floating_literal(text)?;
    // Blocks are small, so that the number is exact.
    (value.fract() == 0.0 && (1.0..=4096.0).contains(&value)).then_some((value as i64, ty.is_double()))
}

fn combined(left: &Sum, operator: &str, right: &Sum) -> Option<Sum> {
    match operator {
        "+" => plus(left, right, 1),
        "-" => plus(left, right, -1),
        "*" => times(left, right),
        "<<" => {
            let bits = number(right).filter(|bits| (0..31).contains(bits))?;
            times(left, &constant(1 << bits))
        }
        "/" => {
            let (top, divisor) = (number(left)?, number(right).filter(|divisor| *divisor > 0)?);
            Some(constant(top / divisor))
        }
        _ => None,
    }
}

/// Whether a difference is not negative, since all in it is counted up: numbers, and multiples of the sizes, which are positive.
fn at_least(rest: &Sum, wanted: &Sum, block: &Sum) -> bool {
    rest.iter().all(|(names, count)| {
        *count >= 0 && (names.is_empty() || wanted.contains_key(names) || block.contains_key(names))
    })
}

/// Whether a function or macro of the file of two parameters rounds their quotient up, by its text.
fn rounds_up(context: &Context, name: &str) -> bool {
    let (parameters, text) = match context.environment.function_macro(name) {
        Some((parameters, text)) => (parameters.to_vec(), text.to_owned()),
        None => {
            let mut all = context.outline.functions.iter().filter(|f| f.name == name && f.is_definition);
            let Some(function) = all.next().filter(|_| all.next().is_none()) else { return false };
            let body = function.body.and_then(|body| context.source.get(body.range())).unwrap_or("");
            let inner = body.trim_start_matches('{').trim_end_matches('}').trim();
            let Some(text) = inner.strip_prefix("return ") else { return false };
            let names = function.parameters.iter().map(|parameter| parameter.name.clone());
            (names.collect(), text.trim_end_matches(';').to_owned())
        }
    };
    let [one, two] = parameters.as_slice() else { return false };
    let text: String = text.split_whitespace().collect();
    let text = text.replace(&format!("({one})"), one).replace(&format!("({two})"), two);
    let forms =
        [format!("({one}+{two}-1)/{two}"), format!("({one}+({two}-1))/{two}"), format!("({one}-1)/{two}+1")];
    let text = text
        .strip_prefix('(')
        .and_then(|t| t.strip_suffix(')'))
        .filter(|t| forms.iter().any(|f| f == t))
        .unwrap_or(&text);
    forms.iter().any(|form| form == text)
}
