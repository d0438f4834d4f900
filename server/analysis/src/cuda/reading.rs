//! A whole CUDA file, parsed item by item, with every node at its place in the file.
//!
//! The analyzer keeps no trees: what it learned from each item is enough for findings. A rewrite is asked for now and then,
//! and needs the trees, so they are made anew. Each item is masked and parsed alone, as the analyzer does, but as a range of
//! the whole text: the offsets of its nodes are the file's own.

use stitch_findings::Span;
use tree_sitter::{Node, Parser, Point, Range, Tree};

use super::Workspace;
use super::items::{Cutter, Item, ItemKind, State};
use super::lexer::{Kind, Lexer, Token};
use super::mask::mask;
use crate::outline::Function;
use crate::rules::{Environment, Piece};

/// The trees of a file.
pub struct Reading {
    trees: Vec<(Span, Tree)>,
    environment: Environment,
    directives: Directives,
}

/// What the preprocessor's lines say of the text.
#[derive(Debug, Default)]
pub struct Directives {
    /// From each outermost `#if` to its `#endif`; the guard around a header is none.
    pub conditional: Vec<Span>,
    /// `#define` and its kin, each with its continuations.
    pub lines: Vec<Span>,
    /// Whether the file is made to be included: it has a guard or says `#pragma once`.
    pub is_header: bool,
}

impl Reading {
    /// Parses `source`.
    pub fn of(source: &str, workspace: &Workspace) -> Self {
        let macros = workspace.macros().with_file(source);
        let mut cutter = Cutter::new(source, 0, State::default());
        cutter.run(&mut |_, _| false);
        let items: Vec<Item> = cutter.into_items().unwrap_or_default();
        let code: Vec<&Item> = items.iter().filter(|item| item.kind != ItemKind::Mark).collect();
        let mut masked = source.to_owned();
        for item in &code {
            let own = |blank: &Span| {
                let by = item.span.start;
                Span::new(blank.start.saturating_sub(by), blank.end.saturating_sub(by))
            };
            let blanks: Vec<Span> = item.blanks.iter().map(own).collect();
            let text = source.get(item.span.range()).unwrap_or_default();
            // A mask is as long as its text, so the places of all that follows stay.
            masked.replace_range(item.span.range(), &mask(text, &blanks, &macros).text);
        }
        let trees = parse(&masked, &code);
        let pieces: Vec<Piece> = trees.iter().map(|(_, tree)| Piece::of(tree.root_node(), source)).collect();
        let environment = Environment::new(&pieces, workspace.outer());
        Self { trees, environment, directives: Directives::of(source) }
    }

    /// What the file says outside the function at hand.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Its preprocessor lines.
    pub fn directives(&self) -> &Directives {
        &self.directives
    }

    /// The definition of `function` in its tree.
    pub fn node_of(&self, function: &Function) -> Option<Node<'_>> {
        let at = function.name_span;
        let index = self.trees.partition_point(|(span, _)| span.start <= at.start).checked_sub(1)?;
        let (_, tree) = self.trees.get(index).filter(|(span, _)| span.contains(at))?;
        let mut node = tree.root_node().descendant_for_byte_range(at.start, at.end)?;
        while node.kind() != "function_definition" {
            node = node.parent()?;
        }
        let body = node.child_by_field_name("body")?;
        (function.body? == Span::new(body.start_byte(), body.end_byte())).then_some(node)
    }
}

fn parse(masked: &str, items: &[&Item]) -> Vec<(Span, Tree)> {
    let mut parser = Parser::new();
    if parser.set_language(&tree_sitter_cuda::LANGUAGE.into()).is_err() {
        return Vec::new();
    }
    let mut trees = Vec::with_capacity(items.len());
    let mut point = Points { text: masked.as_bytes(), at: 0, row: 0, line: 0 };
    for item in items {
        let start_point = point.go_to(item.span.start);
        let range = Range {
            start_byte: item.span.start,
            end_byte: item.span.end,
            start_point,
            end_point: point.go_to(item.span.end),
        };
        if parser.set_included_ranges(&[range]).is_ok()
            && let Some(tree) = parser.parse(masked, None)
        {
            trees.push((item.span, tree));
        }
    }
    trees
}

/// Rows and columns of offsets that only grow.
struct Points<'t> {
    text: &'t [u8],
    at: usize,
    row: usize,
    line: usize,
}

