//! Names of GPU architectures: `sm_90a`, `compute_80`, `8.6`. One type, so that no two places read them differently.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A compute capability, with the suffix of an architecture-specific or family-specific target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Architecture {
    /// 9 of `sm_90a`.
    pub major: u16,
    /// 0 of `sm_90a`.
    pub minor: u16,
    /// `a` of `sm_90a`, `f` of `sm_100f`.
    pub suffix: Option<char>,
}

impl Architecture {
    /// The architecture of a compute capability.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor, suffix: None }
    }

    /// The name that nvcc gives to real code for it: `sm_90a`.
    pub fn real(self) -> String {
        self.to_string()
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}{}", self.major, self.minor)?;
        self.suffix.map_or(Ok(()), |suffix| write!(f, "{suffix}"))
    }
}

/// Said of a text that names no architecture.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no GPU architecture; write it as `sm_90`, `compute_90`, `90` or `9.0`")]
pub struct NotAnArchitecture(String);

impl FromStr for Architecture {
    type Err = NotAnArchitecture;

    /// Reads `sm_90a`, `compute_90`, `lto_90`, `90`, `100f` and `9.0`.
    fn from_str(text: &str) -> Result<Self, NotAnArchitecture> {
        let refuse = || NotAnArchitecture(text.to_owned());
        let trimmed = text.trim();
        let bare =
            ["sm_", "compute_", "lto_"].iter().find_map(|p| trimmed.strip_prefix(p)).unwrap_or(trimmed);
        let (digits, suffix) = match bare.char_indices().next_back() {
            Some((at, last @ ('a' | 'f'))) => (&bare[..at], Some(last)),
            _ => (bare, None),
        };
        let (major, minor) = match digits.split_once('.') {
            Some(parts) => parts,
            None if digits.len() >= 2 && digits.is_ascii() => digits.split_at(digits.len() - 1),
            None => return Err(refuse()),
        };
        let number = |part: &str| {
            let plain = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
            if plain { part.parse::<u16>().ok() } else { None }
        };
        match (number(major), number(minor)) {
            (Some(major), Some(minor)) if major > 0 && minor < 10 => Ok(Self { major, minor, suffix }),
            _ => Err(refuse()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_read_and_nonsense_is_refused() {
        for (text, name) in [
            ("sm_90", "sm_90"),
            ("sm_90a", "sm_90a"),
            ("compute_100f", "sm_100f"),
            ("86", "sm_86"),
            ("9.0", "sm_90"),
            ("12.0", "sm_120"),
            ("lto_80", "sm_80"),
            (" 75 ", "sm_75"),
        ] {
            assert_eq!(text.parse::<Architecture>().unwrap().to_string(), name, "{text}");
        }
        for text in ["", "native", "sm_", "9", "sm_9x", "all-major", "sm_-90", "9.", "é0", "99999990"] {
            assert!(text.parse::<Architecture>().is_err(), "{text}");
        }
    }
}
