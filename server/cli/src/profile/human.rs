//! A run on the simulator for a person: what it caught, and what it counted.

use std::io::{self, Write};

use stitch_verifier::demangle;
use stitch_verifier::simulation::Kernel;

use super::Run;

/// Prints what was caught and counted.
///
/// # Errors
/// Writing to `out`.
pub(super) fn print(run: &Run<'_>, out: &mut impl Write) -> io::Result<()> {
    let simulated = run.simulated;
    if let Some(share) = run.sample {
        writeln!(out, "  simulated {:.3} % of the blocks", share * 100.0)?;
    }
    for fault in &simulated.faults {
        writeln!(out, "fault: {}", fault.words())?;
    }
    for defect in &simulated.defects {
        let place = defect.lines.place.as_ref();
        let place = place.map(|(file, line)| format!("{}:{line}: ", name_of(file))).unwrap_or_default();
        writeln!(out, "{place}{}", defect.words())?;
    }
    if simulated.kernels.is_empty() {
        writeln!(out, "No kernel was launched.")?;
    }
    for kernel in &simulated.kernels {
        print_kernel(kernel, out)?;
    }
    let copies = [
        ("to the device", simulated.host_to_device),
        ("to the host", simulated.device_to_host),
        ("on the device", simulated.device_to_device),
    ];
    for (way, copies) in copies.iter().filter(|(_, copies)| copies.count > 0) {
        writeln!(out, "Copied {way}: {} times, {} bytes in all", copies.count, copies.bytes)?;
    }
    match (run.exit_status, run.signal) {
        (Some(0), _) => {}
        (Some(status), _) => writeln!(out, "The program ended with exit status {status}.")?,
        (_, Some(signal)) => writeln!(out, "The program was ended by signal {signal}.")?,
        _ => {}
    }
    let checked = simulated.checked();
    for note in simulated.notes.iter().chain(&checked) {
        writeln!(out, "note: {note}")?;
    }
    Ok(())
}

fn print_kernel(kernel: &Kernel, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", demangle::name(&kernel.name).display())?;
    writeln!(out, "  {}", kernel.shape())?;
    writeln!(out, "  {}", kernel.totals())?;
    let counters = &kernel.counters;
    if counters.blocks < counters.grid_blocks {
        writeln!(out, "  counted in {} of {} blocks", counters.blocks, counters.grid_blocks)?;
    }
    for line in kernel.heaviest(MOST_LINES) {
        writeln!(out, "  {}:{}  {}", name_of(&line.file), line.line, line.count.words())?;
    }
    let limiter =
        kernel.limiter.as_ref().map_or_else(String::new, |limiter| format!(", limited by: {limiter}"));
    writeln!(
        out,
        "  estimated {:.1} us in all{limiter} (a roofline over the simulator's counters, no measurement)",
        kernel.estimated_ns as f64 / 1e3
    )
}

/// Lines of a kernel that are shown: those that move most.
const MOST_LINES: usize = 8;

fn name_of(file: &str) -> String {
    std::path::Path::new(file).file_name().map_or(file.to_owned(), |name| name.to_string_lossy().into_owned())
}
