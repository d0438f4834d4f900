//! Variables, pointers and arrays: where they point, and which element is read or written.

use smallvec::SmallVec;
use tree_sitter::Node;

use super::constants::{Constants, fold};
use super::evaluate::{FEW, by_field, only_uniform};
use super::facts::Access;
use super::index::{Index, Step};
use super::kind::{Field, Kind};
use super::names::{Storage, Write, declared_view};
use super::scope::Scope;
use super::types::Type;
use super::value::{Base, Memory, Value, advance};
use super::walk::{Entry, Walker};
use crate::outline::FunctionKind;

/// How many nodes of an expression are looked at to see whether it is the same for all threads.
const MOST_NODES: usize = 64;

impl<'t> Walker<'t> {
    /// The value of the variable with this number.
    pub(super) fn variable(&mut self, id: usize) -> Value {
        if let Some(value) = self.settled[id] {
            return value;
        }
        let variable = &self.names.variables[id];
        let number = u32::try_from(id).ok();
        let is_array = !variable.dimensions.is_empty() && !variable.is_view;
        let memory = match variable.storage {
            Storage::Parameter if self.function.kind == FunctionKind::Kernel => Memory::Global,
            Storage::Parameter => Memory::Unknown,
            Storage::Shared => Memory::Shared,
            Storage::Static => Memory::Constant,
            Storage::Local if is_array => Memory::Local,
            Storage::Local => return Value::of(variable.ty, Index::UNKNOWN),
        };
        let dimensions_left = u8::try_from(variable.dimensions.len()).unwrap_or(u8::MAX);
        let base = Base { memory, variable: number, dimensions_left };
        let ty = variable.ty;
        let is_parameter = variable.storage == Storage::Parameter;
        let index = if is_parameter && memory != Memory::Global { Index::UNKNOWN } else { Index::UNIFORM };
        let value = if ty.pointers > 0 {
            Value { base, ..Value::of(ty, Index::UNIFORM) }
        } else if is_parameter {
            Value::of(ty, index)
        } else {
            return Value::of(ty, Index::UNKNOWN);
        };
        self.settle(id, value)
    }

    /// Fixes the value of a variable that starts as `initial`, by what is written to it later.
    fn settle(&mut self, id: usize, initial: Value) -> Value {
        let variable = &self.names.variables[id];
        let mut value = initial;
        if !variable.writes.is_empty() {
            let unit = variable.writes.iter().all(|write| matches!(write, Write::Step));
            let adds = variable.writes.iter().filter(|write| matches!(write, Write::Add(_))).count();
            // Two loops over one variable, as a vector loop and its rest, leave unknown where the second starts.
            let moved_only = (unit || adds == variable.writes.len())
                && variable.writes.iter().all(|write| match write {
                    Write::Step => true,
                    Write::Add(by) => self.is_uniform(*by, id),
                    Write::Set(_) | Write::Combine(_) | Write::Member(..) | Write::Other => false,
                });
            let stays_uniform = || {
                initial.index.is_uniform()
                    && initial.ty.pointers == 0
                    && variable.writes.iter().all(|write| match write {
                        Write::Step => true,
                        Write::Add(by) | Write::Set(by) | Write::Combine(by) => self.is_uniform(*by, id),
                        Write::Member(..) | Write::Other => false,
                    })
            };
            let step = match u32::try_from(id) {
                Ok(id) if unit => Step::Variable(id),
                _ => Step::Many,
            };
            value.constant = None;
            value.literal = None;
            value.index = if moved_only {
                Index { looped: true, step, ..initial.index }
            } else if stays_uniform() {
                Index { looped: true, step: Step::Many, offset: 0, ..initial.index }
            } else {
                Index::UNKNOWN
            };
        }
        self.settled[id] = Some(value);
        value
    }

