//! Finds CUDA toolkits and what is needed beside them, and chooses one.
//!
//! An explicit setting wins over the environment, the environment over `PATH`, `PATH` over the usual places. The chosen
//! toolkit is one whole: its nvcc, its headers and its libraries come from the same installation, never nvcc from one and
//! headers from another. The others are named as seen, so that a person can tell why a version was used.
//!
//! Searching looks at files, and runs `nvcc --version` (remembered by path and time of change). It blocks; call it from
//! a thread that may. With `Search::workspace` set, a virtual environment inside the workspace is searched and its
//! programs are run: leave it unset for a workspace that the person has not said to trust.

mod counters;
mod host_compiler;
mod places;
mod python;
mod toolkit;
mod tools;
mod version;

use std::path::PathBuf;

use serde::Serialize;

use crate::environment::Environment;
pub use counters::{COUNTERS_REMEDY, Counters, counters};
pub use host_compiler::{
    CompilerKind, HostCompiler, HostCompilers, Limits, Verdict, host_compilers, limits_of,
};
pub use python::{Interpreter, interpreters};
pub use toolkit::{Origin, Toolkit};
pub use tools::{Profilers, Tool, Tools, clang, compute_sanitizer, profilers, tools};
pub use version::Version;

/// Where to search.
#[derive(Clone, Debug)]
pub struct Search {
    /// The toolkit that the configuration names: its folder, its `bin`, or its nvcc.
    pub configured: Option<PathBuf>,
    /// The workspace folder, whose `.venv` or `venv` counts as the active Python environment.
    pub workspace: Option<PathBuf>,
    /// The environment variables, and the root of the file system.
    pub environment: Environment,
}

impl Search {
    /// A search in this environment, with nothing configured and no workspace.
    pub fn new(environment: Environment) -> Self {
        Self { configured: None, workspace: None, environment }
    }
}

/// What a search found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Discovery {
    /// The toolkit to use. `None` if there is none, or if the configured one is broken.
    pub chosen: Option<Toolkit>,
    /// The other toolkits that work, in the order in which they would be chosen.
    pub seen: Vec<Toolkit>,
    /// What is wrong and wants mending: a setting that names no toolkit, an nvcc that does not run.
    pub problems: Vec<String>,
    /// What was met that is no toolkit though it looks like one, such as a wheel with `ptxas` alone.
    pub notes: Vec<String>,
}

impl Discovery {
    /// Why there is no toolkit, and what to do; for the status of a job that needs one.
    pub fn advice(&self) -> String {
        let mut lines = self.problems.clone();
        if lines.is_empty() {
            lines.push("No CUDA toolkit was found.".into());
            lines.extend(self.notes.clone());
        }
        lines.push("Run `stitchcuda toolchain install` for a private one, or name one in the configuration (`nvcc.path`) or in CUDA_HOME.".into());
        lines.join(" ")
    }
}

/// Searches all places, in the order of [`Origin`].
pub fn find(search: &Search) -> Discovery {
    let mut discovery = Discovery::default();
    let (candidates, broken) = places::candidates(search, &mut discovery.notes);
    let mut configured_is_broken = false;
    for (origin, problem) in broken {
        configured_is_broken |= origin == Origin::Configured;
        discovery.problems.push(problem);
    }
    let mut toolkits: Vec<Toolkit> = Vec::new();
    for candidate in candidates {
        match toolkit::examine(&candidate, search) {
            Ok((toolkit, note)) => {
                if toolkits.iter().all(|known| !known.is_same(&toolkit)) {
                    discovery.notes.extend(note);
                    toolkits.push(toolkit);
                }
            }
            Err(problem) => {
                configured_is_broken |= candidate.origin == Origin::Configured;
                if !discovery.problems.contains(&problem) {
                    discovery.problems.push(problem);
                }
            }
        }
    }
    // A person who named a toolkit gets that one or an error, not silently another one.
    if !configured_is_broken && !toolkits.is_empty() {
        discovery.chosen = Some(toolkits.remove(0));
    }
    discovery.seen = toolkits;
    discovery
}
