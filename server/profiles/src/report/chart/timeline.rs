//! The timeline of a program: a row for each stream and thread, darker where more of the time was filled.

use std::collections::HashMap;

use plotters::chart::ChartBuilder;
use plotters::element::{Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, IntoFont, RGBColor, TextStyle};

use super::{COPY, GRID, INK, OTHER, ReportError, SERIES, WAIT, WIDTH, draw};
use crate::system::{Column, Drawing, DrawnRow, Row};

const LABELS: u32 = 170;
const ROW: u32 = 24;
const AXIS: u32 = 40;

/// Kernels by name with the colours they have.
#[derive(Debug, Default)]
pub(in crate::report) struct Colors<'a>(HashMap<&'a str, usize>);

impl<'a> Colors<'a> {
    /// The first ones get a colour of their own.
    pub(in crate::report) fn of(names: impl Iterator<Item = &'a str>) -> Self {
        Self(names.take(SERIES.len()).zip(0..).collect())
    }

    /// The place of a kernel's colour in the series.
    pub(in crate::report) fn get(&self, name: &str) -> Option<usize> {
        self.0.get(name).copied()
    }

    fn color(&self, row: Row, column: &Column) -> RGBColor {
        match row {
            Row::Kernels { .. } => self.get(&column.name).map_or(OTHER, |at| SERIES[at]),
            Row::Copies { .. } => COPY,
            Row::Calls { .. } => OTHER,
            Row::Waits { .. } => WAIT,
        }
    }
}

fn label(row: Row) -> String {
    match row {
        Row::Kernels { device, stream } => format!("kernels, GPU {device}, stream {stream}"),
        Row::Copies { device, stream } => format!("copies, GPU {device}, stream {stream}"),
        Row::Calls { thread } => format!("CUDA calls, thread {}", short(thread)),
        Row::Waits { thread } => format!("waits, thread {}", short(thread)),
    }
}

/// The last digits of a thread: profilers put the process in front.
fn short(thread: u64) -> u64 {
    thread % 1_000_000
}

/// Columns beside each other that look the same, as one: from, to, colour, and how dark in quarters.
fn runs(row: &DrawnRow, width: u64, colors: &Colors<'_>) -> Vec<(u32, u32, RGBColor, u8)> {
    let mut runs: Vec<(u32, u32, RGBColor, u8)> = Vec::new();
    for column in &row.columns {
        let color = colors.color(row.row, column);
        let dark = (column.ns.saturating_mul(4).div_ceil(width.max(1))).clamp(1, 4) as u8;
        match runs.last_mut() {
            Some(last) if last.1 == column.at && last.2 == color && last.3 == dark => last.1 += 1,
            _ => runs.push((column.at, column.at + 1, color, dark)),
        }
    }
    runs
}

/// The drawing. `None` where nothing is in it.
///
/// # Errors
/// It can't be drawn.
pub(in crate::report) fn timeline(
    drawing: &Drawing,
    colors: &Colors<'_>,
) -> Result<Option<String>, ReportError> {
    let end = drawing.rows.iter().flat_map(|row| &row.columns).map(|column| column.at + 1).max();
    let Some(end) = end else { return Ok(None) };
    let (unit, ns) = match u64::from(end).saturating_mul(drawing.column_ns) {
        whole if whole < 10_000 => ("ns", 1.0),
        whole if whole < 10_000_000 => ("µs", 1e3),
        whole if whole < 10_000_000_000 => ("ms", 1e6),
        _ => ("s", 1e9),
    };
    let scale = drawing.column_ns as f64 / ns;
    let rows = drawing.rows.len() as u32;
    let svg = draw((WIDTH, rows * ROW + AXIS + 10), |area| {
        let text = TextStyle::from(("sans-serif", 12).into_font()).color(&INK);
        let mut chart = ChartBuilder::on(area)
            .margin_top(6)
            .margin_right(20)
            .margin_bottom(4)
            .x_label_area_size(AXIS)
            .y_label_area_size(LABELS)
            .build_cartesian_2d(0f64..f64::from(end) * scale, f64::from(rows)..0f64)?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .x_desc(format!("{unit} from the first event on"))
            .axis_style(GRID)
            .bold_line_style(GRID.mix(0.7))
            .light_line_style(GRID.mix(0.0))
            .label_style(text.clone())
            .x_labels(10)
            .draw()?;
        for (row, top) in drawing.rows.iter().zip(0u32..) {
            let (low, high) = (f64::from(top) + 0.14, f64::from(top) + 0.86);
            let shapes = runs(row, drawing.column_ns, colors).into_iter().map(|(from, to, color, dark)| {
                let corners = [(f64::from(from) * scale, low), (f64::from(to) * scale, high)];
                Rectangle::new(corners, color.mix(0.1 + 0.225 * f64::from(dark)).filled())
            });
            chart.draw_series(shapes)?;
            let at = (LABELS as i32 - 10, 6 + (top * ROW + ROW / 2) as i32);
            area.draw(&Text::new(label(row.row), at, text.pos(Pos::new(HPos::Right, VPos::Center))))?;
        }
        Ok(())
    })?;
    Ok(Some(svg))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_look_the_same_are_one_shape() {
        let column = |at, ns, name: &str| Column { at, ns, name: name.to_owned() };
        let columns = vec![column(0, 100, "a"), column(1, 98, "a"), column(2, 10, "a"), column(4, 100, "b")];
        let row = DrawnRow { row: Row::Kernels { device: 0, stream: 7 }, columns };
        let colors = Colors::of(["a"].into_iter());
        let found: Vec<_> = runs(&row, 100, &colors)
            .into_iter()
            .map(|(from, to, color, dark)| (from, to, color == OTHER, dark))
            .collect();
        assert_eq!(found, [(0, 2, false, 4), (2, 3, false, 1), (4, 5, true, 4)]);
        assert!(timeline(&Drawing::default(), &colors).unwrap().is_none());
    }
}
