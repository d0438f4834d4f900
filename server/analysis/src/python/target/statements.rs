//! Statements of a file as a function: which names they read from outside, and which they set for what follows.
//!
//! A name counts as set only where every way through the statements sets it; everywhere else its value from before is an input as well.
//! Names of the file's top level (imports, functions, constants) are not inputs of statements inside a function, since the new code sees
//! them too. Control that leaves the statements can't be kept in a function, so it is refused with its reason.

use std::collections::{BTreeSet, HashSet};

use serde::Serialize;
use stitch_findings::Span;
use tree_sitter::Node;

use super::source::{Source, all, children, each, is_name, span};
use super::targets::{enclosing, qualified};

/// Statements that can become a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Statements {
    /// From the first one's first character to the last one's last.
    pub span: Span,
    /// The first line and the last one, counted from 1.
    pub lines: [u32; 2],
    /// The function that they are in, with the classes around it; `None` at the top level.
    pub function: Option<String>,
    /// What they read from outside, in the order of the text: names, and `self.x` in methods.
    pub reads: Vec<String>,
    /// Names that they set and that are read later, in the order of the text.
    pub sets: Vec<String>,
}

/// What a selection holds: whole statements of one block.
pub(super) fn selected<'t>(source: &'t Source<'_>, selection: Span) -> Option<Vec<Node<'t>>> {
    let text = source.text.get(selection.range())?;
    let start = selection.start + (text.len() - text.trim_start().len());
    let end = selection.start + text.trim_end().len();
    if start >= end {
        return None;
    }
    let mut node = source.root().descendant_for_byte_range(start, start)?;
    loop {
        let parent = node.parent()?;
        let is_list = matches!(parent.kind(), "block" | "module");
        if is_list && node.kind() != "comment" && node.start_byte() >= start {
            let inside: Vec<_> = children(parent)
                .into_iter()
                .filter(|child| child.start_byte() < end && child.end_byte() > start)
                .collect();
            let whole = inside.iter().all(|child| child.start_byte() >= start && child.end_byte() <= end);
            if whole && !inside.is_empty() && end <= parent.end_byte().max(inside.last()?.end_byte()) {
                return Some(inside);
            }
        }
        if is_list && node.kind() == "comment" && node.start_byte() >= start {
            // A selection that begins with a comment means the statement below it.
            let next = children(parent).into_iter().find(|child| child.start_byte() > start)?;
            return (next.start_byte() < end)
                .then(|| selected(source, Span::new(next.start_byte(), end)))
                .flatten();
        }
        node = parent;
    }
}

/// The statements on the lines `first` to `last`, counted from 1, as a function.
///
/// # Errors
/// Why they can't be one, in one sentence.
pub fn on_lines(text: &str, first: u32, last: u32) -> Result<Statements, String> {
    let mut start = None;
    let mut end = text.len();
    let mut at = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let number = u32::try_from(index + 1).unwrap_or(u32::MAX);
        if number == first {
            start = Some(at);
        }
        at += line.len();
        if number == last {
            end = at;
        }
    }
    let start = start.ok_or_else(|| format!("The file has no line {first}."))?;
    statements(text, Span::new(start, end))
}

/// The statements that a selection holds, as a function.
///
/// # Errors
/// Why they can't be one, in one sentence.
pub fn statements(text: &str, selection: Span) -> Result<Statements, String> {
    let source = Source::new(text).ok_or("The file is too long or too deeply nested to be parsed.")?;
    let nodes = selected(&source, selection)
        .ok_or("The selection is not made of whole statements of one block; select whole lines.")?;
    of_nodes(&source, &nodes)
}

