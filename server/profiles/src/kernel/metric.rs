//! The metrics that rules know, in one table: our name, the unit, and every name that versions and chips gave it.
//!
//! Profilers rename counters between versions (`dram__bytes_read.sum` became `dram__bytes_op_read.sum` on newer chips), and a details page
//! shows labels in place of names. Rules speak of the names here alone.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a metric's values are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Unit {
    /// A plain number.
    Count,
    /// From 0 to 100, with rare excess from counters taken in different passes.
    Percent,
    /// Bytes.
    Bytes,
    /// Bytes a second.
    BytesPerSecond,
    /// Seconds.
    Seconds,
    /// Hertz.
    Hertz,
    /// A ratio of two counts.
    Ratio,
}

/// One row of the table of metrics.
#[derive(Debug)]
pub struct MetricInfo {
    /// Our name.
    pub metric: Metric,
    /// The unit of its values in [`KernelLaunch::metrics`](super::KernelLaunch::metrics).
    pub unit: Unit,
    /// Its names in Nsight Compute, the preferred one first.
    pub names: &'static [&'static str],
    /// Its section and label on the details page, where it has them.
    pub label: Option<(&'static str, &'static str)>,
    /// What it is, for a table that people read.
    pub title: &'static str,
}

macro_rules! metrics {
    (@label) => { None };
    (@label $section:literal $label:literal) => { Some(($section, $label)) };
    ($($name:ident $unit:ident $title:literal [$($alias:literal),* $(,)?] $(in $section:literal as $label:literal)?;)*) => {
        /// A metric that rules know. Its title says what it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase")]
        pub enum Metric {
            $(#[doc = $title] $name,)*
        }

        /// Every metric there is.
        ///
        /// Names: Nsight Compute's Metrics Reference and its shipped section files as public tools quote them, and exports of 2020.3 to
        /// 2025.3; labels: the details pages of the same.
        pub const METRICS: &[MetricInfo] = &[$(MetricInfo {
            metric: Metric::$name,
            unit: Unit::$unit,
            names: &[$($alias),*],
            label: metrics!(@label $($section $label)?),
            title: $title,
        },)*];
    };
}

metrics! {
    Duration Seconds "duration under the profiler" ["gpu__time_duration.sum", "gpu__time_duration.avg"]
        in "GPU Speed Of Light Throughput" as "Duration";
    SmThroughput Percent "compute throughput, of the peak" ["sm__throughput.avg.pct_of_peak_sustained_elapsed", "sm__sol_pct"]
        in "GPU Speed Of Light Throughput" as "Compute (SM) Throughput";
    MemoryThroughput Percent "memory throughput, of the peak of its busiest part"
        ["gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "gpu__compute_memory_sol_pct"]
        in "GPU Speed Of Light Throughput" as "Memory Throughput";
    DramThroughput Percent "device memory throughput, of the peak"
        ["gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "dram__throughput.avg.pct_of_peak_sustained_elapsed"]
        in "GPU Speed Of Light Throughput" as "DRAM Throughput";
    L2Throughput Percent "L2 throughput, of the peak" ["lts__throughput.avg.pct_of_peak_sustained_elapsed"]
        in "GPU Speed Of Light Throughput" as "L2 Cache Throughput";
    L1Throughput Percent "L1 and shared memory throughput, of the peak" ["l1tex__throughput.avg.pct_of_peak_sustained_elapsed"];
    L1ThroughputActive Percent "L1 and shared memory throughput, of the peak while active"
        ["l1tex__throughput.avg.pct_of_peak_sustained_active"]
        in "GPU Speed Of Light Throughput" as "L1/TEX Cache Throughput";
    MemoryBusy Percent "busiest memory unit" ["gpu__compute_memory_access_throughput.avg.pct_of_peak_sustained_elapsed"]
        in "Memory Workload Analysis" as "Mem Busy";
    MemoryBandwidth Percent "busiest link between memory units"
        ["gpu__compute_memory_request_throughput.avg.pct_of_peak_sustained_elapsed"]
        in "Memory Workload Analysis" as "Max Bandwidth";
    MemoryPipes Percent "memory instructions in the multiprocessor's pipes"
        ["sm__memory_throughput.avg.pct_of_peak_sustained_elapsed"]
        in "Memory Workload Analysis" as "Mem Pipes Busy";
    DramRead Bytes "read from device memory" ["dram__bytes_read.sum", "dram__bytes_op_read.sum"];
    DramWritten Bytes "written to device memory" ["dram__bytes_write.sum", "dram__bytes_op_write.sum"];
    DramRate BytesPerSecond "device memory traffic" ["dram__bytes.sum.per_second"]
        in "Memory Workload Analysis" as "Memory Throughput";
    L2HitRate Percent "L2 hit rate" ["lts__t_sector_hit_rate.pct"]
        in "Memory Workload Analysis" as "L2 Hit Rate";
    L1HitRate Percent "L1 hit rate" ["l1tex__t_sector_hit_rate.pct"]
        in "Memory Workload Analysis" as "L1/TEX Hit Rate";
    L2ReadsFromL1 Count "sectors read through L1 from L2"
        ["lts__t_sectors_srcunit_tex_op_read.sum", "lts__t_sectors_op_read.sum"];
    LoadBytesPerSector Ratio "bytes used of the 32 in a sector, global loads"
        ["smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio"];
    StoreBytesPerSector Ratio "bytes used of the 32 in a sector, global stores"
        ["smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio"];
    LoadSectorsPerRequest Ratio "sectors a request, global loads"
        ["l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"];
    StoreSectorsPerRequest Ratio "sectors a request, global stores"
        ["l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio"];
    LoadSectors Count "sectors that global loads ask for" ["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"];
    StoreSectors Count "sectors that global stores ask for" ["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"];
    GlobalLoads Count "global load instructions of warps" ["smsp__sass_inst_executed_op_global_ld.sum", "smsp__inst_executed_op_global_ld.sum"];
    GlobalStores Count "global store instructions of warps" ["smsp__sass_inst_executed_op_global_st.sum", "smsp__inst_executed_op_global_st.sum"];
    GlobalSectors Count "sectors that global accesses ask for"
        ["memory_l2_theoretical_sectors_global"];
    GlobalSectorsIdeal Count "sectors that they need at least"
        ["memory_l2_theoretical_sectors_global_ideal"];
    SharedLoadConflicts Count "bank conflicts of shared loads, arbitration included"
        ["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"];
    SharedStoreConflicts Count "bank conflicts of shared stores, arbitration included"
        ["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"];
    SharedLoadWavefronts Count "wavefronts of shared loads" ["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"];
    SharedStoreWavefronts Count "wavefronts of shared stores" ["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"];
    SharedWavefronts Count "wavefronts of shared accesses" ["memory_l1_wavefronts_shared"];
    SharedWavefrontsIdeal Count "wavefronts that shared accesses need at least" ["memory_l1_wavefronts_shared_ideal"];
    SpillRequests Count "requests to local memory that register spills made" ["derived__local_spilling_requests"]
        in "Memory Workload Analysis" as "Local Memory Spilling Requests";
    LocalLoads Count "local load instructions of warps" ["smsp__sass_inst_executed_op_local_ld.sum", "smsp__inst_executed_op_local_ld.sum"];
    LocalStores Count "local store instructions of warps" ["smsp__sass_inst_executed_op_local_st.sum", "smsp__inst_executed_op_local_st.sum"];
    Instructions Count "instructions of warps" ["smsp__inst_executed.sum", "sm__inst_executed.sum", "inst_executed"]
        in "Instruction Statistics" as "Executed Instructions";
    AchievedOccupancy Percent "warps resident, of the most" ["sm__warps_active.avg.pct_of_peak_sustained_active"]
        in "Occupancy" as "Achieved Occupancy";
    TheoreticalOccupancy Percent "warps that can be resident, of the most" ["sm__maximum_warps_per_active_cycle_pct"]
        in "Occupancy" as "Theoretical Occupancy";
    LimitRegisters Count "blocks a multiprocessor by registers" ["launch__occupancy_limit_registers"]
        in "Occupancy" as "Block Limit Registers";
    LimitSharedMemory Count "blocks a multiprocessor by shared memory" ["launch__occupancy_limit_shared_mem"]
        in "Occupancy" as "Block Limit Shared Mem";
    LimitWarps Count "blocks a multiprocessor by warps" ["launch__occupancy_limit_warps"]
        in "Occupancy" as "Block Limit Warps";
    LimitBlocks Count "blocks a multiprocessor by its block slots" ["launch__occupancy_limit_blocks"]
        in "Occupancy" as "Block Limit SM";
    LimitBarriers Count "blocks a multiprocessor by barriers" ["launch__occupancy_limit_barriers"]
        in "Occupancy" as "Block Limit Barriers";
    Registers Count "registers a thread" ["launch__registers_per_thread"]
        in "Launch Statistics" as "Registers Per Thread";
    SharedMemoryStatic Bytes "static shared memory a block" ["launch__shared_mem_per_block_static"]
        in "Launch Statistics" as "Static Shared Memory Per Block";
    SharedMemoryDynamic Bytes "dynamic shared memory a block" ["launch__shared_mem_per_block_dynamic"]
        in "Launch Statistics" as "Dynamic Shared Memory Per Block";
    Waves Ratio "waves of blocks over the device" ["launch__waves_per_multiprocessor"]
        in "Launch Statistics" as "Waves Per SM";
    GridSize Count "blocks in the grid" ["launch__grid_size"] in "Launch Statistics" as "Grid Size";
    BlockSize Count "threads a block" ["launch__block_size"] in "Launch Statistics" as "Block Size";
    Multiprocessors Count "multiprocessors of the device" ["launch__sm_count", "device__attribute_multiprocessor_count"]
        in "Launch Statistics" as "# SMs";
    SmCyclesActive Count "cycles in which a multiprocessor was active, mean" ["sm__cycles_active.avg"]
        in "GPU Speed Of Light Throughput" as "SM Active Cycles";
    SmCyclesActiveMax Count "the same, the busiest multiprocessor" ["sm__cycles_active.max"];
    SmCyclesActiveMin Count "the same, the idlest multiprocessor" ["sm__cycles_active.min"];
    SmCyclesElapsed Count "cycles from begin to end" ["sm__cycles_elapsed.avg", "sm__cycles_elapsed.max", "gpc__cycles_elapsed.max"]
        in "GPU Speed Of Light Throughput" as "Elapsed Cycles";
    SmFrequency Hertz "clock of the multiprocessors"
        ["sm__cycles_elapsed.avg.per_second", "smsp__cycles_elapsed.avg.per_second", "gpc__cycles_elapsed.avg.per_second"]
        in "GPU Speed Of Light Throughput" as "SM Frequency";
    IssueActive Ratio "instructions a scheduler issues each cycle" ["smsp__issue_active.avg.per_cycle_active"]
        in "Scheduler Statistics" as "Issued Warp Per Scheduler";
    WarpsActive Ratio "warps a scheduler has" ["smsp__warps_active.avg.per_cycle_active"]
        in "Scheduler Statistics" as "Active Warps Per Scheduler";
    WarpsEligible Ratio "warps of these that could issue" ["smsp__warps_eligible.avg.per_cycle_active"]
        in "Scheduler Statistics" as "Eligible Warps Per Scheduler";
    WarpsMaximum Ratio "warps a scheduler can have" ["smsp__maximum_warps_avg_per_active_cycle", "smsp__warps_active.avg.peak_sustained"];
    ThreadsPerInstruction Ratio "threads active in an instruction of a warp" ["smsp__thread_inst_executed_per_inst_executed.ratio"]
        in "Warp State Statistics" as "Avg. Active Threads Per Warp";
    ThreadsOnPerInstruction Ratio "threads active and not predicated off" ["smsp__thread_inst_executed_pred_on_per_inst_executed.ratio"]
        in "Warp State Statistics" as "Avg. Not Predicated Off Threads Per Warp";
    CyclesPerInstruction Ratio "cycles of a warp between two instructions"
        ["smsp__average_warp_latency_per_inst_issued.ratio", "smsp__average_warps_active_per_issue_active.ratio",
         "smsp__average_warps_active_per_inst_executed.ratio"]
        in "Warp State Statistics" as "Warp Cycles Per Issued Instruction";
    StallLongScoreboard Ratio "cycles waiting for global, local or texture memory"
        ["smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", "smsp__average_warp_latency_issue_stalled_long_scoreboard.ratio"];
    StallShortScoreboard Ratio "cycles waiting for shared memory or special functions"
        ["smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio", "smsp__average_warp_latency_issue_stalled_short_scoreboard.ratio"];
    StallMioThrottle Ratio "cycles waiting for the queue to shared memory and special functions"
        ["smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio", "smsp__average_warp_latency_issue_stalled_mio_throttle.ratio"];
    StallLgThrottle Ratio "cycles waiting for the queue to global and local memory"
        ["smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio", "smsp__average_warp_latency_issue_stalled_lg_throttle.ratio"];
    StallBarrier Ratio "cycles waiting at a barrier"
        ["smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", "smsp__average_warp_latency_issue_stalled_barrier.ratio"];
    StallMathPipe Ratio "cycles waiting for a math pipe"
        ["smsp__average_warps_issue_stalled_math_pipe_throttle_per_issue_active.ratio", "smsp__average_warp_latency_issue_stalled_math_pipe_throttle.ratio"];
    StallWait Ratio "cycles waiting a fixed latency"
        ["smsp__average_warps_issue_stalled_wait_per_issue_active.ratio", "smsp__average_warp_latency_issue_stalled_wait.ratio"];
    StallNoInstruction Ratio "cycles waiting for the next instruction"
        ["smsp__average_warps_issue_stalled_no_instruction_per_issue_active.ratio", "smsp__average_warp_latency_issue_stalled_no_instruction.ratio",
         "smsp__average_warps_issue_stalled_no_instructions_per_issue_active.ratio"];
    StallDrain Ratio "cycles after the end, waiting for stores"
        ["smsp__average_warps_issue_stalled_drain_per_issue_active.ratio", "smsp__average_warp_latency_issue_stalled_drain.ratio"];
    StallBranchResolving Ratio "cycles waiting for a branch target"
        ["smsp__average_warps_issue_stalled_branch_resolving_per_issue_active.ratio", "smsp__average_warp_latency_issue_stalled_branch_resolving.ratio"];
    StallImcMiss Ratio "cycles waiting for constants"
        ["smsp__average_warps_issue_stalled_imc_miss_per_issue_active.ratio", "smsp__average_warp_latency_issue_stalled_imc_miss.ratio"];
    StallTexThrottle Ratio "cycles waiting for the texture queue"
        ["smsp__average_warps_issue_stalled_tex_throttle_per_issue_active.ratio", "smsp__average_warp_latency_issue_stalled_tex_throttle.ratio"];
    StallMembar Ratio "cycles waiting for a memory fence"
        ["smsp__average_warps_issue_stalled_membar_per_issue_active.ratio", "smsp__average_warp_latency_issue_stalled_membar.ratio"];
    StallSleeping Ratio "cycles asleep"
        ["smsp__average_warps_issue_stalled_sleeping_per_issue_active.ratio", "smsp__average_warp_latency_issue_stalled_sleeping.ratio"];
    StallDispatch Ratio "cycles held at dispatch"
        ["smsp__average_warps_issue_stalled_dispatch_stall_per_issue_active.ratio", "smsp__average_warp_latency_issue_stalled_dispatch_stall.ratio"];
    StallNotSelected Ratio "cycles ready, while another warp issued"
        ["smsp__average_warps_issue_stalled_not_selected_per_issue_active.ratio", "smsp__average_warp_latency_issue_stalled_not_selected.ratio"];
    StallGmma Ratio "cycles waiting for warpgroup matrix instructions"
        ["smsp__average_warps_issue_stalled_gmma_per_issue_active.ratio", "smsp__average_warp_latency_issue_stalled_gmma.ratio"];
    Samples Count "samples of warps" ["smsp__pcsamp_sample_count"];
    SampledLongScoreboard Count "samples of warps that stall: long scoreboard" ["smsp__pcsamp_warps_issue_stalled_long_scoreboard"];
    PartLongScoreboard Percent "part of a warp's cycles: long scoreboard" ["smsp__warp_issue_stalled_long_scoreboard_per_warp_active.pct",
        "smsp__average_warp_latency_issue_stalled_long_scoreboard_per_warp_active.pct"];
    SampledShortScoreboard Count "samples of warps that stall: short scoreboard" ["smsp__pcsamp_warps_issue_stalled_short_scoreboard"];
    PartShortScoreboard Percent "part of a warp's cycles: short scoreboard" ["smsp__warp_issue_stalled_short_scoreboard_per_warp_active.pct",
        "smsp__average_warp_latency_issue_stalled_short_scoreboard_per_warp_active.pct"];
    SampledMioThrottle Count "samples of warps that stall: mio throttle" ["smsp__pcsamp_warps_issue_stalled_mio_throttle"];
    PartMioThrottle Percent "part of a warp's cycles: mio throttle" ["smsp__warp_issue_stalled_mio_throttle_per_warp_active.pct",
        "smsp__average_warp_latency_issue_stalled_mio_throttle_per_warp_active.pct"];
    SampledLgThrottle Count "samples of warps that stall: lg throttle" ["smsp__pcsamp_warps_issue_stalled_lg_throttle"];
    PartLgThrottle Percent "part of a warp's cycles: lg throttle" ["smsp__warp_issue_stalled_lg_throttle_per_warp_active.pct",
        "smsp__average_warp_latency_issue_stalled_lg_throttle_per_warp_active.pct"];
    SampledBarrier Count "samples of warps that stall: barrier" ["smsp__pcsamp_warps_issue_stalled_barrier"];
    PartBarrier Percent "part of a warp's cycles: barrier" ["smsp__warp_issue_stalled_barrier_per_warp_active.pct",
        "smsp__average_warp_latency_issue_stalled_barrier_per_warp_active.pct"];
    SampledMathPipe Count "samples of warps that stall: math pipe throttle" ["smsp__pcsamp_warps_issue_stalled_math_pipe_throttle"];
    PartMathPipe Percent "part of a warp's cycles: math pipe throttle" ["smsp__warp_issue_stalled_math_pipe_throttle_per_warp_active.pct",
        "smsp__average_warp_latency_issue_stalled_math_pipe_throttle_per_warp_active.pct"];
    SampledWait Count "samples of warps that stall: wait" ["smsp__pcsamp_warps_issue_stalled_wait"];
    PartWait Percent "part of a warp's cycles: wait" ["smsp__warp_issue_stalled_wait_per_warp_active.pct",
        "smsp__average_warp_latency_issue_stalled_wait_per_warp_active.pct"];
    SampledNoInstruction Count "samples of warps that stall: no instructions" ["smsp__pcsamp_warps_issue_stalled_no_instructions"];
    PartNoInstruction Percent "part of a warp's cycles: no instructions" ["smsp__warp_issue_stalled_no_instruction_per_warp_active.pct",
        "smsp__average_warp_latency_issue_stalled_no_instruction_per_warp_active.pct"];
    SampledDrain Count "samples of warps that stall: drain" ["smsp__pcsamp_warps_issue_stalled_drain"];
    PartDrain Percent "part of a warp's cycles: drain" ["smsp__warp_issue_stalled_drain_per_warp_active.pct",
        "smsp__average_warp_latency_issue_stalled_drain_per_warp_active.pct"];
    SampledBranchResolving Count "samples of warps that stall: branch resolving" ["smsp__pcsamp_warps_issue_stalled_branch_resolving"];
    PartBranchResolving Percent "part of a warp's cycles: branch resolving" ["smsp__warp_issue_stalled_branch_resolving_per_warp_active.pct",
        "smsp__average_warp_latency_issue_stalled_branch_resolving_per_warp_active.pct"];
    SampledImcMiss Count "samples of warps that stall: imc miss" ["smsp__pcsamp_warps_issue_stalled_imc_miss"];
    PartImcMiss Percent "part of a warp's cycles: imc miss" ["smsp__warp_issue_stalled_imc_miss_per_warp_active.pct",
        "smsp__average_warp_latency_issue_stalled_imc_miss_per_warp_active.pct"];
    SampledTexThrottle Count "samples of warps that stall: tex throttle" ["smsp__pcsamp_warps_issue_stalled_tex_throttle"];
    PartTexThrottle Percent "part of a warp's cycles: tex throttle" ["smsp__warp_issue_stalled_tex_throttle_per_warp_active.pct",
        "smsp__average_warp_latency_issue_stalled_tex_throttle_per_warp_active.pct"];
    SampledMembar Count "samples of warps that stall: membar" ["smsp__pcsamp_warps_issue_stalled_membar"];
    PartMembar Percent "part of a warp's cycles: membar" ["smsp__warp_issue_stalled_membar_per_warp_active.pct",
        "smsp__average_warp_latency_issue_stalled_membar_per_warp_active.pct"];
    SampledSleeping Count "samples of warps that stall: sleeping" ["smsp__pcsamp_warps_issue_stalled_sleeping"];
    PartSleeping Percent "part of a warp's cycles: sleeping" ["smsp__warp_issue_stalled_sleeping_per_warp_active.pct",
        "smsp__average_warp_latency_issue_stalled_sleeping_per_warp_active.pct"];
    SampledDispatch Count "samples of warps that stall: dispatch stall" ["smsp__pcsamp_warps_issue_stalled_dispatch_stall"];
    PartDispatch Percent "part of a warp's cycles: dispatch stall" ["smsp__warp_issue_stalled_dispatch_stall_per_warp_active.pct",
        "smsp__average_warp_latency_issue_stalled_dispatch_stall_per_warp_active.pct"];
    SampledNotSelected Count "samples of warps that stall: not selected" ["smsp__pcsamp_warps_issue_stalled_not_selected"];
    PartNotSelected Percent "part of a warp's cycles: not selected" ["smsp__warp_issue_stalled_not_selected_per_warp_active.pct",
        "smsp__average_warp_latency_issue_stalled_not_selected_per_warp_active.pct"];
    SampledGmma Count "samples of warps that stall: warpgroup arrive" ["smsp__pcsamp_warps_issue_stalled_warpgroup_arrive"];
    PartGmma Percent "part of a warp's cycles: warpgroup arrive" ["smsp__warp_issue_stalled_gmma_per_warp_active.pct",
        "smsp__average_warp_latency_issue_stalled_gmma_per_warp_active.pct"];
    PipeFma Percent "FMA pipe, of its peak" ["sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active", "sm__inst_executed_pipe_fp32.avg.pct_of_peak_sustained_active"];
    PipeAlu Percent "ALU pipe (integers, comparisons), of its peak" ["sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active"];
    PipeFp64 Percent "FP64 pipe, of its peak" ["sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active"];
    PipeFp16 Percent "FP16 pipe, of its peak" ["sm__inst_executed_pipe_fp16.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_fma_type_fp16.avg.pct_of_peak_sustained_active"];
    PipeXu Percent "XU pipe (special functions, conversions), of its peak" ["sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active"];
    PipeLsu Percent "LSU pipe (memory instructions), of its peak" ["sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active"];
    PipeTensor Percent "tensor pipe, of its peak" ["sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active",
        "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active",
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"];
    AtomicsBusy Percent "atomic unit of an L2 slice, mean" ["lts__d_atomic_input_cycles_active.avg.pct_of_peak_sustained_elapsed"];
    AtomicsBusyMax Percent "atomic unit of an L2 slice, the busiest" ["lts__d_atomic_input_cycles_active.max.pct_of_peak_sustained_elapsed"];
    DramPeakBytes Bytes "device memory, bytes a cycle at most" ["dram__bytes.sum.peak_sustained"];
    DramFrequency Hertz "clock of the device memory" ["dram__cycles_elapsed.avg.per_second"];
    PeakFp32Fma Ratio "FP32 fused multiply-adds of threads a cycle, at most" ["sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained"];
    PeakFp64Fma Ratio "FP64 fused multiply-adds of threads a cycle, at most" ["sm__sass_thread_inst_executed_op_dfma_pred_on.sum.peak_sustained"];
    Fp32Add Count "FP32 additions of threads" ["smsp__sass_thread_inst_executed_op_fadd_pred_on.sum"];
    Fp32AddRate Ratio "FP32 additions of threads a cycle" ["smsp__sass_thread_inst_executed_op_fadd_pred_on.sum.per_cycle_elapsed"];
    Fp32Mul Count "FP32 multiplications of threads" ["smsp__sass_thread_inst_executed_op_fmul_pred_on.sum"];
    Fp32MulRate Ratio "FP32 multiplications of threads a cycle" ["smsp__sass_thread_inst_executed_op_fmul_pred_on.sum.per_cycle_elapsed"];
    Fp32Fma Count "FP32 fused multiply-adds of threads" ["smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"];
    Fp32FmaRate Ratio "FP32 fused multiply-adds of threads a cycle" ["smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed"];
    Fp64Add Count "FP64 additions of threads" ["smsp__sass_thread_inst_executed_op_dadd_pred_on.sum"];
    Fp64AddRate Ratio "FP64 additions of threads a cycle" ["smsp__sass_thread_inst_executed_op_dadd_pred_on.sum.per_cycle_elapsed"];
    Fp64Mul Count "FP64 multiplications of threads" ["smsp__sass_thread_inst_executed_op_dmul_pred_on.sum"];
    Fp64MulRate Ratio "FP64 multiplications of threads a cycle" ["smsp__sass_thread_inst_executed_op_dmul_pred_on.sum.per_cycle_elapsed"];
    Fp64Fma Count "FP64 fused multiply-adds of threads" ["smsp__sass_thread_inst_executed_op_dfma_pred_on.sum"];
    Fp64FmaRate Ratio "FP64 fused multiply-adds of threads a cycle" ["smsp__sass_thread_inst_executed_op_dfma_pred_on.sum.per_cycle_elapsed"];
}

impl Metric {
    /// Its row in the table.
    pub fn info(self) -> &'static MetricInfo {
        // The table has one row for each variant, in the same order.
        &METRICS[self as usize]
    }

    /// The metric that Nsight Compute calls `name`, and how far down its names that stands: 0 is the preferred one.
    pub fn named(name: &str) -> Option<(Self, usize)> {
        METRICS.iter().find_map(|info| {
            info.names.iter().position(|known| *known == name).map(|rank| (info.metric, rank))
        })
    }

    /// The metric with this label in this section of the details page.
    pub fn labelled(section: &str, label: &str) -> Option<Self> {
        METRICS.iter().find(|info| info.label == Some((section, label))).map(|info| info.metric)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_its_row_and_no_name_stands_twice() {
        let mut seen = std::collections::HashSet::new();
        for (at, info) in METRICS.iter().enumerate() {
            assert_eq!(info.metric as usize, at);
            assert_eq!(info.metric.info().title, info.title);
            for name in info.names {
                assert!(seen.insert(*name), "{name} stands for two metrics");
            }
        }
        assert_eq!(Metric::named("dram__bytes_op_read.sum"), Some((Metric::DramRead, 1)));
    }
}
