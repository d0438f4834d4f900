//! Python interpreters, and the folders in which their packages lie.
//!
//! The folders follow from where an interpreter lies, which costs nothing to look at. Only where that says nothing (a
//! pyenv shim is a shell script) the interpreter is asked.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

use serde::Serialize;

use super::Search;
use super::places::expand;
use crate::environment::is_executable;
use crate::process::Program;

/// Where packages lie below the folder that holds an interpreter's `bin`.
/// Sources: CPython `Lib/site.py`; Debian's python3-distutils (`dist-packages`); RPM distributions (`lib64`).
const PACKAGE_FOLDERS: &[&str] = &[
    "lib/python3*/site-packages",
    "lib64/python3*/site-packages",
    "lib/python3/dist-packages",
    "local/lib/python3*/dist-packages",
];
/// Asks for the folders, in isolated mode so that no file of the current folder is run. One a line.
const QUESTION: &str =
    "import site, sys\nfor p in site.getsitepackages() + [site.getusersitepackages()]: print(p)";

/// A Python interpreter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Interpreter {
    /// The program.
    pub path: PathBuf,
    /// How it was found, in words.
    pub origin: String,
}

/// The interpreters in the order in which they count as active: of the virtual environment, of the conda environment,
/// of the workspace's `.venv` or `venv`, then each `python3` and `python` on `PATH`.
pub fn interpreters(search: &Search) -> Vec<Interpreter> {
    let environment = &search.environment;
    let mut found: Vec<Interpreter> = Vec::new();
    let mut add = |path: PathBuf, origin: &str| {
        if is_executable(&path) && found.iter().all(|known| known.path != path) {
            found.push(Interpreter { path, origin: origin.into() });
        }
    };
    for (prefix, origin) in prefixes(search) {
        add(prefix.join("bin/python3"), origin);
        add(prefix.join("bin/python"), origin);
    }
    environment.find_programs("python3").into_iter().for_each(|path| add(path, "PATH"));
    environment.find_programs("python").into_iter().for_each(|path| add(path, "PATH"));
    found
}

/// The active environments: folders with `bin` and `lib`.
fn prefixes(search: &Search) -> Vec<(PathBuf, &'static str)> {
    let environment = &search.environment;
    let workspace = |name: &str| {
        let folder = search.workspace.as_ref()?.join(name);
        folder.join("pyvenv.cfg").is_file().then_some(folder)
    };
    let all = [
        (environment.path("VIRTUAL_ENV"), "VIRTUAL_ENV"),
        (environment.path("CONDA_PREFIX"), "CONDA_PREFIX"),
        (workspace(".venv"), "the workspace's .venv"),
        (workspace("venv"), "the workspace's venv"),
    ];
    all.into_iter().filter_map(|(prefix, origin)| Some((prefix?, origin))).collect()
}

/// The package folders of the active environments and of the first `python3` on `PATH`, without repetition.
pub(super) fn site_packages(search: &Search) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = Vec::new();
    let mut seen = HashSet::new();
    let mut add = |more: Vec<PathBuf>| {
        for folder in more {
            // `lib64` of a virtual environment is mostly a link to `lib`.
            if seen.insert(folder.canonicalize().unwrap_or_else(|_| folder.clone())) {
                folders.push(folder);
            }
        }
    };
    for (prefix, _) in prefixes(search) {
        add(package_folders(&prefix));
    }
    if let Some(python) = search.environment.find_program("python3") {
        let beside = python.parent().and_then(Path::parent).map(package_folders).unwrap_or_default();
        let real =
            python.canonicalize().ok().and_then(|real| Some(package_folders(real.parent()?.parent()?)));
        let real = real.unwrap_or_default();
        if beside.is_empty() && real.is_empty() {
            add(asked(&python, search));
        }
        add(beside);
        add(real);
        if let Some(home) = search.environment.home() {
            add(expand(&home.join(".local/lib/python3*/site-packages")));
        }
    }
    folders
}

fn package_folders(prefix: &Path) -> Vec<PathBuf> {
    PACKAGE_FOLDERS.iter().flat_map(|folder| expand(&prefix.join(folder))).collect()
}

/// Asks an interpreter. Remembered for the life of this process, for each workspace (a shim may differ by folder).
fn asked(python: &Path, search: &Search) -> Vec<PathBuf> {
    type Answers = HashMap<(PathBuf, Option<PathBuf>, Option<std::ffi::OsString>), Vec<PathBuf>>;
    static ANSWERS: OnceLock<Mutex<Answers>> = OnceLock::new();
    let chosen = search.environment.get("PYENV_VERSION").map(std::ffi::OsStr::to_owned);
    let key = (python.to_path_buf(), search.workspace.clone(), chosen);
    let answers = ANSWERS.get_or_init(Mutex::default);
    if let Some(known) = answers.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get(&key) {
        return known.clone();
    }
    let mut program = Program::new(python).args(["-I", "-c", QUESTION]);
    program = program.environment(search.environment.clone().without_secrets());
    if let Some(workspace) = search.workspace.as_ref().filter(|workspace| workspace.is_dir()) {
        program = program.current_dir(workspace);
    }
    let Ok(finished) = program.time_limit(Duration::from_secs(10)).output_limit(1 << 16).run_blocking()
    else {
        return Vec::new();
    };
    if !finished.status.success() {
        return Vec::new();
    }
    let folders: Vec<_> =
        finished.stdout_text().lines().map(PathBuf::from).filter(|folder| folder.is_dir()).collect();
    answers.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).insert(key, folders.clone());
    folders
}
