//! Lines from ranges that name them, for profiles that hold no stacks: an export of Nsight Systems.

use std::collections::BTreeMap;

use super::frames;
use super::model::{LineSum, Precision, PythonTime};
use super::workspace::Workspace;
use crate::system::System;
use crate::system::model::share;

/// What the lines of `workspace` cost, where the program marked them with ranges named [`LINE_MARK`](super::LINE_MARK). A kernel counts for the
/// innermost range around its launch, on the same thread: the backward pass runs on another. `None` where no range is such a mark.
pub fn from_ranges(system: &System, workspace: &Workspace) -> Option<PythonTime> {
    let kernel_ns =
        system.kernels.iter().flatten().fold(0, |sum: u64, kernel| sum.saturating_add(kernel.total_ns));
    let mut lines: BTreeMap<(String, u32), LineSum> = BTreeMap::new();
    let mut marked = false;
    for range in system.ranges.iter().flatten() {
        let Some(frame) = frames::mark(&range.name) else {
            continue;
        };
        marked = true;
        let Some(file) = workspace.resolve(frame.file).map(|file| file.display().to_string()) else {
            continue;
        };
        let line = lines.entry((file.clone(), frame.line)).or_insert_with(|| LineSum {
            file,
            line: frame.line,
            function: frame.function.to_owned(),
            precision: Precision::Line,
            ..LineSum::default()
        });
        line.launches += range.own_launches;
        line.kernel_ns = line.kernel_ns.saturating_add(range.own_kernel_ns);
        line.share = share(line.kernel_ns, kernel_ns);
    }
    let mut lines: Vec<LineSum> = lines.into_values().collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.kernel_ns));
    let attributed_ns = lines.iter().fold(0, |sum: u64, line| sum.saturating_add(line.kernel_ns));
    let attributed_share = share(attributed_ns, kernel_ns);
    marked.then_some(PythonTime {
        kernel_ns,
        attributed_ns,
        attributed_share,
        lines,
        ..PythonTime::default()
    })
}
