//! The host compiler that nvcc needs, and whether nvcc takes the one that is there.
//!
//! nvcc refuses compilers newer than it knows, in its own header `crt/host_config.h`. That header is read; the table is
//! for toolkits in which it is missing or written in another way.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::version::Version;
use super::{Search, Toolkit, tools};
use crate::environment::is_executable;

/// The kind of a host compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CompilerKind {
    /// GNU.
    Gcc,
    /// LLVM.
    Clang,
}

/// Whether nvcc takes a host compiler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "is", content = "why")]
pub enum Verdict {
    /// It does.
    Accepted,
    /// It does not, and why.
    Refused(String),
    /// Nothing is known: its version could not be read, or there is no nvcc.
    Unknown,
}

/// A host compiler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostCompiler {
    /// The program.
    pub path: PathBuf,
    /// Its kind.
    pub kind: CompilerKind,
    /// Its version, if it said one.
    pub version: Option<String>,
    /// Whether nvcc takes it.
    pub verdict: Verdict,
}

/// The host compilers that matter.
#[derive(Clone, Debug, Default, Serialize)]
pub struct HostCompilers {
    /// The one that nvcc uses unless told otherwise: `NVCC_CCBIN`, else `g++` on `PATH`.
    pub default: Option<HostCompiler>,
    /// The one to use: the default if it is taken, else the newest other that is (to be given with `-ccbin`).
    pub usable: Option<HostCompiler>,
}

/// The newest major versions that an nvcc takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Newest gcc.
    pub gcc: u32,
    /// Newest clang.
    pub clang: u32,
}

/// The newest gcc and clang by CUDA release; a release that is not listed has the limits of the one before it.
/// Sources: the section "host compiler support policy" of each release's CUDA Installation Guide for Linux, and
/// `crt/host_config.h` of 13.5.
const NEWEST: &[((u32, u32), Limits)] = &[
    ((10, 2), Limits { gcc: 8, clang: 8 }),
    ((11, 0), Limits { gcc: 9, clang: 9 }),
    ((11, 1), Limits { gcc: 10, clang: 10 }),
    ((11, 2), Limits { gcc: 10, clang: 11 }),
    ((11, 4), Limits { gcc: 11, clang: 12 }),
    ((11, 6), Limits { gcc: 11, clang: 13 }),
    ((11, 8), Limits { gcc: 11, clang: 14 }),
    ((12, 0), Limits { gcc: 12, clang: 14 }),
    ((12, 1), Limits { gcc: 12, clang: 15 }),
    ((12, 2), Limits { gcc: 12, clang: 16 }),
    ((12, 4), Limits { gcc: 13, clang: 17 }),
    ((12, 6), Limits { gcc: 13, clang: 18 }),
    ((12, 8), Limits { gcc: 14, clang: 19 }),
    ((13, 0), Limits { gcc: 15, clang: 20 }),
    ((13, 5), Limits { gcc: 16, clang: 22 }),
];

/// The limits of a toolkit: from its own header, else from the table.
pub fn limits_of(include: &Path, version: Version) -> Option<Limits> {
    let header = std::fs::read_to_string(include.join("crt/host_config.h")).ok();
    header.and_then(|text| limits_in(&text)).or_else(|| {
        let known = NEWEST
            .iter()
            .rev()
            .find(|((major, minor), _)| (*major, *minor) <= (version.major, version.minor));
        known.map(|(_, limits)| *limits)
    })
}

/// Reads `#if __GNUC__ > 14` and `#if (__clang_major__ >= 20) || …`. The last of the latter is for clang in general; those
/// before it are for other systems.
fn limits_in(header: &str) -> Option<Limits> {
    let number_after = |line: &str, prefix: &str| -> Option<u32> {
        let rest = line.strip_prefix(prefix)?;
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        rest[..end].parse().ok()
    };
    let gcc = header.lines().find_map(|line| number_after(line.trim(), "#if __GNUC__ > "))?;
    let too_new = header
        .lines()
        .filter_map(|line| number_after(line.trim(), "#if (__clang_major__ >= "))
        .next_back()?;
    Some(Limits { gcc, clang: too_new.checked_sub(1)? })
}

