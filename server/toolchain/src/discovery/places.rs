//! The places in which nvcc is looked for, in order.

use std::fs;
use std::path::{Path, PathBuf};

use super::toolkit::Origin;
use super::{Search, python, version};
use crate::environment::is_executable;
use crate::sentence::part;

/// Fixed places, best first. The last component may end with `*`: newest first.
/// Sources: CUDA Installation Guide for Linux (`/usr/local/cuda`, `/usr/local/cuda-X.Y`); Arch Linux's package `cuda`.
const FIXED: &[&str] = &["usr/local/cuda", "usr/local/cuda-*", "opt/cuda"];

/// An nvcc to look at.
pub(super) struct Candidate {
    pub(super) origin: Origin,
    pub(super) nvcc: PathBuf,
}

/// All nvcc that are there, in the order of choice; and the explicit settings that name none, with what is wrong.
pub(super) fn candidates(
    search: &Search,
    notes: &mut Vec<String>,
) -> (Vec<Candidate>, Vec<(Origin, String)>) {
    let environment = &search.environment;
    let mut found = Vec::new();
    let mut broken = Vec::new();
    let explicit = [
        (
            Origin::Configured,
            "the configuration",
            search.configured.clone().map(|path| expanded(path, search)),
        ),
        (Origin::CudaHome, "CUDA_HOME", environment.path("CUDA_HOME")),
        (Origin::CudaPath, "CUDA_PATH", environment.path("CUDA_PATH")),
    ];
    for (origin, setting, path) in explicit {
        match path.map(|path| named(&path).map_err(|why| (path, why))) {
            Some(Ok(nvcc)) => found.push(Candidate { origin, nvcc }),
            Some(Err((path, why))) => broken.push((
                origin,
                format!(
                    "The CUDA toolkit named by {setting}, {}, can't be used: {}. Correct it or take it out.",
                    path.display(),
                    part(why)
                ),
            )),
            None => {}
        }
    }
    let mut add = |origin, paths: Vec<PathBuf>| {
        found.extend(
            paths.into_iter().filter(|path| is_executable(path)).map(|nvcc| Candidate { origin, nvcc }),
        );
    };
    add(Origin::Path, environment.find_programs("nvcc"));
    let fixed = FIXED.iter().flat_map(|place| expand(&environment.under_root(place)));
    add(Origin::UsrLocal, fixed.map(|root| root.join("bin/nvcc")).collect());
    add(Origin::PythonEnvironment, in_wheels(search, notes));
    add(
        Origin::Conda,
        environment.path("CONDA_PREFIX").map(|prefix| prefix.join("bin/nvcc")).into_iter().collect(),
    );
    let private = expand(&environment.cache_folder().join("toolkits/*"));
    add(Origin::Private, private.into_iter().map(|root| root.join("bin/nvcc")).collect());
    (found, broken)
}

/// A configured path: `~` is the home folder, and a relative path begins at the workspace.
fn expanded(path: PathBuf, search: &Search) -> PathBuf {
    let path = match (path.strip_prefix("~"), search.environment.home()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path,
    };
    match &search.workspace {
        Some(workspace) if path.is_relative() => workspace.join(path),
        _ => path,
    }
}

/// The nvcc that an explicit path names: the path is a toolkit's folder, its `bin`, or nvcc itself.
fn named(path: &Path) -> Result<PathBuf, String> {
    if !path.exists() {
        return Err("there is no such file or folder".into());
    }
    let options =
        if path.is_dir() { vec![path.join("bin/nvcc"), path.join("nvcc")] } else { vec![path.to_path_buf()] };
    match options.iter().find(|option| option.is_file()) {
        Some(nvcc) if is_executable(nvcc) => Ok(nvcc.clone()),
        Some(nvcc) => Err(format!("{} is not executable", nvcc.display())),
        None => Err("it has no bin/nvcc".into()),
    }
}

/// nvcc among the wheels of the Python environments. Notes wheels that have the assembler but not nvcc.
fn in_wheels(search: &Search, notes: &mut Vec<String>) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for site in python::site_packages(search) {
        let mut roots = expand(&site.join("nvidia/cu*"));
        roots.retain(|root| root.file_name().is_some_and(|name| is_release_folder(&name.to_string_lossy())));
        roots.push(site.join("nvidia/cuda_nvcc"));
        for root in roots {
            let nvcc = root.join("bin/nvcc");
            if nvcc.is_file() {
                found.push(nvcc);
            } else if root.join("bin/ptxas").is_file() {
                notes.push(format!(
                    "The wheels in {} hold ptxas but no nvcc (those of CUDA 12 never do), so they can't compile.",
                    root.display()
                ));
            }
        }
    }
    found
}

/// `cu13`, but neither `cublas` nor `cuda_runtime`.
fn is_release_folder(name: &str) -> bool {
    name.strip_prefix("cu")
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The folders that a path with `*` in its components means, highest numbers first. Hidden folders are not meant.
pub(super) fn expand(pattern: &Path) -> Vec<PathBuf> {
    let mut paths = vec![PathBuf::new()];
    for component in pattern.components() {
        let text = component.as_os_str().to_string_lossy();
        let Some((before, after)) = text.split_once('*') else {
            paths.iter_mut().for_each(|path| path.push(component));
            continue;
        };
        let matching = |folder: &PathBuf| -> Vec<PathBuf> {
            let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
            let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
            let mut names: Vec<_> = names
                .filter(|name| {
                    name.len() >= before.len() + after.len()
                        && name.starts_with(before)
                        && name.ends_with(after)
                })
                .filter(|name| !name.starts_with('.') || before.starts_with('.'))
                .collect();
            names.sort_by_key(|name| std::cmp::Reverse((version::numbers_in(name), name.clone())));
            names.into_iter().map(|name| folder.join(name)).collect()
        };
        paths = paths.iter().flat_map(matching).collect();
    }
    paths.retain(|path| path.exists());
    paths
}
