//! Going through the table of rules.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stitch_findings::{Code, Finding, Severity, Span};

use super::expression::{Facts, Formula};
use super::lines::{self, LineEvidence, LinePlace};
use super::roofline::Class;
use super::rules::{At, Condition, Format, Rule, rules};
use super::{KernelLaunch, Metric};
use crate::units;

/// How many lines of one rule are told.
const MOST_LINES: usize = 5;

/// Below this part of a launch's time a gain is minor, and told as a hint whatever its code's severity is. Ours.
const MINOR: f64 = 0.05;

/// Below this part a gain would be written as none, and is left out. Ours.
const NOTHING: f64 = 0.005;

/// What the rules say about one launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The roofline class.
    pub class: Class,
    /// What limits the launch; the class first, then the largest gain.
    pub insights: Vec<Insight>,
}

/// One thing that limits a launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Insight {
    /// The rule that says so.
    pub rule: String,
    /// The finding's code.
    pub code: Code,
    /// Information or a hint: performance is never more.
    pub severity: Severity,
    /// The kernel, by its base name.
    pub kernel: String,
    /// The line, where one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<LinePlace>,
    /// Other lines that belong to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<RelatedLine>,
    /// What limits, in a sentence with its numbers.
    pub limits: String,
    /// What to do, in a sentence.
    pub advice: String,
    /// What could be gained, where that can be estimated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<Gain>,
    /// The numbers in the sentence.
    pub evidence: BTreeMap<String, f64>,
    /// Where the thresholds come from.
    pub source: String,
    /// Documentation.
    pub link: String,
}

/// Another line, with what is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RelatedLine {
    /// Where.
    pub place: LinePlace,
    /// What is there: `waits for it`.
    pub what: String,
}

/// An estimate of ours: the part of the launch's time that would be saved if this limit were gone and no other one took its place. What
/// kernels with and without a limit really took stands beside it in `docs/profiles.md`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gain {
    /// From 0 to 1.
    pub share: f64,
    /// How it is computed.
    pub formula: String,
}

impl Gain {
    /// In words: `about 40% of its time, by our estimate: 1 - waves / ceil(waves)`.
    pub fn label(&self) -> String {
        format!("about {} of its time, by our estimate: {}", Format::Share.show(self.share), self.formula)
    }
}

impl Insight {
    /// Whether it says no more than the roofline class.
    pub fn is_class(&self) -> bool {
        matches!(
            self.code,
            Code::NCU_MEMORY_BOUND | Code::NCU_COMPUTE_BOUND | Code::NCU_BALANCED | Code::NCU_LATENCY_BOUND
        )
    }

    /// The finding, at a span of a text that the caller has found for [`Insight::place`] or for the kernel.
    pub fn finding(&self, span: Span) -> Finding {
        let gain = self.gain.as_ref().map(|gain| format!(" Gain: {}.", gain.label())).unwrap_or_default();
        let mut finding = Finding::new(self.code, span, format!("{}{gain}", self.limits))
            .advise(self.advice.clone())
            .about(self.kernel.clone());
        finding.severity = self.severity;
        finding
    }
}

/// What limits a launch, by the table of rules. What was not measured says nothing.
pub fn explain(launch: &KernelLaunch) -> Explanation {
    let class = Class::of(launch);
    let mut insights: Vec<Insight> = Vec::new();
    let mut held: Vec<&'static str> = Vec::new();
    for rule in rules() {
        let found = apply(rule, launch, &class);
        if !found.is_empty() {
            held.push(rule.id);
            insights.extend(found);
        }
    }
    insights.retain(|insight| {
        let unless = rules().find(|rule| rule.id == insight.rule).map_or(&[][..], |rule| rule.unless);
        !unless.iter().any(|better| held.contains(better))
    });
    insights.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    Explanation { class, insights }
}

/// The class first, then what gains most.
fn weight(insight: &Insight) -> f64 {
    let gain = insight.gain.as_ref().map_or(0.0, |gain| gain.share);
    if insight.is_class() { 2.0 + gain } else { gain }
}

