//! The first walk through a trace: what ran on devices, and the calls that caused it, in little memory each.
//!
//! Kineto writes what the host did first and what devices did later, each by its buffers, so that nothing can be added up before all of it was
//! seen. A kernel and its call take 32 bytes each.

use std::collections::HashMap;

use super::copies;
use super::document::Visit;
use super::event::{Kind, TraceEvent};
use super::json::{self, Value};
use crate::system::calls;
use crate::system::event::{Call, Correlation, DeviceEvent, Event, Range, Work};
use crate::system::names::{NameId, Names};
use crate::system::sweep::Sweep;
use crate::system::{Device, System, finish::About};

/// What ran on a device.
#[derive(Clone, Copy, Debug)]
pub struct Ran {
    /// When it began.
    pub start: i64,
    /// How long it took.
    pub ns: u64,
    /// The number that it has in common with its call; 0 where there is none.
    pub correlation: u32,
    /// The number that it has in common with its operator; 0 where there is none.
    pub external: u32,
    /// What ran: an index of [`Gathered::works`].
    pub work: u32,
    /// Where: an index of [`Gathered::places`].
    pub place: u32,
}

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Called {
    /// When it began.
    pub start: i64,
    /// How long it took.
    pub ns: u64,
    /// The number that it has in common with what it caused; 0 where there is none.
    pub correlation: u32,
    /// Its name.
    pub name: NameId,
    /// Its thread: an index of [`Gathered::threads`].
    pub thread: u32,
}

/// A place in the run of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment {
    /// The thread: an index of [`Gathered::threads`].
    pub thread: u32,
    /// When.
    pub at: i64,
}

/// One end of a flow from a forward operator to its backward one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowEnd {
    /// The flow.
    pub flow: u64,
    /// Whether it is the backward end.
    pub backward: bool,
    /// Where.
    pub moment: Moment,
}

/// An operator with a sequence number, of the forward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbered {
    /// The number. Some millions of nodes are the most that a trace holds.
    pub sequence: u32,
    thread: u32,
    at: i64,
}

impl Numbered {
    /// Where it began.
    pub fn moment(&self) -> Moment {
        Moment { thread: self.thread, at: self.at }
    }
}

/// What a trace holds.
#[derive(Debug, Default)]
pub struct Gathered {
    /// Names of everything.
    pub names: Names,
    /// What ran on devices.
    pub ran: Vec<Ran>,
    /// Calls.
    pub called: Vec<Called>,
    /// Ranges that the program marked.
    pub ranges: Vec<Range>,
    /// What can run: kernels with their launch, copies with their size.
    pub works: Vec<Work>,
    /// Devices, contexts and streams.
    pub places: Vec<(u32, u32, u32)>,
    /// Processes and threads.
    pub threads: Vec<(u64, u64)>,
    /// Functions of Python by thread.
    pub python: HashMap<u32, u64>,
    /// Ends of flows from forward to backward operators.
    pub flows: Vec<FlowEnd>,
    /// Forward operators with a sequence number.
    pub numbered: Vec<Numbered>,
    /// Devices that the trace names.
    pub devices: Vec<Device>,
    /// The version of the format.
    pub schema: Option<String>,
    /// Events without a time, or whose name is missing.
    pub unusable: u64,
    has_backward: bool,
    works_known: HashMap<WorkKey, u32>,
    places_known: HashMap<(u32, u32, u32), u32>,
    threads_known: HashMap<(u64, u64), u32>,
}

/// What tells one work from another.
type WorkKey = (u8, u32, [u32; 6], [u32; 2], u64);

impl Gathered {
    /// The index of a thread.
    pub fn thread(&mut self, process: u64, thread: u64) -> u32 {
        let next = self.threads.len() as u32;
        let id = *self.threads_known.entry((process, thread)).or_insert(next);
        if id == next {
            self.threads.push((process, thread));
        }
        id
    }

    /// The index of a thread that the first walk has seen.
    pub fn known_thread(&self, process: u64, thread: u64) -> Option<u32> {
        self.threads_known.get(&(process, thread)).copied()
    }

    fn work(&mut self, key: WorkKey, work: Work) -> u32 {
        let next = self.works.len() as u32;
        let id = *self.works_known.entry(key).or_insert(next);
        if id == next {
            self.works.push(work);
        }
        id
    }

