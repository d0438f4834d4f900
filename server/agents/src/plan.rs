//! What the Planner writes: an ordered to-do list.

use serde::{Deserialize, Serialize};

/// The Planner's ordered to-do list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// What holds the code back, in a few sentences.
    pub summary: String,
    /// What to do about it, the most promising first.
    pub tasks: Vec<Task>,
}

/// One entry of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// What to do, in a few words: `Pad the shared tile`.
    pub title: String,
    /// How, and why, as far as it goes beyond the title.
    #[serde(default)]
    pub description: String,
    /// What may be changed: names of kernels and functions.
    #[serde(default)]
    pub scope: Vec<String>,
    /// What should become smaller, and by how much: `shared wavefronts, 32 to 1 a request`.
    #[serde(default)]
    pub expected_gain: String,
    /// How to see that it was done right and well.
    #[serde(default)]
    pub test: String,
    /// The rewrite that does it, where a deterministic one does: `rewrite/pad-shared-tile`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewrite: Option<String>,
}
