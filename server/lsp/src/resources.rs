//! What the compiler says each kernel needs, gathered from single measurements, and how it is written.

use stitch_findings::{AnchorState, Measurement, Provenance, Quantity, Span};

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
        for measured in &view.measurements {
            let number = (measured.item.quantity, measured.item.value, measured.item.note.clone());
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

    /// Where the numbers came from, in a sentence.
    pub fn origin(&self) -> String {
        let Provenance { tool, device, runs, .. } = &self.provenance;
        let runs = if *runs > 1 { format!(", {runs} runs") } else { String::new() };
        let stale = if self.state == AnchorState::Stale { " From before your last edit." } else { "" };
        format!("{tool} for {device}{runs}.{stale}")
    }
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
            kernel.note(Quantity::TheoreticalOccupancy).unwrap_or("–").replace('|', "\\|"),
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
    use super::*;

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
        assert_eq!(percent(0.625), "62%");
        assert_eq!(percent(1.0), "100%");
    }
}
