//! Where a double literal drags float arithmetic to double.
//!
//! A use is noted at the operation and followed to where its result goes: a double variable means that double is wanted,
//! another operation means that the compiler can't undo the promotion.

use tree_sitter::Node;

use super::facts::{DoubleUse, Power};
use super::kind::Kind;
use super::types::{Maths, Type};
use super::value::Value;
use super::walk::{Entry, Walker};
use crate::outline::FunctionKind;

impl<'t> Walker<'t> {
    /// Whether the function can run on the device.
    pub(super) fn is_device_code(&self) -> bool {
        self.function.kind != FunctionKind::Host
    }

    /// Arithmetic on two numbers of which one at least is floating; returns the use that its result carries.
    pub(super) fn mixed(
        &mut self,
        node: Node<'t>,
        left: (Node<'t>, Value),
        right: (Node<'t>, Value),
    ) -> Option<u32> {
        if !self.is_device_code() || left.1.number().is_some() && right.1.number().is_some() {
            return None;
        }
        let uses = [left.1.double_use, right.1.double_use];
        uses.into_iter().flatten().for_each(|id| self.double_use(id, |used| used.is_foldable = false));
        match uses {
            [Some(first), Some(second)] => {
                self.double_use(second, |used| used.joined = Some(first));
                return Some(first);
            }
            [Some(id), None] | [None, Some(id)] => {
                let other = if uses[0].is_some() { right.1 } else { left.1 };
                if other.ty.is_double() && other.literal.is_none() {
                    self.double_use(id, |used| used.is_wanted = true);
                }
                return Some(id);
            }
            [None, None] => {}
        }
        self.literal_against(left, right)
            .map(|(literal, value)| self.note_double(node, literal, is_float_exact(value)))
    }

    /// A comparison of two numbers.
    pub(super) fn compared(&mut self, node: Node<'t>, left: (Node<'t>, Value), right: (Node<'t>, Value)) {
        if !self.is_device_code() {
            return;
        }
        for (used, other) in [(left.1, right.1), (right.1, left.1)] {
            if let Some(id) = used.double_use {
                let wanted = other.ty.is_double() && other.literal.is_none() && other.double_use.is_none();
                self.double_use(id, |used| {
                    (used.is_foldable, used.is_wanted) = (false, used.is_wanted || wanted)
                });
            }
        }
        if let Some((literal, value)) = self.literal_against(left, right)
            && !is_float_exact(value)
        {
            self.note_double(node, literal, false);
        }
    }

    /// The double literal of a pair whose other part is a float variable.
    fn literal_against(&self, left: (Node<'t>, Value), right: (Node<'t>, Value)) -> Option<(Node<'t>, f64)> {
        let float = |value: Value| value.ty.is_float() && value.literal.is_none();
        match (left.1, right.1) {
            (literal, other) if literal.is_double_literal() && float(other) => {
                Some((left.0, literal.literal?))
            }
            (other, literal) if literal.is_double_literal() && float(other) => {
                Some((right.0, literal.literal?))
            }
            _ => None,
        }
    }

    fn note_double(&mut self, node: Node<'t>, literal: Node<'t>, is_foldable: bool) -> u32 {
        self.facts.doubles.push(DoubleUse { node, literal, is_foldable, is_wanted: false, joined: None });
        u32::try_from(self.facts.doubles.len() - 1).unwrap_or(u32::MAX)
    }

    fn double_use(&mut self, id: u32, change: impl FnOnce(&mut DoubleUse<'t>)) {
        if let Some(used) = self.facts.doubles.get_mut(id as usize) {
            change(used);
        }
    }

    /// A value goes to something of type `target`.
    pub(super) fn goes_to(&mut self, value: Value, target: Type) {
        if let Some(id) = value.double_use {
            if target.is_integer() {
                self.double_use(id, |used| used.is_foldable = false);
            } else if !target.is_float() {
                self.double_use(id, |used| used.is_wanted = true);
            }
        }
    }

    /// `return value;`
    pub(super) fn returned(&mut self, children: &[Entry<'t>]) {
        let target = if self.lambdas == 0 { self.returns } else { Type::UNKNOWN };
        if let Some(entry) = children.last() {
            self.goes_to(entry.value.loaded(), target);
        }
    }

    /// A call of the maths library; returns its result.
    pub(super) fn maths_call(
        &mut self,
        node: Node<'t>,
        name: &'t str,
        kind: Maths,
        arguments: &[Entry<'t>],
    ) -> Value {
        self.power(node, name, arguments);
        let used = self.mixed_call(node, name, arguments);
        if kind == Maths::Float {
            return Value::of(Type::FLOAT, super::index::Index::UNKNOWN);
        }
        let mut ty = arguments.first().map_or(Type::UNKNOWN, |entry| entry.value.ty);
        for entry in arguments.iter().skip(1) {
            ty = ty.arithmetic(entry.value.ty);
        }
        if ty.is_integer() && !matches!(name, "min" | "max" | "abs") {
            ty = Type::DOUBLE;
        }
        let mut result = Value { double_use: used, ..Value::of(ty, super::index::Index::UNKNOWN) };
        for entry in arguments {
            if let Some(id) = entry.value.double_use {
                self.double_use(id, |used| used.is_foldable = false);
                result.double_use = result.double_use.or(Some(id));
            }
        }
        result
    }

    /// `fmax(x, 0.01)`: the overload for a float and a double is the one for doubles. The compiler leaves it so, also where
    /// the literal is exact (nvcc 13.5).
    fn mixed_call(&mut self, node: Node<'t>, name: &str, arguments: &[Entry<'t>]) -> Option<u32> {
        let [left, right] = arguments else { return None };
        let is_promoted =
            matches!(name, "fmax" | "fmin" | "max" | "min" | "fmod" | "pow" | "atan2" | "hypot" | "fdim");
        let is_template =
            node.child_by_field_name("function").is_some_and(|callee| self.text(callee).contains('<'));
        if !self.is_device_code() || !is_promoted || is_template {
            return None;
        }
        let pair = ((left.node, left.value.loaded()), (right.node, right.value.loaded()));
        let (literal, value) = self.literal_against(pair.0, pair.1)?;
        // Which has a rule of its own.
        (name != "pow" || !is_float_exact(value)).then(|| self.note_double(node, literal, false))
    }

    fn power(&mut self, node: Node<'t>, name: &'t str, arguments: &[Entry<'t>]) {
        let [base, exponent] = arguments else { return };
        if !self.is_device_code()
            || !matches!(name, "pow" | "powf" | "__powf")
            || base.value.number().is_some()
        {
            return;
        }
        // A local constant has a name since it may be changed.
        let is_named = Kind::of(exponent.node) == Kind::Identifier
            && self.names.resolve(self.text(exponent.node), exponent.node.start_byte()).is_some();
        let exponent_type = exponent.value.loaded().ty;
        if let Some(exponent) = exponent.value.number().filter(|_| !is_named) {
            let base_type = base.value.loaded().ty;
            self.facts.powers.push(Power { node, name, base: base.node, base_type, exponent_type, exponent });
        }
    }
}

/// Whether a float holds the value without loss.
fn is_float_exact(value: f64) -> bool {
    // The cast is the conversion that is asked about.
    f64::from(value as f32) == value
}
