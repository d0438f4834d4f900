//! One CUDA document, kept up to date edit by edit.
//!
//! An edit is the stretch between the common prefix and suffix of two texts. The cut starts again at the item before it
//! and stops at the first boundary after it that the earlier cut had too, so that a keystroke costs the items it touches.
//! What the file's items say of each other goes through the [`Environment`]: only items that mention a name whose meaning
//! changed are checked again.
//!
//! Whatever order texts come in, the result is that of the last text alone.

mod places;

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use stitch_findings::{Edit, Finding, Span};
use xxhash_rust::xxh3::Xxh3;

use super::Workspace;
use super::item::{self, Checked, Read};
use super::items::{Cutter, Item, ItemKind, State};
use super::macros::{Definitions, Macros};
use super::parse::{ItemParser, KeepGoing};
use crate::outline::Outline;
use crate::reparse::difference;
use crate::rules::{Changed, Environment, Piece};
use places::{prefix, shift_finding, shift_function, shift_item, shift_launch};

/// Texts of new items up to this many bytes in all keep their trees between reading and checking; beyond, each is
/// parsed twice rather than all trees held at once.
const MOST_TREES: usize = 1 << 20;

/// More changed names than this are not looked for: everything is checked again.
const MOST_NAMES: usize = 64;

/// An item and what is known of it.
#[derive(Clone)]
struct Entry {
    item: Item,
    known: Arc<Known>,
}

/// What is known of an item.
struct Known {
    /// Of its text.
    key: u64,
    piece: Piece,
    piece_hash: u64,
    checked: Checked,
}

/// Work on a text that may be cut off.
struct Work {
    source: Arc<str>,
    macros: Macros,
    workspace: u64,
    definitions: u64,
    items: Vec<Task>,
    /// The index of the first item that is not read yet.
    unread: usize,
    environment: Option<(Environment, u64)>,
    /// The index of the first item that is not checked yet.
    unchecked: usize,
    trees: usize,
}

struct Task {
    item: Item,
    known: Option<Arc<Known>>,
    /// Read, not checked yet. In a box: there is a task for each item, and few of them are read.
    read: Option<Box<(Read, u64)>>,
    /// To be checked again, though its text is known.
    stale: bool,
    /// From the attic: the hash of the environment it was checked in.
    checked_in: Option<u64>,
}

impl Task {
    fn new(item: Item, known: Option<Arc<Known>>) -> Self {
        Self { item, known, read: None, stale: false, checked_in: None }
    }
}

/// One CUDA document.
pub struct Document {
    parser: ItemParser,
    source: Arc<str>,
    macros: Macros,
    workspace: u64,
    definitions: u64,
    entries: Vec<Entry>,
    environment: Environment,
    pieces: u64,
    work: Option<Work>,
    /// Items of the last texts that are in this one no more, with the hash of the environment they were checked in: what is undone or
    /// commented in again costs nothing.
    attic: HashMap<u64, (Arc<Known>, u64)>,
}

impl Document {
    /// An empty document.
    pub fn new() -> Self {
        let workspace = Workspace::default();
        let macros = workspace.macros().with_file("");
        Self {
            parser: ItemParser::new(),
            source: Arc::from(""),
            workspace: workspace.fingerprint(),
            definitions: Definitions::hash(""),
            macros,
            entries: Vec::new(),
            environment: Environment::new(std::iter::empty::<&Piece>(), workspace.outer()),
            pieces: 0,
            work: None,
            attic: HashMap::new(),
        }
    }

    /// Brings it to `source`. `None` when it was cut off; the same text again goes on.
    pub fn update(
        &mut self,
        source: &Arc<str>,
        workspace: &Workspace,
        keep_going: KeepGoing,
    ) -> Option<(Outline, Vec<Finding>)> {
        let fits = |work: &Work| *work.source == **source && work.workspace == workspace.fingerprint();
        let mut work = match self.work.take() {
            Some(work) if fits(&work) => work,
            _ => self.begin(source, workspace, keep_going)?,
        };
        if self.read(&mut work, keep_going) && self.check(&mut work, workspace, keep_going) {
            self.finish(work);
            return Some(self.assemble());
        }
        self.work = Some(work);
        None
    }

