//! Every finding code, in one table: its title, its severity, whether it is on by default, and its page.
//!
//! A code is `producer/slug` and never changes its meaning once released; people write them in `stitchcuda.toml`.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Severity;

/// Who made a finding. The store replaces findings producer by producer, and the user sees it as the code's first part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Producer {
    /// Our own rules over the syntax tree; recomputed while typing.
    Static,
    /// NVIDIA's compiler, on save.
    Nvcc,
    /// NVIDIA's assembler, which knows registers and spills; runs with the compiler.
    Ptxas,
    /// clang's type check between keystrokes, where clang is installed.
    Clang,
    /// Nsight Compute's counters, explained by our rules.
    Ncu,
    /// NVIDIA's compute-sanitizer.
    Sanitizer,
    /// The run of a program as Nsight Systems or PyTorch's profiler recorded it, explained by our rules.
    Nsys,
    /// Our own rewrites: what is offered as an edit, not told as a finding.
    Rewrite,
    /// The simulator, about what a run did.
    Sim,
    /// The Verifier, about a candidate.
    Verify,
}

impl Producer {
    /// The first part of its codes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Nvcc => "nvcc",
            Self::Ptxas => "ptxas",
            Self::Clang => "clang",
            Self::Ncu => "ncu",
            Self::Sanitizer => "sanitizer",
            Self::Nsys => "nsys",
            Self::Rewrite => "rewrite",
            Self::Sim => "sim",
            Self::Verify => "verify",
        }
    }
}

/// The name of one kind of finding: `producer/slug`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(&'static str);

/// One row of the table of codes.
#[derive(Debug)]
pub struct CodeInfo {
    /// The code itself.
    pub code: Code,
    /// Who makes it.
    pub producer: Producer,
    /// How severe it is, unless configured otherwise.
    pub severity: Severity,
    /// One line for lists.
    pub title: &'static str,
    /// Whether it is shown without being asked for. Off where the measured precision is under 18 of 20.
    pub on_by_default: bool,
    /// The page that `stitchcuda explain` and the hover show, in Markdown.
    pub page: &'static str,
}

