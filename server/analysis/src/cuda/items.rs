//! Cuts a file into items: the pieces at its top level, one function, type, declaration or `#define` each.
//!
//! An item is parsed alone. So a keystroke costs one item and not the file, and an error stays in the item where it is.
//! Namespaces and `extern "C"` are opened up. Preprocessor groups are, too, where each branch is made of whole items;
//! where a branch cuts through one (a signature in two versions, one body) only its first living branch is kept. A
//! branch that a literal condition rules out is skipped.
//!
//! The cut is the same however it is reached, from the start of the text or from a boundary of an earlier cut:
//! [`State`] is all that a boundary hands on.

mod groups;

use std::sync::Arc;

use smallvec::SmallVec;
use stitch_findings::Span;

use super::conditionals::{Frame, Level};
use super::head::Head;
use super::lexer::{Carry, Kind, Lexer, Token, column};

/// What an item is, as far as the cut tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// Functions, types, variables.
    Code,
    /// A `#define`.
    Definition,
    /// A directive that opens a branch, and the opening or closing of a scope: nothing to parse.
    Mark,
}

/// The names of the namespaces around an item, outermost first; empty names for those without.
pub type Scopes = Arc<[Box<str>]>;

/// More nested scopes or preprocessor groups than this are not followed: no person writes them.
const DEEPEST: usize = 64;

/// After so many items that never end, an item is cut at the first line that looks like the next one.
const PATIENCE: u8 = 6;

/// What a boundary between items hands on to the rest of the text.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// The namespaces that are open.
    pub scopes: Scopes,
    /// The preprocessor groups that are open.
    frames: SmallVec<[Frame; 1]>,
    /// Groups that are open beyond the deepest that is followed.
    deeper: u32,
    /// How many items had no end.
    failures: u8,
    /// What the lexer hands on to the next token.
    carry: Carry,
    /// The column of the next token; `None` if something stands before it on its line.
    column: Option<usize>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            scopes: Arc::from([]),
            frames: SmallVec::new(),
            deeper: 0,
            failures: 0,
            carry: Carry::default(),
            column: Some(0),
        }
    }
}

/// One item of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// From its first token to its last.
    pub span: Span,
    /// What it is.
    pub kind: ItemKind,
    /// What is blanked before it is parsed: directives and branches.
    pub blanks: SmallVec<[Span; 1]>,
    /// What held before it.
    pub state: State,
    /// How far the text was read to decide where it ends; `usize::MAX` for all of it.
    pub looked_to: usize,
}

/// Where the scan stands inside an item.
struct Pending {
    start: usize,
    head: Head,
    /// For each open brace, how many parentheses were open before it.
    braces: Vec<u32>,
    parentheses: u32,
    blanks: SmallVec<[Span; 1]>,
    last: Token,
    before_last: Option<Token>,
    indentation: usize,
    /// The first place where the next item might begin, should this one have no end.
    rescue: Option<Rescue>,
    /// The directives of the groups that were opened inside it.
    groups: Vec<SmallVec<[Span; 3]>>,
    state_before: State,
    /// A brace was closed and nothing is open: the next token tells whether the item goes on.
    perhaps_done: bool,
}

struct Rescue {
    at: usize,
    last_end: usize,
    frames: SmallVec<[Frame; 1]>,
    groups: usize,
    carry: Carry,
}

impl Pending {
    fn level(&self) -> (usize, u32) {
        (self.braces.len(), self.parentheses)
    }

    fn is_open(&self) -> bool {
        !self.braces.is_empty() || self.parentheses > 0
    }

    /// Whether a statement is over here, so that a preprocessor branch may begin or end.
    fn between_statements(&self) -> bool {
        let over = matches!(self.last.kind, Kind::Directive | Kind::Byte(b';' | b'{' | b'}' | b':' | b')'));
        !self.braces.is_empty() && self.parentheses == 0 && over
    }
}

