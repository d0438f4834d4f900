//! Adds events up, in the order of their starts, in memory that does not grow with their number.
//!
//! A line sweeps over time and halts at each start and each end. Between two halts nothing changes, so that the time between them can be
//! given to what was going on: a device was busy, or idle while the host waited. Whatever starts later can't change that any more.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use super::calls::CallClass;
use super::causes::Causes;
use super::device::{DeviceSweep, TINY_KERNEL_NS};
use super::drawing::{Pencil, Row};
use super::durations::Durations;
use super::event::{Call, DeviceEvent, Event, Launch, Range, Route, Work};
use super::model::{CallSum, CopySum, KernelSum, RangeSum, SetSum, StreamSum};
use super::names::{NameId, Names};

/// A launch that takes longer is counted as setup: a launch takes some microseconds (CUDA C++ Best Practices Guide), but the first of a
/// kernel loads its code (CUDA C++ Programming Guide, "Lazy Loading"), which takes milliseconds. In nanoseconds.
pub const LONG_LAUNCH_NS: i64 = 200_000;

/// Devices whose time is followed. A machine has 16 at most; a damaged file may name any number.
pub(super) const MOST_DEVICES: usize = 256;

/// The sum of events so far.
#[derive(Debug, Default)]
pub struct Sweep {
    /// Names of everything.
    pub names: Names,
    pub(super) now: Option<i64>,
    pub(super) first: i64,
    pub(super) last: i64,
    pub(super) devices: BTreeMap<u32, DeviceSweep>,
    pub(super) host: Host,
    pub(super) kernels: HashMap<NameId, KernelStat>,
    pub(super) copies: BTreeMap<Route, CopyStat>,
    pub(super) sets: Option<SetSum>,
    pub(super) calls: HashMap<NameId, CallSum>,
    pub(super) ranges: Vec<RangeSum>,
    pub(super) range_of_name: HashMap<NameId, usize>,
    pub(super) streams: BTreeMap<(u32, u32, u32), StreamSum>,
    pub(super) pencil: Pencil,
    pub(super) out_of_order: u64,
    pub(super) beyond_devices: bool,
    ends: BinaryHeap<Reverse<(i64, u64, Ended)>>,
    serial: u64,
    causes: Causes,
}

/// What the host is doing, over all of its threads: calls that are running.
#[derive(Clone, Copy, Debug, Default)]
pub struct Host {
    /// Calls that wait for a device.
    pub waiting: u64,
    /// Since when at least one of them does.
    pub waiting_since: i64,
    /// Calls that set something up.
    pub setup: u64,
    /// Calls that allocate or free.
    pub allocating: u64,
    /// Whether any call was ever recorded.
    pub recorded: bool,
}

/// What has to be undone at an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Ended {
    Device(u32),
    Waiting,
    Setup,
    Allocating,
}

/// Launches of one kernel so far.
#[derive(Clone, Debug, Default)]
pub(super) struct KernelStat {
    pub durations: Durations,
    pub alone: BTreeMap<u32, u64>,
    pub launch: Launch,
    pub in_graphs: u64,
    pub tiny: u64,
    pub whole_graph: bool,
}

/// Copies of one way so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CopyStat {
    pub count: u64,
    pub bytes: u64,
    pub total_ns: u64,
    pub max_ns: u64,
    pub timed_bytes: u64,
    pub timed_ns: u64,
}

impl Sweep {
    /// An empty sum for events whose names are in this table.
    pub fn with_names(names: Names) -> Self {
        Self { names, ..Self::default() }
    }

    /// Adds an event. Events come in the order of their starts; one that comes late is counted as if it had started now.
    pub fn push(&mut self, event: &Event) {
        let start = event.start();
        match self.now {
            None => (self.now, self.first) = (Some(start), start),
            Some(now) if start < now => self.out_of_order += 1,
            Some(_) => self.advance(start),
        }
        match event {
            Event::Device(event) => self.device_event(event),
            Event::Call(call) => self.call(call),
            Event::Range(range) => self.range(range),
        }
    }

