//! Asks pip where wheels are.
//!
//! pip is run for its answer only: `install --dry-run` writes nothing, into no environment, and works where a system
//! forbids installing (PEP 668). It runs in a scratch folder, so that no file of the current folder is imported, and with
//! the person's whole environment, so that indexes, credentials and proxies set there count.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::error::at;
use super::{Access, InstallError, Progress, Report, Resolver, Stage, Wheel};
use crate::discovery::{self, Search};
use crate::environment::{Environment, is_executable};
use crate::process::{Finished, Program, ProgramError, Scratch};

/// pip before 25.3 downloads whole wheels to answer (pypa/pip#12603), and so does any where the index has no metadata files.
const ANSWER_WITHIN: Duration = Duration::from_secs(1800);
/// How often it is measured what pip has fetched.
const MEASURE_EVERY: Duration = Duration::from_millis(500);
/// Less than this, in bytes, is no wheel worth telling of.
const WORTH_TELLING: u64 = 1 << 20;
/// Settings of a person that would make a dry run fail, or write somewhere.
const UNWANTED: &[&str] =
    &["PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_REPORT", "PIP_REQUIREMENT", "PIP_EDITABLE", "PIP_LOG"];
const SETTINGS: &[(&str, &str)] = &[
    ("PIP_REQUIRE_VIRTUALENV", "0"),
    ("PIP_USER", "0"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ("PIP_NO_INPUT", "1"),
];

/// The pip of the first Python that has a new enough one.
pub struct Pip {
    interpreters: Vec<PathBuf>,
    environment: Environment,
}

impl Pip {
    /// The Pythons of this search, and the system's.
    pub fn new(search: &Search) -> Self {
        let mut interpreters: Vec<_> =
            discovery::interpreters(search).into_iter().map(|found| found.path).collect();
        let system = search.environment.under_root("usr/bin/python3");
        if is_executable(&system) && !interpreters.contains(&system) {
            interpreters.push(system);
        }
        Self { interpreters, environment: search.environment.clone() }
    }

    fn program(&self, python: &Path, scratch: &Scratch) -> Program {
        let mut environment = self.environment.clone();
        for name in UNWANTED {
            environment = environment.without(name);
        }
        for (name, value) in SETTINGS {
            environment = environment.with(*name, *value);
        }
        let program = Program::new(python).args(["-m", "pip"]).environment(environment);
        program.scratch(scratch).time_limit(ANSWER_WITHIN).output_limit(1 << 18)
    }

    async fn ask(
        &self,
        python: &Path,
        requirements: &[String],
        report: Report<'_>,
        cancel: &CancellationToken,
    ) -> Result<Vec<Wheel>, InstallError> {
        // pip unpacks into its temporary folder what has no metadata file.
        let scratch =
            Scratch::new("pip").map_err(|source| at(Path::new("a scratch folder"), "made", source))?;
        let scratch = scratch.limit(8 << 30);
        let answer = scratch.path().join("report.json");
        let program = self.program(python, &scratch);
        let program = program.args(["install", "--dry-run", "--quiet", "--no-deps", "--ignore-installed"]);
        let program = program.args(["--only-binary", ":all:", "--report"]).arg(&answer).args(requirements);
        let item = requirements.join(" ");
        let finished = tokio::select! {
            finished = program.run(cancel) => finished,
            never = tell_of_growth(&scratch, &item, report) => match never {},
        };
        let finished = match finished {
            Ok(finished) => finished,
            Err(ProgramError::Cancelled { .. }) => return Err(InstallError::Cancelled { kept: 0 }),
            Err(error) => {
                return Err(InstallError::Resolver { python: python.into(), said: error.to_string() });
            }
        };
        if !finished.status.success() {
            return Err(refusal(python, requirements, &finished));
        }
        let text = std::fs::read(&answer).map_err(|source| at(&answer, "read", source))?;
        wheels(&text).map_err(|problem| InstallError::BadIndex { problem })
    }
}

impl Resolver for Pip {
    fn resolve<'a>(
        &'a self,
        requirements: &'a [String],
        report: Report<'a>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<Wheel>, InstallError>> {
        async move {
            let architecture = std::env::consts::ARCH;
            if !cfg!(target_os = "linux") || !matches!(architecture, "x86_64" | "aarch64") {
                let system = format!("{} on {architecture}", std::env::consts::OS);
                return Err(InstallError::NoWheels { system });
            }
            // An environment made by uv has no pip: the next Python may have one.
            let mut first_error = InstallError::NoPython;
            for python in &self.interpreters {
                match self.ask(python, requirements, report, cancel).await {
                    Err(error @ (InstallError::NoPip { .. } | InstallError::OldPip { .. })) => {
                        if matches!(first_error, InstallError::NoPython) {
                            first_error = error;
                        }
                    }
                    answer => return answer,
                }
            }
            Err(first_error)
        }
        .boxed()
    }

    fn access<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Access> {
        async move {
            for python in &self.interpreters {
                let Ok(scratch) = Scratch::new("pip") else { break };
                let program = self.program(python, &scratch).args(["config", "list"]);
                if let Ok(finished) = program.run(cancel).await
                    && finished.status.success()
                {
                    return Access::from_pip(&finished.stdout_text(), &self.environment);
                }
            }
            Access::from_pip("", &self.environment)
        }
        .boxed()
    }
}