fn apply(rule: &'static Rule, launch: &KernelLaunch, class: &Class) -> Vec<Insight> {
    let facts = Facts { launch, class, line: None };
    let holds = || rule.when.iter().all(|condition| condition.holds(facts));
    match rule.at {
        At::Lines { measure, ratio, below, share } => match lines::evidence(launch, measure) {
            Some(evidence) => {
                let unknown = rule.when.iter().all(|condition| {
                    !matches!(condition, Condition::BelowOrUnknown(..)) || condition.holds(facts)
                });
                let proven = evidence.iter().filter(|line| {
                    unknown && line.ratio >= ratio && line.ratio < below && line.share >= share
                });
                proven
                    .take(MOST_LINES)
                    .filter_map(|line| tell(rule, Facts { line: Some(line), ..facts }))
                    .collect()
            }
            None if holds() => tell(rule, facts).into_iter().collect(),
            None => Vec::new(),
        },
        At::Uncounted(measure) if lines::evidence(launch, measure).is_some() => Vec::new(),
        At::Worst(measure) if holds() => {
            let evidence = lines::evidence(launch, measure).unwrap_or_default();
            let Some(mut insight) = tell(rule, Facts { line: evidence.first(), ..facts }) else {
                return Vec::new();
            };
            let next = evidence
                .iter()
                .skip(1)
                .filter(|line| line.share >= 0.05)
                .filter_map(|line| line.place.clone())
                .take(MOST_LINES);
            insight
                .related
                .extend(next.map(|place| RelatedLine { place, what: "has the next most of it".into() }));
            vec![insight]
        }
        _ if holds() => tell(rule, facts).into_iter().collect(),
        _ => Vec::new(),
    }
}

impl Condition {
    fn holds(&self, facts: Facts<'_>) -> bool {
        let both = |a: &Formula, b: &Formula| a.value(facts).zip(b.value(facts));
        match self {
            Self::AtLeast(a, b) => both(a, b).is_some_and(|(a, b)| a >= b),
            Self::Below(a, b) => both(a, b).is_some_and(|(a, b)| a < b),
            Self::BelowOrUnknown(a, b) => both(a, b).is_none_or(|(a, b)| a < b),
            Self::Is(bound) => facts.class.bound == *bound,
            Self::Level(level) => facts.class.level == Some(*level),
            Self::Named(parts) => {
                let name = facts.launch.kernel.base.to_lowercase();
                parts.iter().any(|part| name.contains(part))
            }
        }
    }
}

/// Makes the sentences of a rule that holds. `None` when a number that it speaks of was not measured.
fn tell(rule: &'static Rule, facts: Facts<'_>) -> Option<Insight> {
    let launch = facts.launch;
    let (place, related) = locate(rule.at, facts);
    let mut evidence = BTreeMap::new();
    let limits = sentence(rule, facts, place.is_some(), &mut evidence)?;
    let gain = rule.gain.as_ref().and_then(|(formula, text)| {
        let share = formula.value(facts)?.clamp(0.0, 1.0);
        Some(Gain { share, formula: (*text).to_owned() })
    });
    let is_minor = gain.as_ref().is_some_and(|gain| gain.share < MINOR);
    Some(Insight {
        rule: rule.id.to_owned(),
        code: rule.code,
        severity: if is_minor { Severity::Hint } else { rule.code.info().severity },
        kernel: launch.kernel.base.clone(),
        place,
        related,
        limits,
        advice: rule.advice.to_owned(),
        gain: gain.filter(|gain| gain.share >= NOTHING),
        evidence,
        source: rule.source.to_owned(),
        link: rule.link.to_owned(),
    })
}

/// Fills a rule's sentence. A part in square brackets is left out when a number in it was not measured, or when it says "here" and no line
/// is known; without a number of the rest nothing is told.
fn sentence(
    rule: &Rule,
    facts: Facts<'_>,
    placed: bool,
    evidence: &mut BTreeMap<String, f64>,
) -> Option<String> {
    let mut filled = String::new();
    for (at, part) in rule.limits.split(['[', ']']).enumerate() {
        let optional = at % 2 == 1;
        if let Some(text) =
            fill(part, rule, facts, evidence).filter(|_| placed || !optional || !part.contains("here"))
        {
            filled.push_str(&text);
        } else if !optional {
            return None;
        }
    }
    Some(if placed { filled } else { filled.replace(" here", "") })
}

