//! Walks the tree of one piece once, in the order of the text, and collects its facts.
//!
//! The walk can be stopped at any node and goes on from there: all it keeps is owned, and the tree is entered again by
//! the number of the node. What is around a node is a stack of spans, so the depth of a tree costs no stack of ours.

use std::sync::OnceLock;

use stitch_findings::Span;
use tree_sitter::{Node, Tree, TreeCursor};

use super::facts::{Facts, Scope, ScopeIndex};
use super::value::PieceText;
use crate::CutOff;

/// Nodes between two questions whether to go on.
const NODES_PER_QUESTION: usize = 512;
/// How far out loops and rare blocks are looked for.
const NEST: usize = 64;

/// The nodes that tell something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interest {
    Nothing,
    Import,
    ImportFrom,
    Function,
    Class,
    Lambda,
    For,
    ForIn,
    While,
    Comprehension,
    If,
    Else,
    Except,
    Leave,
    With,
    Assignment,
    Augmented,
    Call,
    Text,
}

/// What kind of region a node lies in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Region {
    Scope,
    Lambda,
    Loop,
    /// A comprehension, with the part that is evaluated once: its first iterable.
    Comprehension(Span),
    /// Run seldom: every so many steps, or on the way out of the loop.
    Rare,
}

/// A region of the text that is entered and not yet left.
#[derive(Clone, Copy, Debug)]
struct Open {
    span: Span,
    region: Region,
    /// The level of names inside.
    scope: ScopeIndex,
}

/// The walk of one piece.
#[derive(Debug)]
pub(super) struct Walk {
    /// The number of the next node.
    next: usize,
    open: Vec<Open>,
    pub(super) facts: Facts,
}

impl Walk {
    /// A walk that has seen nothing yet.
    pub(super) fn new() -> Self {
        let root = Scope { parent: 0, name: String::new(), is_class: false };
        Self { next: 0, open: Vec::new(), facts: Facts { scopes: vec![root], ..Facts::default() } }
    }

    /// Goes on to the end of `tree`, which must be the same in every call.
    ///
    /// # Errors
    /// [`CutOff`] when `keep_going` said no.
    pub(super) fn run(
        &mut self,
        tree: &Tree,
        piece: PieceText<'_>,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<(), CutOff> {
        let interests = interests();
        let total = tree.root_node().descendant_count();
        let mut cursor = tree.walk();
        cursor.goto_descendant(self.next);
        while self.next < total {
            let node = cursor.node();
            let interest = interests.get(usize::from(node.kind_id())).copied().unwrap_or(Interest::Nothing);
            // What was put before the piece is not part of it.
            if interest != Interest::Nothing && node.start_byte() >= piece.shift {
                self.leave(piece.span(node).start);
                self.visit(interest, node, &cursor, piece);
            }
            self.next += 1;
            advance(&mut cursor);
            if self.next.is_multiple_of(NODES_PER_QUESTION) && !keep_going() {
                return Err(CutOff);
            }
        }
        Ok(())
    }

    fn leave(&mut self, at: usize) {
        while self.open.last().is_some_and(|open| open.span.end <= at) {
            self.open.pop();
        }
    }

    pub(super) fn enter_scope(&mut self, span: Span, name: &str, is_class: bool) -> ScopeIndex {
        let parent = self.scope();
        self.facts.scopes.push(Scope { parent, name: name.to_owned(), is_class });
        let scope = self.facts.scopes.len() - 1;
        self.open.push(Open { span, region: Region::Scope, scope });
        scope
    }

    /// The level of names around the node that is visited.
    pub(super) fn scope(&self) -> ScopeIndex {
        self.open.last().map_or(0, |open| open.scope)
    }

    /// Whether the code at `at` runs more than once or twice, by a loop of its own function.
    pub(super) fn repeats(&self, at: usize) -> bool {
        for open in self.open.iter().rev().take(NEST) {
            let inside = open.span.start <= at && at < open.span.end;
            match open.region {
                Region::Scope | Region::Lambda => return false,
                Region::Rare if inside => return false,
                Region::Loop if inside => return true,
                Region::Comprehension(once) if inside && !once.range().contains(&at) => return true,
                _ => {}
            }
        }
        false
    }

    fn enter(&mut self, span: Span, region: Region) {
        let scope = self.scope();
        self.open.push(Open { span, region, scope });
    }

