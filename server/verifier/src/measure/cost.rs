//! What kernels cost: measured on a GPU, estimated from what was counted on the simulator.

use serde::{Deserialize, Serialize};
use stitch_profiles::kernel::{Estimate, Work};

use super::sample::Interval;
use crate::demangle;
use crate::program::RunDevice;
use crate::simulation::{Instruction, Kernel, Report};

/// Bytes of a sector.
const SECTOR: f64 = 32.0;
/// Schedulers of a multiprocessor, each of which issues one warp instruction a cycle (Volta and later).
const ISSUED: f64 = 4.0;
/// What a launch costs at least, in seconds: about what an empty kernel takes on recent devices.
const LAUNCH: f64 = 2e-6;

/// What one unit of work is worth, in cycles of one multiprocessor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Weights {
    /// A warp's instruction: four are issued a cycle.
    pub instruction: f64,
    /// What a double-precision instruction costs more: as many cycles as the device has fewer units for it.
    pub double: f64,
    /// A wavefront of shared memory: one a cycle.
    pub wavefront: f64,
    /// A sector of 32 bytes: the multiprocessor's share of the memory's bandwidth.
    pub sector: f64,
    /// An atomic update that waits for another lane of its warp: one a cycle.
    pub serialised: f64,
    /// A launch, over all multiprocessors.
    pub launch: f64,
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Cycles a second.
    pub clock: f64,
}

impl Weights {
    /// Those of a device. A real one has none of its own here: what runs there is measured.
    pub fn of(device: &RunDevice) -> Self {
        let RunDevice::Simulator(device) = device else { return Self::none() };
        let clock = f64::from(device.clock) * 1e3;
        let share = device.bandwidth() / clock / f64::from(device.multiprocessors);
        Self {
            instruction: 1.0 / ISSUED,
            double: (f64::from(device.limits.single_to_double) - 1.0) / ISSUED,
            wavefront: 1.0,
            sector: SECTOR / share,
            serialised: 1.0,
            launch: LAUNCH * clock,
            multiprocessors: device.multiprocessors,
            clock,
        }
    }

    fn none() -> Self {
        Self {
            instruction: 0.0,
            double: 0.0,
            wavefront: 0.0,
            sector: 0.0,
            serialised: 0.0,
            launch: 0.0,
            multiprocessors: 1,
            clock: 1.0,
        }
    }

    /// In a sentence, for whoever reads an estimate.
    pub fn words(&self) -> String {
        format!(
            "cycles of {} multiprocessors: a warp instruction {:.2}, in double precision {:.2}, a shared wavefront {:.0}, a sector {:.2}, an atomic update that waits {:.0}, a launch {:.0}; a grid of fewer blocks keeps only as many multiprocessors busy",
            self.multiprocessors,
            self.instruction,
            self.instruction + self.double,
            self.wavefront,
            self.sector,
            self.serialised,
            self.launch,
        )
    }
}

/// What a version of a target costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cost {
    /// Where it ran.
    pub device: String,
    /// Estimated cycles, all launches one after the other, nothing overlapping; 0 where time was measured.
    pub cycles: f64,
    /// Measured time, on a GPU.
    #[serde(default)]
    pub time: Option<Time>,
    /// By kernel, the dearest first.
    pub kernels: Vec<KernelCost>,
}

/// Measured time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Time {
    /// Of what.
    pub of: Timed,
    /// In microseconds, with its 95% interval.
    pub microseconds: Interval,
    /// What a reader should know, in sentences.
    pub notes: Vec<String>,
}

/// What was timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Timed {
    /// One call of each kernel, in harnesses.
    Kernels,
    /// The whole process, from its start to its end.
    Process,
    /// One call of a module or a function.
    Call,
}

/// What a kernel must move at least, and how fast its device could.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Traffic {
    /// Bytes of a call: those that its accesses need, though no more than its arrays hold, what it may write counted twice.
    pub bytes: u64,
    /// Bytes of all of its arrays.
    pub arrays: u64,
    /// Bytes that the device's memory moves in a second.
    pub peak: u64,
    /// Bytes of the device's L2 cache.
    pub l2: u64,
}

