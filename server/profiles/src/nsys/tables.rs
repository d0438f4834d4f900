//! Which tables and columns the export has.
//!
//! A table is looked for by its name with or without a suffix `_V2`, `_V3`, …; the highest number is taken, for an exporter that keeps an old
//! one beside it does so for old readers.

use std::collections::{HashMap, HashSet};

use rusqlite::Connection;

/// The tables of a file.
#[derive(Debug)]
pub struct Tables {
    /// By the name without the suffix: the suffix's number, and the table.
    by_name: HashMap<String, (u64, Table)>,
}

/// A table.
#[derive(Debug)]
pub struct Table {
    /// Its full name.
    pub name: String,
    /// The names of its columns in lower case.
    columns: HashSet<String>,
}

impl Table {
    /// Whether it has the column.
    pub fn has(&self, column: &str) -> bool {
        self.columns.contains(&column.to_ascii_lowercase())
    }

    /// Its name as SQL wants it.
    pub fn quoted(&self) -> String {
        quoted(&self.name)
    }

    /// The column, or `NULL` where it has none.
    pub fn column(&self, column: &str) -> String {
        if self.has(column) { quoted(column) } else { "NULL".into() }
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl Tables {
    /// The tables of a file.
    pub fn of(connection: &Connection) -> rusqlite::Result<Self> {
        let mut by_name: HashMap<String, (u64, Table)> = HashMap::new();
        let mut statement = connection.prepare("SELECT name FROM sqlite_master WHERE type = 'table'")?;
        let names: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        for name in names {
            let (base, version) = split(&name);
            if by_name.get(&base).is_some_and(|(known, _)| *known >= version) {
                continue;
            }
            let mut statement = connection.prepare(&format!("PRAGMA table_info({})", quoted(&name)))?;
            let columns = statement
                .query_map([], |row| row.get::<_, String>(1))?
                .map(|column| Ok(column?.to_ascii_lowercase()))
                .collect::<rusqlite::Result<_>>()?;
            by_name.insert(base, (version, Table { name, columns }));
        }
        Ok(Self { by_name })
    }

    /// The table of this name.
    pub fn find(&self, name: &str) -> Option<&Table> {
        self.by_name.get(&name.to_ascii_lowercase()).map(|(_, table)| table)
    }

    /// Whether nvprof or the Visual Profiler wrote it: they keep strings in a table of their own.
    pub fn is_of_nvprof(&self) -> bool {
        self.find("StringTable").is_some()
            && self.by_name.keys().any(|name| name.starts_with("cupti_activity_kind"))
    }

    /// Whether this is an export of nsys at all.
    pub fn is_export(&self) -> bool {
        self.find("StringIds").is_some() && self.by_name.len() > 1
    }
}

/// The name in lower case without its suffix, and the suffix's number: 1 where there is none.
fn split(name: &str) -> (String, u64) {
    let lower = name.to_ascii_lowercase();
    if let Some((base, digits)) = lower.rsplit_once("_v")
        && !base.is_empty()
        && !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
    {
        // A number too long for 64 bits is a higher one than all others.
        return (base.to_owned(), digits.parse().unwrap_or(u64::MAX));
    }
    (lower, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_suffix_counts_as_a_number() {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch(
                "CREATE TABLE NVTX_EVENTS (a); CREATE TABLE NVTX_EVENTS_V9 (b); CREATE TABLE NVTX_EVENTS_V10 (Start, \"e\"\"f\"); \
                 CREATE TABLE StringIds (id); CREATE TABLE OTHER_V (x)",
            )
            .unwrap();
        let tables = Tables::of(&connection).unwrap();
        let table = tables.find("NVTX_EVENTS").unwrap();
        assert_eq!(table.name, "NVTX_EVENTS_V10");
        assert!(table.has("start") && table.has("e\"f") && !table.has("b"));
        assert_eq!(table.column("e\"f"), "\"e\"\"f\"");
        assert_eq!(table.column("b"), "NULL");
        assert!(tables.find("other_v").is_some());
        assert!(tables.is_export());
    }
}
