//! From a release to its wheels.
//!
//! The package `cuda-toolkit` names, for each release, the exact version of each part as an extra
//! (`nvidia-cuda-nvcc==13.5.37.*; … and extra == 'nvcc'`). Its versions are the releases; so parts of one release are
//! never mixed, and a new release needs no change here.

use std::fmt;
use std::str::FromStr;

use tokio_util::sync::CancellationToken;

use super::{InstallError, Manifest, Report, Resolver, Wheel, WheelRecord};
use crate::discovery::Version;

/// The package whose extras are the parts.
const WHOLE: &str = "cuda-toolkit";
/// The parts that a toolkit needs: nvcc and what it calls, the headers and the runtime.
const NEEDED: &[&str] = &["nvcc", "crt", "nvvm", "cudart", "cccl"];
/// Parts that are taken where the release has them: NVRTC, tools to take binaries apart, curand (clang's CUDA headers
/// want its header), the sanitizer, and small ones whose headers programs include.
const WELCOME: &[&str] =
    &["nvrtc", "cuobjdump", "nvdisasm", "curand", "sanitizer", "nvtx", "profiler", "nvml"];
/// Libraries that a person may ask for: extras of `cuda-toolkit` 13.5. Their wheels have up to 600 MB, nearly all of it code for
/// the device, so only what a compile needs is unpacked.
const LIBRARIES: &[&str] =
    &["cublas", "cufft", "cusolver", "cusparse", "npp", "nvjpeg", "nvjitlink", "cupti", "cufile", "cudla"];
/// The first release whose wheels hold nvcc.
const FIRST_WITH_COMPILER: u32 = 13;

/// Which release to install.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// The newest there is.
    Latest,
    /// The newest of a major release.
    Major(u32),
    /// One release.
    Exact(Version),
}

impl fmt::Display for Release {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latest => formatter.write_str("latest"),
            Self::Major(major) => write!(formatter, "{major}"),
            Self::Exact(version) => write!(formatter, "{version}"),
        }
    }
}

impl FromStr for Release {
    type Err = InstallError;

    fn from_str(text: &str) -> Result<Self, InstallError> {
        let text = text.trim();
        if text.eq_ignore_ascii_case("latest") {
            return Ok(Self::Latest);
        }
        if !text.is_empty()
            && text.bytes().all(|byte| byte.is_ascii_digit())
            && let Ok(major) = text.parse()
        {
            return Ok(Self::Major(major));
        }
        text.parse().map(Self::Exact).map_err(|_| InstallError::NoRelease { text: text.into() })
    }
}

impl Release {
    /// Refuses what can't be installed before anything is looked up.
    pub(super) fn check(&self) -> Result<(), InstallError> {
        let major = match self {
            Self::Latest => return Ok(()),
            Self::Major(major) => *major,
            Self::Exact(version) => version.major,
        };
        if major < FIRST_WITH_COMPILER {
            Err(InstallError::NoCompiler { release: self.to_string() })
        } else {
            Ok(())
        }
    }

    pub(super) fn exact(&self) -> Option<Version> {
        if let Self::Exact(version) = self { Some(*version) } else { None }
    }

    fn requirement(&self) -> String {
        match self {
            Self::Latest => WHOLE.into(),
            _ => format!("{WHOLE}=={self}.*"),
        }
    }
}

/// A library that a person asks for besides: `cublas`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part(String);

impl FromStr for Part {
    type Err = InstallError;

    fn from_str(text: &str) -> Result<Self, InstallError> {
        let name = text.trim().to_ascii_lowercase();
        let known = || LIBRARIES.iter().chain(WELCOME).chain(NEEDED);
        if known().any(|known| *known == name) {
            return Ok(Self(name));
        }
        let known = LIBRARIES.iter().chain(WELCOME).copied().collect::<Vec<_>>().join(", ");
        Err(InstallError::NoPart { text: text.into(), known })
    }
}

