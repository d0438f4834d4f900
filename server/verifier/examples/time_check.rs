//! Times pairs of kernels on a GPU as the loop does, and says what it would decide.
//!
//! `cargo run -p stitch-verifier --example time_check -- FILE REFERENCE CANDIDATE TIMES …`: the candidate is another kernel of the same file, and is timed
//! against the reference so many times; any number of such threes may follow. The kernels' sizes come from launches in the file. Prints one line a comparison.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stitch_session::config::{Config, Device};
use stitch_toolchain::discovery::{self, Search};
use stitch_toolchain::environment::Environment;
use stitch_verifier::harness::Answers;
use stitch_verifier::measure::{Cost, Measurement, compare, measure, table};
use stitch_verifier::program::{Builder, Target, choose};
use tokio_util::sync::CancellationToken;

#[tokio::main]
#[allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is what it is for")]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match times(&arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[allow(clippy::print_stdout, reason = "printing is what it is for")]
async fn times(arguments: &[String]) -> anyhow::Result<()> {
    let device = choose(&Device::Auto).await?;
    let found = discovery::find(&Search::new(Environment::of_this_process()));
    let toolkit = found.chosen.clone().ok_or_else(|| anyhow::anyhow!(found.advice()))?;
    let (file, threes) = arguments.split_first().ok_or_else(|| anyhow::anyhow!("no file"))?;
    let path = PathBuf::from(file).canonicalize()?;
    let workspace = path.parent().map(PathBuf::from);
    let builder = Builder::prepare(device, toolkit, Arc::new(Config::default()), workspace)
        .await
        .map_err(anyhow::Error::msg)?;
    // The simulator's process is another program's subcommand.
    let executable = std::env::var_os("STITCHCUDA").map(PathBuf::from).unwrap_or_default();
    let measurement = Measurement {
        builder,
        arguments: Vec::new(),
        answers: Answers::default(),
        scope: Vec::new(),
        tolerance: None,
        time_limit: Duration::from_secs(60),
        executable,
    };
    let kernel = |name: &str| Target::Kernel { path: path.clone(), kernel: name.to_owned() };
    let cancel = CancellationToken::new();
    for three in threes.chunks(3) {
        let [reference, candidate, repeats] = three else { anyhow::bail!("{three:?} are not three") };
        let (before, after) = (kernel(reference), kernel(candidate));
        if repeats == "once" {
            let measured = measure(&measurement, &before, &before, &cancel).await?;
            println!("{}", table(&measured, &path));
            continue;
        }
        for _ in 0..repeats.parse::<u32>()? {
            let begun = Instant::now();
            let cost = Cost::default();
            let result = compare(&measurement, &before, [&before, &after], &cost, &|_| {}, &cancel).await;
            let seconds = begun.elapsed().as_secs_f64();
            match result {
                Ok(comparison) => {
                    let time = |cost: &Cost| cost.time.as_ref().map_or(0.0, |time| time.microseconds.median);
                    println!(
                        "{reference} {candidate}: {:.3} µs, {:.3} µs, ratio {:.4} ({:.4} to {:.4}, {} rounds), {}, {seconds:.1} s",
                        time(&comparison.before),
                        time(&comparison.after),
                        comparison.ratio.median,
                        comparison.ratio.low,
                        comparison.ratio.high,
                        comparison.ratio.samples,
                        if comparison.ratio.low >= 1.01 { "kept" } else { "not kept" },
                    );
                }
                Err(error) => println!("{reference} {candidate}: {error} {seconds:.1} s"),
            }
        }
    }
    Ok(())
}
