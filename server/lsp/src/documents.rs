//! The open documents, and what is known of them and of the files beside them.
//!
//! A version of a document never changes: an edit makes a new one, and a request keeps the one it came for. The findings'
//! anchors follow each edit in the same call, so text and findings are never out of step. Everything here takes
//! microseconds and runs under one lock, in the order of the wire.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use stitch_analysis::{Encoding, Language, Text};
use stitch_findings::{Edit, Producer, Span, Store};

use crate::from_proto::{self, Change, Changed, OpenedDocument};
use crate::live::{Analysed, Live};
use crate::uri::Key;

/// Texts longer than this many bytes are not analysed unless configured; generated files of that size are nobody's reading.
pub const LONGEST_ANALYSED: usize = 4 << 20;

/// One version of an open document.
#[derive(Debug)]
pub struct Document {
    /// The document, however it is spelled.
    pub key: Key,
    /// As the client spelled it when it was opened, byte for byte.
    pub uri: Arc<str>,
    /// The file, if it is one.
    pub path: Option<PathBuf>,
    /// How it is read; `None` for a language that is not ours.
    pub language: Option<Language>,
    /// The client's number for this version.
    pub version: Option<i32>,
    /// Our own number: it only grows, whatever the client's does.
    pub revision: u64,
    /// The text.
    pub text: Text,
    /// Whether it is longer than is analysed.
    pub is_too_long: bool,
    /// What is common to all versions.
    pub live: Arc<Live>,
}

impl Document {
    /// The language, if the text is to be analysed.
    pub fn to_analyse(&self) -> Option<Language> {
        self.language.filter(|_| !self.is_too_long)
    }

    /// The last analysis, of whatever version.
    pub fn last_analysis(&self) -> Option<Arc<Analysed>> {
        self.live.analysed.borrow().clone()
    }

    /// Waits until this version, or a later one, was analysed.
    pub async fn analysed(&self) -> Option<Arc<Analysed>> {
        let mut analysed = self.live.analysed.subscribe();
        let is_new =
            |seen: &Option<Arc<Analysed>>| seen.as_ref().is_some_and(|seen| seen.revision >= self.revision);
        analysed.wait_for(is_new).await.ok()?.clone()
    }
}

/// A file that no editor has open, with findings that a compiler run left there.
#[derive(Clone, Debug)]
pub struct ClosedFile {
    /// Our own spelling, or the client's last one.
    pub uri: Arc<str>,
    /// The text on disk when the findings were made.
    pub text: Text,
}

/// What a change came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The document that has a new text.
    pub changed: Option<Key>,
    /// The document that was opened.
    pub opened: Option<Key>,
    /// The document that was closed.
    pub closed: Option<Key>,
    /// Documents whose findings have to be published.
    pub dirty: Vec<Key>,
    /// Something the client did that a log should say.
    pub note: Option<String>,
}

/// All documents.
#[derive(Debug)]
pub struct Documents {
    open: HashMap<Key, Arc<Document>>,
    /// What is known, under [`Key::as_str`].
    pub store: Store,
    /// Files that are not open but have findings.
    pub closed: HashMap<Key, ClosedFile>,
    /// What columns count; settled by `initialize`, before any document.
    pub encoding: Encoding,
    /// Texts longer than this many bytes are kept, but not analysed.
    pub longest: usize,
    revisions: u64,
}

impl Default for Documents {
    fn default() -> Self {
        Self {
            open: HashMap::new(),
            store: Store::default(),
            closed: HashMap::new(),
            encoding: Encoding::default(),
            longest: LONGEST_ANALYSED,
            revisions: 0,
        }
    }
}

impl Documents {
    /// The newest version of a document.
    pub fn get(&self, key: &Key) -> Option<&Arc<Document>> {
        self.open.get(key)
    }

