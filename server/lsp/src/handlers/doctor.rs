//! What was found on this machine, what is missing, and how to get it: as data, and as text to be read or pasted.

use std::fmt::Write;

use serde_json::{Value, json};
use stitch_toolchain::doctor::{self, Item, Status};
use tower_lsp::jsonrpc::{Error, Result};

use crate::elsewhere;
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
    let mut answer = json!({ "text": text(&health.items), "isGood": health.is_good(), "items": items });
    let elsewhere = session.machines.of(&config).filter(|_| session.configuration.is_trusted());
    if let Some(elsewhere) = elsewhere {
        add(&mut answer, elsewhere::examine(&elsewhere).await, &elsewhere.command_line());
    }
    Ok(answer)
}

/// Adds what another machine has, or why it can't be asked.
fn add(answer: &mut Value, examined: std::result::Result<(String, Vec<Item>), String>, command: &str) {
    let here = answer["text"].as_str().unwrap_or_default();
    let (there, is_good) = match &examined {
        Ok((machine, items)) => {
            let is_bad = |item: &Item| matches!(item.status, Status::Missing | Status::Problem);
            let said = format!("On {machine} (`{command}`):\n{}", text(items));
            (said, !items.iter().any(is_bad))
        }
        Err(why) => (format!("missing  worker: {why}\n"), false),
    };
    answer["text"] = json!(format!("{here}\n{there}"));
    answer["isGood"] = json!(answer["isGood"] == true && is_good);
    if let Ok((machine, items)) = examined {
        answer["elsewhere"] = json!({ "machine": machine, "items": items });
    }
}

fn text(items: &[Item]) -> String {
    let mut text = String::new();
    for item in items {
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
