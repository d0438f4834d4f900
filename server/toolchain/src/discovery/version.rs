//! CUDA versions: their text, and what `nvcc --version` says.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::environment::Environment;
use crate::process::Program;

/// `nvcc --version` answers in milliseconds; a wrapper script may take longer, and one that hangs must not hold us up.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// A CUDA release, such as 12.6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// 12 of 12.6.
    pub major: u32,
    /// 6 of 12.6.
    pub minor: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let error = || format!("`{text}` is no CUDA version; write it as 12.6");
        let (major, minor) = text.split_once('.').ok_or_else(error)?;
        let number = |part: &str| -> Result<u32, String> {
            let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            if digits { part.parse().map_err(|_| error()) } else { Err(error()) }
        };
        Ok(Self { major: number(major)?, minor: number(minor)? })
    }
}

impl Serialize for Version {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Version {
    /// From `CUDART_VERSION` or `CUDA_VERSION`: 1000 times major plus 10 times minor.
    pub(super) fn from_number(number: u32) -> Self {
        Self { major: number / 1000, minor: number % 1000 / 10 }
    }

    /// From what `nvcc --version` prints: `Cuda compilation tools, release 12.6, V12.6.85`.
    pub(crate) fn from_nvcc(text: &str) -> Option<Self> {
        let (_, rest) = text.split_once("release ")?;
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        rest[..end].parse().ok()
    }
}

/// Asks an nvcc for its version. Remembered until the file changes.
///
/// # Errors
/// Says what happened, naming the nvcc.
pub(super) fn ask(nvcc: &Path, environment: &Environment) -> Result<Version, String> {
    type Answers = HashMap<(PathBuf, Option<SystemTime>, u64), Result<Version, String>>;
    static ANSWERS: OnceLock<Mutex<Answers>> = OnceLock::new();
    let file = std::fs::metadata(nvcc);
    let changed = file.as_ref().ok().and_then(|file| file.modified().ok());
    let key = (nvcc.to_path_buf(), changed, file.map_or(0, |file| file.len()));
    let answers = ANSWERS.get_or_init(Mutex::default);
    if let Some(known) = answers.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get(&key) {
        return known.clone();
    }
    let answer = run(nvcc, environment);
    // Only a version is remembered: a failure may be of the moment (a full machine, a mount not there yet).
    if answer.is_ok() {
        answers.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).insert(key, answer.clone());
    }
    answer
}

fn run(nvcc: &Path, environment: &Environment) -> Result<Version, String> {
    let program = Program::new(nvcc).arg("--version").environment(environment.clone().without_secrets());
    let finished = program
        .time_limit(ANSWER_WITHIN)
        .output_limit(1 << 16)
        .run_blocking()
        .map_err(|error| error.to_string())?;
    Version::from_nvcc(&finished.stdout_text()).ok_or_else(|| {
        let said = format!("{} {}", finished.stdout_text().trim(), finished.stderr_text().trim());
        let said: String = said.trim().chars().take(300).collect();
        let said = if said.is_empty() { "nothing".into() } else { format!("\"{said}\"") };
        format!(
            "{} --version did not say which CUDA release it is ({}); it said {said}. Reinstall this toolkit, or name another.",
            nvcc.display(),
            finished.status
        )
    })
}

/// The first number with dots in a program's answer to `--version`.
pub(super) fn first_number(text: &str) -> Option<String> {
    text.split(|c: char| !c.is_ascii_digit() && c != '.')
        .map(|word| word.trim_matches('.'))
        .find(|word| word.contains('.'))
        .map(String::from)
}

/// The number parts of a name, for sorting `cuda-12.10` after `cuda-12.9`.
pub(super) fn numbers_in(name: &str) -> Vec<u64> {
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_where_nvcc_says_them() {
        let answer = "nvcc: NVIDIA (R) Cuda compiler driver\nCopyright (c) 2005-2024 NVIDIA Corporation\n\
                      Cuda compilation tools, release 12.6, V12.6.85\nBuild cuda_12.6.r12.6/compiler.35059454_0\n";
        assert_eq!(Version::from_nvcc(answer), Some(Version { major: 12, minor: 6 }));
        assert_eq!(Version::from_nvcc("release x"), None);
        assert_eq!(Version::from_number(11080), Version { major: 11, minor: 8 });
        for wrong in ["", "12", "12.", ".6", "12.6.1", "a.b", "+1.2", "99999999999.1"] {
            assert!(wrong.parse::<Version>().is_err(), "{wrong}");
        }
        assert_eq!("12.10".parse::<Version>().unwrap().to_string(), "12.10");
        assert!("12.10".parse::<Version>().unwrap() > "12.9".parse().unwrap());
    }

    #[test]
    fn the_first_number_is_the_version() {
        for (text, expected) in [
            ("NVIDIA Nsight Systems version 2024.6.2.225-246235244985v0", "2024.6.2.225"),
            ("Copyright (c) 2018-2025 NVIDIA Corporation\nVersion 2025.1.0.0 (build 35237751)", "2025.1.0.0"),
            ("Debian clang version 22.1.8 (++20260101)", "22.1.8"),
            ("g++ (Debian 12.2.0-14+deb12u1) 12.2.0", "12.2.0"),
        ] {
            assert_eq!(first_number(text).as_deref(), Some(expected));
        }
        assert_eq!(first_number("none..here"), None);
    }
}