    fn device_event(&mut self, event: &DeviceEvent) {
        let ns = length(event.start, event.end);
        let name = match event.work {
            Work::Kernel { name, launch } => self.kernel(name, launch, ns, false),
            Work::Graph { name } => self.kernel(name, Launch::default(), ns, true),
            Work::Copy { route, bytes } => self.copy(route, bytes, ns),
            Work::Set { bytes } => self.set(bytes, ns),
        };
        let key = (event.device, event.context, event.stream);
        let stream = self.streams.entry(key).or_insert_with(|| StreamSum {
            device: event.device,
            context: event.context,
            stream: event.stream,
            ..StreamSum::default()
        });
        stream.count += 1;
        stream.total_ns = stream.total_ns.saturating_add(ns);
        let (device, stream) = (event.device, event.stream);
        let is_kernel = matches!(event.work, Work::Kernel { .. } | Work::Graph { .. });
        let row = if is_kernel { Row::Kernels { device, stream } } else { Row::Copies { device, stream } };
        self.pencil.draw(row, event.start, event.end, name);
        if is_kernel {
            for (depth, range) in self.causes.ranges_of(event.cause).iter().enumerate() {
                if let Some(sum) = self.ranges.get_mut(*range) {
                    sum.launches += 1;
                    sum.kernel_ns = sum.kernel_ns.saturating_add(ns);
                    if depth == 0 {
                        sum.own_launches += 1;
                        sum.own_kernel_ns = sum.own_kernel_ns.saturating_add(ns);
                    }
                }
            }
        }
        if self.devices.len() >= MOST_DEVICES && !self.devices.contains_key(&device) {
            self.last = self.last.max(event.end);
            self.beyond_devices = true;
            return;
        }
        let serial = self.ends_at(event.end, Ended::Device(device));
        let host = self.host;
        self.devices.entry(device).or_default().begin(serial, event.work, ns, host);
    }

    fn kernel(&mut self, name: NameId, launch: Launch, ns: u64, whole_graph: bool) -> NameId {
        let stat = self.kernels.entry(name).or_default();
        if ns >= stat.durations.max() {
            stat.launch = launch;
        }
        stat.durations.add(ns);
        stat.in_graphs += u64::from(launch.graph);
        stat.tiny += u64::from(ns < TINY_KERNEL_NS && !whole_graph);
        stat.whole_graph |= whole_graph;
        name
    }

    fn copy(&mut self, route: Route, bytes: Option<u64>, ns: u64) -> NameId {
        let stat = self.copies.entry(route).or_default();
        stat.count += 1;
        stat.total_ns = stat.total_ns.saturating_add(ns);
        stat.max_ns = stat.max_ns.max(ns);
        if let Some(bytes) = bytes {
            stat.bytes = stat.bytes.saturating_add(bytes);
            // A duration of zero is below the clock's resolution, and no rate can be made of it.
            if ns > 0 {
                stat.timed_bytes = stat.timed_bytes.saturating_add(bytes);
                stat.timed_ns = stat.timed_ns.saturating_add(ns);
            }
        }
        self.names.id(&format!("copy, {}", route.direction.label()))
    }

    fn set(&mut self, bytes: Option<u64>, ns: u64) -> NameId {
        let sum = self.sets.get_or_insert_default();
        sum.count += 1;
        sum.bytes = sum.bytes.saturating_add(bytes.unwrap_or(0));
        sum.total_ns = sum.total_ns.saturating_add(ns);
        self.names.id("memset")
    }

    fn call(&mut self, call: &Call) {
        let ns = length(call.start, call.end);
        let sum = self.calls.entry(call.name).or_insert_with(|| CallSum {
            name: String::new(),
            class: call.class,
            count: 0,
            total_ns: 0,
            max_ns: 0,
        });
        sum.count += 1;
        sum.total_ns = sum.total_ns.saturating_add(ns);
        sum.max_ns = sum.max_ns.max(ns);
        self.host.recorded = true;
        if call.class.causes_work() {
            self.causes.remember(call);
        }
        let thread = call.thread;
        let row = if call.class.waits() { Row::Waits { thread } } else { Row::Calls { thread } };
        self.pencil.draw(row, call.start, call.end, call.name);
        let long_launch =
            call.class == CallClass::Launch && call.end.saturating_sub(call.start) > LONG_LAUNCH_NS;
        if call.class.waits() && self.host.waiting == 0 {
            self.host.waiting_since = self.now.unwrap_or(call.start);
        }
        let (count, ended) = match call.class {
            class if class.waits() => (&mut self.host.waiting, Ended::Waiting),
            CallClass::Setup => (&mut self.host.setup, Ended::Setup),
            CallClass::Launch if long_launch => (&mut self.host.setup, Ended::Setup),
            CallClass::Allocate => (&mut self.host.allocating, Ended::Allocating),
            _ => {
                self.last = self.last.max(call.end);
                return;
            }
        };
        *count += 1;
        self.ends_at(call.end, ended);
    }

