//! The names that a function declares: where each is visible, of what type it is, and what is written to it.
//!
//! Made in a walk of its own, before any expression is evaluated: a loop's body comes before its end in the text, so
//! whether a variable keeps its first value can't be known earlier.

use std::collections::HashMap;

use smallvec::SmallVec;
use tree_sitter::Node;

use super::environment::Environment;
use super::kind::Kind;
use super::types::Type;

/// How many variables of one name are looked at; beyond that a name is taken as unknown.
const MOST_CANDIDATES: usize = 64;

/// Where the storage of a variable is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// A parameter of the function itself.
    Parameter,
    /// Registers or local memory.
    Local,
    /// `__shared__`.
    Shared,
    /// `__constant__` or `static`.
    Static,
}

/// Something written to a variable after its declaration.
#[derive(Clone, Copy, Debug)]
pub enum Write<'t> {
    /// `name = value`.
    Set(Node<'t>),
    /// `name += value` or `name -= value`.
    Add(Node<'t>),
    /// `name *= value` and the other operators.
    Combine(Node<'t>),
    /// `++` or `--`.
    Step,
    /// `name.member = value`.
    Member(&'t str, Node<'t>),
    /// Anything else: a member's member, its address taken.
    Other,
}

/// A variable of a function.
#[derive(Debug)]
pub struct Variable<'t> {
    /// Its name.
    pub name: &'t str,
    /// Where it is visible: from its declarator to the end of its scope.
    pub visible: std::ops::Range<usize>,
    /// Its type, pointers and dimensions included.
    pub ty: Type,
    /// Its type as written, without pointers and dimensions.
    pub class: &'t str,
    /// Whether the type was left to the compiler.
    pub is_auto: bool,
    /// Whether it is another name for something else.
    pub is_reference: bool,
    /// Whether it is a pointer or a reference to an array, `float (*rows)[32]`: its dimensions are those of what it points to,
    /// the first of a pointer not known.
    pub is_view: bool,
    /// Where it is stored.
    pub storage: Storage,
    /// Its dimensions if it is an array, outermost first; `None` for the one of `[]`.
    pub dimensions: SmallVec<[Option<Node<'t>>; 2]>,
    /// What it is first set to.
    pub initial: Option<Node<'t>>,
    /// What is written to it later, in the order of the text.
    pub writes: SmallVec<[Write<'t>; 2]>,
}

/// The variables of one function.
#[derive(Debug, Default)]
pub struct Names<'t> {
    /// All of them, in the order of the text.
    pub variables: Vec<Variable<'t>>,
    by_name: HashMap<&'t str, SmallVec<[u32; 2]>>,
}

impl<'t> Names<'t> {
    /// Collects the variables of `function`.
    pub fn of(function: Node<'t>, source: &'t str, environment: &'t Environment) -> Self {
        let mut collector = Collector {
            names: Names::default(),
            source,
            environment,
            scopes: vec![function.end_byte()],
            lambdas: 0,
        };
        let mut cursor = function.walk();
        loop {
            let node = cursor.node();
            let kind = Kind::of(node);
            collector.enter(node, kind);
            if cursor.goto_first_child() {
                continue;
            }
            collector.leave(kind);
            loop {
                if cursor.goto_next_sibling() {
                    break;
                }
                if !cursor.goto_parent() {
                    return collector.names;
                }
                collector.leave(Kind::of(cursor.node()));
            }
        }
    }

    /// The variable that `name` means at `at`.
    pub fn resolve(&self, name: &str, at: usize) -> Option<usize> {
        let candidates = self.by_name.get(name)?;
        let before = candidates.partition_point(|id| self.variables[*id as usize].visible.start <= at);
        let near = candidates[..before].iter().rev().take(MOST_CANDIDATES).map(|id| *id as usize);
        near.into_iter().find(|id| self.variables[*id].visible.contains(&at))
    }

    fn add(&mut self, variable: Variable<'t>) {
        let id = u32::try_from(self.variables.len()).unwrap_or(u32::MAX);
        let start = variable.visible.start;
        let name = variable.name;
        self.variables.push(variable);
        let candidates = self.by_name.entry(name).or_default();
        // At the end, but for what a lambda declares inside the declaration of the same name.
        let at = candidates.partition_point(|id| self.variables[*id as usize].visible.start <= start);
        candidates.insert(at, id);
    }
}

struct Collector<'t> {
    names: Names<'t>,
    source: &'t str,
    environment: &'t Environment,
    /// Where each open scope ends.
    scopes: Vec<usize>,
    /// How many lambdas are open: their parameters are no parameters of the function.
    lambdas: usize,
}

impl<'t> Collector<'t> {
    fn text(&self, node: Node) -> &'t str {
        self.source.get(node.byte_range()).unwrap_or("")
    }

    fn enter(&mut self, node: Node<'t>, kind: Kind) {
        if kind.is_scope() {
            self.scopes.push(node.end_byte());
        }
        match kind {
            Kind::Lambda => self.lambdas += 1,
            Kind::Declaration | Kind::Parameter | Kind::OptionalParameter | Kind::ForRange => {
                self.declare(node, kind)
            }
            Kind::Assignment => self.assign(node),
            Kind::Update => {
                if let Some(argument) = node.child_by_field_name("argument") {
                    self.write(argument, Write::Step);
                }
            }
            Kind::Pointer if node.child(0).is_some_and(|operator| operator.kind() == "&") => {
                if let Some(argument) = node.child_by_field_name("argument")
                    && Kind::of(argument) == Kind::Identifier
                {
                    self.write(argument, Write::Other);
                }
            }
            _ => {}
        }
    }

    fn leave(&mut self, kind: Kind) {
        if kind.is_scope() {
            self.scopes.pop();
        }
        if kind == Kind::Lambda {
            self.lambdas -= 1;
        }
    }

    fn assign(&mut self, node: Node<'t>) {
        let (Some(left), Some(right)) = (node.child_by_field_name("left"), node.child_by_field_name("right"))
        else {
            return;
        };
        if let Some(view) = declared_view(node) {
            self.view(node, view, right);
            return;
        }
        let operator = node.child_by_field_name("operator").map_or("", |operator| operator.kind());
        let write = match operator {
            "=" => self.addition_to(left, right).map_or(Write::Set(right), Write::Add),
            "+=" | "-=" => Write::Add(right),
            "*=" | "/=" | "%=" | "<<=" | ">>=" | "&=" | "|=" | "^=" => Write::Combine(right),
            _ => Write::Other,
        };
        self.write(left, write);
    }

    /// Declares what [`declared_view`] found.
    fn view(&mut self, node: Node<'t>, view: View<'t>, initial: Node<'t>) {
        let class = self.text(view.ty);
        let depth = u8::try_from(view.dimensions.len()).unwrap_or(u8::MAX);
        let ty = self.environment.type_of(class);
        self.names.add(Variable {
            name: self.text(view.name),
            visible: node.end_byte()..self.scopes.last().copied().unwrap_or(usize::MAX),
            ty: Type { pointers: ty.pointers.saturating_add(depth), ..ty },
            class,
            is_auto: false,
            is_reference: false,
            is_view: true,
            storage: Storage::Local,
            dimensions: view.dimensions,
            initial: Some(initial),
            writes: SmallVec::new(),
        });
    }

    /// What `name = name + value` adds.
    fn addition_to(&self, name: Node<'t>, right: Node<'t>) -> Option<Node<'t>> {
        let operator = right.child_by_field_name("operator")?.kind();
        let left = right.child_by_field_name("left")?;
        let same = Kind::of(right) == Kind::Binary
            && matches!(operator, "+" | "-")
            && self.text(left) == self.text(name);
        if same { right.child_by_field_name("right") } else { None }
    }

    /// Notes a write to `target`, if it is a variable or a member of one.
    fn write(&mut self, target: Node<'t>, write: Write<'t>) {
        let (mut target, mut write) = (target, write);
        loop {
            let inner = match Kind::of(target) {
                Kind::Identifier => break,
                Kind::Parenthesized => target.named_child(0),
                Kind::Field => {
                    write = match (write, target.child_by_field_name("field")) {
                        (Write::Set(value), Some(member)) => Write::Member(self.text(member), value),
                        _ => Write::Other,
                    };
                    target.child_by_field_name("argument")
                }
                _ => None,
            };
            match inner {
                Some(inner) => target = inner,
                None => return,
            }
        }
        if let Some(id) = self.names.resolve(self.text(target), target.start_byte()) {
            self.names.variables[id].writes.push(write);
        }
    }

    fn declare(&mut self, node: Node<'t>, kind: Kind) {
        let Some(ty) = node.child_by_field_name("type") else { return };
        let ty_text = self.text(ty);
        let mut storage = match kind {
            Kind::Parameter | Kind::OptionalParameter if self.lambdas == 0 => Storage::Parameter,
            _ => Storage::Local,
        };
        let mut cursor = node.walk();
        let mut pending_value = None;
        if kind == Kind::Declaration || kind == Kind::OptionalParameter {
            pending_value = node.child_by_field_name("value");
        }
        for child in node.children(&mut cursor) {
            match child.kind() {
                "type_qualifier" | "storage_class_specifier" => match self.text(child) {
                    "__shared__" => storage = Storage::Shared,
                    "__constant__" | "static" if storage == Storage::Local => storage = Storage::Static,
                    _ => {}
                },
                _ => {}
            }
        }
        cursor.reset(node);
        for declarator in node.children_by_field_name("declarator", &mut cursor) {
            self.declarator(declarator, ty_text, storage, pending_value);
        }
    }

    /// Takes pointers, dimensions and the first value off a declarator until its name is left.
    fn declarator(
        &mut self,
        declarator: Node<'t>,
        ty_text: &'t str,
        storage: Storage,
        value: Option<Node<'t>>,
    ) {
        let mut variable = Variable {
            name: "",
            visible: declarator.end_byte()..self.scopes.last().copied().unwrap_or(usize::MAX),
            ty: self.environment.type_of(ty_text),
            class: ty_text,
            is_auto: ty_text.contains("auto"),
            is_reference: false,
            is_view: false,
            storage,
            dimensions: SmallVec::new(),
            initial: value,
            writes: SmallVec::new(),
        };
        let mut node = declarator;
        while node.kind() != "identifier" {
            match unwrapped(node, &mut variable) {
                Some(inner) => node = inner,
                None => return,
            }
        }
        variable.name = self.text(node);
        if storage == Storage::Parameter && !variable.is_view {
            // Parameters stand outside the body, whose scope is not open yet.
            variable.dimensions.clear();
        }
        self.names.add(variable);
    }
}

