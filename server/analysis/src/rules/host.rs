//! The host's calls of the CUDA runtime: `static/api-result-ignored`, `static/malloc-in-loop`,
//! `static/synchronize-in-loop`.

use stitch_findings::{Code, Place, Related};

use super::checks::{Checks, WAITING};
use super::facts::Call;
use super::loops::{Loops, allocation, synchronisation};
use super::report::{Report, span};
use super::walk::Walker;
use crate::outline::FunctionKind;

/// Calls whose failure changes what the program does next. Releasing things and asking for errors are left out.
const CONSEQUENTIAL: &[&str] = &[
    "cuLaunchKernel",
    "cuMemAlloc",
    "cuMemcpyDtoH",
    "cuMemcpyHtoD",
    "cuModuleLoad",
    "cuModuleLoadData",
    "cudaBindTexture",
    "cudaDeviceSynchronize",
    "cudaEventSynchronize",
    "cudaFuncSetAttribute",
    "cudaGetDeviceCount",
    "cudaGetDeviceProperties",
    "cudaGetSymbolAddress",
    "cudaGraphInstantiate",
    "cudaGraphLaunch",
    "cudaHostAlloc",
    "cudaHostGetDevicePointer",
    "cudaHostRegister",
    "cudaLaunchCooperativeKernel",
    "cudaLaunchKernel",
    "cudaLaunchKernelExC",
    "cudaMalloc",
    "cudaMalloc3D",
    "cudaMalloc3DArray",
    "cudaMallocArray",
    "cudaMallocAsync",
    "cudaMallocHost",
    "cudaMallocManaged",
    "cudaMallocPitch",
    "cudaMemPrefetchAsync",
    "cudaMemcpy",
    "cudaMemcpy2D",
    "cudaMemcpy2DAsync",
    "cudaMemcpy3D",
    "cudaMemcpyAsync",
    "cudaMemcpyFromSymbol",
    "cudaMemcpyPeer",
    "cudaMemcpyPeerAsync",
    "cudaMemcpyToArray",
    "cudaMemcpyToSymbol",
    "cudaMemcpyToSymbolAsync",
    "cudaMemset",
    "cudaMemsetAsync",
    "cudaSetDevice",
    "cudaStreamBeginCapture",
    "cudaStreamCreate",
    "cudaStreamCreateWithFlags",
    "cudaStreamCreateWithPriority",
    "cudaStreamEndCapture",
    "cudaStreamSynchronize",
    "cudaStreamWaitEvent",
];

/// Calls that allocate and so wait for the device, or lock pages, each time.
pub const ALLOCATING: &[&str] = &[
    "cuMemAlloc",
    "cudaHostAlloc",
    "cudaMalloc",
    "cudaMalloc3D",
    "cudaMallocArray",
    "cudaMallocHost",
    "cudaMallocManaged",
    "cudaMallocPitch",
];

/// A function that drops more errors gets one finding for all of them.
const MOST_FINDINGS: usize = 3;

/// How many other places such a finding names.
const MOST_PLACES: usize = 8;

/// Adds what the function's calls of the CUDA runtime show.
pub fn check(walker: &Walker, report: &mut Report) {
    if walker.function.kind != FunctionKind::Host || walker.function.name.starts_with('~') {
        return;
    }
    let calls: Vec<&Call> = walker.facts.calls.iter().filter(|call| call.name.starts_with("cu")).collect();
    if calls.is_empty() {
        return;
    }
    dropped(walker, &calls, report);
    let mut loops = Loops::of(walker);
    for call in calls {
        if let Some(within) = call.within {
            if ALLOCATING.contains(&call.name) {
                allocation(&mut loops, call, within, report);
            } else if WAITING.contains(&call.name) {
                synchronisation(&mut loops, call, within, report);
            }
        }
    }
}

/// Adds findings for errors that are dropped: one a call, or one for all calls of a function that checks none.
fn dropped(walker: &Walker, calls: &[&Call], report: &mut Report) {
    // Where nothing is checked, that was the choice made.
    if !walker.environment.checks_errors() {
        return;
    }
    let checks = Checks::of(walker);
    let dropped: Vec<&&Call> = calls
        .iter()
        .filter(|call| call.is_statement && CONSEQUENTIAL.binary_search(&call.name).is_ok())
        .filter(|call| !checks.follow(call.node))
        .collect();
    let shown = if dropped.len() > MOST_FINDINGS { 1 } else { dropped.len() };
    for call in &dropped[..shown] {
        let others = match dropped.len() - shown {
            0 => "is dropped".to_owned(),
            count => format!("is dropped, and {count} more in `{}`", walker.function.name),
        };
        let message = format!(
            "The error that `{}` returns {others}: what follows runs on even if it failed.",
            call.name
        );
        let advice = "Check the result, as with a macro that prints `cudaGetErrorString` and stops.";
        let finding = report.add(Code::API_RESULT_IGNORED, call.node, message, advice);
        for other in dropped.iter().skip(shown).take(MOST_PLACES) {
            finding.related.push(Related {
                place: Place::Here(span(other.node)),
                message: format!("`{}` too", other.name),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_is_sorted() {
        assert!(super::CONSEQUENTIAL.is_sorted());
    }
}
