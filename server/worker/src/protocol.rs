//! What both sides say, a JSON object a line. `docs/worker.md` describes it for those who would write another side.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of the protocol. It grows with each change that an older side would not understand.
pub const PROTOCOL: u32 = 1;

/// The version of this program. Both sides must be of one, since rules of judging change with it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The longest line that either side takes, in bytes: far above any verdict.
pub const LONGEST_LINE: usize = 64 << 20;

/// How many bytes of a file go into one line: with base64, a third more.
pub const CHUNK: usize = 192 << 10;

/// How often either side says that it lives while the other is patient.
pub const BEATS: u32 = 3;

/// What the person's side says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum ToWorker {
    /// The first line.
    Hello {
        /// [`PROTOCOL`].
        protocol: u32,
        /// [`VERSION`].
        version: String,
        /// How long either side may be silent, in milliseconds.
        patience: u64,
    },
    /// Do this. Under an id that is known, the answer of then is given again, and nothing is done twice.
    Job {
        /// Made by the person's side: letters and digits that no other job has.
        id: String,
        /// An [`Order`](crate::order::Order), with paths as they are on the person's side.
        order: Value,
        /// What the paths of an order begin with: the folders that are laid out.
        roots: Vec<PathBuf>,
        /// The files that it is about.
        files: Vec<Sent>,
    },
    /// A part of a content that the worker needs.
    Put {
        /// Its digest.
        content: String,
        /// How many bytes came before; at 0 it begins anew.
        at: u64,
        /// A part of its bytes, in base64, the parts in their order.
        data: String,
        /// Whether it is the last.
        last: bool,
    },
    /// The job is no longer wanted.
    Cancel {
        /// The job.
        id: String,
    },
    /// The answer came; the worker may forget it.
    Done {
        /// The job.
        id: String,
    },
    /// Still here.
    Beat,
    /// No more will come: the end of the stream after this is no lost connection.
    Bye,
}

/// A file of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Where it is on the person's side: absolute, without `.` and `..`.
    pub path: PathBuf,
    /// The SHA-256 of its bytes, in hexadecimal digits.
    pub content: String,
    /// How many bytes it has.
    pub bytes: u64,
    /// Whether it may be executed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
}

/// What the worker says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum FromWorker {
    /// The answer to `hello`.
    Hello {
        /// [`PROTOCOL`].
        protocol: u32,
        /// [`VERSION`].
        version: String,
        /// What the machine calls itself.
        machine: String,
    },
    /// Contents that a job is about and that are not there.
    Need {
        /// The job.
        id: String,
        /// Their digests.
        contents: Vec<String>,
    },
    /// What is done now.
    Progress {
        /// The job.
        id: String,
        /// In words.
        message: String,
        /// How much of it is done, from 0 to 1, where that is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        share: Option<f32>,
    },
    /// What came of a job.
    Result {
        /// The job.
        id: String,
        /// An [`Outcome`](crate::order::Outcome).
        result: Value,
    },
    /// Nothing came of a job.
    Failed {
        /// The job.
        id: String,
        /// What a command ends with.
        status: Kind,
        /// Why, in sentences, for a person.
        message: String,
    },
    /// Still here.
    Beat,
    /// The worker ends, for it can't understand the other side.
    Refused {
        /// Why, in sentences.
        message: String,
    },
}

/// Of what kind a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The answer is bad: exit status 1.
    Bad,
    /// Wrong usage or input: exit status 2.
    Usage,
    /// Something needed is missing there: exit status 3.
    Missing,
    /// It was cancelled.
    Cancelled,
}

impl Kind {
    /// What the command line ends with.
    pub fn status(self) -> u8 {
        match self {
            Self::Bad => 1,
            Self::Usage => 2,
            Self::Missing => 3,
            Self::Cancelled => 130,
        }
    }
}

/// Why two sides do not understand each other, in sentences that say which one to update; `None` where they do. `mine` is this side in words,
/// `other` the other one.
pub fn misunderstanding(mine: &str, other: &str, protocol: u32, version: &str) -> Option<String> {
    if protocol == PROTOCOL && version == VERSION {
        return None;
    }
    let older = match protocol.cmp(&PROTOCOL).then_with(|| numbers(version).cmp(&numbers(VERSION))) {
        std::cmp::Ordering::Less => other,
        _ => mine,
    };
    Some(format!(
        "{mine} has StitchCUDA {VERSION} (protocol {PROTOCOL}) and {other} has {version} (protocol {protocol}). Both must be of one version, since rules \
         of judging change with it: update StitchCUDA on {older}."
    ))
}

/// The numbers of a version, to compare.
fn numbers(version: &str) -> Vec<u64> {
    version.split(['.', '-', '+']).map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_side_is_the_one_to_update() {
        let said = |protocol, version| misunderstanding("this machine", "gpu01", protocol, version);
        assert_eq!(said(PROTOCOL, VERSION), None);
        for (protocol, version, older) in [
            (PROTOCOL + 1, VERSION, "on this machine."),
            (PROTOCOL - 1, VERSION, "on gpu01."),
            (PROTOCOL, "0.0.9", "on gpu01."),
            (PROTOCOL, "99.10.0", "on this machine."),
            (PROTOCOL, "0.0.10-beta", "on gpu01."),
        ] {
            let text = said(protocol, version).unwrap();
            assert!(text.ends_with(older) && text.contains(version), "{text}");
        }
    }
}
