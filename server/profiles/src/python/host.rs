//! Which operators and lines the time of the CPU goes to, in a trace of a run without a GPU.
//!
//! An operator calls others. Each has its own time, without that of those it calls, and that time counts for the innermost line that was marked
//! around it. Threads count alike: the sum over them may be more than what passed.

use std::collections::HashMap;

use super::frames;
use super::model::{HostLine, HostTime, Part};
use super::workspace::Workspace;
use crate::system::model::share;
use crate::trace::{Kind, TraceEvent, Visit};

/// Operators and marks that are kept in memory; the rest of a longer trace is not looked at.
const MOST_EVENTS: usize = 1 << 20;
/// How the names of our own ranges begin: lines, modules, calls.
const OWN: &str = "stitchcuda.";
/// Operators that are told, and those of a line.
const MOST_PARTS: usize = 16;

/// What ran on a thread for a while.
struct Ran {
    thread: u64,
    start: i64,
    end: i64,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    /// An operator, by its name.
    Operator(usize),
    /// A line, by its place.
    Line(usize),
}

/// Gathers operators and marked lines.
pub(super) struct Host<'w> {
    workspace: &'w Workspace,
    ran: Vec<Ran>,
    names: Vec<String>,
    known: HashMap<String, Option<What>>,
    places: Vec<(String, u32)>,
}

impl<'w> Host<'w> {
    pub(super) fn new(workspace: &'w Workspace) -> Self {
        Self { workspace, ran: Vec::new(), names: Vec::new(), known: HashMap::new(), places: Vec::new() }
    }

    fn what(&mut self, event: &TraceEvent<'_>) -> Option<What> {
        let kind = event.kind();
        if !matches!(kind, Kind::Operator | Kind::Annotation) {
            return None;
        }
        if let Some(known) = self.known.get(&*event.name) {
            return *known;
        }
        // An older PyTorch (1.13) writes ranges that a program marked as operators.
        let is_mark = event.name.starts_with(OWN);
        let what = match kind {
            Kind::Operator if !is_mark => {
                self.names.push(event.name.to_string());
                Some(What::Operator(self.names.len() - 1))
            }
            _ => frames::mark(&event.name).and_then(|frame| {
                let file = self.workspace.resolve(frame.file)?.display().to_string();
                self.places.push((file, frame.line));
                Some(What::Line(self.places.len() - 1))
            }),
        };
        self.known.insert(event.name.to_string(), what);
        what
    }

    /// Of each thing that ran: its time without that of the operators right within it, and the innermost line around it.
    fn around(&self) -> Vec<(i64, Option<usize>)> {
        let mut found: Vec<(i64, Option<usize>)> = Vec::with_capacity(self.ran.len());
        let mut outer: Vec<usize> = Vec::new();
        for (at, ran) in self.ran.iter().enumerate() {
            let is_around = |outer: &usize| {
                let outer = &self.ran[*outer];
                outer.thread == ran.thread && outer.end >= ran.end
            };
            while outer.last().is_some_and(|last| !is_around(last)) {
                outer.pop();
            }
            let is_line = |outer: &&usize| matches!(self.ran[**outer].what, What::Line(_));
            let time = ran.end - ran.start;
            let caller = outer.iter().rev().find(|outer| !is_line(outer)).copied();
            if let (What::Operator(_), Some(caller)) = (ran.what, caller) {
                found[caller].0 -= time;
            }
            found.push((time, outer.iter().rev().find(is_line).copied()));
            outer.push(at);
        }
        found
    }

