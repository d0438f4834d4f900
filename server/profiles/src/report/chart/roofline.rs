//! Where launches stand below the roof: computing and memory, each in percent of its peak.
//!
//! Profilers give throughputs of the peak, and from them the classes are made.

use plotters::chart::ChartBuilder;
use plotters::element::{Circle, PathElement, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, IntoFont, RGBColor, ShapeStyle, TextStyle};

use super::{GRID, INK, OTHER, ReportError, SERIES, draw};
use crate::kernel::{BUSY, Bound, SATURATED};

/// One launch.
#[derive(Clone, Debug)]
pub(in crate::report) struct Point {
    /// Its number in the table.
    pub label: String,
    /// What bounds it.
    pub bound: Bound,
    /// Computing, in percent of the peak.
    pub compute: f64,
    /// Memory, in percent of the peak of its busiest part.
    pub memory: f64,
}

/// The colour of a class, which the page's table has too.
pub(super) fn color(bound: Bound) -> RGBColor {
    match bound {
        Bound::Memory => SERIES[0],
        Bound::Compute => SERIES[1],
        Bound::Balanced => SERIES[2],
        Bound::Latency | Bound::Launch => SERIES[3],
        Bound::Unknown => OTHER,
    }
}

/// The plot.
///
/// # Errors
/// It can't be drawn.
pub(in crate::report) fn roofline(points: &[Point]) -> Result<String, ReportError> {
    draw((720, 460), |area| {
        let text = |size: i32| TextStyle::from(("sans-serif", size).into_font()).color(&INK);
        let mut chart = ChartBuilder::on(area)
            .margin(12)
            .margin_right(24)
            .x_label_area_size(44)
            .y_label_area_size(54)
            .build_cartesian_2d(0f64..100.0, 0f64..100.0)?;
        chart
            .configure_mesh()
            .x_desc("computing, % of the peak")
            .y_desc("memory, % of the peak of its busiest part")
            .axis_style(GRID)
            .bold_line_style(GRID.mix(0.6))
            .light_line_style(GRID.mix(0.0))
            .label_style(text(12))
            .axis_desc_style(text(13))
            .x_labels(11)
            .y_labels(11)
            .x_label_formatter(&|percent| format!("{percent:.0}"))
            .y_label_formatter(&|percent| format!("{percent:.0}"))
            .draw()?;
        // Where neither is busy, time goes by waiting.
        let waiting = [(0.0, 0.0), (BUSY, BUSY)];
        chart.draw_series([Rectangle::new(waiting, SERIES[3].mix(0.07).filled())])?;
        let roof = [(0.0, SATURATED), (SATURATED, SATURATED), (SATURATED, 0.0)];
        chart.draw_series([PathElement::new(roof.to_vec(), INK.mix(0.55))])?;
        let words = [
            ("mostly waits", (1.5, 58.5), HPos::Left, VPos::Top),
            ("memory is saturated", (1.5, 98.0), HPos::Left, VPos::Top),
            ("computing is saturated", (98.5, 40.0), HPos::Right, VPos::Center),
        ];
        for (word, at, across, down) in words {
            chart.draw_series([Text::new(word, at, text(12).pos(Pos::new(across, down)))])?;
        }
        for point in points {
            let at = (point.compute.clamp(0.0, 100.0), point.memory.clamp(0.0, 100.0));
            let style = ShapeStyle::from(color(point.bound).mix(0.85)).filled();
            chart.draw_series([Circle::new(at, 5, style)])?;
        }
        let inside = |point: &Point| (point.compute.clamp(0.0, 100.0), point.memory.clamp(0.0, 100.0));
        let places: Vec<(&str, (f64, f64))> =
            points.iter().map(|point| (point.label.as_str(), inside(point))).collect();
        for (label, at) in shared(&places, NEAR) {
            // Beside the dot, on the side where there is room.
            let (side, x) = if at.0 > 90.0 { (HPos::Right, at.0 - 1.3) } else { (HPos::Left, at.0 + 1.3) };
            let style = text(11).pos(Pos::new(side, VPos::Center));
            chart.draw_series([Text::new(label, (x, at.1), style)])?;
        }
        Ok(())
    })
}

/// How near two labels may be, in percent.
const NEAR: (f64, f64) = (4.0, 3.0);

/// Points whose labels would lie on each other share one, beside the rightmost of them.
pub(super) fn shared(points: &[(&str, (f64, f64))], near: (f64, f64)) -> Vec<(String, (f64, f64))> {
    const MOST: usize = 8;
    let mut groups: Vec<((f64, f64), Vec<&str>)> = Vec::new();
    for (label, place) in points {
        let is_near = |at: &(f64, f64)| (at.0 - place.0).abs() < near.0 && (at.1 - place.1).abs() < near.1;
        match groups.iter_mut().find(|(at, _)| is_near(at)) {
            Some((at, labels)) => {
                at.0 = at.0.max(place.0);
                labels.push(label);
            }
            None => groups.push((*place, vec![label])),
        }
    }
    let text = |labels: Vec<&str>| match labels.len() {
        many if many > MOST => format!("{}, …", labels[..MOST].join(", ")),
        _ => labels.join(", "),
    };
    groups.into_iter().map(|(at, labels)| (text(labels), at)).collect()
}
