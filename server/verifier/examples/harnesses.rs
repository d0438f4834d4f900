//! How many kernels of real code get a harness without a question: `harnesses FOLDER OUT [EVERY]` plans one for each kernel of
//! each `.cu` below FOLDER (or each EVERYth), writes those that need nothing to OUT, and prints a line for each,
//! with what it asks for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use stitch_analysis::{Analysis, Language};
use stitch_verifier::harness::{self, Answers, PlanError, Subject};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "cu") {
            found.push(path);
        }
    }
}

#[allow(clippy::print_stdout, reason = "it prints its result")]
fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, out, rest @ ..] = &arguments[..] else { anyhow::bail!("harnesses FOLDER OUT [EVERY]") };
    let every: usize = rest.first().map_or(Ok(1), |every| every.parse())?;
    let mut paths = Vec::new();
    sources(&Path::new(folder).canonicalize()?, &mut paths);
    std::fs::create_dir_all(out)?;
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut number = 0usize;
    for path in &paths {
        let Ok(bytes) = std::fs::read(path) else { continue };
        let Some(text) = stitch_analysis::decode(&bytes).map(|decoded| decoded.text) else { continue };
        let analysis = Analysis::of(Language::Cuda, &text);
        for kernel in analysis.outline().kernels() {
            number += 1;
            if !number.is_multiple_of(every) {
                continue;
            }
            let planned = harness::plan(analysis.outline(), &text, kernel, None, &Answers::default());
            let mut why = String::new();
            let outcome = match planned {
                Ok(harness) => {
                    let subject = Subject { path, kernel: &kernel.qualified_name, configuration: None };
                    std::fs::write(
                        Path::new(out).join(format!("h{number}.cu")),
                        harness::write(&harness, &subject),
                    )?;
                    "made"
                }
                Err(PlanError::Needs(needs)) => {
                    why = needs.missing.join("; ");
                    for missing in &needs.missing {
                        let kind = missing.split('`').next().unwrap_or_default().trim().to_owned();
                        *reasons.entry(kind).or_default() += 1;
                    }
                    "asks"
                }
                Err(PlanError::Unsupported { reason, .. }) => {
                    why.clone_from(&reason);
                    *reasons.entry(reason).or_default() += 1;
                    "unsupported"
                }
                Err(_) => "writes nothing",
            };
            println!("{number}\t{outcome}\t{}\t{}\t{why}", kernel.qualified_name, path.display());
            *outcomes.entry(outcome).or_default() += 1;
        }
    }
    println!("{outcomes:?}\n{reasons:#?}");
    Ok(())
}
