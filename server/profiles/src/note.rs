//! What a reader of a profile has to know about the profile itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something about a profile that is no finding about code: a table that is missing, a schema that is newer than what is known, a row that
/// could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Note {
    /// What kind of note.
    pub kind: NoteKind,
    /// One sentence for a person, which says what to do where something can be done.
    pub text: String,
}

/// The kinds of notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum NoteKind {
    /// The profiler did not record it, so that nothing is known about it: never the same as zero.
    NotCaptured,
    /// The file is of a version that this program does not know; it was read as far as it goes.
    NewerVersion,
    /// Part of the file could not be read.
    Unreadable,
    /// The profiler was not allowed to measure.
    NotPermitted,
    /// Anything else a reader should know, such as the clocks under which it was made.
    Remark,
}

impl Note {
    /// A note.
    pub fn new(kind: NoteKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}
