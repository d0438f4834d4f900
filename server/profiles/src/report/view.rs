//! What the template shows, in the words in which it is shown.

use serde::Serialize;
use stitch_findings::Severity;

use super::launch::LaunchesView;
use super::program::ProgramView;
use super::python::PythonView;
use super::{ReportError, words};
use crate::note::{Note, NoteKind};
use crate::profile::Profile;
use crate::sanitizer::Defect;
use crate::units;

/// The page.
#[derive(Debug, Serialize)]
pub(super) struct Page<'a> {
    style: &'static str,
    schema: &'a str,
    target: &'a str,
    title: &'a str,
    device: Option<&'a str>,
    by: &'a str,
    not_taken: &'a [crate::profile::NotTaken],
    summary: Vec<Tile>,
    program: Option<ProgramView>,
    launches: Option<LaunchesView>,
    python: Option<PythonView>,
    defects: Vec<DefectView>,
    notes: Vec<NoteView<'a>>,
    is_empty: bool,
}

/// A number at the top.
#[derive(Debug, Serialize)]
struct Tile {
    value: String,
    what: String,
}

/// A defect.
#[derive(Debug, Serialize)]
struct DefectView {
    severity: &'static str,
    place: Option<String>,
    code: &'static str,
    text: String,
    advice: String,
    times: Option<String>,
}

/// A note.
#[derive(Debug, Serialize)]
struct NoteView<'a> {
    kind: &'static str,
    text: &'a str,
}

impl<'a> Page<'a> {
    /// Of a profile.
    ///
    /// # Errors
    /// A chart can't be drawn.
    pub(super) fn of(profile: &'a Profile) -> Result<Self, ReportError> {
        let python = profile.python.as_ref();
        let program = profile.system.as_ref().map(|system| ProgramView::of(system, python)).transpose()?;
        let launches = match profile.launches.as_slice() {
            [] => None,
            launches => Some(LaunchesView::of(launches)?),
        };
        Ok(Self {
            style: include_str!("page.css"),
            schema: &profile.schema,
            target: &profile.target,
            title: words::file_name(&profile.target),
            device: profile.device.as_deref(),
            by: &profile.way.by,
            not_taken: &profile.way.not_taken,
            summary: summary(profile),
            program,
            launches,
            python: python.map(|python| PythonView::of(python, profile)),
            defects: profile.defects.iter().map(defect).collect(),
            notes: profile.notes.iter().map(note).collect(),
            is_empty: !profile.has_kernels() && profile.defects.is_empty(),
        })
    }
}

fn summary(profile: &Profile) -> Vec<Tile> {
    let mut tiles = Vec::new();
    let mut tile = |value: String, what: &str| tiles.push(Tile { value, what: what.to_owned() });
    if let Some(call) = profile.python.as_ref().and_then(|python| python.call.as_ref()) {
        tile(units::time(call.median_ns), "a call, by our own clock");
        let ends = format!("{} to {}", units::time(call.low_ns), units::time(call.high_ns));
        tile(ends, "its 95% interval");
    }
    if let Some(system) = &profile.system {
        tile(units::time(system.span_ns), "from the first event to the last");
        if let Some((_, time)) = system.busiest() {
            tile(units::time(time.busy_ns), "the device was busy");
            tile(units::percent(time.idle_share()), "of its time it was idle");
        }
        if let Some(kernels) = &system.kernels {
            let launches: u64 = kernels.iter().map(|kernel| kernel.count).sum();
            tile(units::count(launches), "launches");
            tile(units::count(kernels.len() as u64), "different kernels");
        }
    }
    if !profile.launches.is_empty() {
        tile(units::count(profile.launches.len() as u64), "launches looked at closely");
    }
    if !profile.defects.is_empty() {
        tile(units::count(profile.defects.len() as u64), "defects");
    }
    tiles
}

fn defect(defect: &Defect) -> DefectView {
    DefectView {
        severity: match defect.severity() {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Information => "information",
            Severity::Hint => "hint",
        },
        place: defect.place().map(words::place),
        code: defect.kind.code().as_str(),
        text: defect.message(),
        advice: defect.advice(),
        times: (defect.count > 1).then(|| format!("{} reports", units::count(defect.count))),
    }
}

fn note(note: &Note) -> NoteView<'_> {
    let kind = match note.kind {
        NoteKind::NotCaptured => "not captured",
        NoteKind::NewerVersion => "newer version",
        NoteKind::Unreadable => "unreadable",
        NoteKind::NotPermitted => "not permitted",
        NoteKind::Remark => "remark",
    };
    NoteView { kind, text: &note.text }
}
