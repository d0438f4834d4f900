//! What each kernel of a file uses, as a table.

use std::io::{self, Write};

use stitch_verifier::occupancy::unknown_for;

use super::report::{ConfigurationReport, FileReport, KernelReport};

const HEADINGS: [&str; 7] = ["kernel", "registers", "shared", "stack", "spills", "occupancy", "why"];

/// Prints the kernels of `file`, a line each, with where the numbers come from.
///
/// # Errors
/// Writing to `out`.
pub fn print(file: &FileReport, out: &mut impl Write) -> io::Result<()> {
    let rows: Vec<[String; 7]> = file.kernels.iter().flat_map(rows).collect();
    let mut widths = HEADINGS.map(str::len);
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let architectures = architectures(&file.kernels);
    writeln!(out, "{}: what ptxas says for {architectures}", file.path.display())?;
    line(&HEADINGS.map(str::to_owned), &widths, out)?;
    for row in &rows {
        line(row, &widths, out)?;
    }
    writeln!(out)
}

/// The name to the left, numbers to the right, the rest to the left.
fn line(cells: &[String; 7], widths: &[usize; 7], out: &mut impl Write) -> io::Result<()> {
    let mut text = String::from(" ");
    for (index, (cell, width)) in cells.iter().zip(widths).enumerate() {
        match index {
            0 | 6 => text.push_str(&format!(" {cell:<width$} ")),
            _ => text.push_str(&format!(" {cell:>width$} ")),
        }
    }
    writeln!(out, "{}", text.trim_end())
}

/// A row for each way in which a kernel is launched. What does not depend on that stands in the first.
fn rows(kernel: &KernelReport) -> Vec<[String; 7]> {
    let bytes = |count: u64| if count == 0 { "-".to_owned() } else { format!("{count} B") };
    let row = |(index, one): (usize, &ConfigurationReport)| {
        let first = |text: String| if index == 0 { text } else { String::new() };
        let (ratio, limit) = match &one.occupancy {
            Some(occupancy) => {
                let of = format!("{:.0}%", occupancy.ratio * 100.0);
                (of, format!("{}; block of {} ({})", occupancy.reason, one.block_size, one.block_size_from))
            }
            None => ("-".to_owned(), unknown_for(&kernel.architecture).unwrap_or_default()),
        };
        [
            if index == 0 { kernel.name.clone() } else { format!("  {} again", kernel.name) },
            first(kernel.registers.map_or("-".to_owned(), |count| count.to_string())),
            bytes(kernel.shared_bytes + one.dynamic_shared_bytes.unwrap_or(0)),
            first(bytes(kernel.stack_bytes)),
            first(bytes(kernel.spill_store_bytes + kernel.spill_load_bytes)),
            ratio,
            limit,
        ]
    };
    kernel.configurations.iter().enumerate().map(row).collect()
}

fn architectures(kernels: &[KernelReport]) -> String {
    let mut names: Vec<&str> = kernels.iter().map(|kernel| kernel.architecture.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}
