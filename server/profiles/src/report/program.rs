//! The run of a program: its timeline, and where its time went.

use serde::Serialize;

use super::chart::{self, Colors};
use super::insight::InsightView;
use super::{ReportError, words};
use crate::kernel::kernel_name;
use crate::python::PythonTime;
use crate::system::{DeviceTime, KernelSum, System, explain};
use crate::units;

/// Kernels, calls and ranges that are listed.
const MOST_KERNELS: usize = 40;
const MOST_CALLS: usize = 12;
const MOST_RANGES: usize = 20;

/// The program.
#[derive(Debug, Serialize)]
pub(super) struct ProgramView {
    span: String,
    recorded_by: String,
    devices: Vec<DeviceView>,
    timeline: Option<String>,
    rows_left_out: u32,
    /// Colours of the timeline: the place in the series, and the kernel.
    legend: Vec<(usize, String)>,
    /// `None` where no kernel was recorded.
    kernels: Option<Vec<KernelView>>,
    kernels_left_out: usize,
    /// `None` where no copies were recorded.
    copies: Option<Vec<CopyView>>,
    sets: Option<String>,
    /// Calls that wait, then others; `None` where no calls were recorded.
    waits: Option<Vec<SumView>>,
    calls: Vec<SumView>,
    ranges: Vec<RangeView>,
    limits: Vec<InsightView>,
}

#[derive(Debug, Serialize)]
struct DeviceView {
    id: u32,
    name: String,
    busy: String,
    base: String,
    idle_share: String,
    busy_width: String,
    causes: Vec<SumView>,
}

#[derive(Debug, Serialize)]
struct KernelView {
    color: Option<usize>,
    name: String,
    full: String,
    count: String,
    total: String,
    share: String,
    width: String,
    median: String,
    max: String,
    ceiling: Option<String>,
    remarks: Vec<String>,
}

#[derive(Debug, Serialize)]
struct CopyView {
    route: String,
    pageable: bool,
    count: String,
    bytes: String,
    total: String,
    rate: Option<String>,
}

#[derive(Debug, Serialize)]
struct SumView {
    name: String,
    count: String,
    total: String,
    max: String,
}

#[derive(Debug, Serialize)]
struct RangeView {
    name: String,
    count: String,
    total: String,
    launches: String,
    kernels: String,
}

impl ProgramView {
    /// Of the run of a program.
    ///
    /// # Errors
    /// The timeline can't be drawn.
    pub(super) fn of(system: &System, python: Option<&PythonTime>) -> Result<Self, ReportError> {
        let names = system.kernels.iter().flatten().map(|kernel| kernel.name.as_str());
        let colors = Colors::of(names.clone());
        let legend = names.filter_map(|name| Some((colors.get(name)?, kernel_name(name).base)));
        let kernels = system.kernels.as_ref().map(|kernels| {
            kernels.iter().take(MOST_KERNELS).map(|kernel| kernel_view(kernel, &colors)).collect()
        });
        let calls = |waits: bool| {
            let chosen = system.calls.iter().flatten().filter(move |call| call.class.waits() == waits);
            let sum = |call: &crate::system::CallSum| sum(&call.name, call.count, call.total_ns, call.max_ns);
            chosen.take(MOST_CALLS).map(sum).collect::<Vec<_>>()
        };
        let source = &system.source;
        let version = source.version.iter().map(|version| format!(" {version}"));
        Ok(Self {
            span: units::time(system.span_ns),
            recorded_by: std::iter::once(source.tool.clone()).chain(version).collect(),
            devices: system.devices.iter().filter_map(device).collect(),
            timeline: chart::timeline(&system.drawing, &colors)?,
            rows_left_out: system.drawing.rows_left_out,
            legend: legend.collect(),
            kernels,
            kernels_left_out: system.kernels.as_ref().map_or(0, |all| all.len().saturating_sub(MOST_KERNELS)),
            copies: system.copies.as_ref().map(|copies| copies.iter().map(copy).collect()),
            sets: system.sets.as_ref().filter(|sets| sets.count > 0).map(|sets| {
                let times = units::counted(sets.count, "time", "times");
                let (bytes, time) = (units::size(sets.bytes), units::time(sets.total_ns));
                format!("Memory was set {times}, {bytes} in {time}.")
            }),
            waits: system.calls.is_some().then(|| calls(true)),
            calls: calls(false),
            ranges: system.ranges.iter().flatten().take(MOST_RANGES).map(range).collect(),
            limits: explain(system, python).iter().map(InsightView::of_program).collect(),
        })
    }
}

