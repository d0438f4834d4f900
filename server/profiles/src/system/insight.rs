//! What the rules say about a run, ready to be told.

use std::cmp::Reverse;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stitch_findings::{Code, Finding, Severity, Span};

use super::look::{Look, View};
use super::model::System;
use super::rules::{LEAST_GAIN, RULES, Rule};
use crate::python::{LineSum, PythonTime};
use crate::units::{percent, size, time};

/// Lines that are named, at most.
const MOST_LINES: usize = 10;

/// Without this many, nothing repeats.
const REPEATED: u64 = 5;

/// At least one for so many launches.
const LAUNCHES_A_REPEAT: u64 = 50;

/// One thing that limits a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Insight {
    /// The rule that says so.
    pub rule: String,
    /// The finding's code.
    pub code: Code,
    /// Information or a hint: performance is never more.
    pub severity: Severity,
    /// The kernel, by its full name, where it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Lines of Python that cause it, the one that costs most first, where they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<SourceLine>,
    /// What limits, in a sentence with its numbers.
    pub limits: String,
    /// What to do, in a sentence.
    pub advice: String,
    /// What could be gained at most.
    pub gain: Gain,
    /// Where the threshold comes from.
    pub source: String,
    /// Documentation.
    pub link: String,
}

/// An estimate of ours: the part of the device's time that would be saved if this were gone and nothing took its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gain {
    /// From 0 to 1.
    pub share: f64,
    /// How it is computed.
    pub formula: String,
}

/// A line that causes something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceLine {
    /// The file, as the workspace has it.
    pub file: String,
    /// The line, from one.
    pub line: u32,
    /// What it causes, with its numbers: `waits 8 times, 1.2 ms in all, in aten::item`.
    pub what: String,
}

impl Insight {
    /// The finding, at a span of a text that the caller has found for the first of [`Insight::lines`], for the kernel, or for the program.
    pub fn finding(&self, span: Span) -> Finding {
        let Gain { share, formula } = &self.gain;
        let message = match *share >= LEAST_GAIN {
            true => format!(
                "{} Gain: at most {} of the time, by our estimate: {formula}.",
                self.limits,
                percent(*share)
            ),
            false => self.limits.clone(),
        };
        let mut finding = Finding::new(self.code, span, message).advise(self.advice.clone());
        finding.severity = self.severity;
        finding.subject.clone_from(&self.kernel);
        finding
    }
}

/// What the rules say about a run, the largest gain first. Nothing where no kernel was recorded.
pub fn explain(system: &System, python: Option<&PythonTime>) -> Vec<Insight> {
    let Some(view) = View::of(system) else {
        return Vec::new();
    };
    let launches = view.launches();
    let mut insights: Vec<Insight> = Vec::new();
    for rule in RULES {
        for look in (rule.look)(&view) {
            if let Some(severity) = severity(rule, &look, launches) {
                insights.push(insight(rule, &look, severity, python));
            }
        }
    }
    // Stable: of equal gains, the table's order.
    insights.sort_by_key(|insight| Reverse((insight.gain.share * 1e9) as u64));
    insights
}

/// How a look is told, if it is.
fn severity(rule: &Rule, look: &Look, launches: u64) -> Option<Severity> {
    let gains = look.gain >= LEAST_GAIN;
    if look.share >= rule.threshold && gains {
        return Some(Severity::Information);
    }
    let repeated = look.count >= REPEATED && look.count.saturating_mul(LAUNCHES_A_REPEAT) >= launches;
    ((rule.if_repeated && repeated) || rule.always).then_some(Severity::Hint)
}

fn insight(rule: &Rule, look: &Look, severity: Severity, python: Option<&PythonTime>) -> Insight {
    let mut limits = rule.limits.to_owned();
    for (name, value) in &look.values {
        limits = limits.replace(&format!("{{{name}}}"), value);
    }
    Insight {
        rule: rule.id.to_owned(),
        code: rule.code,
        severity,
        kernel: look.subject.clone(),
        lines: python.map_or_else(Vec::new, |python| lines(rule, look, python)),
        limits,
        advice: rule.advice.to_owned(),
        gain: Gain { share: look.gain, formula: rule.formula.to_owned() },
        source: rule.threshold_source.to_owned(),
        link: rule.link.to_owned(),
    }
}

/// The lines that cause it, where it is something that lines cause.
fn lines(rule: &Rule, look: &Look, python: &PythonTime) -> Vec<SourceLine> {
    let mut lines: Vec<(u64, SourceLine)> = python
        .lines
        .iter()
        .filter_map(|line| {
            let (cost, what) = what(rule, look, line)?;
            Some((cost, SourceLine { file: line.file.clone(), line: line.line, what }))
        })
        .collect();
    lines.sort_by_key(|(cost, _)| Reverse(*cost));
    lines.truncate(MOST_LINES);
    lines.into_iter().map(|(_, line)| line).collect()
}

/// What a line has to do with a rule: how much that costs, and in words.
fn what(rule: &Rule, look: &Look, line: &LineSum) -> Option<(u64, String)> {
    match rule.code {
        Code::NSYS_SYNCHRONIZATION => {
            let (count, ns) = line.waits.iter().fold((0, 0), |(n, ns), wait| (n + wait.count, ns + wait.ns));
            let operators: Vec<&str> =
                line.waits.iter().map(|wait| wait.name.as_str()).filter(|name| !name.is_empty()).collect();
            let within =
                if operators.is_empty() { String::new() } else { format!(", in {}", operators.join(", ")) };
            (count > 0).then(|| (ns, format!("waits {} {} in all{within}", times(count), time(ns))))
        }
        Code::NSYS_PAGEABLE_COPY => {
            let copies = [line.to_device, line.to_host].into_iter().filter(|copies| copies.pageable > 0);
            let (count, bytes, ns) =
                copies.fold((0, 0, 0), |(n, bytes, ns), c| (n + c.pageable, bytes + c.bytes, ns + c.ns));
            (count > 0).then(|| (ns, format!("copies {} {} in {}", times(count), size(bytes), time(ns))))
        }
        Code::NSYS_TOP_KERNEL => {
            let kernel = line.kernels.iter().find(|kernel| Some(&kernel.name) == look.subject.as_ref())?;
            Some((kernel.ns, format!("launches it {} {} in all", times(kernel.count), time(kernel.ns))))
        }
        _ => None,
    }
}

fn times(count: u64) -> String {
    if count == 1 { "once,".to_owned() } else { format!("{count} times,") }
}
