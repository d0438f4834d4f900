//! How the value of an expression follows from those of its parts.

use tree_sitter::Node;

use super::constants::{Constants, fold_text};
use super::index::{Coefficient, Index};
use super::kind::{Field, Kind};
use super::operators;
use super::types::{Type, floating_literal};
use super::value::{Base, Memory, Value};
use super::walk::{Entry, Walker};

impl<'t> Walker<'t> {
    /// The value of `node`, whose children's values are known.
    pub(super) fn evaluate(&mut self, node: Node<'t>, kind: Kind, children: &[Entry<'t>]) -> Value {
        match kind {
            Kind::Identifier => self.identifier(node),
            Kind::InitializerList if children.len() == 1 => children[0].value.loaded(),
            Kind::Qualified => self.constant_named(self.text(node)).unwrap_or(Value::UNKNOWN),
            Kind::Number => number(self.text(node)),
            Kind::Field => self.field(node, children),
            Kind::Parenthesized | Kind::ConditionClause => {
                children.last().map_or(Value::UNKNOWN, |entry| entry.value)
            }
            Kind::Comma => children.last().map_or(Value::UNKNOWN, |entry| entry.value.loaded()),
            Kind::Binary => self.binary(node, children),
            Kind::Unary => self.unary(node, children),
            Kind::Cast => {
                let ty = node.child_by_field_name("type").map_or("", |ty| self.text(ty));
                let value = by_field(children, Field::Value).map_or(Value::UNKNOWN, |entry| entry.value);
                self.cast(self.environment.type_of(ty), value)
            }
            Kind::Sizeof => {
                // Of a template's type, it is as little known as a template's number.
                let unknown = Value::of(Type::INT, Index { template: true, ..Index::UNIFORM });
                fold_text(self.text(node), self.environment).map_or(unknown, Value::integer)
            }
            Kind::Conditional => {
                match (by_field(children, Field::Consequence), by_field(children, Field::Alternative)) {
                    (Some(first), Some(second)) => first.value.loaded().joined(second.value.loaded()),
                    _ => Value::UNKNOWN,
                }
            }
            Kind::Subscript => self.subscript(node, children),
            Kind::Pointer => self.pointer(node, children),
            Kind::Call => self.call(node, children),
            Kind::Assignment => self.assignment(node, children),
            Kind::Update => children.first().map_or(Value::UNKNOWN, |entry| entry.value.loaded()),
            Kind::InitDeclarator => {
                self.declare(node, children);
                Value::UNKNOWN
            }
            Kind::Return => {
                self.returned(children);
                Value::UNKNOWN
            }
            _ => Value::UNKNOWN,
        }
    }

    fn identifier(&mut self, node: Node<'t>) -> Value {
        let name = self.text(node);
        if let Some(id) = self.names.resolve(name, node.start_byte()) {
            // A declarator ends where the name becomes visible, so it is no use of it.
            self.used[id] = true;
            return self.variable(id);
        }
        if let Some(parameter) =
            self.function.template_parameters.iter().find(|parameter| parameter.name == name)
        {
            return match self.template_value(name) {
                Some(value) => Value::integer(value),
                None => Value::of(Type::parse(&parameter.kind), Index { template: true, ..Index::UNIFORM }),
            };
        }
        self.constant_named(name).unwrap_or_else(|| self.global(name))
    }

    fn constant_named(&self, name: &str) -> Option<Value> {
        if name == "warpSize" {
            return Some(Value::integer(super::index::WARP));
        }
        if let Some(value) = self.environment.value(name) {
            return Some(Value::integer(value));
        }
        let (value, ty) = self.environment.floating(name)?;
        Some(Value { literal: Some(value), ..Value::uniform(ty) })
    }

    /// A variable outside the function.
    fn global(&self, name: &str) -> Value {
        let Some(global) = self.environment.global(name) else { return Value::UNKNOWN };
        let base = Base { memory: global.memory, variable: None, dimensions_left: 0 };
        if global.ty.pointers > 1 {
            return Value::of(global.ty, Index::UNKNOWN);
        }
        let index = if global.memory == Memory::Unknown { Index::UNKNOWN } else { Index::UNIFORM };
        Value { base, ..Value::of(global.ty, index) }
    }

    fn field(&mut self, node: Node<'t>, children: &[Entry<'t>]) -> Value {
        let (Some(argument), Some(field)) =
            (by_field(children, Field::Argument), node.child_by_field_name("field"))
        else {
            return Value::UNKNOWN;
        };
        let axis = self.text(field);
        let one = Coefficient::Number(1);
        match self.text(argument.node) {
            "threadIdx" => match axis {
                "x" => Value::of(Type::INT, Index { x: one, ..Index::UNIFORM }),
                "y" => Value::of(Type::INT, Index { y: one, ..Index::UNIFORM }),
                "z" => Value::of(Type::INT, Index { z: one, ..Index::UNIFORM }),
                _ => Value::UNKNOWN,
            },
            "blockIdx" => Value::of(Type::INT, Index { block: true, ..Index::UNIFORM }),
            "blockDim" => Value::of(Type::INT, Index { width: true, ..Index::UNIFORM }),
            "gridDim" => Value::uniform(Type::INT),
            _ => {
                let value = argument.value.loaded();
                let index = if value.index.is_uniform() {
                    Index { offset: 0, ..value.index }
                } else {
                    Index::UNKNOWN
                };
                let ty = match axis {
                    "x" | "y" | "z" | "w" if value.ty.lanes > 1 => value.ty.component(),
                    _ => self.member(argument.node, axis),
                };
                Value::of(ty, index)
            }
        }
    }

    /// The type of a member of a struct of this file: `q.m`, `q[i].m`, `q->m`.
    fn member(&self, object: Node<'t>, member: &str) -> Type {
        let mut object = object;
        while let Kind::Subscript | Kind::Pointer | Kind::Parenthesized = Kind::of(object)
            && let Some(inner) = object.child_by_field_name("argument").or_else(|| object.named_child(0))
        {
            object = inner;
        }
        match self.names.resolve(self.text(object), object.start_byte()) {
            Some(id) => self.environment.member(self.names.variables[id].class, member),
            None => Type::UNKNOWN,
        }
    }

    fn unary(&mut self, node: Node<'t>, children: &[Entry<'t>]) -> Value {
        let Some(argument) = children.last().map(|entry| entry.value.loaded()) else { return Value::UNKNOWN };
        match node.child_by_field_name("operator").map_or("", |operator| operator.kind()) {
            "-" => Value {
                ty: argument.ty,
                index: argument.index.negative(),
                constant: argument.constant.and_then(i64::checked_neg),
                literal: argument.literal.map(|value| -value),
                double_use: argument.double_use,
                ..Value::UNKNOWN
            },
            "+" => argument,
            "~" => Value {
                constant: argument.constant.map(|value| !value),
                ..only_uniform(argument.ty, argument.index)
            },
            "!" => {
                if argument.index.varies() && !argument.is_judged {
                    self.facts.is_guarded = true;
                }
                if let Some(tested) = children.last() {
                    self.tested_for_zero(node, tested.node, false);
                }
                Value {
                    is_judged: argument.is_judged,
                    constant: argument.constant.map(|value| i64::from(value == 0)),
                    selects_few: argument.spares_few
                        || (argument.ty.is_integer() && !argument.index.is_uniform()),
                    spares_few: argument.selects_few,
                    lanes: argument.lanes.otherwise(),
                    ..only_uniform(Type::INT, argument.index)
                }
            }
            _ => Value::UNKNOWN,
        }
    }

    fn binary(&mut self, node: Node<'t>, children: &[Entry<'t>]) -> Value {
        let (Some(left_entry), Some(right_entry)) =
            (by_field(children, Field::Left), by_field(children, Field::Right))
        else {
            return Value::UNKNOWN;
        };
        let (left, right) = (left_entry.value.loaded(), right_entry.value.loaded());
        let operator = node.child_by_field_name("operator").map_or("", |operator| operator.kind());
        let pair = ((left_entry.node, left), (right_entry.node, right));
        let mut value = match operator {
            "+" if left.ty.pointers > 0 || right.ty.pointers > 0 => {
                return offset_pointer(left, right, false);
            }
            "-" if left.ty.pointers > 0 => return offset_pointer(left, right, true),
            "<" | ">" | "<=" | ">=" | "==" | "!=" | "&&" | "||" => {
                if matches!(operator, "==" | "!=") {
                    let tested = match (left.constant, right.constant) {
                        (_, Some(0)) => Some(left_entry.node),
                        (Some(0), _) => Some(right_entry.node),
                        _ => None,
                    };
                    if let Some(tested) = tested {
                        self.tested_for_zero(node, tested, operator == "!=");
                    }
                }
                return self.condition_of(operator, pair.0, pair.1, node);
            }
            _ => operators::integer(operator, pair.0, pair.1),
        };
        if matches!(operator, "%" | "&") {
            self.wrapped(left);
            self.remainder_of_thread(node, operator, left, pair.1);
            if self.parent().is_some_and(|(kind, _)| kind == Kind::ConditionClause) {
                self.tested_for_zero(node, node, true);
            }
        }
        value.ty = left.ty.arithmetic(right.ty);
        if !value.ty.is_integer() && value.ty != Type::UNKNOWN {
            value.index = only_uniform(value.ty, value.index).index;
            value.constant = None;
            value.literal = operators::floating(operator, left, right);
            value.double_use = self.mixed(node, pair.0, pair.1);
        }
        value
    }

    /// A comparison or a connection of two.
    fn condition_of(
        &mut self,
        operator: &str,
        (left_node, left): (Node<'t>, Value),
        (right_node, right): (Node<'t>, Value),
        node: Node<'t>,
    ) -> Value {
        let index = only_uniform(Type::INT, left.index.plus(right.index)).index;
        let mut value = Value::of(Type::INT, index);
        match operator {
            "&&" => {
                value.is_judged = left.is_judged && right.is_judged;
                value.selects_few = left.selects_few || right.selects_few;
                value.spares_few = left.spares_few && right.spares_few;
                value.lanes = left.lanes.and(right.lanes);
                return value;
            }
            "||" => {
                value.is_judged = left.is_judged && right.is_judged;
                value.selects_few = left.selects_few && right.selects_few;
                value.spares_few = left.spares_few || right.spares_few;
                value.lanes = left.lanes.or(right.lanes);
                return value;
            }
            _ => {}
        }
        value.is_judged = true;
        if is_guard(operator, left, right) || is_guard(operator, right, left) {
            self.facts.is_guarded = true;
        }
        let limit = match operator {
            "<" | "!=" => right.constant,
            "<=" => right.constant.and_then(|last| last.checked_add(1)),
            _ => None,
        };
        if let Some(limit) = limit
            && let Some(id) = self.names.resolve(self.text(left_node), left_node.start_byte())
        {
            let id = u32::try_from(id).unwrap_or(u32::MAX);
            self.facts.limits.entry(id).and_modify(|most| *most = limit.max(*most)).or_insert(limit);
        }
        let differs = !left.index.is_uniform() || !right.index.is_uniform();
        match operator {
            "==" => value.selects_few = differs,
            "!=" => value.spares_few = differs,
            "<" => value.selects_few = differs && right.constant.is_some_and(|count| count <= i64::from(FEW)),
            ">" => value.selects_few = differs && left.constant.is_some_and(|count| count <= i64::from(FEW)),
            ">=" => value.spares_few = differs && right.constant.is_some_and(|count| count <= i64::from(FEW)),
            _ => {}
        }
        value.lanes = self.lanes_of(operator, (left_node, left), (right_node, right));
        self.compared(node, (left_node, left), (right_node, right));
        value
    }

    /// Notes that a value is kept within bounds by `%` or `&`.
    fn wrapped(&mut self, value: Value) {
        if value.index.varies() {
            self.facts.is_guarded = true;
        }
    }
}

/// Whether comparing a value with another may keep the thread's global index within bounds. The thread's number in its
/// block, compared with a constant or with what halves in a loop, picks threads of the block: the steps of a reduction.
fn is_guard(operator: &str, value: Value, other: Value) -> bool {
    let in_block = !value.index.is_unknown() && !value.index.block && !value.index.is_uniform();
    let picks = operator == "==" || other.constant.is_some() || other.index.looped;
    value.index.varies() && !(in_block && picks && other.index.is_uniform())
}

/// A branch that at most so many threads of a warp take says nothing about how a warp accesses memory.
pub const FEW: u8 = 4;

/// The child in a field.
pub fn by_field<'e, 't>(children: &'e [Entry<'t>], field: Field) -> Option<&'e Entry<'t>> {
    children.iter().find(|entry| entry.field == Some(field))
}

/// A value whose dependence is known only where it does not depend on the thread.
pub fn only_uniform(ty: Type, index: Index) -> Value {
    if index.is_uniform() {
        Value::of(ty, Index { offset: 0, ..index })
    } else {
        Value::of(ty, Index { block: index.block, ..Index::UNKNOWN })
    }
}

/// A pointer, moved.
fn offset_pointer(left: Value, right: Value, backwards: bool) -> Value {
    let (pointer, by) = if left.ty.pointers > 0 { (left, right) } else { (right, left) };
    if by.ty.pointers > 0 || pointer.base.dimensions_left > 1 {
        return Value::of(if by.ty.pointers > 0 { Type::INT } else { pointer.ty }, Index::UNKNOWN);
    }
    let by = if backwards { by.index.negative() } else { by.index };
    let base = Base { dimensions_left: 0, ..pointer.base };
    Value { base, ..Value::of(pointer.ty, pointer.index.plus(by)) }
}

fn number(text: &str) -> Value {
    if let Some((value, ty)) = floating_literal(text) {
        return Value { literal: Some(value), ..Value::uniform(ty) };
    }
    fold_text(text, &()).map_or(Value::uniform(Type::UNKNOWN), Value::integer)
}
