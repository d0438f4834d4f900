//! Document symbols: kernels and functions with their launches, modules with their parts, CUDA texts inside Python.

use std::collections::HashSet;

use stitch_analysis::{Function, FunctionKind, Launch, Module, Outline};
use stitch_findings::{Nest, Span};
use tower_lsp::ls_types::{
    DocumentSymbol, DocumentSymbolResponse, Location, SymbolInformation, SymbolKind, Uri,
};

use crate::capabilities::ClientFeatures;
use crate::uri;
use crate::view::View;

/// A symbol in the analysis' own places.
struct Symbol {
    name: String,
    detail: Option<String>,
    kind: SymbolKind,
    span: Span,
    name_span: Span,
    children: Vec<Symbol>,
}

/// The symbols of a document; a flat list for clients that can't show a tree.
pub fn symbols(view: &View, client: &ClientFeatures) -> DocumentSymbolResponse {
    let found =
        view.analysis().map(|analysis| tree(analysis.outline(), analysis.units())).unwrap_or_default();
    if client.nested_symbols {
        return DocumentSymbolResponse::Nested(
            found.into_iter().map(|symbol| nested(view, symbol)).collect(),
        );
    }
    let Ok(uri) = view.document.uri.parse().or_else(|_| uri::strict(&view.document.uri).parse()) else {
        return DocumentSymbolResponse::Flat(Vec::new());
    };
    let mut flat = Vec::new();
    let mut waiting: Vec<(Symbol, Option<String>)> =
        found.into_iter().rev().map(|symbol| (symbol, None)).collect();
    while let Some((symbol, container)) = waiting.pop() {
        let name = symbol.name.clone();
        waiting.extend(symbol.children.into_iter().rev().map(|child| (child, Some(name.clone()))));
        flat.push(information(view, symbol.name, symbol.kind, symbol.span, container, &uri));
    }
    DocumentSymbolResponse::Flat(flat)
}

fn tree(outline: &Outline, units: &[stitch_analysis::Unit]) -> Vec<Symbol> {
    let mut roots: Vec<Symbol> = outline.modules.iter().map(module).collect();
    roots.extend(units.iter().map(|unit| Symbol {
        name: named(&unit.name, "CUDA source"),
        detail: Some("CUDA in Python".into()),
        kind: SymbolKind::NAMESPACE,
        span: unit.span,
        name_span: unit.span,
        children: Vec::new(),
    }));
    let mut functions: Vec<Symbol> =
        outline.functions.iter().filter(|f| f.is_definition).map(function).collect();
    let callers = Nest::new(functions.iter().map(|function| function.span));
    let mut alone = Vec::new();
    for launch in &outline.launches {
        match callers.innermost(launch.span).and_then(|caller| functions.get_mut(caller)) {
            Some(caller) => caller.children.push(self::launch(launch)),
            None => alone.push(self::launch(launch)),
        }
    }
    functions.extend(alone);
    functions.sort_by_key(|function| (function.span.start, std::cmp::Reverse(function.span.end)));
    let known: HashSet<Span> =
        roots.iter().flat_map(|root| &root.children).map(|child| child.name_span).collect();
    let outer = Nest::new(roots.iter().map(|root| root.span));
    let modules_and_units = roots.len();
    for function in functions {
        let around = outer.innermost(function.span);
        // Functions come in the order of the text, so that only the last can be around the next.
        let last = || roots.len().checked_sub(1).filter(|last| *last >= modules_and_units);
        let around = around.or_else(|| last().filter(|last| roots[*last].span.contains(function.span)));
        match around {
            // A method is there already.
            Some(_) if known.contains(&function.name_span) => {}
            Some(root) => roots[root].children.push(function),
            None => roots.push(function),
        }
    }
    roots.sort_by_key(|root| (root.span.start, root.span.end));
    roots.iter_mut().for_each(|root| root.children.sort_by_key(|child| child.span.start));
    roots
}

fn module(module: &Module) -> Symbol {
    let parts = module.parts.iter().map(|part| Symbol {
        name: named(&part.name, "part"),
        detail: Some(part.ty.clone()),
        kind: SymbolKind::FIELD,
        span: part.span,
        name_span: part.span,
        children: Vec::new(),
    });
    let methods = module.methods.iter().map(|method| Symbol {
        name: named(&method.name, "method"),
        detail: Some(format!("({})", method.parameters.join(", "))),
        kind: SymbolKind::METHOD,
        span: method.span,
        name_span: method.name_span,
        children: Vec::new(),
    });
    Symbol {
        name: named(&module.name, "module"),
        detail: Some(module.bases.join(", ")),
        kind: SymbolKind::CLASS,
        span: module.span,
        name_span: module.name_span,
        children: parts.chain(methods).collect(),
    }
}

fn function(function: &Function) -> Symbol {
    let detail = match function.kind {
        FunctionKind::Kernel => Some("kernel"),
        FunctionKind::Device => Some("device function"),
        FunctionKind::HostDevice => Some("host and device function"),
        FunctionKind::Host => None,
    };
    Symbol {
        name: named(&function.qualified_name, "function"),
        detail: detail.map(str::to_owned),
        kind: SymbolKind::FUNCTION,
        span: function.span,
        name_span: function.name_span,
        children: Vec::new(),
    }
}

fn launch(launch: &Launch) -> Symbol {
    let text = |expression: &Option<stitch_analysis::Expression>| {
        expression.as_ref().map_or("?", |expression| expression.text.as_str()).to_owned()
    };
    Symbol {
        name: named(&launch.kernel, "launch"),
        detail: Some(format!("launch <<<{}, {}>>>", text(&launch.grid), text(&launch.block))),
        kind: SymbolKind::EVENT,
        span: launch.span,
        name_span: launch.name_span,
        children: Vec::new(),
    }
}

/// VS Code drops every symbol of a file when one has no name.
fn named(name: &str, otherwise: &str) -> String {
    if name.trim().is_empty() { format!("({otherwise})") } else { name.to_owned() }
}

/// The tree is three deep at most: a module, a method, a launch.
#[allow(deprecated, reason = "the type has no other constructor")]
fn nested(view: &View, symbol: Symbol) -> DocumentSymbol {
    let span = view.place(symbol.span);
    let name_span = view.place(symbol.name_span);
    // VS Code drops every symbol of a file when one's name lies outside of it.
    let name_span = if span.contains(name_span) { name_span } else { Span::new(span.start, span.start) };
    let children: Vec<_> = symbol.children.into_iter().map(|child| nested(view, child)).collect();
    DocumentSymbol {
        name: symbol.name,
        detail: symbol.detail,
        kind: symbol.kind,
        tags: None,
        deprecated: None,
        range: view.range_here(span),
        selection_range: view.range_here(name_span),
        children: (!children.is_empty()).then_some(children),
    }
}

#[allow(deprecated, reason = "the type has no other constructor")]
fn information(
    view: &View,
    name: String,
    kind: SymbolKind,
    span: Span,
    container_name: Option<String>,
    uri: &Uri,
) -> SymbolInformation {
    let location = Location { uri: uri.clone(), range: view.range(span) };
    SymbolInformation { name, kind, tags: None, deprecated: None, location, container_name }
}
