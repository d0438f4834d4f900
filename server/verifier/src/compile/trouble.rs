//! Trouble with the tools: what keeps a compile from saying anything about the code.
//!
//! It is told apart from the code's own errors by its words, since nvcc reports both with the same exit status: a host
//! compiler that is too new announces itself as an `#error` in a header of the toolkit.

use std::path::PathBuf;

use stitch_toolchain::compile_commands::FlagsProblem;
use stitch_toolchain::process::{Output, ProgramError};

use crate::compiler_text::{Level, Message, Origin};

/// Why a compile came to nothing. Shown as a status; never as a finding.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Trouble {
    /// The job was cancelled, by a newer save or by the client.
    #[error("the compile was cancelled")]
    Cancelled,
    /// The compile took longer than it may.
    #[error(
        "the compile was given up after {seconds} s; raise the time limit, or compile for fewer architectures"
    )]
    TimedOut {
        /// The limit.
        seconds: u64,
    },
    /// nvcc could not be started.
    #[error("could not run nvcc: {reason}")]
    Compiler {
        /// What the system said, and what to do.
        reason: String,
    },
    /// It printed far more than is kept, and was ended.
    #[error("the compile was ended, since it had printed more than {megabytes} MB of messages: {reason}")]
    Flooded {
        /// How much, in millions of bytes.
        megabytes: u64,
        /// The first error, and what it may come from.
        reason: String,
    },
    /// The host compiler is missing, or this nvcc does not take it.
    #[error(
        "nvcc could not use the host compiler: {reason}; install one that this CUDA version supports, or name it in the configuration as the host compiler"
    )]
    HostCompiler {
        /// What nvcc said.
        reason: String,
    },
    /// nvcc does not know the architecture.
    #[error("nvcc does not take the architecture: {reason}; configure one that this CUDA version supports")]
    Architecture {
        /// What nvcc said.
        reason: String,
    },
    /// nvcc does not take the flags.
    #[error(
        "nvcc does not take the flags: {reason}; correct them in the configuration or in the compile database"
    )]
    Options {
        /// What nvcc said.
        reason: String,
    },
    /// The compile database, or a response file it names, can not be used.
    #[error("{0}")]
    Database(#[from] FlagsProblem),
    /// A part of the toolkit is missing.
    #[error(
        "the CUDA toolkit is not complete: {reason}; install it again, or choose another in the configuration"
    )]
    Toolkit {
        /// What was missing.
        reason: String,
    },
    /// nvcc would have a shell run a part of the file's name.
    #[error(
        "the name {path:?} holds {character:?}, which nvcc's shell would act on, so it was not given to nvcc; rename the file or its folder"
    )]
    Name {
        /// The file.
        path: PathBuf,
        /// The character.
        character: char,
    },
    /// A file could not be read.
    #[error("could not read {path}: {reason}; save it, and check that it may be read")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The compile failed without saying where.
    #[error("the compile failed: {reason}")]
    Failed {
        /// What was said.
        reason: String,
    },
    /// Our own work failed.
    #[error("the compile could not be carried out: {reason}; this is an error of ours, please report it")]
    Internal {
        /// What happened.
        reason: String,
    },
}

impl Trouble {
    /// Refuses a file that nvcc can't be given.
    pub(crate) fn refuse_name(path: &std::path::Path) -> Result<(), Self> {
        match crate::paths::shell_character(path) {
            Some(character) => Err(Self::Name { path: path.to_owned(), character }),
            None => Ok(()),
        }
    }

    /// What is lacking: the one table from which an exit status and the words "not compiled" come.
    pub fn lack(&self) -> Lack {
        match self {
            Self::Architecture { .. }
            | Self::Options { .. }
            | Self::Flooded { .. }
            | Self::Database(_)
            | Self::Name { .. }
            | Self::Unreadable { .. } => Lack::Input,
            Self::Cancelled => Lack::Nothing,
            Self::TimedOut { .. }
            | Self::Compiler { .. }
            | Self::HostCompiler { .. }
            | Self::Toolkit { .. }
            | Self::Failed { .. }
            | Self::Internal { .. } => Lack::Tool,
        }
    }
}

