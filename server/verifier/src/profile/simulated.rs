//! What the simulator counted, in the form that rules read. It knows what instructions ask of memory and who executes them, and nothing of time:
//! stalls, pipes, caches and spills are absent, and the rules about them say nothing.
//!
//! Its instructions are those of PTX, not of the machine; they are told under the simulator's name.

use std::collections::BTreeMap;

use stitch_profiles::kernel::{
    Access, Counters, Estimate, KernelLaunch, LaunchShape, Metric, Origin, SourceLine, kernel_name,
};

use stitch_profiles::note::{Note, NoteKind};
use stitch_profiles::profile::{NotTaken, Profile, Way};
use stitch_profiles::units;

use super::ladder::Rung;
use crate::demangle;
use crate::measure::{Weights, estimate};
use crate::program::RunDevice;
use crate::simulation::{Count, Instruction, Kernel, Report};

/// What a run of `target` on a simulated device tells: one entry for each kernel and shape, of what all of its launches did together.
pub fn profile(report: &Report, target: &str, device: &RunDevice) -> Profile {
    let (weights, name) = (Weights::of(device), device.to_string());
    let way = Way { by: Rung::Simulator.to_string(), not_taken: vec![without_gpu(&name)], ..Way::default() };
    let launches = report.kernels.iter().zip(0..).map(|(kernel, id)| launch(kernel, id, &name, &weights));
    let mut profile = Profile { launches: launches.collect(), ..Profile::new(target, way) };
    let sampled: Vec<String> = report.sampled().map(sampled).collect();
    if !sampled.is_empty() {
        profile.notes.push(Note::new(NoteKind::Remark, format!("{SAMPLED} {}.", sampled.join("; "))));
    }
    profile.device = Some(name);
    profile
}

/// Why on a device that is simulated none of the ways is taken that need a GPU.
pub(super) fn without_gpu(device: &str) -> NotTaken {
    NotTaken {
        by: "Nsight Compute, Nsight Systems, CUPTI and the clock".to_owned(),
        why: format!("They look at a GPU, and {device} is none."),
    }
}

/// The rule under which counts of a sample are told.
const SAMPLED: &str = "Not all blocks were simulated. The counts are those of the blocks that were, not scaled up, so they are estimates, and what limits a \
     kernel holds as far as its blocks are alike; only its cost beside other kernels' is taken for all of its blocks. What the left-out blocks would have \
     written is missing, so what the program computed is no result, and where its host code or a later kernel decides by it, what ran then may be \
     something else, and its defects may come of that. Counted were";

/// `412 of 4,096 blocks of k (10%)`.
fn sampled(kernel: &Kernel) -> String {
    let Kernel { name, counters, .. } = kernel;
    let name = kernel_name(&demangle::name(name).display()).base;
    let [some, all] = [counters.blocks, counters.grid_blocks].map(units::count);
    format!("{some} of {all} blocks of `{name}` ({})", units::percent(kernel.share()))
}

fn launch(kernel: &Kernel, id: u64, device: &str, weights: &Weights) -> KernelLaunch {
    let mut launch = KernelLaunch {
        id,
        kernel: kernel_name(&demangle::name(&kernel.name).display()),
        shape: LaunchShape {
            grid: Some(kernel.grid),
            block: Some(kernel.block),
            device_name: Some(device.to_owned()),
            ..LaunchShape::default()
        },
        estimate: Some(whole(kernel, weights)),
        lines: lines(kernel),
        origin: Origin { tool: "the simulator".to_owned(), ..Origin::default() },
        ..KernelLaunch::default()
    };
    launch.metrics.extend(metrics(kernel));
    launch
}

/// What was counted of a kernel's launches: metrics, and lines.
pub(super) fn counted(kernel: &Kernel) -> (Vec<(Metric, f64)>, Vec<SourceLine>) {
    (metrics(kernel), lines(kernel))
}

/// What all blocks cost, of which some were counted.
fn whole(kernel: &Kernel, weights: &Weights) -> Estimate {
    let of_sample = estimate(kernel, weights);
    let share = kernel.share();
    if share > 0.0 { Estimate { cycles: of_sample.cycles / share, ..of_sample } } else { of_sample }
}

/// The kinds of accesses among PTX opcodes: how they begin, and what they are. Generic ones are taken for global, which nearly all are.
const ACCESSES: &[(&str, Access)] = &[
    ("ld.shared", Access::SharedLoad),
    ("st.shared", Access::SharedStore),
    ("ld.local", Access::LocalLoad),
    ("st.local", Access::LocalStore),
    ("atom.shared", Access::SharedAtomic),
    ("red.shared", Access::SharedAtomic),
    ("atom", Access::GlobalAtomic),
    ("red", Access::GlobalAtomic),
    ("ld.param", Access::LocalLoad),
    ("ld.const", Access::LocalLoad),
    ("ld", Access::GlobalLoad),
    ("st", Access::GlobalStore),
];

fn access(instruction: &Instruction) -> Option<Access> {
    let opcode = instruction.opcode.replace(".volatile", "");
    let found = ACCESSES.iter().find(|(begin, _)| {
        opcode.strip_prefix(begin).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', ':']))
    });
    let touches_memory = instruction.count.requests + instruction.count.shared_requests > 0;
    found.filter(|_| touches_memory).map(|(_, access)| *access)
}

