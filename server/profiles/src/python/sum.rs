//! From what is around each moment to sums by line and by module.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};

use super::around::{Around, ModuleCall, Signature};
use super::estimate::{Arithmetic, Element, OperatorEstimate, is_on_tensor_cores};
use super::model::{LineCopies, LineSum, ModuleSum, Part, PythonTime};
use super::points::{Effect, Points};
use crate::system::event::Work;
use crate::system::model::share;
use crate::system::names::{NameId, Names};
use crate::system::{Direction, Route};

/// Kernels, operators and waits of a line that are told one by one; the rest of them counts in the sums.
const MOST_PARTS: usize = 16;

/// Modules within modules that are followed: more is a trace that was made up.
const DEEPEST: usize = 64;

/// Kernels without a line that are named.
const MOST_UNATTRIBUTED: usize = 64;

/// The operator of what none is around.
const NO_OPERATOR: u32 = u32::MAX;

/// Calls of operators on a thread that may be open at once, or between two launches of one call: nested ones.
const MOST_OPEN: usize = 64;

#[derive(Debug, Default)]
struct Line {
    kernel_ns: u64,
    launches: u64,
    backward_ns: u64,
    kernels: HashMap<NameId, (u64, u64)>,
    operators: HashMap<u32, Operator>,
    waits: HashMap<u32, (u64, u64)>,
    to_device: LineCopies,
    to_host: LineCopies,
}

/// What the kernels of an operator cost, called with one set of shapes.
#[derive(Debug, Default)]
struct Operator {
    calls: u64,
    launches: u64,
    ns: u64,
    /// Of that, in kernels that multiply on tensor cores.
    tensor_ns: u64,
    /// Bytes of an element, where a kernel's name tells.
    element: Option<u64>,
}

/// Which of the moments are the first launch in their operator's call.
fn first_launches(points: &Points, works: &[Work], around: &Parts) -> Vec<bool> {
    let mut launches = vec![false; points.moments.len()];
    for effect in &points.effects {
        let work = effect.work().and_then(|work| works.get(work as usize));
        if matches!(work, Some(Work::Kernel { .. } | Work::Graph { .. })) {
            launches[effect.point as usize] = true;
        }
    }
    let (mut open, mut thread): (VecDeque<i64>, u32) = (VecDeque::new(), u32::MAX);
    for (at, moment) in points.moments.iter().enumerate() {
        if moment.thread != thread {
            (open, thread) = (VecDeque::new(), moment.thread);
        }
        if !launches[at] || around.operator_of(at as u32).is_none() {
            continue;
        }
        let start = around.operator.start(at as u32);
        launches[at] = !open.contains(&start);
        if launches[at] {
            open.push_back(start);
            if open.len() > MOST_OPEN {
                open.pop_front();
            }
        }
    }
    launches
}

/// Adds up what came of the moments.
pub fn sum(points: &Points, works: &[Work], names: &Names, around: &Parts) -> PythonTime {
    let mut lines: HashMap<u32, Line> = HashMap::new();
    let mut modules: HashMap<u32, (u64, u64)> = HashMap::new();
    let mut time = PythonTime::default();
    let mut first = first_launches(points, works, around);
    let mut elsewhere: HashMap<NameId, (u64, u64)> = HashMap::new();
    for effect in &points.effects {
        let work = effect.work().and_then(|work| works.get(work as usize));
        let is_kernel = matches!(work, Some(Work::Kernel { .. }));
        // The backward pass of a line is its own cost; a wait or a copy is the cost of where it was called.
        let forward = around.forward_of(effect.point).filter(|_| is_kernel);
        let place =
            forward.and_then(|forward| around.frame_of(forward)).or_else(|| around.frame_of(effect.point));
        if is_kernel {
            time.kernel_ns = time.kernel_ns.saturating_add(effect.ns);
            if let Some(module) = around.module_of(forward.unwrap_or(effect.point)) {
                let (ns, launches) = modules.entry(module).or_default();
                (*ns, *launches) = (ns.saturating_add(effect.ns), *launches + 1);
            }
        }
        let Some(place) = place else {
            count_elsewhere(&mut elsewhere, work, effect.ns);
            continue;
        };
        let line = lines.entry(place).or_default();
        let operator = around.operator_of(effect.point).unwrap_or(NO_OPERATOR);
        // Of several kernels that one launch causes, as of a graph, one stands for the call.
        let is_first = is_kernel && std::mem::take(&mut first[effect.point as usize]);
        line.add(effect, work, names, (operator, is_first), forward.is_some());
    }
    for ran in &points.orphans {
        let work = works.get(ran.work as usize);
        if matches!(work, Some(Work::Kernel { .. })) {
            time.kernel_ns = time.kernel_ns.saturating_add(ran.ns);
            count_elsewhere(&mut elsewhere, work, ran.ns);
        }
    }
    time.unattributed = named(&elsewhere, |name| names.get(name).to_owned(), MOST_UNATTRIBUTED);
    time.attributed_ns = lines.values().fold(0, |sum: u64, line| sum.saturating_add(line.kernel_ns));
    let all = time.kernel_ns;
    time.attributed_share = share(time.attributed_ns, all);
    time.lines =
        lines.into_iter().filter_map(|(place, line)| line.finish(around, place, names, all)).collect();
    time.lines.sort_by(|a, b| {
        b.kernel_ns.cmp(&a.kernel_ns).then_with(|| (&a.file, a.line).cmp(&(&b.file, b.line)))
    });
    time.modules = around.modules(&modules, names, all);
    time
}