impl From<Trouble> for NotCompiled {
    fn from(trouble: Trouble) -> Self {
        Self { lack: trouble.lack(), reason: trouble.to_string() }
    }
}

/// What keeps something from being compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lack {
    /// Nothing that could be mended: a header that no source includes, a text that is only put together when the program runs.
    Nothing,
    /// A tool, a part of one, or the time it needs.
    Tool,
    /// Right input: flags, an architecture, a compile database, a file that can be read.
    Input,
}

/// Something that was not compiled, so that silence about it means nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCompiled {
    /// Why, and what to do; no full stop at the end.
    pub reason: String,
    /// What was lacking.
    pub lack: Lack,
}

impl NotCompiled {
    /// What can't be compiled by anyone.
    pub(super) fn by_nature(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), lack: Lack::Nothing }
    }
}

impl From<ProgramError> for Trouble {
    fn from(error: ProgramError) -> Self {
        match error {
            ProgramError::Cancelled { .. } => Self::Cancelled,
            ProgramError::TimedOut { limit, .. } => Self::TimedOut { seconds: limit.as_secs() },
            ProgramError::Flooded { limit, output, .. } => {
                let megabytes = limit / 1_000_000;
                match flood(&output) {
                    Some(reason) => Self::Flooded { megabytes, reason },
                    None => Self::Compiler {
                        reason: format!(
                            "it printed more than {megabytes} MB of messages, and the first of them are no errors; run the command by hand to see them"
                        ),
                    },
                }
            }
            // More may follow it in the same sentence.
            other => Self::Compiler { reason: other.to_string().trim_end_matches('.').to_owned() },
        }
    }
}

/// The first error in a flood of messages, and what to do; `None` where there is none.
fn flood(output: &Output) -> Option<String> {
    let texts = [&output.stderr, &output.stdout].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let error = texts.iter().flat_map(|text| text.lines()).find(|line| line.contains("error"));
    let line = error?.trim();
    // Each file that includes itself twice does so 2^200 times.
    Some(if line.contains("nested") {
        format!(
            "files include one another without an end (`{line}`); put `#pragma once` at their top, or take the `#include` out"
        )
    } else {
        format!("the first error is `{line}`; mend that, or run the command by hand to see the rest")
    })
}

/// What kind of trouble words stand for.
type Make = fn(String) -> Trouble;

/// Words of nvcc and its tools, and what they mean. The first that fits decides.
const WORDS: &[(&str, Make)] = &[
    ("unsupported gnu version", |reason| Trouble::HostCompiler { reason }),
    ("unsupported clang version", |reason| Trouble::HostCompiler { reason }),
    ("unsupported microsoft visual studio", |reason| Trouble::HostCompiler { reason }),
    ("unsupported icc configuration", |reason| Trouble::HostCompiler { reason }),
    ("host compiler", |reason| Trouble::HostCompiler { reason }),
    ("cannot find compiler", |reason| Trouble::HostCompiler { reason }),
    ("cc1plus: no such file", |reason| Trouble::HostCompiler { reason }),
    ("error trying to exec", |reason| Trouble::HostCompiler { reason }),
    ("unsupported gpu architecture", |reason| Trouble::Architecture { reason }),
    ("no supported gpu", |reason| Trouble::Architecture { reason }),
    ("is not defined for option 'gpu-", |reason| Trouble::Architecture { reason }),
    ("is not defined for option 'arch", |reason| Trouble::Architecture { reason }),
    ("incompatible 'compute' and 'sm'", |reason| Trouble::Architecture { reason }),
    ("unknown option", |reason| Trouble::Options { reason }),
    ("is not defined for option", |reason| Trouble::Options { reason }),
    ("is not a valid argument", |reason| Trouble::Options { reason }),
    ("incompatible redefinition for option", |reason| Trouble::Options { reason }),
    ("unrecognized command-line option", |reason| Trouble::Options { reason }),
    ("unrecognized command line option", |reason| Trouble::Options { reason }),
    ("a single input file is required", |reason| Trouble::Options { reason }),
    ("don't know what to do with", |reason| Trouble::Options { reason }),
    ("no input files specified", |reason| Trouble::Options { reason }),
    ("cuda_runtime.h: no such file", |reason| Trouble::Toolkit { reason }),
    ("cuda_runtime.h\" ", |reason| Trouble::Toolkit { reason }),
    ("crt/host_", |reason| Trouble::Toolkit { reason }),
    ("cudafe++: not found", |reason| Trouble::Toolkit { reason }),
    ("cicc: not found", |reason| Trouble::Toolkit { reason }),
    ("ptxas: not found", |reason| Trouble::Toolkit { reason }),
    ("no space left on device", |reason| Trouble::Failed { reason }),
    ("died due to signal", |reason| Trouble::Failed { reason }),
    ("out of memory", |reason| Trouble::Failed { reason }),
];

