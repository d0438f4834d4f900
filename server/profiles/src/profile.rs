//! All that is known of how a target runs, whoever recorded it: the schema `stitchcuda.profile/1`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::KernelLaunch;
use crate::note::Note;
use crate::python::PythonTime;
use crate::sanitizer::Defect;
use crate::system::System;

/// The schema's name and version.
pub const SCHEMA: &str = "stitchcuda.profile/1";

/// A profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Profile {
    /// [`SCHEMA`].
    pub schema: String,
    /// What was profiled, as a person named it, or the file that was imported.
    pub target: String,
    /// Where it ran, as far as that is known: `cuda:0 (NVIDIA H200)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// How it was profiled.
    pub way: Way,
    /// The run of the whole program; `None` where nobody recorded it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<System>,
    /// Launches of kernels that were looked at closely.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub launches: Vec<KernelLaunch>,
    /// What lines and modules of Python cost; `None` where there is no Python, or nobody recorded it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<PythonTime>,
    /// What kernels did wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub defects: Vec<Defect>,
    /// What a reader has to know about the profile itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

/// How something was profiled, and why not better.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Way {
    /// The tools: `Nsight Compute and Nsight Systems`, `a file of Nsight Systems`.
    pub by: String,
    /// When, in UTC: `2026-11-30T08:15:00Z`; empty where that is not known, as of a file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub measured: String,
    /// Whether this was kept from then: neither the code nor what it was measured with has changed since.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
    /// Better ways that were not taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_taken: Vec<NotTaken>,
}

/// A better way that was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotTaken {
    /// Which.
    pub by: String,
    /// Why, in a sentence that says what to do where something can be done.
    pub why: String,
}

/// The JSON schema of a profile as the command line prints it, [`SCHEMA`]. Beside it, `stitchcuda profile --format json` prints what rules say:
/// `limits` of the program and `explanations` of launches.
pub fn profile_schema() -> serde_json::Value {
    let settings = schemars::generate::SchemaSettings::draft07();
    let mut schema = settings.into_generator().into_root_schema_for::<Printed>().to_value();
    schema["title"] = SCHEMA.into();
    schema["properties"]["schema"] = serde_json::json!({ "const": SCHEMA });
    schema
}

/// A profile with what rules say of it.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "for its schema alone")]
struct Printed {
    #[serde(flatten)]
    profile: Profile,
    /// What limits the program, the largest gain first.
    #[serde(default)]
    limits: Vec<crate::system::Insight>,
    /// What limits each launch, in the order of `launches`.
    #[serde(default)]
    explanations: Vec<crate::kernel::Explanation>,
}

impl Profile {
    /// A profile in which nothing is known yet.
    pub fn new(target: impl Into<String>, way: Way) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            target: target.into(),
            device: None,
            way,
            system: None,
            launches: Vec::new(),
            python: None,
            defects: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Takes what another profile of the same target says besides; where both speak of the same, the other counts.
    pub fn add(&mut self, other: &Self) {
        self.device = other.device.clone().or(self.device.take());
        self.system = other.system.clone().or(self.system.take());
        self.python = other.python.clone().or(self.python.take());
        if !other.launches.is_empty() {
            self.launches.clone_from(&other.launches);
        }
        if !other.defects.is_empty() {
            self.defects.clone_from(&other.defects);
        }
        self.notes.extend(other.notes.iter().cloned());
    }

    /// Whether any kernel is known, or of what ran without a GPU any operator, or of what no profiler looked into how long a call takes.
    pub fn has_kernels(&self) -> bool {
        if self.python.as_ref().is_some_and(|python| python.host.is_some() || python.call.is_some()) {
            return true;
        }
        let recorded = self.system.as_ref().and_then(|system| system.kernels.as_ref());
        !self.launches.is_empty() || recorded.is_some_and(|kernels| !kernels.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_is_the_one_in_the_documentation() {
        let schema = serde_json::to_string_pretty(&profile_schema()).unwrap() + "\n";
        expect_test::expect_file!["../../../docs/profile.schema.json"].assert_eq(&schema);
    }
}
