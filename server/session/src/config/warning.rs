//! What is said of a setting that could not be used.

use std::fmt;
use std::path::PathBuf;

/// Where a setting was written. Later ones win.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// The user's own `stitchcuda.toml`.
    User(PathBuf),
    /// A workspace's `stitchcuda.toml`.
    Workspace(PathBuf),
    /// A variable of the environment.
    Environment,
    /// The editor's settings.
    Editor,
    /// A flag of the command line.
    Flag,
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(path) | Self::Workspace(path) => write!(formatter, "{}", path.display()),
            Self::Environment => formatter.write_str("environment"),
            Self::Editor => formatter.write_str("editor settings"),
            Self::Flag => formatter.write_str("command line"),
        }
    }
}

/// A place in a file, counted from 1; columns are characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The character in the line.
    pub column: usize,
}

/// A setting that could not be used as it was written. What it would have set stays as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Where it was written.
    pub source: Source,
    /// Where in the file.
    pub position: Option<Position>,
    /// What is wrong, and what to do, in whole sentences.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.source)?;
        if let Some(position) = self.position {
            write!(formatter, ":{}:{}", position.line, position.column)?;
        }
        write!(formatter, ": {}", self.message)
    }
}
