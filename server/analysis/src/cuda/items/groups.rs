//! Preprocessor groups, as the cut meets them.
//!
//! A group between items is opened up where each of its branches is made of whole items. Where a branch cuts through an item, the
//! first living branch is kept and the others are blanked.

use smallvec::SmallVec;
use stitch_findings::Span;

use super::{Cutter, DEEPEST, ItemKind, Pending, span};
use crate::cuda::conditionals::{Branch, Condition, Frame, Level};
use crate::cuda::lexer::{Kind, Token, column};

impl Cutter<'_> {
    pub(super) fn directive(&mut self, token: Token) {
        let mut next = Some(token);
        while let Some(token) = next.take() {
            let branch = Branch::of(self.text, token);
            next = match branch {
                Branch::If(condition) => self.open_group(token, condition),
                Branch::Else(condition) => self.next_branch(token, condition),
                Branch::End => {
                    self.close_group(token);
                    None
                }
                Branch::Define | Branch::Other => {
                    self.other_directive(token, branch == Branch::Define);
                    None
                }
            };
        }
    }

    fn other_directive(&mut self, token: Token, definition: bool) {
        match &mut self.pending {
            // Inside a head or an argument list no grammar expects one.
            Some(pending) if pending.braces.is_empty() || pending.parentheses > 0 => {
                pending.blanks.push(span(token))
            }
            Some(pending) => pending.last = token,
            None if definition => self.mark(span(token), ItemKind::Definition),
            None => {}
        }
    }

    fn open_group(&mut self, token: Token, condition: Condition) -> Option<Token> {
        if let Some(pending) = &self.pending
            && !pending.is_open()
            && pending.head.is_macro_call(self.bytes, Some(pending.last))
        {
            let end = pending.last.end;
            self.finish(end, token.end + 1);
        }
        if self.state.frames.len() >= DEEPEST {
            self.state.deeper += 1;
            self.blank(span(token));
            return None;
        }
        if self.pending.is_none() {
            self.mark(span(token), ItemKind::Mark);
        }
        let cuts = self.pending.as_ref().is_some_and(|p| !p.between_statements());
        let mut frame = Frame {
            start: Level { inside: self.pending.as_ref().map(Pending::level) },
            scopes: self.state.scopes.clone(),
            kept: None,
            cuts,
            decided: false,
            read: true,
        };
        frame.turn(condition);
        let read = frame.read;
        self.state.frames.push(frame);
        if let Some(pending) = &mut self.pending {
            let mut directives = SmallVec::new();
            directives.push(span(token));
            pending.groups.push(directives);
            if !cuts {
                pending.last = token;
            }
        }
        if read { None } else { self.skip_branch(token) }
    }

    fn next_branch(&mut self, token: Token, condition: Condition) -> Option<Token> {
        if self.state.deeper > 0 || self.state.frames.is_empty() {
            self.blank(span(token));
            return None;
        }
        // A cut that begins again at this directive turns to its branch once more.
        let before = self.pending.is_none().then(|| self.state.clone());
        self.end_branch(token);
        let frame = self.state.frames.last_mut()?;
        frame.turn(condition);
        let (read, cuts) = (frame.read, frame.cuts);
        if !frame.cuts {
            let scopes = frame.scopes.clone();
            self.state.scopes = scopes;
        }
        self.note_directive(token, cuts);
        if self.pending.is_none() {
            self.mark(span(token), ItemKind::Mark);
            if let (Some(mark), Some(before)) = (self.items.last_mut(), before) {
                mark.state = before;
            }
        }
        if read { None } else { self.skip_branch(token) }
    }

    fn close_group(&mut self, token: Token) {
        if self.state.deeper > 0 || self.state.frames.is_empty() {
            self.state.deeper = self.state.deeper.saturating_sub(1);
            self.blank(span(token));
            return;
        }
        self.end_branch(token);
        let Some(frame) = self.state.frames.pop() else { return };
        if !frame.cuts {
            self.state.scopes = frame.kept.unwrap_or(frame.scopes);
        }
        let Some(pending) = &mut self.pending else { return };
        let own = pending.groups.pop();
        if frame.cuts {
            pending.blanks.extend(own.into_iter().flatten());
            pending.blanks.push(span(token));
        } else {
            pending.last = token;
        }
    }

    /// Judges the branch that `token` ends, if it was read.
    fn end_branch(&mut self, token: Token) {
        let Some(frame) = self.state.frames.last() else { return };
        if !frame.read {
            return;
        }
        let whole = match (&self.pending, frame.start.inside) {
            (None, None) => true,
            (Some(pending), Some((braces, _))) => {
                pending.braces.len() == braces && pending.between_statements()
            }
            _ => false,
        };
        if whole || frame.cuts {
            let scopes = self.state.scopes.clone();
            if let Some(frame) = self.state.frames.last_mut() {
                frame.kept.get_or_insert(scopes);
            }
        } else if frame.kept.is_none() {
            self.cut_through();
            let scopes = self.state.scopes.clone();
            if let Some(frame) = self.state.frames.last_mut() {
                frame.kept = Some(scopes);
            }
        } else {
            self.drop_branch(token);
        }
    }

    /// Makes the innermost group one of which a single branch is kept.
    pub(super) fn cut_through(&mut self) {
        if let Some(frame) = self.state.frames.last_mut() {
            frame.cuts = true;
        }
    }

    /// Takes back a later branch that cuts through an item, while an earlier one does not.
    fn drop_branch(&mut self, end: Token) {
        let Some(frame) = self.state.frames.last_mut() else { return };
        frame.cuts = true;
        let kept = frame.kept.clone();
        match frame.start.inside {
            Some((braces, parentheses)) => {
                if let Some(pending) = &mut self.pending {
                    let from = pending.groups.last().and_then(|g| g.last()).map_or(end.start, |d| d.start);
                    pending.blanks.push(Span::new(from, end.start));
                    pending.braces.truncate(braces);
                    pending.parentheses = parentheses;
                    pending.last = end;
                }
            }
            None => {
                self.forget_branch();
                if let Some(kept) = kept {
                    self.state.scopes = kept;
                }
            }
        }
    }

    /// Takes back the items of the branch at hand, of a group between items.
    fn forget_branch(&mut self) {
        self.pending = None;
        let depth = self.state.frames.len();
        while let Some(item) = self.items.last() {
            let directive = Token { kind: Kind::Directive, start: item.span.start, end: item.span.end };
            let begins_branch = item.kind == ItemKind::Mark
                && match Branch::of(self.text, directive) {
                    Branch::If(_) => item.state.frames.len() + 1 == depth,
                    Branch::Else(_) => item.state.frames.len() == depth,
                    _ => false,
                };
            if begins_branch {
                return;
            }
            self.items.pop();
        }
        self.began_too_late = true;
    }

    /// Skips the rest of the innermost group from inside one of its branches, which is dropped.
    pub(super) fn skip_group_from(&mut self, at: usize) {
        let start = Token { kind: Kind::Directive, start: at, end: at };
        self.drop_branch(start);
        if let Some(frame) = self.state.frames.last_mut() {
            frame.read = false;
        }
        if let Some(next) = self.skip_branch(start) {
            self.directive(next);
        }
    }

    /// Skips to the directive that ends the branch after `token`.
    fn skip_branch(&mut self, token: Token) -> Option<Token> {
        let mut depth = 0u32;
        while let Some(next) = self.next_token() {
            if next.kind != Kind::Directive {
                continue;
            }
            match Branch::of(self.text, next) {
                Branch::If(_) => depth += 1,
                Branch::End if depth > 0 => depth -= 1,
                Branch::End | Branch::Else(_) if depth == 0 => {
                    self.blank(Span::new(token.end, next.start));
                    self.state.column = column(self.bytes, next.start);
                    return Some(next);
                }
                _ => {}
            }
        }
        self.blank(Span::new(token.end, self.text.len()));
        None
    }

    fn note_directive(&mut self, token: Token, cuts: bool) {
        if let Some(pending) = &mut self.pending {
            match pending.groups.last_mut() {
                Some(directives) => directives.push(span(token)),
                None => pending.blanks.push(span(token)),
            }
            if !cuts {
                pending.last = token;
            }
        }
    }

    fn blank(&mut self, span: Span) {
        if let Some(pending) = &mut self.pending {
            pending.blanks.push(span);
        }
    }
}
