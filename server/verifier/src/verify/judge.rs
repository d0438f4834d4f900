//! From runs to a verdict: what is compared with what, and in which words it is said.

use std::path::{Path, PathBuf};

use stitch_analysis::{Analysis, Language};
use stitch_findings::{Answer, Code, Compared, Evidence, Finding, Inputs, LeftOut, Span, Verdict};
use stitch_profiles::units::counted;
use stitch_session::config::Precision;

use crate::compare::{
    BytesComparison, ElementType, Interpretation, Reason, TextComparison, Types, Why, compare_bytes,
    compare_text, interpret,
};
use crate::demangle;
use crate::guard;
use crate::harness::{Parameter, Role, parameter_element};
use crate::program::{End, Ran};
use crate::simulation::{Defect, Report, Source};

/// The tolerance of printed numbers where nothing else is asked for: that of fp32, since most programs compute in it.
const TEXT_TOLERANCE: f64 = 1e-4;
/// Differences that a finding's message names.
const MOST_NAMED: usize = 3;

/// What the reference copied back, what it copied back in a second run under the same inputs, what the candidate copied back.
pub(super) type Copies<'a> = (&'a [Vec<u8>], Option<&'a [Vec<u8>]>, &'a [Vec<u8>]);

/// Collects what a verdict says.
pub(super) struct Judge {
    pub verdict: Verdict,
    /// Where findings are put: the kernel, or the first line.
    span: Span,
    kernel: Option<String>,
    /// The candidate's file and its text.
    file: PathBuf,
    text: String,
}

impl Judge {
    /// A verdict that nothing speaks against yet. Findings are about the `kernel` in the candidate's file, or about its first one.
    pub fn new(
        reference: &str,
        candidate: &str,
        device: String,
        file: Option<&Path>,
        kernel: Option<&str>,
    ) -> Self {
        let (span, name) = place(file, kernel);
        let verdict = Verdict {
            reference: reference.to_owned(),
            candidate: candidate.to_owned(),
            device,
            answer: Answer::Correct,
            inputs: Inputs::Fixed { reason: String::new() },
            compared: Vec::new(),
            left_out: Vec::new(),
            findings: Vec::new(),
            not_checked: Vec::new(),
            notes: Vec::new(),
            evidence: Evidence::default(),
        };
        let text = file.and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
        Self { verdict, span, kernel: name, file: file.unwrap_or(Path::new("")).to_owned(), text }
    }

    /// Adds a finding; the first one decides the answer.
    pub fn accuse(&mut self, code: Code, answer: Answer, message: String, advice: &str) {
        let mut finding = Finding::new(code, self.span, message);
        if !advice.is_empty() {
            finding = finding.advise(advice);
        }
        if let Some(kernel) = &self.kernel {
            finding = finding.about(kernel.clone());
        }
        self.verdict.findings.push(finding);
        if self.verdict.answer == Answer::Correct {
            self.verdict.answer = answer;
        }
    }

    /// Adds what the simulator caught in the candidate and not in the reference: of one kind in one kernel, that is. The answer stays, but
    /// a verdict with a warning is not good.
    pub fn defects(&mut self, reference: &Ran, candidate: &Ran, inputs: &str) {
        let Some(report) = &candidate.report else { return };
        let known = |kind: &str, kernel: &str| {
            let own = |one: &Defect| one.kind == kind && demangle::name(&one.kernel).base() == kernel;
            reference.report.as_ref().is_some_and(|report| report.defects.iter().any(own))
        };
        let new = report.defects.iter().filter(|one| !known(&one.kind, demangle::name(&one.kernel).base()));
        let new = Report { defects: new.cloned().collect(), ..Report::default() };
        if let Some(checked) = report.checked()
            && !self.verdict.notes.contains(&checked)
        {
            self.verdict.notes.push(checked);
        }
        let (path, text) = (self.file.clone(), self.text.clone());
        for finding in new.findings(&Source::new(&path, &text)) {
            let same = |one: &Finding| (one.code, one.span) == (finding.code, finding.span);
            if !self.verdict.findings.iter().any(same) {
                let message = format!("Under the inputs {inputs}: {}", finding.message);
                self.verdict.findings.push(Finding { message, ..finding });
            }
        }
    }

