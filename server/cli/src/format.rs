//! How results are printed: for a person, or as JSON.

use std::io::{self, Write};

use serde::Serialize;

/// The formats every subcommand that prints a result has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// Text for a person
    #[default]
    Human,
    /// One JSON object with a `schema` field
    Json,
}

/// The formats of subcommands that have findings at lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Output {
    /// Findings with their lines, for a person
    #[default]
    Human,
    /// One JSON object with a `schema` field
    Json,
    /// SARIF 2.1.0, for code hosts
    Sarif,
}

impl From<Format> for Output {
    fn from(format: Format) -> Self {
        match format {
            Format::Human => Self::Human,
            Format::Json => Self::Json,
        }
    }
}

/// Prints `value` as one object, readable, with a newline.
///
/// # Errors
/// Writing to `out`.
pub fn print_json(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}
