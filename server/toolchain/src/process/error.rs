//! Why a program did not run to its end.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Output;

/// A program that did not start, or was ended before it was done.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// There is no such program.
    #[error("{} was not found. Install it, or set its path in the configuration.", program.display())]
    NotFound {
        /// As it was asked for.
        program: PathBuf,
    },
    /// There is a file, but it is not a program for this machine.
    #[error("{} can't be executed: {reason}.", program.display())]
    NotExecutable {
        /// The file.
        program: PathBuf,
        /// What is wrong and what to do, in words.
        reason: String,
    },
    /// The folder it was to run in can't be entered.
    #[error("{} could not be started in the folder {}: {source}. Check that the folder exists.", program.display(), folder.display())]
    Folder {
        /// The program.
        program: PathBuf,
        /// The folder.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused to start it.
    #[error("{} could not be started: {source}{}", program.display(), advice(source))]
    Start {
        /// The program.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It ran longer than it may.
    #[error("{} was ended after {} s, its time limit. Raise the limit if it needs longer.", program.display(), limit.as_secs_f64())]
    TimedOut {
        /// The program.
        program: PathBuf,
        /// The limit.
        limit: Duration,
        /// What it printed until then.
        output: Box<Output>,
    },
    /// The job was cancelled.
    #[error("{} was cancelled.", program.display())]
    Cancelled {
        /// The program.
        program: PathBuf,
    },
    /// It wrote more than its scratch folder may hold.
    #[error("{} was ended: it wrote more than {} MB into its scratch folder {}. Raise the limit if it needs more.", program.display(), limit / 1_000_000, folder.display())]
    ScratchFull {
        /// The program.
        program: PathBuf,
        /// Its scratch folder.
        folder: PathBuf,
        /// The limit in bytes.
        limit: u64,
        /// What it printed until then.
        output: Box<Output>,
    },
    /// It printed far more than is kept.
    #[error("{} was ended: it printed more than {} MB. It seems to print for ever; run it by hand to see what it prints.", program.display(), limit / 1_000_000)]
    Flooded {
        /// The program.
        program: PathBuf,
        /// How much it may print, in bytes.
        limit: u64,
        /// The beginning and the end of what it printed.
        output: Box<Output>,
    },
    /// Its supervisor was killed from outside, and it was killed with it.
    #[error("{} was killed from outside, together with the process that watched it (is the machine out of memory?). Run it again.", program.display())]
    Lost {
        /// The program.
        program: PathBuf,
    },
}

fn advice(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(code) if code == nix::errno::Errno::E2BIG as i32 => {
            ". Its arguments and environment are too long; pass arguments in a response file"
        }
        Some(code) if code == nix::errno::Errno::EAGAIN as i32 => {
            ". There are too many processes; see `ulimit -u`, and end some"
        }
        Some(code) if code == nix::errno::Errno::ENOMEM as i32 => ". The machine is out of memory",
        Some(code) if code == nix::errno::Errno::EMFILE as i32 => {
            ". Too many files are open; see `ulimit -n`"
        }
        _ => "",
    }
}

/// What a failed start means, found out by looking at the file: the system says "not found" of an interpreter too.
pub(super) fn failed_start(program: &Path, folder: Option<&Path>, source: io::Error) -> ProgramError {
    let program = program.to_path_buf();
    if let Some(folder) = folder
        && let Err(source) = std::fs::read_dir(folder)
    {
        return ProgramError::Folder { program, folder: folder.to_path_buf(), source };
    }
    let not_executable = |reason: String| ProgramError::NotExecutable { program: program.clone(), reason };
    let exec_format = source.raw_os_error() == Some(nix::errno::Errno::ENOEXEC as i32);
    match source.kind() {
        _ if program.is_dir() => not_executable("it is a folder".into()),
        io::ErrorKind::NotFound if !program.exists() => ProgramError::NotFound { program },
        io::ErrorKind::NotFound => not_executable(match interpreter(&program) {
            Some(interpreter) => {
                format!("its interpreter {interpreter} is not there; install it or mend its first line")
            }
            None => "the loader that it needs is not there; it was built for another system".into(),
        }),
        io::ErrorKind::PermissionDenied => not_executable(format!(
            "{source}; set its executable bit (chmod +x), and check that its folder is not mounted noexec"
        )),
        _ if exec_format => not_executable("it is neither a script nor a program for this machine".into()),
        _ => ProgramError::Start { program, source },
    }
}

/// What is wrong with a file that `execvp` would hand to the shell, line by line, for want of a better idea: an empty
/// file, data, or a program for another processor.
pub(super) fn not_a_program(path: &Path) -> Option<String> {
    let beginning = beginning(path)?;
    if beginning.is_empty() {
        return Some("it is empty; install it again".into());
    }
    if beginning.starts_with(b"\x7fELF") {
        let machine = u16::from_le_bytes([*beginning.get(18)?, *beginning.get(19)?]);
        let wrong =
            MACHINES.iter().any(|(name, own)| *name == std::env::consts::ARCH && !own.contains(&machine));
        // An emulator may be registered with the kernel for exactly these programs.
        let emulated = Path::new("/proc/sys/fs/binfmt_misc/register").exists();
        return (wrong && !emulated).then(|| "it was built for another processor".into());
    }
    let is_text = beginning.iter().all(|byte| matches!(byte, b'\t' | b'\n' | 0x0c | b'\r') || *byte >= b' ');
    (!is_text).then(|| "it is neither a script nor a program for this machine".into())
}

/// ELF machine numbers that a processor runs (System V ABI, `e_machine`): its own, and its 32-bit predecessor's.
const MACHINES: &[(&str, &[u16])] = &[("x86_64", &[62, 3]), ("aarch64", &[183, 40])];

/// The interpreter that a script names in its first line.
fn interpreter(script: &Path) -> Option<String> {
    let beginning = beginning(script)?;
    let line = beginning.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    line.split_whitespace().next().map(String::from)
}

fn beginning(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(256).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
