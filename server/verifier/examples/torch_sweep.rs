//! Loads each file that is named, by KernelBench's convention, draws its inputs, calls it twice with the same state, and computes the
//! same in float64. Says for each what came of it.
//!
//! `cargo run -p stitch-verifier --example torch_sweep -- [--cuda] FILE…`

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use stitch_toolchain::discovery::Search;
use stitch_toolchain::environment::Environment;
use stitch_toolchain::process::Scratch;
use stitch_verifier::torch::host::{Calling, Load, Place, Role, Setting, Zygote, find_python};
use stitch_verifier::torch::subject::{Callable, Case, Source, Subject};
use tokio_util::sync::CancellationToken;

fn subject(path: &Path) -> Subject {
    let function = |name: &str| Source::Function { name: name.to_owned() };
    Subject {
        path: path.to_owned(),
        callable: Callable::Module { name: "Model".to_owned(), init: Some(function("get_init_inputs")) },
        cases: vec![Case { inputs: function("get_inputs"), dtype: None }],
    }
}

async fn one(zygotes: &mut [Zygote; 2], path: &Path, place: Place) -> Result<String> {
    let [reference, candidate] = zygotes;
    let load = Load::new(subject(path), 1);
    let mut child = reference.child().await?;
    child.load(&load).await.context("load")?;
    let inputs = child.draw(2, 0).await.context("draw")?;
    let state = child.state().await.context("state")?;
    let mut other = candidate.child().await?;
    other.load(&Load { seed: 9, ..load }).await.context("load again")?;
    other.set_state(&state).await.context("set state")?;
    let calling = Calling { seed: 3, poison: true, ..Calling::default() };
    let second = other.call(&inputs, &calling).await.context("call again")?;
    let oracle = child.oracle(&inputs).await;
    if child.is_gone() {
        oracle.context("float64")?;
        bail!("the process is gone");
    }
    let first = child.call(&inputs, &calling).await.context("call")?;
    let mut words = Vec::new();
    if first.outputs.values != second.outputs.values {
        bail!("the two calls gave other shapes");
    }
    if first.outputs.bytes != second.outputs.bytes {
        words.push("the two calls differ".to_owned());
    }
    if first.inputs_after.is_some() {
        words.push("it changes its inputs".to_owned());
    }
    for called in [&first, &second] {
        words.extend(called.seen.changed.clone());
        if called.seen.threads[0] != called.seen.threads[1] {
            words.push(format!("threads {:?}", called.seen.threads));
        }
    }
    if let Err(error) = oracle {
        words.push(format!("no oracle: {error}"));
    }
    if matches!(place, Place::Cuda(_)) {
        words.push(format!("call {:.3} s", first.wall.as_secs_f64()));
    }
    Ok(words.join("; "))
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut files: Vec<String> = std::env::args().skip(1).collect();
    let cuda = files.first().is_some_and(|word| word == "--cuda");
    files.drain(..usize::from(cuda));
    let place = if cuda { Place::Cuda(0) } else { Place::Cpu };
    let search = Search::new(Environment::of_this_process());
    let python = tokio::task::spawn_blocking(move || find_python(None, &search, None)).await??;
    let cancel = CancellationToken::new();
    let scratches = [Scratch::new("sweep")?, Scratch::new("sweep")?];
    let mut zygotes = Vec::new();
    for (scratch, role) in scratches.iter().zip([Role::Reference, Role::Candidate]) {
        let mut setting = Setting::new(&python, scratch);
        setting.place = place;
        setting.time_limit = Duration::from_secs(120);
        zygotes.push(Zygote::start(&setting, role, &cancel).await?);
    }
    let mut zygotes: [Zygote; 2] =
        zygotes.try_into().map_err(|_| anyhow::anyhow!("two processes were to be started"))?;
    let mut good = 0;
    let mut out = std::io::stdout();
    for file in &files {
        let began = Instant::now();
        let outcome = one(&mut zygotes, Path::new(file), place).await;
        let name = Path::new(file).file_name().unwrap_or_default().to_string_lossy();
        let seconds = began.elapsed().as_secs_f64();
        match outcome {
            Ok(words) => {
                good += 1;
                writeln!(out, "ok   {seconds:6.1} s  {name}  {words}")?;
            }
            Err(error) => writeln!(out, "FAIL {seconds:6.1} s  {name}  {error:#}")?,
        }
    }
    writeln!(out, "{good} of {} work", files.len())?;
    let [one, two] = zygotes;
    one.end().await;
    two.end().await;
    Ok(())
}