    /// Cuts the text, and finds what is known of its items.
    fn begin(&mut self, source: &Arc<str>, workspace: &Workspace, keep_going: KeepGoing) -> Option<Work> {
        let definitions = Definitions::hash(source);
        let (macros, changed) =
            if definitions == self.definitions && workspace.fingerprint() == self.workspace {
                (self.macros.clone(), Vec::new())
            } else {
                let macros = workspace.macros().with_file(source);
                let changed = macros.changed_names(&self.macros);
                (macros, changed)
            };
        if !changed.is_empty() {
            self.attic.clear();
        }
        let mut items = self.cut(source, keep_going)?;
        for task in &mut items {
            let text = source.get(task.item.span.range()).unwrap_or_default();
            if task.known.is_some() && mentions(text, &changed) {
                task.known = None;
            }
        }
        self.recall(&mut items, source, changed.is_empty());
        let work = Work {
            source: source.clone(),
            macros,
            workspace: workspace.fingerprint(),
            definitions,
            items,
            unread: 0,
            environment: None,
            unchecked: 0,
            trees: 0,
        };
        Some(work)
    }

    /// The items of `source`; those that the edit did not touch with what is known of them.
    fn cut(&self, source: &str, keep_going: KeepGoing) -> Option<Vec<Task>> {
        let edit = difference(self.source.as_bytes(), source.as_bytes());
        match self.cut_from(source, edit, keep_going)? {
            Some(tasks) => Some(tasks),
            None => {
                let mut cutter = Cutter::new(source, 0, State::default());
                cutter.run(&mut |_, _| false);
                Some(cutter.into_items()?.into_iter().map(|item| Task::new(item, None)).collect())
            }
        }
    }

    /// The same, from the item before the edit on. `Some(None)` if the cut must begin earlier.
    fn cut_from(
        &self,
        source: &str,
        Edit { start, old_end, new_end }: Edit,
        keep_going: KeepGoing,
    ) -> Option<Option<Vec<Task>>> {
        let touched =
            self.entries.iter().position(|e| e.item.looked_to > start).unwrap_or(self.entries.len());
        let kept = touched.saturating_sub(1);
        let (from, state) = match self.entries.get(kept) {
            Some(entry) if kept > 0 => (entry.item.span.start, entry.item.state.clone()),
            _ => (0, State::default()),
        };
        let mut cutter = Cutter::new(source, from, state);
        let mut joined = None;
        let mut boundaries = 0u32;
        let mut going = true;
        let done = cutter.run(&mut |at, state| {
            boundaries += 1;
            going = !boundaries.is_multiple_of(64) || keep_going();
            if at > new_end {
                joined = self.boundary(at - new_end + old_end, state);
            }
            joined.is_some() || !going
        });
        if !done && joined.is_none() {
            return None;
        }
        let Some(new) = cutter.into_items() else { return Some(None) };
        let known = |entry: &Entry, item: Item| Task::new(item, Some(entry.known.clone()));
        let mut tasks: Vec<Task> = self.entries[..kept].iter().map(|e| known(e, e.item.clone())).collect();
        tasks.extend(new.into_iter().map(|item| Task::new(item, None)));
        if let Some(first) = joined {
            let moved = |item: &Item| shift_item(item, old_end, new_end);
            tasks.extend(self.entries[first..].iter().map(|e| known(e, moved(&e.item))));
        }
        Some(Some(tasks))
    }

    /// The index of the item that begins at `at` with `state` before it.
    fn boundary(&self, at: usize, state: &State) -> Option<usize> {
        let index = self.entries.partition_point(|e| e.item.span.start < at);
        let entry = self.entries.get(index)?;
        (entry.item.span.start == at && entry.item.state == *state).then_some(index)
    }

    /// Finds new items among the old ones and in the attic, by their text.
    fn recall(&self, tasks: &mut [Task], source: &str, same_macros: bool) {
        if !same_macros || tasks.iter().all(|task| task.known.is_some()) {
            return;
        }
        let mut sought: HashMap<u64, Option<&Arc<Known>>> = tasks
            .iter()
            .filter(|task| task.known.is_none())
            .map(|task| (key(&task.item, source), None))
            .collect();
        // Few are sought among many.
        for entry in &self.entries {
            if let Some(found) = sought.get_mut(&entry.known.key) {
                *found = Some(&entry.known);
            }
        }
        for task in tasks.iter_mut().filter(|task| task.known.is_none()) {
            let key = key(&task.item, source);
            if let Some(Some(known)) = sought.get(&key) {
                task.known = Some((*known).clone());
            } else if let Some((known, environment)) = self.attic.get(&key) {
                task.known = Some(known.clone());
                task.checked_in = Some(*environment);
            }
        }
    }

