//! Which lines of a person's Python, and which modules, the time of a device goes to.
//!
//! A kernel belongs to the call that launched it (they share a number), the call to the functions and operators around it on its thread, and
//! the innermost function that is in one of the person's files has the line. An operator of the backward pass belongs to the line of its forward
//! operator; the two share a flow, or a sequence number.

mod around;
pub mod estimate;
mod frames;
mod host;
mod model;
mod points;
mod ranges;
mod sum;
mod workspace;

use std::fs::File;
use std::path::Path;

pub use estimate::{LineRoofline, OperatorEstimate, Peaks, classify};
pub use frames::{LINE_MARK, MODULE_MARK};
pub use model::{CallTime, HostLine, HostTime, LineCopies, LineSum, ModuleSum, Part, Precision, PythonTime};
pub use ranges::from_ranges;
pub use workspace::Workspace;

use crate::note::{Note, NoteKind};
use crate::read_error::ReadError;
use crate::system::System;
use crate::trace::{self, Gathered, Open};
use around::{Around, Operators};
use points::Points;
use sum::Parts;

/// Reads the run of a program from a trace, and what lines and modules of `workspace` cost.
///
/// # Errors
/// As [`trace::read`].
pub fn read(path: &Path, workspace: &Workspace) -> Result<(System, PythonTime), ReadError> {
    let name = path.display().to_string();
    read_from(&name, workspace, &mut || Ok(Box::new(File::open(path)?)))
}

/// The same from anything that can be opened again and again; `name` is what errors call it.
///
/// # Errors
/// As [`trace::read`].
pub fn read_from(
    name: &str,
    workspace: &Workspace,
    open: &mut Open<'_>,
) -> Result<(System, PythonTime), ReadError> {
    let (mut gathered, about) = trace::gather(name, open)?;
    let system = gathered.system(about);
    let mut points = Points::of(&gathered);
    adopt(name, open, &mut gathered, &mut points)?;
    // Their work is done, and the second walk needs room.
    (gathered.ran, gathered.called, gathered.ranges) = (Vec::new(), Vec::new(), Vec::new());
    let works = std::mem::take(&mut gathered.works);
    let mut around = Around::new(&mut gathered, workspace, &points);
    trace::walk(name, open, &mut around)?;
    let has_stacks = around.has_stacks;
    let parts = Parts::new(around, &points);
    let mut time = sum::sum(&points, &works, &gathered.names, &parts);
    if time.kernel_ns == 0 {
        let mut host = host::Host::new(workspace);
        trace::walk(name, open, &mut host)?;
        time.host = host.sum();
    }
    remark(&mut time, has_stacks, &points);
    Ok((system, time))
}

/// Looks for the operators of kernels whose calls are missing.
fn adopt(
    name: &str,
    open: &mut Open<'_>,
    gathered: &mut Gathered,
    points: &mut Points,
) -> Result<(), ReadError> {
    let mut wanted: Vec<u32> =
        points.orphans.iter().map(|ran| ran.external).filter(|external| *external != 0).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    wanted.sort_unstable();
    wanted.dedup();
    let mut operators = Operators { gathered, wanted, found: Vec::new() };
    trace::walk(name, open, &mut operators)?;
    let mut found = operators.found;
    found.sort_unstable();
    found.dedup_by_key(|(external, _)| *external);
    points.adopt(&found);
    Ok(())
}

fn remark(time: &mut PythonTime, has_stacks: bool, points: &Points) {
    if time.kernel_ns == 0 {
        return;
    }
    if !has_stacks {
        time.notes.push(Note::new(
            NoteKind::NotCaptured,
            "No Python stacks were recorded, so that no line is known. Profile with `with_stack=True`.",
        ));
    } else if time.lines.iter().any(|line| line.precision == Precision::Function) {
        time.notes.push(Note::new(
            NoteKind::Remark,
            "PyTorch's profiler tells where a function begins, not which of its lines ran: times are those of whole functions.",
        ));
    }
    let orphans = points.orphans.len();
    if orphans > 0 {
        time.notes.push(Note::new(
            NoteKind::Remark,
            format!("Of what ran on the device, {orphans} have no call in the trace, and belong to no line."),
        ));
    }
}
