//! Functions and kernels in the tree of one item.
//!
//! Only what can hold a function is entered, with a cursor and an explicit stack: bodies are not walked, and depth costs
//! no stack. The tree may have errors anywhere; what it says is taken, what it misses is the fall-back scanner's.

use stitch_findings::Span;
use tree_sitter::Node;

use super::declarators::{self, Name};
use super::mask::{Mark, Masked};
use super::tidy::tidy;
use crate::outline::{Expression, Function, FunctionKind, LaunchBounds, Parameter, TemplateParameter};

/// A function, and its node in the item's tree.
pub struct Found<'t> {
    /// What is known of it; spans are the item's, values are not folded.
    pub function: Function,
    /// The definition or declaration.
    pub node: Node<'t>,
}

/// What the walk is inside of.
enum Around {
    Template { depth: u32, start: usize, parameters: Vec<TemplateParameter> },
    Class { depth: u32, name: String },
}

impl Around {
    fn depth(&self) -> u32 {
        match self {
            Self::Template { depth, .. } | Self::Class { depth, .. } => *depth,
        }
    }
}

/// The functions of an item, in the order of its text.
pub fn functions<'t>(root: Node<'t>, source: &str, masked: &Masked) -> Vec<Found<'t>> {
    let mut walk = Walk { source, masked, around: Vec::new(), found: Vec::new(), first: first_start(root) };
    let mut cursor = root.walk();
    // Counted here: the cursor counts its own depth anew each time it is asked.
    let mut depth = 0;
    loop {
        if walk.enter(cursor.node(), depth) && cursor.goto_first_child() {
            depth += 1;
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return walk.found;
            }
            depth -= 1;
        }
        walk.leave(depth);
    }
}

fn first_start(root: Node) -> usize {
    root.child(0).map_or(0, |node| node.start_byte())
}

struct Walk<'s, 't> {
    source: &'s str,
    masked: &'s Masked,
    around: Vec<Around>,
    found: Vec<Found<'t>>,
    /// Where the first node begins; attributes before it were blanked.
    first: usize,
}

