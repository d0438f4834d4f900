//! What goes between the stages of the sandbox: the order in, and what was seen out.

use std::ffi::OsString;
use std::fmt;
use std::os::fd::RawFd;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Active, Policy};

/// The variable in which the order travels: arguments could be read by everyone.
pub(super) const VARIABLE: &str = "STITCHCUDA_SANDBOX";
/// The longest order, in bytes: one variable may hold 128 KiB (`MAX_ARG_STRLEN` of Linux).
pub(super) const LONGEST_ORDER: usize = 120 << 10;

/// Who makes namespaces and mounts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Isolation {
    /// The program `bwrap`.
    Bubblewrap(PathBuf),
    /// We do, in a user namespace.
    User {
        /// Whether there are mounts of its own too.
        mounts: bool,
    },
    /// We do, as root.
    Root {
        /// Whether there are mounts of its own too.
        mounts: bool,
    },
    /// Nobody.
    None,
}

impl fmt::Display for Isolation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bubblewrap(path) => write!(formatter, "bubblewrap ({})", path.display()),
            Self::User { mounts: true } => formatter.write_str("namespaces of a user"),
            Self::User { mounts: false } => formatter.write_str("namespaces of a user, without mounts"),
            Self::Root { mounts: true } => formatter.write_str("namespaces of root"),
            Self::Root { mounts: false } => formatter.write_str("namespaces of root, without mounts"),
            Self::None => formatter.write_str("no namespaces"),
        }
    }
}

/// How the sandbox is made on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Who makes namespaces and mounts.
    pub isolation: Isolation,
    /// Whether `/proc` is mounted anew. In containers that mask parts of it only root may.
    pub fresh_proc: bool,
    /// Whether paths are checked by Landlock, where the kernel can.
    pub landlock: bool,
    /// Whether system calls are filtered, where the kernel can.
    pub seccomp: bool,
}

impl Plan {
    /// Everything, where it can be had.
    pub fn with(isolation: Isolation) -> Self {
        Self { isolation, fresh_proc: true, landlock: true, seccomp: true }
    }

    /// Whether nothing is left out of namespaces and mounts.
    pub(super) fn is_full(&self) -> bool {
        let has_mounts = matches!(
            self.isolation,
            Isolation::Bubblewrap(_) | Isolation::User { mounts: true } | Isolation::Root { mounts: true }
        );
        has_mounts && self.fresh_proc
    }
}

/// What a stage is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) policy: Policy,
    pub(super) plan: Plan,
    pub(super) scratch: PathBuf,
    /// Bytes.
    pub(super) scratch_limit: u64,
    /// Where the first stage writes its [`Report`].
    pub(super) report: PathBuf,
    /// The cgroup to enter.
    pub(super) cgroup: Option<PathBuf>,
    /// What the parent already knows to be missing.
    pub(super) known: Active,
    /// For the stage inside: where [`Message`]s go.
    pub(super) messages: Option<RawFd>,
    /// Kinds and numbers of the namespaces outside.
    pub(super) outside: Vec<(String, u64)>,
    /// The mark by which the processes of a job are found where no namespace holds them.
    pub(super) mark: Option<(OsString, OsString)>,
}

/// What a stage inside says, one object a line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Message {
    /// What is active. Said last before the program starts.
    Active(Active),
    /// The sandbox could not be made.
    Failed(Failure),
    /// The program could not be executed, with the error number.
    NotExecuted(i32),
    /// The program's wait status.
    Ended(i32),
}

/// A step that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Failure {
    pub(super) what: String,
    pub(super) why: String,
}

impl Failure {
    pub(super) fn new(what: impl Into<String>, why: impl fmt::Display) -> Self {
        Self { what: what.into(), why: why.to_string() }
    }
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum End {
    /// By itself, with this wait status.
    Itself(i32),
    /// The sandbox could not be made.
    Failed(Failure),
    /// The program could not be executed.
    NotExecuted(i32),
    /// It used more memory than it may: bytes.
    Memory(u64),
    /// It had more processes and threads than it may.
    Tasks(u64),
    /// It took more processor time than it may: seconds.
    Cpu(u64),
}

/// What the first stage leaves for the parent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) active: Active,
    /// None while it runs.
    pub(super) end: Option<End>,
}