/// The same for statements that are known.
pub(super) fn of_nodes(source: &Source<'_>, nodes: &[Node]) -> Result<Statements, String> {
    let (Some(first), Some(last)) = (nodes.first(), nodes.last()) else {
        return Err("Nothing is selected.".to_owned());
    };
    for node in nodes {
        if let Some(why) = why_not(source, *node) {
            return Err(why);
        }
    }
    let around = enclosing(*first);
    let function = around.filter(|outer| outer.kind() == "function_definition");
    if around.is_some_and(|outer| outer.kind() == "class_definition") {
        return Err("The selection is a part of a class and no statements that run with inputs.".to_owned());
    }
    let scope = function.unwrap_or_else(|| source.root());
    let mut flow = Flow { source, outer: outer_names(source, *first), reads: Vec::new(), set: Vec::new() };
    let mut sure = BTreeSet::new();
    for node in nodes {
        flow.statement(*node, &mut sure);
    }
    let region = Span::new(first.start_byte(), last.end_byte());
    let later = read_outside(source, scope, region, loop_around(*first));
    let mut sets = Vec::new();
    for name in &flow.set {
        if later.contains(name.as_str()) && !sets.contains(name) {
            sets.push(name.clone());
        }
    }
    for name in &sets {
        if sure.contains(name) || flow.reads.contains(name) {
            continue;
        }
        if !flow.outer.contains(name) {
            return Err(format!(
                "`{name}` is set only on some ways through the selection and is read later."
            ));
        }
        flow.reads.push(name.clone());
    }
    if sets.is_empty() {
        return Err(
            "Nothing that the selection sets is read later, so there is nothing to compare.".to_owned()
        );
    }
    if flow.reads.is_empty() {
        return Err("The selection reads nothing that could be an input.".to_owned());
    }
    let line = |at| u32::try_from(source.line(at)).unwrap_or(u32::MAX);
    Ok(Statements {
        span: region,
        lines: [line(region.start), line(region.end.saturating_sub(1))],
        function: function.map(|function| qualified(source, function)),
        reads: flow.reads,
        sets,
    })
}

/// What in a statement can't be kept when it becomes part of a function.
fn why_not(source: &Source<'_>, statement: Node) -> Option<String> {
    let mut why = None;
    let mut refuse = |node: Node, what: &str| {
        why.get_or_insert_with(|| format!("Line {} {what}.", source.line(node.start_byte())));
    };
    each(statement, |node| {
        match node.kind() {
            "return_statement" => refuse(node, "returns from the function around the selection"),
            "yield" => refuse(node, "yields"),
            "await" => refuse(node, "awaits"),
            "break_statement" | "continue_statement" if !in_loop_of(node, statement) => {
                refuse(node, "leaves a loop around the selection");
            }
            "global_statement" | "nonlocal_statement" => refuse(node, "sets names of another scope"),
            "function_definition" | "class_definition" => {
                refuse(node, "defines a function or class; select what it does instead");
            }
            "import_statement" | "import_from_statement" => {
                refuse(node, "imports; select the lines below it")
            }
            "delete_statement" => refuse(node, "deletes names"),
            "assignment" | "augmented_assignment" if sets_attribute(source, node) => {
                refuse(node, "sets an attribute; the new code can only return values");
            }
            "call" => {
                let callee = source.field(node, "function");
                if matches!(callee, "locals" | "globals" | "vars" | "exec" | "eval" | "super") {
                    refuse(node, &format!("calls `{callee}`, which depends on where it stands"));
                } else if callee.starts_with("self.")
                    && !callee.contains('[')
                    && callee.matches('.').count() == 1
                {
                    refuse(
                        node,
                        &format!("calls `{callee}`; select the class to optimise it with its parts"),
                    );
                }
            }
            _ => {}
        }
        !matches!(node.kind(), "lambda")
    });
    why
}

/// Whether an assignment's targets hold an attribute.
fn sets_attribute(source: &Source<'_>, assignment: Node) -> bool {
    let Some(left) = assignment.child_by_field_name("left") else { return false };
    let parts =
        if matches!(left.kind(), "pattern_list" | "tuple_pattern") { children(left) } else { vec![left] };
    parts.into_iter().any(|part| part.kind() == "attribute" && !source.of(part).contains('('))
}

/// Whether a `break` or `continue` stays in a loop of the selected statement.
fn in_loop_of(node: Node, statement: Node) -> bool {
    let mut at = Some(node);
    while let Some(here) = at {
        if matches!(here.kind(), "for_statement" | "while_statement") {
            return true;
        }
        if here.id() == statement.id() {
            return false;
        }
        at = here.parent();
    }
    false
}

/// The span of the outermost loop around a node within its function.
fn loop_around(node: Node) -> Option<Span> {
    let mut found = None;
    let mut at = node.parent();
    while let Some(here) = at.filter(|here| here.kind() != "function_definition") {
        if matches!(here.kind(), "for_statement" | "while_statement") {
            found = Some(span(here));
        }
        at = here.parent();
    }
    found
}

