//! What a run was like: kernels, copies, faults, and what was missing.

use std::collections::BTreeSet;

use serde::Serialize;

use super::engine::{Launch, Stopped};
use super::estimate::nanoseconds;
use crate::checks::{Checks, Defect, DefectKind};
use crate::code::SourcePlace;
use crate::counters::{Count, LaunchCounters};
use crate::device::Device;
use crate::estimate::{Estimate, Shape};
use crate::machine::FaultKind;
use crate::memory::{Memory, OutOfMemory};

/// How a program ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// It is still running.
    #[default]
    Running,
    /// By itself, with this status.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// It was stopped at the time limit.
    TimeLimit,
    /// It was stopped since the caller gave up.
    Cancelled,
}

/// Launches of one kernel with one shape.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KernelReport {
    /// Mangled name.
    pub name: String,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Dynamic shared memory in bytes.
    pub dynamic_shared: u32,
    /// Registers of a thread, estimated: those that the PTX keeps live at once.
    pub registers: u32,
    /// Shared memory of a block, static and dynamic, in bytes.
    pub shared: u64,
    /// How often it was launched so.
    pub launches: u64,
    /// How many of these launches did not come to their end; what they counted until then is among the counters.
    pub stopped: u64,
    /// Estimated time of all launches in nanoseconds: a roofline, no measurement. See [`crate::estimate`].
    pub estimated_ns: u64,
    /// What the estimate is mostly for.
    pub limiter: Option<&'static str>,
    /// Counters of all launches together.
    #[serde(serialize_with = "counters")]
    pub counters: LaunchCounters,
}

/// Counters as JSON: totals, source lines, instructions.
fn counters<S: serde::Serializer>(counters: &LaunchCounters, to: S) -> Result<S::Ok, S::Error> {
    use serde::ser::SerializeMap;
    let lines: Vec<_> = counters
        .by_line()
        .into_iter()
        .map(|line| serde_json::json!({ "file": line.file, "line": line.line, "count": count(&line.count) }))
        .collect();
    let instructions: Vec<_> = counters
        .instructions
        .iter()
        .map(|one| {
            let (place, inlined_at) = lines_of(one.place.as_ref());
            serde_json::json!({
                "ptx_line": one.ptx_line,
                "place": place,
                "inlined_at": inlined_at,
                "opcode": one.opcode,
                "count": count(&one.count),
            })
        })
        .collect();
    let mut map = to.serialize_map(None)?;
    map.serialize_entry("blocks", &counters.blocks)?;
    map.serialize_entry("grid_blocks", &counters.grid_blocks)?;
    map.serialize_entry("warp_instructions", &counters.warp_instructions)?;
    map.serialize_entry("hottest_line", &counters.hottest_line)?;
    map.serialize_entry("total", &count(&counters.total()))?;
    map.serialize_entry("lines", &lines)?;
    map.serialize_entry("instructions", &instructions)?;
    map.end()
}

fn count(count: &Count) -> serde_json::Value {
    let cached = &count.cached;
    serde_json::json!({
        "warps": count.warps,
        "active": count.active,
        "guarded": count.guarded,
        "divergent": count.divergent,
        "requests": count.requests,
        "shared_requests": count.shared_requests,
        "bytes": count.bytes,
        "sectors": count.sectors,
        "ideal_sectors": count.ideal_sectors,
        "wavefronts": count.wavefronts,
        "ideal_wavefronts": count.ideal_wavefronts,
        "worst_wavefronts": count.worst_wavefronts,
        "worst_contention": count.worst_contention,
        "serialised": count.serialised,
        "l1_lines": cached.l1_lines,
        "l1_sectors": cached.l1_sectors,
        "l1_hits": cached.l1_hits,
        "l2_sectors": cached.l2_sectors,
        "l2_hits": cached.l2_hits,
        "dram_read_sectors": cached.dram_read,
        "dram_written_sectors": cached.dram_written,
    })
}

/// Adds a launch of the same kernel.
fn add(sum: &mut LaunchCounters, launch: LaunchCounters) {
    sum.blocks += launch.blocks;
    sum.grid_blocks += launch.grid_blocks;
    sum.warp_instructions += launch.warp_instructions;
    sum.hottest_line = sum.hottest_line.max(launch.hottest_line);
    if sum.instructions.is_empty() {
        sum.instructions = launch.instructions;
    } else {
        let both = sum.instructions.iter_mut().zip(&launch.instructions);
        both.for_each(|(sum, one)| sum.count.add(&one.count));
    }
}

/// Which way a copy went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // Their names say it.
pub enum Direction {
    HostToHost,
    HostToDevice,
    DeviceToHost,
    DeviceToDevice,
}

/// Copies of one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Copies {
    /// How many.
    pub count: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A kernel that stopped.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FaultReport {
    /// Why and where.
    #[serde(flatten)]
    pub stopped: Stopped,
    /// The error that the program saw.
    pub error: &'static str,
    /// Blocks of the launch.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block_size: [u32; 3],
}

/// Something that is wrong, as JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct DefectReport(pub Defect);

/// File and line of a place, and those where its function was inlined.
type Lines = (Option<(String, u32)>, Option<(String, u32)>);

fn lines_of(of: Option<&SourcePlace>) -> Lines {
    let inlined_at = of.and_then(|place| place.inlined_at.as_ref());
    (
        of.map(|place| (place.file.clone(), place.line)),
        inlined_at.map(|(file, line, _)| (file.clone(), *line)),
    )
}