/// The trouble that a message stands for. `None` for a message about the code.
///
/// Words count where a tool speaks about itself, and in the toolkit's own headers; a person's code may say
/// `#error unsupported clang version` too.
pub(super) fn of(message: &Message, in_toolkit: bool) -> Option<Trouble> {
    let about_tools = message.place.is_none() && matches!(message.origin, Origin::Driver | Origin::Host);
    let missing_header = message.origin == Origin::Host && message.text.contains("cuda_runtime.h");
    if message.level != Level::Error || !(about_tools || in_toolkit || missing_header) {
        return None;
    }
    let lower = message.text.to_ascii_lowercase();
    // More follows the reason in the same sentence.
    let reason = || message.text.trim_end_matches('.').to_owned();
    let known = WORDS.iter().find(|(word, _)| lower.contains(word)).map(|(_, make)| make(reason()));
    let driver = message.origin == Origin::Driver && message.place.is_none();
    known.or_else(|| driver.then(|| Trouble::Failed { reason: reason() }))
}

/// What a compile is that failed and said nothing that could be read.
pub(super) fn of_silence(text: &str) -> Trouble {
    let last: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).rev().take(3).collect();
    let said = last.into_iter().rev().collect::<Vec<_>>().join(" / ");
    let lower = said.to_ascii_lowercase();
    if let Some((_, make)) = WORDS.iter().find(|(word, _)| lower.contains(word)) {
        return make(said);
    }
    if said.is_empty() {
        return Trouble::Failed { reason: "it said nothing; run the command by hand to see".to_owned() };
    }
    Trouble::Failed { reason: said }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_told_by_its_first_error() {
        let of = |text: &str| {
            let output = Output { stdout: Vec::new(), stderr: text.into() };
            let error =
                ProgramError::Flooded { program: "nvcc".into(), limit: 33_000_000, output: output.into() };
            Trouble::from(error)
        };
        let nested = of(
            "In file included from a.cu:1,\na.cu:1:10: error: #include nested depth 200 exceeds maximum of 200\n",
        );
        assert_eq!(nested.lack(), Lack::Input);
        let said = nested.to_string();
        for part in [
            "more than 33 MB of messages",
            "include one another without an end",
            "nested depth 200",
            "#pragma once",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(of("a.cu(3): error: x\n").to_string().contains("the first error is `a.cu(3): error: x`"));
        let silent = of("what is this\n");
        assert_eq!(silent.lack(), Lack::Tool);
        assert!(silent.to_string().contains("run the command by hand"), "{silent}");
    }

    #[test]
    fn trouble_ends_without_a_full_stop() {
        let trouble = Trouble::from(ProgramError::NotFound { program: "nvcc".into() }).to_string();
        assert!(trouble.contains("nvcc was not found") && !trouble.ends_with('.'), "{trouble}");
    }
}
