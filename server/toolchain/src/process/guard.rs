//! What a guard is told to start; common to all systems.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

/// A program to start.
pub(super) struct Order<'a> {
    pub(super) path: &'a Path,
    pub(super) arguments: &'a [OsString],
    /// All variables of its environment.
    pub(super) variables: Vec<(OsString, OsString)>,
    pub(super) folder: Option<&'a Path>,
    /// Whether it is sent something; else its standard input is empty.
    pub(super) with_stdin: bool,
    /// The largest file that it may write, in bytes.
    pub(super) largest_file: Option<u64>,
}

impl Order<'_> {
    /// The command that starts the program itself.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(self.path);
        command.args(self.arguments).env_clear();
        command.envs(self.variables.iter().map(|(name, value)| (name as &OsStr, value as &OsStr)));
        stdio(&mut command, self);
        command
    }
}

/// Sets folder and pipes.
pub(super) fn stdio(command: &mut Command, order: &Order<'_>) {
    if let Some(folder) = order.folder {
        command.current_dir(folder);
    }
    command.stdin(if order.with_stdin { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
}