/// Cuts a text.
pub struct Cutter<'t> {
    text: &'t str,
    bytes: &'t [u8],
    lexer: Lexer<'t>,
    state: State,
    items: Vec<Item>,
    pending: Option<Pending>,
    /// Whether items before the beginning would have to be taken back.
    began_too_late: bool,
}

impl<'t> Cutter<'t> {
    /// Cuts `text` from `position` on, a boundary with `state`.
    pub fn new(text: &'t str, position: usize, state: State) -> Self {
        let lexer = Lexer::resume(text, position, state.carry);
        Self {
            text,
            bytes: text.as_bytes(),
            lexer,
            state,
            items: Vec::new(),
            pending: None,
            began_too_late: false,
        }
    }

    /// The items so far. `None` if they can't be told without a cut from the start of the text: a branch that began
    /// before this cut did turned out to be one that is dropped.
    pub fn into_items(self) -> Option<Vec<Item>> {
        (!self.began_too_late).then_some(self.items)
    }

    /// Cuts to the end, or until `stop` says so of a boundary: of the start of the next token and the state there.
    /// Returns whether it came to the end.
    pub fn run(&mut self, stop: &mut dyn FnMut(usize, &State) -> bool) -> bool {
        loop {
            let Some(token) = self.next_token() else {
                if self.end_of_text() {
                    continue;
                }
                return true;
            };
            if self.pending.as_ref().is_some_and(|p| p.perhaps_done) {
                self.after_braces(token);
            }
            if self.pending.is_none() {
                self.state.column = column(self.bytes, token.start);
                if stop(token.start, &self.state) {
                    return false;
                }
            }
            self.token(token);
        }
    }

    /// The next token; what the lexer handed on to it is in the state.
    fn next_token(&mut self) -> Option<Token> {
        self.state.carry = self.lexer.carry();
        self.lexer.next()
    }

    fn token(&mut self, token: Token) {
        if token.kind == Kind::Directive {
            self.directive(token);
            return;
        }
        // Either may end the item at hand, so that the token begins the next one.
        if !self.rescue_line(token) {
            self.macro_call_ends(token);
        }
        match &self.pending {
            None if token.is(b'}') => self.close_scope(token),
            None if token.is(b';') => {}
            None => self.begin(token),
            Some(_) => self.go_on(token),
        }
    }

    /// Begins an item with its first token.
    fn begin(&mut self, token: Token) {
        self.state.column = column(self.bytes, token.start);
        let mut pending = Pending {
            start: token.start,
            head: Head::default(),
            braces: Vec::new(),
            parentheses: 0,
            blanks: SmallVec::new(),
            last: token,
            before_last: None,
            indentation: self.state.column.unwrap_or(usize::MAX),
            rescue: None,
            groups: Vec::new(),
            state_before: self.state.clone(),
            perhaps_done: false,
        };
        match token.kind {
            Kind::Byte(b'{') => pending.braces.push(0),
            Kind::Byte(b'(') => pending.parentheses = 1,
            _ => pending.head.note(token, self.bytes, 0, None),
        }
        self.pending = Some(pending);
    }

    /// Reads one more token of an item.
    fn go_on(&mut self, token: Token) {
        let Some(pending) = &mut self.pending else { return };
        let last = pending.last;
        let before_last = pending.before_last.replace(last);
        pending.last = token;
        match token.kind {
            Kind::Byte(b'{') => {
                if !pending.is_open() {
                    let linkage = last.kind == Kind::Literal
                        && before_last.is_some_and(|t| t.text(self.bytes) == b"extern");
                    let name = if linkage { Some(String::new()) } else { pending.head.opens_namespace() };
                    if let Some(name) = name.filter(|_| self.state.scopes.len() < DEEPEST) {
                        self.open_scope(token, &name);
                        return;
                    }
                    pending.head.begins_braces();
                }
                pending.braces.push(pending.parentheses);
                pending.parentheses = 0;
                return;
            }
            Kind::Byte(b'}') => return self.close_brace(token),
            Kind::Byte(b'(') => pending.parentheses += 1,
            Kind::Byte(b')') => pending.parentheses = pending.parentheses.saturating_sub(1),
            Kind::Byte(b';') if !pending.is_open() => {
                self.finish(token.end, token.end + 1);
                return;
            }
            _ => {}
        }
        if pending.braces.is_empty() {
            pending.head.note(token, self.bytes, pending.parentheses, Some(last));
        }
    }