macro_rules! codes {
    (@on off) => { false };
    (@on) => { true };
    ($($(#[$doc:meta])* $name:ident = $producer:ident $code:literal $severity:ident $title:literal $($off:ident)?;)*) => {
        impl Code {
            $($(#[$doc])* pub const $name: Code = Code($code);)*
        }

        /// Every code there is, sorted by code.
        pub const CODES: &[CodeInfo] = &[$(CodeInfo {
            code: Code::$name,
            producer: Producer::$producer,
            severity: Severity::$severity,
            title: $title,
            on_by_default: codes!(@on $($off)?),
            page: include_str!(concat!("../codes/", $code, ".md")),
        },)*];
    };
}

codes! {
    /// What clang's type check refused between keystrokes.
    CLANG_ERROR = Clang "clang/error" Error "clang reports an error";
    /// Fewer warps resident than could be.
    NCU_ACHIEVED_OCCUPANCY = Ncu "ncu/achieved-occupancy" Hint "Fewer warps are resident than could be";
    /// Atomics that meet at few addresses.
    NCU_ATOMIC_CONTENTION = Ncu "ncu/atomic-contention" Information "Atomics meet at few addresses";
    /// Computing and memory busy alike.
    NCU_BALANCED = Ncu "ncu/balanced" Information "The kernel is balanced between computing and memory";
    /// Lanes that meet in a bank of shared memory.
    NCU_BANK_CONFLICT = Ncu "ncu/bank-conflict" Information "Shared accesses have bank conflicts";
    /// A busy pipe.
    NCU_COMPUTE_BOUND = Ncu "ncu/compute-bound" Information "The kernel is compute-bound";
    /// Warps whose lanes go different ways.
    NCU_DIVERGENCE = Ncu "ncu/divergence" Information "Warps diverge";
    /// Doubles among floats.
    NCU_DOUBLE_PRECISION = Ncu "ncu/double-precision" Information "Float data is computed in double precision";
    /// Fewer blocks than the device holds.
    NCU_GRID_TOO_SMALL = Ncu "ncu/grid-too-small" Information "The grid is too small for the device";
    /// Multiprocessors that wait for the busiest one.
    NCU_IMBALANCE = Ncu "ncu/imbalance" Hint "Multiprocessors have unequal work";
    /// Data read again from device memory.
    NCU_L2_REUSE = Ncu "ncu/l2-reuse" Hint "Shared data is not found in L2";
    /// Neither computing nor memory busy.
    NCU_LATENCY_BOUND = Ncu "ncu/latency-bound" Information "The kernel is latency-bound";
    /// Local memory, not by spills.
    NCU_LOCAL_MEMORY = Ncu "ncu/local-memory" Information "Local memory takes a good part of the traffic";
    /// Few warps can be resident.
    NCU_LOW_OCCUPANCY = Ncu "ncu/low-occupancy" Hint "The occupancy is limited";
    /// A busy level of memory.
    NCU_MEMORY_BOUND = Ncu "ncu/memory-bound" Information "The kernel is memory-bound";
    /// Warps that begin between two sectors.
    NCU_MISALIGNED_ACCESS = Ncu "ncu/misaligned-access" Hint "Warps begin between two sectors of memory";
    /// Registers in local memory, as counted.
    NCU_SPILL = Ncu "ncu/spill" Information "Spilled registers take a good part of the instructions";
    /// What warps wait for.
    NCU_STALL = Ncu "ncu/stall" Hint "Warps wait most of their time for one thing";
    /// A last wave that is not full.
    NCU_TAIL = Ncu "ncu/tail" Hint "The last wave of blocks is not full";
    /// A matrix product without tensor cores.
    NCU_TENSOR_IDLE = Ncu "ncu/tensor-idle" Hint "The tensor cores are idle in a matrix product";
    /// Lanes that are apart in memory.
    NCU_UNCOALESCED_ACCESS = Ncu "ncu/uncoalesced-access" Information "Accesses take more sectors than they need";
    /// Memory allocated while the device waits.
    NSYS_ALLOCATION = Nsys "nsys/allocation" Information "The device is idle while memory is allocated";
    /// Copies that no kernel runs beside.
    NSYS_COPY_OVERLAP = Nsys "nsys/copy-overlap" Information "Copies and kernels do not overlap";
    /// A device that waits.
    NSYS_GPU_IDLE = Nsys "nsys/gpu-idle" Information "The device is idle for a good part of the time";
    /// A host that does something else than launching.
    NSYS_HOST_BOUND = Nsys "nsys/host-bound" Information "The device waits for the host";
    /// A host that launches more slowly than the device works.
    NSYS_LAUNCH_GAP = Nsys "nsys/launch-gap" Information "The device is idle between launches";
    /// Copies through the driver's own buffer.
    NSYS_PAGEABLE_COPY = Nsys "nsys/pageable-copy" Information "Copies from or to pageable memory";
    /// A host that waits, and then a device.
    NSYS_SYNCHRONIZATION = Nsys "nsys/synchronization" Information "The host waits for the device again and again";
    /// Kernels as short as their launches.
    NSYS_TINY_KERNELS = Nsys "nsys/tiny-kernels" Information "Most kernels are as short as their launch";
    /// Where the kernels' time goes.
    NSYS_TOP_KERNEL = Nsys "nsys/top-kernel" Hint "A kernel takes much of the time";
    /// What nvcc refused.
    NVCC_ERROR = Nvcc "nvcc/error" Error "nvcc reports an error";
    /// What nvcc warned of.
    NVCC_WARNING = Nvcc "nvcc/warning" Warning "nvcc warns";
    /// Registers that did not fit went to local memory.
    PTXAS_SPILL = Ptxas "ptxas/spill" Information "Registers spill to local memory";
    /// Pointers of a kernel, marked as what they are.
    CONST_RESTRICT = Rewrite "rewrite/const-restrict" Hint "Add `const` and `__restrict__` to a kernel's pointers";
    /// Double literals among floats, made floats.
    FLOAT_LITERALS = Rewrite "rewrite/float-literals" Hint "Make the literals among floats floats";
    /// One element a thread as a loop over elements a grid apart.
    GRID_STRIDE_LOOP = Rewrite "rewrite/grid-stride-loop" Hint "Loop over elements a grid apart";
    /// The block size of the only launch, told to the compiler.
    LAUNCH_BOUNDS = Rewrite "rewrite/launch-bounds" Hint "Bound the kernel's block size";
    /// A check after a launch.
    LAUNCH_ERROR_CHECK = Rewrite "rewrite/launch-error-check" Hint "Check the launch for errors";
    /// One more element in each row of a shared tile.
    PAD_SHARED_TILE = Rewrite "rewrite/pad-shared-tile" Hint "Pad a shared tile against bank conflicts";
    /// A power with a small constant exponent, as a product.
    POWERS_TO_PRODUCTS = Rewrite "rewrite/powers-to-products" Hint "Write small powers as products";
    /// A reduction tree whose working threads stay together.
    SEQUENTIAL_ADDRESSING = Rewrite "rewrite/sequential-addressing" Hint "Keep the working threads of a reduction together";
    /// A copy that is strided on one side, through a tile in shared memory.
    TILED_TRANSPOSE = Rewrite "rewrite/tiled-transpose" Hint "Transpose through a shared tile";
    /// An elementwise kernel with loads and stores of 16 bytes.
    VECTOR_ACCESS = Rewrite "rewrite/vector-access" Hint "Load and store four elements at once";
    /// One atomic for the lanes of a warp.
    WARP_AGGREGATED_ATOMICS = Rewrite "rewrite/warp-aggregated-atomics" Hint "Do one atomic for a warp";
    /// The last steps of a block's reduction by shuffles.
    WARP_SHUFFLE_TAIL = Rewrite "rewrite/warp-shuffle-tail" Hint "Finish the block reduction with warp shuffles";
    /// A CUDA call that returned an error.
    SANITIZER_API_ERROR = Sanitizer "sanitizer/api-error" Warning "A CUDA API call returns an error";
    /// A barrier that not all threads reach.
    SANITIZER_BARRIER = Sanitizer "sanitizer/barrier" Warning "A barrier is used wrongly";
    /// A fault that the hardware reported.
    SANITIZER_EXCEPTION = Sanitizer "sanitizer/exception" Warning "The device reports a fault";
    /// A pointer freed twice, or never allocated.
    SANITIZER_INVALID_FREE = Sanitizer "sanitizer/invalid-free" Warning "Memory is freed that is not allocated";
    /// Memory that nobody frees.
    SANITIZER_LEAK = Sanitizer "sanitizer/leak" Warning "Device memory is never freed";
    /// An address that is no multiple of the access.
    SANITIZER_MISALIGNED = Sanitizer "sanitizer/misaligned" Warning "An address is misaligned";
    /// Anything that the table does not know.
    SANITIZER_OTHER = Sanitizer "sanitizer/other" Warning "compute-sanitizer reports an error";
    /// An access outside of every allocation.
    SANITIZER_OUT_OF_BOUNDS = Sanitizer "sanitizer/out-of-bounds" Warning "An access is out of bounds";
    /// Two threads at one address without a barrier.
    SANITIZER_RACE = Sanitizer "sanitizer/race" Warning "Threads race for shared memory";
    /// Memory that was read before it was written.
    SANITIZER_UNINITIALIZED_READ = Sanitizer "sanitizer/uninitialized-read" Warning "Memory is read before it is written";
    /// Memory that is allocated for nothing.
    SANITIZER_UNUSED_MEMORY = Sanitizer "sanitizer/unused-memory" Hint "Allocated device memory is not used";
    /// Two blocks of a launch touch one word of global memory, one of them writing.
    SIM_BLOCK_RACE = Sim "sim/block-race" Information "Blocks of one launch race in global memory";
    /// A barrier of the block that some lanes of a warp pass by.
    SIM_DIVERGENT_BARRIER = Sim "sim/divergent-barrier" Warning "A barrier is not reached by all threads";
    /// Memory freed twice.
    SIM_DOUBLE_FREE = Sim "sim/double-free" Warning "Memory is freed that is not allocated";
    /// An address of the host's, used by a kernel.
    SIM_HOST_POINTER = Sim "sim/host-pointer" Error "A kernel uses a pointer to host memory";
    /// A launch that no device accepts.
    SIM_INVALID_LAUNCH = Sim "sim/invalid-launch" Error "A launch is refused";
    /// An access at an address that is not a multiple of its size.
    SIM_MISALIGNED = Sim "sim/misaligned" Error "A misaligned access";
    /// A mask of a warp that does not fit who executes it.
    SIM_MISSING_LANES = Sim "sim/missing-lanes" Warning "A warp instruction names lanes that are not there";
    /// An access beside what was allocated.
    SIM_OUT_OF_BOUNDS = Sim "sim/out-of-bounds" Warning "An access out of bounds";
    /// Threads of a block race in shared memory.
    SIM_SHARED_RACE = Sim "sim/shared-race" Warning "Threads race in shared memory";
    /// More stack than a thread has.
    SIM_STACK_OVERFLOW = Sim "sim/stack-overflow" Error "A thread's stack overflows";
    /// A read of what nothing has written.
    SIM_UNINITIALISED_READ = Sim "sim/uninitialised-read" Warning "Memory is read that nothing has written";
    /// An access to memory that was freed.
    SIM_USE_AFTER_FREE = Sim "sim/use-after-free" Warning "Memory is used after it was freed";
    /// A CUDA API call whose error is dropped.
    API_RESULT_IGNORED = Static "static/api-result-ignored" Hint "The result of a CUDA API call is ignored";
    /// A block of more than 1024 threads, or not a multiple of the warp.
    BLOCK_SIZE = Static "static/block-size" Information "The block size wastes lanes or can not launch";
    /// A tensor made on the CPU and then moved.
    CPU_TENSOR_MOVED = Static "static/cpu-tensor-moved" Information "A tensor is made on the CPU and then moved to the GPU" off;
    /// A reduction tree in which neighbouring threads diverge.
    DIVERGENT_REDUCTION = Static "static/divergent-reduction" Information "The reduction tree diverges within each warp";
    /// A double literal that promotes float arithmetic.
    DOUBLE_LITERAL = Static "static/double-literal" Information "A double literal promotes float arithmetic to double";
    /// `.item()` in a loop waits for the GPU each time.
    ITEM_IN_LOOP = Static "static/item-in-loop" Information "`.item()` in a loop waits for the GPU each time" off;
    /// Memory allocated again and again.
    MALLOC_IN_LOOP = Static "static/malloc-in-loop" Information "Device memory is allocated in a loop" off;
    /// A store to global memory by an index that nothing bounds.
    MISSING_BOUNDS_GUARD = Static "static/missing-bounds-guard" Warning "A global index is used without a bounds check" off;
    /// `pow` with a small integer exponent.
    POW_SMALL_EXPONENT = Static "static/pow-small-exponent" Information "`pow` with a small integer exponent";
    /// The fast axis of a row-major array is not `threadIdx.x`.
    ROW_MAJOR_SLOW_AXIS = Static "static/row-major-slow-axis" Information "threadIdx.x walks the slow axis of a row-major array";
    /// A shared tile read down a column of 32 words.
    SHARED_BANK_CONFLICT = Static "static/shared-bank-conflict" Information "A shared tile is read with a stride of 32 words";
    /// The host waits for the device in a loop.
    SYNCHRONIZE_IN_LOOP = Static "static/synchronize-in-loop" Information "The host waits for the device in a loop";
    /// A launch whose error nobody asks for.
    UNCHECKED_LAUNCH = Static "static/unchecked-launch" Hint "A kernel launch is not checked for errors" off;
    /// An index that scales threadIdx.x by a constant.
    UNCOALESCED_ACCESS = Static "static/uncoalesced-access" Information "Neighbouring threads access memory with a stride";
    /// A candidate that does not compile.
    VERIFY_BUILD_FAILED = Verify "verify/build-failed" Error "The candidate does not compile";
    /// A candidate that ended by a signal, by another exit status, or by a fault on the device.
    VERIFY_CRASHED = Verify "verify/crashed" Error "The candidate crashes";
    /// A task that takes no work.
    VERIFY_DEGENERATE_TASK = Verify "verify/degenerate-task" Information "An answer without any work would pass";
    /// Work put off, a clock touched, inputs changed.
    VERIFY_DISHONEST = Verify "verify/dishonest" Error "The candidate does not do its work where it is measured";
    /// Inputs that could not be changed.
    VERIFY_INPUTS_FIXED = Verify "verify/inputs-fixed" Information "The candidate saw only the program's own inputs";
    /// Nothing of the answer could be compared.
    VERIFY_NOTHING_COMPARED = Verify "verify/nothing-compared" Error "Nothing was there to compare";
    /// A format narrower than the reference's.
    VERIFY_PRECISION_LOWERED = Verify "verify/precision-lowered" Error "The candidate computes in a lower precision";
    /// What compute-sanitizer found.
    VERIFY_SANITIZER = Verify "verify/sanitizer" Error "compute-sanitizer reports errors in the candidate";
    /// A candidate that does not come to an end.
    VERIFY_TIMEOUT = Verify "verify/timeout" Error "The candidate does not come to an end";
    /// Another answer than the reference's.
    VERIFY_WRONG_RESULT = Verify "verify/wrong-result" Error "The candidate computes something else";
}

impl Code {
    /// The code with this name, if there is one.
    pub fn parse(name: &str) -> Option<Self> {
        CODES.iter().find(|info| info.code.0 == name).map(|info| info.code)
    }

    /// `producer/slug`.
    pub fn as_str(self) -> &'static str {
        self.0
    }

    /// Its row in the table.
    pub fn info(self) -> &'static CodeInfo {
        // A `Code` can only be one of the table's constants, so the fallback is never taken.
        CODES.iter().find(|info| info.code == self).unwrap_or(&CODES[0])
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0)
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Code::parse(&name)
            .ok_or_else(|| serde::de::Error::custom(format!("no finding has the code `{name}`")))
    }
}

impl schemars::JsonSchema for Code {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Code".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[a-z]+/[a-z-]+$", "description": "`producer/slug`; `stitchcuda explain CODE` has its page." })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_each_code_starts_with_its_producer() {
        assert!(CODES.windows(2).all(|pair| pair[0].code < pair[1].code));
        for info in CODES {
            assert!(info.code.0.starts_with(&format!("{}/", info.producer.as_str())), "{}", info.code);
            assert_eq!(Code::parse(info.code.0), Some(info.code));
        }
    }

    #[test]
    fn every_page_has_a_heading_an_example_and_a_source() {
        for info in CODES {
            assert!(
                info.page.starts_with(&format!("# {}\n", info.code)),
                "{}: the heading is the code",
                info.code
            );
            assert!(info.page.contains("## "), "{}: the page has sections", info.code);
            assert!(info.page.contains("Source"), "{}: the page names its source", info.code);
        }
    }
}
