//! Nsight Compute: has it look at chosen kernels of a program, and prints the pages of its report.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use stitch_profiles::ncu as pages;
use stitch_toolchain::process::{Program as Process, ProgramError};
use tokio_util::sync::CancellationToken;

use super::{Refused, cut};
use crate::program::Observer;

/// How long a page may take to be printed.
const PAGE_LIMIT: Duration = Duration::from_secs(300);
/// A page with the source of many kernels is long.
const PAGE_BYTES: usize = 1 << 30;

/// What the caches hold when a kernel is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caches {
    /// What the launch before left: as in the program.
    AsLeft,
    /// Nothing: each pass is like the other, and every access is seen.
    Flushed,
}

/// What is collected in one run.
#[derive(Clone, Debug)]
pub(super) struct Collection {
    /// Metrics by their full names.
    pub metrics: Vec<&'static str>,
    /// Sections of the tool's own besides, such as `SourceCounters`.
    pub sections: Vec<&'static str>,
    /// The caches.
    pub caches: Caches,
}

/// What is collected of a chip that has these metrics: how busy its parts are with the caches as in the program, and what each access moves
/// with caches that hold nothing.
pub(super) fn collections(available: &BTreeSet<String>) -> [Collection; 2] {
    let as_left = pages::select(available, pages::Depth::Usual);
    let all = pages::select(available, pages::Depth::Full);
    let metrics = all.metrics.into_iter().filter(|metric| !as_left.metrics.contains(metric)).collect();
    let sections = all.sections.into_iter().filter(|section| !as_left.sections.contains(section)).collect();
    [
        Collection { metrics: as_left.metrics, sections: as_left.sections, caches: Caches::AsLeft },
        Collection { metrics, sections, caches: Caches::Flushed },
    ]
}

/// What to measure in one run.
#[derive(Clone, Debug)]
pub(super) struct Request {
    /// Names of kernels without their parameters; of all where it is empty.
    pub kernels: Vec<String>,
    /// Launches of these that are passed over first.
    pub skip: u64,
    /// Launches that are measured then, at most.
    pub launches: u64,
    /// What of them.
    pub collection: Collection,
}

/// `ncu` in front of a program. It writes its report to `report`, to which it adds an ending, and says what it has to say in `log`.
///
/// The clocks are left as they are: locking them needs rights, changes the machine for others, and gives times that nobody has.
pub(super) fn observer(ncu: &Path, request: &Request, report: &Path, log: &Path) -> Observer {
    let mut arguments: Vec<OsString> = Vec::new();
    let mut say = |words: &[&str]| arguments.extend(words.iter().map(OsString::from));
    say(&["--target-processes", "all", "--clock-control", "none"]);
    say(&["--cache-control", if request.collection.caches == Caches::Flushed { "all" } else { "none" }]);
    say(&["--launch-skip", &request.skip.to_string(), "--launch-count", &request.launches.to_string()]);
    // What comes after the last of them is of no use.
    say(&["--kill", "yes"]);
    if !request.kernels.is_empty() {
        say(&["--kernel-name-base", "function", "--kernel-name", &only(&request.kernels)]);
    }
    if !request.collection.metrics.is_empty() {
        say(&["--metrics", &request.collection.metrics.join(",")]);
    }
    for section in &request.collection.sections {
        say(&["--section", section]);
    }
    say(&["--import-source", "yes", "--force-overwrite", "--export"]);
    arguments.push(report.into());
    arguments.push("--log-file".into());
    arguments.push(log.into());
    Observer { path: ncu.to_owned(), arguments }
}

/// The filter for these names and no others: an expression is not anchored by itself.
fn only(names: &[String]) -> String {
    let escaped = |name: &String| {
        let special = |c: char| !(c.is_alphanumeric() || c == '_');
        name.chars().fold(String::new(), |mut text, c| {
            if special(c) {
                text.push('\\');
            }
            text.push(c);
            text
        })
    };
    format!("regex:^({})$", names.iter().map(escaped).collect::<Vec<_>>().join("|"))
}

/// The report that was asked for, or why there is none.
pub(super) fn left(report: &Path, log: &Path) -> Result<PathBuf, Refused> {
    let report = report.with_extension("ncu-rep");
    let said = std::fs::read_to_string(log).unwrap_or_default();
    match refusal(&said) {
        Some(refused) => Err(refused),
        None if report.exists() => Ok(report),
        None => Err(Refused::once(format!("ncu left no report: {}", cut(&errors(&said))))),
    }
}

/// Why it measured nothing, from what it says.
fn refusal(said: &str) -> Option<Refused> {
    if said.contains("ERR_NVGPUCTRPERM") {
        return Some(Refused::always(format!("ncu was refused: {}.", pages::NOT_PERMITTED)));
    }
    let errors = errors(said);
    if errors.contains("Failed to initialize the profiler") || errors.contains("LibraryNotLoaded") {
        return Some(Refused::always(format!("ncu can't be used on this machine: {}", cut(&errors))));
    }
    said.contains("No kernels were profiled")
        .then(|| Refused::once("The program launched no kernel that ncu could measure."))
}

