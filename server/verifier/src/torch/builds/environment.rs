//! The environment of compilers.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// Variables that compilers, ninja and torch's build heed. A child says how it has them.
const HEEDED: [&str; 17] = [
    "PATH",
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "LIBRARY_PATH",
    "COMPILER_PATH",
    "GCC_EXEC_PREFIX",
    "LD_LIBRARY_PATH",
    "LD_RUN_PATH",
    "NVCC_PREPEND_FLAGS",
    "NVCC_APPEND_FLAGS",
    "NVCC_CCBIN",
    "CUDAHOSTCXX",
    "SOURCE_DATE_EPOCH",
    "LANG",
    "LC_ALL",
    "NINJA_STATUS",
];

/// The variables of a build: ours, where the child has changed nothing.
///
/// # Errors
/// It has.
pub(super) fn with(
    own: &[(OsString, OsString)],
    said: &BTreeMap<String, String>,
) -> Result<Vec<(OsString, OsString)>, String> {
    for name in HEEDED {
        let value = own.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str());
        if said.get(name).map(OsStr::new) != value {
            return Err(format!("the program sets the variable {name}"));
        }
    }
    Ok(own
        .iter()
        .filter(|(name, _)| HEEDED.iter().any(|heeded| name == heeded) || name == "CUDA_HOME")
        .cloned()
        .collect())
}

/// Sets a variable.
pub(super) fn set(variables: &mut Vec<(OsString, OsString)>, name: &str, value: &OsStr) {
    variables.retain(|(known, _)| known != name);
    variables.push((name.into(), value.into()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_sets_is_noticed() {
        let own: Vec<(OsString, OsString)> =
            [("PATH", "/bin"), ("SECRET", "x")].map(|(name, value)| (name.into(), value.into())).into();
        let said = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        assert_eq!(with(&own, &said(&[("PATH", "/bin")])).unwrap(), own[..1]);
        for changed in [&[("PATH", "/tmp:/bin")][..], &[], &[("PATH", "/bin"), ("NVCC_APPEND_FLAGS", "-O0")]]
        {
            assert!(with(&own, &said(changed)).is_err());
        }
    }
}