impl Part {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// What to install.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) version: Version,
    /// The version of `cuda-toolkit`, such as 13.5.0.
    pub(super) full_version: String,
    pub(super) wheels: Vec<Wheel>,
    /// How much of each wheel is unpacked.
    pub(super) extents: Vec<Extent>,
    /// The parts that there are then.
    pub(super) parts: Vec<String>,
}

/// How much of a wheel is unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// All.
    Whole,
    /// What a compile needs: headers, and libraries as small as stubs are.
    ForCompiling,
}

/// Which release is meant, and the package that names its parts.
pub(super) async fn look_up(
    release: &Release,
    resolver: &dyn Resolver,
    report: Report<'_>,
    cancel: &CancellationToken,
) -> Result<(Version, Wheel), InstallError> {
    let found = resolver.resolve(&[release.requirement()], report, cancel).await?;
    let bad = |problem: String| InstallError::BadIndex { problem };
    let whole = found.into_iter().find(|wheel| same_name(&wheel.name, WHOLE));
    let whole = whole.ok_or_else(|| bad(format!("there is no {WHOLE} in it")))?;
    let version = release_of(&whole.version)
        .ok_or_else(|| bad(format!("{WHOLE} has the version {}", whole.version)))?;
    Release::Exact(version).check()?;
    Ok((version, whole))
}

/// Finds the wheels of a release: those of `asked` besides. Where the release is installed, only those that it lacks.
pub(super) async fn plan(
    version: Version,
    whole: &Wheel,
    asked: &[Part],
    installed: Option<&Manifest>,
    resolver: &dyn Resolver,
    report: Report<'_>,
    cancel: &CancellationToken,
) -> Result<Plan, InstallError> {
    let own = if installed.is_some() { Vec::new() } else { parts(whole, version, NEEDED, WELCOME)? };
    let names: Vec<&str> = asked.iter().map(Part::name).collect();
    let mut requirements = own.clone();
    for requirement in parts(whole, version, &names, &[])? {
        let is_same = |wheel: &WheelRecord| same_name(&wheel.name, name_of(&requirement));
        let is_there = installed.is_some_and(|manifest| manifest.wheels.iter().any(is_same));
        if !is_there && !requirements.contains(&requirement) {
            requirements.push(requirement);
        }
    }
    let found = if requirements.is_empty() {
        Vec::new()
    } else {
        resolver.resolve(&requirements, report, cancel).await?
    };
    let (mut wheels, mut extents) = (Vec::new(), Vec::new());
    for (index, requirement) in requirements.iter().enumerate() {
        let name = name_of(requirement);
        let wheel = found.iter().find(|wheel| same_name(&wheel.name, name));
        let missing = || InstallError::BadIndex { problem: format!("it has no wheel for {requirement}") };
        wheels.push(wheel.ok_or_else(missing)?.clone());
        extents.push(if index < own.len() { Extent::Whole } else { Extent::ForCompiling });
    }
    let mut parts: Vec<String> = installed.map_or_else(
        || NEEDED.iter().chain(WELCOME).map(|name| (*name).to_owned()).collect(),
        |manifest| manifest.parts.clone(),
    );
    parts.extend(names.iter().map(|name| (*name).to_owned()));
    parts.sort();
    parts.dedup();
    Ok(Plan { version, full_version: whole.version.clone(), wheels, extents, parts })
}

/// The requirements of parts, which must be there or are taken where they are.
fn parts(
    whole: &Wheel,
    version: Version,
    needed: &[&str],
    welcome: &[&str],
) -> Result<Vec<String>, InstallError> {
    let mut requirements: Vec<String> = Vec::new();
    for extra in needed.iter().chain(welcome) {
        let mut any = false;
        for line in whole.requires.iter().filter(|line| extra_of(line) == Some(*extra)) {
            any = true;
            let requirement = line.split(';').next().unwrap_or_default().trim().to_string();
            if !requirements.contains(&requirement) {
                requirements.push(requirement);
            }
        }
        if !any && needed.contains(extra) {
            return Err(InstallError::BadIndex {
                problem: format!("{WHOLE} {} names no part `{extra}` for CUDA {version}", whole.version),
            });
        }
    }
    Ok(requirements)
}

