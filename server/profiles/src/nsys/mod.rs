//! Reads what `nsys export --type sqlite` writes.
//!
//! The schema changes from version to version: tables get a suffix, columns come and go, and a table is missing where nothing was recorded
//! for it. So nothing is taken for granted but the start and the end of an event, and what is missing is told as not captured.
//!
//! Source: Nsight Systems User Guide, "SQLite Schema Reference", and the comments in the schema of files of version 2025.3.

mod about;
mod file;
mod rows;
mod tables;

use std::path::Path;

use rusqlite::Connection;

use crate::note::{Note, NoteKind};
use crate::read_error::ReadError;
use crate::system::System;
use crate::system::finish::About;
use crate::system::sweep::Sweep;
use rows::{Cursor, Strings};
use tables::Tables;

/// Reads a profile. The file is opened for reading only, and nobody may write to it meanwhile.
///
/// # Errors
/// Where it is no such file, or is damaged, so that its sums would not be whole.
pub fn read(path: &Path) -> Result<System, ReadError> {
    let name = path.display().to_string();
    let connection = file::open(path)?;
    let damaged = |error: rusqlite::Error| file::damaged(&name, &error);
    let tables = Tables::of(&connection).map_err(damaged)?;
    if !tables.is_export() {
        return Err(file::no_export(&name, tables.is_of_nvprof()));
    }
    let mut notes = Vec::new();
    let mut about = about::read(&connection, &tables, &mut notes).map_err(damaged)?;
    let mut sweep = Sweep::default();
    let read = events(&connection, &tables, &mut sweep, &mut notes);
    let unreadable = read.map_err(damaged)?;
    if unreadable > 0 {
        notes.push(Note::new(
            NoteKind::Unreadable,
            format!("{unreadable} rows have no usable start and end and were left out."),
        ));
    }
    captured(&tables, &mut about, &mut notes);
    about.notes = notes;
    let mut system = sweep.finish(about);
    if system.kernels.is_none() {
        system.notes.insert(0, no_kernel(&tables));
    }
    Ok(system)
}

/// Reads all events in the order of their starts. Gives how many rows could not be used.
fn events(
    connection: &Connection,
    tables: &Tables,
    sweep: &mut Sweep,
    notes: &mut Vec<Note>,
) -> rusqlite::Result<u64> {
    let mut strings = Strings::new(connection, tables)?;
    let mut statements = Vec::new();
    for shape in rows::SHAPES {
        if let Some(sql) = rows::query(connection, tables, shape, notes)? {
            statements.push((shape, connection.prepare(&sql)?));
        }
    }
    let mut cursors = Vec::new();
    for (shape, statement) in &mut statements {
        cursors.push(Cursor::new(shape, statement.query([])?));
    }
    let mut unreadable = 0;
    for cursor in &mut cursors {
        unreadable += cursor.next(&mut strings, &mut sweep.names)?;
    }
    loop {
        let first = cursors
            .iter()
            .enumerate()
            .filter_map(|(at, cursor)| Some((cursor.head()?.start(), cursor.rank(), at)))
            .min();
        let Some((.., at)) = first else {
            return Ok(unreadable);
        };
        if let Some(event) = cursors[at].head() {
            sweep.push(event);
        }
        unreadable += cursors[at].next(&mut strings, &mut sweep.names)?;
    }
}

/// What the profiler did not record, each with how to have it recorded.
fn captured(tables: &Tables, about: &mut About, notes: &mut Vec<Note>) {
    about.copies_recorded = tables.find(rows::COPY).is_some() || tables.find(rows::KERNEL).is_some();
    about.calls_recorded = tables.find(rows::CALL).is_some();
    about.ranges_recorded = tables.find(rows::RANGE).is_some();
    let missing = [
        (about.calls_recorded, "calls of the CUDA API were", "`nsys profile -t cuda`"),
        (about.ranges_recorded, "NVTX ranges were", "`nsys profile -t cuda,nvtx` and ranges in the program"),
    ];
    for (recorded, what, how) in missing {
        if !recorded {
            notes.push(Note::new(
                NoteKind::NotCaptured,
                format!("No {what} recorded; {how} would record them."),
            ));
        }
    }
}

fn no_kernel(tables: &Tables) -> Note {
    let table = match tables.find(rows::KERNEL) {
        Some(_) => "the table of kernels is empty",
        None => "there is no table of kernels",
    };
    Note::new(
        NoteKind::NotCaptured,
        format!(
            "No kernel was recorded ({table}), so nothing is known about the time of the device. Check that the program launches a kernel \
             while it is recorded, and that `nsys profile` was run with `-t cuda`."
        ),
    )
}