/// Counts a kernel that belongs to no line.
fn count_elsewhere(elsewhere: &mut HashMap<NameId, (u64, u64)>, work: Option<&Work>, ns: u64) {
    if let Some(Work::Kernel { name, .. }) = work {
        let (count, sum) = elsewhere.entry(*name).or_default();
        (*count, *sum) = (*count + 1, sum.saturating_add(ns));
    }
}

impl Line {
    fn add(
        &mut self,
        effect: &Effect,
        work: Option<&Work>,
        names: &Names,
        (operator, is_first): (u32, bool),
        backward: bool,
    ) {
        let count = |parts: &mut HashMap<u32, (u64, u64)>, name| {
            let (count, ns) = parts.entry(name).or_default();
            (*count, *ns) = (*count + 1, ns.saturating_add(effect.ns));
        };
        match work {
            None => count(&mut self.waits, operator),
            Some(Work::Kernel { name, .. } | Work::Graph { name }) => {
                self.kernel_ns = self.kernel_ns.saturating_add(effect.ns);
                self.launches += 1;
                if backward {
                    self.backward_ns = self.backward_ns.saturating_add(effect.ns);
                }
                count(&mut self.kernels, *name);
                self.operators.entry(operator).or_default().add(effect.ns, names.get(*name), is_first);
            }
            Some(Work::Copy { route, bytes }) => {
                let copies = match route.direction {
                    Direction::HostToDevice => &mut self.to_device,
                    Direction::DeviceToHost => &mut self.to_host,
                    _ => return,
                };
                copies.add(*route, bytes.unwrap_or(0), effect.ns);
            }
            Some(Work::Set { .. }) => {}
        }
    }

    fn finish(self, around: &Parts, place: u32, names: &Names, all: u64) -> Option<LineSum> {
        let place = around.places.get(place as usize)?;
        // Calls with other shapes are calls of the same operator.
        let name =
            |operator: u32| around.signatures.get(operator as usize).map_or(NO_OPERATOR, |known| known.name);
        let operators = self.operators.iter().map(|(id, sum)| (name(*id), (sum.launches, sum.ns)));
        let by_name = together(operators);
        let waits = together(self.waits.iter().map(|(id, wait)| (name(*id), *wait)));
        let name_of = |id| if id == NO_OPERATOR { String::new() } else { names.get(id).to_owned() };
        Some(LineSum {
            file: place.file.clone(),
            line: place.line,
            function: place.function.clone(),
            precision: place.precision,
            kernel_ns: self.kernel_ns,
            share: share(self.kernel_ns, all),
            launches: self.launches,
            backward_ns: self.backward_ns,
            kernels: named(&self.kernels, |name| names.get(name).to_owned(), MOST_PARTS),
            operators: named(&by_name, name_of, MOST_PARTS),
            estimates: around.estimates(&self.operators, names),
            roofline: None,
            waits: named(&waits, name_of, MOST_PARTS),
            to_device: self.to_device,
            to_host: self.to_host,
        })
    }
}

impl LineCopies {
    fn add(&mut self, route: Route, bytes: u64, ns: u64) {
        self.count += 1;
        self.pageable += u64::from(route.is_pageable());
        self.bytes = self.bytes.saturating_add(bytes);
        self.ns = self.ns.saturating_add(ns);
    }
}

