//! The host's calls of the CUDA runtime: `static/api-result-ignored`, `static/malloc-in-loop`,
//! `static/synchronize-in-loop`.

use stitch_findings::Code;

use tree_sitter::Node;

use super::checks::{self, WAITING};
use super::facts::{Call, Loop};
use super::report::Report;
use super::walk::Walker;
use crate::outline::FunctionKind;

/// Calls whose failure changes what the program does next. Releasing things and asking for errors are left out.
const CONSEQUENTIAL: &[&str] = &[
    "cuLaunchKernel", "cuMemAlloc", "cuMemcpyDtoH", "cuMemcpyHtoD", "cuModuleLoad", "cuModuleLoadData",
    "cudaBindTexture", "cudaDeviceSynchronize",
    "cudaEventSynchronize", "cudaFuncSetAttribute", "cudaGetDeviceCount", "cudaGetDeviceProperties",
    "cudaGetSymbolAddress", "cudaGraphInstantiate", "cudaGraphLaunch", "cudaHostAlloc", "cudaHostGetDevicePointer",
    "cudaHostRegister", "cudaLaunchCooperativeKernel", "cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMalloc",
    "cudaMalloc3D", "cudaMalloc3DArray", "cudaMallocArray", "cudaMallocAsync", "cudaMallocHost", "cudaMallocManaged",
    "cudaMallocPitch", "cudaMemPrefetchAsync", "cudaMemcpy", "cudaMemcpy2D", "cudaMemcpy2DAsync", "cudaMemcpy3D",
    "cudaMemcpyAsync", "cudaMemcpyFromSymbol", "cudaMemcpyPeer", "cudaMemcpyPeerAsync", "cudaMemcpyToArray",
    "cudaMemcpyToSymbol", "cudaMemcpyToSymbolAsync", "cudaMemset", "cudaMemsetAsync", "cudaSetDevice",
    "cudaStreamBeginCapture", "cudaStreamCreate", "cudaStreamCreateWithFlags", "cudaStreamCreateWithPriority",
    "cudaStreamEndCapture", "cudaStreamSynchronize", "cudaStreamWaitEvent",
];

/// Calls that allocate and so wait for the device, or lock pages, each time.
const ALLOCATING: &[&str] =
    &["cuMemAlloc", "cudaHostAlloc", "cudaMalloc", "cudaMalloc3D", "cudaMallocArray", "cudaMallocHost", "cudaMallocManaged", "cudaMallocPitch"];

/// Words in a loop where waiting is the point: it measures, checks or shows results, reads them back, or serves several
/// devices or processes.
const WAITING_IS_MEANT: &[&str] = &[
    "ElapsedTime", "chrono", "clock", "gettimeofday", "Timer", "timer", "wtime", "bench", "Bench", "warmup", "Profiler",
    "EventRecord", "verify", "Verify", "compare", "Compare", "DeviceToHost", "cudaMemcpy(", "cudaMemcpyFromSymbol",
    " printf(", "cout", "cudaSetDevice", "barrier", "Barrier", "Process", "ASSERT_", "EXPECT_",
];

/// Adds what the function's calls of the CUDA runtime show.
pub fn check(walker: &Walker, report: &mut Report) {
    if walker.function.kind != FunctionKind::Host || walker.function.name.starts_with('~') {
        return;
    }
    for call in &walker.facts.calls {
        if !call.name.starts_with("cu") {
            continue;
        }
        if call.is_statement && CONSEQUENTIAL.binary_search(&call.name).is_ok() && !checks::follow(walker, call.node) {
            let message = format!("The error that `{}` returns is dropped: what follows runs on even if it failed.", call.name);
            report.add(Code::API_RESULT_IGNORED, call.node, message, "Check the result, as with a macro that prints `cudaGetErrorString` and stops.");
        }
        if let Some(within) = call.within {
            if ALLOCATING.contains(&call.name) {
                allocation(walker, call, within, report);
            } else if WAITING.contains(&call.name) {
                synchronisation(walker, call, within, report);
            }
        }
    }
}

/// The outermost loop around a loop.
fn outermost<'t>(walker: &Walker<'t>, within: u32) -> Option<Loop<'t>> {
    let mut found = *walker.facts.loops.get(within as usize)?;
    while let Some(outer) = found.within.and_then(|id| walker.facts.loops.get(id as usize)) {
        found = *outer;
    }
    Some(found)
}

fn allocation(walker: &Walker, call: &Call, within: u32, report: &mut Report) {
    let Some(innermost) = walker.facts.loops.get(within as usize) else { return };
    let target = call.node.child_by_field_name("arguments").and_then(|list| list.named_child(0)).map_or("", |first| walker.text(first));
    // `&buffers[i]` makes many buffers once; one a device is the same.
    let makes_many = target.contains(['[', '.', '+']) || target.contains("->");
    if makes_many || walker.text(innermost.node).contains("cudaSetDevice") {
        return;
    }
    let message = format!(
        "`{}` runs in each pass of the loop on line {}: allocation is slow and freeing waits for the device.",
        call.name,
        innermost.node.start_position().row + 1
    );
    report.add(Code::MALLOC_IN_LOOP, call.node, message, "Allocate once before the loop and reuse the buffer, or use `cudaMallocAsync` with a pool.");
}

fn synchronisation(walker: &Walker, call: &Call, within: u32, report: &mut Report) {
    let (Some(innermost), Some(outer)) = (walker.facts.loops.get(within as usize), outermost(walker, within)) else { return };
    let text = walker.text(outer.node);
    let launches = walker.facts.launches.iter().any(|launch| contains(innermost.node, launch.node));
    // Waiting for each of several streams ends a phase; it is no wait in each pass of the work.
    let many_streams = walker.text(call.node).contains(['[', '.']) || walker.text(call.node).contains("->");
    if !launches || many_streams || WAITING_IS_MEANT.iter().any(|word| text.contains(word)) {
        return;
    }
    let message = format!(
        "`{}` makes the host wait for the device in each pass of the loop on line {}, so the device idles while the next \
         launch is prepared.",
        call.name,
        innermost.node.start_position().row + 1
    );
    report.add(Code::SYNCHRONIZE_IN_LOOP, call.node, message, "Wait once after the loop: work in one stream runs in order anyway.");
}

fn contains(outer: Node, inner: Node) -> bool {
    outer.start_byte() <= inner.start_byte() && inner.end_byte() <= outer.end_byte()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_is_sorted() {
        assert!(super::CONSEQUENTIAL.is_sorted());
    }
}