    /// Whether the candidate ended as the reference did; accuses it where it did not.
    pub fn ended_alike(&mut self, reference: &Ran, candidate: &Ran, inputs: &str) -> bool {
        let new_faults = match (&reference.report, &candidate.report) {
            (Some(reference), Some(candidate)) if reference.faults.is_empty() => candidate.faults.clone(),
            _ => Vec::new(),
        };
        if let Some(fault) = new_faults.first() {
            let message = format!("Under the inputs {inputs}, a kernel faults. {}", fault.words());
            self.accuse(Code::VERIFY_CRASHED, Answer::Crashed, message, "");
            return false;
        }
        if reference.end == candidate.end {
            return true;
        }
        let said = last_words(candidate);
        match &candidate.end {
            End::TimedOut => {
                let message = format!(
                    "Under the inputs {inputs}, the candidate was ended after {:.0} s; the reference took {:.1} s.",
                    candidate.wall.as_secs_f64(),
                    reference.wall.as_secs_f64()
                );
                self.accuse(
                    Code::VERIFY_TIMEOUT,
                    Answer::TimedOut,
                    message,
                    "Raise `--time-limit` if it is only slow.",
                );
            }
            end => {
                let message = format!(
                    "Under the inputs {inputs}, the candidate {}, the reference {}.{said}",
                    words(end),
                    words(&reference.end)
                );
                self.accuse(Code::VERIFY_CRASHED, Answer::Crashed, message, "");
            }
        }
        false
    }

    /// Compares what both printed.
    pub fn text(
        &mut self,
        reference: &str,
        again: &str,
        candidate: &str,
        tolerance: Option<f64>,
        inputs: &str,
    ) {
        let tolerance = tolerance.unwrap_or(TEXT_TOLERANCE);
        let result = compare_text(reference, again, candidate, tolerance);
        for excluded in &result.excluded {
            self.leave_out(LeftOut {
                place: format!("line {} of the output", excluded.line),
                text: excluded.text.clone(),
                reason: reason(excluded.reason).to_owned(),
            });
        }
        let what = "standard output".to_owned();
        if result.different > 0 {
            let named: Vec<_> = result.differences.iter().take(MOST_NAMED).map(difference).collect();
            let message = format!(
                "The {what} differs in {} (inputs {inputs}): {}.",
                places(result.different),
                named.join("; ")
            );
            // Words and missing lines have no error; a tolerance allows them none.
            let is_number = result.differences.iter().any(|difference| difference.relative.is_some());
            self.accuse(Code::VERIFY_WRONG_RESULT, Answer::Wrong, message, advice(is_number));
        }
        self.verdict.compared.push(of_text(result, what, tolerance, inputs));
    }

    /// Compares arrays: what was copied back, or the outputs of a harness. Returns whether the reference's bytes and the
    /// candidate's could be laid beside each other.
    pub fn bytes(
        &mut self,
        what: String,
        interpretation: Interpretation,
        arrays: (&[u8], Option<&[u8]>, &[u8]),
        tolerance: Option<f64>,
        inputs: &str,
    ) {
        let (expected, again, got) = arrays;
        let result = compare_bytes(interpretation, expected, again, got, tolerance);
        if !result.is_same() {
            let message = format!("The {what} is wrong (inputs {inputs}): {}.", wrong_bytes(&result));
            self.accuse(Code::VERIFY_WRONG_RESULT, Answer::Wrong, message, advice(rounds(&result)));
        }
        self.verdict.compared.push(of_bytes(&result, what, inputs));
    }

    /// Compares what both copied back, in order, as elements of these types.
    pub fn copies(
        &mut self,
        (reference, again, candidate): Copies,
        types: &Types,
        tolerance: Option<f64>,
        inputs: &str,
    ) {
        let sizes = |copies: &[Vec<u8>]| copies.iter().map(Vec::len).collect::<Vec<_>>();
        let again = again.filter(|again| sizes(again) == sizes(reference));
        if sizes(reference) == sizes(candidate) {
            for (index, (expected, got)) in reference.iter().zip(candidate).enumerate() {
                let what = format!("copy {} to the host", index + 1);
                let again = again.map(|again| again[index].as_slice());
                self.bytes(what, interpret(expected, types), (expected, again, got), tolerance, inputs);
            }
            return;
        }
        let (expected, got) = (reference.concat(), candidate.concat());
        if expected.len() == got.len() {
            // One copy in place of two, or two in place of one: the same bytes in the same order.
            let again = again.map(<[Vec<u8>]>::concat);
            let arrays = (expected.as_slice(), again.as_deref(), got.as_slice());
            let what = "data copied to the host, taken together,".to_owned();
            self.bytes(what, interpret(&expected, types), arrays, tolerance, inputs);
            return;
        }
        let message = format!(
            "The candidate copies {} bytes to the host in {} copies, the reference {} bytes in {} (inputs {inputs}), so they can't be compared.",
            got.len(),
            candidate.len(),
            expected.len(),
            reference.len()
        );
        let advice = "Copy back what the reference copies back, in its order; or verify the kernel itself (`file.cu::kernel`).";
        self.accuse(Code::VERIFY_WRONG_RESULT, Answer::Wrong, message, advice);
    }

