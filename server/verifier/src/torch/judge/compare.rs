//! Whether a candidate's values are the reference's.
//!
//! An element may be off by `T * |expected| + T * min(1, rms)`, where `rms` is the root mean square of the finite expected elements of its tensor. So the
//! rule is never looser than `allclose(atol=T, rtol=T)`, which benchmarks use, and where all values are tiny the allowance is tiny: zeros are no
//! softmax. NaN equals NaN alone, an infinity itself. Integers and truth values are equal or not.

use super::elements::{Element, View, element_in_words, number_at, parts, shape, unravel, with_element};
use super::parallel::{chunks, equal};
use crate::compare::{ArrayComparison, Worst, relative_error};
use crate::torch::values::{Dtype, Tensor, Tree};

/// How far elements may be off.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rule {
    /// The same for every floating type; what is usual for each where it is `None`.
    pub tolerance: Option<f64>,
}

impl Rule {
    /// The tolerance `T` of a type: KernelBench's by precision (`get_tolerance_for_precision`: 1e-4 for fp32, 1e-2 for fp16 and bf16); for fp64
    /// our own, in the same distance from its epsilon.
    pub fn of(&self, dtype: Dtype) -> f64 {
        let usual = match dtype {
            Dtype::Float64 | Dtype::Complex128 => 1e-9,
            Dtype::Float32 | Dtype::Complex64 => 1e-4,
            Dtype::Float16 | Dtype::Bfloat16 => 1e-2,
            _ => return 0.0,
        };
        self.tolerance.unwrap_or(usual)
    }
}

/// One value of an answer, compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Which: `output`, `output[1]["mask"]`.
    pub place: String,
    /// What it should be: `float32 [32, 1024]`.
    pub kind: String,
    /// What was found, element by element.
    pub result: ArrayComparison,
    /// The tolerance that was allowed.
    pub tolerance: f64,
    /// What is another thing altogether, to follow the place: `has shape [3], and should have [4]`.
    pub mismatch: Option<String>,
    /// The worst element in words, where one is outside: `[3, 17]: expected 1, got 2`.
    pub worst: Option<String>,
}

impl Part {
    /// Whether it is as it should be.
    pub fn is_same(&self) -> bool {
        self.mismatch.is_none() && self.result.outside == 0
    }

    /// Whether any of it was compared.
    pub fn is_compared(&self) -> bool {
        self.mismatch.is_none() && self.result.count > 0
    }

    fn new(place: String, kind: String) -> Self {
        Self { place, kind, result: ArrayComparison::default(), tolerance: 0.0, mismatch: None, worst: None }
    }
}

/// A value that is no container, with its place in words.
pub(super) type Leaf<'a> = (String, &'a Tree);

/// The values of a tree that are no containers, in their order.
pub(super) fn leaves<'a>(root: &str, tree: &'a Tree) -> Vec<Leaf<'a>> {
    let mut found = Vec::new();
    let mut open = vec![(root.to_owned(), tree)];
    while let Some((place, tree)) = open.pop() {
        match tree {
            Tree::Tuple { items } | Tree::List { items } => {
                let items = items.iter().enumerate();
                open.extend(items.rev().map(|(index, item)| (format!("{place}[{index}]"), item)));
            }
            Tree::Dict { items } => {
                open.extend(items.iter().rev().map(|(key, item)| (format!("{place}[{key:?}]"), item)));
            }
            Tree::Named { items, .. } => {
                open.extend(items.iter().rev().map(|(field, item)| (format!("{place}.{field}"), item)));
            }
            _ => found.push((place, tree)),
        }
    }
    found
}

/// Compares what the candidate gave with what the reference gave, and with what the reference gave once more under the same inputs. `root` is what
/// messages call the whole: `output`.
pub fn compare(root: &str, expected: View, again: Option<View>, got: View, rule: &Rule) -> Vec<Part> {
    if let Some(mismatch) = structure(root, &expected.values.tree, &got.values.tree) {
        let mut part = Part::new(mismatch.0, kind_of(&expected.values.tree).to_owned());
        part.mismatch = Some(mismatch.1);
        return vec![part];
    }
    let again = again.filter(|again| structure(root, &expected.values.tree, &again.values.tree).is_none());
    let repeated = again.map(|again| leaves(root, &again.values.tree));
    let got_leaves = leaves(root, &got.values.tree);
    leaves(root, &expected.values.tree)
        .into_iter()
        .zip(got_leaves)
        .enumerate()
        .map(|(index, (wanted, (_, found)))| {
            let twin = again.zip(repeated.as_ref().and_then(|leaves| leaves.get(index)).map(|leaf| leaf.1));
            leaf(wanted, (expected, got), found, twin, rule)
        })
        .collect()
}