/// Names that the scopes around `at` set themselves: what can be an input. At the top level imports, functions and classes are left out.
fn outer_names(source: &Source<'_>, at: Node) -> HashSet<String> {
    let mut names = HashSet::new();
    let mut scope = enclosing(at);
    let top = scope.is_none();
    while let Some(function) = scope {
        if function.kind() == "function_definition" {
            let list = super::source::parameters(source, function);
            names.extend(list.iter().map(|parameter| parameter.name.to_owned()));
            if let Some(body) = function.child_by_field_name("body") {
                add_set(source, body, &mut names);
            }
        }
        scope = enclosing(function);
    }
    if top {
        add_set(source, source.root(), &mut names);
    }
    names
}

/// Adds the names that a block sets, functions and classes inside left out.
fn add_set(source: &Source<'_>, block: Node, names: &mut HashSet<String>) {
    each(block, |node| {
        match node.kind() {
            "assignment" | "augmented_assignment" | "for_statement" => {
                let left = node.child_by_field_name("left");
                names.extend(left.into_iter().flat_map(|left| targets_of(source, left)));
            }
            "as_pattern_target" => names.extend(targets_of(source, node)),
            "named_expression" => {
                names.insert(source.field(node, "name").to_owned());
            }
            _ => {}
        }
        !matches!(node.kind(), "function_definition" | "class_definition" | "lambda")
    });
}

/// The plain names in the target of an assignment.
pub(super) fn targets_of(source: &Source<'_>, left: Node) -> Vec<String> {
    let mut names = Vec::new();
    each(left, |node| {
        if node.kind() == "identifier" {
            names.push(source.of(node).to_owned());
        }
        !matches!(node.kind(), "attribute" | "subscript" | "call")
    });
    names
}

/// Names that are read in `scope` outside of `region`: behind it, anywhere in the loop around it, or in functions inside the scope.
fn read_outside(source: &Source<'_>, scope: Node, region: Span, around: Option<Span>) -> HashSet<String> {
    let mut names = HashSet::new();
    for node in all(scope, &["identifier"]) {
        let at = span(node);
        if region.contains(at) || !is_name(node) || is_target(node) {
            continue;
        }
        let later = at.start >= region.end || around.is_some_and(|around| around.contains(at));
        let closure = enclosing(node).is_some_and(|inner| inner.id() != scope.id());
        if later || closure {
            names.insert(source.of(node).to_owned());
        }
    }
    names
}

/// Whether a name is only set where it stands.
fn is_target(node: Node) -> bool {
    let mut at = node;
    while let Some(parent) = at.parent() {
        let is_left = parent.child_by_field_name("left").is_some_and(|left| left.id() == at.id());
        match parent.kind() {
            "assignment" | "for_statement" | "for_in_clause" => return is_left,
            "pattern_list" | "tuple_pattern" | "list_pattern" | "list_splat_pattern" => at = parent,
            _ => return false,
        }
    }
    false
}

/// Follows the statements in the order in which they run.
struct Flow<'s, 'a> {
    source: &'s Source<'a>,
    /// Names that can be inputs.
    outer: HashSet<String>,
    reads: Vec<String>,
    set: Vec<String>,
}

impl Flow<'_, '_> {
    /// One statement; `sure` holds the names that are set on every way here.
    fn statement(&mut self, node: Node, sure: &mut BTreeSet<String>) {
        let child = |field: &str| node.child_by_field_name(field);
        match node.kind() {
            "if_statement" => self.branches(node, sure),
            "for_statement" => {
                self.read(child("right"), sure);
                let mut inside = sure.clone();
                self.assign(child("left"), &mut inside);
                self.block(child("body"), &mut inside);
                self.alternative(node, sure);
            }
            "while_statement" => {
                self.read(child("condition"), sure);
                self.block(child("body"), &mut sure.clone());
                self.alternative(node, sure);
            }
            "try_statement" => {
                // Any part may be cut off, so none sets a name for sure, but for what comes in `finally`.
                self.block(child("body"), &mut sure.clone());
                for part in children(node).into_iter().filter(|part| part.kind().ends_with("_clause")) {
                    let finally = part.kind() == "finally_clause";
                    let mut inside = sure.clone();
                    for inner in children(part) {
                        if inner.kind() == "block" {
                            self.block(Some(inner), &mut inside)
                        } else {
                            self.read(Some(inner), &mut inside)
                        }
                    }
                    if finally {
                        *sure = inside;
                    }
                }
            }
            "with_statement" => {
                for part in children(node).into_iter().filter(|part| part.kind() == "with_clause") {
                    self.read(Some(part), sure);
                }
                self.block(child("body"), sure);
            }
            "match_statement" => self.read(Some(node), &mut sure.clone()),
            _ => self.simple(node, sure),
        }
    }