/// Takes one pointer, dimension or first value off a declarator, for its variable; what is left of it, if it is one that is known.
fn unwrapped<'t>(node: Node<'t>, variable: &mut Variable<'t>) -> Option<Node<'t>> {
    match node.kind() {
        "init_declarator" => {
            variable.initial = node.child_by_field_name("value");
            node.child_by_field_name("declarator")
        }
        "pointer_declarator" => {
            variable.ty = variable.ty.pointer();
            if variable.is_view {
                variable.dimensions.insert(0, None);
            }
            node.child_by_field_name("declarator")
        }
        "array_declarator" => {
            variable.ty = variable.ty.pointer();
            variable.dimensions.insert(0, node.child_by_field_name("size"));
            node.child_by_field_name("declarator")
        }
        "reference_declarator" => {
            variable.is_reference = true;
            node.named_child(node.named_child_count().saturating_sub(1) as u32)
        }
        "parenthesized_declarator" => {
            if variable.dimensions.is_empty() {
                variable.ty = Type::UNKNOWN;
            }
            variable.is_view = true;
            node.named_child(0)
        }
        // `dim3 block(X, Y)` reads as the declaration of a function.
        "function_declarator" if variable.class == "dim3" => {
            variable.initial = node.child_by_field_name("parameters");
            node.child_by_field_name("declarator")
        }
        _ => None,
    }
}