/// Finds the host compilers for a toolkit.
pub fn host_compilers(search: &Search, toolkit: Option<&Toolkit>) -> HostCompilers {
    let limits = toolkit.and_then(|toolkit| limits_of(&toolkit.include, toolkit.version));
    let look = |path: PathBuf| examine(path, search, toolkit, limits);
    let named = search.environment.path("NVCC_CCBIN").map(in_folder);
    let default =
        named.filter(|path| is_executable(path)).or_else(|| search.environment.find_program("g++")).map(look);
    if let Some(found) = &default
        && !matches!(found.verdict, Verdict::Refused(_))
    {
        return HostCompilers { usable: default.clone(), default };
    }
    let newest = limits.unwrap_or(Limits { gcc: 20, clang: 30 });
    let numbered = |name: &str, newest: u32| {
        (6..=newest).rev().map(|major| format!("{name}-{major}")).collect::<Vec<_>>()
    };
    let names = numbered("g++", newest.gcc)
        .into_iter()
        .chain(numbered("clang++", newest.clang))
        .chain(["clang++".into()]);
    let mut others = names.filter_map(|name| search.environment.find_program(&name)).map(look);
    let usable = others.find(|compiler| !matches!(compiler.verdict, Verdict::Refused(_)));
    HostCompilers { default, usable }
}

/// `-ccbin` takes a folder too.
fn in_folder(path: PathBuf) -> PathBuf {
    if path.is_dir() { path.join("g++") } else { path }
}

fn examine(
    path: PathBuf,
    search: &Search,
    toolkit: Option<&Toolkit>,
    limits: Option<Limits>,
) -> HostCompiler {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let kind = if name.contains("clang") { CompilerKind::Clang } else { CompilerKind::Gcc };
    let version = tools::ask(path.clone(), search).version;
    let major: Option<u32> = version.as_ref().and_then(|version| version.split('.').next()?.parse().ok());
    let verdict = match (major, limits, toolkit) {
        (Some(major), Some(limits), Some(toolkit)) => {
            let (newest, word) = match kind {
                CompilerKind::Gcc => (limits.gcc, "gcc"),
                CompilerKind::Clang => (limits.clang, "clang"),
            };
            if major <= newest {
                Verdict::Accepted
            } else {
                let cuda = toolkit.version;
                Verdict::Refused(format!(
                    "nvcc of CUDA {cuda} takes {word} up to {newest}, and this is {major}"
                ))
            }
        }
        _ => Verdict::Unknown,
    };
    HostCompiler { path, kind, version, verdict }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_says_the_limits() {
        let header = "#if __GNUC__ > 16\n#error -- gcc versions later than 16\n#if (__clang_major__ >= 22) || (__clang_major__ < 3)\n\
                      #if (__GRCO_CLANG_COMPILER__ == 1) && ((__clang_major__ < 16) || (__clang_major__ > 22))\n\
                      #if (__clang_major__ >= 23) || (__clang_major__ < 3) || ((__clang_major__ == 3) &&  (__clang_minor__ < 3))\n";
        assert_eq!(limits_in(header), Some(Limits { gcc: 16, clang: 22 }));
        assert_eq!(limits_in("nothing"), None);
    }

    #[test]
    fn the_table_grows_and_answers_between_its_rows() {
        assert!(NEWEST.windows(2).all(|pair| pair[0].0 < pair[1].0
            && pair[0].1.gcc <= pair[1].1.gcc
            && pair[0].1.clang <= pair[1].1.clang));
        let of = |major, minor| limits_of(Path::new("/nowhere"), Version { major, minor });
        assert_eq!(of(12, 5), Some(Limits { gcc: 13, clang: 17 }));
        assert_eq!(of(13, 3).map(|limits| limits.gcc), Some(15));
        assert_eq!(of(9, 0), None);
    }
}
