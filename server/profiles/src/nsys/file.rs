//! Opens the file, and says what is wrong with one that is no database or only part of one.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use crate::read_error::ReadError;

/// What was expected.
const EXPECTED: &str = "an SQLite export of Nsight Systems";

/// How to get one.
const EXPORT: &str = "Make one with `nsys export --type sqlite REPORT.nsys-rep`";

/// The first bytes of every database. Source: SQLite, "Database File Format", 1.3.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";

/// Pages that SQLite keeps in memory, in KiB, as its pragma wants it: negative.
const CACHE: &str = "-8192";

/// Opens it for reading only. It is taken as unchanging, so that no lock and no journal is looked for beside it.
pub fn open(path: &Path) -> Result<Connection, ReadError> {
    check(path)?;
    let name = path.display().to_string();
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(uri(path), flags).map_err(|error| damaged(&name, &error))?;
    connection.pragma_update(None, "cache_size", CACHE).map_err(|error| damaged(&name, &error))?;
    // A name in the schema must not make SQLite run anything.
    connection.pragma_update(None, "trusted_schema", "OFF").map_err(|error| damaged(&name, &error))?;
    Ok(connection)
}

/// Looks at the header, for what SQLite says about a cut file depends on which page it needs first.
fn check(path: &Path) -> Result<(), ReadError> {
    let name = path.display().to_string();
    let io = |source| ReadError::Io { file: name.clone(), source };
    let mut file = File::open(path).map_err(io)?;
    let length = file.metadata().map_err(io)?.len();
    let mut header = Vec::new();
    file.by_ref().take(100).read_to_end(&mut header).map_err(io)?;
    if header.is_empty() {
        return Err(ReadError::Empty { file: name });
    }
    if !header.starts_with(MAGIC) {
        let found = if path.extension().is_some_and(|extension| extension == "nsys-rep") {
            "it is a report that was not exported"
        } else {
            "it is no SQLite database"
        };
        return Err(ReadError::NotThis {
            file: name,
            expected: EXPECTED,
            found: found.into(),
            advice: EXPORT,
        });
    }
    let whole = whole_length(&header);
    if header.len() < 100 || whole.is_some_and(|whole| length < whole) {
        let what = match whole {
            Some(whole) => format!("{length} of its {whole} bytes are there"),
            None => format!("only {length} bytes are there"),
        };
        return Err(ReadError::Damaged { file: name, what, advice: EXPORT });
    }
    Ok(())
}

/// Page size times pages, where the header's number of pages counts. Source: SQLite, "Database File Format", 1.3.
fn whole_length(header: &[u8]) -> Option<u64> {
    let number = |at: usize| Some(u32::from_be_bytes(header.get(at..at + 4)?.try_into().ok()?));
    let size = match u16::from_be_bytes(header.get(16..18)?.try_into().ok()?) {
        1 => 65_536,
        size => u64::from(size),
    };
    let (pages, changes, valid_for) = (number(28)?, number(24)?, number(92)?);
    (pages > 0 && changes == valid_for).then_some(size * u64::from(pages))
}

/// The path as SQLite's URI.
fn uri(path: &Path) -> String {
    let mut uri = String::from("file:");
    let bytes = path.as_os_str().as_encoded_bytes();
    if cfg!(windows) && bytes.get(1) == Some(&b':') {
        uri.push_str("///");
    }
    for byte in bytes {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' | b':' => {
                uri.push(char::from(*byte));
            }
            b'\\' if cfg!(windows) => uri.push('/'),
            _ => {
                // Writing to a string does not fail.
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri + "?immutable=1"
}

/// What SQLite says, as an error of ours.
pub fn damaged(file: &str, error: &rusqlite::Error) -> ReadError {
    ReadError::Damaged { file: file.to_owned(), what: error.to_string(), advice: EXPORT }
}

/// A database of something else.
pub fn no_export(file: &str, by_nvprof: bool) -> ReadError {
    ReadError::NotThis {
        file: file.to_owned(),
        expected: EXPECTED,
        found: match by_nvprof {
            true => {
                "nvprof or the Visual Profiler wrote it, which NVIDIA has given up, and it is not read here"
                    .into()
            }
            false => "it is a database without the tables of one".into(),
        },
        advice: EXPORT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_signs_that_mean_something_in_a_uri_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a b?c#d%41é.sqlite");
        Connection::open(&path)
            .unwrap()
            .execute_batch("CREATE TABLE StringIds (id INTEGER, value TEXT)")
            .unwrap();
        let connection = open(&path).unwrap();
        let tables: i64 =
            connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0)).unwrap();
        assert_eq!(tables, 1);
    }
}