    /// Whether an expression, which may not be evaluated yet, is surely the same for all threads.
    fn is_uniform(&self, expression: Node<'t>, own: usize) -> bool {
        let mut pending: SmallVec<[Node<'t>; 16]> = SmallVec::new();
        pending.push(expression);
        let mut seen = 0;
        while let Some(node) = pending.pop() {
            seen += 1;
            if seen > MOST_NODES {
                return false;
            }
            match Kind::of(node) {
                Kind::Number | Kind::Sizeof => continue,
                Kind::Identifier => {
                    if !self.is_uniform_name(self.text(node), node.start_byte(), own) {
                        return false;
                    }
                    continue;
                }
                Kind::Binary
                | Kind::Unary
                | Kind::Parenthesized
                | Kind::Cast
                | Kind::Conditional
                | Kind::Field => {}
                Kind::Other if matches!(node.kind(), "type_descriptor" | "field_identifier") => continue,
                _ => return false,
            }
            let mut cursor = node.walk();
            pending.extend(node.named_children(&mut cursor));
        }
        true
    }

    fn is_uniform_name(&self, name: &str, at: usize, own: usize) -> bool {
        if let Some(id) = self.names.resolve(name, at) {
            let variable = &self.names.variables[id];
            let kernel_parameter = variable.storage == Storage::Parameter
                && self.function.kind == FunctionKind::Kernel
                && variable.ty.pointers == 0;
            return id == own
                || self.settled[id].is_some_and(|value| value.index.is_uniform() && value.ty.pointers == 0)
                || (kernel_parameter && variable.writes.is_empty());
        }
        matches!(name, "blockDim" | "gridDim" | "blockIdx" | "warpSize")
            || self.function.template_parameters.iter().any(|parameter| parameter.name == name)
            || self.environment.value(name).is_some()
    }

    /// `type name = value` or `type name(value)`.
    pub(super) fn declare(&mut self, node: Node<'t>, children: &[Entry<'t>]) {
        let mut name = node;
        while let Some(inner) = name.child_by_field_name("declarator").or_else(|| inner_name(name)) {
            name = inner;
        }
        let Some(id) = self.names.resolve(self.text(name), node.end_byte()) else { return };
        let entry = children.last().filter(|entry| entry.field != Some(Field::Declarator));
        let mut value = entry.map_or(Value::UNKNOWN, |entry| entry.value.loaded());
        // `dim3 block(x, y)` is not its last argument.
        if node.child_by_field_name("value").is_some_and(|list| {
            matches!(Kind::of(list), Kind::Arguments | Kind::InitializerList) && list.named_child_count() != 1
        }) {
            value = Value::UNKNOWN;
        }
        let variable = &self.names.variables[id];
        let (ty, is_auto) = (variable.ty, variable.is_auto);
        if variable.is_view {
            self.view(id, value);
            return;
        }
        if !variable.dimensions.is_empty() || variable.is_reference && !variable.writes.is_empty() {
            return;
        }
        let target = if is_auto { value.ty } else { ty };
        self.goes_to(value, if is_auto { Type::UNKNOWN } else { target });
        let held = if is_auto { value } else { self.held(ty, value) };
        self.settle(id, Value { double_use: None, ..held });
    }

    /// `float (*rows)[32] = array`: other names for the rows of an array.
    fn view(&mut self, id: usize, array: Value) {
        let variable = &self.names.variables[id];
        let (Ok(number), Ok(dimensions_left)) = (u32::try_from(id), u8::try_from(variable.dimensions.len()))
        else {
            return;
        };
        if array.ty.pointers > 0 && array.index.is_uniform() && variable.writes.is_empty() {
            let base = Base { memory: array.base.memory, variable: Some(number), dimensions_left };
            let ty = variable.ty;
            self.settled[id] = Some(Value { base, ..Value::of(ty, Index { offset: 0, ..array.index }) });
        }
    }

