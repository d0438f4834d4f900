//! `cargo xtask recall DIR…`: how many of the kernels that files define does the outline find, and under which name?
//!
//! Kernels are what everything else hangs on, and they are found in trees that are broken in four files of ten. So the
//! number is measured on whole repositories against [`crate::truth`], which fails in other ways. Each folder is one
//! repository: both sides know the macros of all its headers.

mod compare;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use stitch_analysis::{Analyzer, CutOff, Language, Workspace};

use crate::truth::{self, Class, Macros, Truth};
use compare::{Comparison, Got, GotKernel, compare};

/// Arguments of `recall`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Folders, each one repository
    #[arg(required = true)]
    folders: Vec<PathBuf>,
    /// List every definition and launch that was missed, and every kernel that is none
    #[arg(short, long)]
    verbose: bool,
    /// List the places where the scanner itself is unsure, for a person to look at
    #[arg(long)]
    unsure: bool,
    /// Also measure the C++ headers that mention a kernel, as if an editor called them CUDA
    #[arg(long)]
    headers: bool,
    /// Tell the outline nothing of the other files: only its built-in table of macros
    #[arg(long)]
    alone: bool,
    /// Give up on a file after so long; what it holds then counts as missed
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    limit: u64,
    /// Fail when a smaller percentage of all definitions has the right name
    #[arg(long, value_name = "PERCENT")]
    at_least: Option<f64>,
}

/// What is counted over many files.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    files: usize,
    definitions: usize,
    found: usize,
    named: usize,
    extras: usize,
    unsure: usize,
    launches: usize,
    launches_found: usize,
}

impl Tally {
    fn add(&mut self, truth: &Truth, comparison: &Comparison) {
        self.files += 1;
        self.definitions += comparison.definitions;
        self.found += comparison.found;
        self.named += comparison.named;
        self.extras += comparison.extras.len();
        self.unsure += truth.sites.iter().filter(|site| site.class == Class::Unsure).count();
        self.launches += comparison.launches;
        self.launches_found += comparison.launches_found;
    }

    fn merge(&mut self, other: &Tally) {
        self.files += other.files;
        self.definitions += other.definitions;
        self.found += other.found;
        self.named += other.named;
        self.extras += other.extras;
        self.unsure += other.unsure;
        self.launches += other.launches;
        self.launches_found += other.launches_found;
    }

    fn row(&self, name: &str) -> String {
        format!(
            "{name:<24} {:>6} {:>12} {:>6} {:>6} {:>8} {:>6} {:>6} {:>9} {:>6}",
            self.files,
            self.definitions,
            self.found,
            self.named,
            percent(self.named, self.definitions),
            self.extras,
            self.unsure,
            self.launches,
            self.launches_found
        )
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<()> {
    let mut out = io::stdout().lock();
    let mut total = Tally::default();
    writeln!(
        out,
        "{:<24} {:>6} {:>12} {:>6} {:>6} {:>8} {:>6} {:>6} {:>9} {:>6}",
        "repository",
        "files",
        "definitions",
        "found",
        "named",
        "named %",
        "extra",
        "unsure",
        "launches",
        "found"
    )?;
    for folder in &arguments.folders {
        let (tally, notes) = repository(folder, arguments)?;
        let name = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy();
        writeln!(out, "{}", tally.row(&name))?;
        for note in notes {
            writeln!(out, "  {note}")?;
        }
        total.merge(&tally);
    }
    writeln!(out, "{}", total.row("total"))?;
    if let Some(least) = arguments.at_least.filter(|&least| share(total.named, total.definitions) < least) {
        bail!("Fewer than {least} % of the definitions have the right name.");
    }
    Ok(())
}

fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 100.0 } else { 100.0 * part as f64 / whole as f64 }
}

fn percent(part: usize, whole: usize) -> String {
    if whole == 0 { "-".to_owned() } else { format!("{:.2}", share(part, whole)) }
}