/// Sums over the instructions of one kind.
fn of(kernel: &Kernel, wanted: Access) -> Count {
    let mut sum = Count::default();
    for instruction in kernel.counters.instructions.iter().filter(|found| access(found) == Some(wanted)) {
        sum.warps += instruction.count.warps;
        sum.requests += instruction.count.requests;
        sum.sectors += instruction.count.sectors;
        sum.ideal_sectors += instruction.count.ideal_sectors;
        sum.wavefronts += instruction.count.wavefronts;
    }
    sum
}

fn metrics(kernel: &Kernel) -> Vec<(Metric, f64)> {
    let total = &kernel.counters.total;
    let [loads, stores] = [Access::GlobalLoad, Access::GlobalStore].map(|kind| of(kernel, kind));
    let [shared_loads, shared_stores] =
        [Access::SharedLoad, Access::SharedStore].map(|kind| of(kernel, kind));
    let counts = [
        (Metric::Instructions, kernel.counters.warp_instructions),
        (Metric::GridSize, volume(kernel.grid)),
        (Metric::BlockSize, volume(kernel.block)),
        (Metric::SharedMemoryDynamic, u64::from(kernel.dynamic_shared)),
        (Metric::GlobalLoads, loads.warps),
        (Metric::GlobalStores, stores.warps),
        (Metric::GlobalSectors, loads.sectors + stores.sectors),
        (Metric::GlobalSectorsIdeal, loads.ideal_sectors + stores.ideal_sectors),
        (Metric::SharedWavefronts, total.wavefronts),
        (Metric::SharedWavefrontsIdeal, total.ideal_wavefronts),
        (Metric::SharedLoadWavefronts, shared_loads.wavefronts),
        (Metric::SharedStoreWavefronts, shared_stores.wavefronts),
    ];
    let ratios = [
        (Metric::LoadSectorsPerRequest, loads.sectors, loads.requests),
        (Metric::StoreSectorsPerRequest, stores.sectors, stores.requests),
        (Metric::ThreadsPerInstruction, total.active, total.warps),
        (Metric::ThreadsOnPerInstruction, total.guarded, total.warps),
    ];
    let counted = counts.into_iter().map(|(metric, count)| (metric, count as f64));
    let of_some = ratios.into_iter().filter(|(_, _, of)| *of > 0);
    counted.chain(of_some.map(|(metric, part, of)| (metric, part as f64 / of as f64))).collect()
}

fn volume(sizes: [u32; 3]) -> u64 {
    sizes.iter().fold(1, |volume: u64, size| volume.saturating_mul(u64::from(*size)))
}

/// Lines, made of their instructions, so that local memory is not taken for global.
fn lines(kernel: &Kernel) -> Vec<SourceLine> {
    let mut lines: BTreeMap<(&str, u32), SourceLine> = BTreeMap::new();
    let instructions = &kernel.counters.instructions;
    let own = instructions.iter().find(|instruction| instruction.inlined_at.is_none());
    let own = own.and_then(|instruction| instruction.place.as_ref()).map(|(file, _)| file.as_str());
    for instruction in instructions {
        let Some((file, number)) = place(instruction, own) else { continue };
        let line = lines.entry((file, *number)).or_insert_with(|| SourceLine {
            file: file.clone(),
            line: *number,
            ..SourceLine::default()
        });
        let access = access(instruction);
        line.counters.add(&counters(&instruction.count, access));
        line.accesses.extend(access.filter(|access| !line.accesses.contains(access)));
    }
    lines.into_values().collect()
}

/// Where an instruction counts: one of a header, at the line of the kernel's own file that it was inlined into.
fn place<'a>(instruction: &'a Instruction, own: Option<&str>) -> Option<&'a (String, u32)> {
    let is_own = |place: &&(String, u32)| Some(place.0.as_str()) == own;
    let place = instruction.place.as_ref();
    place.filter(is_own).or_else(|| instruction.inlined_at.as_ref().filter(is_own)).or(place)
}

fn counters(count: &Count, access: Option<Access>) -> Counters {
    let mut counters = Counters {
        instructions: Some(count.warps),
        thread_instructions: Some(count.active),
        threads_on: Some(count.guarded),
        divergent_branches: Some(count.divergent),
        ..Counters::default()
    };
    if access == Some(Access::GlobalAtomic) {
        counters.atomic_lanes = Some(count.guarded);
        counters.atomic_addresses = Some(count.guarded.saturating_sub(count.serialised));
    }
    // What an instruction does not do is not counted, as in a profiler's page.
    match access {
        Some(Access::LocalLoad | Access::LocalStore) => counters.local_sectors = Some(count.sectors),
        Some(Access::GlobalLoad | Access::GlobalStore | Access::GlobalAtomic) => {
            counters.sectors = Some(count.sectors);
            counters.sectors_ideal = Some(count.ideal_sectors);
        }
        Some(Access::SharedLoad | Access::SharedStore | Access::SharedAtomic) => {
            counters.wavefronts = Some(count.wavefronts);
            counters.wavefronts_ideal = Some(count.ideal_wavefronts);
        }
        None => {}
    }
    counters
}