impl Points<'_> {
    fn go_to(&mut self, offset: usize) -> Point {
        let between = self.text.get(self.at..offset).unwrap_or_default();
        for newline in memchr::memchr_iter(b'\n', between) {
            self.row += 1;
            self.line = self.at + newline + 1;
        }
        self.at = offset.max(self.at);
        Point::new(self.row, offset.saturating_sub(self.line))
    }
}

impl Directives {
    /// Reads the preprocessor's lines of `source`.
    fn of(source: &str) -> Self {
        let tokens: Vec<Token> = Lexer::at(source, 0).collect();
        let guarded = guard(&tokens, source);
        let mut found = Self { is_header: guarded, ..Self::default() };
        let mut open: Vec<usize> = Vec::new();
        let floor = usize::from(guarded);
        for token in tokens.iter().filter(|token| token.kind == Kind::Directive) {
            match words(*token, source) {
                [b"if" | b"ifdef" | b"ifndef", _] => open.push(token.start),
                [b"endif", _] => {
                    if let Some(start) = open.pop().filter(|_| open.len() == floor) {
                        found.conditional.push(Span::new(start, token.end));
                    }
                }
                [b"define", _] => found.lines.push(Span::new(token.start, token.end)),
                [b"pragma", b"once"] => found.is_header = true,
                _ => {}
            }
        }
        if let Some(start) = open.get(floor) {
            found.conditional.push(Span::new(*start, source.len()));
        }
        found
    }
}

/// The first two words of a directive.
fn words(directive: Token, source: &str) -> [&[u8]; 2] {
    let mut tokens = Lexer::within(source, directive.start + 1, directive.end);
    let mut word = || tokens.next().map_or(&b""[..], |word| word.text(source.as_bytes()));
    [word(), word()]
}

/// Whether all of a text stands between `#ifndef NAME`, `#define NAME` and the last `#endif`.
fn guard(tokens: &[Token], source: &str) -> bool {
    let [first, second, ..] = tokens else { return false };
    let ([b"ifndef", name], [b"define", same]) = (words(*first, source), words(*second, source)) else {
        return false;
    };
    let mut depth = 0usize;
    let directives = tokens.iter().filter(|token| token.kind == Kind::Directive);
    let end = directives.into_iter().find(|token| {
        match words(**token, source) {
            [b"if" | b"ifdef" | b"ifndef", _] => depth += 1,
            [b"endif", _] => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    });
    name == same && end == tokens.last()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Analysis, Language};

    #[test]
    fn nodes_stand_where_they_are_in_the_file() {
        let source = "// ä\r\nMACRO(x)\r\n#if A\r\nvoid a() {}\r\n#endif\r\nnamespace n {\r\n__global__ void\r\nk(float *x) { x[0] = 1; }\r\n}\r\n";
        let analysis = Analysis::of(Language::Cuda, source);
        let reading = Reading::of(source, &Workspace::default());
        for function in analysis.outline().functions.iter().filter(|f| f.is_definition) {
            let node = reading.node_of(function).unwrap();
            assert_eq!(&source[node.end_byte() - 1..node.end_byte()], "}");
            let row = source[..node.start_byte()].matches('\n').count();
            assert_eq!(node.start_position().row, row, "{}", function.name);
        }
        assert_eq!(analysis.outline().functions.len(), 2);
    }

    #[test]
    fn a_guard_is_no_condition() {
        let regions = |source: &str| {
            let found = Directives::of(source);
            let texts: Vec<_> = found.conditional.iter().map(|s| source[s.range()].to_owned()).collect();
            (texts, found.is_header)
        };
        let guard = "// c\n#ifndef A_H\n#define A_H\n#if B\nint a;\n#if C\n#endif\n#endif\nint b;\n#endif\n";
        assert_eq!(regions(guard), (vec!["#if B\nint a;\n#if C\n#endif\n#endif".to_owned()], true));
        let plain = "#ifndef N\n#define M 4\n#endif\nint a;\n#ifdef X\nint b;";
        let expected = vec!["#ifndef N\n#define M 4\n#endif".to_owned(), "#ifdef X\nint b;".to_owned()];
        assert_eq!(regions(plain), (expected, false));
        let same = "#ifndef N\n#define N 4\n#endif\n#ifdef X\nint b;\n#endif\nint c;\n";
        assert_eq!(regions(same).0.len(), 2);
        assert_eq!(regions("#pragma once\nint a;\n"), (vec![], true));
    }
}