#[allow(clippy::cast_precision_loss)] // Bytes stay far below 2^53.
impl Traffic {
    /// The share of the memory's bandwidth that a call of so many microseconds reaches. `None` where its data stay in the cache, which
    /// the memory does not bound, or where nothing is known.
    pub fn share(&self, microseconds: f64) -> Option<f64> {
        let is_bound = self.peak > 0 && self.arrays > self.l2 && microseconds > 0.0;
        is_bound.then(|| self.bytes as f64 / (microseconds * 1e-6) / self.peak as f64)
    }

    /// In words, to follow the time: `at least 134 MB, 4.31 TB/s, 90% of the memory's 4.81 TB/s`.
    pub fn words(&self, microseconds: f64) -> String {
        let rate = self.bytes as f64 / (microseconds.max(1e-9) * 1e-6) / 1e12;
        let moved = format!("at least {}, {rate:.2} TB/s", megabytes(self.bytes));
        match self.share(microseconds) {
            Some(share) => {
                format!("{moved}, {:.0}% of the memory's {:.2} TB/s", share * 100.0, self.peak as f64 / 1e12)
            }
            None if self.l2 > 0 && self.arrays <= self.l2 => {
                format!(
                    "{moved}, from and to the L2 cache, in which its {} stay between calls",
                    megabytes(self.arrays)
                )
            }
            None => moved,
        }
    }
}

#[allow(clippy::cast_precision_loss)] // Bytes stay far below 2^53.
fn megabytes(bytes: u64) -> String {
    let mega = bytes as f64 / 1e6;
    if mega >= 10.0 { format!("{mega:.0} MB") } else { format!("{mega:.2} MB") }
}

/// What the launches of one kernel cost together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KernelCost {
    /// Its name.
    pub name: String,
    /// Launches.
    pub launches: u64,
    /// Estimated cycles.
    pub cycles: f64,
    /// Microseconds of a call, measured on a GPU.
    #[serde(default)]
    pub microseconds: Option<Interval>,
    /// What a call must move at least, for a measured one.
    #[serde(default)]
    pub traffic: Option<Traffic>,
    /// Instructions of warps.
    pub instructions: u64,
    /// Those in double precision.
    #[serde(default)]
    pub doubles: u64,
    /// Sectors of global and local memory.
    pub sectors: u64,
    /// Sectors, had the lanes of each access lain side by side.
    pub ideal_sectors: u64,
    /// Wavefronts of shared memory.
    pub wavefronts: u64,
    /// Wavefronts without bank conflicts.
    pub ideal_wavefronts: u64,
    /// Atomic updates that waited for another lane.
    pub serialised: u64,
}

impl Cost {
    /// The cost of what a report counted.
    pub fn of(report: &Report, weights: &Weights, device: String) -> Self {
        let mut kernels: Vec<KernelCost> = Vec::new();
        for kernel in &report.kernels {
            let one = KernelCost::of(kernel, weights);
            match kernels.iter_mut().find(|known| known.name == one.name) {
                Some(known) => known.add(&one),
                None => kernels.push(one),
            }
        }
        kernels.sort_by(|a, b| b.cycles.total_cmp(&a.cycles));
        Self { device, cycles: kernels.iter().map(|kernel| kernel.cycles).sum(), time: None, kernels }
    }

    /// The measured cost of one call of each kernel.
    pub fn measured(device: String, kernels: Vec<KernelCost>, notes: Vec<String>) -> Self {
        let mut sum = Interval { median: 0.0, low: 0.0, high: 0.0, samples: usize::MAX };
        for time in kernels.iter().filter_map(|kernel| kernel.microseconds) {
            sum.median += time.median;
            sum.low += time.low;
            sum.high += time.high;
            sum.samples = sum.samples.min(time.samples);
        }
        let mut kernels = kernels;
        let median = |kernel: &KernelCost| kernel.microseconds.map_or(0.0, |time| time.median);
        kernels.sort_by(|a, b| median(b).total_cmp(&median(a)));
        Self {
            device,
            cycles: 0.0,
            time: Some(Time { of: Timed::Kernels, microseconds: sum, notes }),
            kernels,
        }
    }

