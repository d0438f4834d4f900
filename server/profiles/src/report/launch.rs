//! Launches: a row of the table for each, and for those that took longest what limits them.

use serde::Serialize;

use super::chart::{self, Placed, Point};
use super::insight::InsightView;
use super::lines::{LinesView, lines};
use super::{ReportError, words};
use crate::kernel::{Bound, Explanation, KernelLaunch, Metric, explain, intensity, stall_shares};
use crate::units;

/// Launches in the table.
const MOST_ROWS: usize = 500;
/// Launches that are shown closely: those that took longest.
const MOST_SHOWN: usize = 40;
/// Reasons to wait in a chart.
const MOST_STALLS: usize = 8;
/// Below this part of a warp's time a reason is not drawn.
const LEAST_STALL: f64 = 0.005;

/// Metrics that are listed, where they were measured.
const FACTS: &[Metric] = &[
    Metric::Duration,
    Metric::SmThroughput,
    Metric::MemoryThroughput,
    Metric::DramThroughput,
    Metric::L2Throughput,
    Metric::L1Throughput,
    Metric::DramRate,
    Metric::L2HitRate,
    Metric::L1HitRate,
    Metric::AchievedOccupancy,
    Metric::TheoreticalOccupancy,
    Metric::Registers,
    Metric::SharedMemoryStatic,
    Metric::SharedMemoryDynamic,
    Metric::Waves,
    Metric::IssueActive,
    Metric::ThreadsPerInstruction,
    Metric::LoadSectorsPerRequest,
    Metric::StoreSectorsPerRequest,
    Metric::Instructions,
];

/// All launches.
#[derive(Debug, Serialize)]
pub(super) struct LaunchesView {
    roofline: Option<String>,
    /// The same over operations a byte; `None` where nobody counted operations.
    intensity: Option<String>,
    /// Launches whose throughputs were not measured.
    not_placed: usize,
    rows: Vec<RowView>,
    rows_left_out: usize,
    shown: Vec<LaunchView>,
    shown_left_out: usize,
    passes: bool,
}

/// A launch in the table.
#[derive(Debug, Serialize)]
struct RowView {
    number: usize,
    is_shown: bool,
    name: String,
    shape: String,
    duration: Option<String>,
    class: String,
    bound: &'static str,
    compute: Option<String>,
    memory: Option<String>,
    occupancy: Option<String>,
    registers: Option<String>,
    first: Option<String>,
}

/// A launch closely.
#[derive(Debug, Serialize)]
struct LaunchView {
    number: usize,
    name: String,
    signature: String,
    shape: String,
    class: String,
    bound: &'static str,
    facts: Vec<Fact>,
    insights: Vec<InsightView>,
    stalls: Option<String>,
    lines: Option<LinesView>,
    origin: String,
}

/// A metric.
#[derive(Debug, Serialize)]
struct Fact {
    title: &'static str,
    value: String,
}

pub(super) fn bound(bound: Bound) -> &'static str {
    match bound {
        Bound::Memory => "memory",
        Bound::Compute => "compute",
        Bound::Balanced => "balanced",
        Bound::Latency | Bound::Launch => "latency",
        Bound::Unknown => "unknown",
    }
}

fn shape(launch: &KernelLaunch) -> String {
    let size = |sizes: Option<[u32; 3]>| sizes.map(words::extent);
    match (size(launch.shape.grid), size(launch.shape.block)) {
        (Some(grid), Some(block)) if grid == "1" => format!("1 block of {block}"),
        (Some(grid), Some(block)) => format!("{grid} blocks of {block}"),
        (Some(grid), None) => format!("{grid} blocks"),
        (None, Some(block)) => format!("blocks of {block}"),
        (None, None) => String::new(),
    }
}

