//! What was found on this machine, what is missing, and how to get it: as data, and as text to be read or pasted.

use std::fmt::Write;

use serde_json::{Value, json};
use stitch_toolchain::doctor::{self, Health, Status};
use tower_lsp::jsonrpc::{Error, Result};

use crate::session::Session;

/// `stitchcuda/doctor`: `{"text", "isGood", "items"}`. In a workspace that is not trusted, nothing of it is run.
///
/// # Errors
/// None that a client can mend.
pub async fn doctor(session: &Session) -> Result<Value> {
    let folder = session.configuration.first_folder();
    let config = session.configuration.for_path(folder.as_deref());
    let search = session.search(&config, folder.filter(|_| session.configuration.is_trusted()));
    let health = doctor::examine(&search, Some(&stitch_verifier::device::facts().await)).await;
    let items = serde_json::to_value(&health.items).map_err(|_| Error::internal_error())?;
    Ok(json!({ "text": text(&health), "isGood": health.is_good(), "items": items }))
}

fn text(health: &Health) -> String {
    let mut text = String::new();
    for item in &health.items {
        let mark = match item.status {
            Status::Ok => "ok      ",
            Status::Optional => "optional",
            Status::Missing => "missing ",
            Status::Problem => "problem ",
        };
        let version = item.version.as_ref().map_or(String::new(), |version| format!(" {version}"));
        // Writing to a string can't fail.
        let _ = writeln!(text, "{mark} {}{version}: {}", item.name, item.detail);
        if let Some(path) = &item.path {
            let _ = writeln!(text, "    {}", path.display());
        }
        if item.status != Status::Ok {
            let _ = writeln!(text, "    What it is for: {}", item.why);
        }
        if let Some(remedy) = &item.remedy {
            let _ = writeln!(text, "    What to do: {remedy}");
        }
    }
    text
}
