//! The figures, as a table.

use std::time::Duration;

use super::STARTS;
use super::typing::{Typed, characters};

/// What one server came to.
pub struct Figures {
    /// From starting the process to the answer to `initialize`.
    pub starts: Vec<Duration>,
    /// Megabytes with the file open and nothing to do.
    pub memory_open: Option<f64>,
    /// The same after the typing.
    pub memory_typed: Option<f64>,
    /// What the typing came to.
    pub typed: Typed,
}

impl Figures {
    fn cells(&self) -> Vec<String> {
        let typed = &self.typed;
        let megabytes =
            |memory: Option<f64>| memory.map_or("unknown".into(), |memory| format!("{memory:.0} MB"));
        let asked = typed.hovers.len() + typed.hints.len() + typed.withdrawn + typed.unanswered;
        vec![
            summary(&self.starts),
            megabytes(self.memory_open),
            megabytes(self.memory_typed),
            summary(&typed.findings),
            typed.missing.to_string(),
            summary(&typed.hovers),
            summary(&typed.hints),
            format!("{} of {asked}", typed.withdrawn),
            format!("{} of {asked}", typed.unanswered),
        ]
    }
}

/// Prints the table, a server a column.
#[allow(clippy::print_stdout, reason = "the table is the command's result")]
pub fn print(lines: usize, pause: Duration, columns: &[(String, Figures)]) {
    println!(
        "{lines} lines; {} characters, one each {} ms; {STARTS} starts\n",
        characters(),
        pause.as_millis()
    );
    let names = [
        "start to the answer to initialize",
        "memory at rest, file open",
        "memory at rest, after typing",
        "edit to the findings that know it",
        "edits whose findings never came",
        "hover",
        "inlay hints",
        "requests withdrawn",
        "requests unanswered",
    ];
    let cells: Vec<Vec<String>> = columns.iter().map(|(_, figures)| figures.cells()).collect();
    let head: Vec<String> = columns.iter().map(|(name, _)| format!("{name:<44}")).collect();
    println!("{:<36}{}", "median / 99th percentile / longest", head.concat());
    for (row, name) in names.iter().enumerate() {
        let line: Vec<String> = cells.iter().map(|column| format!("{:<44}", column[row])).collect();
        println!("{name:<36}{}", line.concat().trim_end());
    }
}

/// Prints the slowest keystrokes of a server: how long, where, and what was typed.
#[allow(clippy::print_stdout, reason = "the list is what was asked for")]
pub fn print_slowest(count: usize, (name, figures): &(String, Figures)) {
    let mut keystrokes: Vec<_> = figures.typed.keystrokes.iter().collect();
    keystrokes.sort_by_key(|keystroke| std::cmp::Reverse(keystroke.took));
    println!("\nslowest keystrokes of {name}");
    for keystroke in keystrokes.into_iter().take(count) {
        let milliseconds = keystroke.took.as_secs_f64() * 1000.0;
        println!("{milliseconds:>8.1} ms  line {:>6}  {:?}", keystroke.line + 1, keystroke.typed);
    }
}

/// Median, 99th percentile and longest, in milliseconds.
fn summary(times: &[Duration]) -> String {
    let mut times = times.to_vec();
    times.sort();
    let at = |share: usize| times.get((times.len() * share).div_ceil(100).saturating_sub(1));
    match (at(50), at(99), times.last()) {
        (Some(median), Some(p99), Some(longest)) => {
            let milliseconds = |time: &Duration| format!("{:.1}", time.as_secs_f64() * 1000.0);
            format!(
                "{} / {} / {} ms ({})",
                milliseconds(median),
                milliseconds(p99),
                milliseconds(longest),
                times.len()
            )
        }
        _ => "none".into(),
    }
}