    /// Says what was not seen of the copies of either.
    pub fn unseen(&mut self, reference: &Ran, candidate: &Ran) {
        let list = &mut self.verdict.not_checked;
        list.extend(reference.unseen.iter().cloned());
        let others = candidate.unseen.iter().filter(|sentence| !reference.unseen.contains(sentence));
        list.extend(others.map(|sentence| format!("Of the candidate: {sentence}")));
    }

    fn leave_out(&mut self, left_out: LeftOut) {
        if !self.verdict.left_out.contains(&left_out) {
            self.verdict.left_out.push(left_out);
        }
    }

    /// The verdict: a failure where nothing was compared.
    pub fn finish(mut self) -> Verdict {
        let anything = self.verdict.compared.iter().any(|compared| compared.count > 0);
        if !anything && self.verdict.answer == Answer::Correct {
            let message =
                "Both ran, but neither printed a number nor copied anything back that could be compared."
                    .to_owned();
            let advice = "Print the result or copy it back by a plain `cudaMemcpy`; or name the kernel, for which a harness is made \
                          (`file.cu::kernel`).";
            self.accuse(Code::VERIFY_NOTHING_COMPARED, Answer::NothingCompared, message, advice);
        }
        if let (Inputs::Fixed { reason }, Answer::Correct) = (&self.verdict.inputs, self.verdict.answer) {
            let message = format!("Right for the program's own inputs, and tried with no others: {reason}");
            let finding = Finding::new(Code::VERIFY_INPUTS_FIXED, self.span, message);
            self.verdict.findings.push(finding);
        }
        self.verdict
    }
}

/// Whether a tolerance can make these arrays the same: floating-point numbers, as many of them.
fn rounds(result: &BytesComparison) -> bool {
    result.interpretation.element.is_floating() && result.size == result.candidate_size
}

/// What to do about a wrong result.
fn advice(may_round: bool) -> &'static str {
    if may_round { WRONG_ADVICE } else { "" }
}

const WRONG_ADVICE: &str = "If the candidate only rounds otherwise, say how far it may be off: `--tolerance 1e-3`, or `tolerance` of the target.";

/// The kernel's name in the candidate's file, or the first kernel's; the start of the file where there is none.
fn place(file: Option<&Path>, kernel: Option<&str>) -> (Span, Option<String>) {
    let Some(text) = file.and_then(|file| std::fs::read(file).ok()) else { return (Span::new(0, 0), None) };
    let Some(decoded) = stitch_analysis::decode(&text) else { return (Span::new(0, 0), None) };
    let analysis = Analysis::of(Language::Cuda, &decoded.text);
    let named =
        kernel.and_then(|kernel| analysis.outline().kernels().find(|known| known.qualified_name == kernel));
    match named.or_else(|| analysis.outline().kernels().next()) {
        Some(kernel) => (kernel.name_span, Some(kernel.qualified_name.clone())),
        None => (Span::new(0, 0), None),
    }
}

/// The element types of a program's arrays: those of its kernels' parameters, where these are all known and nothing else is
/// copied.
pub(super) fn types(texts: &[String]) -> Types {
    // A symbol's type is no kernel's parameter.
    let only_parameters = !texts.iter().any(|text| text.contains("FromSymbol"));
    match parameters(texts) {
        Some(declared) if only_parameters => Types::Declared(declared),
        _ => {
            let narrow = [(Precision::Fp16, ElementType::F16), (Precision::Bf16, ElementType::Bf16)];
            let used =
                narrow.into_iter().filter(|(format, _)| texts.iter().any(|text| guard::uses(text, *format)));
            Types::Among(
                [ElementType::F32, ElementType::F64].into_iter().chain(used.map(|(_, one)| one)).collect(),
            )
        }
    }
}

/// The element types of the arrays that kernels take; `None` where one is not known.
fn parameters(texts: &[String]) -> Option<Vec<ElementType>> {
    let mut found = Vec::new();
    for text in texts {
        let analysis = Analysis::of(Language::Cuda, text);
        for kernel in analysis.outline().kernels() {
            for (index, parameter) in kernel.parameters.iter().enumerate() {
                match Parameter::read(&parameter.name, &parameter.ty, index).role {
                    Role::Array { element, .. } => found.push(parameter_element(&element)?),
                    Role::Unsupported { .. } => return None,
                    Role::Scalar { .. } => {}
                }
            }
        }
    }
    found.sort();
    found.dedup();
    (!found.is_empty()).then_some(found)
}