impl<'t> Walk<'_, 't> {
    /// Leaves all that is as deep as `depth` or deeper.
    fn leave(&mut self, depth: u32) {
        while self.around.last().is_some_and(|around| around.depth() >= depth) {
            self.around.pop();
        }
    }

    /// Looks at a node, so deep in the tree. Whether it is to be entered.
    fn enter(&mut self, node: Node<'t>, depth: u32) -> bool {
        match node.kind() {
            "translation_unit" | "declaration_list" | "linkage_specification" | "field_declaration_list" => {
                true
            }
            "preproc_if" | "preproc_ifdef" | "preproc_else" | "preproc_elif" | "preproc_elifdef"
            | "ERROR" => true,
            "type_definition" => true,
            "template_declaration" => {
                let list = node.child_by_field_name("parameters");
                let parameters = list.map(|l| self.template_parameters(l)).unwrap_or_default();
                self.around.push(Around::Template { depth, start: node.start_byte(), parameters });
                true
            }
            "namespace_definition" | "class_specifier" | "struct_specifier" | "union_specifier" => {
                let has_body = node.child_by_field_name("body").is_some();
                if has_body {
                    let name = node
                        .child_by_field_name("name")
                        .map(|n| declarators::class_name(n, &self.masked.text));
                    self.around.push(Around::Class { depth, name: name.unwrap_or_default() });
                }
                has_body
            }
            "function_definition" => {
                self.function(node);
                false
            }
            "declaration" | "field_declaration" => {
                self.function(node);
                // `struct { … } x;`
                node.child_by_field_name("type").is_some_and(|ty| ty.child_by_field_name("body").is_some())
            }
            _ => false,
        }
    }

    fn function(&mut self, node: Node<'t>) {
        let Some(declarator) = declarators::function_declarator(node) else { return };
        let Some(name) = declarators::name(declarator, &self.masked.text) else { return };
        if is_keyword(&name.name) {
            return;
        }
        let body = declarators::body(node);
        let start = self.start(node);
        let head = Span::new(start, body.map_or(node.end_byte(), |b| b.start_byte()));
        let marks: Vec<Mark> = self.masked.marks.iter().filter(|m| head.contains(m.span)).copied().collect();
        // An attribute behind the name's parentheses belongs to a parameter, unless it is one of launch bounds.
        let runs = marks
            .iter()
            .filter(|m| m.span.start < name.span.start)
            .fold(super::macros::Runs::default(), |runs, m| runs.and(m.runs));
        let bounds = marks.iter().find_map(|m| m.bounds);
        let kind = runs.kind();
        if kind == FunctionKind::Host && node.kind() == "declaration" && !declares_function(node, declarator)
        {
            return;
        }
        self.found.push(Found {
            function: Function {
                qualified_name: self.qualified(&name),
                name: name.name,
                kind,
                is_definition: body.is_some(),
                template_parameters: self.all_template_parameters(),
                parameters: self.parameters(declarator),
                launch_bounds: bounds.and_then(|b| launch_bounds(self.source, b)),
                span: Span::new(start, node.end_byte()),
                name_span: name.span,
                body: body.map(|b| Span::new(b.start_byte(), b.end_byte())),
                unit: None,
            },
            node,
        });
    }

    /// Where a function begins: at its template, or at the blanked attributes before it.
    fn start(&self, node: Node) -> usize {
        let mut start = node.start_byte();
        for around in self.around.iter().rev() {
            match around {
                Around::Template { start: template, .. } => start = *template,
                Around::Class { .. } => break,
            }
        }
        if start == self.first {
            return 0;
        }
        // Attributes that stand directly before it.
        for mark in self.masked.marks.iter().rev() {
            if mark.span.end > start {
                continue;
            }
            let between = self.masked.text.get(mark.span.end..start).unwrap_or("x");
            if !between.trim().is_empty() {
                break;
            }
            start = mark.span.start;
        }
        start
    }

    fn qualified(&self, name: &Name) -> String {
        let classes = self.around.iter().filter_map(|around| match around {
            Around::Class { name, .. } if !name.is_empty() => Some(name.as_str()),
            _ => None,
        });
        let parts: Vec<&str> =
            classes.chain(name.scopes.iter().map(String::as_str)).chain([name.name.as_str()]).collect();
        parts.join("::")
    }

    fn all_template_parameters(&self) -> Vec<TemplateParameter> {
        let lists = self.around.iter().filter_map(|around| match around {
            Around::Template { parameters, .. } => Some(parameters),
            Around::Class { .. } => None,
        });
        lists.flatten().cloned().collect()
    }

    fn parameters(&self, declarator: Node) -> Vec<Parameter> {
        let Some(list) = declarators::parameter_list(declarator) else { return Vec::new() };
        let mut cursor = list.walk();
        let parameters: Vec<Parameter> = list
            .named_children(&mut cursor)
            .filter(|child| child.kind().ends_with("parameter_declaration"))
            .map(|child| self.parameter(child))
            .collect();
        match parameters.as_slice() {
            [only] if only.ty == "void" && only.name.is_empty() => Vec::new(),
            _ => parameters,
        }
    }

    fn parameter(&self, node: Node) -> Parameter {
        let name = declarators::parameter_name(node);
        let default = node.child_by_field_name("default_value");
        let end = default.map_or(node.end_byte(), |d| self.before_equals(node.start_byte(), d.start_byte()));
        let span = Span::new(node.start_byte(), node.end_byte());
        let text = |span: Span| self.text(span);
        let ty = match name {
            Some(name) if name.start < end => {
                let before = text(Span::new(span.start, name.start));
                let after = text(Span::new(name.end, end));
                tidy(&format!("{before} {after}"))
            }
            _ => tidy(text(Span::new(span.start, end))),
        };
        let name = name.map(|n| text(n).to_owned()).unwrap_or_default();
        Parameter { name, ty, span }
    }

    /// The original text, or the masked one where the original has preprocessor lines.
    fn text(&self, span: Span) -> &str {
        let original = self.source.get(span.range()).unwrap_or_default();
        if original.contains('#') { self.masked.text.get(span.range()).unwrap_or_default() } else { original }
    }

    fn before_equals(&self, start: usize, default: usize) -> usize {
        let text = self.masked.text.get(start..default).unwrap_or_default();
        start + text.rfind('=').unwrap_or(text.len())
    }

    fn template_parameters(&self, list: Node) -> Vec<TemplateParameter> {
        let mut cursor = list.walk();
        list.named_children(&mut cursor)
            .filter(|child| child.kind().ends_with("declaration"))
            .map(|child| self.template_parameter(child))
            .collect()
    }

    fn template_parameter(&self, node: Node) -> TemplateParameter {
        let default =
            node.child_by_field_name("default_type").or_else(|| node.child_by_field_name("default_value"));
        let end = default.map_or(node.end_byte(), |d| self.before_equals(node.start_byte(), d.start_byte()));
        let name = node
            .child_by_field_name("name")
            .map(|n| Span::new(n.start_byte(), n.end_byte()))
            .or_else(|| declarators::template_parameter_name(node));
        let kind = match name {
            Some(name) if name.start < end => {
                let before = self.text(Span::new(node.start_byte(), name.start));
                tidy(&format!("{before} {}", self.text(Span::new(name.end, end))))
            }
            _ => tidy(self.text(Span::new(node.start_byte(), end))),
        };
        TemplateParameter {
            name: name.map(|n| self.text(n).to_owned()).unwrap_or_default(),
            kind,
            default: default.map(|d| tidy(self.text(Span::new(d.start_byte(), d.end_byte())))),
        }
    }
}

/// Whether a declaration with parentheses, outside any class, declares a function and no object: `dim3 block(16, 16);`.
fn declares_function(node: Node, declarator: Node) -> bool {
    node.child_by_field_name("type").is_some()
        && declarators::parameter_list(declarator).is_some_and(|list| !list.has_error())
}

/// Words that a broken text makes look like a function's name.
fn is_keyword(name: &str) -> bool {
    matches!(name, "if" | "for" | "while" | "switch" | "return" | "sizeof" | "catch" | "else" | "do" | "case")
        || matches!(
            name,
            "static_assert" | "decltype" | "alignas" | "alignof" | "new" | "delete" | "" | "defined"
        )
}

/// Reads the arguments of launch bounds from the original text.
pub fn launch_bounds(source: &str, arguments: Span) -> Option<LaunchBounds> {
    let mut parts =
        super::arguments::split(source, arguments).into_iter().map(|span| expression(source, span));
    let max_threads = parts.next().filter(|e| !e.text.is_empty())?;
    Some(LaunchBounds { max_threads, min_blocks: parts.next(), max_cluster: parts.next() })
}

/// An expression as written, its value not known yet.
pub fn expression(source: &str, span: Span) -> Expression {
    Expression { text: tidy(source.get(span.range()).unwrap_or_default()), span, value: None }
}