    /// Reads what is not known. Whether it came to the end.
    fn read(&mut self, work: &mut Work, keep_going: KeepGoing) -> bool {
        while let Some(task) = work.items.get_mut(work.unread) {
            if task.known.is_none() && task.item.kind != ItemKind::Mark {
                let (text, blanks) = own(&task.item, &work.source);
                let Some(read) = item::read(&mut self.parser, text, &blanks, &work.macros, keep_going) else {
                    return false;
                };
                let key = key(&task.item, &work.source);
                work.trees += text.len();
                if work.trees <= MOST_TREES {
                    task.read = Some(Box::new((read, key)));
                } else {
                    let known = Known::new(key, read.piece, Checked::default());
                    task.known = Some(Arc::new(known));
                    task.stale = true;
                }
                if !keep_going() {
                    work.unread += 1;
                    return false;
                }
            }
            work.unread += 1;
        }
        true
    }

    /// Checks what is new, and what mentions something that changed. Whether it came to the end.
    fn check(&mut self, work: &mut Work, workspace: &Workspace, keep_going: KeepGoing) -> bool {
        if work.environment.is_none() {
            self.meet(work, workspace);
        }
        let Some((environment, _)) = work.environment.clone() else { return true };
        while let Some(task) = work.items.get_mut(work.unchecked) {
            let (text, blanks) = own(&task.item, &work.source);
            let kind = task.item.kind;
            if let Some(unchecked) = task.read.take() {
                let (read, key) = *unchecked;
                let checked = item::check(&read, text, kind, &work.macros, &environment);
                task.known = Some(Arc::new(Known::new(key, read.piece, checked)));
            } else if task.stale {
                let Some(read) = item::read(&mut self.parser, text, &blanks, &work.macros, keep_going) else {
                    return false;
                };
                let checked = item::check(&read, text, kind, &work.macros, &environment);
                task.known = Some(Arc::new(Known::new(key(&task.item, &work.source), read.piece, checked)));
                task.stale = false;
            } else {
                work.unchecked += 1;
                continue;
            }
            work.unchecked += 1;
            if !keep_going() {
                return false;
            }
        }
        true
    }

    /// Puts the environment together from all pieces, and marks what has to be checked again.
    fn meet(&self, work: &mut Work, workspace: &Workspace) {
        let mut hasher = Xxh3::new();
        workspace.fingerprint().hash(&mut hasher);
        for task in &work.items {
            let hash = match (&task.known, &task.read) {
                (_, Some(read)) => piece_hash(&read.0.piece),
                (Some(known), None) => known.piece_hash,
                (None, None) => continue,
            };
            hash.hash(&mut hasher);
        }
        let pieces = hasher.digest();
        if pieces == self.pieces {
            self.find_stale(&mut work.items, &work.source, &self.environment);
            work.environment = Some((self.environment.clone(), pieces));
            return;
        }
        let all = work.items.iter().filter_map(|task| match (&task.known, &task.read) {
            (_, Some(read)) => Some(&read.0.piece),
            (Some(known), None) => Some(&known.piece),
            (None, None) => None,
        });
        let environment = Environment::new(all, workspace.outer());
        self.find_stale(&mut work.items, &work.source, &environment);
        work.environment = Some((environment, pieces));
    }

    /// Marks the items whose findings may be others in `environment`, unless the attic has what they were in it.
    fn find_stale(&self, tasks: &mut [Task], source: &str, environment: &Environment) {
        let hash = environment.hash();
        let same = hash == self.environment.hash();
        let changed =
            if same { Some(Changed::default()) } else { environment.changed_names(&self.environment) };
        let changed = changed.filter(|names| names.mentioned.len() <= MOST_NAMES);
        let concerns = |known: &Known, text: &str| {
            changed.as_ref().is_none_or(|names| {
                known.checked.functions.iter().any(|f| names.defined.contains(&f.name))
                    || mentions(text, &names.mentioned)
            })
        };
        for task in tasks.iter_mut().filter(|task| task.read.is_none() && task.item.kind != ItemKind::Mark) {
            let Some(known) = &task.known else { continue };
            let text = source.get(task.item.span.range()).unwrap_or_default();
            task.stale |= match task.checked_in {
                Some(then) => then != hash,
                None => !same && concerns(known, text),
            };
            if let (true, Some((earlier, then))) = (task.stale, self.attic.get(&known.key))
                && *then == hash
            {
                task.known = Some(earlier.clone());
                task.stale = false;
            }
        }
    }

