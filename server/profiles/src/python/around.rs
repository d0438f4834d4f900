//! The second walk: of functions and operators, only what lies around one of the moments.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::estimate::{Arguments, Demand, demand};
use super::frames::{self, Frame};
use super::model::Precision;
use super::points::Points;
use super::workspace::Workspace;
use crate::system::names::NameId;
use crate::trace::{Gathered, Kind, Moment, TraceEvent, Visit};

/// Names of functions whose place is kept in memory.
const MOST_KNOWN: usize = 1 << 18;

/// Operators with their shapes that are told apart; of more only the names.
const MOST_SIGNATURES: usize = 1 << 15;

/// Letters of an operator's shapes that are kept.
const MOST_LETTERS: usize = 160;

/// Threads without Python that are followed. Autograd has one for each device.
const MOST_BESIDE: usize = 64;

/// The innermost thing around each moment: the one that began last.
#[derive(Debug)]
pub struct Innermost {
    starts: Vec<i64>,
    what: Vec<u32>,
}

impl Innermost {
    fn new(count: usize) -> Self {
        Self { starts: vec![i64::MIN; count], what: vec![u32::MAX; count] }
    }

    fn offer(&mut self, at: usize, start: i64, what: u32) {
        if start >= self.starts[at] {
            (self.starts[at], self.what[at]) = (start, what);
        }
    }

    /// When what is around the moment began.
    pub fn start(&self, at: u32) -> i64 {
        self.starts.get(at as usize).copied().unwrap_or(i64::MIN)
    }

    /// What is around the moment.
    pub fn get(&self, at: u32) -> Option<u32> {
        self.what.get(at as usize).copied().filter(|what| *what != u32::MAX)
    }
}

/// A line of a person's file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The file.
    pub file: String,
    /// The line, from one.
    pub line: u32,
    /// The function.
    pub function: String,
    /// What the line is the line of.
    pub precision: Precision,
}

/// A call of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ModuleCall {
    /// Its thread.
    pub thread: u32,
    /// When it began.
    pub start: i64,
    /// When it ended, the longer one first.
    pub end: std::cmp::Reverse<i64>,
    /// The module.
    pub name: NameId,
}

/// An operator with the shapes that it was called with.
#[derive(Clone, Debug)]
pub struct Signature {
    /// Its name.
    pub name: NameId,
    /// Its tensors in words.
    pub shapes: String,
    /// What it must at least move and compute, or why that is not known.
    pub demand: Result<Demand, String>,
}

/// What is around the moments.
pub struct Around<'g> {
    gathered: &'g mut Gathered,
    workspace: &'g Workspace,
    points: &'g Points,
    /// Places in a person's files.
    pub places: Vec<Place>,
    /// The innermost place around each moment.
    pub frame: Innermost,
    /// The innermost operator around each moment: an index of `signatures`.
    pub operator: Innermost,
    /// Operators with their shapes.
    pub signatures: Vec<Signature>,
    /// The forward operator of the innermost backward operator around each moment, as another moment.
    pub forward: Innermost,
    /// Calls of modules around any moment.
    pub modules: Vec<ModuleCall>,
    /// Whether any place was told, a person's own or not.
    pub has_stacks: bool,
    /// The thread that runs the most Python, and those that run none.
    main: Option<u32>,
    without_python: Vec<u32>,
    known: HashMap<Box<str>, Option<u32>>,
    place_ids: HashMap<Place, u32>,
    signature_ids: HashMap<u64, u32>,
    forward_of: HashMap<Moment, u32>,
}

