//! What is known of a kernel or a line as Markdown that stays readable as plain text: for a hover, a tooltip, a terminal.
//!
//! Bars stand in fenced blocks, so that they stay aligned; everything else is sentences and small tables. What was not measured is named so,
//! or left out; it is never a zero.

mod kernel;
mod line;
mod occupancy;
mod program;
mod python;

pub use kernel::{launch, launches};
pub use line::line;
pub use occupancy::Occupancy;
pub use program::recorded;
pub use python::{class, module, python_line};

/// Cells of a bar.
const CELLS: usize = 20;

/// Part of a cell for something that is too little for a whole one.
const SLIVER: char = '▏';

/// A share from 0 to 1 as a bar of twenty cells. Whatever is more than nothing is seen.
pub fn bar(share: f64) -> String {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let full = (share * CELLS as f64).round() as usize;
    let mut bar = "█".repeat(full);
    if full == 0 && share > 0.0 {
        bar.push(SLIVER);
    }
    let rest = CELLS - bar.chars().count();
    bar + &"░".repeat(rest)
}

/// Rows of a label, a bar and a remark, aligned, in a fence.
fn bars(rows: &[(String, f64, String)]) -> String {
    let widest = rows.iter().map(|(label, ..)| label.chars().count()).max().unwrap_or(0);
    let mut text = String::from("```text\n");
    for (label, share, remark) in rows {
        let indent = " ".repeat(widest - label.chars().count());
        text.push_str(&format!("{label}{indent}  {}  {remark}\n", bar(*share)));
    }
    text + "```\n"
}

/// A text that a file or a profiler gave, as code. Marks in it would end it.
fn code(text: &str) -> String {
    format!("`{}`", text.replace(['`', '\n', '\r'], "'"))
}

/// The same in a cell of a table.
fn cell(text: &str) -> String {
    code(text).replace('|', "\\|")
}

/// A name of at most so many characters: its beginning, which says most.
fn short(name: &str, most: usize) -> String {
    match name.chars().count() > most {
        true => name.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
        false => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_all_that_is_more_than_nothing() {
        assert_eq!(bar(0.0), "░".repeat(20));
        assert_eq!(bar(0.004), format!("▏{}", "░".repeat(19)));
        assert_eq!(bar(0.5), format!("{}{}", "█".repeat(10), "░".repeat(10)));
        for full in [1.0, 1.2] {
            assert_eq!(bar(full), "█".repeat(20));
        }
        assert_eq!(bar(f64::NAN), bar(0.0));
    }

    #[test]
    fn names_can_not_break_out() {
        assert_eq!(cell("a`|b\n"), "`a'\\|b'`");
        assert_eq!(short("operator", 5), "oper…");
    }
}
