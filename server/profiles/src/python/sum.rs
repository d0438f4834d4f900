//! From what is around each moment to sums by line and by module.

use std::collections::{BTreeMap, HashMap};

use super::around::{Around, ModuleCall};
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

/// The name of what is around nothing.
const NO_NAME: NameId = NameId::MAX;

#[derive(Debug, Default)]
struct Line {
    kernel_ns: u64,
    launches: u64,
    backward_ns: u64,
    kernels: HashMap<NameId, (u64, u64)>,
    operators: HashMap<NameId, (u64, u64)>,
    waits: HashMap<NameId, (u64, u64)>,
    to_device: LineCopies,
    to_host: LineCopies,
}

/// Adds up what came of the moments.
pub fn sum(points: &Points, works: &[Work], names: &Names, around: &Parts) -> PythonTime {
    let mut lines: HashMap<u32, Line> = HashMap::new();
    let mut modules: HashMap<u32, (u64, u64)> = HashMap::new();
    let mut time = PythonTime::default();
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
            continue;
        };
        let line = lines.entry(place).or_default();
        let operator = around.operator_of(effect.point).unwrap_or(NO_NAME);
        line.add(effect, work, operator, forward.is_some());
    }
    time.kernel_ns = points
        .orphans
        .iter()
        .filter(|ran| matches!(works.get(ran.work as usize), Some(Work::Kernel { .. })))
        .fold(time.kernel_ns, |sum, ran| sum.saturating_add(ran.ns));
    time.attributed_ns = lines.values().fold(0, |sum: u64, line| sum.saturating_add(line.kernel_ns));
    let all = time.kernel_ns;
    time.lines =
        lines.into_iter().filter_map(|(place, line)| line.finish(around, place, names, all)).collect();
    time.lines.sort_by(|a, b| {
        b.kernel_ns.cmp(&a.kernel_ns).then_with(|| (&a.file, a.line).cmp(&(&b.file, b.line)))
    });
    time.modules = around.modules(&modules, names, all);
    time
}

impl Line {
    fn add(&mut self, effect: &Effect, work: Option<&Work>, operator: NameId, backward: bool) {
        let count = |parts: &mut HashMap<NameId, (u64, u64)>, name| {
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
                count(&mut self.operators, operator);
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
        Some(LineSum {
            file: place.file.clone(),
            line: place.line,
            function: place.function.clone(),
            precision: place.precision,
            kernel_ns: self.kernel_ns,
            share: share(self.kernel_ns, all),
            launches: self.launches,
            backward_ns: self.backward_ns,
            kernels: parts(&self.kernels, names),
            operators: parts(&self.operators, names),
            waits: parts(&self.waits, names),
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

fn parts(parts: &HashMap<NameId, (u64, u64)>, names: &Names) -> Vec<Part> {
    let name = |id: NameId| if id == NO_NAME { String::new() } else { names.get(id).to_owned() };
    let mut all: Vec<Part> =
        parts.iter().map(|(id, (count, ns))| Part { name: name(*id), count: *count, ns: *ns }).collect();
    all.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.name.cmp(&b.name)));
    all.truncate(MOST_PARTS);
    all
}

/// What is around the moments, with the modules as paths.
pub struct Parts {
    places: Vec<super::around::Place>,
    frame: super::around::Innermost,
    operator: super::around::Innermost,
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
        let Around { places, frame, operator, forward, mut modules, .. } = around;
        modules.sort_unstable();
        let mut parts = Self {
            places,
            frame,
            operator,
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

    fn operator_of(&self, point: u32) -> Option<NameId> {
        self.operator.get(point)
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
