//! The raw page: one row a launch, one column a metric, the units in the row below the header.

use super::numbers;
use super::report::{Collected, Draft};
use crate::kernel::Metric;
use crate::note::NoteKind;

/// Columns that tell which launch a row is about; every page but the source page has them.
#[derive(Clone, Debug, Default)]
pub(super) struct Columns {
    id: Option<usize>,
    kernel: Option<usize>,
    process: Option<usize>,
    stream: Option<usize>,
    block: Option<usize>,
    grid: Option<usize>,
    device: Option<usize>,
    capability: Option<usize>,
}

impl Columns {
    pub fn new(header: &[String]) -> Self {
        let at = |name: &str| header.iter().position(|field| field.trim() == name);
        Self {
            id: at("ID"),
            kernel: at("Kernel Name"),
            process: at("Process ID"),
            stream: at("Stream"),
            block: at("Block Size"),
            grid: at("Grid Size"),
            device: at("Device"),
            capability: at("CC"),
        }
    }

    /// The launch of a row. `None` for a row that names no kernel.
    pub fn draft<'c>(&self, fields: &[String], collected: &'c mut Collected) -> Option<&'c mut Draft> {
        let text = |column: Option<usize>| {
            column.and_then(|at| fields.get(at)).map(|field| field.trim()).unwrap_or_default()
        };
        let kernel = text(self.kernel);
        if kernel.is_empty() {
            return None;
        }
        let (grid, block) = (numbers::dimensions(text(self.grid)), numbers::dimensions(text(self.block)));
        for (name, cell, read) in
            [("Grid Size", text(self.grid), grid), ("Block Size", text(self.block), block)]
        {
            if !cell.is_empty() && cell.starts_with('(') && read.is_none() {
                collected.note(
                    NoteKind::Unreadable,
                    format!("`{cell}` in the column {name} is no size; it counts as not known"),
                );
            }
        }
        // A summary over launches numbers none: there a kernel with another grid is another row.
        let id = match text(self.id) {
            "" => format!("{} {}", text(self.grid), text(self.block)),
            id => id.to_owned(),
        };
        let draft = collected.draft(&id, text(self.process), kernel);
        let shape = &mut draft.launch.shape;
        shape.grid = shape.grid.or(grid);
        shape.block = shape.block.or(block);
        shape.device = shape.device.or(text(self.device).parse().ok());
        shape.stream = shape.stream.or(text(self.stream).parse().ok());
        shape.process = shape.process.or(text(self.process).parse().ok());
        if shape.compute_capability.is_none() && !text(self.capability).is_empty() {
            shape.compute_capability = Some(text(self.capability).to_owned());
        }
        Some(draft)
    }
}

/// What is said of a page of which a row is not whole.
fn damaged(row: usize, columns: usize, width: usize) -> String {
    format!(
        "The file is damaged: row {row} below the header of the raw page has {columns} columns in place of {width}. It was left out, and so \
         were others like it."
    )
}

/// A raw page whose header was read.
#[derive(Debug)]
pub(super) struct RawPage {
    columns: Columns,
    metrics: Vec<(usize, Metric, usize)>,
    device_name: Option<usize>,
    passes: Option<usize>,
    width: usize,
    units: Option<Vec<String>>,
    /// How many rows came, and whether one of them was no whole row.
    rows: usize,
    broken: bool,
}

impl RawPage {
    pub fn new(header: &[String]) -> Self {
        let at = |name: &str| header.iter().position(|field| field == name);
        let metrics = header.iter().enumerate().filter_map(|(column, name)| {
            Metric::named(name.trim()).map(|(metric, rank)| (column, metric, rank))
        });
        Self {
            columns: Columns::new(header),
            metrics: metrics.collect(),
            device_name: at("device__attribute_display_name"),
            passes: at("profiler__replayer_passes"),
            width: header.len(),
            units: None,
            rows: 0,
            broken: false,
        }
    }

    pub fn row(&mut self, fields: &[String], collected: &mut Collected) {
        collected.page_seen = true;
        self.rows += 1;
        if fields.len() != self.width {
            // The program's own line may begin with a quote; a row that was cut off is worth a word.
            if fields.len() > 8 && !self.broken {
                self.broken = true;
                collected.note(NoteKind::Unreadable, damaged(self.rows, fields.len(), self.width));
            }
            return;
        }
        let blank = |column: Option<usize>| column.is_some_and(|at| fields[at].trim().is_empty());
        if blank(self.columns.kernel) && (blank(self.columns.id) || self.columns.id.is_none()) {
            self.units = Some(fields.to_vec());
            return;
        }
        let comma = self.metrics.iter().any(|(column, _, _)| numbers::shows_decimal_comma(&fields[*column]));
        collected.decimal_comma |= comma;
        let Some(draft) = self.columns.draft(fields, collected) else { return };
        draft.page("raw");
        for (column, metric, rank) in &self.metrics {
            let unit = self.units.as_ref().map(|units| units[*column].as_str());
            draft.print(*metric, *rank, &fields[*column], unit);
        }
        if let Some(name) = self.device_name.map(|at| fields[at].trim()).filter(|name| !name.is_empty()) {
            draft.launch.shape.device_name = Some(name.to_owned());
        }
        if let Some(passes) = self.passes.and_then(|at| numbers::count(&fields[at], false)) {
            draft.launch.origin.passes = u32::try_from(passes).ok();
        }
    }
}
