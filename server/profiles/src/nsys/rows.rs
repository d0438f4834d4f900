//! Rows of the tables of events, each table in the order of its starts.

use std::collections::HashMap;

use rusqlite::{CachedStatement, Connection, Row, Rows, types::ValueRef};

use super::about::{integer, text};
use super::tables::{Table, Tables};
use crate::note::{Note, NoteKind};
use crate::system::calls;
use crate::system::event::{
    Call, Correlation, DeviceEvent, Direction, Event, Launch, Memory, Range, Route, Work,
};
use crate::system::names::{NameId, Names};

/// The table of kernels.
pub const KERNEL: &str = "CUPTI_ACTIVITY_KIND_KERNEL";
/// The table of copies.
pub const COPY: &str = "CUPTI_ACTIVITY_KIND_MEMCPY";
/// The table of memory set to a value.
const SET: &str = "CUPTI_ACTIVITY_KIND_MEMSET";
/// The table of whole graphs.
const GRAPH: &str = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
/// The table of calls, of both runtime and driver.
pub const CALL: &str = "CUPTI_ACTIVITY_KIND_RUNTIME";
/// The table of NVTX events.
pub const RANGE: &str = "NVTX_EVENTS";

/// `ENUM_NSYS_EVENT_TYPE`: ranges by push and pop, and by start and end; and the same of imported text.
const RANGE_TYPES: &str = "59, 60, 70, 71";

/// A table of events, and the columns that are read from it after `start` and `end`.
#[derive(Debug)]
pub struct Shape {
    table: &'static str,
    columns: &'static [&'static str],
    /// What comes first of two that start at once: a range, a call in it, what the call causes.
    rank: u8,
    event: fn(&Fields<'_, '_>, &mut Strings<'_>, &mut Names) -> rusqlite::Result<Option<Event>>,
}

const WHERE: [&str; 5] = ["deviceId", "contextId", "streamId", "correlationId", "globalPid"];

/// Every table of events.
pub const SHAPES: &[Shape] = &[
    Shape { table: RANGE, columns: &["globalTid", "text", "textId"], rank: 0, event: range },
    Shape { table: CALL, columns: &["globalTid", "correlationId", "nameId"], rank: 1, event: call },
    Shape {
        table: KERNEL,
        columns: &[
            WHERE[0],
            WHERE[1],
            WHERE[2],
            WHERE[3],
            WHERE[4],
            "demangledName",
            "shortName",
            "mangledName",
            "gridX",
            "gridY",
            "gridZ",
            "blockX",
            "blockY",
            "blockZ",
            "registersPerThread",
            "staticSharedMemory",
            "dynamicSharedMemory",
            "graphNodeId",
        ],
        rank: 2,
        event: kernel,
    },
    Shape {
        table: COPY,
        columns: &[
            WHERE[0], WHERE[1], WHERE[2], WHERE[3], WHERE[4], "bytes", "copyKind", "srcKind", "dstKind",
        ],
        rank: 2,
        event: copy,
    },
    Shape {
        table: SET,
        columns: &[WHERE[0], WHERE[1], WHERE[2], WHERE[3], WHERE[4], "bytes"],
        rank: 2,
        event: set,
    },
    Shape {
        table: GRAPH,
        columns: &[WHERE[0], WHERE[1], WHERE[2], WHERE[3], WHERE[4], "graphId"],
        rank: 2,
        event: graph,
    },
];

/// The query that gives a table's rows in order. `None` where the file does not have the table.
pub fn query(
    connection: &Connection,
    tables: &Tables,
    shape: &Shape,
    notes: &mut Vec<Note>,
) -> rusqlite::Result<Option<String>> {
    let Some(table) = tables.find(shape.table) else {
        return Ok(None);
    };
    if !table.has("start") || !table.has("end") {
        notes.push(Note::new(
            NoteKind::Unreadable,
            format!("The table {} has no start and end; it was left out.", table.name),
        ));
        return Ok(None);
    }
    let columns: Vec<String> =
        ["start", "end"].iter().chain(shape.columns).map(|name| table.column(name)).collect();
    let mut sql = format!("SELECT {} FROM {}", columns.join(", "), table.quoted());
    if shape.table == RANGE && table.has("eventType") {
        sql += &format!(" WHERE \"eventType\" IN ({RANGE_TYPES})");
    }
    if !in_order(connection, table)? {
        sql += " ORDER BY \"start\"";
    }
    Ok(Some(sql))
}

