//! A verdict for a person.

use std::io::{self, Write};
use std::path::Path;

use anstyle::{AnsiColor, Style};
use stitch_findings::{Answer, Compared, Evidence, Inputs, Severity, Span, Verdict};

/// Things left out that are named.
const MOST_LEFT_OUT: usize = 10;

/// Prints a verdict; `file` is the candidate's, whose lines findings are about.
///
/// # Errors
/// Writing to `out`.
pub fn print(verdict: &Verdict, file: Option<&Path>, out: &mut impl Write) -> io::Result<()> {
    let text = file.and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
    let good = verdict.is_good();
    let style = colour(if good { AnsiColor::Green } else { AnsiColor::Red });
    writeln!(
        out,
        "{style}{}{style:#}: {} against {} on {}, {}",
        match (good, verdict.answer) {
            (false, Answer::Correct) => "correct answer, with a defect",
            (_, other) => answer(other),
        },
        verdict.candidate,
        verdict.reference,
        verdict.device,
        inputs(&verdict.inputs)
    )?;
    for finding in &verdict.findings {
        let (word, style) = match finding.severity {
            Severity::Error => ("error", colour(AnsiColor::Red)),
            Severity::Warning => ("warning", colour(AnsiColor::Yellow)),
            Severity::Information | Severity::Hint => ("info", colour(AnsiColor::Cyan)),
        };
        writeln!(out, "{style}{word}[{}]{style:#}: {}", finding.code, finding.message)?;
        if let Some((line, column, shown)) = line_at(&text, finding.span) {
            let name = file.and_then(Path::file_name).unwrap_or_default().to_string_lossy();
            writeln!(out, "  --> {name}:{line}:{column}: {shown}")?;
        }
        if let Some(advice) = &finding.advice {
            writeln!(out, "  help: {advice}")?;
        }
    }
    evidence(&verdict.evidence, good, out)?;
    if !verdict.compared.is_empty() {
        writeln!(out, "Compared:")?;
    }
    for compared in &verdict.compared {
        writeln!(out, "  {}", line(compared))?;
    }
    if !verdict.left_out.is_empty() {
        writeln!(out, "Left out:")?;
    }
    for left_out in verdict.left_out.iter().take(MOST_LEFT_OUT) {
        writeln!(out, "  {}: `{}`, since {}", left_out.place, left_out.text, left_out.reason)?;
    }
    if verdict.left_out.len() > MOST_LEFT_OUT {
        writeln!(out, "  and {} more", verdict.left_out.len() - MOST_LEFT_OUT)?;
    }
    if !verdict.not_checked.is_empty() {
        writeln!(out, "Not checked:")?;
    }
    for sentence in &verdict.not_checked {
        writeln!(out, "  {sentence}")?;
    }
    for note in &verdict.notes {
        writeln!(out, "note: {note}")?;
    }
    Ok(())
}

fn colour(colour: AnsiColor) -> Style {
    Style::new().bold().fg_color(Some(colour.into()))
}

fn answer(answer: Answer) -> &'static str {
    match answer {
        Answer::Correct => "correct",
        Answer::Wrong => "wrong",
        Answer::NothingCompared => "nothing compared",
        Answer::BuildFailed => "does not compile",
        Answer::Crashed => "crashed",
        Answer::TimedOut => "does not end",
        Answer::Dishonest => "dishonest",
    }
}

fn inputs(inputs: &Inputs) -> String {
    match inputs {
        Inputs::Drawn => "inputs drawn anew".to_owned(),
        Inputs::Perturbed { buffers: 1 } => "inputs as they are, and with one buffer perturbed".to_owned(),
        Inputs::Perturbed { buffers } => format!("inputs as they are, and with {buffers} buffers perturbed"),
        Inputs::Fixed { .. } => "inputs fixed".to_owned(),
    }
}

fn line(compared: &Compared) -> String {
    let count = if compared.different > 0 && compared.different > compared.count {
        // Words and lines that differ, beside no number or few.
        let places = if compared.different == 1 { "place differs" } else { "places differ" };
        format!("{} {places}", compared.different)
    } else if compared.different > 0 {
        format!("{} of {} differ", compared.different, compared.count)
    } else {
        format!("{} the same", compared.count)
    };
    let mut text = format!("{}, inputs {}: {count} ({})", compared.what, compared.inputs, compared.read_as);
    if let Some(relative) = compared.relative.filter(|relative| *relative > 0.0) {
        text.push_str(&format!("; relative error up to {relative:.2e}"));
    }
    if let Some(normalized) = compared.normalized.filter(|normalized| *normalized > 0.0) {
        text.push_str(&format!(", normalised {normalized:.2e}"));
    }
    if compared.left_out > 0 {
        text.push_str(&format!("; {} left out", compared.left_out));
    }
    text
}

