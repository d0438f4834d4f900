//! Parses one piece. A parse can be stopped and goes on where it stopped.
//!
//! A member of a class or function is parsed behind a line that opens a class, so that its indentation is right. A long piece is
//! parsed incrementally, from the tree of the piece that was parsed last; but where the text has an error the tree of
//! an incremental parse depends on what was there before, so such a piece is parsed afresh. A parse that was stopped may
//! recover from an error in another way than one that was not; its tree is right, but is not to be remembered.

use std::ops::ControlFlow;

use tree_sitter::{ParseOptions, Parser, Point, Tree};

use crate::CutOff;
use crate::reparse::edited;

/// Put before a member of a class or function: the grammar lets anything stand in either.
const CLASS: &str = "class _:\n";
/// From this length on, in bytes, the last tree is kept for an incremental parse.
const LONG: usize = 8 << 10;
/// Longer pieces are not read, in bytes: a table or a file packed into a string, which would be parsed token by token.
const LONGEST: usize = 4 << 20;
/// Deeper indentation is not read. The grammar's scanner saves its indentations in 1024 bytes, and aborts the process
/// when they do not fit.
const DEEPEST: usize = 200;
/// A parse is given up after so many questions whether to go on, and so many bytes a question. Recovering from errors can
/// take time that is quadratic in the length; a text without errors takes less than a tenth of this.
const PATIENCE: (usize, usize) = (2000, 4);

/// A piece as it is given to the parser.
#[derive(Debug)]
pub(super) struct Prepared {
    text: String,
    /// How many bytes were put before the piece.
    pub(super) shift: usize,
}

impl Prepared {
    /// `None` for a piece that is not to be parsed.
    pub(super) fn new(piece: &str, member: bool) -> Option<Self> {
        if piece.len() > LONGEST || is_too_deep(piece) {
            return None;
        }
        let shift = if member { CLASS.len() } else { 0 };
        let mut text = String::with_capacity(shift + piece.len() + 1);
        text.push_str(&CLASS[..shift]);
        push_with_line_ends(piece, &mut text);
        text.push('\n');
        Some(Self { text, shift })
    }
}

/// Adds `piece`, with every CR that is a line end of its own as LF: the grammar knows no other.
fn push_with_line_ends(piece: &str, text: &mut String) {
    let mut start = 0;
    for at in memchr::memchr_iter(b'\r', piece.as_bytes()) {
        if piece.as_bytes().get(at + 1) != Some(&b'\n') {
            text.push_str(&piece[start..at]);
            text.push('\n');
            start = at + 1;
        }
    }
    text.push_str(&piece[start..]);
}

/// Whether the lines are indented in more steps than the grammar can keep.
fn is_too_deep(piece: &str) -> bool {
    let mut steps: Vec<usize> = Vec::new();
    for line in piece.split(['\n', '\r']) {
        let body = line.trim_start_matches([' ', '\t', '\x0c']);
        if body.is_empty() {
            continue;
        }
        let indent: usize =
            line[..line.len() - body.len()].bytes().map(|b| if b == b'\t' { 8 } else { 1 }).sum();
        while steps.last().is_some_and(|last| *last >= indent) {
            steps.pop();
        }
        steps.push(indent);
        if steps.len() > DEEPEST {
            return true;
        }
    }
    false
}

/// The parser, and the long piece it parsed last.
pub(super) struct PieceParser {
    parser: Parser,
    /// None after a piece with an error: while a person types through an error, trying both ways would cost twice.
    last: Option<(String, Tree)>,
    /// The tree that the running parse starts from, if it does not start afresh.
    base: Option<Tree>,
    /// Questions asked by the running parse.
    asked: usize,
    running: bool,
    /// The running parse was stopped before.
    stopped: bool,
}

/// A tree, and whether parsing the same text again is sure to give the same.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) tree: Tree,
    pub(super) repeatable: bool,
}

impl PieceParser {
    pub(super) fn new() -> Self {
        Self { parser: new_parser(), last: None, base: None, asked: 0, running: false, stopped: false }
    }

    /// Forgets the running parse. The grammar's scanner remembers an open formatted string over the end of a parse that did
    /// not end well, so the next one gets a new parser.
    pub(super) fn reset(&mut self) {
        if self.running {
            self.parser = new_parser();
        }
        self.base = None;
        self.asked = 0;
        self.running = false;
        self.stopped = false;
    }