fn sum(name: &str, count: u64, total_ns: u64, max_ns: u64) -> SumView {
    SumView {
        name: name.to_owned(),
        count: units::count(count),
        total: units::time(total_ns),
        max: units::time(max_ns),
    }
}

fn device(device: &crate::system::Device) -> Option<DeviceView> {
    let time = device.time.as_ref()?;
    let busy = 1.0 - time.idle_share();
    Some(DeviceView {
        id: device.id,
        name: device.name.clone().unwrap_or_else(|| "unnamed".to_owned()),
        busy: units::time(time.busy_ns),
        base: units::time(time.base_ns()),
        idle_share: units::percent(time.idle_share()),
        busy_width: words::width(busy),
        causes: causes(time),
    })
}

/// Why the device had nothing to do, the longest cause first.
fn causes(time: &DeviceTime) -> Vec<SumView> {
    let idle = &time.idle;
    let mut causes = vec![
        ("the host had waited for the device", idle.synchronization),
        ("the host launched too slowly", idle.launch),
        ("the host did something else", idle.host),
        ("memory was allocated or freed", idle.allocation),
        ("something was set up, once", idle.setup),
        ("pauses of more than 10 ms", idle.pause),
        ("the cause was not recorded", idle.unknown),
    ];
    causes.retain(|(_, gaps)| gaps.count > 0);
    causes.sort_by_key(|(_, gaps)| std::cmp::Reverse(gaps.ns));
    causes.into_iter().map(|(name, gaps)| sum(name, gaps.count, gaps.ns, gaps.longest_ns)).collect()
}

fn kernel_view(kernel: &KernelSum, colors: &Colors<'_>) -> KernelView {
    let mut remarks = Vec::new();
    if kernel.whole_graph {
        remarks.push("a whole CUDA graph".to_owned());
    } else if kernel.in_graphs > 0 {
        remarks.push(format!("{} in graphs", units::count(kernel.in_graphs)));
    }
    if kernel.tiny > 0 {
        remarks.push(format!("{} under 5 µs", units::count(kernel.tiny)));
    }
    KernelView {
        color: colors.get(&kernel.name),
        name: kernel_name(&kernel.name).base,
        full: kernel.name.clone(),
        count: units::count(kernel.count),
        total: units::time(kernel.total_ns),
        share: units::percent(kernel.share),
        width: words::width(kernel.share),
        median: units::time(kernel.median_ns),
        max: units::time(kernel.max_ns),
        ceiling: kernel
            .ceiling
            .filter(|ceiling| ceiling.is_finite())
            .map(|ceiling| format!("{ceiling:.2} ×")),
        remarks,
    }
}

fn copy(copy: &crate::system::CopySum) -> CopyView {
    CopyView {
        route: copy.route.direction.label().to_owned(),
        pageable: copy.route.is_pageable(),
        count: units::count(copy.count),
        bytes: units::size(copy.bytes),
        total: units::time(copy.total_ns),
        rate: copy.rate.map(|rate| format!("{}/s", units::size(rate as u64))),
    }
}

fn range(range: &crate::system::RangeSum) -> RangeView {
    RangeView {
        name: range.name.clone(),
        count: units::count(range.count),
        total: units::time(range.total_ns),
        launches: units::count(range.launches),
        kernels: units::time(range.kernel_ns),
    }
}
