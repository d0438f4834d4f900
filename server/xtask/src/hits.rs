//! `cargo xtask hits`: what the static rules find in whole repositories, and a random sample to read and judge.
//!
//! A rule is on by default only where at least 18 of 20 random hits are right; this is how that is measured.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use stitch_analysis::{Analysis, Language};
use stitch_findings::CODES;

/// What to look at.
#[derive(clap::Args)]
pub struct Arguments {
    /// Folders or files; `.cu`, `.cuh` and `.py` files in them are read.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Show a sample of this rule: `static/double-literal`. May be given more than once.
    #[arg(long)]
    rule: Vec<String>,
    /// How many hits to show.
    #[arg(long, default_value_t = 20)]
    sample: usize,
    /// Which sample: the same seed shows the same hits.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Show at most so many hits of one file, so that no program decides.
    #[arg(long, default_value_t = usize::MAX)]
    per_file: usize,
    /// How many lines to show before and after the one that was found.
    #[arg(long, default_value_t = 8)]
    context: usize,
}

struct Hit {
    rule: usize,
    path: PathBuf,
    line: usize,
    message: String,
}

/// Counts the findings of each rule and prints a sample of one.
///
/// # Errors
/// When standard output can't be written.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let mut files = Vec::new();
    for path in &arguments.paths {
        collect(path, &mut files);
    }
    let mut counts: BTreeMap<&str, usize> = CODES.iter().map(|info| (info.code.as_str(), 0)).collect();
    let mut hits = Vec::new();
    for path in &files {
        let (Some(language), Ok(bytes)) = (Language::of_path(path), fs::read(path)) else { continue };
        let source = String::from_utf8_lossy(&bytes);
        for finding in Analysis::of(language, &source).findings() {
            *counts.entry(finding.code.as_str()).or_default() += 1;
            if let Some(rule) = arguments.rule.iter().position(|rule| rule == finding.code.as_str()) {
                let line = source.get(..finding.span.start).unwrap_or("").matches('\n').count();
                hits.push(Hit { rule, path: path.clone(), line, message: finding.message.clone() });
            }
        }
    }
    let mut out = io::stdout().lock();
    writeln!(out, "{} files", files.len())?;
    for (code, count) in counts.iter().filter(|(code, _)| code.starts_with("static/")) {
        writeln!(out, "{code} {count}")?;
    }
    for (number, rule) in arguments.rule.iter().enumerate() {
        let of_rule: Vec<&Hit> = hits.iter().filter(|hit| hit.rule == number).collect();
        writeln!(out, "\n##### {rule}")?;
        let mut of_file: BTreeMap<&Path, usize> = BTreeMap::new();
        let order = sample(of_rule.len(), of_rule.len(), arguments.seed);
        let shown = order.into_iter().map(|index| of_rule[index]).filter(|hit| {
            let seen = of_file.entry(&hit.path).or_default();
            *seen += 1;
            *seen <= arguments.per_file
        });
        for hit in shown.take(arguments.sample) {
            show(hit, arguments.context, &mut out)?;
        }
    }
    Ok(())
}

/// The source files below a path, in the order of their names.
pub fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    let mut open = vec![path.to_owned()];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            let mut inside: Vec<PathBuf> = fs::read_dir(&path)
                .into_iter()
                .flatten()
                .filter_map(|entry| entry.ok().map(|entry| entry.path()))
                .collect();
            inside.sort_unstable_by(|a, b| b.cmp(a));
            open.extend(inside);
        } else if Language::of_path(&path).is_some() {
            files.push(path);
        }
    }
}

/// `count` different numbers below `size`, the same for the same seed.
pub fn sample(size: usize, count: usize, seed: u64) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..size).collect();
    let mut state = seed;
    for last in (1..size).rev() {
        // Knuth's linear congruential generator; its upper bits are random enough to shuffle a list.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let other = usize::try_from(state >> 33).unwrap_or(0) % (last + 1);
        indices.swap(last, other);
    }
    indices.truncate(count);
    indices
}

fn show(hit: &Hit, context: usize, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "\n=== {}:{}\n    {}", hit.path.display(), hit.line + 1, hit.message)?;
    let bytes = fs::read(&hit.path)?;
    let source = String::from_utf8_lossy(&bytes);
    let first = hit.line.saturating_sub(context);
    for (number, line) in source.lines().enumerate().skip(first).take(hit.line - first + context + 1) {
        let mark = if number == hit.line { '>' } else { ' ' };
        writeln!(out, "{mark}{:6} {line}", number + 1)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::sample;

    #[test]
    fn a_sample_is_repeatable_and_has_no_number_twice() {
        let first = sample(100, 20, 7);
        assert_eq!(first, sample(100, 20, 7));
        assert_ne!(first, sample(100, 20, 8));
        let mut sorted = first.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 20);
        assert!(sample(3, 20, 1).len() == 3 && sample(0, 20, 1).is_empty());
    }
}