/// How a run ended, to follow "it".
pub(crate) fn words(end: &End) -> String {
    match end {
        End::Status(status) => format!("ended with exit status {status}"),
        End::Signal(signal) => format!("was ended by signal {signal}"),
        End::TimedOut => "did not come to an end in time".to_owned(),
        End::Ended(why) => format!("was ended ({why})"),
    }
}

/// The end of what a program said on its standard error, or printed.
pub(super) fn last_words(ran: &Ran) -> String {
    let said = if ran.stderr.trim().is_empty() { &ran.stdout } else { &ran.stderr };
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(2)..];
    if last.is_empty() { String::new() } else { format!(" It said: {}", last.join(" / ")) }
}

fn places(count: usize) -> String {
    if count == 1 { "one place".to_owned() } else { format!("{count} places") }
}

fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Unsteady => "it differs between two runs of the reference",
        Reason::Timing => "it is a time or a rate",
        Reason::Address => "it is an address",
    }
}

/// A share in percent, readable from 1e-7 to 1e7.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent == 0.0 || (0.01..10_000.0).contains(&percent) {
        format!("{percent:.3} %")
    } else {
        format!("{percent:.1e} %")
    }
}

fn difference(difference: &crate::compare::Difference) -> String {
    let off = difference
        .relative
        .map(|relative| format!(" (relative error {})", percent(relative)))
        .unwrap_or_default();
    format!("{}: expected `{}`, got `{}`{off}", difference.place, difference.expected, difference.got)
}

fn wrong_bytes(result: &BytesComparison) -> String {
    if result.size != result.candidate_size {
        return format!("it has {} bytes, and should have {}", result.candidate_size, result.size);
    }
    let array = &result.array;
    let mut text = format!("{} of {} elements ({}) differ", array.outside, array.count, read_as(result));
    if result.interpretation.element.is_floating() {
        text.push_str(&format!(
            "; relative error up to {}, normalised error {}, absolute error up to {:.3e}; tolerance {}",
            percent(array.relative),
            percent(array.normalized),
            array.absolute,
            percent(result.tolerance)
        ));
    }
    if let Some(worst) = &array.worst {
        text.push_str(&format!(
            "; worst is element {}: expected {}, got {}",
            worst.index,
            shown(worst.expected),
            shown(worst.got)
        ));
    }
    text
}

fn shown(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 { format!("{value}") } else { format!("{value:.7e}") }
}

fn read_as(result: &BytesComparison) -> String {
    let why = match result.interpretation.why {
        Why::Declared => "as the kernels' parameters say",
        Why::Values => "as its values say",
        Why::Unknown => "compared byte by byte",
    };
    format!("{}, {why}", result.interpretation.element.name())
}

fn of_text(result: TextComparison, what: String, tolerance: f64, inputs: &str) -> Compared {
    Compared {
        what,
        inputs: inputs.to_owned(),
        read_as: format!(
            "text: {}, {}",
            counted(result.numbers as u64, "number", "numbers"),
            counted(result.words as u64, "word", "words")
        ),
        count: result.numbers,
        different: result.different,
        left_out: result.excluded_count,
        tolerance,
        relative: result.relative.is_finite().then_some(result.relative),
        normalized: None,
        absolute: None,
        differences: result.differences.iter().map(difference).collect(),
    }
}

fn of_bytes(result: &BytesComparison, what: String, inputs: &str) -> Compared {
    let array = &result.array;
    let finite = |value: f64| value.is_finite().then_some(value);
    Compared {
        what,
        inputs: inputs.to_owned(),
        read_as: read_as(result),
        count: array.count,
        different: array.outside + usize::from(result.size != result.candidate_size),
        left_out: array.unsteady,
        tolerance: result.tolerance,
        relative: finite(array.relative),
        normalized: finite(array.normalized),
        absolute: finite(array.absolute),
        differences: if result.is_same() { Vec::new() } else { vec![wrong_bytes(result)] },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_of_a_text_is_counted_as_people_do() {
        for (text, read_as) in
            [("n 5", "text: 1 number, 1 word"), ("sums of both 1.5 2.5", "text: 2 numbers, 3 words")]
        {
            let compared =
                of_text(compare_text(text, text, text, 1e-4), "output".to_owned(), 1e-4, "its own");
            assert_eq!(compared.read_as, read_as);
        }
    }
}