    /// The sums; `None` where no operator ran.
    pub(super) fn sum(mut self) -> Option<HostTime> {
        // What lies around another comes first.
        self.ran.sort_by_key(|ran| (ran.thread, ran.start, std::cmp::Reverse(ran.end)));
        let mut operators: HashMap<usize, (u64, u64)> = HashMap::new();
        let mut lines: HashMap<usize, HashMap<usize, (u64, u64)>> = HashMap::new();
        for (ran, (own, line)) in self.ran.iter().zip(self.around()) {
            let What::Operator(name) = ran.what else { continue };
            let ns = u64::try_from(own).unwrap_or(0);
            let add = |sums: &mut HashMap<usize, (u64, u64)>| {
                let (count, sum) = sums.entry(name).or_default();
                (*count, *sum) = (*count + 1, sum.saturating_add(ns));
            };
            add(&mut operators);
            if let Some(What::Line(place)) = line.map(|line| self.ran[line].what) {
                add(lines.entry(place).or_default());
            }
        }
        let total = |sums: &HashMap<usize, (u64, u64)>| sums.values().map(|(_, ns)| ns).sum::<u64>();
        let operator_ns = total(&operators);
        let lines = lines.into_iter().map(|(place, sums)| {
            let (file, line) = self.places[place].clone();
            let ns = total(&sums);
            HostLine { file, line, ns, share: share(ns, operator_ns), operators: parts(&sums, &self.names) }
        });
        let mut lines: Vec<HostLine> = lines.collect();
        lines.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| (&a.file, a.line).cmp(&(&b.file, b.line))));
        let operators = parts(&operators, &self.names);
        (operator_ns > 0).then_some(HostTime { operator_ns, operators, lines })
    }
}

fn parts(sums: &HashMap<usize, (u64, u64)>, names: &[String]) -> Vec<Part> {
    let part = |(name, (count, ns)): (&usize, &(u64, u64))| Part {
        name: names[*name].clone(),
        count: *count,
        ns: *ns,
    };
    let mut parts: Vec<Part> = sums.iter().map(part).collect();
    parts.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.name.cmp(&b.name)));
    parts.truncate(MOST_PARTS);
    parts
}

impl Visit for Host<'_> {
    fn field(&mut self, _: &str, _: &[u8]) {}

    fn event(&mut self, event: &TraceEvent<'_>) {
        let Some(start) = event.start.filter(|_| self.ran.len() < MOST_EVENTS) else { return };
        if let Some(what) = self.what(event) {
            self.ran.push(Ran { thread: event.thread, start, end: event.end(), what });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::read_from;
    use super::*;

    /// Two lines: a matrix product that calls another operator, and an addition; beside them an operator that no line is around.
    const TRACE: &str = r#"{"traceEvents": [
      {"ph":"X","cat":"user_annotation","name":"stitchcuda.line /w/m.py:7","pid":1,"tid":1,"ts":0,"dur":100},
      {"ph":"X","cat":"cpu_op","name":"aten::linear","pid":1,"tid":1,"ts":10,"dur":80},
      {"ph":"X","cat":"cpu_op","name":"aten::addmm","pid":1,"tid":1,"ts":20,"dur":60},
      {"ph":"X","cat":"cpu_op","name":"stitchcuda.line /w/m.py:8","pid":1,"tid":1,"ts":100,"dur":50},
      {"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":1,"ts":110,"dur":20},
      {"ph":"X","cat":"cpu_op","name":"aten::add","pid":1,"tid":2,"ts":110,"dur":5}
    ]}"#;

    #[test]
    fn an_operators_own_time_counts_for_the_line_around_it() {
        let workspace = Workspace { folders: vec!["/w".into()], ..Workspace::default() };
        let (_, time) =
            read_from("t", &workspace, &mut || Ok(Box::new(TRACE.as_bytes()) as Box<dyn std::io::Read>))
                .unwrap();
        let host = time.host.unwrap();
        assert_eq!(host.operator_ns, 105_000);
        let told = |parts: &[Part]| {
            parts.iter().map(|part| (part.name.clone(), part.count, part.ns)).collect::<Vec<_>>()
        };
        let add = ("aten::add".to_owned(), 2, 25_000);
        let (addmm, linear) = (("aten::addmm".to_owned(), 1, 60_000), ("aten::linear".to_owned(), 1, 20_000));
        assert_eq!(told(&host.operators), [addmm.clone(), add, linear.clone()]);
        let lines: Vec<_> =
            host.lines.iter().map(|line| (line.line, line.ns, told(&line.operators))).collect();
        assert_eq!(
            lines,
            [(7, 80_000, vec![addmm, linear]), (8, 20_000, vec![("aten::add".to_owned(), 1, 20_000)])]
        );
    }
}
