//! What the compiler says each kernel needs, gathered from single measurements, and how it is written.

use std::collections::BTreeSet;

use stitch_findings::{AnchorState, Measurement, Provenance, Quantity, Span};
use stitch_verifier::occupancy::unknown_for;

use crate::view::{Placed, View};

/// The numbers of one kernel, or of one instantiation of a template.
#[derive(Clone, Debug)]
pub struct Resources {
    /// The kernel as a person would write it: `sgemm<16>`.
    pub subject: String,
    /// Its name in the view's text.
    pub span: Span,
    /// How far the numbers hold.
    pub state: AnchorState,
    /// Where they came from.
    pub provenance: Provenance,
    numbers: Vec<(Quantity, f64, Option<String>)>,
}

impl Resources {
    /// The resources of each kernel, in the order of the text.
    pub fn of(view: &View) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for measured in view.measurements.iter().filter(|found| !found.item.quantity.is_of_a_line()) {
            let mut note = measured.item.note.clone();
            if measured.state != AnchorState::Fresh
                && let Some(from) = note.as_ref().filter(|note| note.contains(LAUNCH))
            {
                // Launches stand elsewhere: their lines may have moved, and what they say may have changed.
                if !launched_so(view, measured, from) {
                    continue;
                }
                note = Some(without_lines(from));
            }
            let number = (measured.item.quantity, measured.item.value, note);
            match all.iter_mut().find(|known| known.is_about(measured)) {
                Some(known) => known.numbers.push(number),
                None => all.push(Self {
                    subject: measured.item.subject.clone(),
                    span: measured.span,
                    state: measured.state,
                    provenance: measured.item.provenance.clone(),
                    numbers: vec![number],
                }),
            }
        }
        all
    }

    fn is_about(&self, measured: &Placed<Measurement>) -> bool {
        self.span == measured.span
            && self.subject == measured.item.subject
            && self.provenance.device == measured.item.provenance.device
    }

    /// One number.
    pub fn get(&self, quantity: Quantity) -> Option<f64> {
        self.numbers.iter().find(|(known, ..)| *known == quantity).map(|(_, value, _)| *value)
    }

    /// What is said beside one number.
    pub fn note(&self, quantity: Quantity) -> Option<&str> {
        self.numbers.iter().find(|(known, ..)| *known == quantity)?.2.as_deref()
    }

    /// Bytes that go to local memory since registers do not suffice.
    pub fn spills(&self) -> f64 {
        self.get(Quantity::SpillStores).unwrap_or(0.0) + self.get(Quantity::SpillLoads).unwrap_or(0.0)
    }

    /// In a few words, for the end of a line: `64 registers · 4 KiB shared · 50% occupancy`.
    pub fn summary(&self) -> String {
        let mut parts = Vec::new();
        parts.extend(self.get(Quantity::Registers).map(|registers| format!("{registers} registers")));
        let shared = self.get(Quantity::SharedMemory).filter(|bytes| *bytes > 0.0);
        parts.extend(shared.map(|bytes_of| format!("{} shared", bytes(bytes_of))));
        if self.spills() > 0.0 {
            parts.push(format!("spills {}", bytes(self.spills())));
        }
        parts.extend(
            self.get(Quantity::TheoreticalOccupancy).map(|share| format!("{} occupancy", percent(share))),
        );
        parts.join(" · ")
    }

    /// What limits the occupancy, or why that is not known; a dash where there is nothing to say.
    fn limit(&self) -> String {
        let note = self.note(Quantity::TheoreticalOccupancy).map(str::to_owned);
        let unknown = || unknown_for(&self.provenance.device);
        note.or_else(unknown).unwrap_or_else(|| "–".to_owned())
    }

    /// Where the numbers came from, in a sentence.
    pub fn origin(&self) -> String {
        let Provenance { tool, device, runs, .. } = &self.provenance;
        let runs = if *runs > 1 { format!(", {runs} runs") } else { String::new() };
        format!("{tool} for {device}{runs}.")
    }
}

/// What stands before the line of a launch that a number was reckoned with.
const LAUNCH: &str = "(launch at line ";

