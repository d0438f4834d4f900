//! An estimate of what kernels cost, from what was counted.

use serde::{Deserialize, Serialize};

use crate::demangle;
use crate::program::RunDevice;
use crate::simulation::{Kernel, Report};

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
            "cycles of {} multiprocessors: a warp instruction {:.2}, a shared wavefront {:.0}, a sector {:.2}, an atomic update that waits {:.0}, a launch {:.0}; a grid of fewer blocks keeps only as many multiprocessors busy",
            self.multiprocessors, self.instruction, self.wavefront, self.sector, self.serialised, self.launch,
        )
    }
}

/// What a version of a target costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cost {
    /// Where it ran.
    pub device: String,
    /// Estimated cycles, all launches one after the other, nothing overlapping.
    pub cycles: f64,
    /// By kernel, the dearest first.
    pub kernels: Vec<KernelCost>,
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
    /// Instructions of warps.
    pub instructions: u64,
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
        Self { device, cycles: kernels.iter().map(|kernel| kernel.cycles).sum(), kernels }
    }

    /// How many times fewer cycles `other` takes.
    pub fn over(&self, other: &Self) -> f64 {
        if other.cycles > 0.0 { self.cycles / other.cycles } else { 1.0 }
    }
}

impl KernelCost {
    #[allow(clippy::cast_precision_loss)] // Counters stay far below 2^53.
    fn of(kernel: &Kernel, weights: &Weights) -> Self {
        let total = &kernel.counters.total;
        let work = kernel.counters.warp_instructions as f64 * weights.instruction
            + total.sectors as f64 * weights.sector
            + total.wavefronts as f64 * weights.wavefront
            + total.serialised as f64 * weights.serialised;
        let blocks = kernel.grid.iter().map(|size| f64::from(*size)).product::<f64>();
        let busy = blocks.clamp(1.0, f64::from(weights.multiprocessors.max(1)));
        Self {
            name: demangle::name(&kernel.name).display(),
            launches: kernel.launches,
            cycles: work / busy + kernel.launches as f64 * weights.launch,
            instructions: kernel.counters.warp_instructions,
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
        let counters = Counters { warp_instructions, total, ..Counters::default() };
        let kernel =
            Kernel { name: "k".into(), grid: [blocks, 1, 1], launches: 2, counters, ..Kernel::default() };
        Report { kernels: vec![kernel.clone(), kernel], ..Report::default() }
    }

    #[test]
    fn every_kind_of_work_costs_and_few_blocks_leave_multiprocessors_idle() {
        let weights = Weights {
            instruction: 0.25,
            wavefront: 1.0,
            sector: 2.0,
            serialised: 1.0,
            launch: 10.0,
            multiprocessors: 4,
            clock: 1e9,
        };
        let total = Count { sectors: 8, wavefronts: 3, serialised: 5, ..Count::default() };
        let cost = |blocks| Cost::of(&report(blocks, total, 32), &weights, "sim:h200".into());
        // 32 / 4 + 8 * 2 + 3 + 5 = 32 cycles of one multiprocessor, and twenty for the launches, each twice.
        assert_eq!(cost(1).cycles, 2.0 * (32.0 + 20.0));
        assert_eq!(cost(2).cycles, 2.0 * (16.0 + 20.0));
        assert_eq!(cost(400).cycles, 2.0 * (8.0 + 20.0));
        assert_eq!((cost(1).kernels.len(), cost(1).kernels[0].launches), (1, 4));
        assert_eq!(cost(1).over(&cost(400)), 104.0 / 56.0);
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
