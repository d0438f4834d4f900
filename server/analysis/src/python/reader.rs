//! Keeps what is known of one Python file up to date.

use std::collections::HashMap;
use std::sync::Arc;

use stitch_findings::Finding;
use xxhash_rust::xxh3::xxh3_128;

use super::embed::{self, Found};
use super::facts::Facts;
use super::names::Names;
use super::parse::{Parsed, PieceParser, Prepared};
use super::split::Splitter;
use super::unit::{Unit, UnitRole, needs_torch};
use super::unknown::UnknownSource;
use super::value::PieceText;
use super::walk::Walk;
use super::{outline, rules};
use crate::{Analysis, Analyzer, CutOff, Language, Outline, Workspace};

/// What a Python file tells.
#[derive(Clone, Debug, Default)]
pub(crate) struct Read {
    /// Functions, modules, and what the units hold, in the order of the text.
    pub(crate) outline: Outline,
    /// Of the rules for Python and of the units, in the order of the text.
    pub(crate) findings: Vec<Finding>,
    /// The CUDA texts.
    pub(crate) units: Vec<Unit>,
    /// What is given to a compiler without being known.
    pub(crate) unknown: Vec<UnknownSource>,
}

/// Reads the versions of one file. Facts are kept by the text of their piece.
pub(crate) struct Reader {
    parser: PieceParser,
    known: HashMap<u128, Arc<Facts>>,
    work: Option<Work>,
    slots: Vec<Slot>,
}

/// The version that is being read.
struct Work {
    source: Arc<str>,
    splitter: Splitter,
    facts: Vec<Arc<Facts>>,
    /// By which each piece's facts are kept; `None` for facts that may not be kept.
    keys: Vec<Option<u128>>,
    current: Option<Current>,
}

/// The piece that is being read.
struct Current {
    prepared: Prepared,
    parsed: Option<Parsed>,
    walk: Walk,
}

/// The analyzer of one CUDA text, kept so that typing in the text is incremental.
struct Slot {
    text: Arc<str>,
    analyzer: Analyzer,
}

impl Reader {
    /// A reader that has seen no text yet.
    pub(crate) fn new() -> Self {
        Self { parser: PieceParser::new(), known: HashMap::new(), work: None, slots: Vec::new() }
    }