impl Operator {
    fn add(&mut self, ns: u64, kernel: &str, is_first: bool) {
        self.calls += u64::from(is_first);
        self.launches += 1;
        self.ns = self.ns.saturating_add(ns);
        if is_on_tensor_cores(kernel) {
            self.tensor_ns = self.tensor_ns.saturating_add(ns);
        }
        self.element = self.element.or_else(|| Element::of_kernel(kernel));
    }

    /// What its calls, each with this demand, must at least.
    fn estimate(&self, signature: Option<&Signature>, names: &Names) -> OperatorEstimate {
        let known = OperatorEstimate {
            name: signature.map_or(String::new(), |signature| names.get(signature.name).to_owned()),
            shapes: signature.map_or(String::new(), |signature| signature.shapes.clone()),
            calls: self.calls,
            launches: self.launches,
            ns: self.ns,
            ..OperatorEstimate::default()
        };
        let unknown = |why: String| OperatorEstimate { unknown: Some(why), ..known.clone() };
        let demand = match signature.map(|signature| &signature.demand) {
            None => {
                return unknown("no operator launched the kernels, so that no shapes are known".to_owned());
            }
            Some(Err(why)) => return unknown(why.clone()),
            Some(Ok(demand)) => demand,
        };
        let untyped = match (demand.untyped, self.element) {
            (0, _) => 0,
            (count, Some(element)) => count.saturating_mul(element),
            (_, None) => {
                return unknown(format!(
                    "the types of the list that `{}` takes were not recorded",
                    known.name
                ));
            }
        };
        let all = |each: u64| each.saturating_mul(self.calls);
        let is_on_tensor_cores = self.tensor_ns.saturating_mul(2) > self.ns;
        OperatorEstimate {
            bytes: Some(all(demand.bytes.saturating_add(untyped))),
            flops: demand.flops.map(all),
            arithmetic: demand.operands.and_then(|operands| Arithmetic::of(operands, is_on_tensor_cores)),
            ..known
        }
    }
}

/// Estimates of one operator for many shapes as one.
fn rest_by_operator(rest: Vec<OperatorEstimate>) -> Vec<OperatorEstimate> {
    let mut sums: BTreeMap<(String, Option<Arithmetic>, Option<String>), OperatorEstimate> = BTreeMap::new();
    for one in rest {
        let key = (one.name.clone(), one.arithmetic, one.unknown.clone());
        match sums.entry(key) {
            Entry::Vacant(place) => {
                place.insert(one);
            }
            Entry::Occupied(mut known) => {
                let known = known.get_mut();
                let add = |sum: &mut Option<u64>, more: Option<u64>| {
                    *sum = sum.zip(more).map(|(sum, more)| sum.saturating_add(more));
                };
                add(&mut known.bytes, one.bytes);
                add(&mut known.flops, one.flops);
                known.shapes = "other shapes".to_owned();
                known.calls += one.calls;
                known.launches += one.launches;
                known.ns = known.ns.saturating_add(one.ns);
            }
        }
    }
    sums.into_values().collect()
}

/// Sums under one key each.
fn together(parts: impl Iterator<Item = (u32, (u64, u64))>) -> HashMap<u32, (u64, u64)> {
    let mut sums: HashMap<u32, (u64, u64)> = HashMap::new();
    for (key, (count, ns)) in parts {
        let (counts, sum) = sums.entry(key).or_default();
        (*counts, *sum) = (*counts + count, sum.saturating_add(ns));
    }
    sums
}

/// The largest of them, with their names.
fn named(parts: &HashMap<u32, (u64, u64)>, name: impl Fn(u32) -> String, most: usize) -> Vec<Part> {
    let mut all: Vec<Part> =
        parts.iter().map(|(id, (count, ns))| Part { name: name(*id), count: *count, ns: *ns }).collect();
    all.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.name.cmp(&b.name)));
    all.truncate(most);
    all
}

/// What is around the moments, with the modules as paths.
pub struct Parts {
    places: Vec<super::around::Place>,
    frame: super::around::Innermost,
    operator: super::around::Innermost,
    signatures: Vec<Signature>,
    forward: super::around::Innermost,
    /// The module of each moment: an index of `paths`.
    module: Vec<u32>,
    /// The module around, and the name.
    paths: Vec<(u32, NameId)>,
}

/// No module.
const OUTSIDE: u32 = u32::MAX;

