//! The store: what is known about each document, by producer.
//!
//! A run of a producer replaces what the same producer said for the same origin, when it is complete; a failed run
//! leaves the old set, which goes stale by itself. An origin is the file that was compiled: a header's findings come
//! from each file that includes it, and recompiling one of these must not drop what the others found.

use std::collections::{BTreeMap, HashMap};

use crate::anchor::{Anchor, AnchorState, Scope};
use crate::{Edit, Finding, Measurement, Nest, Producer, ReadText, Span};

/// A document, by whatever name its owner uses: the server uses the URI, the command line the path.
pub type DocumentId = String;

/// Findings and measurements that one run made about one document.
#[derive(Clone, Debug)]
pub struct Batch {
    hash: u64,
    fresh: bool,
    scopes: Vec<Scope>,
    findings: Vec<Held<Finding>>,
    measurements: Vec<Held<Measurement>>,
}

#[derive(Clone, Debug)]
struct Held<T> {
    item: T,
    anchor: Anchor,
    scope: usize,
}

/// Something from the store, where it is in the text of now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Anchored<'a, T> {
    /// What was found; its own span is the one in the text it was found in.
    pub item: &'a T,
    /// Where it is now.
    pub span: Span,
    /// How far it still holds.
    pub state: AnchorState,
}

impl Batch {
    /// What was found in `text`. `functions` are the spans of its functions, the scopes that findings hang on; a
    /// finding outside all of them hangs on its own lines. Spans that are no part of the text are dropped.
    pub fn new(
        text: &(impl ReadText + ?Sized),
        functions: &[Span],
        findings: Vec<Finding>,
        measurements: Vec<Measurement>,
    ) -> Self {
        let mut batch = Self {
            hash: text.content_hash(),
            fresh: true,
            scopes: Vec::new(),
            findings: Vec::new(),
            measurements: Vec::new(),
        };
        let mut known = HashMap::new();
        let functions = (functions, &Nest::new(functions.iter().copied()));
        for item in findings {
            let span = item.span;
            if let Some(scope) = batch.scope_for(&mut known, span, functions, text) {
                batch.findings.push(Held { item, anchor: Anchor::new(span), scope });
            }
        }
        for item in measurements {
            let span = item.span;
            if let Some(scope) = batch.scope_for(&mut known, span, functions, text) {
                batch.measurements.push(Held { item, anchor: Anchor::new(span), scope });
            }
        }
        batch
    }

    /// The scope of what was found at `span`. `functions` are in the order of the text; one inside another comes after it.
    fn scope_for(
        &mut self,
        known: &mut HashMap<Span, usize>,
        span: Span,
        (functions, nest): (&[Span], &Nest),
        text: &(impl ReadText + ?Sized),
    ) -> Option<usize> {
        let function = nest.innermost(span).and_then(|index| functions.get(index)).copied();
        let scope = match function {
            Some(function) => function,
            None => whole_lines(span, text)?,
        };
        if let Some(index) = known.get(&scope) {
            return Some(*index);
        }
        self.scopes.push(Scope::new(scope, text, function.is_some())?);
        known.insert(scope, self.scopes.len() - 1);
        Some(self.scopes.len() - 1)
    }

    /// Follows `edits`, made one after the other, which led to `text`.
    pub fn follow(&mut self, edits: &[Edit], text: &(impl ReadText + ?Sized)) {
        for edit in edits {
            self.scopes.iter_mut().for_each(|scope| scope.follow(*edit));
            self.findings.iter_mut().for_each(|held| held.anchor.follow(*edit));
            self.measurements.iter_mut().for_each(|held| held.anchor.follow(*edit));
        }
        self.fresh = text.content_hash() == self.hash;
        if self.fresh {
            self.scopes.iter_mut().for_each(Scope::reset);
            self.findings.iter_mut().for_each(|held| held.anchor.reset());
            self.measurements.iter_mut().for_each(|held| held.anchor.reset());
        } else if let Some(text) = text.read(Span::new(0, text.len_bytes())) {
            self.scopes.iter_mut().for_each(|scope| scope.settle(&text));
        }
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.findings.is_empty() && self.measurements.is_empty()
    }

