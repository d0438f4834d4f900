//! The host's calls of the CUDA runtime: `static/api-result-ignored`, `static/malloc-in-loop`,
//! `static/synchronize-in-loop`.

use std::collections::HashMap;

use stitch_findings::Code;

use tree_sitter::Node;

use super::checks::{Checks, WAITING};
use super::facts::Call;
use super::report::Report;
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
const ALLOCATING: &[&str] = &[
    "cuMemAlloc",
    "cudaHostAlloc",
    "cudaMalloc",
    "cudaMalloc3D",
    "cudaMallocArray",
    "cudaMallocHost",
    "cudaMallocManaged",
    "cudaMallocPitch",
];

/// Words in a loop where waiting is the point: it measures, checks or shows results, reads them back, or serves several
/// devices or processes.
const WAITING_IS_MEANT: &[&str] = &[
    "ElapsedTime",
    "chrono",
    "clock",
    "gettimeofday",
    "Timer",
    "timer",
    "wtime",
    "bench",
    "Bench",
    "warmup",
    "Profiler",
    "EventRecord",
    "verify",
    "Verify",
    "compare",
    "Compare",
    "DeviceToHost",
    "cudaMemcpy(",
    "cudaMemcpyFromSymbol",
    " printf(",
    "cout",
    "cudaSetDevice",
    "barrier",
    "Barrier",
    "Process",
    "ASSERT_",
    "EXPECT_",
];

/// Adds what the function's calls of the CUDA runtime show.
pub fn check(walker: &Walker, report: &mut Report) {
    if walker.function.kind != FunctionKind::Host || walker.function.name.starts_with('~') {
        return;
    }
    let calls: Vec<&Call> = walker.facts.calls.iter().filter(|call| call.name.starts_with("cu")).collect();
    if calls.is_empty() {
        return;
    }
    let checks = Checks::of(walker);
    let mut loops = Loops::of(walker);
    for call in calls {
        let is_dropped = call.is_statement && CONSEQUENTIAL.binary_search(&call.name).is_ok();
        if is_dropped && !checks.follow(call.node) {
            let message = format!(
                "The error that `{}` returns is dropped: what follows runs on even if it failed.",
                call.name
            );
            let advice = "Check the result, as with a macro that prints `cudaGetErrorString` and stops.";
            report.add(Code::API_RESULT_IGNORED, call.node, message, advice);
        }
        if let Some(within) = call.within {
            if ALLOCATING.contains(&call.name) {
                allocation(&mut loops, call, within, report);
            } else if WAITING.contains(&call.name) {
                synchronisation(&mut loops, call, within, report);
            }
        }
    }
}

/// What is asked about loops, each answer looked for once.
struct Loops<'w, 't> {
    walker: &'w Walker<'t>,
    /// The starts of all launches, in order.
    launches: Vec<usize>,
    meant: HashMap<u32, bool>,
    by_device: HashMap<u32, bool>,
}

impl<'w, 't> Loops<'w, 't> {
    fn of(walker: &'w Walker<'t>) -> Self {
        let mut launches: Vec<usize> =
            walker.facts.launches.iter().map(|launch| launch.node.start_byte()).collect();
        launches.sort_unstable();
        Self { walker, launches, meant: HashMap::new(), by_device: HashMap::new() }
    }

    fn node(&self, id: u32) -> Option<Node<'t>> {
        self.walker.facts.loops.get(id as usize).map(|found| found.node)
    }

    fn outermost(&self, id: u32) -> u32 {
        self.walker.facts.loops.get(id as usize).map_or(id, |found| found.outermost)
    }

    /// Whether the loop launches kernels.
    fn launches(&self, id: u32) -> bool {
        let Some(node) = self.node(id) else { return false };
        let first = self.launches.partition_point(|start| *start < node.start_byte());
        self.launches.get(first).is_some_and(|start| *start < node.end_byte())
    }

    /// Whether waiting is what the loop is for.
    fn waiting_is_meant(&mut self, id: u32) -> bool {
        let text = self.node(id).map_or("", |node| self.walker.text(node));
        *self.meant.entry(id).or_insert_with(|| WAITING_IS_MEANT.iter().any(|word| text.contains(word)))
    }

    /// Whether the loop goes over devices.
    fn goes_over_devices(&mut self, id: u32) -> bool {
        let text = self.node(id).map_or("", |node| self.walker.text(node));
        *self.by_device.entry(id).or_insert_with(|| text.contains("cudaSetDevice"))
    }
}

fn allocation(loops: &mut Loops, call: &Call, within: u32, report: &mut Report) {
    let target = call.node.child_by_field_name("arguments").and_then(|list| list.named_child(0));
    let target = target.map_or("", |first| loops.walker.text(first));
    // `&buffers[i]` makes many buffers once; one a device is the same.
    let makes_many = target.contains(['[', '.', '+']) || target.contains("->");
    if makes_many || loops.goes_over_devices(within) {
        return;
    }
    let message = format!(
        "`{}` runs in each pass of the loop around it: allocation is slow and freeing waits for the device.",
        call.name
    );
    let advice = "Allocate once before the loop and reuse the buffer, or use `cudaMallocAsync` with a pool.";
    report.add(Code::MALLOC_IN_LOOP, call.node, message, advice);
}

fn synchronisation(loops: &mut Loops, call: &Call, within: u32, report: &mut Report) {
    // Waiting for each of several streams ends a phase; it is no wait in each pass of the work.
    let text = loops.walker.text(call.node);
    let many_streams = text.contains(['[', '.']) || text.contains("->");
    if many_streams || !loops.launches(within) || loops.waiting_is_meant(loops.outermost(within)) {
        return;
    }
    let message = format!(
        "`{}` makes the host wait for the device in each pass of the loop around it, so the device idles while the next \
         launch is prepared.",
        call.name
    );
    report.add(
        Code::SYNCHRONIZE_IN_LOOP,
        call.node,
        message,
        "Wait once after the loop: work in one stream runs in order anyway.",
    );
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_is_sorted() {
        assert!(super::CONSEQUENTIAL.is_sorted());
    }
}