    fn visit(&mut self, interest: Interest, node: Node, cursor: &TreeCursor, piece: PieceText<'_>) {
        let field = |name: &str| node.child_by_field_name(name).map(|child| piece.span(child));
        match interest {
            Interest::Nothing => {}
            Interest::Import => self.import(node, piece),
            Interest::ImportFrom => self.import_from(node, piece),
            Interest::Function => self.function(node, cursor, piece),
            Interest::Class => self.class(node, cursor, piece),
            Interest::Lambda => self.enter(piece.span(node), Region::Lambda),
            Interest::For => {
                self.loop_target(node, piece);
                self.enter(field("body").unwrap_or_default(), Region::Loop);
            }
            Interest::ForIn => self.loop_target(node, piece),
            Interest::While => {
                let (condition, body) = (field("condition"), field("body"));
                if let (Some(condition), Some(body)) = (condition, body) {
                    self.enter(Span::new(condition.start, body.end), Region::Loop);
                }
            }
            Interest::Comprehension => self.comprehension(node, piece),
            Interest::If => {
                let seldom = node
                    .child_by_field_name("condition")
                    .is_some_and(|condition| is_seldom(piece.of(condition)));
                let body = node.child_by_field_name("consequence");
                if let Some(body) = body.filter(|body| seldom || leaves(*body)) {
                    self.enter(piece.span(body), Region::Rare);
                }
            }
            Interest::Else => {
                if let Some(body) = node.child_by_field_name("body").filter(|body| leaves(*body)) {
                    self.enter(piece.span(body), Region::Rare);
                }
            }
            Interest::Except => self.enter(piece.span(node), Region::Rare),
            Interest::Leave => {
                self.returned(node, piece);
                self.enter(piece.span(node), Region::Rare);
            }
            Interest::With => self.with(node, piece),
            Interest::Assignment => self.assignment(node, false, piece),
            Interest::Augmented => self.assignment(node, true, piece),
            Interest::Call => self.call(node, piece),
            Interest::Text => self.text(node, cursor, piece),
        }
    }

    fn comprehension(&mut self, node: Node, piece: PieceText<'_>) {
        let mut walker = node.walk();
        let first = node
            .named_children(&mut walker)
            .find(|child| child.kind() == "for_in_clause")
            .and_then(|clause| clause.child_by_field_name("right"));
        let once = first.map_or(Span::default(), |first| piece.span(first));
        self.enter(piece.span(node), Region::Comprehension(once));
    }
}

/// Whether a condition holds only every so many times, or only for a person who looks for a mistake.
fn is_seldom(condition: &str) -> bool {
    const WORDS: &[&str] = &["debug", "every", "first_", "freq", "interval", "last_", "verbose"];
    let condition = condition.to_ascii_lowercase();
    condition.contains('%') || WORDS.iter().any(|word| condition.contains(word))
}

/// Whether a block ends by leaving its loop.
fn leaves(block: Node) -> bool {
    let last = block.named_child_count().checked_sub(1).and_then(|last| block.named_child(last as u32));
    last.is_some_and(|last| matches!(last.kind(), "break_statement" | "return_statement" | "raise_statement"))
}

/// To the next node in the order of the text.
fn advance(cursor: &mut TreeCursor) {
    if cursor.goto_first_child() {
        return;
    }
    while !cursor.goto_next_sibling() {
        if !cursor.goto_parent() {
            return;
        }
    }
}

/// What each kind of node of the grammar tells, by its number.
fn interests() -> &'static [Interest] {
    static TABLE: OnceLock<Vec<Interest>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let language: tree_sitter::Language = tree_sitter_python::LANGUAGE.into();
        let of = |id: usize| {
            let id = u16::try_from(id).unwrap_or(0);
            match language.node_kind_for_id(id).filter(|_| language.node_kind_is_named(id)) {
                Some("import_statement") => Interest::Import,
                Some("import_from_statement") => Interest::ImportFrom,
                Some("function_definition") => Interest::Function,
                Some("class_definition") => Interest::Class,
                Some("lambda") => Interest::Lambda,
                Some("for_statement") => Interest::For,
                Some("for_in_clause") => Interest::ForIn,
                Some("while_statement") => Interest::While,
                Some(
                    "list_comprehension"
                    | "set_comprehension"
                    | "dictionary_comprehension"
                    | "generator_expression",
                ) => Interest::Comprehension,
                Some("if_statement" | "elif_clause") => Interest::If,
                Some("else_clause") => Interest::Else,
                Some("except_clause" | "finally_clause") => Interest::Except,
                Some("return_statement" | "raise_statement") => Interest::Leave,
                Some("with_item") => Interest::With,
                Some("assignment") => Interest::Assignment,
                Some("augmented_assignment") => Interest::Augmented,
                Some("call") => Interest::Call,
                Some("string") => Interest::Text,
                _ => Interest::Nothing,
            }
        };
        (0..language.node_kind_count()).map(of).collect()
    })
}