impl<'g> Around<'g> {
    /// Before the walk.
    pub fn new(gathered: &'g mut Gathered, workspace: &'g Workspace, points: &'g Points) -> Self {
        let count = points.moments.len();
        let main =
            gathered.python.iter().max_by_key(|(thread, count)| (**count, **thread)).map(|(id, _)| *id);
        let mut without_python: Vec<u32> = points.moments.iter().map(|moment| moment.thread).collect();
        without_python.dedup();
        without_python.retain(|thread| !gathered.python.contains_key(thread));
        without_python.truncate(MOST_BESIDE);
        let forward_of = flows(gathered, points);
        Self {
            gathered,
            workspace,
            points,
            places: Vec::new(),
            frame: Innermost::new(count),
            operator: Innermost::new(count),
            signatures: Vec::new(),
            forward: Innermost::new(count),
            modules: Vec::new(),
            has_stacks: false,
            main,
            without_python,
            known: HashMap::new(),
            place_ids: HashMap::new(),
            signature_ids: HashMap::new(),
            forward_of,
        }
    }

    fn python(&mut self, event: &TraceEvent<'_>, thread: u32, start: i64) {
        self.has_stacks = true;
        if let Some(module) = frames::module(&event.name) {
            if !self.points.within(thread, start, event.end()).is_empty() {
                let (name, end) = (self.gathered.names.id(module), std::cmp::Reverse(event.end()));
                self.modules.push(ModuleCall { thread, start, end, name });
            }
            return;
        }
        let place = match self.known.get(event.name.as_ref()) {
            Some(known) => *known,
            None => {
                let place =
                    frames::frame(&event.name).and_then(|frame| self.place(frame, Precision::Function));
                if self.known.len() == MOST_KNOWN {
                    self.known.clear();
                }
                self.known.insert(event.name.as_ref().into(), place);
                place
            }
        };
        let Some(place) = place else {
            return;
        };
        self.offer_place(thread, start, event.end(), place);
        // What runs on a thread without Python, as the backward pass does, was started by what the main thread runs meanwhile.
        if self.main == Some(thread) {
            for at in 0..self.without_python.len() {
                self.offer_place(self.without_python[at], start, event.end(), place);
            }
        }
    }

    fn offer_place(&mut self, thread: u32, start: i64, end: i64, place: u32) {
        for at in self.points.within(thread, start, end) {
            self.frame.offer(at, start, place);
        }
    }

    fn operator(&mut self, event: &TraceEvent<'_>, thread: u32, start: i64) {
        let covered = self.points.within(thread, start, event.end());
        if covered.is_empty() {
            return;
        }
        let signature = self.signature(event);
        for at in covered.clone() {
            self.operator.offer(at, start, signature);
        }
        if let Some(forward) = self.forward_operator(event, Moment { thread, at: start }) {
            for at in covered {
                self.forward.offer(at, start, forward);
            }
        }
        if let Some(stack) = &event.args.call_stack {
            self.has_stacks = true;
            // The same tracer fills these where it also writes functions, and knows no more of them.
            let precision =
                if self.gathered.python.is_empty() { Precision::Line } else { Precision::Function };
            let place = frames::stack(stack).find_map(|frame| self.place(frame, precision));
            if let Some(place) = place {
                self.offer_place(thread, start, event.end(), place);
            }
        }
    }

    /// The index of an operator with its shapes.
    fn signature(&mut self, event: &TraceEvent<'_>) -> u32 {
        let args = &event.args;
        let shaped = (args.input_sizes, args.input_types, args.input_strides, args.input_values);
        let mut key = hash(&(&event.name, shaped));
        if let Some(known) = self.signature_ids.get(&key) {
            return *known;
        }
        let is_full = self.signatures.len() >= MOST_SIGNATURES;
        if is_full {
            key = hash(&event.name);
        }
        let next = self.signatures.len() as u32;
        let id = *self.signature_ids.entry(key).or_insert(next);
        if id == next {
            let name = self.gathered.names.id(&event.name);
            let arguments = Arguments::of(args).filter(|_| !is_full);
            let demand = match is_full {
                true => Err("the trace has too many different shapes".to_owned()),
                false => demand(&event.name, arguments.as_ref()),
            };
            let shapes = arguments.map(|arguments| arguments.words(MOST_LETTERS)).unwrap_or_default();
            self.signatures.push(Signature { name, shapes, demand });
        }
        id
    }