    /// The measured cost of a whole process.
    pub fn of_process(device: String, microseconds: Interval, notes: Vec<String>) -> Self {
        let time = Time { of: Timed::Process, microseconds, notes };
        Self { device, cycles: 0.0, time: Some(time), kernels: Vec::new() }
    }

    /// The measured cost of one call.
    pub fn of_call(device: String, microseconds: Interval, notes: Vec<String>) -> Self {
        let time = Time { of: Timed::Call, microseconds, notes };
        Self { device, cycles: 0.0, time: Some(time), kernels: Vec::new() }
    }

    /// How many times less time `other` takes, or how many times fewer cycles where neither was timed. 1 where they can't be compared.
    pub fn over(&self, other: &Self) -> f64 {
        match (&self.time, &other.time) {
            (Some(one), Some(two)) if one.of == two.of && two.microseconds.median > 0.0 => {
                one.microseconds.median / two.microseconds.median
            }
            (None, None) if other.cycles > 0.0 => self.cycles / other.cycles,
            _ => 1.0,
        }
    }
}

/// Instructions of a kernel in double precision.
fn doubles(kernel: &Kernel) -> u64 {
    let is_double = |instruction: &&Instruction| instruction.opcode.contains(".f64");
    kernel.counters.instructions.iter().filter(is_double).map(|one| one.count.warps).sum()
}

/// What the launches of a kernel cost by these weights, by kinds of work.
#[allow(clippy::cast_precision_loss)] // Counters stay far below 2^53.
pub(crate) fn estimate(kernel: &Kernel, weights: &Weights) -> Estimate {
    let total = &kernel.counters.total;
    let blocks = kernel.grid.iter().map(|size| f64::from(*size)).product::<f64>();
    let busy = blocks.clamp(1.0, f64::from(weights.multiprocessors.max(1)));
    let work = [
        (Work::Instructions, kernel.counters.warp_instructions, weights.instruction),
        (Work::Doubles, doubles(kernel), weights.double),
        (Work::Sectors, total.sectors, weights.sector),
        (Work::Wavefronts, total.wavefronts, weights.wavefront),
        (Work::Atomics, total.serialised, weights.serialised),
    ];
    let work = work.map(|(work, count, weight)| (work, count as f64 * weight / busy));
    Estimate::of(work.into_iter().chain([(Work::Launches, kernel.launches as f64 * weights.launch)]))
}

impl KernelCost {
    fn of(kernel: &Kernel, weights: &Weights) -> Self {
        let total = &kernel.counters.total;
        Self {
            name: demangle::name(&kernel.name).display(),
            launches: kernel.launches,
            cycles: estimate(kernel, weights).cycles,
            microseconds: None,
            traffic: None,
            instructions: kernel.counters.warp_instructions,
            doubles: doubles(kernel),
            sectors: total.sectors,
            ideal_sectors: total.ideal_sectors,
            wavefronts: total.wavefronts,
            ideal_wavefronts: total.ideal_wavefronts,
            serialised: total.serialised,
        }
    }