impl Serialize for DefectReport {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let defect = &self.0;
        let (place, inlined_at) = lines_of(defect.place.as_ref());
        let other = defect.other.as_ref().map(|other| {
            let (place, inlined_at) = lines_of(other.place.as_ref());
            serde_json::json!({
                "what": other.what,
                "block": other.block,
                "thread": other.thread,
                "place": place,
                "inlined_at": inlined_at,
            })
        });
        serde_json::json!({
            "kind": defect.kind,
            "kernel": defect.kernel,
            "block": defect.block,
            "thread": defect.thread,
            "place": place,
            "inlined_at": inlined_at,
            "ptx_line": defect.ptx_line,
            "address": defect.address,
            "message": defect.message,
            "object": defect.object,
            "other": other,
            "times": defect.times,
        })
        .serialize(to)
    }
}

/// What is known after a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// The simulated device.
    pub device: &'static str,
    /// How the program ended.
    pub ending: Ending,
    /// Processes that used the device.
    pub processes: u32,
    /// Which runtime the program was built for: 12, 13.
    pub runtime: Option<u32>,
    /// Kernels in the order of their first launches.
    pub kernels: Vec<KernelReport>,
    /// Copies.
    pub host_to_host: Copies,
    /// Copies.
    pub host_to_device: Copies,
    /// Copies.
    pub device_to_host: Copies,
    /// Copies.
    pub device_to_device: Copies,
    /// Kernels that stopped.
    pub faults: Vec<FaultReport>,
    /// What was looked for.
    pub checks: Checks,
    /// What is wrong, once a place, in the order in which it was seen.
    pub defects: Vec<DefectReport>,
    /// Copies to the device whose contents were changed, as [`Watch`](super::Watch) says.
    pub perturbed: usize,
    /// Functions of the runtime that the program called and the simulator has not.
    pub missing: BTreeSet<String>,
    /// What a person should know, in sentences.
    pub notes: Vec<String>,
    /// Bytes that could be allocated.
    pub memory_limit: u64,
    /// The most bytes that were allocated at once.
    pub memory_peak: u64,
}

impl Report {
    pub(super) fn new(device: &'static Device, memory: &Memory) -> Self {
        Self { device: device.name, memory_limit: memory.limit(), ..Self::default() }
    }

    /// Whether a function of the runtime or an instruction was missing: the run is worth nothing then.
    #[must_use]
    pub fn lacks(&self) -> bool {
        let unsupported = |fault: &FaultReport| fault.stopped.kind == FaultKind::Unsupported;
        !self.missing.is_empty() || self.faults.iter().any(unsupported)
    }

    /// Adds a sentence, once.
    pub(super) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// The program ended, and what it had issued had not.
    pub(super) fn abandoned(&mut self, pieces: usize) {
        self.note(format!(
            "the program ended without waiting for its device: {pieces} pieces of work were abandoned"
        ));
    }

    /// Adds what is wrong: of what was seen at a place before, only how often.
    pub(super) fn found(&mut self, defects: Vec<Defect>) {
        for defect in defects {
            match self.defects.iter_mut().find(|one| one.0.is_same(&defect)) {
                Some(one) => one.0.times += defect.times,
                None => self.defects.push(DefectReport(defect)),
            }
        }
    }

    /// A call of the host's is wrong. The runtime does not know its line.
    pub(super) fn wrong_call(&mut self, kind: DefectKind, kernel: &str, message: String) {
        self.found(vec![Defect {
            kind,
            kernel: kernel.to_owned(),
            block: [0; 3],
            thread: [0; 3],
            place: None,
            ptx_line: 0,
            address: None,
            message,
            object: None,
            other: None,
            times: 1,
        }]);
    }

    pub(super) fn refused(&mut self, error: &OutOfMemory) {
        self.note(format!("an allocation failed: {error} on the simulated device"));
    }

    pub(super) fn copied(&mut self, direction: Direction, bytes: u64) {
        let copies = match direction {
            Direction::HostToHost => &mut self.host_to_host,
            Direction::HostToDevice => &mut self.host_to_device,
            Direction::DeviceToHost => &mut self.device_to_host,
            Direction::DeviceToDevice => &mut self.device_to_device,
        };
        copies.count += 1;
        copies.bytes += bytes;
    }

    pub(super) fn launched(
        &mut self,
        launch: &Launch<'_>,
        taken: Option<(Shape, Estimate)>,
        counted: LaunchCounters,
        ended: bool,
    ) {
        let shape = (launch.grid, launch.block, launch.dynamic_shared);
        let same = |one: &KernelReport| {
            one.name == launch.kernel && (one.grid, one.block, one.dynamic_shared) == shape
        };
        let at = self.kernels.iter().position(same).unwrap_or_else(|| {
            self.kernels.push(KernelReport {
                name: launch.kernel.to_owned(),
                grid: launch.grid,
                block: launch.block,
                dynamic_shared: launch.dynamic_shared,
                registers: 0,
                shared: 0,
                launches: 0,
                stopped: 0,
                estimated_ns: 0,
                limiter: None,
                counters: LaunchCounters::default(),
            });
            self.kernels.len() - 1
        });
        let kernel = &mut self.kernels[at];
        kernel.launches += 1;
        if !ended {
            kernel.stopped += 1;
            self.notes.push(format!(
                "{} stopped after {} of {} blocks: its counters are those of what it did until then",
                launch.kernel, counted.blocks, counted.grid_blocks
            ));
        }
        if let Some((shape, estimate)) = taken {
            (kernel.registers, kernel.shared) = (shape.registers, shape.shared);
            kernel.estimated_ns += nanoseconds(estimate.seconds);
            kernel.limiter = Some(estimate.limiter.name());
        }
        add(&mut kernel.counters, counted);
    }

    pub(super) fn stopped(&mut self, launch: &Launch<'_>, stopped: Stopped) {
        let error = stopped.error_name();
        self.faults.push(FaultReport { stopped, error, grid: launch.grid, block_size: launch.block });
    }
}