/// Whether the rows already are in the order of their starts, as nsys writes most of them. To sort millions takes a temporary file.
fn in_order(connection: &Connection, table: &Table) -> rusqlite::Result<bool> {
    let mut statement = connection.prepare(&format!("SELECT \"start\" FROM {}", table.quoted()))?;
    let mut rows = statement.query([])?;
    let mut last = i64::MIN;
    while let Some(row) = rows.next()? {
        if let Some(start) = integer(row, 0)? {
            if start < last {
                return Ok(false);
            }
            last = start;
        }
    }
    Ok(true)
}

/// One table's rows, one ahead.
pub struct Cursor<'a> {
    shape: &'a Shape,
    rows: Rows<'a>,
    head: Option<Event>,
}

impl<'a> Cursor<'a> {
    /// A cursor before the first row.
    pub fn new(shape: &'a Shape, rows: Rows<'a>) -> Self {
        Self { shape, rows, head: None }
    }

    /// The event it stands at.
    pub fn head(&self) -> Option<&Event> {
        self.head.as_ref()
    }

    /// What comes first of two that start at once.
    pub fn rank(&self) -> u8 {
        self.shape.rank
    }

    /// Goes on to the next event. Gives how many rows on the way could not be used.
    pub fn next(&mut self, strings: &mut Strings<'_>, names: &mut Names) -> rusqlite::Result<u64> {
        let mut unreadable = 0;
        self.head = None;
        while let Some(row) = self.rows.next()? {
            let fields = Fields { row };
            // An NVTX range that never ended has no end: it is no row to complain of.
            let open = self.shape.table == RANGE && integer(row, 1)?.is_none();
            match (self.shape.event)(&fields, strings, names)? {
                Some(event) => {
                    self.head = Some(event);
                    break;
                }
                None => unreadable += u64::from(!open),
            }
        }
        Ok(unreadable)
    }
}

/// The fields of a row, by their place in the query.
struct Fields<'r, 's> {
    row: &'r Row<'s>,
}

impl Fields<'_, '_> {
    fn times(&self) -> rusqlite::Result<Option<(i64, i64)>> {
        let times = integer(self.row, 0)?.zip(integer(self.row, 1)?);
        Ok(times.filter(|(start, end)| start <= end))
    }

    fn integer(&self, at: usize) -> rusqlite::Result<Option<i64>> {
        integer(self.row, at + 2)
    }

    fn number<T: TryFrom<i64> + Default>(&self, at: usize) -> rusqlite::Result<T> {
        Ok(self.integer(at)?.and_then(|value| T::try_from(value).ok()).unwrap_or_default())
    }

    /// What ran where, for tables that begin with the columns of [`WHERE`].
    fn on_device(&self, work: Work) -> rusqlite::Result<Option<Event>> {
        let Some((start, end)) = self.times()? else {
            return Ok(None);
        };
        Ok(Some(Event::Device(DeviceEvent {
            start,
            end,
            device: self.number(0)?,
            context: self.number(1)?,
            stream: self.number(2)?,
            cause: Correlation { number: self.number(3)?, process: process(self.integer(4)?) },
            work,
        })))
    }
}

/// The part of a serialized identifier that names the process: its low 24 bits are the thread. Source: Nsight Systems User Guide, "Serialized
/// process and thread identifiers".
fn process(global: Option<i64>) -> u64 {
    (global.unwrap_or(0) as u64) & !0xFF_FFFF
}

fn kernel(
    fields: &Fields<'_, '_>,
    strings: &mut Strings<'_>,
    names: &mut Names,
) -> rusqlite::Result<Option<Event>> {
    let mut name = None;
    for at in [5, 6, 7] {
        name = name.or(strings.name(fields.row, at + 2, names, |name| name)?);
    }
    let name = name.unwrap_or_else(|| names.id("(kernel without a name)"));
    let shared: u32 = fields.number(15)?;
    let dynamic: u32 = fields.number(16)?;
    let launch = Launch {
        grid: [fields.number(8)?, fields.number(9)?, fields.number(10)?],
        block: [fields.number(11)?, fields.number(12)?, fields.number(13)?],
        registers: fields.number(14)?,
        shared_bytes: shared.saturating_add(dynamic),
        graph: fields.integer(17)?.is_some_and(|node| node != 0),
    };
    fields.on_device(Work::Kernel { name, launch })
}

fn copy(fields: &Fields<'_, '_>, _: &mut Strings<'_>, _: &mut Names) -> rusqlite::Result<Option<Event>> {
    let route = Route {
        direction: direction(fields.integer(6)?),
        from: memory(fields.integer(7)?),
        to: memory(fields.integer(8)?),
    };
    let bytes = fields.integer(5)?.and_then(|bytes| u64::try_from(bytes).ok());
    fields.on_device(Work::Copy { route, bytes })
}

