//! From what a compile said to a report: messages become findings in files, numbers become measurements of kernels.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::cached::Outcome;
use super::foreign::Foreign;
use super::{CompileReport, FileReport, Trouble, findings, kernels, missing, trouble};
use crate::compiler_text::{self, Level, Message, SourcePlace};
use crate::line_directives::LineDirectives;
use crate::{paths, ptxas};

/// What must be known of a compile to read what it said.
pub(super) struct Workings {
    /// The source that was compiled.
    pub unit: PathBuf,
    /// The file that was asked about: the source, or a header that it includes.
    pub asked: PathBuf,
    /// Its text on disk.
    pub asked_text: Arc<str>,
    /// Threads a block where nothing tells.
    pub block_size: u32,
    /// `ptxas 13.5`.
    pub tool: String,
    /// Where the compiler ran.
    pub directory: PathBuf,
    /// Folders of headers that are not the user's; the toolkit's is the first.
    pub system: Vec<PathBuf>,
    /// The architecture that was asked for.
    pub default_architecture: Option<String>,
    /// For a text taken out of a program: what is known of the rest.
    pub foreign: Option<Foreign>,
}

impl Workings {
    /// Reads everything.
    pub(super) fn report(&self, outcome: &Outcome) -> Result<CompileReport, Trouble> {
        let mut messages = compiler_text::parse(outcome.text.as_bytes());
        let mut files = Files::new(self);
        files.lead_back(&mut messages, &outcome.dependencies);
        let mut notes = Vec::new();
        let lacks = |message: &Message| match &self.foreign {
            Some(_) => missing::lack_of_text(message),
            None => missing::lack(message),
        };
        let not_compiled: Vec<_> =
            messages.iter().find_map(lacks).filter(|_| !outcome.success).into_iter().collect();
        messages.retain(|message| not_compiled.is_empty() || lacks(message).is_none());
        let (messages, excused) = match &self.foreign {
            Some(foreign) => foreign.sort(messages),
            None => (messages, 0),
        };
        if excused > 0 {
            let errors = if excused == 1 { "1 error" } else { &format!("{excused} errors") };
            notes.push(format!("{errors} about what only the whole program declares: not shown"));
        }
        let mut failure = None;
        let resources = ptxas::parse(&outcome.text);
        let mut found = kernels::Kernels::look_up(self, &mut files, &resources, &outcome.dependencies);
        let mut errors = 0;
        for message in &messages {
            let in_toolkit = message.place.as_ref().is_some_and(|place| files.is_in_toolkit(place));
            if let Some(trouble) = trouble::of(message, in_toolkit) {
                match trouble {
                    Trouble::Failed { .. } => failure = failure.or(Some(trouble)),
                    decided => return Err(decided),
                }
            } else if let Some(at) = findings::place(self, &mut files, &mut found, message) {
                errors += usize::from(message.level == Level::Error);
                let finding = findings::finding(&mut files, message, &at);
                files.add(at.file, finding);
            } else if message.place.is_none() || message.level == Level::Error {
                notes.push(findings::readable(message));
            }
        }
        if !outcome.success && errors == 0 && excused == 0 && not_compiled.is_empty() {
            return Err(failure.unwrap_or_else(|| trouble::of_silence(&notes_or_text(&notes, &outcome.text))));
        }
        notes.extend(failure.map(|trouble| trouble.to_string()));
        notes.extend(resources.advice.iter().cloned());
        found.spills(&mut files, &resources);
        let kernels = found.measure(&mut files, &resources, &mut notes);
        notes.dedup();
        Ok(CompileReport {
            files: files.into_reports(),
            kernels,
            command: outcome.command.clone(),
            from_cache: outcome.from_cache,
            notes,
            not_compiled,
            ..CompileReport::default()
        })
    }
}

fn notes_or_text(notes: &[String], text: &str) -> String {
    if notes.is_empty() { text.to_owned() } else { notes.join("\n") }
}

/// Files that are searched for `#line`.
const MOST_WITH_DIRECTIVES: usize = 256;

/// The files that a compile speaks of, by an index.
pub(super) struct Files<'a> {
    workings: &'a Workings,
    reports: Vec<FileReport>,
    by_name: HashMap<String, Option<usize>>,
}

/// The file that was asked about.
pub(super) const ASKED: usize = 0;