/// The line, the column and the text of the line that a span begins on, the first two from one. `None` for a span of nothing.
fn line_at(text: &str, span: Span) -> Option<(usize, usize, &str)> {
    if span.is_empty() {
        return None;
    }
    let before = text.get(..span.start)?;
    let line = before.matches('\n').count() + 1;
    let column = before.len() - before.rfind('\n').map_or(0, |at| at + 1) + 1;
    Some((line, column, text.lines().nth(line - 1)?.trim()))
}

/// What was measured: times and speedups first, since they are what most people look for.
fn evidence(evidence: &Evidence, good: bool, out: &mut impl Write) -> io::Result<()> {
    for speedup in &evidence.speedups {
        let style = colour(if speedup.low > 1.0 { AnsiColor::Green } else { AnsiColor::Yellow });
        writeln!(
            out,
            "{style}{:.2} times{style:#} as fast as {} (95% interval {:.3} to {:.3})",
            speedup.ratio, speedup.over, speedup.low, speedup.high
        )?;
    }
    if !evidence.times.is_empty() {
        writeln!(out, "Time of a call, in µs:")?;
    }
    for times in &evidence.times {
        writeln!(
            out,
            "  {}: {:.2} (95% interval {:.2} to {:.2}; p5 {:.2}, p95 {:.2}; {} calls)",
            times.what, times.median, times.low, times.high, times.p5, times.p95, times.calls
        )?;
    }
    if let Some(accuracy) = evidence.accuracy.as_ref().filter(|_| good) {
        writeln!(
            out,
            "Exactness of `{}` against 64 bits: {:.2} times the reference's own largest error ({:.1e} against {:.1e})",
            accuracy.output, accuracy.max_ratio, accuracy.candidate_error, accuracy.reference_error
        )?;
    }
    if let Some(seeds) = evidence.seeds.filter(|seeds| *seeds > 0) {
        let tried = evidence.distributions.iter().map(|tried| match &tried.not_tried {
            Some(reason) if tried.rounds == 0 => format!("{} (not tried: {reason})", tried.what),
            _ => tried.what.clone(),
        });
        writeln!(out, "Inputs of {seeds} secret seeds: {}", tried.collect::<Vec<_>>().join(", "))?;
    }
    if let Some(making) = &evidence.making {
        let parts =
            [("inputs", &making.inputs), ("reference", &making.reference), ("candidate", &making.candidate)];
        let told = parts.iter().filter_map(|(what, place)| Some(format!("{what} {}", place.as_ref()?)));
        writeln!(out, "Made on: {}", told.collect::<Vec<_>>().join("; "))?;
    }
    if let Some(parameters) = &evidence.parameters {
        writeln!(
            out,
            "Parameters and buffers: {} entries with {} elements, the same in both; {} rounds with other values than constructed",
            parameters.entries, parameters.elements, parameters.randomised_rounds
        )?;
    }
    if let Some(memory) = evidence.memory {
        let megabytes = |bytes: u64| bytes.div_ceil(1_000_000);
        writeln!(
            out,
            "Device memory of a call: {} MB, the reference {} MB",
            megabytes(memory.candidate_bytes),
            megabytes(memory.reference_bytes)
        )?;
    }
    for tool in &evidence.sanitizer {
        writeln!(out, "compute-sanitizer, {}: {} errors", tool.tool, tool.errors)?;
    }
    if let Some(versions) = &evidence.versions {
        let cuda = versions.cuda.as_deref().map(|cuda| format!(", CUDA {cuda}")).unwrap_or_default();
        writeln!(out, "Python {}, torch {}{cuda}", versions.python, versions.torch)?;
    }
    if !evidence.stages.is_empty() {
        let stages = evidence.stages.iter().map(|stage| format!("{} {:.1} s", stage.stage, stage.seconds));
        writeln!(out, "Took: {}", stages.collect::<Vec<_>>().join(", "))?;
    }
    if let Some(sandbox) = &evidence.sandbox {
        writeln!(out, "Sandbox: {sandbox}")?;
    }
    Ok(())
}
