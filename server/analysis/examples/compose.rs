//! Puts candidates into files.
//!
//! `cargo run -p stitch-analysis --example compose -- FILE.py::Name CANDIDATE.py VERIFIED.json` prints the edited file. For statements the
//! name is a range of lines: `FILE.py::12-14`. VERIFIED.json holds a `stitch_analysis::target::compose::Verified`.
//! `… -- --self FOLDER…` puts each target of each file into its own file as its own candidate, and counts what came of it.
//! `… -- --settings` prints the script that tells the settings of a module.

#![allow(clippy::print_stdout, reason = "its output")]

use std::collections::BTreeMap;
use std::path::Path;

use stitch_analysis::decode;
use stitch_analysis::target::compose::{Argument, Verified, VerifiedCall, compose, settings_script};
use stitch_analysis::target::denote::Denoted;
use stitch_analysis::target::{statements, targets};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "--settings") {
        print!("{}", settings_script());
        return Ok(());
    }
    if arguments.first().is_some_and(|first| first == "--self") {
        for folder in &arguments[1..] {
            all(Path::new(folder));
        }
        return Ok(());
    }
    let [target, candidate, verified] = &arguments[..] else {
        return Err("three arguments are needed".into());
    };
    let (path, name) = target.rsplit_once("::").ok_or("the target is written FILE.py::Name")?;
    let text = std::fs::read_to_string(path)?;
    let lines =
        name.split_once('-').and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
    let of = match lines {
        Some((first, last)) => Denoted::Statements(statements::on_lines(&text, first, last)?),
        None => Denoted::Target(targets::named(&text, name)?),
    };
    let verified: Verified = serde_json::from_str(&std::fs::read_to_string(verified)?)?;
    print!("{}", compose(&text, &of, &std::fs::read_to_string(candidate)?, &verified)?.text);
    Ok(())
}

/// Composes each target of each file below a folder with the file itself.
fn all(folder: &Path) {
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let (mut files, mut good, mut bad) = (0, 0, 0);
    let mut todo = vec![folder.to_owned()];
    while let Some(path) = todo.pop() {
        if path.is_dir() && !path.is_symlink() {
            todo.extend(std::fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
            continue;
        }
        let is_python = path.extension().is_some_and(|extension| extension == "py");
        let Some(bytes) = is_python.then(|| std::fs::read(&path).ok()).flatten() else { continue };
        let Some(decoded) = decode(&bytes) else { continue };
        files += 1;
        for target in targets::targets(&decoded.text).into_iter().take(10) {
            // Arguments that no call has: what counts is the shape of the edited file.
            let call = VerifiedCall { arguments: vec![Argument::None; 40], ..VerifiedCall::default() };
            let name = target.name.clone();
            let mut result = Err(String::new());
            for count in 0..20 {
                let call =
                    VerifiedCall { arguments: call.arguments[..count].to_vec(), ..VerifiedCall::default() };
                let verified = Verified { calls: vec![call], training: vec![true], ..Verified::default() };
                result = compose(&decoded.text, &Denoted::Target(target.clone()), &decoded.text, &verified);
                if !result.as_ref().is_err_and(|why| why.starts_with("A verified call does not")) {
                    break;
                }
            }
            match result {
                Ok(_) => good += 1,
                Err(why) => {
                    bad += 1;
                    let kind: String = why.split('`').step_by(2).collect::<Vec<_>>().join("X");
                    if why.contains("no valid") {
                        println!("{}::{name}: {why}", path.display());
                    }
                    *reasons.entry(kind).or_default() += 1;
                }
            }
        }
    }
    println!("{}: {files} files, {good} targets composed, {bad} refused", folder.display());
    for (reason, count) in reasons {
        println!("  {count} {reason}");
    }
}