    fn ran(&mut self, event: &TraceEvent<'_>, kind: Kind) {
        let args = &event.args;
        let work = match kind {
            Kind::Kernel => {
                let (name, launch) = (self.names.id(&event.name), args.launch);
                let [a, b, c] = launch.grid;
                let [d, e, f] = launch.block;
                let sizes = [launch.registers, launch.shared_bytes];
                let key = (u8::from(launch.graph), name, [a, b, c, d, e, f], sizes, 0);
                self.work(key, Work::Kernel { name, launch })
            }
            Kind::Copy => {
                let route = copies::route(&event.name);
                let name = self.names.id(&event.name);
                let key = (2, name, [0; 6], [0; 2], args.bytes.unwrap_or(u64::MAX));
                self.work(key, Work::Copy { route, bytes: args.bytes })
            }
            _ => {
                let key = (3, 0, [0; 6], [0; 2], args.bytes.unwrap_or(u64::MAX));
                self.work(key, Work::Set { bytes: args.bytes })
            }
        };
        let device = args.device.unwrap_or_else(|| u32::try_from(event.process).unwrap_or(0));
        let stream = args.stream.unwrap_or_else(|| u32::try_from(event.thread).unwrap_or(0));
        let key = (device, args.context.unwrap_or(0), stream);
        let next = self.places.len() as u32;
        let place = *self.places_known.entry(key).or_insert(next);
        if place == next {
            self.places.push(key);
        }
        let small = |id: Option<u64>| id.and_then(|id| u32::try_from(id).ok()).unwrap_or(0);
        self.ran.push(Ran {
            start: event.start.unwrap_or(0),
            ns: event.ns,
            correlation: small(args.correlation),
            external: small(args.external),
            work,
            place,
        });
    }

    fn called(&mut self, event: &TraceEvent<'_>) {
        let correlation = event.args.correlation.and_then(|id| u32::try_from(id).ok()).unwrap_or(0);
        let called = Called {
            start: event.start.unwrap_or(0),
            ns: event.ns,
            correlation,
            name: self.names.id(calls::plain(&event.name)),
            thread: self.thread(event.process, event.thread),
        };
        self.called.push(called);
    }

    /// Keeps where a node of autograd was made: of nested operators with one number, the one that began last made it.
    fn operator(&mut self, event: &TraceEvent<'_>) {
        let Some(sequence) = event.args.sequence.and_then(|number| u32::try_from(number).ok()) else {
            return;
        };
        if event.args.forward_thread.is_some_and(|thread| thread > 0) {
            self.has_backward = true;
            return;
        }
        let (thread, at) = (self.thread(event.process, event.thread), event.start.unwrap_or(0));
        if let Some(last) = self.numbered.last_mut()
            && (last.sequence, last.thread) == (sequence, thread)
        {
            last.at = last.at.max(at);
            return;
        }
        self.numbered.push(Numbered { sequence, thread, at });
    }

    fn flow(&mut self, event: &TraceEvent<'_>) {
        if let (Some(flow), Some(at)) = (event.flow, event.start) {
            let moment = Moment { thread: self.thread(event.process, event.thread), at };
            self.flows.push(FlowEnd { flow, backward: event.phase == b'f', moment });
        }
    }

    /// Puts everything in order.
    pub fn sort(&mut self) {
        self.ran.sort_unstable_by_key(|ran| ran.start);
        self.called.sort_unstable_by_key(|called| called.start);
        self.ranges.sort_unstable_by_key(|range| range.start);
        self.flows.sort_unstable();
        self.flows.dedup();
        if !self.has_backward {
            self.numbered = Vec::new();
        }
        self.numbered.sort_unstable_by_key(|numbered| (numbered.sequence, numbered.moment()));
        (self.works_known, self.places_known) = (HashMap::new(), HashMap::new());
    }