    /// `target = value` and its kin.
    pub(super) fn assignment(&mut self, node: Node<'t>, children: &[Entry<'t>]) -> Value {
        let (Some(left), Some(right)) = (by_field(children, Field::Left), by_field(children, Field::Right))
        else {
            return Value::UNKNOWN;
        };
        let value = right.value.loaded();
        if let Some(view) = declared_view(node) {
            if let Some(id) = self.names.resolve(self.text(view.name), node.end_byte()) {
                self.view(id, value);
            }
            return Value::UNKNOWN;
        }
        let target = left.value.ty;
        let operator = node.child_by_field_name("operator").map_or("", |operator| operator.kind());
        if matches!(operator, "+=" | "-=" | "*=" | "/=") {
            let used = self.mixed(node, (left.node, left.value.loaded()), (right.node, value));
            self.goes_to(Value { double_use: used, ..Value::UNKNOWN }, target);
        } else {
            self.goes_to(value, target);
        }
        if operator == "="
            && Kind::of(left.node) == Kind::Identifier
            && let Some(id) = self.names.resolve(self.text(left.node), left.node.start_byte())
        {
            self.first_set(id, value);
        }
        Value { double_use: None, ..converted(value, target) }
    }

    /// A variable declared without a value gets its first one.
    fn first_set(&mut self, id: usize, value: Value) {
        let variable = &mut self.names.variables[id];
        let is_settled = self.settled[id].is_some() || variable.initial.is_some();
        if is_settled || variable.storage != Storage::Local || !variable.dimensions.is_empty() {
            return;
        }
        if variable.writes.iter().filter(|write| matches!(write, Write::Set(_))).count() == 1 {
            variable.writes.retain(|write| !matches!(write, Write::Set(_)));
        }
        let ty = variable.ty;
        let held = self.held(ty, value);
        self.settle(id, Value { double_use: None, ..held });
    }

    /// What a variable of type `ty` holds after it is set to a value. Without a cast, pointers agree on what they point to.
    fn held(&mut self, ty: Type, value: Value) -> Value {
        match (ty.pointers, value.ty.pointers) {
            (0, _) => converted(value, ty),
            (_, 0) => Value::of(ty, Index::UNKNOWN),
            _ if value.base.dimensions_left <= 1 => {
                Value { base: Base { dimensions_left: 0, ..value.base }, ..Value::of(ty, value.index) }
            }
            _ => self.cast(ty, value),
        }
    }

    /// A value, made a `ty`.
    pub(super) fn cast(&mut self, ty: Type, value: Value) -> Value {
        let value = value.loaded();
        if ty.pointers == 0 {
            self.goes_to(value, ty);
            return Value { double_use: None, ..converted(value, ty) };
        }
        if value.ty.pointers == 0 {
            return Value::of(ty, Index::UNKNOWN);
        }
        let index = match (value.ty.pointee().bytes(), ty.pointee().bytes()) {
            (Some(from), Some(to)) if value.base.dimensions_left <= 1 => {
                if to > from {
                    self.facts.recast.extend(value.base.variable);
                }
                value.index.rescaled(from, to)
            }
            (from, to) => {
                if from.is_none() || to.is_none() {
                    self.facts.recast.extend(value.base.variable);
                }
                if value.index.is_uniform() { value.index } else { Index::UNKNOWN }
            }
        };
        Value { base: Base { dimensions_left: 0, ..value.base }, ..Value::of(ty, index) }
    }

    /// `array[index]`.
    pub(super) fn subscript(&mut self, node: Node<'t>, children: &[Entry<'t>]) -> Value {
        let [array, index] = children else { return Value::UNKNOWN };
        let (array, index) = (array.value, index.value.loaded());
        if array.ty.pointers == 0 {
            return Value::UNKNOWN;
        }
        let array = array.loaded();
        let left = array.base.dimensions_left.saturating_sub(1);
        let place = advance(array.index, index.index, self.stride(array.base, left));
        let base = Base { dimensions_left: left, ..array.base };
        let element = array.ty.pointee();
        self.place(node, base, place, element)
    }

    /// How many elements a step along an array is when `left` dimensions remain after it.
    fn stride(&self, base: Base, left: u8) -> Option<i64> {
        if left == 0 {
            return Some(1);
        }
        let variable = self.names.variables.get(base.variable? as usize)?;
        let inner = variable.dimensions.len().checked_sub(usize::from(left))?;
        variable.dimensions[inner..].iter().try_fold(1i64, |product, size| {
            let size = (*size)?;
            product.checked_mul(fold(size, self.source, &Scope::new(self, size.start_byte()))?)
        })
    }

    /// An element in memory: notes the access, unless only its address is taken.
    pub(super) fn place(&mut self, node: Node<'t>, base: Base, index: Index, element: Type) -> Value {
        if base.dimensions_left > 0 {
            return Value { base, ..Value::of(element, index) };
        }
        if element.pointers == 0 {
            let (parent, parent_node) = self.parent().unwrap_or((Kind::Other, node));
            let is_address =
                parent == Kind::Pointer && parent_node.child(0).is_some_and(|first| first.kind() == "&");
            let is_store = match parent {
                Kind::Assignment => parent_node.child_by_field_name("left") == Some(node),
                Kind::Update => true,
                _ => false,
            };
            if self.is_reinterpreted() {
                self.facts.recast.extend(base.variable);
            } else if !is_address {
                self.access(node, base, index, element, is_store);
            }
        }
        Value { base, is_place: true, ..Value::of(element, index) }
    }

    /// Whether the place at hand is handed to a macro that takes its address and makes it another type's: `FLOAT4(a[i])`. One
    /// that is defined elsewhere is known by its name.
    fn is_reinterpreted(&self) -> bool {
        let callee = self.call_around().and_then(|call| call.child_by_field_name("function"));
        let Some(name) =
            callee.filter(|callee| Kind::of(*callee) == Kind::Identifier).map(|callee| self.text(callee))
        else {
            return false;
        };
        match self.environment.function_macro(name) {
            Some((_, text)) => {
                text.contains('&') && ["_cast", "*)", "* )"].iter().any(|part| text.contains(part))
            }
            None => {
                let is_macro = !name.contains(|c: char| c.is_ascii_lowercase());
                is_macro && name.contains(|c: char| c.is_ascii_digit())
            }
        }
    }

    /// Notes an access.
    pub(super) fn access(&mut self, node: Node<'t>, base: Base, index: Index, element: Type, is_store: bool) {
        let lanes = self.lanes();
        let by_few = self.is_for_few() || lanes <= FEW;
        self.facts.accesses.push(Access { node, base, index, element, is_store, by_few, lanes });
    }

    /// `*pointer` or `&place`.
    pub(super) fn pointer(&mut self, node: Node<'t>, children: &[Entry<'t>]) -> Value {
        let Some(argument) = children.last().map(|entry| entry.value) else { return Value::UNKNOWN };
        if node.child(0).is_some_and(|operator| operator.kind() == "&") {
            if argument.is_place {
                return Value { is_place: false, ty: argument.ty.pointer(), ..argument };
            }
            return Value::of(argument.ty.pointer(), Index::UNKNOWN);
        }
        let pointer = argument.loaded();
        if pointer.ty.pointers == 0 {
            return Value::UNKNOWN;
        }
        let left = pointer.base.dimensions_left.saturating_sub(1);
        self.place(node, Base { dimensions_left: left, ..pointer.base }, pointer.index, pointer.ty.pointee())
    }
}

/// The name in `&name` or `(name)` of a declarator.
fn inner_name(declarator: Node) -> Option<Node> {
    let last = u32::try_from(declarator.named_child_count().checked_sub(1)?).ok()?;
    matches!(declarator.kind(), "reference_declarator" | "parenthesized_declarator")
        .then(|| declarator.named_child(last))
        .flatten()
}

/// What a value becomes in a variable of type `ty`.
fn converted(value: Value, ty: Type) -> Value {
    if ty.is_float() || ty.is_double() {
        return Value { literal: value.number(), ..only_uniform(ty, value.index) };
    }
    if value.ty.is_float() || value.ty.is_double() {
        // Of a type that is not known here, but a number all the same.
        let literal = value.literal.filter(|_| ty == Type::UNKNOWN);
        return Value { literal, ..only_uniform(ty, value.index) };
    }
    Value { ty: if ty == Type::UNKNOWN { value.ty } else { ty }, ..value }
}
