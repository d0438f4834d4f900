//! The one walk over a function: a stack of values, filled from the leaves up, in the order of the text.
//!
//! Each named node leaves one value when it is done; its parent takes those of all its children off the stack. There is no
//! recursion, so depth costs memory only. How values combine is in `evaluate`; here is what is open around the
//! current node: scopes, loops, branches that only a few threads take.

use std::collections::HashMap;

use smallvec::SmallVec;
use tree_sitter::Node;

use super::FunctionContext;
use super::constants::fold_text;
use super::environment::Environment;
use super::facts::{Facts, Loop};
use super::kind::{Field, Kind};
use super::lanes;
use super::names::Names;
use super::trips::{self, Around};
use super::types::Type;
use super::value::Value;
use crate::outline::{Function, TemplateParameter};

/// The value of a child that is done.
#[derive(Clone, Copy)]
pub struct Entry<'t> {
    /// The child.
    pub node: Node<'t>,
    /// The field of the parent it stands in.
    pub field: Option<Field>,
    /// What it evaluated to.
    pub value: Value,
}

/// A node that is open.
struct Frame<'t> {
    node: Node<'t>,
    kind: Kind,
    field: Option<Field>,
    /// Where its children's values begin.
    mark: usize,
    /// The loop around it.
    within: Option<u32>,
    /// How many of its own conditions let only a few threads in.
    few: u32,
    /// How many lanes of a warp get to what stands behind it.
    lanes: u8,
    /// For an `if` and for `?:`: what is known of its condition.
    condition: Value,
}

/// The walk's state.
pub struct Walker<'t> {
    pub(crate) source: &'t str,
    pub(crate) function: &'t Function,
    pub(crate) environment: &'t Environment,
    /// The template arguments that hold.
    pub(crate) instance: &'t [Option<i64>],
    pub(crate) names: Names<'t>,
    /// The value of each variable, once it is known.
    pub(crate) settled: Vec<Option<Value>>,
    /// Whether each variable is used after its declaration.
    pub(crate) used: Vec<bool>,
    pub(crate) facts: Facts<'t>,
    stack: Vec<Entry<'t>>,
    frames: Vec<Frame<'t>>,
    few: u32,
    /// The most lanes of a warp that get to the current node.
    lanes: u8,
    /// How many lambdas are open.
    pub(crate) lambdas: u32,
    /// The last `thread % divisor` whose divisor is not constant, and the divisor.
    pub(crate) last_remainder: Option<(Node<'t>, Node<'t>)>,
    /// What the function returns.
    pub(crate) returns: Type,
    /// The type of each expression by its node's number, where it was asked to keep them: the rules have no use for it.
    pub(crate) types: Option<HashMap<usize, Type>>,
}

/// Walks over a function, with these template arguments, and notes what the rules need.
pub fn walk<'t>(context: &FunctionContext<'t>, instance: &'t [Option<i64>]) -> Walker<'t> {
    let mut walker = walker(context, instance);
    walker.run(context.node);
    walker
}

/// The same, and keeps the type of every expression.
pub fn walk_keeping_types<'t>(context: &FunctionContext<'t>) -> Walker<'t> {
    let mut walker = walker(context, &[]);
    walker.types = Some(HashMap::new());
    walker.run(context.node);
    walker
}

fn walker<'t>(context: &FunctionContext<'t>, instance: &'t [Option<i64>]) -> Walker<'t> {
    let names = Names::of(context.node, context.source, context.environment);
    Walker {
        source: context.source,
        function: context.function,
        environment: context.environment,
        instance,
        settled: vec![None; names.variables.len()],
        used: vec![false; names.variables.len()],
        names,
        facts: Facts::default(),
        stack: Vec::new(),
        frames: Vec::new(),
        few: 0,
        lanes: lanes::ALL,
        lambdas: 0,
        last_remainder: None,
        returns: context
            .node
            .child_by_field_name("type")
            .and_then(|ty| context.source.get(ty.byte_range()))
            .map_or(Type::UNKNOWN, |ty| context.environment.type_of(ty)),
        types: None,
    }
}