    fn close_brace(&mut self, token: Token) {
        let Some(pending) = &mut self.pending else { return };
        let depth = pending.braces.len();
        // A branch that closes a brace of the text around its group cuts through the item.
        if let (Some(frame), Some(_)) = (self.state.frames.last_mut(), pending.groups.last())
            && !frame.cuts
            && frame.start.inside.is_some_and(|(braces, _)| depth <= braces)
        {
            let later = frame.kept.is_some();
            self.cut_through();
            if later {
                self.skip_group_from(token.start);
                return;
            }
        }
        let Some(pending) = &mut self.pending else { return };
        pending.parentheses = pending.braces.pop().unwrap_or_default();
        if depth == 0 {
            // A brace too many ends what was being read.
            self.finish(token.start, token.end + 1);
            self.close_scope(token);
        } else if !pending.is_open() && !pending.head.ends_requirement() {
            pending.perhaps_done = true;
        }
    }

    /// Decides, at the first token after a closing brace, whether the item is over.
    fn after_braces(&mut self, next: Token) {
        let Some(pending) = &mut self.pending else { return };
        pending.perhaps_done = false;
        let mut looked_to = next.end;
        let goes_on = match next.kind {
            Kind::Byte(b',' | b'=' | b'[' | b'(' | b'.' | b')' | b'?') => true,
            // `{}` of a member initialiser, then the body.
            Kind::Byte(b'{') => pending.head.has_initialiser_list(),
            // The grammar reads `void f() {};` as a variable with a value.
            Kind::Byte(b';') => !pending.head.is_function(),
            Kind::Byte(b'*' | b'&') => pending.head.is_class(),
            Kind::Word => {
                let word = next.text(self.bytes);
                let (declares, seen) = declares_a_name(self.lexer.clone(), word);
                looked_to = looked_to.max(seen);
                word == b"catch" || (pending.head.is_class() && declares)
            }
            _ => false,
        };
        if !goes_on {
            let end = pending.last.end;
            self.finish(end, looked_to + 1);
        }
    }

    /// Ends the item at hand.
    fn finish(&mut self, end: usize, looked_to: usize) {
        let Some(mut pending) = self.pending.take() else { return };
        self.disown(pending.groups.len());
        for directives in pending.groups.drain(..) {
            pending.blanks.extend(directives);
        }
        pending.blanks.retain(|blank| blank.start < end);
        pending.blanks.sort();
        pending.blanks.dedup();
        let looked_to = if self.lexer.depends_on_the_rest() { usize::MAX } else { looked_to };
        self.items.push(Item {
            span: Span::new(pending.start, end),
            kind: ItemKind::Code,
            blanks: pending.blanks,
            state: pending.state_before,
            looked_to,
        });
    }

    /// Takes the innermost `count` groups, opened inside an item that is over, for groups that cut through it; or, if they
    /// were opened before its body began (`template <…>`, then a whole function in each branch), for groups of items.
    fn disown(&mut self, count: usize) {
        let first = self.state.frames.len().saturating_sub(count);
        for frame in &mut self.state.frames[first..] {
            frame.cuts = frame.start.inside != Some((0, 0));
            frame.start = Level { inside: None };
            frame.scopes = self.state.scopes.clone();
        }
    }

    fn mark(&mut self, span: Span, kind: ItemKind) {
        let looked_to = if self.lexer.depends_on_the_rest() { usize::MAX } else { span.end + 2 };
        self.items.push(Item { span, kind, blanks: SmallVec::new(), state: self.state.clone(), looked_to });
    }