/// A part of a sentence with its names filled in. `None` when one was not measured.
fn fill(part: &str, rule: &Rule, facts: Facts<'_>, evidence: &mut BTreeMap<String, f64>) -> Option<String> {
    let mut text = part.replace("{kernel}", &format!("`{}`", facts.launch.kernel.base));
    if text.contains("{pipe-name}") {
        text = text.replace("{pipe-name}", facts.class.pipe.as_deref()?);
    }
    if text.contains("{level}") {
        text = text.replace("{level}", facts.class.level?.label());
    }
    for (name, formula, format) in rule.shows {
        let pattern = format!("{{{name}}}");
        if text.contains(&pattern) {
            let value = formula.value(facts)?;
            evidence.insert((*name).to_owned(), value);
            text = text.replace(&pattern, &format.show(value));
        }
    }
    Some(text)
}

/// The line of a result.
fn locate(at: At, facts: Facts<'_>) -> (Option<LinePlace>, Vec<RelatedLine>) {
    let launch = facts.launch;
    let alone = |place: Option<LinePlace>| (place, Vec::new());
    match at {
        At::Kernel | At::Uncounted(_) => alone(lines::head(launch)),
        At::Lines { .. } | At::Worst(_) => match facts.line {
            Some(LineEvidence { place, related, .. }) => {
                let related = related
                    .iter()
                    .map(|(place, what)| RelatedLine { place: place.clone(), what: (*what).to_owned() });
                (place.clone(), related.collect())
            }
            None => alone(lines::head(launch)),
        },
        At::MostSectors => alone(lines::most(launch, traffic).or_else(|| lines::head(launch))),
        At::MostWavefronts => alone(
            lines::most(launch, |counters| counters.wavefronts)
                .or_else(|| lines::most(launch, traffic))
                .or_else(|| lines::head(launch)),
        ),
        At::MostInstructions => {
            alone(lines::most(launch, |counters| counters.instructions).or_else(|| lines::head(launch)))
        }
        At::Atomics => alone(lines::atomics(launch).or_else(|| lines::head(launch))),
        At::Stalled(stall) => match lines::stalled(launch, stall) {
            Some((cause, Some(waiting))) => {
                (Some(cause), vec![RelatedLine { place: waiting, what: "waits for it".into() }])
            }
            Some((cause, None)) => alone(Some(cause)),
            None => alone(lines::head(launch)),
        },
    }
}

/// Sectors of global and local memory.
fn traffic(counters: &super::Counters) -> Option<u64> {
    match (counters.sectors, counters.local_sectors) {
        (None, None) => None,
        (global, local) => Some(global.unwrap_or(0) + local.unwrap_or(0)),
    }
}

impl Format {
    /// A value in words.
    pub fn show(self, value: f64) -> String {
        match self {
            Self::Percent => units::percent(value / 100.0),
            Self::Share => units::percent(value),
            Self::Count => units::count(value.round() as u64),
            Self::Ratio if value >= 100.0 => units::count(value.round() as u64),
            Self::Ratio if value < 2.0 => format!("{value:.2}"),
            Self::Ratio => format!("{value:.1}"),
            Self::Small => format!("{value:.2}"),
            Self::Bytes => units::size(value as u64),
        }
    }
}

/// The metrics that a rule needs, in the order in which they stand in it.
pub(crate) fn needed(rule: &Rule) -> Vec<Metric> {
    let mut found = Vec::new();
    for condition in rule.when {
        match condition {
            Condition::Level(_) => {
                found.extend([
                    Metric::MemoryThroughput,
                    Metric::DramThroughput,
                    Metric::L2Throughput,
                    Metric::L1Throughput,
                ]);
            }
            Condition::BelowOrUnknown(a, b) => {
                a.metrics(&mut found);
                b.metrics(&mut found);
            }
            condition => condition.formulas().iter().for_each(|formula| formula.metrics(&mut found)),
        }
    }
    for (_, formula, _) in rule.shows {
        formula.metrics(&mut found);
    }
    if let Some((formula, _)) = &rule.gain {
        formula.metrics(&mut found);
    }
    found
}

/// Whether a rule can hold at all when only these metrics are measured.
pub(crate) fn answerable(rule: &Rule, has: &dyn Fn(Metric) -> bool) -> bool {
    rule.when.iter().all(|condition| condition.formulas().iter().all(|formula| formula.answerable(has)))
}
