//! What a person says of a kernel that its file does not: `--shape x=1024x768 --scalar n=1024 --grid 32 --block 256`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a person says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answers {
    /// The sizes of arrays, by parameter.
    pub shapes: BTreeMap<String, Vec<u64>>,
    /// The values of scalars, as C++ writes them.
    pub scalars: BTreeMap<String, String>,
    /// One more than the largest value that an array of integers may hold.
    pub limits: BTreeMap<String, u64>,
    /// Blocks.
    pub grid: Option<[u64; 3]>,
    /// Threads of a block.
    pub block: Option<[u64; 3]>,
    /// Dynamic shared memory in bytes.
    pub shared: Option<u64>,
    /// Template arguments, as C++ writes them.
    pub template: Option<Vec<String>>,
}

/// An answer that can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`--{flag} {value}` can't be read: {expected}.")]
pub struct BadAnswer {
    flag: &'static str,
    value: String,
    expected: &'static str,
}

/// No array of a test needs more elements.
const MOST_ELEMENTS: u64 = 1 << 33;

impl Answers {
    /// Takes in one `--shape NAME=AxB`.
    ///
    /// # Errors
    /// It is not of that form, or larger than any test needs.
    pub fn shape(&mut self, value: &str) -> Result<(), BadAnswer> {
        let refuse = || BadAnswer {
            flag: "shape",
            value: value.to_owned(),
            expected: "write the parameter and its sizes, as in `--shape x=1024x768`, 8 billion elements at most",
        };
        let (name, sizes) = value.split_once('=').ok_or_else(refuse)?;
        let sizes: Vec<u64> = sizes
            .split('x')
            .map(|size| size.trim().parse().ok().filter(|size| *size > 0))
            .collect::<Option<_>>()
            .ok_or_else(refuse)?;
        let count = sizes.iter().try_fold(1u64, |product, size| product.checked_mul(*size));
        count.filter(|count| *count <= MOST_ELEMENTS).ok_or_else(refuse)?;
        self.shapes.insert(identifier(name).ok_or_else(refuse)?, sizes);
        Ok(())
    }

    /// Takes in one `--scalar NAME=VALUE`.
    ///
    /// # Errors
    /// It is not of that form.
    pub fn scalar(&mut self, value: &str) -> Result<(), BadAnswer> {
        let refuse = || BadAnswer {
            flag: "scalar",
            value: value.to_owned(),
            expected: "write the parameter and its value as in C++, as in `--scalar n=1024` or `--scalar alpha=0.5f`",
        };
        let (name, text) = value.split_once('=').ok_or_else(refuse)?;
        let plain = !text.trim().is_empty() && !text.contains(['\n', ';', '#', '\\']);
        self.scalars.insert(
            identifier(name).ok_or_else(refuse)?,
            plain.then(|| text.trim().to_owned()).ok_or_else(refuse)?,
        );
        Ok(())
    }

    /// Takes in one `--limit NAME=N`.
    ///
    /// # Errors
    /// It is not of that form.
    pub fn limit(&mut self, value: &str) -> Result<(), BadAnswer> {
        let refuse = || BadAnswer {
            flag: "limit",
            value: value.to_owned(),
            expected: "write the parameter and one more than the largest value it may hold, as in `--limit index=1024`",
        };
        let (name, limit) = value.split_once('=').ok_or_else(refuse)?;
        let limit = limit.trim().parse().ok().filter(|limit| *limit > 0).ok_or_else(refuse)?;
        self.limits.insert(identifier(name).ok_or_else(refuse)?, limit);
        Ok(())
    }

    /// Takes in `--grid` or `--block`: `AxBxC`, of which the last may be missing.
    ///
    /// # Errors
    /// It is not of that form.
    pub fn dimensions(flag: &'static str, value: &str) -> Result<[u64; 3], BadAnswer> {
        let refuse = || BadAnswer {
            flag,
            value: value.to_owned(),
            expected: "write one, two or three sizes, as in 128 or 16x16",
        };
        let mut sizes = [1; 3];
        let parts: Vec<&str> = value.split('x').collect();
        if parts.len() > 3 {
            return Err(refuse());
        }
        for (size, part) in sizes.iter_mut().zip(parts) {
            *size = part
                .trim()
                .parse()
                .ok()
                .filter(|size| (1..=u64::from(u32::MAX)).contains(size))
                .ok_or_else(refuse)?;
        }
        Ok(sizes)
    }
}

/// The name of a parameter.
fn identifier(name: &str) -> Option<String> {
    let name = name.trim();
    let plain = name.chars().all(|c| c.is_alphanumeric() || c == '_') && !name.is_empty();
    plain.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_or_refused() {
        let mut answers = Answers::default();
        answers.shape("x=1024x768").unwrap();
        answers.scalar("alpha = 0.5f").unwrap();
        answers.limit("index=7").unwrap();
        assert_eq!(answers.shapes["x"], [1024, 768]);
        assert_eq!(answers.scalars["alpha"], "0.5f");
        assert_eq!(answers.limits["index"], 7);
        for wrong in ["x", "x=", "x=0", "x=3x", "=3", "x=99999999999x9", "a b=3", "x=-1"] {
            assert!(answers.shape(wrong).is_err(), "{wrong}");
        }
        for wrong in ["x", "x=", "x=1;exit(0)", "x=1\n#include"] {
            assert!(answers.scalar(wrong).is_err(), "{wrong}");
        }
        assert!(answers.limit("i=0").is_err());
        assert_eq!(Answers::dimensions("grid", "8x4").unwrap(), [8, 4, 1]);
        for wrong in ["", "0", "1x2x3x4", "a", "1x"] {
            let error = Answers::dimensions("block", wrong).unwrap_err().to_string();
            assert!(error.contains("--block"), "{error}");
        }
    }
}
