//! `stitchcuda doctor`: what was found on this machine, what is missing, and how to get it.

use std::io::{self, Write};

use anyhow::{Context, Result};
use serde::Serialize;
use stitch_session::CancellationToken;
use stitch_toolchain::doctor::{Health, Item, Status as Condition};
use stitch_worker::client::Elsewhere;
use stitch_worker::files::Files;
use stitch_worker::order::{Order, Outcome};

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
    let config = surrounding.config_for(Some(&surrounding.folder));
    let search = surrounding.search(&config);
    let runtime = tokio::runtime::Runtime::new().context("no threads to look with")?;
    let (health, there) = runtime.block_on(async {
        let health = stitch_worker::health::examine(&search).await;
        let there = match Elsewhere::configured(&config.worker) {
            Some(elsewhere) => Some(look_elsewhere(&elsewhere).await),
            None => None,
        };
        (health, there)
    });
    match arguments.format {
        Format::Human => {
            print(&health.items, out)?;
            if let Some(there) = &there {
                writeln!(out, "\nOn {} (`{}`):", there.machine, there.command)?;
                print(&there.items, out)?;
            }
        }
        Format::Json => print_json(out, &Report { health: &health, elsewhere: there.as_ref() })?,
    }
    let items = health.items.iter().chain(there.iter().flat_map(|there| &there.items));
    Ok(items.map(status_of).fold(Status::Good, Status::worse))
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    health: &'a Health,
    /// The machine that `worker.command` leads to.
    #[serde(skip_serializing_if = "Option::is_none")]
    elsewhere: Option<&'a There>,
}

/// What another machine has.
#[derive(Serialize)]
struct There {
    /// What it calls itself.
    machine: String,
    /// How one gets there.
    command: String,
    items: Vec<Item>,
}

/// Asks the machine that `worker.command` leads to. That it can't be asked is what is wrong with it.
async fn look_elsewhere(elsewhere: &Elsewhere) -> There {
    let (quiet, never) = (|_: &str, _: Option<f32>| {}, CancellationToken::new());
    let looked = elsewhere.perform(&Order::Doctor, &Files::default(), &quiet, &never).await;
    let machine = elsewhere.machine().unwrap_or_else(|| "another machine".to_owned());
    elsewhere.close().await;
    let problem = |why: String| {
        let item = Item::new("worker", "Its device runs what is edited here.", Condition::Missing, why);
        vec![item.remedy("Run the command by hand: it should wait for input and print nothing.")]
    };
    let items = match looked {
        Ok(Outcome::Doctor { items }) => items,
        Ok(_) => problem("It did something else than was ordered.".to_owned()),
        Err(error) => problem(error.to_string()),
    };
    There { machine, command: elsewhere.command_line(), items }
}

/// What one item means for the whole.
fn status_of(item: &Item) -> Status {
    match item.status {
        Condition::Ok | Condition::Optional => Status::Good,
        Condition::Missing => Status::Missing,
        Condition::Problem => Status::Bad,
    }
}

fn print(items: &[Item], out: &mut impl Write) -> io::Result<()> {
    for item in items {
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