    fn range(&mut self, range: &Range) {
        let at = *self.range_of_name.entry(range.name).or_insert_with(|| {
            self.ranges.push(RangeSum::default());
            self.ranges.len() - 1
        });
        let sum = &mut self.ranges[at];
        sum.count += 1;
        sum.total_ns = sum.total_ns.saturating_add(length(range.start, range.end));
        self.last = self.last.max(range.end);
        self.causes.open(range, at);
    }

    /// Puts an end on the heap. It comes at the earliest now.
    fn ends_at(&mut self, end: i64, ended: Ended) -> u64 {
        self.serial += 1;
        let end = end.max(self.now.unwrap_or(end));
        self.last = self.last.max(end);
        self.ends.push(Reverse((end, self.serial, ended)));
        self.serial
    }

    /// Moves the line to `to`, and halts at each end on the way.
    fn advance(&mut self, to: i64) {
        while let Some(Reverse((end, serial, ended))) = self.ends.peek().copied() {
            if end > to {
                break;
            }
            self.ends.pop();
            self.step(end);
            match ended {
                Ended::Device(device) => {
                    if let Some(sweep) = self.devices.get_mut(&device) {
                        sweep.end(end, serial, self.host);
                    }
                }
                Ended::Waiting => self.host.waiting -= 1,
                Ended::Setup => self.host.setup -= 1,
                Ended::Allocating => self.host.allocating -= 1,
            }
        }
        self.step(to);
    }

    /// Gives the time since the last halt to what was going on.
    fn step(&mut self, to: i64) {
        let Some(now) = self.now.filter(|now| *now < to) else {
            return;
        };
        let ns = length(now, to);
        for (id, device) in &mut self.devices {
            if let Some(name) = device.pass(ns, self.host)
                && let Some(stat) = self.kernels.get_mut(&name)
            {
                let alone = stat.alone.entry(*id).or_default();
                *alone = alone.saturating_add(ns);
            }
        }
        self.now = Some(to);
    }

    /// Lets everything that is still running come to its end.
    pub(super) fn run_out(&mut self) {
        while let Some(Reverse((end, ..))) = self.ends.peek().copied() {
            self.advance(end);
        }
    }
}

/// From `start` to `end` in nanoseconds; 0 where the end lies before the start.
pub(super) fn length(start: i64, end: i64) -> u64 {
    end.saturating_sub(start).max(0) as u64
}

impl CopyStat {
    /// The sum as the model has it.
    pub(super) fn sum(self, route: Route) -> CopySum {
        let rate = (self.timed_ns > 0).then(|| self.timed_bytes as f64 * 1e9 / self.timed_ns as f64);
        let CopyStat { count, bytes, total_ns, max_ns, .. } = self;
        CopySum { route, count, bytes, total_ns, max_ns, rate }
    }
}

impl KernelStat {
    /// The sum as the model has it, without what depends on all of them.
    pub(super) fn sum(&self, name: &str) -> KernelSum {
        KernelSum {
            name: name.to_owned(),
            count: self.durations.count(),
            total_ns: self.durations.total(),
            min_ns: self.durations.min(),
            median_ns: self.durations.median(),
            max_ns: self.durations.max(),
            alone_ns: self.alone.values().fold(0, |sum: u64, ns| sum.saturating_add(*ns)),
            launch: self.launch,
            in_graphs: self.in_graphs,
            tiny: self.tiny,
            whole_graph: self.whole_graph,
            ..KernelSum::default()
        }
    }
}
