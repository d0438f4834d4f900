//! What warps wait for, a bar for each reason.

use plotters::element::{Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, IntoFont, TextStyle};

use super::{GRID, INK, OTHER, ReportError, WAIT, draw};
use crate::kernel::Stall;
use crate::units;

const WIDTH: u32 = 640;
const LABELS: i32 = 150;
const VALUES: i32 = 60;
const BAR: i32 = 15;
const STEP: i32 = 22;

/// Bars of the reasons, which are parts from 0 to 1 of a warp's time.
///
/// # Errors
/// It can't be drawn.
pub(in crate::report) fn stalls(shares: &[(Stall, f64)]) -> Result<String, ReportError> {
    let height = STEP as u32 * shares.len().max(1) as u32 + 4;
    draw((WIDTH, height), |area| {
        let room = f64::from(WIDTH as i32 - LABELS - VALUES);
        let style = TextStyle::from(("sans-serif", 13).into_font()).color(&INK);
        let (right, left) = (Pos::new(HPos::Right, VPos::Center), Pos::new(HPos::Left, VPos::Center));
        for ((stall, share), row) in shares.iter().zip(0..) {
            let top = row * STEP + 4;
            let middle = top + BAR / 2;
            let end = LABELS + (share.clamp(0.0, 1.0) * room) as i32;
            let color = if matches!(stall, Stall::NotSelected) { OTHER } else { WAIT };
            area.draw(&Text::new(stall.label(), (LABELS - 10, middle), style.pos(right)))?;
            let whole = [(LABELS, top), (LABELS + room as i32, top + BAR)];
            area.draw(&Rectangle::new(whole, GRID.mix(0.5).filled()))?;
            area.draw(&Rectangle::new([(LABELS, top), (end.max(LABELS + 1), top + BAR)], color.filled()))?;
            let value = units::percent(*share);
            area.draw(&Text::new(value, (LABELS + room as i32 + 8, middle), style.pos(left)))?;
        }
        Ok(())
    })
}