    /// Adds it all up; takes the names with it.
    pub fn system(&mut self, about: About) -> System {
        let mut sweep = Sweep::with_names(std::mem::take(&mut self.names));
        let (mut ran, mut called, mut ranges) =
            (self.ran.iter().peekable(), self.called.iter().peekable(), self.ranges.iter().peekable());
        loop {
            let starts =
                [ranges.peek().map(|x| x.start), called.peek().map(|x| x.start), ran.peek().map(|x| x.start)];
            let first = starts.iter().enumerate().filter_map(|(at, start)| Some(((*start)?, at))).min();
            let event = match first {
                Some((_, 0)) => ranges.next().map(|range| Event::Range(*range)),
                Some((_, 1)) => called.next().map(|called| Event::Call(self.call(called, &sweep.names))),
                Some(_) => ran.next().map(|ran| Event::Device(self.device_event(ran))),
                None => break,
            };
            if let Some(event) = event {
                sweep.push(&event);
            }
        }
        let (names, system) = sweep.finish_with_names(about);
        self.names = names;
        system
    }

    fn call(&self, called: &Called, names: &Names) -> Call {
        Call {
            start: called.start,
            end: called.start.saturating_add(i64::try_from(called.ns).unwrap_or(i64::MAX)),
            thread: self.thread_number(called.thread),
            cause: Correlation { process: 0, number: called.correlation.into() },
            name: called.name,
            class: calls::class(names.get(called.name)),
        }
    }

    fn device_event(&self, ran: &Ran) -> DeviceEvent {
        let (device, context, stream) = self.places.get(ran.place as usize).copied().unwrap_or_default();
        DeviceEvent {
            start: ran.start,
            end: ran.start.saturating_add(i64::try_from(ran.ns).unwrap_or(i64::MAX)),
            device,
            context,
            stream,
            cause: Correlation { process: 0, number: ran.correlation.into() },
            work: self.works.get(ran.work as usize).copied().unwrap_or(Work::Set { bytes: None }),
        }
    }

    /// Whether it is a kernel.
    pub fn is_kernel(&self, ran: &Ran) -> bool {
        matches!(self.works.get(ran.work as usize), Some(Work::Kernel { .. }))
    }

    fn thread_number(&self, thread: u32) -> u64 {
        self.threads.get(thread as usize).map_or(0, |(_, thread)| *thread)
    }
}

impl Visit for Gathered {
    fn field(&mut self, key: &str, value: &[u8]) {
        match key {
            "schemaVersion" => self.schema = Some(String::from_utf8_lossy(value).trim().to_owned()),
            "deviceProperties" => self.devices = devices(value),
            _ => {}
        }
    }

    fn event(&mut self, event: &TraceEvent<'_>) {
        match event.kind() {
            kind @ (Kind::Kernel | Kind::Copy | Kind::Set) => self.ran(event, kind),
            Kind::Call => self.called(event),
            Kind::Operator => self.operator(event),
            Kind::Annotation => {
                let range = Range {
                    start: event.start.unwrap_or(0),
                    end: event.end(),
                    thread: event.thread,
                    name: self.names.id(&event.name),
                };
                self.ranges.push(range);
            }
            Kind::Python => {
                let thread = self.thread(event.process, event.thread);
                *self.python.entry(thread).or_default() += 1;
            }
            Kind::ForwardBackward => self.flow(event),
            Kind::Other => self.unusable += u64::from(event.phase == b'X' && event.start.is_none()),
        }
    }
}

/// Devices as Kineto describes them; what can't be read is left out.
fn devices(bytes: &[u8]) -> Vec<Device> {
    let mut devices = Vec::new();
    for value in json::array(bytes).unwrap_or_default() {
        let Value::Nested(bytes) = value else {
            continue;
        };
        let mut device = Device::default();
        let (mut major, mut minor) = (None, None);
        let read = json::object(bytes, |key, value| {
            let integer = value.integer();
            match key {
                "id" => device.id = integer.and_then(|id| u32::try_from(id).ok()).unwrap_or(0),
                "name" => {
                    device.name = if let Value::Text(name) = value { Some(name.into_owned()) } else { None }
                }
                "numSms" => device.multiprocessors = integer.and_then(|count| u32::try_from(count).ok()),
                "totalGlobalMem" => device.memory_bytes = integer.and_then(|bytes| u64::try_from(bytes).ok()),
                "computeMajor" => major = integer,
                "computeMinor" => minor = integer,
                _ => {}
            }
        });
        device.compute_capability = major.zip(minor).map(|(major, minor)| format!("{major}.{minor}"));
        if read.is_ok() && devices.iter().all(|known: &Device| known.id != device.id) {
            devices.push(device);
        }
    }
    devices
}