/// Whether the kernel is launched now with just the blocks that a number's note tells.
fn launched_so(view: &View, measured: &Placed<Measurement>, note: &str) -> bool {
    let name = measured.item.subject.split(['<', '(']).next().unwrap_or_default();
    let name = name.rsplit("::").next().unwrap_or(name);
    let launches = view.launches_of(name).filter_map(|launch| launch.block.as_ref()?.value);
    let now: BTreeSet<i64> = launches.map(|block| block.iter().product()).collect();
    let told: BTreeSet<i64> = note
        .match_indices(LAUNCH)
        .filter_map(|(at, _)| note[..at].trim_end().rsplit(' ').next()?.parse().ok())
        .collect();
    // Other instantiations may be launched with other blocks.
    told.is_subset(&now) && (told.len() == now.len() || measured.item.subject.contains('<'))
}

/// A note without the lines of launches.
fn without_lines(note: &str) -> String {
    let mut parts = note.split(LAUNCH);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str("(from a launch");
        text.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    text
}

/// A Markdown table of one row for each instantiation.
pub fn table(kernels: &[&Resources]) -> String {
    let mut text = String::from(
        "| kernel | registers | shared | stack | spill stores | spill loads | occupancy | limited by |\n\
         |---|---:|---:|---:|---:|---:|---:|---|\n",
    );
    for kernel in kernels {
        let in_bytes = |quantity| kernel.get(quantity).map_or("–".into(), bytes);
        let cells = [
            format!("`{}`", kernel.subject.replace('|', "\\|")),
            kernel.get(Quantity::Registers).map_or("–".into(), |count| count.to_string()),
            in_bytes(Quantity::SharedMemory),
            in_bytes(Quantity::Stack),
            in_bytes(Quantity::SpillStores),
            in_bytes(Quantity::SpillLoads),
            kernel.get(Quantity::TheoreticalOccupancy).map_or("–".into(), percent),
            kernel.limit().replace('|', "\\|"),
        ];
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text
}

/// A share as a person writes it.
fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

/// Bytes as a person writes them: exact below a KiB, else with one decimal where it is needed.
fn bytes(bytes: f64) -> String {
    if bytes < 1024.0 {
        return format!("{bytes} B");
    }
    let kib = format!("{:.1}", bytes / 1024.0);
    format!("{} KiB", kib.strip_suffix(".0").unwrap_or(&kib))
}

#[cfg(test)]
mod tests {
    use stitch_findings::Producer;

    use super::*;

    #[test]
    fn an_architecture_that_is_not_in_the_table_is_named() {
        for (device, expected) in [
            ("sm_107", "| 40 | – | – | – | – | – | occupancy unknown for sm_107 |"),
            ("sm_90", "| 40 | – | – | – | – | – | – |"),
        ] {
            let kernel = Resources {
                subject: "k".to_owned(),
                span: Span::new(0, 1),
                state: AnchorState::Fresh,
                provenance: Provenance {
                    producer: Producer::Ptxas,
                    tool: "ptxas 13.5".to_owned(),
                    device: device.to_owned(),
                    runs: 1,
                },
                numbers: vec![(Quantity::Registers, 40.0, None)],
            };
            let table = table(&[&kernel]);
            assert!(table.contains(expected), "{table}");
        }
    }

    #[test]
    fn numbers_read_as_people_write_them() {
        let rows = [
            (0.0, "0 B"),
            (1023.0, "1023 B"),
            (4096.0, "4 KiB"),
            (1536.0, "1.5 KiB"),
            (233_472.0, "228 KiB"),
        ];
        for (value, expected) in rows {
            assert_eq!(bytes(value), expected);
        }
        assert_eq!(
            without_lines(
                "limited by registers; block of 64 (launch at line 12) / 50% with a block of 32 (launch at line 7)"
            ),
            "limited by registers; block of 64 (from a launch) / 50% with a block of 32 (from a launch)"
        );
        assert_eq!(percent(0.625), "62%");
        assert_eq!(percent(1.0), "100%");
    }
}