    /// Takes over what was done.
    fn finish(&mut self, work: Work) {
        let Some((environment, pieces)) = work.environment else { return };
        let earlier = self.environment.hash();
        let entries: Vec<Entry> = work
            .items
            .into_iter()
            .map(|task| Entry { item: task.item, known: task.known.unwrap_or_else(Known::nothing) })
            .collect();
        let old = std::mem::replace(&mut self.entries, entries);
        let same_macros = self.macros.fingerprint() == work.macros.fingerprint();
        if !same_macros || self.attic.len() > 2 * self.entries.len() + 256 {
            self.attic.clear();
        }
        for entry in old.into_iter().filter(|_| same_macros) {
            // Held by nobody else: it is in the new text no more.
            if Arc::strong_count(&entry.known) == 1 && entry.known.key != 0 {
                self.attic.insert(entry.known.key, (entry.known, earlier));
            }
        }
        self.source = work.source;
        self.macros = work.macros;
        self.workspace = work.workspace;
        self.definitions = work.definitions;
        self.environment = environment;
        self.pieces = pieces;
    }

    /// The outline and findings of the whole text.
    fn assemble(&self) -> (Outline, Vec<Finding>) {
        let mut outline = Outline::default();
        let mut findings = Vec::new();
        for entry in &self.entries {
            let by = entry.item.span.start;
            let checked = &entry.known.checked;
            if !checked.functions.is_empty() {
                let scope = prefix(&entry.item.state);
                outline.functions.extend(checked.functions.iter().map(|f| shift_function(f, by, &scope)));
            }
            outline.launches.extend(checked.launches.iter().map(|launch| shift_launch(launch, by)));
            findings.extend(checked.findings.iter().map(|finding| shift_finding(finding, by)));
        }
        findings.sort_by_key(|finding: &Finding| finding.span);
        (outline, findings)
    }
}

impl Known {
    fn new(key: u64, piece: Piece, checked: Checked) -> Self {
        Self { key, piece_hash: piece_hash(&piece), piece, checked }
    }

    fn nothing() -> Arc<Self> {
        Arc::new(Self::new(0, Piece::default(), Checked::default()))
    }
}

fn piece_hash(piece: &Piece) -> u64 {
    let mut hasher = Xxh3::new();
    piece.hash(&mut hasher);
    hasher.digest()
}

/// A hash of all that reading an item depends on, but the macros. Never zero.
fn key(item: &Item, source: &str) -> u64 {
    let (text, blanks) = own(item, source);
    let mut hasher = Xxh3::new();
    text.hash(&mut hasher);
    (item.kind == ItemKind::Definition).hash(&mut hasher);
    for blank in blanks {
        (blank.start, blank.end).hash(&mut hasher);
    }
    hasher.digest() | 1
}

/// An item's own text, and its blanks as parts of it.
fn own<'s>(item: &Item, source: &'s str) -> (&'s str, Vec<Span>) {
    let by = item.span.start;
    let blanks =
        item.blanks.iter().map(|b| Span::new(b.start.saturating_sub(by), b.end.saturating_sub(by))).collect();
    (source.get(item.span.range()).unwrap_or_default(), blanks)
}

/// Whether any of `names` is a word of `text`, be it in a comment: better checked once too often.
fn mentions(text: &str, names: &[impl AsRef<[u8]>]) -> bool {
    let bytes = text.as_bytes();
    let continues =
        |at: Option<&u8>| at.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_' || *b >= 128);
    names.iter().map(AsRef::as_ref).any(|name: &[u8]| {
        memchr::memmem::find_iter(bytes, name).any(|at| {
            !continues(at.checked_sub(1).and_then(|i| bytes.get(i))) && !continues(bytes.get(at + name.len()))
        })
    })
}
