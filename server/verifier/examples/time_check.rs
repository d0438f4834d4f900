//! Times pairs of kernels as the loop does, and says what it would decide.
//!
//! `cargo run -p stitch-verifier --example time_check -- FILE REFERENCE CANDIDATE TIMES …`: the candidate is another kernel of the same file, and is timed
//! against the reference so many times (`once`: the reference alone is measured); any number of such threes may follow. The kernels' sizes come
//! from launches in the file. Prints one line a comparison, and one that sums up. `STITCHCUDA` is our own program, for the simulator's
//! process, and `DEVICE` another device than the first GPU: on `sim:h200` times mean nothing, and all else can be tried.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stitch_session::config::{Config, Device};
use stitch_toolchain::discovery::{self, Search};
use stitch_toolchain::environment::Environment;
use stitch_verifier::harness::Answers;
use stitch_verifier::measure::{Comparison, Cost, Harnesses, Measurement, compare, measure, table};
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
    let wanted = std::env::var("DEVICE").unwrap_or_else(|_| "auto".to_owned());
    let device = choose(&Device::try_from(wanted).map_err(anyhow::Error::msg)?).await?;
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
        harnesses: Harnesses::default(),
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
        let mut all = Vec::new();
        for _ in 0..repeats.parse::<u32>()? {
            let begun = Instant::now();
            let cost = Cost::default();
            let result = compare(&measurement, &before, [&before, &after], &cost, &|_| {}, &cancel).await;
            let seconds = begun.elapsed().as_secs_f64();
            match result {
                Ok(comparison) => {
                    println!("{reference} {candidate}: {}, {seconds:.1} s", line(&comparison));
                    all.push((comparison, seconds));
                }
                Err(error) => println!("{reference} {candidate}: {error} {seconds:.1} s"),
            }
        }
        if all.len() > 1 {
            println!("{reference} {candidate}: {}", summary(&all));
        }
    }
    Ok(())
}

/// The ratio from which on a candidate is kept.
const KEPT: f64 = 1.01;

fn median(cost: &Cost) -> f64 {
    cost.time.as_ref().map_or(0.0, |time| time.microseconds.median)
}

fn line(comparison: &Comparison) -> String {
    let ratio = comparison.ratio;
    format!(
        "{:.3} µs, {:.3} µs, ratio {:.4} ({:.4} to {:.4}, {} rounds), {}",
        median(&comparison.before),
        median(&comparison.after),
        ratio.median,
        ratio.low,
        ratio.high,
        ratio.samples,
        if ratio.low >= KEPT { "kept" } else { "not kept" },
    )
}

/// How well comparisons of the same two agree.
fn summary(all: &[(Comparison, f64)]) -> String {
    let range = |of: &dyn Fn(&(Comparison, f64)) -> f64| {
        let values: Vec<f64> = all.iter().map(of).collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        (low, high)
    };
    let medians = |of: &dyn Fn(&(Comparison, f64)) -> f64| {
        let (low, high) = range(of);
        format!("{low:.3} to {high:.3} µs ({:.2}% apart)", 100.0 * (high / low - 1.0))
    };
    let count = |of: &dyn Fn(&Comparison) -> bool| all.iter().filter(|(one, _)| of(one)).count();
    let (least, most) = range(&|(one, _)| one.ratio.median);
    format!(
        "in {} comparisons {} and {}, ratio {least:.4} to {most:.4}, intervals {:.2}% wide at most, 1 in {}, kept {}, {:.1} s at most",
        all.len(),
        medians(&|(one, _)| median(&one.before)),
        medians(&|(one, _)| median(&one.after)),
        100.0 * range(&|(one, _)| one.ratio.width()).1,
        count(&|one| one.ratio.low <= 1.0 && 1.0 <= one.ratio.high),
        count(&|one| one.ratio.low >= KEPT),
        range(&|(_, seconds)| *seconds).1,
    )
}