/// The first place where two values are nested in another way, and how.
fn structure(root: &str, expected: &Tree, got: &Tree) -> Option<(String, String)> {
    let mut open = vec![(root.to_owned(), expected, got)];
    while let Some((place, expected, got)) = open.pop() {
        let (a, b) = (children(expected), children(got));
        if kind_of(expected) != kind_of(got) {
            return Some((place, format!("is {}, and should be {}", kind_of(got), kind_of(expected))));
        }
        let names = |items: &[(String, &Tree)]| items.iter().map(|item| item.0.clone()).collect::<Vec<_>>();
        if names(&a) != names(&b) {
            let how = if matches!(expected, Tree::Dict { .. } | Tree::Named { .. }) {
                format!("has {}, and should have {}", list(&names(&b)), list(&names(&a)))
            } else {
                format!("has {} items, and should have {}", b.len(), a.len())
            };
            return Some((place, how));
        }
        let pairs = a.into_iter().zip(b).rev();
        open.extend(pairs.map(|((name, a), (_, b))| (format!("{place}{name}"), a, b)));
    }
    None
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "nothing in it".to_owned() } else { names.join(", ") }
}

/// The items of a container, each with what its place adds.
fn children(tree: &Tree) -> Vec<(String, &Tree)> {
    match tree {
        Tree::Tuple { items } | Tree::List { items } => {
            items.iter().enumerate().map(|(index, item)| (format!("[{index}]"), item)).collect()
        }
        Tree::Dict { items } => items.iter().map(|(key, item)| (format!("[{key:?}]"), item)).collect(),
        Tree::Named { items, .. } => items.iter().map(|(name, item)| (format!(".{name}"), item)).collect(),
        _ => Vec::new(),
    }
}

fn kind_of(tree: &Tree) -> &'static str {
    match tree {
        Tree::Tensor { .. } => "a tensor",
        Tree::Int { .. } => "an int",
        Tree::Float { .. } => "a float",
        Tree::Bool { .. } => "a bool",
        Tree::Str { .. } => "a str",
        Tree::None => "None",
        Tree::Tuple { .. } => "a tuple",
        Tree::List { .. } => "a list",
        Tree::Dict { .. } => "a dict",
        Tree::Named { .. } => "a named tuple",
    }
}

/// Compares one value that is no container.
fn leaf(
    (place, expected): Leaf,
    (all_expected, all_got): (View, View),
    got: &Tree,
    twin: Option<(View, &Tree)>,
    rule: &Rule,
) -> Part {
    let mut part = Part::new(place, kind_of(expected).to_owned());
    let (Tree::Tensor { i: a }, Tree::Tensor { i: b }) = (expected, got) else {
        scalar(&mut part, expected, got, twin.map(|twin| twin.1), rule);
        return part;
    };
    let (wanted, found) = match (all_expected.tensor(*a), all_got.tensor(*b)) {
        (Ok(wanted), Ok(found)) => (wanted, found),
        (Err(wrong), _) => {
            part.mismatch = Some(format!("of the reference {wrong}"));
            return part;
        }
        (_, Err(wrong)) => {
            part.mismatch = Some(wrong);
            return part;
        }
    };
    part.kind = format!("{} {}", wanted.0.dtype.name(), shape(&wanted.0.shape));
    part.tolerance = rule.of(wanted.0.dtype);
    part.mismatch = other_tensor(wanted.0, found.0);
    if part.mismatch.is_some() {
        return part;
    }
    let again = twin.map(|(view, tree)| match tree {
        Tree::Tensor { i } => view.tensor(*i).ok().filter(|again| other_tensor(wanted.0, again.0).is_none()),
        _ => None,
    });
    match again {
        // The reference itself gives another shape the next time.
        Some(None) => {
            part.result.unsteady = usize::try_from(wanted.0.count().unwrap_or(0)).unwrap_or(usize::MAX)
        }
        Some(Some((_, again))) => {
            part.result = tensors(wanted.0.dtype, wanted.1, Some(again), found.1, part.tolerance)
        }
        None => part.result = tensors(wanted.0.dtype, wanted.1, None, found.1, part.tolerance),
    }
    if let Some(worst) = part.result.worst.as_ref().filter(|_| part.result.outside > 0) {
        let index = unravel(&wanted.0.shape, worst.index);
        part.worst = Some(format!(
            "{}: expected {}, got {}",
            shape(&index),
            element_in_words(wanted.0.dtype, wanted.1, worst.index),
            element_in_words(wanted.0.dtype, found.1, worst.index)
        ));
    }
    part
}