impl<'t> Walker<'t> {
    fn run(&mut self, root: Node<'t>) {
        let mut cursor = root.walk();
        loop {
            let node = cursor.node();
            let kind = Kind::of(node);
            let skip = !node.is_named() || kind == Kind::Comment || (kind == Kind::Function && node != root);
            if !skip {
                self.enter(node, kind, cursor.field_id().and_then(Field::of));
                if cursor.goto_first_child() {
                    continue;
                }
                self.leave();
            }
            loop {
                if cursor.goto_next_sibling() {
                    break;
                }
                if !cursor.goto_parent() {
                    return;
                }
                self.leave();
            }
        }
    }

    fn enter(&mut self, node: Node<'t>, kind: Kind, field: Option<Field>) {
        let within = self.within();
        let mut frame = Frame {
            node,
            kind,
            field,
            mark: self.stack.len(),
            within,
            few: 0,
            lanes: self.lanes,
            condition: Value::UNKNOWN,
        };
        if kind.is_loop() && !self.runs_once(node, kind) {
            let id = u32::try_from(self.facts.loops.len()).unwrap_or(u32::MAX);
            let outer = within.and_then(|id| self.facts.loops.get(id as usize));
            let outermost = outer.map_or(id, |outer| outer.outermost);
            self.facts.loops.push(Loop { node, outermost });
            frame.within = Some(id);
        } else if kind == Kind::Lambda {
            // When its body runs is not known.
            frame.within = None;
            self.lambdas += 1;
        }
        if field == Some(Field::Consequence) && self.frames.last().is_some_and(|f| f.condition.selects_few) {
            frame.few = 1;
        }
        self.few += frame.few;
        if let Some(parent) = self.frames.last() {
            let lanes = parent.condition.lanes;
            self.lanes = self.lanes.min(match field {
                Some(Field::Consequence) => lanes.holds,
                Some(Field::Alternative) => lanes.fails,
                _ => lanes::ALL,
            });
        }
        self.frames.push(frame);
    }

    /// Whether a loop runs at most once, and so is none.
    fn runs_once(&self, node: Node, kind: Kind) -> bool {
        let around = Around { source: self.source, names: &self.names, environment: self.environment };
        trips::runs_once(node, kind, &around)
    }