/// The extra of a requirement: `nvcc` of `…; … and extra == 'nvcc'`.
fn extra_of(requirement: &str) -> Option<&str> {
    let (_, marker) = requirement.split_once(';')?;
    let (_, after) = marker.split_once("extra")?;
    let after = after.trim_start().strip_prefix("==")?.trim_start();
    let quote = after.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    after[1..].split(quote).next()
}

fn name_of(requirement: &str) -> &str {
    let end = requirement.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.'));
    &requirement[..end.unwrap_or(requirement.len())]
}

/// Names are compared as PEP 503 says.
fn same_name(one: &str, other: &str) -> bool {
    let normal = |name: &str| name.to_ascii_lowercase().replace(['_', '.'], "-");
    normal(one) == normal(other)
}

fn release_of(full: &str) -> Option<Version> {
    let mut numbers = full.split('.');
    format!("{}.{}", numbers.next()?, numbers.next()?).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_written_in_three_ways() {
        for (text, expected) in
            [("latest", "cuda-toolkit"), ("13", "cuda-toolkit==13.*"), (" 13.5 ", "cuda-toolkit==13.5.*")]
        {
            let release: Release = text.parse().unwrap();
            assert_eq!(release.requirement(), expected);
            release.check().unwrap();
        }
        for text in ["", "x", "13.", "13.5.1", "-1", "13.5; rm", "../..", "99999999999"] {
            assert!(matches!(text.parse::<Release>(), Err(InstallError::NoRelease { .. })), "{text}");
        }
        for text in ["12", "12.9", "11.8"] {
            let error = text.parse::<Release>().unwrap().check().unwrap_err().to_string();
            assert!(
                error.contains(text) && error.contains("not nvcc") && error.contains("CUDA_HOME"),
                "{error}"
            );
        }
    }

    #[test]
    fn parts_follow_from_the_extras() {
        let line = |name: &str, extra: &str| {
            format!(
                "{name}; (sys_platform == 'linux' and platform_machine == 'x86_64') and extra == '{extra}'"
            )
        };
        let mut whole = Wheel {
            name: "cuda_toolkit".into(),
            version: "13.5.0".into(),
            url: String::new(),
            sha256: String::new(),
            requires: vec![
                line("nvidia-cuda-nvcc==13.5.37.*", "nvcc"),
                line("nvidia-cuda-crt==13.5.37.*", "nvcc"),
                line("nvidia-cuda-crt==13.5.37.*", "crt"),
                line("nvidia-nvvm==13.5.37.*", "nvvm"),
                line("nvidia-cuda-runtime==13.5.37.*", "cudart"),
                line("nvidia-cuda-cccl==13.3.5.0.6.*", "cccl"),
                line("nvidia-curand==10.4.5.25.*", "curand"),
                line("nvidia-cublas==13.10.0.20.*", "cublas"),
                "something".into(),
            ],
        };
        let version = release_of(&whole.version).unwrap();
        let expected = [
            "nvidia-cuda-nvcc==13.5.37.*",
            "nvidia-cuda-crt==13.5.37.*",
            "nvidia-nvvm==13.5.37.*",
            "nvidia-cuda-runtime==13.5.37.*",
            "nvidia-cuda-cccl==13.3.5.0.6.*",
            "nvidia-curand==10.4.5.25.*",
        ];
        let base = |whole: &Wheel| parts(whole, version, NEEDED, WELCOME);
        assert_eq!(base(&whole).unwrap(), expected);
        assert_eq!(parts(&whole, version, &["cublas"], &[]).unwrap(), ["nvidia-cublas==13.10.0.20.*"]);
        assert!(parts(&whole, version, &["npp"], &[]).is_err());
        whole.requires.retain(|line| !line.contains("'cudart'"));
        assert!(base(&whole).unwrap_err().to_string().contains("`cudart`"));
        assert_eq!(extra_of("a; extra == \"x\""), Some("x"));
        assert_eq!(name_of("nvidia-cuda-nvcc>=1"), "nvidia-cuda-nvcc");
        assert!(same_name("nvidia_cuda.nvcc", "NVIDIA-cuda-nvcc"));
    }
}
