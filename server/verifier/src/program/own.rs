//! Builds by a person's own command, in a copy of its folder.

use std::path::{Path, PathBuf};

use stitch_toolchain::process::{Program as Process, ProgramError};
use tokio_util::sync::CancellationToken;

use super::build::{BuildError, Builder, Built, Start};
use super::copy;
use super::target::{OwnBuild, Program};

/// Copies the folder, puts the candidate in its place, runs the build command.
pub(super) async fn build(
    builder: &Builder,
    program: &Program,
    own: &OwnBuild,
    cancel: &CancellationToken,
) -> Result<Built, BuildError> {
    let scratch = builder.scratch()?;
    let folder = scratch.path().join("copy");
    let (from, to, inputs) = (program.folder.clone(), folder.clone(), program.inputs.clone());
    let replaced = own.replaced.clone();
    tokio::task::spawn_blocking(move || fill(&from, &to, &inputs, replaced.as_ref()))
        .await
        .map_err(|error| BuildError::Internal { reason: error.to_string() })??;
    let mut command = String::new();
    if let Some(build) = &own.build {
        command.clone_from(build);
        let process = builder
            .own_environment(Process::new("/bin/sh").args(["-c", build]))
            .current_dir(&folder)
            .scratch(&scratch)
            .time_limit(builder.time_limit);
        let finished = process.run(cancel).await.map_err(|error| BuildError::of(error, build))?;
        if !finished.status.success() {
            let text = format!("{}{}", finished.stdout_text(), finished.stderr_text());
            return Err(BuildError::Compiler { text, command });
        }
    }
    let run = own.run.clone().unwrap_or_default();
    Ok(Built {
        scratch: scratch.into(),
        program: program.clone(),
        start: Start::Shell { command: run, folder },
        command,
        notes: Vec::new(),
        read: None,
    })
}

fn fill(
    from: &Path,
    to: &Path,
    inputs: &[PathBuf],
    replaced: Option<&(PathBuf, PathBuf)>,
) -> Result<(), BuildError> {
    copy::folder(from, to)?;
    for input in inputs {
        let Some(name) = input.file_name() else { continue };
        if !to.join(name).exists() {
            std::os::unix::fs::symlink(input, to.join(name))
                .map_err(|source| BuildError::Scratch { source })?;
        }
    }
    if let Some((replaced, candidate)) = replaced {
        let place = replaced
            .strip_prefix(from)
            .map_err(|_| BuildError::Outside { file: replaced.clone(), folder: from.to_owned() })?;
        let place = to.join(place);
        // Newer than anything built before, so that `make` sees it; a hard link would let the build change the original.
        let _ = std::fs::remove_file(&place);
        let text = std::fs::read(candidate)
            .map_err(|source| BuildError::Unreadable { path: candidate.clone(), source })?;
        std::fs::write(&place, text).map_err(|source| BuildError::Scratch { source })?;
    }
    Ok(())
}

/// A command with the program's arguments after it, for `sh -c`.
pub(super) fn shell(command: &str, arguments: &[String]) -> Vec<String> {
    let script = if arguments.is_empty() { command.to_owned() } else { format!("{command} \"$@\"") };
    ["-c".to_owned(), script, "sh".to_owned()].into_iter().chain(arguments.iter().cloned()).collect()
}

impl BuildError {
    pub(super) fn of(error: ProgramError, command: &str) -> Self {
        match error {
            ProgramError::Cancelled { .. } => Self::Cancelled,
            ProgramError::Flooded { ref output, .. } => {
                let text =
                    [&output.stderr, &output.stdout].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
                // The beginning and the end of far more than anyone reads; its first errors are told.
                Self::Compiler { text: text.concat(), command: command.to_owned() }
            }
            error => Self::Program { command: command.to_owned(), source: error },
        }
    }
}