fn set(fields: &Fields<'_, '_>, _: &mut Strings<'_>, _: &mut Names) -> rusqlite::Result<Option<Event>> {
    let bytes = fields.integer(5)?.and_then(|bytes| u64::try_from(bytes).ok());
    fields.on_device(Work::Set { bytes })
}

fn graph(fields: &Fields<'_, '_>, _: &mut Strings<'_>, names: &mut Names) -> rusqlite::Result<Option<Event>> {
    let id: u64 = fields.number(5)?;
    let name = names.id(&format!("CUDA graph {id}"));
    fields.on_device(Work::Graph { name })
}

fn call(
    fields: &Fields<'_, '_>,
    strings: &mut Strings<'_>,
    names: &mut Names,
) -> rusqlite::Result<Option<Event>> {
    let Some((start, end)) = fields.times()? else {
        return Ok(None);
    };
    let thread = fields.integer(0)?;
    let name = strings.name(fields.row, 4, names, calls::plain)?;
    let name = name.unwrap_or_else(|| names.id("(call without a name)"));
    Ok(Some(Event::Call(Call {
        start,
        end,
        thread: thread.unwrap_or(0) as u64,
        cause: Correlation { number: fields.number(1)?, process: process(thread) },
        name,
        class: calls::class(names.get(name)),
    })))
}

fn range(
    fields: &Fields<'_, '_>,
    strings: &mut Strings<'_>,
    names: &mut Names,
) -> rusqlite::Result<Option<Event>> {
    let Some((start, end)) = fields.times()? else {
        return Ok(None);
    };
    let name = match fields.row.get_ref(3)? {
        ValueRef::Text(text) => Some(names.id(&String::from_utf8_lossy(text))),
        _ => strings.name(fields.row, 4, names, |name| name)?,
    };
    let name = name.unwrap_or_else(|| names.id("(range without a text)"));
    Ok(Some(Event::Range(Range { start, end, thread: fields.integer(0)?.unwrap_or(0) as u64, name })))
}

/// `ENUM_CUDA_MEMCPY_OPER`.
fn direction(kind: Option<i64>) -> Direction {
    match kind {
        Some(1 | 3) => Direction::HostToDevice,
        Some(2 | 4) => Direction::DeviceToHost,
        Some(5..=8) => Direction::DeviceToDevice,
        Some(9) => Direction::HostToHost,
        Some(10) => Direction::PeerToPeer,
        Some(11) => Direction::UnifiedToDevice,
        Some(12) => Direction::UnifiedToHost,
        Some(13) => Direction::UnifiedToPeer,
        _ => Direction::Unknown,
    }
}

/// `ENUM_CUDA_MEM_KIND`.
fn memory(kind: Option<i64>) -> Memory {
    match kind {
        Some(0) => Memory::Pageable,
        Some(1) => Memory::Pinned,
        Some(2 | 5) => Memory::Device,
        Some(3) => Memory::Array,
        Some(4 | 6) => Memory::Managed,
        _ => Memory::Unknown,
    }
}

/// Texts whose numbers are kept in memory.
const MOST_KNOWN: usize = 1 << 17;

/// Texts that rows refer to by number, looked up as they are needed.
pub struct Strings<'a> {
    statement: Option<CachedStatement<'a>>,
    known: HashMap<i64, Option<NameId>>,
}

impl<'a> Strings<'a> {
    /// The texts of a file.
    pub fn new(connection: &'a Connection, tables: &Tables) -> rusqlite::Result<Self> {
        let statement = match tables.find("StringIds").filter(|table| table.has("id") && table.has("value")) {
            Some(table) => {
                let sql = format!("SELECT \"value\" FROM {} WHERE \"id\" = ?1", table.quoted());
                Some(connection.prepare_cached(&sql)?)
            }
            None => None,
        };
        Ok(Self { statement, known: HashMap::new() })
    }

    /// The name that a row's field refers to, or is. `None` where there is neither.
    fn name(
        &mut self,
        row: &Row<'_>,
        at: usize,
        names: &mut Names,
        shorten: fn(&str) -> &str,
    ) -> rusqlite::Result<Option<NameId>> {
        let id = match row.get_ref(at)? {
            ValueRef::Integer(id) => id,
            ValueRef::Text(text) => return Ok(Some(names.id(shorten(&String::from_utf8_lossy(text))))),
            _ => return Ok(None),
        };
        if let Some(known) = self.known.get(&id) {
            return Ok(*known);
        }
        let Some(statement) = &mut self.statement else {
            return Ok(None);
        };
        let mut rows = statement.query([id])?;
        let found = match rows.next()? {
            Some(row) => text(row, 0)?.map(|text| names.id(shorten(&text))),
            None => None,
        };
        if self.known.len() == MOST_KNOWN {
            self.known.clear();
        }
        self.known.insert(id, found);
        Ok(found)
    }
}
