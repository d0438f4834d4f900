//! Calls: casts in function form, memory intrinsics, the maths library, kernel launches.

use tree_sitter::Node;

use super::facts::{Call, LaunchSite, MultipleTest};
use super::index::{Coefficient, Index};
use super::kind::{Field, Kind};
use super::operators;
use super::types::{Type, maths};
use super::value::Value;
use super::walk::{Entry, Walker};

impl<'t> Walker<'t> {
    /// A call or a launch.
    pub(super) fn call(&mut self, node: Node<'t>, children: &[Entry<'t>]) -> Value {
        let Some(function) = node.child_by_field_name("function") else { return Value::UNKNOWN };
        let arguments: &[Entry<'t>] = match children {
            [first, rest @ ..] if first.field == Some(Field::Function) => rest,
            all => all,
        };
        if let Some(configuration) = launch_configuration(node) {
            self.launch(node, function, configuration);
            return Value::UNKNOWN;
        }
        let Some(name_node) = callee(function) else { return self.functional_cast(function, arguments) };
        let name = self.text(name_node);
        if let Some(value) = self.expanded(node, function, arguments) {
            return value;
        }
        if let Kind::Template = Kind::of(function)
            && matches!(name, "reinterpret_cast" | "static_cast" | "const_cast")
        {
            let target = function.child_by_field_name("arguments").map_or("", |list| self.text(list));
            let target = self.environment.type_of(target.trim_start_matches('<').trim_end_matches('>'));
            return arguments.first().map_or(Value::UNKNOWN, |argument| self.cast(target, argument.value));
        }
        let (parent, _) = self.parent().unwrap_or((Kind::Other, node));
        self.facts.calls.push(Call {
            name,
            node,
            is_statement: parent == Kind::ExpressionStatement,
            within: self.within(),
        });
        if matches!(name, "cudaLaunchKernel" | "cudaLaunchCooperativeKernel") {
            self.launch_by_call(node, arguments);
        }
        if self.is_own(name, function) {
            self.unknown_call(name, arguments)
        } else {
            self.result(node, name, arguments)
        }
    }

    /// Whether a callee is a function of this code, whatever other function has its name: a method, one of a namespace that is not
    /// the standard library's.
    fn is_own(&self, name: &str, function: Node<'t>) -> bool {
        match Kind::of(function) {
            Kind::Field => true,
            Kind::Qualified => {
                let scope = function.child_by_field_name("scope").map_or("", |scope| self.text(scope));
                maths(name).is_some()
                    && !scope.is_empty()
                    && !["std", "compat"].iter().any(|known| scope.ends_with(known))
            }
            _ => false,
        }
    }

    fn result(&mut self, node: Node<'t>, name: &'t str, arguments: &[Entry<'t>]) -> Value {
        if name.starts_with("__ld") || name.starts_with("__st") || name.starts_with("atomic") {
            return self.memory_call(node, name, arguments);
        }
        if let "min" | "max" | "fminf" | "fmaxf" | "fmin" | "fmax" | "clamp" | "umin" | "umax" = name
            && arguments.iter().any(|argument| argument.value.loaded().index.varies())
        {
            self.facts.is_guarded = true;
        }
        if let ("__mul24" | "__umul24", [left, right]) = (name, arguments) {
            return operators::integer(
                "*",
                (left.node, left.value.loaded()),
                (right.node, right.value.loaded()),
            );
        }
        if let Some(kind) = maths(name) {
            let mut result = self.maths_call(node, name, kind, arguments);
            if arguments.iter().all(|argument| argument.value.loaded().index.is_uniform()) {
                result.index = Index::UNIFORM;
            }
            return result;
        }
        self.unknown_call(name, arguments)
    }

    /// A function of which only the type of the result may be known.
    fn unknown_call(&mut self, name: &str, arguments: &[Entry<'t>]) -> Value {
        let target = match name.strip_prefix("make_") {
            Some(vector) => Type::parse(vector),
            None => self.environment.returns(name),
        };
        for argument in arguments {
            self.goes_to(
                argument.value.loaded(),
                if target.lanes > 1 { target.component() } else { Type::UNKNOWN },
            );
        }
        Value::of(target, Index::UNKNOWN)
    }

    /// `int(x)`, `float(x)`: the callee is the name of a type.
    fn functional_cast(&mut self, function: Node<'t>, arguments: &[Entry<'t>]) -> Value {
        let target = self.environment.type_of(self.text(function));
        match arguments {
            [argument] if target != Type::UNKNOWN => self.cast(target, argument.value),
            _ => Value::UNKNOWN,
        }
    }

    /// `__ldg(address)`, `atomicAdd(address, …)` and their kin.
    fn memory_call(&mut self, node: Node<'t>, name: &'t str, arguments: &[Entry<'t>]) -> Value {
        let Some(address) = arguments.first().map(|argument| argument.value.loaded()) else {
            return Value::UNKNOWN;
        };
        let element = address.ty.pointee();
        if address.ty.pointers == 1 && address.base.dimensions_left <= 1 {
            self.access(node, address.base, address.index, element, !name.starts_with("__ld"));
        }
        let uniform = name.starts_with("__ld") && address.index.is_uniform();
        Value::of(element, if uniform { Index::UNIFORM } else { Index::UNKNOWN })
    }

    fn launch(&mut self, node: Node<'t>, function: Node<'t>, configuration: Node<'t>) {
        let kernel = callee(function).map_or("", |name| self.text(name));
        let mut cursor = configuration.walk();
        let mut parts =
            configuration.named_children(&mut cursor).filter(|child| Kind::of(*child) != Kind::Comment);
        // The grid, the block, the shared memory, the stream.
        let (grid, block, stream) = (parts.next(), parts.next(), parts.nth(1));
        let is_statement = self.parent().is_some_and(|(kind, _)| kind == Kind::ExpressionStatement);
        self.facts.launches.push(LaunchSite { kernel, node, grid, block, stream, is_statement });
    }

    /// `cudaLaunchKernel(kernel, grid, block, arguments, shared, stream)`.
    fn launch_by_call(&mut self, node: Node<'t>, arguments: &[Entry<'t>]) {
        let [kernel, grid, block, rest @ ..] = arguments else { return };
        let text = self.text(kernel.node);
        let text =
            if text.ends_with('>') { text.rsplit_once('<').map_or(text, |(name, _)| name) } else { text };
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let name = text.trim_end_matches([')', ' ']).rsplit(|c| !is_name(c)).next().unwrap_or("");
        self.facts.launches.push(LaunchSite {
            kernel: name,
            node,
            grid: Some(grid.node),
            block: Some(block.node),
            stream: rest.get(2).map(|stream| stream.node),
            // It returns its error.
            is_statement: false,
        });
    }

    /// Remembers `thread % divisor`, or `thread & (divisor - 1)`, for a test that may follow.
    pub(super) fn remainder_of_thread(
        &mut self,
        node: Node<'t>,
        operator: &str,
        left: Value,
        (right_node, right): (Node<'t>, Value),
    ) {
        let is_thread = left.index.x == Coefficient::Number(1) && !left.index.block && left.index.offset == 0;
        if !is_thread || right.constant.is_some() {
            return;
        }
        let right_node = bare(right_node);
        let divisor = if operator == "%" { Some(right_node) } else { self.one_more(right_node) };
        if let Some(divisor) = divisor {
            self.last_remainder = Some((node, bare(divisor)));
        }
    }

    /// What a mask is one less than: `2 * s` for `2 * s - 1`.
    fn one_more(&self, mask: Node<'t>) -> Option<Node<'t>> {
        let operator = mask.child_by_field_name("operator")?.kind();
        let right = mask.child_by_field_name("right")?;
        (operator == "-" && self.text(right).trim_end_matches(['u', 'U']) == "1")
            .then(|| mask.child_by_field_name("left"))
            .flatten()
    }

    /// `remainder == 0`, or `remainder != 0` for the other threads, perhaps the condition of an `if`.
    pub(super) fn tested_for_zero(&mut self, node: Node<'t>, tested: Node<'t>, is_for_others: bool) {
        let inner = bare(tested);
        let Some((_, divisor)) = self.last_remainder.filter(|(remainder, _)| *remainder == inner) else {
            return;
        };
        if let Some(branch) = self.decides() {
            let within = self.within();
            self.facts.multiples.push(MultipleTest { node, divisor, branch, within, is_for_others });
        }
    }
}

/// An expression without the brackets around it.
fn bare(expression: Node) -> Node {
    let mut inner = expression;
    while Kind::of(inner) == Kind::Parenthesized
        && let Some(child) = inner.named_child(0)
    {
        inner = child;
    }
    inner
}

/// The `<<<…>>>` of a launch.
fn launch_configuration(call: Node) -> Option<Node> {
    // Directly behind the callee, before the arguments.
    (1..4).find_map(|index| {
        let child = call.child(index)?;
        (Kind::of(child) == Kind::KernelCall).then_some(child)
    })
}

/// The last name of what is called: `pow` of `std::pow`, `kernel` of `detail::kernel<float>`, `get` of `object.get`.
pub fn callee(function: Node) -> Option<Node> {
    let mut node = function;
    loop {
        node = match node.kind() {
            "identifier" | "field_identifier" => return Some(node),
            "qualified_identifier" | "template_function" | "template_method" => {
                node.child_by_field_name("name")?
            }
            "field_expression" => node.child_by_field_name("field")?,
            "parenthesized_expression" => node.named_child(0)?,
            _ => return None,
        };
    }
}