impl LaunchesView {
    /// Of a profile's launches.
    ///
    /// # Errors
    /// A chart can't be drawn.
    pub(super) fn of(launches: &[KernelLaunch]) -> Result<Self, ReportError> {
        let explained: Vec<Explanation> = launches.iter().map(explain).collect();
        let mut longest: Vec<usize> = (0..launches.len()).collect();
        let took = |at: &usize| launches[*at].get(Metric::Duration).unwrap_or(0.0);
        longest.sort_by(|a, b| took(b).total_cmp(&took(a)));
        longest.truncate(MOST_SHOWN);
        longest.sort_unstable();
        let points: Vec<Point> = explained.iter().enumerate().filter_map(point).collect();
        let counted = launches.iter().zip(&explained).enumerate();
        let placed: Vec<Placed> =
            counted.filter_map(|(at, (launch, explanation))| place(at, launch, explanation)).collect();
        let rows = launches.iter().zip(&explained).enumerate().take(MOST_ROWS);
        let rows =
            rows.map(|(at, (launch, explanation))| row(at, launch, explanation, longest.contains(&at)));
        let shown: Result<Vec<LaunchView>, ReportError> =
            longest.iter().map(|at| closely(*at, &launches[*at], &explained[*at])).collect();
        Ok(Self {
            roofline: if points.is_empty() { None } else { Some(chart::roofline(&points)?) },
            intensity: chart::intensity(&placed)?,
            not_placed: launches.len() - points.len(),
            rows: rows.collect(),
            rows_left_out: launches.len().saturating_sub(MOST_ROWS),
            shown: shown?,
            shown_left_out: launches.len() - longest.len(),
            passes: launches.iter().any(|launch| launch.get(Metric::Duration).is_some()),
        })
    }
}

fn point((at, explanation): (usize, &Explanation)) -> Option<Point> {
    let class = &explanation.class;
    Some(Point {
        label: (at + 1).to_string(),
        bound: class.bound,
        compute: class.compute?,
        memory: class.memory?,
    })
}

fn place(at: usize, launch: &KernelLaunch, explanation: &Explanation) -> Option<Placed> {
    let found = intensity(launch)?;
    let seconds = launch.get(Metric::Duration).filter(|seconds| *seconds > 0.0)?;
    Some(Placed {
        label: (at + 1).to_string(),
        bound: explanation.class.bound,
        at: found,
        reached: found.operations / seconds,
    })
}

fn row(at: usize, launch: &KernelLaunch, explanation: &Explanation, is_shown: bool) -> RowView {
    let value = |metric: Metric| launch.get(metric).map(|value| words::metric(metric, value));
    let class = &explanation.class;
    let percent = |value: Option<f64>| value.map(|value| units::percent(value / 100.0));
    RowView {
        number: at + 1,
        is_shown,
        name: launch.kernel.base.clone(),
        shape: shape(launch),
        duration: value(Metric::Duration),
        class: class.label(),
        bound: bound(class.bound),
        compute: percent(class.compute),
        memory: percent(class.memory),
        occupancy: value(Metric::AchievedOccupancy),
        registers: value(Metric::Registers),
        first: explanation.insights.iter().find(|insight| !insight.is_class()).map(|insight| {
            let line = insight.place.as_ref().map(|place| format!(" at line {}", place.line));
            format!("{}{}", insight.rule.replace('-', " "), line.unwrap_or_default())
        }),
    }
}

fn closely(at: usize, launch: &KernelLaunch, explanation: &Explanation) -> Result<LaunchView, ReportError> {
    let mut shares = stall_shares(launch);
    shares.retain(|(_, share)| *share >= LEAST_STALL);
    shares.truncate(MOST_STALLS);
    let facts = FACTS.iter().filter_map(|metric| {
        Some(Fact { title: metric.info().title, value: words::metric(*metric, launch.get(*metric)?) })
    });
    let passes = launch.origin.passes.map(|passes| units::counted(u64::from(passes), "pass", "passes"));
    let origin: Vec<String> = [Some(launch.origin.tool.clone()), passes]
        .into_iter()
        .flatten()
        .filter(|word| !word.is_empty())
        .collect();
    Ok(LaunchView {
        number: at + 1,
        name: launch.kernel.base.clone(),
        signature: launch.kernel.signature.clone(),
        shape: shape(launch),
        class: explanation.class.label(),
        bound: bound(explanation.class.bound),
        facts: facts.collect(),
        insights: explanation.insights.iter().map(InsightView::of_kernel).collect(),
        stalls: if shares.is_empty() { None } else { Some(chart::stalls(&shares)?) },
        lines: lines(launch),
        origin: origin.join(", "),
    })
}