    fn leave(&mut self) {
        let Some(frame) = self.frames.pop() else { return };
        self.few -= frame.few;
        let inside = std::mem::replace(&mut self.lanes, frame.lanes);
        self.lambdas -= u32::from(frame.kind == Kind::Lambda);
        match frame.kind {
            // The parent takes the children as if they were its own.
            Kind::Arguments | Kind::Indices => return,
            Kind::KernelCall => {
                self.stack.truncate(frame.mark);
                return;
            }
            Kind::ConditionClause => self.condition(frame.mark),
            Kind::If => self.leave_if(&frame),
            _ => {}
        }
        let mark = frame.mark.min(self.stack.len());
        let children: SmallVec<[Entry<'t>; 4]> = self.stack.drain(mark..).collect();
        // An arm of `?:` is evaluated by the lanes that take it.
        let outside = std::mem::replace(&mut self.lanes, inside);
        let value = self.evaluate(frame.node, frame.kind, &children);
        if let Some(types) = &mut self.types {
            types.insert(frame.node.id(), value.loaded().ty);
        }
        self.lanes = outside;
        if let Some(parent) = self.frames.last_mut().filter(|parent| parent.kind == Kind::Conditional)
            && frame.field == Some(Field::Condition)
        {
            parent.condition.lanes = value.lanes;
        }
        self.stack.push(Entry { node: frame.node, field: frame.field, value });
    }

    /// Notes the condition for the branches that follow it.
    fn condition(&mut self, mark: usize) {
        let value =
            self.stack[mark.min(self.stack.len())..].last().map_or(Value::UNKNOWN, |entry| entry.value);
        if value.index.is_unknown() && !value.is_judged {
            self.facts.is_guarded = true;
        }
        if let Some(parent) = self.frames.last_mut() {
            parent.condition = value;
            // Which thread takes which case is not followed.
            if parent.kind == Kind::Switch && !value.index.is_uniform() {
                parent.few += 1;
                self.few += 1;
            }
        }
    }

    /// After `if (threadIdx.x != 0) return;` only a few threads are left in the block, after `if (lane >= 16) return;` 16 of a warp.
    fn leave_if(&mut self, frame: &Frame<'t>) {
        let leaves = || {
            let branch = frame.node.child_by_field_name("consequence")?;
            let first = if Kind::of(branch) == Kind::Compound { branch.named_child(0)? } else { branch };
            Some(matches!(first.kind(), "return_statement" | "continue_statement" | "break_statement"))
        };
        let lanes = frame.condition.lanes.fails;
        let is_told = frame.condition.spares_few || lanes < lanes::ALL;
        if !is_told || leaves() != Some(true) {
            return;
        }
        self.lanes = self.lanes.min(lanes);
        if frame.condition.spares_few
            && let Some(block) = self.frames.iter_mut().rev().find(|outer| outer.kind == Kind::Compound)
        {
            block.few += 1;
            self.few += 1;
        }
    }

    /// The innermost loop around the current node.
    pub(super) fn within(&self) -> Option<u32> {
        self.frames.last().and_then(|frame| frame.within)
    }

    /// Whether only a few threads of a warp get here.
    pub(super) fn is_for_few(&self) -> bool {
        self.few > 0
    }

    /// The most lanes of a warp that get here.
    pub(super) fn lanes(&self) -> u8 {
        self.lanes
    }

    /// The kind and the node of the parent of the node being evaluated.
    pub(super) fn parent(&self) -> Option<(Kind, Node<'t>)> {
        self.frames.last().map(|frame| (frame.kind, frame.node))
    }

    /// The call whose argument list is open, where an argument of it is being evaluated.
    pub(super) fn call_around(&self) -> Option<Node<'t>> {
        match self.frames.as_slice() {
            [.., call, list] if list.kind == Kind::Arguments && call.kind == Kind::Call => Some(call.node),
            _ => None,
        }
    }

    /// The `if` whose condition, or a part of it by `&&`, is being evaluated.
    pub(super) fn decides(&self) -> Option<Node<'t>> {
        let mut outer = self.frames.iter().rev();
        let clause = outer.find(|frame| !matches!(frame.kind, Kind::Binary | Kind::Parenthesized))?;
        let branch = outer.next()?;
        (clause.kind == Kind::ConditionClause && branch.kind == Kind::If).then_some(branch.node)
    }

    /// The value of the template parameter `name`: that of the launch, else its default.
    pub(super) fn template_value(&self, name: &str) -> Option<i64> {
        let parameters = &self.function.template_parameters;
        let at = parameters.iter().position(|parameter| parameter.name == name)?;
        let is_pack =
            |parameter: &TemplateParameter| parameter.kind.contains("...") || parameter.name.contains("...");
        match self.instance.get(at) {
            // A pack takes any number of arguments.
            Some(_) if parameters[..=at].iter().any(is_pack) => None,
            Some(value) => *value,
            None => fold_text(parameters[at].default.as_deref()?, self.environment),
        }
    }

    /// The text of the whole function.
    pub(super) fn text_of_function(&self) -> &'t str {
        self.source.get(self.function.span.range()).unwrap_or("")
    }

    /// The text of a node.
    pub(super) fn text(&self, node: Node) -> &'t str {
        self.source.get(node.byte_range()).unwrap_or("")
    }
}
