//! Developer commands, run as `cargo xtask COMMAND`: one file a command.
//!
//! They are programs about this repository, for the people who work in it; nothing here ships.

mod bench_lsp;
mod editors;
mod fuzz;
mod hits;
mod install;
mod machine;
mod package;
mod recall;
mod rewrites;
mod test;
mod truth;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Developer commands of StitchCUDA")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// How fast the language server is, and what it takes in memory.
    Bench(bench_lsp::Arguments),
    /// Feeds what reads others' bytes with damaged ones, guided by coverage.
    Fuzz(fuzz::Arguments),
    /// What the static rules find in whole repositories, with a random sample to judge.
    Hits(hits::Arguments),
    /// Builds from this checkout and installs into an editor.
    Install(install::Arguments),
    /// Makes the packages that are given away.
    Package(package::Arguments),
    /// How many kernel definitions the outline finds in whole repositories.
    Recall(recall::Arguments),
    /// What the rewrites make of whole repositories, and why they refuse.
    Rewrites(rewrites::Arguments),
    /// Formatting, lints and every test that needs no GPU.
    Test(test::Arguments),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Bench(arguments) => bench_lsp::run(&arguments),
        Command::Fuzz(arguments) => fuzz::run(&arguments),
        Command::Hits(arguments) => hits::run(&arguments),
        Command::Install(arguments) => install::run(&arguments),
        Command::Package(arguments) => package::run(&arguments),
        Command::Recall(arguments) => recall::run(&arguments),
        Command::Rewrites(arguments) => rewrites::run(&arguments),
        Command::Test(arguments) => test::run(&arguments),
    }
}