/// Reports what pip has fetched into its folder so far, for as long as it runs.
async fn tell_of_growth(scratch: &Scratch, item: &str, report: Report<'_>) -> std::convert::Infallible {
    loop {
        tokio::time::sleep(MEASURE_EVERY).await;
        let done = scratch.size();
        if done >= WORTH_TELLING {
            report(Progress { stage: Stage::Resolving, item: item.to_owned(), done, total: None });
        }
    }
}

/// Whether pip tried an index again and again, and it never answered.
fn is_unreachable(said: &str) -> bool {
    let tried = said.contains("Retrying (Retry(") || said.contains("Could not fetch URL");
    tried && (said.contains("(from versions: none)") || said.contains("Max retries exceeded"))
}

/// What pip's refusal means.
fn refusal(python: &Path, requirements: &[String], finished: &Finished) -> InstallError {
    let python = python.to_path_buf();
    let said = finished.stderr_text();
    if said.contains("No module named pip") || said.contains("No module named 'pip'") {
        return InstallError::NoPip { python };
    }
    if said.contains("no such option") {
        return InstallError::OldPip { python };
    }
    let lines: Vec<_> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(4)..].join(" ");
    let last: String = last.chars().take(1000).collect();
    if is_unreachable(&said) {
        return InstallError::NoIndex { python, said: last };
    }
    let missing = said
        .split("No matching distribution found for ")
        .nth(1)
        .and_then(|rest| rest.split_whitespace().next());
    match missing {
        Some(missing) => InstallError::NotFound {
            requirement: missing.into(),
            advice: if requirements.len() == 1 {
                "If the release exists, your package index or its mirror may lack it, or this system may be too old for its wheels.".into()
            } else {
                "Your package index or its mirror lacks a part of this release; try another release.".into()
            },
            said: last,
        },
        None => InstallError::Resolver {
            python,
            said: if last.is_empty() { finished.status.to_string() } else { last },
        },
    }
}

/// pip's report, version 1. Source: pip documentation, "Installation Report".
#[derive(Deserialize)]
struct PipReport {
    install: Vec<Item>,
}
#[derive(Deserialize)]
struct Item {
    download_info: DownloadInfo,
    metadata: Metadata,
}
#[derive(Deserialize)]
struct DownloadInfo {
    url: String,
    archive_info: Option<ArchiveInfo>,
}
#[derive(Deserialize)]
struct ArchiveInfo {
    /// `sha256=…`, in pip before 23.
    hash: Option<String>,
    #[serde(default)]
    hashes: std::collections::HashMap<String, String>,
}
#[derive(Deserialize)]
struct Metadata {
    name: String,
    version: String,
    #[serde(default)]
    requires_dist: Vec<String>,
}

fn wheels(report: &[u8]) -> Result<Vec<Wheel>, String> {
    let report: PipReport =
        serde_json::from_slice(report).map_err(|error| format!("pip's report is not understood: {error}"))?;
    let wheel = |item: Item| {
        let archive = item.download_info.archive_info;
        let sha256 = archive.and_then(|archive| {
            let old = archive.hash.as_ref().and_then(|hash| hash.strip_prefix("sha256=")).map(String::from);
            archive.hashes.get("sha256").cloned().or(old)
        });
        let sha256 = sha256.map(|hash| hash.to_ascii_lowercase());
        let sha256 =
            sha256.filter(|hash| hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()));
        Ok(Wheel {
            sha256: sha256.ok_or_else(|| format!("it gives no SHA-256 for {}", item.metadata.name))?,
            name: item.metadata.name,
            version: item.metadata.version,
            url: item.download_info.url,
            requires: item.metadata.requires_dist,
        })
    };
    report.install.into_iter().map(wheel).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_to_write_the_hash_are_read() {
        let hash = "A5c4f7ead5d964fb4af42bbf1e6d3ec3c1e6e9d83b53749f691d387e7fcaa3a7";
        for archive in [
            format!(r#"{{"hash": "sha256={hash}"}}"#),
            format!(r#"{{"hashes": {{"sha256": "{hash}", "md5": "x"}}}}"#),
        ] {
            let report = format!(
                r#"{{"version": "1", "install": [{{"download_info": {{"url": "file:///a.whl", "archive_info": {archive}}},
                    "metadata": {{"name": "a", "version": "1", "requires_dist": ["b"]}}}}]}}"#
            );
            let found = wheels(report.as_bytes()).unwrap();
            assert_eq!(
                (found[0].sha256.as_str(), found[0].requires.len()),
                (hash.to_lowercase().as_str(), 1)
            );
            let without = report.replace(hash, "../../x");
            assert!(wheels(without.as_bytes()).unwrap_err().contains("no SHA-256"));
        }
        assert!(wheels(b"[]").is_err());
    }
}