    /// Reads `source`; after [`CutOff`], with the same text, goes on where it stopped.
    ///
    /// # Errors
    /// [`CutOff`] when `keep_going` said no.
    pub(crate) fn update(
        &mut self,
        source: &Arc<str>,
        workspace: &Workspace,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<Read, CutOff> {
        let same = self
            .work
            .as_ref()
            .is_some_and(|work| Arc::ptr_eq(&work.source, source) || work.source == *source);
        let mut work = match self.work.take() {
            Some(work) if same => work,
            other => {
                self.parser.reset();
                if let Some(abandoned) = other {
                    self.known.extend(abandoned.kept());
                }
                Work::new(source)
            }
        };
        let result = self.read(&mut work, workspace, keep_going);
        if result.is_ok() {
            // What no piece of this version has is forgotten.
            self.known = work.kept().collect();
        } else {
            self.work = Some(work);
        }
        result
    }

    fn read(
        &mut self,
        work: &mut Work,
        workspace: &Workspace,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<Read, CutOff> {
        work.splitter.run(&work.source, keep_going)?;
        while work.facts.len() < work.splitter.pieces().len() {
            self.piece(work, keep_going)?;
        }
        let names = Names::new(work.splitter.pieces(), &work.facts);
        let (found, unknown) = embed::find(&work.source, &names);
        let units = self.units(found, workspace, keep_going)?;
        Ok(Read { unknown, ..assemble(&work.source, &names, units) })
    }

    /// Reads the next piece.
    fn piece(&mut self, work: &mut Work, keep_going: &dyn Fn() -> bool) -> Result<(), CutOff> {
        let piece = work.splitter.pieces()[work.facts.len()];
        let text = &work.source[piece.span.range()];
        let member = piece.outer.is_some();
        let key = xxh3_128(text.as_bytes()) ^ u128::from(member);
        let (facts, repeatable) = match self.known.get(&key) {
            Some(facts) => (Arc::clone(facts), true),
            None => {
                if work.current.is_none() {
                    if !keep_going() {
                        return Err(CutOff);
                    }
                    work.current = Prepared::new(text, member).map(Current::new);
                }
                match &mut work.current {
                    Some(current) => current.run(text, &mut self.parser, keep_going)?,
                    None => (Arc::new(Walk::new().facts), true),
                }
            }
        };
        work.current = None;
        work.keys.push(repeatable.then_some(key));
        work.facts.push(facts);
        Ok(())
    }

    /// Reads the texts as CUDA. A text that was read before keeps its analyzer; so does one that takes the place of a text
    /// that is gone, for it is likely the same, edited.
    fn units(
        &mut self,
        found: Vec<Found>,
        workspace: &Workspace,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<Vec<Unit>, CutOff> {
        let mut old: Vec<Option<Slot>> = std::mem::take(&mut self.slots).into_iter().map(Some).collect();
        let mut slots: Vec<Option<Slot>> = Vec::new();
        for found in &found {
            let same =
                old.iter_mut().find(|slot| slot.as_ref().is_some_and(|slot| *slot.text == *found.text));
            slots.push(same.and_then(Option::take));
        }
        let mut left = old.into_iter().flatten();
        self.slots = slots
            .into_iter()
            .zip(&found)
            .map(|(slot, found)| {
                let mut slot = slot
                    .or_else(|| left.next())
                    .unwrap_or_else(|| Slot { text: "".into(), analyzer: Analyzer::new(Language::Cuda) });
                if *slot.text != *found.text {
                    slot.text = found.text.as_str().into();
                }
                slot
            })
            .collect();
        let mut units = Vec::new();
        for (found, slot) in found.into_iter().zip(&mut self.slots) {
            let analysis = slot.analyzer.update(Arc::clone(&slot.text), workspace, keep_going)?;
            if found.role != UnitRole::Unknown || analysis.outline().kernels().next().is_some() {
                units.push(unit(found, Arc::clone(&slot.text), analysis));
            }
        }
        Ok(units)
    }
}

impl Work {
    fn new(source: &Arc<str>) -> Self {
        Self {
            source: Arc::clone(source),
            splitter: Splitter::default(),
            facts: Vec::new(),
            keys: Vec::new(),
            current: None,
        }
    }

    /// What may be kept of this version.
    fn kept(self) -> impl Iterator<Item = (u128, Arc<Facts>)> {
        self.keys.into_iter().zip(self.facts).filter_map(|(key, facts)| Some((key?, facts)))
    }
}

impl Current {
    fn new(prepared: Prepared) -> Self {
        Self { prepared, parsed: None, walk: Walk::new() }
    }

    /// The facts of the piece, and whether reading it again is sure to give the same.
    fn run(
        &mut self,
        text: &str,
        parser: &mut PieceParser,
        keep_going: &dyn Fn() -> bool,
    ) -> Result<(Arc<Facts>, bool), CutOff> {
        if self.parsed.is_none() {
            self.parsed = parser.parse(&self.prepared, keep_going)?;
        }
        let Some(parsed) = &self.parsed else { return Ok((Arc::new(Walk::new().facts), true)) };
        self.walk.run(&parsed.tree, PieceText { text, shift: self.prepared.shift }, keep_going)?;
        Ok((Arc::new(std::mem::take(&mut self.walk.facts)), parsed.repeatable))
    }
}

fn unit(found: Found, text: Arc<str>, analysis: Arc<Analysis>) -> Unit {
    Unit {
        role: found.role,
        span: found.span,
        needs_torch: needs_torch(&text),
        text,
        options: found.options,
        name: found.name,
        holes: found.map.holes().to_vec(),
        analysis,
        map: found.map,
    }
}

/// Puts the file's own outline and findings together with those of its units.
fn assemble(source: &str, names: &Names<'_>, units: Vec<Unit>) -> Read {
    let mut outline = outline::outline(source, names);
    let mut findings = rules::check(names);
    for (index, unit) in units.iter().enumerate() {
        let inner = unit.analysis.outline();
        outline.functions.extend(inner.functions.iter().filter_map(|f| unit.function_to_file(f, index)));
        outline
            .launches
            .extend(inner.launches.iter().filter_map(|launch| unit.launch_to_file(launch, index)));
        findings.extend(unit.analysis.findings().iter().filter_map(|finding| unit.finding_to_file(finding)));
    }
    outline.functions.sort_by_key(|function| function.span);
    outline.launches.sort_by_key(|launch| launch.span);
    findings.sort_by_key(|finding| (finding.span, finding.code));
    // A text that is used twice, or is part of two texts, has its findings once.
    findings.dedup();
    Read { outline, findings, units, unknown: Vec::new() }
}
