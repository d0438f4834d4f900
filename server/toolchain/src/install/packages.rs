//! From a release to its wheels.
//!
//! The package `cuda-toolkit` names, for each release, the exact version of each part as an extra
//! (`nvidia-cuda-nvcc==13.5.37.*; … and extra == 'nvcc'`). Its versions are the releases; so parts of one release are
//! never mixed, and a new release needs no change here.

use std::fmt;
use std::str::FromStr;

use tokio_util::sync::CancellationToken;

use super::{InstallError, Report, Resolver, Wheel};
use crate::discovery::Version;

/// The package whose extras are the parts.
const WHOLE: &str = "cuda-toolkit";
/// The parts that a toolkit needs: nvcc and what it calls, the headers and the runtime.
const NEEDED: &[&str] = &["nvcc", "crt", "nvvm", "cudart", "cccl"];
/// Parts that are taken where the release has them: NVRTC, tools to take binaries apart, curand (clang's CUDA headers
/// want its header), the sanitizer.
const WELCOME: &[&str] = &["nvrtc", "cuobjdump", "nvdisasm", "curand", "sanitizer"];
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

/// What to install.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) version: Version,
    /// The version of `cuda-toolkit`, such as 13.5.0.
    pub(super) full_version: String,
    pub(super) wheels: Vec<Wheel>,
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

/// Finds the wheels of a release.
pub(super) async fn plan(
    version: Version,
    whole: &Wheel,
    resolver: &dyn Resolver,
    report: Report<'_>,
    cancel: &CancellationToken,
) -> Result<Plan, InstallError> {
    let requirements = parts(whole, version)?;
    let wheels = resolver.resolve(&requirements, report, cancel).await?;
    for requirement in &requirements {
        let name = name_of(requirement);
        if !wheels.iter().any(|wheel| same_name(&wheel.name, name)) {
            return Err(InstallError::BadIndex { problem: format!("it has no wheel for {requirement}") });
        }
    }
    Ok(Plan { version, full_version: whole.version.clone(), wheels })
}

/// The requirements of the parts that are wanted.
fn parts(whole: &Wheel, version: Version) -> Result<Vec<String>, InstallError> {
    let mut requirements: Vec<String> = Vec::new();
    for extra in NEEDED.iter().chain(WELCOME) {
        let of_extra = whole.requires.iter().filter(|line| extra_of(line) == Some(*extra));
        let before = requirements.len();
        let mut any = false;
        for line in of_extra {
            any = true;
            let requirement = line.split(';').next().unwrap_or_default().trim().to_string();
            if !requirements.contains(&requirement) {
                requirements.push(requirement);
            }
        }
        if !any && before == requirements.len() && NEEDED.contains(extra) {
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
        assert_eq!(parts(&whole, version).unwrap(), expected);
        whole.requires.retain(|line| !line.contains("'cudart'"));
        assert!(parts(&whole, version).unwrap_err().to_string().contains("`cudart`"));
        assert_eq!(extra_of("a; extra == \"x\""), Some("x"));
        assert_eq!(name_of("nvidia-cuda-nvcc>=1"), "nvidia-cuda-nvcc");
        assert!(same_name("nvidia_cuda.nvcc", "NVIDIA-cuda-nvcc"));
    }
}