    /// All open documents.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Document>> {
        self.open.values()
    }

    /// `textDocument/didOpen`. A second one replaces the text and the spelling.
    pub fn opened(&mut self, opened: OpenedDocument) -> Outcome {
        let key = Key::of(&opened.uri);
        let before = self.open.remove(&key);
        let note =
            before.as_ref().map(|_| format!("{} was opened twice; the second text counts.", opened.uri));
        if let Some(before) = before {
            before.live.close();
        }
        self.closed.remove(&key);
        self.revisions += 1;
        let path = key.to_path();
        let by_name = || Language::of_path(path.as_deref().unwrap_or(key.as_str().as_ref()));
        let language = Language::of_id(&opened.language_id).or_else(by_name);
        let text = Text::new(&opened.text);
        self.store.follow(key.as_str(), &[], &text);
        let document = Document {
            uri: opened.uri.into(),
            path,
            language,
            version: opened.version,
            revision: self.revisions,
            is_too_long: text.len_bytes() > self.longest,
            text,
            live: Arc::new(Live::new(self.revisions)),
            key: key.clone(),
        };
        let note = note.or_else(|| document.is_too_long.then(|| too_long(&document, self.longest)));
        // What is analysed is published after the analysis, with its findings.
        let dirty = if document.to_analyse().is_none() { vec![key.clone()] } else { Vec::new() };
        self.open.insert(key.clone(), Arc::new(document));
        Outcome { changed: Some(key.clone()), opened: Some(key), closed: None, dirty, note }
    }

    /// `textDocument/didChange`. A version that does not grow is the client's affair: the change is made all the same, since
    /// without it the texts would differ.
    pub fn changed(&mut self, changed: Changed) -> Outcome {
        let key = Key::of(&changed.text_document.uri);
        let Some(before) = self.open.get(&key) else {
            return not_open("changed", &changed.text_document.uri);
        };
        let version = changed.text_document.version;
        let goes_back = matches!((before.version, version), (Some(old), Some(new)) if new <= old);
        let mut text = before.text.clone();
        let edits: Vec<Edit> = changed
            .content_changes
            .into_iter()
            .map(|change| apply(&mut text, change, self.encoding))
            .collect();
        self.store.follow(key.as_str(), &edits, &text);
        self.revisions += 1;
        let is_too_long = text.len_bytes() > self.longest;
        let document = Document {
            key: key.clone(),
            uri: before.uri.clone(),
            path: before.path.clone(),
            language: before.language,
            version: version.or(before.version),
            revision: self.revisions,
            is_too_long,
            text,
            live: before.live.clone(),
        };
        let note = match (is_too_long && !before.is_too_long, goes_back) {
            (true, _) => Some(too_long(&document, self.longest)),
            (_, true) => {
                let number = |version: Option<i32>| version.unwrap_or_default();
                Some(format!(
                    "{}: version {} came after version {}; the change is made all the same.",
                    document.uri,
                    number(version),
                    number(before.version)
                ))
            }
            _ => None,
        };
        document.live.edited(self.revisions, Instant::now());
        let unread = document.to_analyse().is_none();
        if unread {
            self.store.replace(key.as_str(), Producer::Static, key.as_str(), empty_batch());
        }
        self.open.insert(key.clone(), Arc::new(document));
        let dirty = if unread { vec![key.clone()] } else { Vec::new() };
        Outcome { changed: Some(key), dirty, note, ..Outcome::default() }
    }

    /// `textDocument/didClose`. What the document and its compilation found goes with it.
    pub fn closed(&mut self, uri: &str) -> Outcome {
        let key = Key::of(uri);
        let Some(document) = self.open.remove(&key) else {
            return not_open("closed", uri);
        };
        document.live.close();
        let mut dirty = vec![key.clone()];
        for producer in [Producer::Static, Producer::Clang, Producer::Nvcc, Producer::Ptxas] {
            dirty.extend(self.store.retract(producer, key.as_str(), &[]).iter().map(|id| Key::of_id(id)));
        }
        self.closed
            .insert(key.clone(), ClosedFile { uri: document.uri.clone(), text: document.text.clone() });
        dirty.sort();
        dirty.dedup();
        Outcome { closed: Some(key), dirty, ..Outcome::default() }
    }
}

fn empty_batch() -> stitch_findings::Batch {
    stitch_findings::Batch::new("", &[], Vec::new(), Vec::new())
}

fn not_open(what: &str, uri: &str) -> Outcome {
    Outcome {
        note: Some(format!("{uri} was {what} but is not open; this is ignored.")),
        ..Outcome::default()
    }
}

fn too_long(document: &Document, longest: usize) -> String {
    format!(
        "{} has {} bytes, more than the {longest} that are analysed; it has no static findings.",
        document.uri,
        document.text.len_bytes()
    )
}

/// Makes one change. A change of everything is narrowed to what differs, so that anchors elsewhere stay where they are.
fn apply(text: &mut Text, change: Change, encoding: Encoding) -> Edit {
    match change.range {
        Some(range) => {
            let span = from_proto::span(range, text, encoding);
            text.replace(span, &change.text)
        }
        None => {
            let old = text.to_source();
            let (span, new) = difference(&old, &change.text);
            text.replace(span, &change.text[new.range()])
        }
    }
}

/// The smallest span of `old`, and the span of `new` that stands in its place.
pub fn difference(old: &str, new: &str) -> (Span, Span) {
    let shorter = old.len().min(new.len());
    let mut prefix = old.bytes().zip(new.bytes()).take_while(|(a, b)| a == b).count();
    while !old.is_char_boundary(prefix) || !new.is_char_boundary(prefix) {
        prefix -= 1;
    }
    let mut suffix =
        old.bytes().rev().zip(new.bytes().rev()).take(shorter - prefix).take_while(|(a, b)| a == b).count();
    while !old.is_char_boundary(old.len() - suffix) || !new.is_char_boundary(new.len() - suffix) {
        suffix -= 1;
    }
    (Span::new(prefix, old.len() - suffix), Span::new(prefix, new.len() - suffix))
}

#[cfg(test)]
mod tests;
