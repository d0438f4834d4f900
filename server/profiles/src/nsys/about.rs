//! What the export says about itself and the machine: versions, devices, and the profiler's own messages.

use std::collections::BTreeSet;

use rusqlite::{Connection, Row, types::ValueRef};

use super::tables::Tables;
use crate::note::{Note, NoteKind};
use crate::system::finish::About;
use crate::system::{Device, Source};

/// The newest schema that this reader was tested with. Nsight Systems 2025.3 writes it.
const KNOWN_SCHEMA: (u64, u64) = (3, 20);

/// Messages of the profiler that are repeated, at most.
const MOST_MESSAGES: usize = 20;

/// Severities from this on are repeated: warnings and errors. `ENUM_DIAGNOSTIC_SEVERITY_LEVEL`; 4 is verbose.
const WORTH_REPEATING: [i64; 2] = [2, 3];

/// Reads it.
pub fn read(connection: &Connection, tables: &Tables, notes: &mut Vec<Note>) -> rusqlite::Result<About> {
    let source = source(connection, tables, notes)?;
    let devices = devices(connection, tables)?;
    messages(connection, tables, notes)?;
    Ok(About { source, devices, ..About::default() })
}

fn source(connection: &Connection, tables: &Tables, notes: &mut Vec<Note>) -> rusqlite::Result<Source> {
    let mut source = Source { tool: "Nsight Systems".into(), ..Source::default() };
    if let Some(table) =
        tables.find("META_DATA_EXPORT").filter(|table| table.has("name") && table.has("value"))
    {
        let mut statement = connection.prepare(&format!("SELECT name, value FROM {}", table.quoted()))?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            match text(row, 0)?.as_deref() {
                Some("EXPORT_PRODUCT_VERSION") => source.version = text(row, 1)?,
                Some("EXPORT_SCHEMA_VERSION") => source.schema = text(row, 1)?,
                _ => {}
            }
        }
    }
    match &source.schema {
        None => notes.push(Note::new(
            NoteKind::Remark,
            "The export does not say the version of its schema; it was read as far as its tables are known.",
        )),
        Some(schema) => {
            let mut parts = schema.split('.').map(|part| part.trim().parse::<u64>().unwrap_or(0));
            if (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) > KNOWN_SCHEMA {
                let (major, minor) = KNOWN_SCHEMA;
                notes.push(Note::new(
                    NoteKind::NewerVersion,
                    format!("The export has schema {schema}, newer than {major}.{minor}, which is known here; it was read as far as it goes."),
                ));
            }
        }
    }
    Ok(source)
}

/// Devices by the number that CUDA gives them. `TARGET_INFO_GPU` counts the machine's; where `CUDA_VISIBLE_DEVICES` hides some, the two
/// differ, and `TARGET_INFO_CUDA_DEVICE` translates.
fn devices(connection: &Connection, tables: &Tables) -> rusqlite::Result<Vec<Device>> {
    let Some(table) = tables.find("TARGET_INFO_GPU").filter(|table| table.has("id")) else {
        return Ok(Vec::new());
    };
    let columns: Vec<String> = [
        "id",
        "name",
        "smCount",
        "memoryBandwidth",
        "totalMemory",
        "computeMajor",
        "computeMinor",
        "cuDevice",
    ]
    .iter()
    .map(|column| table.column(column))
    .collect();
    let mut statement =
        connection.prepare(&format!("SELECT {} FROM {}", columns.join(", "), table.quoted()))?;
    let translated = translation(connection, tables)?;
    let mut devices: Vec<Device> = Vec::new();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let gpu = integer(row, 0)?.unwrap_or(0);
        let cuda = translated.iter().find(|(id, _)| *id == gpu).map(|(_, cuda)| *cuda);
        let id = cuda.or(integer(row, 7)?).unwrap_or(gpu);
        let Ok(id) = u32::try_from(id) else {
            continue;
        };
        let positive = |at: usize| -> rusqlite::Result<Option<u64>> {
            Ok(integer(row, at)?.and_then(|value| u64::try_from(value).ok()).filter(|value| *value > 0))
        };
        let capability = match (integer(row, 5)?, integer(row, 6)?) {
            (Some(major), Some(minor)) if major > 0 => Some(format!("{major}.{minor}")),
            _ => None,
        };
        if devices.iter().all(|device| device.id != id) {
            devices.push(Device {
                id,
                name: text(row, 1)?,
                multiprocessors: positive(2)?.and_then(|count| u32::try_from(count).ok()),
                memory_bandwidth: positive(3)?,
                memory_bytes: positive(4)?,
                compute_capability: capability,
                time: None,
            });
        }
    }
    Ok(devices)
}

fn translation(connection: &Connection, tables: &Tables) -> rusqlite::Result<Vec<(i64, i64)>> {
    let Some(table) =
        tables.find("TARGET_INFO_CUDA_DEVICE").filter(|table| table.has("gpuId") && table.has("cudaId"))
    else {
        return Ok(Vec::new());
    };
    let mut statement = connection.prepare(&format!(
        "SELECT DISTINCT \"gpuId\", \"cudaId\" FROM {} WHERE \"gpuId\" IS NOT NULL LIMIT 1024",
        table.quoted()
    ))?;
    let mut pairs = Vec::new();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if let (Some(gpu), Some(cuda)) = (integer(row, 0)?, integer(row, 1)?) {
            pairs.push((gpu, cuda));
        }
    }
    Ok(pairs)
}

/// Warnings and errors of the profiler, each text once.
fn messages(connection: &Connection, tables: &Tables, notes: &mut Vec<Note>) -> rusqlite::Result<()> {
    let Some(table) = tables.find("DIAGNOSTIC_EVENT").filter(|table| table.has("text")) else {
        return Ok(());
    };
    let severity = table.column("severity");
    let mut statement =
        connection.prepare(&format!("SELECT \"text\", {severity} FROM {}", table.quoted()))?;
    let mut rows = statement.query([])?;
    let mut told = BTreeSet::new();
    while let Some(row) = rows.next()? {
        let worth = integer(row, 1)?.is_none_or(|severity| WORTH_REPEATING.contains(&severity));
        if let Some(text) = text(row, 0)?.filter(|_| worth)
            && told.len() < MOST_MESSAGES
            && told.insert(text.clone())
        {
            notes.push(Note::new(NoteKind::Remark, format!("The profiler says: {}", text.trim())));
        }
    }
    Ok(())
}

/// A value as text, whatever its type in this file.
pub fn text(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(at)? {
        ValueRef::Text(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Integer(value) => Some(value.to_string()),
        ValueRef::Real(value) => Some(value.to_string()),
        ValueRef::Null | ValueRef::Blob(_) => None,
    })
}

/// A value as an integer, whatever its type in this file.
pub fn integer(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<i64>> {
    Ok(match row.get_ref(at)? {
        ValueRef::Integer(value) => Some(value),
        ValueRef::Real(value) => Some(value as i64),
        ValueRef::Text(bytes) => std::str::from_utf8(bytes).ok().and_then(|text| text.trim().parse().ok()),
        ValueRef::Null | ValueRef::Blob(_) => None,
    })
}