fn errors(said: &str) -> String {
    let lines = said.lines().filter_map(|line| line.strip_prefix("==ERROR== "));
    lines.collect::<Vec<_>>().join(" ")
}

/// The pages of a report that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Page {
    /// Every metric of every launch.
    Raw,
    /// Counters by line and instruction.
    Source,
}

/// Prints a page of a report as CSV, in base units.
///
/// # Errors
/// Why it can't be, in a sentence.
async fn page(ncu: &Path, report: &Path, page: Page, cancel: &CancellationToken) -> Result<Vec<u8>, Refused> {
    let words: &[&str] = match page {
        Page::Raw => &["--page", "raw"],
        Page::Source => &["--page", "source", "--print-source", "cuda,sass"],
    };
    let process = Process::new(ncu)
        .arg("--import")
        .arg(report)
        .args(["--csv", "--print-units", "base"])
        .args(words)
        .output_limit(PAGE_BYTES)
        .time_limit(PAGE_LIMIT);
    match process.run(cancel).await {
        // Of a report that was cut off it says so and ends well.
        Ok(finished) if finished.status.success() && !is_unreadable(&finished.stdout) => Ok(finished.stdout),
        Ok(finished) => {
            let said = format!("{}\n{}", finished.stderr_text(), finished.stdout_text());
            Err(Refused::once(format!("ncu could not read {}: {}", report.display(), cut(&said))))
        }
        Err(ProgramError::Cancelled { .. }) => Err(Refused::Cancelled),
        Err(error) => Err(Refused::once(error.to_string())),
    }
}

/// What `ncu` says of a report that it can't make sense of.
pub(super) const UNREADABLE: &str = "Failed to load report";

/// Whether what it printed begins with that.
fn is_unreadable(printed: &[u8]) -> bool {
    const NEAR: usize = 1 << 10;
    String::from_utf8_lossy(printed.get(..NEAR).unwrap_or(printed)).contains(UNREADABLE)
}

/// Reads the pages of a report. One without line tables has no lines, and nothing is wrong then.
///
/// # Errors
/// Why it can't be read, in a sentence.
pub async fn read(ncu: &Path, report: &Path, cancel: &CancellationToken) -> Result<pages::Report, Refused> {
    let unreadable = |error: pages::NcuError| Refused::once(format!("{error}"));
    let raw = page(ncu, report, Page::Raw, cancel).await?;
    let mut found = pages::read(&*raw).map_err(unreadable)?;
    let source = page(ncu, report, Page::Source, cancel).await;
    if let Some(lines) = source.ok().and_then(|source| pages::read(&*source).ok()) {
        found.merge(lines);
    }
    Ok(found)
}

/// The metrics that a chip has, by their names without endings such as `.sum`; of the GPUs of this machine where no chip is named.
///
/// # Errors
/// Why they can't be listed, in a sentence.
pub async fn metrics(
    ncu: &Path,
    chip: Option<&str>,
    cancel: &CancellationToken,
) -> Result<BTreeSet<String>, Refused> {
    let mut process = Process::new(ncu).arg("--query-metrics").time_limit(PAGE_LIMIT);
    if let Some(chip) = chip {
        process = process.args(["--chips", chip]);
    }
    let finished = match process.run(cancel).await {
        Ok(finished) => finished,
        Err(ProgramError::Cancelled { .. }) => return Err(Refused::Cancelled),
        Err(error) => return Err(Refused::once(error.to_string())),
    };
    let text = finished.stdout_text();
    let names = pages::available(&text);
    if names.is_empty() {
        let said = format!("{}\n{text}", finished.stderr_text());
        return Err(Refused::once(format!("ncu lists no metrics: {}", cut(&said))));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_takes_these_names_and_no_others() {
        assert_eq!(only(&["add".into(), "operator()".into()]), r"regex:^(add|operator\(\))$");
    }

    #[test]
    fn a_refusal_is_known_by_what_ncu_says() {
        let said = "==PROF== Connected to process 7\n==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the target device 0.\n==PROF== Disconnected\n==WARNING== No kernels were profiled.\n";
        let Some(Refused::Because { why, lasting }) = refusal(said) else { panic!("{said}") };
        assert!(lasting && why.contains("NVreg_RestrictProfilingToAdminUsers=0"), "{why}");
        let said = "==ERROR== Nsight Compute failed to connect to the CUDA driver.\n==WARNING== No kernels were profiled.\n";
        assert!(matches!(refusal(said), Some(Refused::Because { lasting: false, .. })));
        assert_eq!(refusal("==PROF== Disconnected from process 7\n"), None);
    }
}
