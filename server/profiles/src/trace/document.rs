//! Walks through a trace: the fields around the events, and the events one by one.
//!
//! Source: the Trace Event Format of Chrome. A trace is an object with `traceEvents`, or only their array, whose closing bracket may be
//! missing. An event that can't be read is left out and counted, and the next one is looked for.

use super::event::TraceEvent;
use super::stream::{Extent, Stream};

/// What begins an event, after a bracket or a comma and a brace.
const KEYS: [&str; 11] = ["ph", "name", "cat", "pid", "tid", "ts", "dur", "args", "id", "bp", "s"];

/// Looked at to tell whether an event begins.
const GLANCE: usize = 64;

/// What became of a walk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Walk {
    /// Events that could be read.
    pub events: u64,
    /// Events that could not.
    pub broken: u64,
    /// The line of the first that could not.
    pub first_broken_line: Option<u64>,
    /// Whether the trace ends in the middle.
    pub cut: bool,
    /// The line on which it ended.
    pub last_line: u64,
    /// Why the source ended, where it failed.
    pub trouble: Option<String>,
    /// Whether anything like a list of events was found.
    pub has_events: bool,
}

/// What a walk shows.
pub trait Visit {
    /// A field beside the events, as it is written.
    fn field(&mut self, key: &str, value: &[u8]);

    /// An event.
    fn event(&mut self, event: &TraceEvent<'_>);
}

/// Walks through a trace.
pub fn walk(mut stream: Stream<'_>, visit: &mut dyn Visit) -> Walk {
    let mut walk = Walk::default();
    if [Some(0xEF), Some(0xBB), Some(0xBF)] == [stream.peek(0), stream.peek(1), stream.peek(2)] {
        stream.skip(3);
    }
    match stream.next_sign() {
        Some(b'[') => walk.events(&mut stream, visit),
        Some(b'{') => {
            stream.skip(1);
            walk.fields(&mut stream, visit);
        }
        _ => {}
    }
    walk.last_line = stream.line();
    walk.trouble = stream.trouble().map(str::to_owned);
    walk
}

impl Walk {
    /// Fields of the outer object.
    fn fields(&mut self, stream: &mut Stream<'_>, visit: &mut dyn Visit) {
        loop {
            match stream.next_sign() {
                Some(b',') => stream.skip(1),
                Some(b'"') => {}
                Some(b'}') => return,
                None => {
                    self.cut = true;
                    return;
                }
                // Where the outer object is not one, its events may still be.
                Some(_) => return self.recover(stream, visit),
            }
            if stream.next_sign() != Some(b'"') {
                continue;
            }
            let Extent::Whole(length) = stream.extent() else {
                self.cut = true;
                return;
            };
            let key = String::from_utf8_lossy(&stream.seen(length)[1..length - 1]).into_owned();
            stream.skip(length);
            if stream.next_sign() != Some(b':') {
                return self.recover(stream, visit);
            }
            stream.skip(1);
            if key == "traceEvents" && stream.next_sign() == Some(b'[') {
                self.events(stream, visit);
                continue;
            }
            match stream.next_sign().map(|_| stream.extent()) {
                Some(Extent::Whole(length)) => {
                    visit.field(&key, stream.seen(length));
                    stream.skip(length);
                }
                Some(Extent::TooLong) => return self.recover(stream, visit),
                Some(Extent::Cut) | None => {
                    self.cut = true;
                    return;
                }
            }
        }
    }

    /// The array of events, from its bracket.
    fn events(&mut self, stream: &mut Stream<'_>, visit: &mut dyn Visit) {
        self.has_events = true;
        stream.skip(1);
        loop {
            match stream.next_sign() {
                Some(b',') => stream.skip(1),
                Some(b']') => {
                    stream.skip(1);
                    return;
                }
                Some(b'{') => self.one(stream, visit),
                None => {
                    self.cut = true;
                    return;
                }
                Some(_) => self.give_up(stream),
            }
        }
    }

    /// The event that begins here.
    fn one(&mut self, stream: &mut Stream<'_>, visit: &mut dyn Visit) {
        let extent = stream.extent();
        if stream.is_hopeless() {
            self.cut = true;
            return stream.end();
        }
        if let Extent::Whole(length) = extent
            && let Ok(event) = TraceEvent::read(stream.seen(length))
        {
            self.events += 1;
            self.cut = false;
            visit.event(&event);
            stream.skip(length);
            return;
        }
        // Where a whole event follows, it was only this one that has no end.
        self.cut = extent == Extent::Cut;
        self.give_up(stream);
    }

    /// Leaves out what begins here, and goes on to where an event begins.
    fn give_up(&mut self, stream: &mut Stream<'_>) {
        self.broken += 1;
        self.first_broken_line.get_or_insert(stream.line());
        stream.skip(1);
        seek(stream);
    }

    /// Looks for events without knowing where they are.
    fn recover(&mut self, stream: &mut Stream<'_>, visit: &mut dyn Visit) {
        self.give_up(stream);
        while stream.next_sign() == Some(b'{') {
            self.has_events = true;
            self.one(stream, visit);
            seek(stream);
        }
    }
}

/// Goes on to the next place where an event begins, or to the end.
fn seek(stream: &mut Stream<'_>) {
    let mut before = 0;
    while let Some(byte) = stream.peek(0) {
        if byte == b'{' && matches!(before, b',' | b'[' | 0) && begins(stream) {
            return;
        }
        if !byte.is_ascii_whitespace() {
            before = byte;
        }
        stream.skip(1);
    }
}

/// Whether an event begins here: a brace and one of its keys.
fn begins(stream: &mut Stream<'_>) -> bool {
    stream.peek(GLANCE);
    let glance = stream.seen(GLANCE);
    let Ok(glance) =
        std::str::from_utf8(glance).or_else(|error| std::str::from_utf8(&glance[..error.valid_up_to()]))
    else {
        return false;
    };
    let Some(key) = glance.strip_prefix('{').and_then(|rest| rest.trim_start().strip_prefix('"')) else {
        return false;
    };
    KEYS.iter().any(|known| key.strip_prefix(known).is_some_and(|rest| rest.starts_with('"')))
}
