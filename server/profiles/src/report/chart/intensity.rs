//! The roofline: operations a second over operations a byte, both by powers of ten, below the roofs of memory and of computing.

use plotters::chart::ChartBuilder;
use plotters::coord::combinators::IntoLogRange;
use plotters::element::{Circle, PathElement, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, IntoFont, ShapeStyle, TextStyle};

use super::roofline::{color, shared};
use super::{GRID, INK, ReportError, draw};
use crate::kernel::{Bound, Intensity};

/// One launch.
#[derive(Clone, Debug)]
pub(in crate::report) struct Placed {
    /// Its number in the table.
    pub label: String,
    /// What bounds it.
    pub bound: Bound,
    /// Where it stands.
    pub at: Intensity,
    /// Operations a second that it reached.
    pub reached: f64,
}

/// Factors by which the axes go beyond what they show.
const MARGIN: f64 = 3.0;

/// How near two labels may be, in powers of ten.
const NEAR: (f64, f64) = (0.18, 0.12);

/// The plot; `None` for no launches.
///
/// # Errors
/// It can't be drawn.
pub(in crate::report) fn intensity(points: &[Placed]) -> Result<Option<String>, ReportError> {
    let xs = || points.iter().flat_map(|point| [point.at.value(), point.at.ridge()]);
    let ys = || points.iter().flat_map(|point| [point.reached, point.at.peak_operations]);
    let (Some(left), Some(right)) = (xs().reduce(f64::min), xs().reduce(f64::max)) else { return Ok(None) };
    let (Some(low), Some(high)) = (ys().reduce(f64::min), ys().reduce(f64::max)) else { return Ok(None) };
    let across = (left / MARGIN)..(right * MARGIN);
    let up = (low / MARGIN)..(high * MARGIN);
    let svg = draw((720, 460), |area| {
        let text = |size: i32| TextStyle::from(("sans-serif", size).into_font()).color(&INK);
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .margin_right(24)
            .x_label_area_size(44)
            .y_label_area_size(96)
            .build_cartesian_2d(across.clone().log_scale(), up.clone().log_scale())?;
        chart
            .configure_mesh()
            .x_desc("operations a byte of device memory")
            .y_desc("operations a second")
            .axis_style(GRID)
            .bold_line_style(GRID.mix(0.6))
            .light_line_style(GRID.mix(0.0))
            .label_style(text(12))
            .axis_desc_style(text(13))
            .x_label_formatter(&|value| plain(*value))
            .y_label_formatter(&|value| rate(*value))
            .draw()?;
        for (name, at) in roofs(points) {
            let corner = (at.ridge(), at.peak_operations);
            let roof =
                [(across.start, across.start * at.peak_bytes), corner, (across.end, at.peak_operations)];
            // Below the plot there is nothing to draw.
            let inside =
                roof.map(|(x, y)| if y < up.start { (up.start / at.peak_bytes, up.start) } else { (x, y) });
            chart.draw_series([PathElement::new(inside.to_vec(), INK.mix(0.7))])?;
            let word = format!("{name}, {}", rate(at.peak_operations));
            let style = text(12).pos(Pos::new(HPos::Right, VPos::Bottom));
            chart.draw_series([Text::new(word, (across.end / 1.05, at.peak_operations * 1.08), style)])?;
        }
        for point in points {
            let style = ShapeStyle::from(color(point.bound).mix(0.85)).filled();
            chart.draw_series([Circle::new((point.at.value(), point.reached), 5, style)])?;
        }
        let logs: Vec<(&str, (f64, f64))> = points
            .iter()
            .map(|point| (point.label.as_str(), (point.at.value().log10(), point.reached.log10())))
            .collect();
        for (label, at) in shared(&logs, NEAR) {
            let at = (10f64.powf(at.0 + 0.1), 10f64.powf(at.1));
            chart.draw_series([Text::new(label, at, text(11).pos(Pos::new(HPos::Left, VPos::Center)))])?;
        }
        Ok(())
    })?;
    Ok(Some(svg))
}

/// The roofs: one for each precision that launches compute in.
fn roofs(points: &[Placed]) -> Vec<(&'static str, Intensity)> {
    let mut roofs: Vec<(&'static str, Intensity)> = Vec::new();
    for point in points {
        let name = point.at.precision.label();
        if !roofs.iter().any(|(known, _)| *known == name) {
            roofs.push((name, point.at));
        }
    }
    roofs
}

/// `0.01`, `1`, `1000`.
fn plain(value: f64) -> String {
    if value >= 1.0 { format!("{value:.0}") } else { format!("{value}") }
}

/// `1 TFLOP/s`.
fn rate(value: f64) -> String {
    let (scaled, prefix) = match value {
        value if value >= 1e12 => (value / 1e12, "T"),
        value if value >= 1e9 => (value / 1e9, "G"),
        value if value >= 1e6 => (value / 1e6, "M"),
        value => (value / 1e3, "k"),
    };
    format!(
        "{} {prefix}FLOP/s",
        if scaled >= 10.0 { format!("{scaled:.0}") } else { format!("{}", (scaled * 10.0).round() / 10.0) }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_short() {
        assert_eq!(
            [6.66e13, 1e9, 2.5e6, 1e3].map(rate),
            ["67 TFLOP/s", "1 GFLOP/s", "2.5 MFLOP/s", "1 kFLOP/s"]
        );
        assert_eq!([0.01, 1.0, 100.0].map(plain), ["0.01", "1", "100"]);
        assert_eq!(intensity(&[]).unwrap(), None);
    }
}