    fn simple(&mut self, node: Node, sure: &mut BTreeSet<String>) {
        // `a = b = value` nests to the right.
        let mut chain = Vec::new();
        let mut at = node.named_child(0);
        while let Some(assignment) =
            at.filter(|at| matches!(at.kind(), "assignment" | "augmented_assignment"))
        {
            chain.push(assignment);
            at = assignment.child_by_field_name("right");
        }
        if chain.is_empty() {
            return self.read(Some(node), sure);
        }
        self.read(at, sure);
        for assignment in chain {
            let left = assignment.child_by_field_name("left");
            if assignment.kind() == "augmented_assignment" {
                self.read(left, sure);
            }
            self.assign(left, sure);
        }
    }

    fn branches(&mut self, node: Node, sure: &mut BTreeSet<String>) {
        self.read(node.child_by_field_name("condition"), sure);
        let mut ends = Vec::new();
        let mut inside = sure.clone();
        self.block(node.child_by_field_name("consequence"), &mut inside);
        ends.push(inside);
        let mut complete = false;
        for clause in super::source::fields(node, "alternative") {
            self.read(clause.child_by_field_name("condition"), sure);
            let mut inside = sure.clone();
            let body = clause.child_by_field_name("consequence").or(clause.child_by_field_name("body"));
            self.block(body, &mut inside);
            complete |= clause.kind() == "else_clause";
            ends.push(inside);
        }
        if complete {
            let common = ends.into_iter().reduce(|all, one| all.intersection(&one).cloned().collect());
            *sure = common.unwrap_or_default();
        }
    }

    fn alternative(&mut self, node: Node, sure: &BTreeSet<String>) {
        let body =
            node.child_by_field_name("alternative").and_then(|clause| clause.child_by_field_name("body"));
        self.block(body, &mut sure.clone());
    }

    fn block(&mut self, block: Option<Node>, sure: &mut BTreeSet<String>) {
        for statement in block.into_iter().flat_map(children) {
            self.statement(statement, sure);
        }
    }

    /// The names that are set by an assignment's target, and what its subscripts and attributes read.
    fn assign(&mut self, left: Option<Node>, sure: &mut BTreeSet<String>) {
        let Some(left) = left else { return };
        for part in all(left, &["subscript", "attribute"]) {
            self.read(Some(part), sure);
        }
        for name in targets_of(self.source, left) {
            sure.insert(name.clone());
            self.set.push(name);
        }
    }

    /// The names that an expression reads.
    fn read(&mut self, node: Option<Node>, sure: &mut BTreeSet<String>) {
        let Some(node) = node else { return };
        let own = own_names(self.source, node);
        let mut found = Vec::new();
        let mut set = Vec::new();
        each(node, |node| {
            if node.kind() == "attribute" {
                let object = self.source.field(node, "object");
                if object == "self" {
                    found.push(format!("self.{}", self.source.field(node, "attribute")));
                    return false;
                }
            }
            if node.kind() == "named_expression" {
                set.push(self.source.field(node, "name").to_owned());
            }
            if node.kind() == "as_pattern_target" {
                set.extend(targets_of(self.source, node));
                return false;
            }
            if is_name(node)
                && !own.contains(self.source.of(node))
                && !set.iter().any(|set| set == self.source.of(node))
            {
                found.push(self.source.of(node).to_owned());
            }
            true
        });
        for name in found {
            let attribute = name.starts_with("self.") && self.outer.contains("self");
            let known = attribute || self.outer.contains(&name);
            if known && !sure.contains(&name) && !self.reads.contains(&name) {
                self.reads.push(name);
            }
        }
        for name in set {
            sure.insert(name.clone());
            self.set.push(name);
        }
    }
}

/// Names that belong to comprehensions and lambdas of an expression.
fn own_names(source: &Source<'_>, node: Node) -> HashSet<String> {
    let mut names = HashSet::new();
    for inner in all(node, &["for_in_clause", "lambda"]) {
        if let Some(left) = inner.child_by_field_name("left") {
            names.extend(targets_of(source, left));
        }
        if let Some(list) = inner.child_by_field_name("parameters") {
            names.extend(targets_of(source, list));
        }
    }
    names
}
