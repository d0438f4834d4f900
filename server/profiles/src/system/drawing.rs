//! A timeline small enough to draw: some hundred columns and a few rows, whatever the length of the profile.
//!
//! Where it will end is not known while it is read, so columns are made twice as wide, and put together in pairs, each time it outgrows them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::names::{NameId, Names};

/// Columns of the drawing. An SVG of a page's width shows no more.
pub const COLUMNS: usize = 1_024;

/// Rows of the drawing: streams first come, first served.
pub const ROWS: usize = 48;

/// A timeline in columns of equal width.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Drawing {
    /// The width of a column, in nanoseconds. The first begins with the first event of the profile.
    pub column_ns: u64,
    /// The rows.
    pub rows: Vec<DrawnRow>,
    /// Rows there was no place for.
    pub rows_left_out: u32,
}

/// One row of the drawing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DrawnRow {
    /// What it shows.
    pub row: Row,
    /// Its columns from the left, those left out in which nothing happened.
    pub columns: Vec<Column>,
}

/// What a row shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Row {
    /// Kernels of a stream.
    Kernels {
        /// The device.
        device: u32,
        /// The stream.
        stream: u32,
    },
    /// Copies and memory that is set, of a stream.
    Copies {
        /// The device.
        device: u32,
        /// The stream.
        stream: u32,
    },
    /// Calls of the CUDA API, of a thread.
    Calls {
        /// The thread, as the profiler names it.
        thread: u64,
    },
    /// Calls that wait for a device, of a thread.
    Waits {
        /// The thread, as the profiler names it.
        thread: u64,
    },
}

/// One column of a row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Column {
    /// Which column of the drawing: the first is 0.
    pub at: u32,
    /// How much of the column was filled, in nanoseconds; never more than its width.
    pub ns: u64,
    /// What filled most of it.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub name: String,
}

/// A drawing in the making.
#[derive(Debug)]
pub struct Pencil {
    origin: Option<i64>,
    width: u64,
    rows: Vec<(Row, Vec<Cell>)>,
    left_out: std::collections::BTreeSet<Row>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    ns: u64,
    longest: u64,
    name: NameId,
}

impl Default for Pencil {
    fn default() -> Self {
        Self { origin: None, width: 1, rows: Vec::new(), left_out: Default::default() }
    }
}

impl Pencil {
    /// Draws something from `start` to `end`. The first one drawn begins the drawing.
    pub fn draw(&mut self, row: Row, start: i64, end: i64, name: NameId) {
        let origin = *self.origin.get_or_insert(start);
        let from = start.saturating_sub(origin).max(0) as u64;
        let to = end.saturating_sub(origin).max(0) as u64;
        while to / self.width >= COLUMNS as u64 {
            self.widen();
        }
        let width = self.width;
        let Some(cells) = self.row(row) else {
            return;
        };
        let last = (to / width) as usize;
        if cells.len() <= last {
            cells.resize(last + 1, Cell::default());
        }
        for (column, cell) in cells.iter_mut().enumerate().take(last + 1).skip((from / width) as usize) {
            let low = column as u64 * width;
            let ns = to.min(low.saturating_add(width)) - from.max(low);
            cell.ns = cell.ns.saturating_add(ns).min(width);
            if ns > cell.longest {
                (cell.longest, cell.name) = (ns, name);
            }
        }
    }

    fn row(&mut self, row: Row) -> Option<&mut Vec<Cell>> {
        if let Some(at) = self.rows.iter().position(|(known, _)| *known == row) {
            return Some(&mut self.rows[at].1);
        }
        if self.rows.len() == ROWS {
            if self.left_out.len() < ROWS * ROWS {
                self.left_out.insert(row);
            }
            return None;
        }
        self.rows.push((row, Vec::new()));
        self.rows.last_mut().map(|(_, cells)| cells)
    }

    fn widen(&mut self) {
        self.width = self.width.saturating_mul(2);
        for (_, cells) in &mut self.rows {
            let pairs = cells.chunks(2).map(|pair| {
                let (a, b) = (pair[0], pair.get(1).copied().unwrap_or_default());
                let ns = a.ns + b.ns;
                if a.name == b.name {
                    return Cell { ns, longest: a.longest + b.longest, name: a.name };
                }
                let longer = if b.longest > a.longest { b } else { a };
                Cell { ns, ..longer }
            });
            *cells = pairs.collect();
        }
    }

    /// The drawing.
    pub fn finish(mut self, names: &Names) -> Drawing {
        self.rows.sort_by_key(|(row, _)| *row);
        let column = |(at, cell): (usize, &Cell)| {
            (cell.ns > 0).then(|| Column {
                at: at as u32,
                ns: cell.ns,
                name: names.get(cell.name).to_owned(),
            })
        };
        Drawing {
            column_ns: self.width,
            rows: self
                .rows
                .iter()
                .map(|(row, cells)| DrawnRow {
                    row: *row,
                    columns: cells.iter().enumerate().filter_map(column).collect(),
                })
                .collect(),
            rows_left_out: self.left_out.len() as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ROW: Row = Row::Kernels { device: 0, stream: 7 };

    #[test]
    fn a_drawing_keeps_the_time_when_it_widens() {
        let mut names = Names::default();
        let (short, long) = (names.id("short"), names.id("long"));
        let mut pencil = Pencil::default();
        pencil.draw(ROW, 1_000, 1_010, short);
        pencil.draw(ROW, 1_020, 1_100, long);
        pencil.draw(ROW, 9_000_000, 9_000_500, short);
        let drawing = pencil.finish(&names);
        let columns = &drawing.rows[0].columns;
        assert!(columns.len() <= COLUMNS);
        assert_eq!(columns.iter().map(|column| column.ns).sum::<u64>(), 590);
        assert_eq!((columns[0].ns, columns[0].name.as_str()), (90, "long"));
    }

    proptest! {
        #[test]
        fn a_drawing_stays_small_and_no_column_overflows(
            events in prop::collection::vec((0u32..100, any::<i64>(), any::<i64>()), 0..200)
        ) {
            let mut names = Names::default();
            let name = names.id("k");
            let mut pencil = Pencil::default();
            for (stream, start, end) in events {
                pencil.draw(Row::Kernels { device: 0, stream }, start, end.max(start), name);
            }
            let drawing = pencil.finish(&names);
            prop_assert!(drawing.rows.len() <= ROWS);
            for row in drawing.rows {
                prop_assert!(row.columns.len() <= COLUMNS);
                prop_assert!(row.columns.iter().all(|column| column.ns <= drawing.column_ns));
            }
        }
    }
}