/// What makes a tensor another one before any element is looked at.
fn other_tensor(expected: &Tensor, got: &Tensor) -> Option<String> {
    if expected.shape != got.shape {
        return Some(format!("has shape {}, and should have {}", shape(&got.shape), shape(&expected.shape)));
    }
    if expected.dtype != got.dtype {
        return Some(format!("has dtype {}, and should have {}", got.dtype.name(), expected.dtype.name()));
    }
    match (&expected.device, &got.device) {
        (Some(a), Some(b)) if a != b => Some(format!("lies on {b}, and should lie on {a}")),
        _ => None,
    }
}

fn scalar(part: &mut Part, expected: &Tree, got: &Tree, again: Option<&Tree>, rule: &Rule) {
    let same = |a: &Tree, b: &Tree| match (a, b) {
        (Tree::Float { v: a }, Tree::Float { v: b }) => match (a.parse::<f64>(), b.parse::<f64>()) {
            // Python's floats come from tensors of any type, most of them of 32 bits.
            (Ok(a), Ok(b)) => relative_error(a, b) <= rule.of(Dtype::Float32),
            _ => a == b,
        },
        _ => a == b,
    };
    if again.is_some_and(|again| !same(expected, again)) {
        part.result.unsteady = 1;
        return;
    }
    part.result.count = 1;
    if matches!(expected, Tree::Float { .. }) {
        part.tolerance = rule.of(Dtype::Float32);
    }
    if !same(expected, got) {
        part.result.outside = 1;
        part.worst = Some(format!("expected {}, got {}", value_of(expected), value_of(got)));
    }
}

fn value_of(tree: &Tree) -> String {
    match tree {
        Tree::Int { v } | Tree::Float { v } => v.clone(),
        Tree::Bool { v } => v.to_string(),
        Tree::Str { v } => format!("{v:?}"),
        _ => kind_of(tree).to_owned(),
    }
}

/// The bytes of the expected elements, of the same once more, and of what was got; all of the same length.
type Bytes<'a> = (&'a [u8], Option<&'a [u8]>, &'a [u8]);

/// Compares the elements of two tensors of the same type and shape.
pub(super) fn tensors(
    dtype: Dtype,
    expected: &[u8],
    again: Option<&[u8]>,
    got: &[u8],
    tolerance: f64,
) -> ArrayComparison {
    let bytes = (expected, again, got);
    if equal(expected, got) && again.is_none_or(|again| equal(expected, again)) {
        // Bit by bit the same, which is what most honest repetitions are: nothing is off, and nothing unsteady.
        let size = usize::try_from(dtype.size()).unwrap_or(1);
        return ArrayComparison { count: expected.len() / size, ..ArrayComparison::default() };
    }
    let found = if dtype.is_floating() {
        let scale = with_element!(dtype, E => scale::<E>(expected));
        with_element!(dtype, E => in_parallel(bytes, E::SIZE * parts(dtype), |bytes| floats::<E>(bytes, tolerance, scale)))
    } else {
        let size = usize::try_from(dtype.size()).unwrap_or(1);
        in_parallel(bytes, size, |bytes| exactly(bytes, size))
    };
    let parts = parts(dtype);
    ArrayComparison {
        count: found.count / parts,
        unsteady: found.unsteady / parts,
        outside: found.outside.div_ceil(parts),
        relative: found.worst.map_or(0.0, |worst| worst.relative()),
        normalized: if found.errors == 0.0 { 0.0 } else { (found.errors / found.sizes).sqrt() },
        absolute: found.absolute,
        worst: found.worst.map(|worst| Worst {
            index: worst.at / parts,
            expected: number_at(dtype, expected, worst.at),
            got: number_at(dtype, got, worst.at),
        }),
    }
}