    /// Parses `piece`, or goes on with it; it must be the same until this returns `Ok` or is reset. `None` for a piece
    /// that takes too long.
    ///
    /// # Errors
    /// [`CutOff`] when `keep_going` said no.
    pub(super) fn parse(
        &mut self,
        piece: &Prepared,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<Option<Parsed>, CutOff> {
        if !self.running {
            self.running = true;
            self.base = self
                .last
                .as_ref()
                .and_then(|(text, tree)| edited(text.as_bytes(), tree, piece.text.as_bytes()));
        }
        loop {
            let result = self.go_on(piece, keep_going);
            self.stopped |= result.is_err();
            let Some(tree) = result? else {
                self.reset();
                return Ok(None);
            };
            if self.base.is_some() && tree.root_node().has_error() {
                self.reset();
                self.running = true;
                continue;
            }
            let good = !tree.root_node().has_error();
            let repeatable = good || !self.stopped;
            self.running = !good;
            self.reset();
            if piece.text.len() >= LONG {
                self.last = good.then(|| (piece.text.clone(), tree.clone()));
            }
            return Ok(Some(Parsed { tree, repeatable }));
        }
    }

    fn go_on(&mut self, piece: &Prepared, keep_going: &dyn Fn() -> bool) -> Result<Option<Tree>, CutOff> {
        let patience = PATIENCE.0 + piece.text.len() / PATIENCE.1;
        let asked = &mut self.asked;
        let mut given_up = false;
        let mut progress = |_: &tree_sitter::ParseState| {
            *asked += 1;
            given_up = *asked > patience;
            if given_up || !keep_going() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let options = ParseOptions::new().progress_callback(&mut progress);
        let bytes = piece.text.as_bytes();
        let mut read = |at: usize, _: Point| bytes.get(at..).unwrap_or_default();
        match self.parser.parse_with_options(&mut read, self.base.as_ref(), Some(options)) {
            Some(tree) => Ok(Some(tree)),
            None if given_up => Ok(None),
            None => Err(CutOff),
        }
    }
}

fn new_parser() -> Parser {
    let mut parser = Parser::new();
    // Fails only for a grammar of another ABI, which the tests would show: nothing would be found.
    let _ = parser.set_language(&tree_sitter_python::LANGUAGE.into());
    parser
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(parser: &mut PieceParser, text: &str) -> Option<String> {
        let prepared = Prepared::new(text, false)?;
        let tree = parser.parse(&prepared, &|| true).unwrap();
        tree.map(|parsed| parsed.tree.root_node().to_sexp())
    }

    #[test]
    fn a_parse_goes_on_where_it_stopped() {
        let text = "def f(x):\n    return [x + 1, {'a': (x, 2)}]\n".repeat(300);
        let prepared = Prepared::new(&text, false).unwrap();
        let mut parser = PieceParser::new();
        let allowed = std::cell::Cell::new(0);
        let mut stops = 0;
        let stopped = loop {
            allowed.set(2);
            let keep_going = || {
                allowed.set(allowed.get() - 1);
                allowed.get() > 0
            };
            match parser.parse(&prepared, &keep_going) {
                Ok(tree) => break tree.unwrap(),
                Err(CutOff) => stops += 1,
            }
        };
        assert!(stops > 10, "{stops} stops");
        let whole = PieceParser::new().parse(&prepared, &|| true).unwrap().unwrap();
        assert_eq!(stopped.tree.root_node().to_sexp(), whole.tree.root_node().to_sexp());
    }

    #[test]
    fn an_incremental_parse_gives_the_tree_of_a_fresh_one() {
        let line = "    y = g(x, [1, 2], {'k': x % 3}) if x else -x\n";
        let text = format!("def f(x):\n{}", line.repeat(400));
        let mut parser = PieceParser::new();
        tree(&mut parser, &text);
        for (at, new) in [(20, "é"), (9000, "{"), (9000, "z = 1\n    "), (5000, "\"\"\""), (15_000, "#")] {
            let mut edited = text.clone();
            edited.insert_str(at, new);
            assert_eq!(tree(&mut parser, &edited), tree(&mut PieceParser::new(), &edited), "{new} at {at}");
        }
    }

    #[test]
    fn what_can_not_be_parsed_is_refused() {
        let deep: String = (0..400).map(|depth| format!("{}if x:\n", " ".repeat(depth))).collect();
        assert_eq!(tree(&mut PieceParser::new(), &deep), None);
        assert_eq!(tree(&mut PieceParser::new(), &"x = 1\n".repeat(1_000_000)), None);
        assert!(tree(&mut PieceParser::new(), "x = 1\ry = 2\r").unwrap().matches("assignment").count() == 2);
    }
}
