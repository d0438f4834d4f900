//! The programs of a build, and what tells one version of them from another.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::flags;
use super::ninja::BuildFile;

/// What a build runs.
pub(super) struct Tools {
    /// ninja, by its path.
    pub ninja: PathBuf,
    /// The C++ compiler that nvcc runs, as nvcc would name it; empty where there is no nvcc.
    pub host_cxx: String,
    /// Flags that nvcc finds in its variables: what it puts before its own, and behind them.
    pub nvcc_flags: [Vec<String>; 2],
    /// `CUDA_VERSION` of the toolkit; 0 where there is none.
    pub cuda_version: u32,
    /// Paths, sizes and times of change of all of them: another version has another text.
    pub identity: String,
}

/// What nvcc runs, from its own folder.
const OF_NVCC: [&str; 5] = ["../nvvm/bin/cicc", "ptxas", "cudafe++", "fatbinary", "nvcc.profile"];

impl Tools {
    /// Finds them.
    ///
    /// # Errors
    /// Which is not there.
    pub fn find(file: &BuildFile, variables: &[(OsString, OsString)]) -> Result<Self, String> {
        let variable = |wanted: &str| {
            variables.iter().find(|(name, _)| name == wanted).map_or(OsStr::new(""), |(_, value)| value)
        };
        let path = variable("PATH");
        let program =
            |name: &str| program(name, path).ok_or_else(|| format!("the program {name} was not found"));
        let ninja = program("ninja")?;
        let mut identity = identity(&program(file.variable("cxx"))?);
        for name in ["as", "ld", "nm", "sed"] {
            identity.push_str(&self::identity(&program(name)?));
        }
        let (mut cuda_version, mut host_cxx, mut nvcc_flags) = (0, String::new(), Default::default());
        let nvcc = file.variable("nvcc");
        if !nvcc.is_empty() {
            let nvcc = program(nvcc)?;
            identity.push_str(&self::identity(&nvcc));
            let folder = std::fs::canonicalize(&nvcc)
                .ok()
                .and_then(|path| path.parent().map(PathBuf::from))
                .unwrap_or_default();
            for name in OF_NVCC {
                identity.push_str(&self::identity(&folder.join(name)));
            }
            cuda_version = version(&folder.join("../include/cuda.h"));
            nvcc_flags = [words(variable("NVCC_PREPEND_FLAGS"))?, words(variable("NVCC_APPEND_FLAGS"))?];
            host_cxx = host_compiler(file, &nvcc_flags, variable("NVCC_CCBIN"))?;
            identity.push_str(&self::identity(&program(&host_cxx)?));
        }
        // `-march=native` means another processor elsewhere.
        let processor = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        identity.extend(processor.lines().find(|line| line.starts_with("flags")));
        Ok(Self { ninja, host_cxx, nvcc_flags, cuda_version, identity })
    }
}

/// The C++ compiler that nvcc runs: the one that a flag names, or a variable, or `gcc`. In a folder that is named, it is `gcc` too.
fn host_compiler(file: &BuildFile, more: &[Vec<String>; 2], variable: &OsStr) -> Result<String, String> {
    let told = flags::host(&file.nvcc_flags(more)?)?.compiler;
    let variable = variable.to_str().filter(|name| !name.is_empty());
    let name = told.as_deref().or(variable).unwrap_or("gcc");
    if name.contains(['$', '\n']) {
        return Err("the name of nvcc's C++ compiler has a dollar sign".to_owned());
    }
    let is_folder = Path::new(name).is_absolute() && Path::new(name).is_dir();
    Ok(if is_folder { format!("{}/gcc", name.trim_end_matches('/')) } else { name.to_owned() })
}

/// The flags in a variable.
fn words(text: &OsStr) -> Result<Vec<String>, String> {
    text.to_str()
        .and_then(|text| shell_words::split(text).ok())
        .ok_or_else(|| "a variable of nvcc's has flags that can't be told apart".to_owned())
}

fn program(name: &str, path: &OsStr) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| path.is_file();
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|path| path.is_absolute()).filter(is_program);
    }
    if name.is_empty() || name.contains(char::is_whitespace) {
        return None;
    }
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(is_program)
}

/// A file's path, size and time of change, as text.
pub(super) fn identity(path: &Path) -> String {
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    match std::fs::metadata(&path) {
        Ok(found) => {
            let changed = found.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            format!("{} {} {}\n", path.display(), found.len(), changed.unwrap_or_default().as_nanos())
        }
        Err(_) => format!("{} none\n", path.display()),
    }
}

/// The number behind `#define CUDA_VERSION`.
fn version(header: &Path) -> u32 {
    let text = std::fs::read_to_string(header).unwrap_or_default();
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix("#define CUDA_VERSION"));
    line.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}