impl<'a> Files<'a> {
    fn new(workings: &'a Workings) -> Self {
        let asked = FileReport {
            path: workings.asked.clone(),
            text: workings.asked_text.clone(),
            findings: Vec::new(),
            measurements: Vec::new(),
        };
        Self { workings, reports: vec![asked], by_name: HashMap::new() }
    }

    /// Leads what is said of files that `#line` makes up back to the texts that say so.
    fn lead_back(&mut self, messages: &mut [Message], dependencies: &[String]) {
        if messages.is_empty() {
            return;
        }
        let unit = self.workings.unit.display().to_string();
        let mut directives: Vec<(usize, LineDirectives)> = Vec::new();
        let names = std::iter::once(&unit).chain(dependencies).take(MOST_WITH_DIRECTIVES);
        for index in names.filter_map(|name| self.by_name(name)).collect::<Vec<_>>() {
            let file = &self.reports[index];
            if directives.iter().all(|(known, _)| *known != index)
                && let Some(found) = LineDirectives::of(&file.path, &file.text)
            {
                directives.push((index, found));
            }
        }
        if directives.is_empty() {
            return;
        }
        for message in messages {
            let notes = message.notes.iter_mut().filter_map(|note| note.place.as_mut());
            for place in message.place.as_mut().into_iter().chain(notes) {
                let named = self.by_name(&place.file);
                let own = directives.iter().filter(|(index, _)| named.is_none_or(|named| named == *index));
                let found = own.clone().find_map(|(index, found)| {
                    let line = found.line(&self.reports[*index].text, place, &self.workings.directory)?;
                    Some((found.path().display().to_string(), line))
                });
                if let Some((file, line)) = found {
                    (place.file, place.line) = (file, line);
                }
            }
        }
    }

    /// The file that the compiler calls `name`, if it is the user's and can be read.
    pub(super) fn by_name(&mut self, name: &str) -> Option<usize> {
        if let Some(known) = self.by_name.get(name) {
            return *known;
        }
        let found = self.look_up(name);
        self.by_name.insert(name.to_owned(), found);
        found
    }

    fn look_up(&mut self, name: &str) -> Option<usize> {
        let path = paths::resolve(name, &self.workings.directory);
        let same = |report: &FileReport| report.path == path || paths::is_same(name, &report.path);
        if let Some(known) = self.reports.iter().position(same) {
            return Some(known);
        }
        if self.is_system(&path) {
            return None;
        }
        let bytes = std::fs::read(&path).ok()?;
        let text = stitch_analysis::decode(&bytes)?.text.into();
        self.reports.push(FileReport { path, text, findings: Vec::new(), measurements: Vec::new() });
        Some(self.reports.len() - 1)
    }

    /// Whether a path lies in a folder of headers that are not the user's. The compiled file and the file asked about are, wherever
    /// they lie.
    pub(super) fn is_system(&self, path: &Path) -> bool {
        path != self.workings.unit && self.workings.system.iter().any(|folder| path.starts_with(folder))
    }

    /// The path that the compiler calls `name`.
    pub(super) fn resolve(&self, name: &str) -> PathBuf {
        paths::resolve(name, &self.workings.directory)
    }

    /// Whether a place is in a header of the toolkit.
    fn is_in_toolkit(&self, place: &SourcePlace) -> bool {
        let path = paths::resolve(&place.file, &self.workings.directory);
        let toolkit = self.workings.system.first().is_some_and(|folder| path.starts_with(folder));
        toolkit || path.ends_with("crt/host_config.h")
    }

    /// A file by its index.
    pub(super) fn get(&self, index: usize) -> &FileReport {
        &self.reports[index]
    }

    pub(super) fn add(&mut self, index: usize, finding: stitch_findings::Finding) {
        self.reports[index].findings.push(finding);
    }

    pub(super) fn measure(&mut self, index: usize, measurement: stitch_findings::Measurement) {
        self.reports[index].measurements.push(measurement);
    }

    /// The file asked about, and each other that something was said of.
    fn into_reports(self) -> Vec<FileReport> {
        let said = |(index, report): &(usize, FileReport)| {
            *index == ASKED || !(report.findings.is_empty() && report.measurements.is_empty())
        };
        self.reports.into_iter().enumerate().filter(said).map(|(_, report)| report).collect()
    }
}
