//! Runs the rules over a text without the rest of the crate: the plain grammar, no mask, and the outline's part by hand.

use stitch_findings::{Finding, Span};
use tree_sitter::{Node, Parser, Tree};

use crate::outline::{Function, FunctionKind, TemplateParameter};
use crate::rules::{Environment, FunctionContext, Outer, Piece, check_cuda_function};

/// The tree of a text.
pub fn parse(source: &str) -> Tree {
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_cuda::LANGUAGE.into()).expect("the grammar fits");
    parser.parse(source, None).expect("nothing cuts it off")
}

/// All findings of a text.
pub fn check(source: &str) -> Vec<Finding> {
    let tree = parse(source);
    let mut cursor = tree.root_node().walk();
    let pieces: Vec<Piece> =
        tree.root_node().children(&mut cursor).map(|item| Piece::of(item, source)).collect();
    let environment = Environment::new(&pieces, &Outer::default());
    let mut findings = check_tree(&tree, source, &environment);
    findings.sort_by_key(|finding| (finding.span, finding.code));
    findings
}

/// The findings of all functions of a tree.
pub fn check_tree(tree: &Tree, source: &str, environment: &Environment) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (node, function) in functions(tree, source) {
        findings.extend(check_cuda_function(&FunctionContext {
            source,
            node,
            function: &function,
            environment,
        }));
    }
    findings
}

/// The functions of a tree.
pub fn functions<'t>(tree: &'t Tree, source: &str) -> Vec<(Node<'t>, Function)> {
    let mut functions = Vec::new();
    let mut cursor = tree.root_node().walk();
    loop {
        let node = cursor.node();
        if node.kind() == "function_definition" {
            functions.extend(function(node, source).map(|function| (node, function)));
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return functions;
            }
        }
    }
}

fn function(node: Node, source: &str) -> Option<Function> {
    let text = |node: Node| source.get(node.byte_range()).unwrap_or("").to_owned();
    let mut name = node.child_by_field_name("declarator")?;
    while let Some(inner) = name.child_by_field_name("declarator") {
        name = inner;
    }
    let head = source.get(node.start_byte()..name.start_byte())?;
    let kind = match (head.contains("__global__"), head.contains("__device__"), head.contains("__host__")) {
        (true, ..) => FunctionKind::Kernel,
        (_, true, true) => FunctionKind::HostDevice,
        (_, true, false) => FunctionKind::Device,
        _ => FunctionKind::Host,
    };
    let mut template_parameters = Vec::new();
    if let Some(list) = node.parent().and_then(|parent| parent.child_by_field_name("parameters")) {
        let mut cursor = list.walk();
        for parameter in list.named_children(&mut cursor) {
            let field = |name| parameter.child_by_field_name(name).map(text);
            template_parameters.push(TemplateParameter {
                name: field("declarator").or_else(|| parameter.named_child(0).map(text)).unwrap_or_default(),
                kind: field("type").unwrap_or_default(),
                default: field("default_value"),
            });
        }
    }
    let span = |node: Node| Span::new(node.start_byte(), node.end_byte());
    Some(Function {
        name: text(name),
        qualified_name: text(name),
        kind,
        is_definition: true,
        template_parameters,
        parameters: Vec::new(),
        launch_bounds: None,
        span: span(node),
        name_span: span(name),
        body: node.child_by_field_name("body").map(span),
        unit: None,
    })
}