    fn add(&mut self, other: &Self) {
        self.launches += other.launches;
        self.cycles += other.cycles;
        self.instructions += other.instructions;
        self.doubles += other.doubles;
        self.sectors += other.sectors;
        self.ideal_sectors += other.ideal_sectors;
        self.wavefronts += other.wavefronts;
        self.ideal_wavefronts += other.ideal_wavefronts;
        self.serialised += other.serialised;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::{Count, Counters};

    fn report(blocks: u32, total: Count, warp_instructions: u64) -> Report {
        let opcode = |opcode: &str, warps| Instruction {
            opcode: opcode.to_owned(),
            count: Count { warps, ..Count::default() },
            ..Instruction::default()
        };
        let instructions = vec![opcode("add.f64", 4), opcode("add.f32", 28)];
        let counters = Counters { warp_instructions, total, instructions, ..Counters::default() };
        let kernel =
            Kernel { name: "k".into(), grid: [blocks, 1, 1], launches: 2, counters, ..Kernel::default() };
        Report { kernels: vec![kernel.clone(), kernel], ..Report::default() }
    }

    #[test]
    fn every_kind_of_work_costs_and_few_blocks_leave_multiprocessors_idle() {
        let weights = Weights {
            instruction: 0.25,
            double: 0.25,
            wavefront: 1.0,
            sector: 2.0,
            serialised: 1.0,
            launch: 10.0,
            multiprocessors: 4,
            clock: 1e9,
        };
        let total = Count { sectors: 8, wavefronts: 3, serialised: 5, ..Count::default() };
        let cost = |blocks| Cost::of(&report(blocks, total, 32), &weights, "sim:h200".into());
        // 32 / 4 + 4 / 4 + 8 * 2 + 3 + 5 = 33 cycles of one multiprocessor, and twenty for the launches, each twice.
        assert_eq!(cost(1).cycles, 2.0 * (33.0 + 20.0));
        assert_eq!(cost(2).cycles, 2.0 * (16.5 + 20.0));
        assert_eq!(cost(400).cycles, 2.0 * (8.25 + 20.0));
        assert_eq!((cost(1).kernels.len(), cost(1).kernels[0].launches), (1, 4));
        assert_eq!(cost(1).over(&cost(400)), 106.0 / 56.5);
        assert_eq!(cost(1).kernels[0].doubles, 8);
    }

    #[test]
    fn what_a_kernel_moves_is_a_share_of_the_memory_unless_it_stays_in_the_cache() {
        let large =
            Traffic { bytes: 400_000_000, arrays: 400_000_000, peak: 4_000_000_000_000, l2: 60_000_000 };
        assert!((large.share(125.0).unwrap() - 0.8).abs() < 1e-9);
        assert!(
            large.words(125.0).contains("400 MB, 3.20 TB/s, 80% of the memory's 4.00 TB/s"),
            "{}",
            large.words(125.0)
        );
        let small = Traffic { bytes: 1_000_000, arrays: 1_000_000, ..large };
        assert_eq!(small.share(5.0), None);
        assert!(small.words(5.0).contains("in which its 1.00 MB stay"), "{}", small.words(5.0));
        assert_eq!(Traffic { peak: 0, ..large }.share(125.0), None);
    }

    #[test]
    fn measured_costs_add_up_and_are_compared_with_their_like() {
        let of = |microseconds: f64| KernelCost {
            microseconds: Some(Interval {
                median: microseconds,
                low: microseconds - 1.0,
                high: microseconds + 1.0,
                samples: 9,
            }),
            ..KernelCost::default()
        };
        let cost = |times: &[f64]| {
            Cost::measured("cuda:0".into(), times.iter().copied().map(of).collect(), Vec::new())
        };
        let both = cost(&[10.0, 30.0]);
        let time = both.time.as_ref().unwrap();
        assert_eq!(
            (time.microseconds.median, time.microseconds.low, time.microseconds.samples),
            (40.0, 38.0, 9)
        );
        assert_eq!(both.kernels[0].microseconds.unwrap().median, 30.0);
        assert_eq!(both.over(&cost(&[20.0])), 2.0);
        let process = Cost::of_process(
            "cuda:0".into(),
            Interval { median: 9e5, low: 8e5, high: 1e6, samples: 6 },
            Vec::new(),
        );
        assert_eq!(both.over(&process), 1.0, "a kernel's time is no process's");
    }

    #[test]
    fn weights_follow_from_the_device() {
        let device = stitch_simulator::device::Device::named("h200").unwrap();
        let weights = Weights::of(&RunDevice::Simulator(device));
        // 4.8 TB/s over 132 multiprocessors at 1.98 GHz is 18.4 bytes a cycle.
        assert!((1.6..1.9).contains(&weights.sector), "{weights:?}");
        assert!(weights.words().contains("132 multiprocessors"), "{}", weights.words());
    }
}
