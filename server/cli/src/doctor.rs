//! `stitchcuda doctor`: what was found on this machine, what is missing, and how to get it.

use std::io::{self, Write};

use anyhow::{Context, Result};
use stitch_toolchain::doctor::{self, Health, Item, Status as Condition};
use stitch_verifier::device;
use stitch_verifier::sandbox::{GpuProof, Sandbox};

use crate::format::{Format, print_json};
use crate::settings::Surrounding;
use crate::status::Status;

/// Arguments of `doctor`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Looks at everything and prints it.
///
/// # Errors
/// Writing to `out`; the system gives no threads.
pub fn run(arguments: &Arguments, out: &mut impl Write) -> Result<Status> {
    let surrounding = Surrounding::read(Vec::new())?;
    let search = surrounding.search(&surrounding.config_for(None));
    let runtime = tokio::runtime::Runtime::new().context("no threads to look with")?;
    let health = runtime.block_on(async {
        let facts = device::facts().await;
        let mut health = doctor::examine(&search, Some(&facts)).await;
        health.items.extend(sandbox(!facts.devices.is_empty()).await);
        health
    });
    match arguments.format {
        Format::Human => print(&health, out)?,
        Format::Json => print_json(out, &health)?,
    }
    Ok(if health.is_good() {
        Status::Good
    } else if health.items.iter().any(|item| item.status == Condition::Missing) {
        Status::Missing
    } else {
        Status::Bad
    })
}

/// What the sandbox would have active, and whether a GPU works in there: a kernel is run to see.
async fn sandbox(has_gpu: bool) -> Vec<Item> {
    let why = "Candidates run in it: code that nobody has read.";
    let item = |status, detail: String| Item::new("sandbox", why, status, detail);
    let made = match std::env::current_exe() {
        Ok(executable) => Sandbox::probe(&executable).await.map_err(|error| error.to_string()),
        Err(error) => Err(format!("This program does not know where it lies: {error}.")),
    };
    let sandbox = match made {
        Ok(sandbox) => sandbox,
        Err(error) => {
            let remedy = "Run it again where the cache folder can be written; if it fails again, report it with this text.";
            return vec![item(Condition::Problem, error).remedy(remedy)];
        }
    };
    let text = sandbox.active().to_string();
    let first = match sandbox.remedy() {
        None => item(Condition::Ok, text),
        Some(remedy) => item(Condition::Optional, text).remedy(remedy),
    };
    let gpu = |status, detail: String| {
        Item::new("GPU in the sandbox", "Candidates use it from in there.", status, detail)
    };
    let second = if !has_gpu {
        gpu(Condition::Optional, "There is no GPU to try it with.".into())
    } else {
        match sandbox.prove_gpu().await {
            GpuProof::Works(name) => {
                gpu(Condition::Ok, format!("A kernel ran on {name} inside, and wrote what it should."))
            }
            GpuProof::None(why) | GpuProof::Fails(why) => {
                let remedy =
                    "Report it with this text and what `stitchcuda sandbox-exec --all --gpu` prints.";
                gpu(Condition::Problem, format!("It does not work inside: {why}.")).remedy(remedy)
            }
        }
    };
    vec![first, second]
}

fn print(health: &Health, out: &mut impl Write) -> io::Result<()> {
    for item in &health.items {
        let (mark, style) = mark(item);
        let version = item.version.as_ref().map_or(String::new(), |version| format!(" {version}"));
        writeln!(out, "{style}{mark}{style:#} {}{version}: {}", item.name, item.detail)?;
        if let Some(path) = &item.path {
            writeln!(out, "    {}", path.display())?;
        }
        if item.status != Condition::Ok {
            writeln!(out, "    What it is for: {}", item.why)?;
        }
        if let Some(remedy) = &item.remedy {
            writeln!(out, "    What to do: {remedy}")?;
        }
    }
    Ok(())
}

/// A mark that can be told apart without colours, and its colour.
fn mark(item: &Item) -> (&'static str, anstyle::Style) {
    let colour = |colour: anstyle::AnsiColor| anstyle::Style::new().bold().fg_color(Some(colour.into()));
    match item.status {
        Condition::Ok => ("ok      ", colour(anstyle::AnsiColor::Green)),
        Condition::Optional => ("optional", colour(anstyle::AnsiColor::Cyan)),
        Condition::Missing => ("missing ", colour(anstyle::AnsiColor::Red)),
        Condition::Problem => ("problem ", colour(anstyle::AnsiColor::Yellow)),
    }
}