impl Parts {
    /// From what the walk has found.
    pub fn new(around: Around<'_>, points: &Points) -> Self {
        let Around { places, frame, operator, signatures, forward, mut modules, .. } = around;
        modules.sort_unstable();
        let mut parts = Self {
            places,
            frame,
            operator,
            signatures,
            forward,
            module: vec![OUTSIDE; points.moments.len()],
            paths: Vec::new(),
        };
        parts.find_modules(&modules, points);
        parts
    }

    /// Moments and calls of modules are both in order, so that one stack of open calls is enough.
    fn find_modules(&mut self, calls: &[ModuleCall], points: &Points) {
        let mut known: HashMap<(u32, NameId), u32> = HashMap::new();
        let mut open: Vec<(ModuleCall, u32)> = Vec::new();
        let mut calls = calls.iter().peekable();
        for (at, moment) in points.moments.iter().enumerate() {
            let close = |open: &mut Vec<(ModuleCall, u32)>, thread: u32, now: i64| {
                while open.last().is_some_and(|(call, _)| call.thread != thread || call.end.0 < now) {
                    open.pop();
                }
            };
            while let Some(call) =
                calls.next_if(|call| (call.thread, call.start) <= (moment.thread, moment.at))
            {
                close(&mut open, call.thread, call.start);
                if open.len() == DEEPEST {
                    continue;
                }
                let around = open.last().map_or(OUTSIDE, |(_, path)| *path);
                let next = self.paths.len() as u32;
                let path = *known.entry((around, call.name)).or_insert(next);
                if path == next {
                    self.paths.push((around, call.name));
                }
                open.push((*call, path));
            }
            close(&mut open, moment.thread, moment.at);
            self.module[at] = open.last().map_or(OUTSIDE, |(_, path)| *path);
        }
    }

    fn frame_of(&self, point: u32) -> Option<u32> {
        self.frame.get(point)
    }

    /// The operator around a moment: an index of the signatures.
    fn operator_of(&self, point: u32) -> Option<u32> {
        self.operator.get(point)
    }

    /// What each operator of a line must at least, the one with the most time first.
    fn estimates(&self, operators: &HashMap<u32, Operator>, names: &Names) -> Vec<OperatorEstimate> {
        let estimate = |(id, sum): (&u32, &Operator)| sum.estimate(self.signatures.get(*id as usize), names);
        let mut all: Vec<OperatorEstimate> = operators.iter().map(estimate).collect();
        let by_time = |all: &mut Vec<OperatorEstimate>| {
            all.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| (&a.name, &a.shapes).cmp(&(&b.name, &b.shapes))));
        };
        by_time(&mut all);
        let rest = all.split_off(all.len().min(MOST_PARTS));
        // Of a line that is called with ever other shapes, those of each operator count together.
        let mut others = rest_by_operator(rest);
        by_time(&mut others);
        others.truncate(MOST_PARTS);
        all.append(&mut others);
        by_time(&mut all);
        all
    }

    fn forward_of(&self, point: u32) -> Option<u32> {
        self.forward.get(point)
    }

    fn module_of(&self, point: u32) -> Option<u32> {
        self.module.get(point as usize).copied().filter(|module| *module != OUTSIDE)
    }

    /// Sums of modules with those of the modules within them. A module comes after the one around it, so that one pass from the end is enough.
    fn modules(&self, own: &HashMap<u32, (u64, u64)>, names: &Names, all: u64) -> Vec<ModuleSum> {
        let of = |path: usize| own.get(&(path as u32)).copied().unwrap_or_default();
        let mut sums: Vec<(u64, u64)> = (0..self.paths.len()).map(of).collect();
        for path in (0..self.paths.len()).rev() {
            let (around, _) = self.paths[path];
            let (ns, launches) = sums[path];
            if let Some((outer_ns, outer_launches)) = sums.get_mut(around as usize) {
                (*outer_ns, *outer_launches) = (outer_ns.saturating_add(ns), *outer_launches + launches);
            }
        }
        let mut texts: Vec<String> = Vec::with_capacity(self.paths.len());
        let mut modules = BTreeMap::new();
        for (path, (around, name)) in self.paths.iter().enumerate() {
            let name = names.get(*name);
            let text = texts.get(*around as usize).map_or(name.to_owned(), |outer| format!("{outer}/{name}"));
            let (kernel_ns, launches) = sums[path];
            let (own_ns, _) = of(path);
            let module =
                ModuleSum { path: text.clone(), kernel_ns, own_ns, share: share(kernel_ns, all), launches };
            texts.push(text.clone());
            modules.insert(text, module);
        }
        modules.into_values().collect()
    }
}
