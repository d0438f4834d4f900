//! Charts as SVG text.
//!
//! Colours are those of a light page. The page's style sheet has a rule for each of them, by the value of the attribute, so that dark mode
//! and print change a chart without another drawing of it.

mod intensity;
mod roofline;
mod stalls;
mod timeline;

use plotters::backend::SVGBackend;
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, IntoDrawingArea};
use plotters::style::RGBColor;

pub(super) use intensity::{Placed, intensity};
pub(super) use roofline::{Point, roofline};
pub(super) use stalls::stalls;
pub(super) use timeline::{Colors, timeline};

use super::ReportError;

/// Text and axes.
pub(super) const INK: RGBColor = RGBColor(0x4A, 0x54, 0x68);
/// Lines behind.
pub(super) const GRID: RGBColor = RGBColor(0xD9, 0xDF, 0xE8);
/// What is not told apart.
pub(super) const OTHER: RGBColor = RGBColor(0x98, 0xA2, 0xB3);
/// Waiting.
pub(super) const WAIT: RGBColor = RGBColor(0xD1, 0x49, 0x5B);
/// Copies.
pub(super) const COPY: RGBColor = RGBColor(0x1F, 0x9A, 0xA8);
/// Kernels, in this order.
pub(super) const SERIES: [RGBColor; 6] = [
    RGBColor(0x2F, 0x6F, 0xDE),
    RGBColor(0xE0, 0x8A, 0x1E),
    RGBColor(0x2F, 0x9E, 0x63),
    RGBColor(0x84, 0x57, 0xC9),
    RGBColor(0xC2, 0x4D, 0x9A),
    RGBColor(0x8A, 0x6D, 0x3B),
];

/// The width of the charts that take a page's.
const WIDTH: u32 = 1_080;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws on an area of a size, and gives the text.
fn draw(
    size: (u32, u32),
    with: impl FnOnce(&Area<'_>) -> Result<(), Box<dyn std::error::Error>>,
) -> Result<String, ReportError> {
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    with(&area).map_err(|error| ReportError::Chart(error.to_string()))?;
    area.present().map_err(|error| ReportError::Chart(error.to_string()))?;
    drop(area);
    Ok(svg)
}