/// `float (*name)[32]` or `float (&name)[32][32]`.
pub struct View<'t> {
    ty: Node<'t>,
    /// The name.
    pub name: Node<'t>,
    dimensions: SmallVec<[Option<Node<'t>>; 2]>,
}

/// The pointer or the reference to an array that a statement declares. The grammar takes `float (*name)[32] = array` for the
/// assignment to an element of what a call of `float` returns.
pub fn declared_view(assignment: Node) -> Option<View> {
    let mut left = assignment.child_by_field_name("left")?;
    let mut dimensions = SmallVec::new();
    while Kind::of(left) == Kind::Subscript {
        let size = left.child_by_field_name("indices").and_then(|indices| indices.named_child(0));
        dimensions.insert(0, size);
        left = left.child_by_field_name("argument")?;
    }
    let ty = left.child_by_field_name("function").filter(|ty| ty.kind() == "primitive_type")?;
    let pointer = left.child_by_field_name("arguments")?.named_child(0)?;
    let name = pointer.child_by_field_name("argument").filter(|name| Kind::of(*name) == Kind::Identifier)?;
    if dimensions.is_empty() || Kind::of(pointer) != Kind::Pointer {
        return None;
    }
    if pointer.child(0)?.kind() == "*" {
        dimensions.insert(0, None);
    }
    Some(View { ty, name, dimensions })
}
