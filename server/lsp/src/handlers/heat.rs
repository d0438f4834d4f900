//! Numbers by line, for the gutter: what was measured of the text as it is now. What holds no more is left out.

use serde::Serialize;
use serde_json::{Value, json};
use stitch_findings::{AnchorState, Measurement, Quantity, Unit};
use tower_lsp::jsonrpc::{Error, Result};

use crate::guard;
use crate::profile::Moved;
use crate::session::Session;
use crate::view::View;

/// One number of one line.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Number<'a> {
    /// From 0.
    line: u32,
    /// What it is.
    quantity: Quantity,
    /// The same as a person calls it.
    label: &'static str,
    value: f64,
    unit: Unit,
    /// The kernel it is about.
    subject: &'a str,
    /// How hot the line is by it, from 0 to 1; null for a number that has no such scale.
    heat: Option<f64>,
    /// Who measured, and for which device.
    source: String,
}

/// `stitchcuda/heat`: `{"textDocument": {"uri"}}` gives the version and the numbers, in the order of the text.
///
/// # Errors
/// None that a client can mend.
pub fn heat(session: &Session, view: &View) -> Result<Value> {
    let fresh = view.measurements.iter().filter(|measured| measured.state != AnchorState::Stale);
    // Of what lines take, the most is hottest.
    let most = |quantity: Quantity| {
        let of_it = view.measurements.iter().filter(|found| found.item.quantity == quantity);
        of_it.map(|found| found.item.value).fold(0.0, f64::max)
    };
    let number = |measured: &crate::view::Placed<Measurement>| {
        let Measurement { quantity, value, subject, provenance, .. } = &measured.item;
        serde_json::to_value(Number {
            line: view.range_here(measured.span).start.line,
            quantity: *quantity,
            label: quantity.label(),
            value: *value,
            unit: quantity.unit(),
            subject,
            heat: match quantity.is_of_a_line() {
                true => Some(value / most(*quantity).max(f64::MIN_POSITIVE)),
                false => scale(*quantity, *value),
            },
            source: format!("{}, {}", provenance.tool, provenance.device),
        })
    };
    let mut lines: Vec<Value> =
        fresh.map(number).collect::<std::result::Result<_, _>>().map_err(|_| Error::internal_error())?;
    lines.extend(moved(session, view));
    lines.sort_by_key(|number| number["line"].as_u64());
    Ok(json!({ "uri": &*view.document.uri, "version": view.document.version, "lines": lines }))
}

/// What each line moves, where the program was profiled. The heaviest is hottest.
fn moved(session: &Session, view: &View) -> Vec<Value> {
    let (lines, device) = session.profiles.lines(&view.document.key, &view.document.text.to_source());
    let most = lines.iter().map(|line| line.weight).max().unwrap_or(1);
    let all: u64 = lines.iter().map(|line| line.weight).sum();
    #[allow(clippy::cast_precision_loss, reason = "counters stay far below 2^53")]
    let share = |weight: u64, of: u64| weight as f64 / of.max(1) as f64;
    let number = |line: &Moved| {
        json!({
            "line": view.range_here(line.span).start.line, "quantity": "traffic",
            "label": format!("of what the program moves and waits for: {}", line.words),
            "value": share(line.weight, all), "unit": Unit::Ratio, "subject": "this line",
            "heat": share(line.weight, most), "source": format!("counted on {device}"),
        })
    };
    lines.iter().map(number).collect()
}

/// The answer for a document that is not open.
pub fn not_open() -> Error {
    guard::failed("`stitchcuda/heat` takes an open document as `textDocument`.".to_owned())
}

/// What is idle is hot, and so is any spill.
fn scale(quantity: Quantity, value: f64) -> Option<f64> {
    match quantity {
        Quantity::TheoreticalOccupancy => Some((1.0 - value).clamp(0.0, 1.0)),
        Quantity::SpillStores | Quantity::SpillLoads => Some(if value > 0.0 { 1.0 } else { 0.0 }),
        _ => None,
    }
}