/// Counts one repository, and notes what the arguments ask for.
fn repository(folder: &Path, arguments: &Arguments) -> Result<(Tally, Vec<String>)> {
    let mut paths = Vec::new();
    sources(folder, &mut paths)?;
    let mut macros = Macros::default();
    let mut workspace = Workspace::default();
    for path in &paths {
        let text = read(path)?;
        macros.collect(&text);
        if !arguments.alone {
            workspace.add(&text);
        }
    }
    macros.resolve();

    let mut tally = Tally::default();
    let mut notes = Vec::new();
    if arguments.verbose && macros.aliases().next().is_some() {
        notes.push(format!("macros for __global__: {}", macros.aliases().collect::<Vec<_>>().join(", ")));
    }
    for path in &paths {
        let is_cuda = has_extension(path, &["cu", "cuh"]);
        if !is_cuda && !arguments.headers {
            continue;
        }
        let text = read(path)?;
        let truth = truth::scan(&text, &macros);
        if !is_cuda && !truth.sites.iter().any(|site| site.class == Class::Definition) {
            continue;
        }
        let got = outline(&text, &workspace, Duration::from_secs(arguments.limit)).unwrap_or_else(|CutOff| {
            notes.push(format!("{}: given up after {} s", path.display(), arguments.limit));
            Got::default()
        });
        let comparison = compare(&truth, &got);
        tally.add(&truth, &comparison);
        if arguments.verbose {
            misses(path, &text, &comparison, &mut notes);
        }
        if arguments.unsure {
            unsure(path, &truth, &mut notes);
        }
    }
    Ok((tally, notes))
}

/// The outline's side, from the production code.
fn outline(text: &str, workspace: &Workspace, limit: Duration) -> Result<Got, CutOff> {
    let start = Instant::now();
    let mut analyzer = Analyzer::new(Language::Cuda);
    let analysis = analyzer.update(Arc::from(text), workspace, &|| start.elapsed() < limit)?;
    let outline = analysis.outline();
    let kernels = outline.kernels().map(|kernel| GotKernel {
        name: kernel.name.clone(),
        name_at: kernel.name_span.start,
        span: kernel.span.range(),
    });
    let launches = outline.launches.iter().map(|launch| launch.span.range());
    Ok(Got { kernels: kernels.collect(), launches: launches.collect() })
}

fn unsure(path: &Path, truth: &Truth, notes: &mut Vec<String>) {
    for site in truth.sites.iter().filter(|site| site.class == Class::Unsure) {
        notes.push(format!("{}:{}: unsure `{}`: {}", path.display(), site.line, site.name, site.why));
    }
}

fn misses(path: &Path, text: &str, comparison: &Comparison, notes: &mut Vec<String>) {
    let line = |offset: usize| text.bytes().take(offset).filter(|&b| b == b'\n').count() + 1;
    let path = path.display();
    for miss in &comparison.misses {
        let got = miss.got.as_deref().map_or("nothing".to_owned(), |got| format!("`{got}`"));
        notes.push(format!("{path}:{}: truth `{}`, got {got}", miss.line, miss.name));
    }
    for extra in &comparison.extras {
        notes.push(format!(
            "{path}:{}: got `{}`, which is no kernel definition in truth",
            line(extra.at),
            extra.name
        ));
    }
    for &at in &comparison.launches_missed {
        notes.push(format!("{path}:{}: launch missed", line(at)));
    }
}

/// Files that may define kernels or the macros around them, in a fixed order. Links are not followed.
fn sources(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    let listing = fs::read_dir(folder).with_context(|| format!("Cannot list {}.", folder.display()))?;
    let mut entries = listing.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let kind = entry.file_type()?;
        if kind.is_dir() {
            sources(&path, paths)?;
        } else if kind.is_file()
            && has_extension(&path, &["cu", "cuh", "h", "hpp", "hxx", "hh", "inl", "inc"])
        {
            paths.push(path);
        }
    }
    Ok(())
}

fn has_extension(path: &Path, any_of: &[&str]) -> bool {
    path.extension()
        .and_then(|extension| extension.to_str())
        .is_some_and(|extension| any_of.contains(&extension))
}

/// Old sources are not always UTF-8; what isn't is replaced, for both sides alike.
fn read(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("Cannot read {}.", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