    /// The findings, where they are now; those whose text is gone are left out.
    pub fn findings(&self) -> impl Iterator<Item = Anchored<'_, Finding>> {
        self.place(&self.findings)
    }

    /// The measurements, where they are now; those whose text is gone are left out.
    pub fn measurements(&self) -> impl Iterator<Item = Anchored<'_, Measurement>> {
        self.place(&self.measurements)
    }

    fn place<'a, T>(&'a self, items: &'a [Held<T>]) -> impl Iterator<Item = Anchored<'a, T>> {
        items.iter().filter_map(|held| {
            let (span, state) = held.anchor.place(&self.scopes[held.scope], self.fresh)?;
            Some(Anchored { item: &held.item, span, state })
        })
    }
}

/// The lines that `span` touches, without the last line's end.
fn whole_lines(span: Span, text: &(impl ReadText + ?Sized)) -> Option<Span> {
    let before = text.read(Span::new(0, span.start))?;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let after = text.read(Span::new(span.end, text.len_bytes()))?;
    Some(Span::new(start, span.end + after.find('\n').unwrap_or(after.len())))
}

/// What is known about every document.
#[derive(Debug, Default)]
pub struct Store {
    documents: HashMap<DocumentId, BTreeMap<(Producer, DocumentId), Batch>>,
}

impl Store {
    /// Puts what `producer` found in `document` while it looked at `origin`, in place of what it said before.
    pub fn replace(&mut self, document: &str, producer: Producer, origin: &str, batch: Batch) {
        let batches = self.documents.entry(document.to_owned()).or_default();
        if batch.is_empty() {
            batches.remove(&(producer, origin.to_owned()));
        } else {
            batches.insert((producer, origin.to_owned()), batch);
        }
    }

    /// Drops what `producer` said from `origin` about every document that `keep` does not name, and returns those
    /// that had something. A header that no longer has findings, or is no longer included, is cleared so.
    pub fn retract(&mut self, producer: Producer, origin: &str, keep: &[DocumentId]) -> Vec<DocumentId> {
        let key = (producer, origin.to_owned());
        let mut cleared = Vec::new();
        for (document, batches) in &mut self.documents {
            if !keep.contains(document) && batches.remove(&key).is_some() {
                cleared.push(document.clone());
            }
        }
        cleared
    }

    /// Follows `edits` of `document`, made one after the other, which led to `text`.
    pub fn follow(&mut self, document: &str, edits: &[Edit], text: &(impl ReadText + ?Sized)) {
        for batch in self.documents.get_mut(document).into_iter().flat_map(BTreeMap::values_mut) {
            batch.follow(edits, text);
        }
    }

    /// Forgets a document.
    pub fn forget(&mut self, document: &str) {
        self.documents.remove(document);
    }

    /// Everything found in `document`, in the order of the text.
    pub fn findings(&self, document: &str) -> Vec<Anchored<'_, Finding>> {
        let mut found: Vec<_> = self.batches(document).flat_map(Batch::findings).collect();
        found.sort_by_key(|anchored| (anchored.span, anchored.item.code));
        found
    }

    /// Everything measured in `document`, in the order of the text.
    pub fn measurements(&self, document: &str) -> Vec<Anchored<'_, Measurement>> {
        let mut found: Vec<_> = self.batches(document).flat_map(Batch::measurements).collect();
        found.sort_by_key(|anchored| anchored.span);
        found
    }

    fn batches(&self, document: &str) -> impl Iterator<Item = &Batch> {
        self.documents.get(document).into_iter().flat_map(BTreeMap::values)
    }
}

#[cfg(test)]
mod tests;
