//! Puts what the rules and the compilers say together, file by file: those named first, then their headers.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stitch_analysis::{Analyzer, Encoding, Text};
use stitch_findings::Finding;
use stitch_verifier::compile::{CompileReport, KernelResources, NotCompiled};
use stitch_verifier::includes;

use super::files::Source;
use super::report::{FileReport, FindingReport, KernelReport, NotCompiledReport};
use crate::settings::Surrounding;

/// Everything found so far.
#[derive(Default)]
pub struct Gathered {
    files: Vec<File>,
    /// Where each file is in `files`, by its canonical path.
    by_path: HashMap<PathBuf, usize>,
    /// What was not done, and why.
    pub notes: Vec<String>,
}

/// One file's findings and kernels while they are gathered from several compiles.
struct File {
    /// As a person named it, or as seen from the folder that the command was started in.
    shown: PathBuf,
    canonical: PathBuf,
    text: Arc<str>,
    findings: Vec<Finding>,
    kernels: Vec<KernelResources>,
    not_compiled: Vec<NotCompiled>,
}

impl Gathered {
    /// Checks the rules of each file.
    pub fn by_rules(sources: &[Source]) -> Self {
        let mut gathered = Self::default();
        for source in sources {
            let text: Arc<str> = source.text.as_str().into();
            let workspace = includes::workspace_of(&source.path, &source.text);
            // Nothing cuts it off, so it can't be cut off.
            let analysis = Analyzer::new(source.language).update(text.clone(), &workspace, &|| true);
            let findings = match analysis {
                Ok(analysis) if !analysis.is_too_large() => analysis.findings().to_vec(),
                _ => {
                    let path = source.path.display();
                    gathered.notes.push(format!(
                        "{path}: too large for the static rules, so only compilers were asked"
                    ));
                    Vec::new()
                }
            };
            let file = gathered.file(&source.canonical, &source.path, &text);
            file.findings = findings;
        }
        gathered
    }

    /// Takes in what a compile said. A header may be compiled several times, with the same findings.
    pub fn add(&mut self, report: CompileReport, folder: &Path) {
        for said in report.files {
            let path = canonical(&said.path);
            let kernels = report
                .kernels
                .iter()
                .filter(|kernel| kernel.place.as_ref().is_some_and(|(place, _)| canonical(place) == path));
            let shown = path.strip_prefix(folder).unwrap_or(&path);
            let file = self.file(&path, shown, &said.text);
            for finding in said.findings {
                if !file.findings.contains(&finding) {
                    file.findings.push(finding);
                }
            }
            for kernel in kernels {
                if !file.kernels.contains(kernel) {
                    file.kernels.push(kernel.clone());
                }
            }
        }
    }

    /// Takes in what is said of a file that nobody has looked at here.
    pub fn tell(&mut self, source: &Source, findings: Vec<Finding>) {
        let text: Arc<str> = source.text.as_str().into();
        self.file(&source.canonical, &source.path, &text).findings.extend(findings);
    }

    /// Takes in what a run showed of a file.
    pub fn add_findings(&mut self, path: &Path, findings: Vec<Finding>) {
        if let Some(index) = self.by_path.get(path) {
            self.files[*index].findings.extend(findings);
        }
    }

    /// Notes that something of a file was not compiled.
    pub fn leave_out(&mut self, path: &Path, not: NotCompiled) {
        if let Some(index) = self.by_path.get(path) {
            self.files[*index].not_compiled.push(not);
        }
    }

    fn file(&mut self, path: &Path, shown: &Path, text: &Arc<str>) -> &mut File {
        let index = *self.by_path.entry(path.to_owned()).or_insert_with(|| {
            self.files.push(File {
                shown: shown.to_owned(),
                canonical: path.to_owned(),
                text: text.clone(),
                findings: Vec::new(),
                kernels: Vec::new(),
                not_compiled: Vec::new(),
            });
            self.files.len() - 1
        });
        &mut self.files[index]
    }

    /// The files as they are reported: findings with the severities that are configured, in the order of the text.
    pub fn report(self, surrounding: &Surrounding) -> Vec<FileReport> {
        let others = Others::new(&self.files, &surrounding.folder);
        self.files.into_iter().map(|file| file.report(surrounding, &others)).collect()
    }
}

/// How places in other files are shown.
struct Others<'a> {
    folder: &'a Path,
    /// The files of the report: as they are shown, and their texts.
    known: HashMap<PathBuf, (PathBuf, Text)>,
}

impl<'a> Others<'a> {
    fn new(files: &[File], folder: &'a Path) -> Self {
        let known = |file: &File| (file.canonical.clone(), (file.shown.clone(), Text::new(&file.text)));
        Self { folder, known: files.iter().map(known).collect() }
    }

    /// The name of `path`, and the column of a byte of one of its lines. `relative` where the file that names it is shown
    /// relative to the folder that the command was started in.
    fn place(&self, path: &Path, relative: bool, line: u32, byte: u32) -> (PathBuf, u32) {
        let column = |text: &Text| text.column(line, byte, Encoding::Utf16);
        let path = canonical(path);
        if let Some((shown, text)) = self.known.get(&path) {
            return (shown.clone(), column(text));
        }
        let column = match byte {
            0 => 0,
            _ => includes::read(&path).map_or(byte, |text| column(&Text::new(&text))),
        };
        match path.strip_prefix(self.folder) {
            Ok(inside) if relative => (inside.to_owned(), column),
            _ => (path, column),
        }
    }
}

impl File {
    fn report(self, surrounding: &Surrounding, others: &Others<'_>) -> FileReport {
        let config = surrounding.config_for(Some(&self.canonical));
        let text = Text::new(&self.text);
        let relative = self.shown.is_relative();
        let elsewhere = |path: &Path, line, byte| others.place(path, relative, line, byte);
        let mut findings: Vec<FindingReport> = self
            .findings
            .into_iter()
            .filter_map(|finding| {
                let severity = config.severity(finding.code, finding.severity)?;
                Some(FindingReport::new(finding, severity, &text, elsewhere))
            })
            .collect();
        findings.sort_by_key(|finding| (finding.range.bytes, finding.code));
        let mut kernels: Vec<KernelReport> =
            self.kernels.into_iter().filter_map(|kernel| KernelReport::new(kernel, &text)).collect();
        kernels.sort_by_key(|kernel| kernel.range.bytes);
        let not_compiled = self.not_compiled.into_iter().map(NotCompiledReport::from).collect();
        FileReport { path: self.shown, findings, kernels, not_compiled, text }
    }
}

/// The one path of a file that has several.
pub fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
