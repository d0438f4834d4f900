//! Measures how long an edit takes: types a line, a character at a time, at several places of a CUDA file.
//!
//! `cargo run --release -p stitch-analysis --example typing -- FILE.cu` prints the time of the first analysis and the
//! median, 99th percentile and maximum of an edit, in milliseconds of wall time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use stitch_analysis::{Analyzer, Language, Workspace};

/// Has what breaks a text while it is typed: braces, parentheses, quotes, a comment.
const LINE: &str = "\n  for (int i = 0; i < n; ++i) { printf(\"%d (%s)\\n\", i, \"x{\"); if (c == '}') { /* why */ f<<<1, 2>>>(a[i]); } }\n";

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn report(title: &str, times: &mut [Duration]) -> String {
    times.sort();
    let at = |part: f64| {
        times.get((times.len() as f64 * part) as usize).or(times.last()).copied().unwrap_or_default()
    };
    format!(
        "{title}: {} edits, median {:.2} ms, p99 {:.2} ms, max {:.2} ms",
        times.len(),
        milliseconds(at(0.5)),
        milliseconds(at(0.99)),
        milliseconds(at(1.0))
    )
}

/// The ends of lines near some places of the text that lie inside functions, if it has any.
fn places(source: &str, functions: &[stitch_findings::Span]) -> Vec<usize> {
    let wanted = 12;
    let step = (functions.len() / wanted).max(1);
    let inside = functions.iter().step_by(step).filter_map(|span| {
        let middle = (span.start + span.end) / 2;
        source.get(middle..span.end)?.find('\n').map(|at| middle + at)
    });
    inside.collect()
}

/// Peak and present resident memory in kilobytes, where the system tells.
fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let lines = status.lines().filter(|line| line.starts_with("VmHWM") || line.starts_with("VmRSS"));
    lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>().join(", ")
}

#[expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]
fn main() -> Result<(), String> {
    let path = std::env::args().nth(1).ok_or("usage: typing FILE.cu")?;
    let bytes = std::fs::read(&path).map_err(|error| format!("could not read {path}: {error}"))?;
    let source = String::from_utf8_lossy(&bytes).into_owned();
    let workspace = Workspace::default();
    let mut analyzer = Analyzer::new(Language::Cuda);
    let mut update = |text: &str| {
        let text: Arc<str> = text.into();
        let started = Instant::now();
        let analysis = analyzer.update(text, &workspace, &|| true);
        (started.elapsed(), analysis)
    };
    let (first, analysis) = update(&source);
    let analysis = analysis.map_err(|_| "the first analysis was cut off")?;
    println!(
        "{path}: {} bytes, {} lines, {} functions",
        source.len(),
        source.lines().count(),
        analysis.outline().functions.len()
    );
    println!("first analysis: {:.2} ms", milliseconds(first));
    let mut all = Vec::new();
    for place in places(&source, &analysis.function_spans()) {
        let mut text = source.clone();
        let mut times = Vec::new();
        for (typed, character) in LINE.char_indices() {
            text.insert(place + typed, character);
            times.push(update(&text).0);
        }
        all.extend(times.iter().copied());
        println!("{}", report(&format!("  at byte {place}"), &mut times));
        let (_, restored) = update(&source);
        restored.map_err(|_| "an analysis was cut off")?;
    }
    println!("{}", report("all", &mut all));
    println!("{}", memory());
    Ok(())
}
