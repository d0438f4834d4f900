//! What must still be said about a kernel, and the command that says it.

use std::fmt;

/// What is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The kernel.
    pub kernel: String,
    /// Each thing that is missing, in words: "how many elements `x` (float) has".
    pub missing: Vec<String>,
    /// The flags that say it, with example values.
    pub flags: Vec<String>,
    /// Flags that were given already.
    pub given: Vec<String>,
}

impl fmt::Display for Needs {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "A harness for `{}` needs to know what its file does not say:", self.kernel)?;
        for missing in &self.missing {
            writeln!(formatter, "  {missing}")?;
        }
        let flags = self.given.iter().chain(&self.flags).cloned().collect::<Vec<_>>().join(" ");
        write!(formatter, "Say it, with your own numbers: {flags}")
    }
}

impl std::error::Error for Needs {}
