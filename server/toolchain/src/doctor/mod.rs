//! Says what is there, what is missing, why it matters and how to get it.
//!
//! The result is data; the command line prints it. Nothing here asks a driver: what is known of GPUs is handed in.

mod machine;
mod parts;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::discovery::{self, Search};

/// Names how the JSON is written.
pub const SCHEMA: &str = "stitchcuda.doctor/1";

/// How an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Status {
    /// There, and fit for use.
    Ok,
    /// Needed, and not there.
    Missing,
    /// There, but something is wrong with it.
    Problem,
    /// Not there (or not used), and work goes on without it.
    Optional,
}

/// One thing that was looked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// What it is.
    pub name: String,
    /// How it is.
    pub status: Status,
    /// What was found, in words.
    pub detail: String,
    /// Where it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// How it was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// What it is for.
    pub why: String,
    /// How to get or mend it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Item {
    /// An item of this name: what it is for, how it is, and what was found, in words.
    pub fn new(name: &str, why: &str, status: Status, detail: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            status,
            detail: detail.into(),
            path: None,
            version: None,
            origin: None,
            why: why.into(),
            remedy: None,
        }
    }

    fn at(mut self, path: impl Into<PathBuf>) -> Self {
        self.path = Some(path.into());
        self
    }

    fn version(mut self, version: Option<impl ToString>) -> Self {
        self.version = version.map(|version| version.to_string());
        self
    }

    fn origin(mut self, origin: impl Into<String>) -> Self {
        self.origin = Some(origin.into());
        self
    }

    /// Adds how to get or mend it.
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

/// Everything that was looked for.
#[derive(Clone, Debug, Serialize)]
pub struct Health {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// The items, the most important first.
    pub items: Vec<Item>,
}

impl Health {
    /// Whether nothing needed is missing, and nothing is wrong.
    pub fn is_good(&self) -> bool {
        self.items.iter().all(|item| matches!(item.status, Status::Ok | Status::Optional))
    }

    /// The items that want something done.
    pub fn bad(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|item| matches!(item.status, Status::Missing | Status::Problem))
    }
}

/// What is known of the driver and its devices. The caller asks the driver; this room does not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceFacts {
    /// The newest CUDA release that the driver runs, such as 13.0.
    pub driver: Option<discovery::Version>,
    /// The devices, in words: `NVIDIA H200, sm_90, 139 GiB`.
    pub devices: Vec<String>,
    /// Why the driver could not be asked.
    pub problem: Option<String>,
}

/// Looks at everything. Runs `--version` of what it finds.
pub async fn examine(search: &Search, devices: Option<&DeviceFacts>) -> Health {
    let (search, devices) = (search.clone(), devices.cloned());
    let work = tokio::task::spawn_blocking(move || look(&search, devices.as_ref()));
    let items = work.await.unwrap_or_else(|error| {
        vec![
            Item::new(
                "doctor",
                "It looks at all the rest.",
                Status::Problem,
                format!("It could not finish: {error}."),
            )
            .remedy("Run it again; if it fails again, report it with this text."),
        ]
    });
    Health { schema: SCHEMA, items }
}

fn look(search: &Search, devices: Option<&DeviceFacts>) -> Vec<Item> {
    let discovery = discovery::find(search);
    let toolkit = discovery.chosen.as_ref();
    let tools = discovery::tools(search, toolkit);
    let mut items = parts::toolkit(&discovery);
    items.push(parts::host_compiler(search, toolkit));
    items.extend(parts::python(search));
    items.extend(machine::driver(&tools, devices, toolkit));
    items.extend(parts::optional_tools(&tools));
    items.extend(machine::counters(search));
    items.extend(machine::cache(search));
    items.extend(machine::c_library(search));
    items
}
