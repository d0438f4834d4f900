//! A profile for a person.

use std::io::{self, Write};

use stitch_verifier::demangle;
use stitch_verifier::simulation::{Count, Kernel, Line};

use super::Report;

/// Prints a profile.
///
/// # Errors
/// Writing to `out`.
pub(super) fn print(report: &Report, out: &mut impl Write) -> io::Result<()> {
    let simulated = report.simulated;
    let share =
        report.sample.map(|share| format!(", {:.3} % of the blocks", share * 100.0)).unwrap_or_default();
    writeln!(out, "{} on {}{share}", report.program, report.device)?;
    for fault in &simulated.faults {
        writeln!(out, "fault: {}", fault.words())?;
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
    match (report.exit_status, report.signal) {
        (Some(0), _) => {}
        (Some(status), _) => writeln!(out, "The program ended with exit status {status}.")?,
        (_, Some(signal)) => writeln!(out, "The program was ended by signal {signal}.")?,
        _ => {}
    }
    for note in &simulated.notes {
        writeln!(out, "note: {note}")?;
    }
    Ok(())
}

fn print_kernel(kernel: &Kernel, out: &mut impl Write) -> io::Result<()> {
    let sizes = |sizes: [u32; 3]| sizes.map(|size| size.to_string()).join(" x ");
    writeln!(out, "{}", demangle::name(&kernel.name).display())?;
    writeln!(
        out,
        "  grid {}, block {}, {} bytes of dynamic shared memory, {}",
        sizes(kernel.grid),
        sizes(kernel.block),
        kernel.dynamic_shared,
        if kernel.launches == 1 { "one launch".to_owned() } else { format!("{} launches", kernel.launches) }
    )?;
    let counters = &kernel.counters;
    writeln!(
        out,
        "  {} PTX instructions of warps; {:.1} of 32 lanes active; {} bytes of global and local memory moved",
        counters.warp_instructions,
        ratio(counters.total.active, counters.total.warps),
        counters.total.sectors * SECTOR
    )?;
    if counters.blocks < counters.grid_blocks {
        writeln!(out, "  counted in {} of {} blocks", counters.blocks, counters.grid_blocks)?;
    }
    let mut lines: Vec<&Line> = counters.lines.iter().filter(|line| weight(&line.count) > 0).collect();
    lines.sort_by_key(|line| std::cmp::Reverse(weight(&line.count)));
    for line in lines.iter().take(MOST_LINES) {
        writeln!(out, "  {}:{}  {}", name_of(&line.file), line.line, words(&line.count))?;
    }
    writeln!(
        out,
        "  estimated {:.1} us in all (a roofline over the simulator's counters, no measurement)",
        kernel.estimated_ns as f64 / 1e3
    )
}

/// Bytes of a sector.
const SECTOR: u64 = 32;
/// Lines of a kernel that are shown: those that move most.
const MOST_LINES: usize = 8;

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// How much a line has to do with memory and divergence.
fn weight(count: &Count) -> u64 {
    count.sectors + count.wavefronts + count.divergent + count.serialised
}

fn name_of(file: &str) -> String {
    std::path::Path::new(file).file_name().map_or(file.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// A line's counters in words.
fn words(count: &Count) -> String {
    let mut parts = Vec::new();
    if count.sectors > 0 {
        parts.push(format!(
            "{} sectors, {} at best, {:.1} a request",
            count.sectors,
            count.ideal_sectors,
            ratio(count.sectors, count.requests)
        ));
    }
    if count.wavefronts > 0 {
        parts.push(format!(
            "{} shared wavefronts, {} at best, {} ways at worst",
            count.wavefronts, count.ideal_wavefronts, count.worst_wavefronts
        ));
    }
    if count.serialised > 0 {
        parts.push(format!(
            "{} atomic updates wait, {} lanes at one address at worst",
            count.serialised, count.worst_contention
        ));
    }
    if count.divergent > 0 {
        parts.push(format!("{} divergent branches", count.divergent));
    }
    parts.join("; ")
}
