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

/// Whether errors of what happens at `node` are asked for: later in the function, anywhere in a loop around it, or by a
/// function of this file that calls this one.
pub fn follow(walker: &Walker, node: Node) -> bool {
    let around = |call: &Call| {
        let mut within = call.within;
        while let Some(id) = within {
            let Some(outer) = walker.facts.loops.get(id as usize) else { return false };
            if outer.node.start_byte() <= node.start_byte() && node.end_byte() <= outer.node.end_byte() {
                return true;
            }
            within = outer.within;
        }
        false
    };
    let later = walker.facts.calls.iter().filter(|call| call.node.start_byte() >= node.start_byte() || around(call));
    later.clone().any(|call| asks(walker, call)) || walker.environment.is_asked_after(&walker.function.name)
}

fn asks(walker: &Walker, call: &Call) -> bool {
    let lower = call.name.to_ascii_lowercase();
    super::environment::ASKING.contains(&call.name)
        || walker.environment.asks_for_errors(call.name)
        || (WAITING.contains(&call.name) && !call.is_statement)
        || is_checker(&lower)
}

/// Whether a function or a macro of this name, in lower case, checks errors by what people call such things.
fn is_checker(lower: &str) -> bool {
    ["lasterror", "last_error", "launch_check", "launchcheck", "check_launch", "checklaunch", "checkcuda", "cudacheck"]
        .iter()
        .any(|part| lower.contains(part))
        || (lower.contains("check") && ["cuda", "kernel", "err", "gpu", "sync", "status"].iter().any(|part| lower.contains(part)))
        || (lower.contains("cuda") && (lower.contains("err") || lower.contains("safe")))
}
