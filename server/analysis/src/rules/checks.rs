//! Whether a function asks for CUDA's last error.

use tree_sitter::Node;

use super::facts::Call;
use super::walk::Walker;

/// Calls that wait for the device and return what went wrong on it.
pub const WAITING: &[&str] = &[
    "cudaDeviceSynchronize",
    "cudaStreamSynchronize",
    "cudaEventSynchronize",
    "cudaThreadSynchronize",
    "cuCtxSynchronize",
    "cuStreamSynchronize",
];

/// Where a function asks for errors.
pub struct Checks {
    /// Whether a function of this file that calls this one does.
    by_caller: bool,
    /// The start of the last call that does.
    last: Option<usize>,
    /// The outermost loops in which one does: what comes before it in the text comes after it in the next pass.
    loops: Vec<(usize, usize)>,
}

impl Checks {
    /// Looks at all calls of the function.
    pub fn of(walker: &Walker) -> Self {
        let asking: Vec<&Call> = walker.facts.calls.iter().filter(|call| asks(walker, call)).collect();
        let mut loops: Vec<(usize, usize)> = asking
            .iter()
            .filter_map(|call| {
                let inner = walker.facts.loops.get(call.within? as usize)?;
                let outer = walker.facts.loops.get(inner.outermost as usize)?;
                Some((outer.node.start_byte(), outer.node.end_byte()))
            })
            .collect();
        loops.sort_unstable();
        loops.dedup();
        Self {
            by_caller: walker.environment.is_asked_after(&walker.function.name),
            last: asking.iter().map(|call| call.node.start_byte()).max(),
            loops,
        }
    }

    /// Whether errors of what happens at `node` are asked for afterwards.
    pub fn follow(&self, node: Node) -> bool {
        let (start, end) = (node.start_byte(), node.end_byte());
        let around = self.loops.partition_point(|(first, _)| *first <= start).checked_sub(1);
        self.by_caller
            || self.last.is_some_and(|last| last >= start)
            || around.is_some_and(|index| end <= self.loops[index].1)
    }
}

fn asks(walker: &Walker, call: &Call) -> bool {
    let lower = call.name.to_ascii_lowercase();
    super::environment::ASKING.contains(&call.name)
        || walker.environment.asks_for_errors(call.name)
        || (WAITING.contains(&call.name) && !call.is_statement)
        || is_checker(&lower)
}

/// Whether a function or a macro of this name, in lower case, checks errors by what people call such things.
pub fn is_checker(lower: &str) -> bool {
    [
        "lasterror",
        "last_error",
        "launch_check",
        "launchcheck",
        "check_launch",
        "checklaunch",
        "checkcuda",
        "cudacheck",
    ]
    .iter()
    .any(|part| lower.contains(part))
        || (lower.contains("check")
            && ["cuda", "kernel", "err", "gpu", "sync", "status"].iter().any(|part| lower.contains(part)))
        || (lower.contains("cuda") && (lower.contains("err") || lower.contains("safe")))
}