/// `min(1, rms)` of the finite elements; squares that overflow are large enough.
pub(super) fn scale<E: Element>(bytes: &[u8]) -> f64 {
    let sum = |bytes: &[u8]| {
        bytes.chunks_exact(E::SIZE).map(E::read).fold((0.0, 0usize), |(sum, count), value| {
            if value.is_finite() { (sum + value * value, count + 1) } else { (sum, count) }
        })
    };
    let sums = chunks(bytes.len(), E::SIZE, |range| sum(&bytes[range]));
    let (sum, count) = sums.into_iter().fold((0.0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
    #[allow(clippy::cast_precision_loss)]
    if count == 0 { 0.0 } else { (sum / count as f64).sqrt().min(1.0) }
}

/// `min(1, rms)` of a tensor among some values; 1 of what is no floating-point tensor.
pub fn scale_of(view: View, index: usize) -> f64 {
    match view.tensor(index) {
        Ok((tensor, bytes)) if tensor.dtype.is_floating() => {
            with_element!(tensor.dtype, E => scale::<E>(bytes))
        }
        _ => 1.0,
    }
}

/// The element that is off most: its error over what it may be.
#[derive(Clone, Copy, Debug)]
struct Off {
    at: usize,
    error: f64,
    /// `|expected| + min(1, rms)`.
    size: f64,
}

impl Off {
    /// The error over the size: the tolerance at which the element would just pass.
    fn relative(&self) -> f64 {
        if self.error == 0.0 { 0.0 } else { self.error / self.size }
    }

    /// Whether it is off more; without a division, since every element is asked.
    fn more_than(&self, other: &Self) -> bool {
        self.error * other.size > other.error * self.size
            || (self.error.is_infinite() && other.error.is_finite())
    }
}

/// What was found in a part of the elements.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    count: usize,
    unsteady: usize,
    outside: usize,
    errors: f64,
    sizes: f64,
    absolute: f64,
    worst: Option<Off>,
}

impl Found {
    fn join(self, later: Self, shift: usize) -> Self {
        let later_worst = later.worst.map(|worst| Off { at: worst.at + shift, ..worst });
        let worst = match (self.worst, later_worst) {
            (Some(a), Some(b)) => Some(if b.more_than(&a) { b } else { a }),
            (a, b) => a.or(b),
        };
        Self {
            count: self.count + later.count,
            unsteady: self.unsteady + later.unsteady,
            outside: self.outside + later.outside,
            errors: self.errors + later.errors,
            sizes: self.sizes + later.sizes,
            absolute: self.absolute.max(later.absolute),
            worst,
        }
    }
}

/// Floating-point numbers; `scale` is `min(1, rms)`.
fn floats<E: Element>((expected, again, got): Bytes, tolerance: f64, scale: f64) -> Found {
    let mut found = Found::default();
    let mut worst = Off { at: 0, error: 0.0, size: 1.0 };
    let count = expected.len() / E::SIZE;
    for at in 0..count {
        let range = at * E::SIZE..(at + 1) * E::SIZE;
        let wanted = E::read(&expected[range.clone()]);
        let size = wanted.abs() + scale;
        let allowed = tolerance * size;
        if let Some(again) = again
            && !within(wanted, E::read(&again[range.clone()]), allowed)
        {
            found.unsteady += 1;
            continue;
        }
        found.count += 1;
        let value = E::read(&got[range]);
        let error = (wanted - value).abs();
        // Of infinities and NaN, the difference tells nothing.
        if error < f64::INFINITY {
            found.errors += error * error;
            found.sizes += wanted * wanted;
            found.absolute = found.absolute.max(error);
            if error > allowed {
                found.outside += 1;
            }
            let off = Off { at, error, size };
            if off.more_than(&worst) {
                worst = off;
            }
        } else if relative_error(wanted, value) > 0.0 {
            found.outside += 1;
            let off = Off { at, error: f64::INFINITY, size: 1.0 };
            if off.more_than(&worst) {
                worst = off;
            }
        }
    }
    found.worst = (worst.error > 0.0).then_some(worst);
    found
}

/// Whether a number is as expected.
#[inline(always)]
pub(super) fn within(expected: f64, got: f64, allowed: f64) -> bool {
    let error = (expected - got).abs();
    if error < f64::INFINITY { error <= allowed } else { relative_error(expected, got) == 0.0 }
}

/// Elements that are equal or not.
fn exactly((expected, again, got): Bytes, size: usize) -> Found {
    let mut found = Found::default();
    for (at, wanted) in expected.chunks_exact(size).enumerate() {
        let range = at * size..(at + 1) * size;
        if again.is_some_and(|again| again[range.clone()] != *wanted) {
            found.unsteady += 1;
            continue;
        }
        found.count += 1;
        if got[range] != *wanted {
            found.outside += 1;
            found.worst.get_or_insert(Off { at, error: f64::INFINITY, size: 1.0 });
        }
    }
    found
}

fn in_parallel(bytes: Bytes, unit: usize, work: impl Fn(Bytes) -> Found + Sync) -> Found {
    let (expected, again, got) = bytes;
    let parts = chunks(expected.len(), unit, |range| {
        let part = (&expected[range.clone()], again.map(|again| &again[range.clone()]), &got[range.clone()]);
        work(part)
    });
    let mut joined = Found::default();
    for part in parts {
        // Numbers before this chunk: all of them were counted, or left out.
        let shift = joined.count + joined.unsteady;
        joined = joined.join(part, shift);
    }
    joined
}

#[cfg(test)]
mod tests;