    fn open_scope(&mut self, brace: Token, name: &str) {
        let Some(pending) = self.pending.take() else { return };
        self.disown(pending.groups.len());
        self.mark(Span::new(pending.start, brace.end), ItemKind::Mark);
        if let Some(mark) = self.items.last_mut() {
            mark.state = pending.state_before;
        }
        let mut scopes = self.state.scopes.to_vec();
        scopes.push(name.into());
        self.state.scopes = scopes.into();
    }

    fn close_scope(&mut self, brace: Token) {
        self.mark(Span::new(brace.start, brace.end), ItemKind::Mark);
        if let Some((_, outer)) = self.state.scopes.split_last() {
            self.state.scopes = outer.into();
        }
    }

    /// Ends a macro call without a semicolon where `token`, on another line, shows that it is over.
    fn macro_call_ends(&mut self, token: Token) {
        let Some(pending) = &self.pending else { return };
        let over = !pending.is_open()
            && pending.last.is(b')')
            && pending.head.is_macro_call(self.bytes, Some(pending.last))
            && column(self.bytes, token.start).is_some()
            && Head::begins_another(token, self.bytes);
        if over {
            let end = pending.last.end;
            self.finish(end, token.end + 1);
        }
    }

    /// Notes a line that may begin the next item. Once patience is gone, it does; then `true`.
    fn rescue_line(&mut self, token: Token) -> bool {
        let Some(pending) = &mut self.pending else { return false };
        if token.kind != Kind::Word || pending.rescue.is_some() || !pending.is_open() {
            return false;
        }
        let Some(column) = column(self.bytes, token.start).filter(|c| *c <= pending.indentation) else {
            return false;
        };
        let word = token.text(self.bytes);
        let begins = begins_items(word) || pending.last.is(b'}') || pending.last.is(b';');
        let label = self.bytes.get(token.end) == Some(&b':') && self.bytes.get(token.end + 1) != Some(&b':');
        if !begins || label || goes_on_inside(word) || (column > 0 && pending.indentation == usize::MAX) {
            return false;
        }
        let last_end = pending.last.end;
        if self.state.failures >= PATIENCE {
            self.finish(last_end, token.end + 2);
            return true;
        }
        pending.rescue = Some(Rescue {
            at: token.start,
            last_end,
            frames: self.state.frames.clone(),
            groups: pending.groups.len(),
            carry: self.state.carry,
        });
        false
    }

    /// Ends what is open at the end of the text. Whether there is more to read, since an item had no end.
    fn end_of_text(&mut self) -> bool {
        let Some(pending) = &mut self.pending else { return false };
        let rescue = pending.rescue.take().filter(|_| pending.is_open());
        let Some(rescue) = rescue else {
            let end = pending.last.end;
            self.finish(end, usize::MAX);
            return false;
        };
        self.state.frames = rescue.frames;
        pending.groups.truncate(rescue.groups);
        self.finish(rescue.last_end, usize::MAX);
        self.state.failures = self.state.failures.saturating_add(1);
        self.lexer = Lexer::resume(self.text, rescue.at, rescue.carry);
        true
    }
}

fn span(token: Token) -> Span {
    Span::new(token.start, token.end)
}

/// Whether the word after a type's body names a variable of that type, and how far that was read.
fn declares_a_name(mut ahead: Lexer, word: &[u8]) -> (bool, usize) {
    let attribute = word.starts_with(b"__attribute") || word == b"alignas" || word == b"const";
    let next = ahead.next();
    let names = next.is_some_and(|t| matches!(t.kind, Kind::Byte(b';' | b',' | b'=' | b'[' | b'{')));
    let seen = if ahead.depends_on_the_rest() { usize::MAX - 1 } else { ahead.position() };
    (attribute || names, seen)
}

/// Words that begin an item and rarely a statement.
fn begins_items(word: &[u8]) -> bool {
    matches!(word, b"__global__" | b"template" | b"namespace" | b"extern" | b"__device__" | b"__host__")
}

/// Words that stand at the margin inside a body.
fn goes_on_inside(word: &[u8]) -> bool {
    matches!(
        word,
        b"case" | b"default" | b"public" | b"private" | b"protected" | b"else" | b"while" | b"catch"
    )
}