    /// The forward operator of a backward one: by the flow that begins there, or by the number of its node.
    fn forward_operator(&self, event: &TraceEvent<'_>, moment: Moment) -> Option<u32> {
        if let Some(forward) = self.forward_of.get(&moment) {
            return Some(*forward);
        }
        event.args.forward_thread.filter(|thread| *thread > 0)?;
        let sequence = u32::try_from(event.args.sequence?).ok()?;
        let numbered = &self.gathered.numbered;
        let from = numbered.partition_point(|numbered| numbered.sequence < sequence);
        let to = numbered.partition_point(|numbered| numbered.sequence <= sequence);
        let same = numbered.get(from..to)?;
        let last = same.last()?;
        // Each thread counts for itself: of two threads with the number, it is not known which one it was.
        let one_thread = same.iter().all(|numbered| numbered.moment().thread == last.moment().thread);
        one_thread.then(|| self.points.find(last.moment())).flatten()
    }

    fn annotation(&mut self, event: &TraceEvent<'_>, thread: u32, start: i64) {
        if let Some(frame) = frames::mark(&event.name) {
            self.has_stacks = true;
            if let Some(place) = self.place(frame, Precision::Line) {
                self.offer_place(thread, start, event.end(), place);
            }
        }
    }

    /// The index of a place, where it is in one of a person's files.
    fn place(&mut self, frame: Frame<'_>, precision: Precision) -> Option<u32> {
        let file = self.workspace.resolve(frame.file)?.display().to_string();
        let place = Place { file, line: frame.line, function: frame.function.to_owned(), precision };
        if let Some(id) = self.place_ids.get(&place) {
            return Some(*id);
        }
        let id = self.places.len() as u32;
        self.places.push(place.clone());
        self.place_ids.insert(place, id);
        Some(id)
    }
}

fn hash(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// Where a backward operator begins, and the moment of its forward one.
fn flows(gathered: &Gathered, points: &Points) -> HashMap<Moment, u32> {
    let mut forward_of = HashMap::new();
    for pair in gathered.flows.windows(2) {
        if let [forward, backward] = pair
            && forward.flow == backward.flow
            && !forward.backward
            && backward.backward
            && let Some(point) = points.find(forward.moment)
        {
            forward_of.insert(backward.moment, point);
        }
    }
    forward_of
}

impl Visit for Around<'_> {
    fn field(&mut self, _: &str, _: &[u8]) {}

    fn event(&mut self, event: &TraceEvent<'_>) {
        let kind = event.kind();
        if !matches!(kind, Kind::Python | Kind::Operator | Kind::Annotation) {
            return;
        }
        let (Some(thread), Some(start)) =
            (self.gathered.known_thread(event.process, event.thread), event.start)
        else {
            return;
        };
        match kind {
            Kind::Python => self.python(event, thread, start),
            Kind::Operator => self.operator(event, thread, start),
            _ => self.annotation(event, thread, start),
        }
    }
}

/// Finds the operators of kernels whose calls are missing.
#[derive(Debug)]
pub struct Operators<'g> {
    /// Processes and threads.
    pub gathered: &'g mut Gathered,
    /// The numbers that are looked for, in order.
    pub wanted: Vec<u32>,
    /// Those that were found.
    pub found: Vec<(u32, Moment)>,
}

impl Visit for Operators<'_> {
    fn field(&mut self, _: &str, _: &[u8]) {}

    fn event(&mut self, event: &TraceEvent<'_>) {
        if event.kind() == Kind::Operator
            && let (Some(external), Some(at)) = (event.args.external, event.start)
            && let Ok(external) = u32::try_from(external)
            && self.wanted.binary_search(&external).is_ok()
        {
            let thread = self.gathered.thread(event.process, event.thread);
            self.found.push((external, Moment { thread, at }));
        }
    }
}
