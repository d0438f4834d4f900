//! A verdict for a person.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use stitch_findings::{Answer, Compared, Inputs, Severity, Verdict};

/// Things left out that are named.
const MOST_LEFT_OUT: usize = 10;

/// Prints a verdict.
///
/// # Errors
/// Writing to `out`.
pub fn print(verdict: &Verdict, out: &mut impl Write) -> io::Result<()> {
    let good = verdict.is_good();
    let style = colour(if good { AnsiColor::Green } else { AnsiColor::Red });
    writeln!(
        out,
        "{style}{}{style:#}: {} against {} on {}, {}",
        answer(verdict.answer),
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
        if let Some(advice) = &finding.advice {
            writeln!(out, "  help: {advice}")?;
        }
    }
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
