//! Collects what a verdict says: accusations in the candidate's lines, what was compared, what was left out.

mod failures;

use std::path::Path;
use std::sync::Arc;

use stitch_findings::{
    Answer, Code, Compared, Evidence, Finding, Inputs, LeftOut, Making, Parameters, Span, Stage, Tried,
    Verdict, Versions,
};

use super::blame::Source;
use super::called::call_of;
use super::simulation::Simulated;
use crate::torch::builds::Seen;
use crate::torch::host::{Loaded, Made, Place};
use crate::torch::judge::compare::Part;
use crate::torch::judge::distributions::Distribution;
use crate::torch::request::Request;
use crate::torch::simulated::Simulator;
use crate::torch::subject::{Callable, Subject};
use crate::torch::values::Values;

/// Values compared that are listed each; a module may have hundreds of parameters.
const MOST_COMPARED: usize = 48;
/// Differences that a message names.
const MOST_NAMED: usize = 3;
/// Characters of what Python said that a message repeats.
const MOST_SAID: usize = 400;

const WRONG_ADVICE: &str =
    "If the candidate only rounds otherwise, say how far it may be off: `--tolerance 1e-3`.";

/// What a verdict will say.
pub(super) struct Report<'a> {
    pub verdict: Verdict,
    request: &'a Request,
    pub(super) source: Source,
    /// The candidate's definition.
    pub(super) span: Span,
    name: String,
    tried: Vec<Tried>,
    hidden: usize,
    /// Runs the candidate's extensions, and what of it was taken in.
    pub(super) simulated: Option<Simulated>,
}

impl<'a> Report<'a> {
    /// A report that nothing speaks against yet.
    pub fn new(request: &'a Request, simulator: Option<Arc<Simulator>>) -> Self {
        let source = Source::read(&request.candidate.path);
        let name = name_of(&request.candidate);
        let verdict = Verdict {
            reference: request.reference_name.clone(),
            candidate: request.candidate_name.clone(),
            device: request.device.clone(),
            answer: Answer::Correct,
            inputs: Inputs::Drawn,
            compared: Vec::new(),
            left_out: Vec::new(),
            findings: Vec::new(),
            not_checked: Vec::new(),
            notes: Vec::new(),
            evidence: Evidence {
                tolerance_name: Some(request.tolerance_name.clone()),
                sandbox: Some(request.sandbox.clone()),
                seeds: Some(0),
                ..Evidence::default()
            },
        };
        let span = source.definition(&name);
        let simulated = simulator.map(Simulated::new);
        Self { verdict, request, source, span, name, tried: Vec::new(), hidden: 0, simulated }
    }

    /// Whether nothing speaks against the candidate so far.
    pub fn is_good(&self) -> bool {
        self.verdict.answer == Answer::Correct
    }

    /// Adds a finding at the candidate's definition; the first one decides the answer.
    pub fn accuse(&mut self, code: Code, answer: Answer, message: String, advice: &str) {
        self.accuse_at(self.span, code, answer, message, advice);
    }

    pub(super) fn accuse_at(
        &mut self,
        span: Span,
        code: Code,
        answer: Answer,
        message: String,
        advice: &str,
    ) {
        let mut finding = Finding::new(code, span, message).about(self.name.clone());
        if !advice.is_empty() {
            finding = finding.advise(advice);
        }
        self.verdict.findings.push(finding);
        if self.verdict.answer == Answer::Correct {
            self.verdict.answer = answer;
        }
    }

    /// What a case is called with.
    pub fn called_with(&mut self, inputs: &Values, state: Option<&Values>) {
        let call = call_of(inputs, state, &self.request.kind_of_device);
        self.verdict.evidence.calls.extend(call);
    }

    /// The name of the candidate's file.
    pub(super) fn candidate_file(&self) -> String {
        file_name(&self.request.candidate.path)
    }

    /// Something that both do and that is not honest.
    pub fn dishonest(&mut self, message: String) {
        let advice = "Do all work inside of the call, and give back tensors of torch's own type.";
        self.accuse(Code::VERIFY_DISHONEST, Answer::Dishonest, message, advice);
    }

    /// Takes in compared values under these inputs; accuses the candidate of the wrong ones.
    pub fn compared(&mut self, parts: &[Part], inputs: &str) {
        let wrong: Vec<&Part> = parts.iter().filter(|part| !part.is_same()).collect();
        if !wrong.is_empty() {
            let named: Vec<String> = wrong.iter().take(MOST_NAMED).map(|part| wrong_part(part)).collect();
            let more = wrong.len().saturating_sub(named.len());
            let more = if more > 0 { format!("; and {more} more values are wrong") } else { String::new() };
            let message = format!("{}{more} (inputs {inputs}).", named.join("; "));
            self.accuse(Code::VERIFY_WRONG_RESULT, Answer::Wrong, message, WRONG_ADVICE);
        }
        for part in parts {
            if part.tolerance > 0.0
                && let Some(dtype) = part.kind.split(' ').next()
            {
                self.verdict.evidence.tolerances.insert(dtype.to_owned(), part.tolerance);
            }
            self.take_in(part, inputs);
        }
    }

    fn take_in(&mut self, part: &Part, inputs: &str) {
        let listed = self.verdict.compared.len();
        let found =
            self.verdict.compared.iter_mut().find(|known| known.what == part.place && known.inputs == inputs);
        let one = of_part(part, inputs);
        match found {
            Some(known) => {
                known.count += one.count;
                known.different += one.different;
                known.left_out += one.left_out;
                known.relative = known.relative.zip(one.relative).map(|(a, b)| a.max(b));
                known.normalized = known.normalized.zip(one.normalized).map(|(a, b)| a.max(b));
                known.absolute = known.absolute.zip(one.absolute).map(|(a, b)| a.max(b));
                known.differences.extend(one.differences);
                known.differences.truncate(MOST_NAMED);
            }
            None if listed < MOST_COMPARED || one.different > 0 => self.verdict.compared.push(one),
            None => self.hidden += 1,
        }
    }

    /// Notes something that was not compared, once.
    pub fn leave_out(&mut self, place: &str, text: String, reason: &str) {
        let known = |left_out: &LeftOut| left_out.place == place && left_out.reason == reason;
        if !self.verdict.left_out.iter().any(known) {
            self.verdict.left_out.push(LeftOut { place: place.to_owned(), text, reason: reason.to_owned() });
        }
    }

    /// A distribution counted in one more round, or it did not for this reason.
    pub fn tried(&mut self, distribution: Distribution, not_tried: Option<String>) {
        let what = distribution.words();
        let one = match self.tried.iter_mut().position(|tried| tried.what == what) {
            Some(at) => &mut self.tried[at],
            None => {
                self.tried.push(Tried { what: what.to_owned(), ..Tried::default() });
                let last = self.tried.len() - 1;
                &mut self.tried[last]
            }
        };
        match not_tried {
            Some(reason) => one.not_tried = Some(reason),
            None => one.rounds += 1,
        }
    }

    /// One more secret seed was drawn from.
    pub fn one_more_seed(&mut self) {
        let seeds = self.verdict.evidence.seeds.get_or_insert(0);
        *seeds += 1;
    }

    /// Seeds that were compared under so far.
    pub fn seeds(&self) -> u32 {
        self.verdict.evidence.seeds.unwrap_or(0)
    }

    /// Inputs were drawn there.
    pub fn drawn(&mut self, made: &Made) {
        self.made(made, |making| &mut making.inputs);
    }

    /// The first word about where something was made; a later reason takes its place.
    fn made(&mut self, made: &Made, part: impl Fn(&mut Making) -> &mut Option<String>) {
        if self.request.place == Place::Cpu || made.on.is_empty() {
            return;
        }
        let part = part(self.verdict.evidence.making.get_or_insert_default());
        if let Some(reason) = &made.reason {
            *part = Some(format!("cpu, since {}", cut(reason)));
        } else {
            part.get_or_insert_with(|| cut(&made.on));
        }
    }

    /// Something that nobody looked at, once.
    pub fn not_checked(&mut self, sentence: impl Into<String>) {
        let sentence = sentence.into();
        if !self.verdict.not_checked.contains(&sentence) {
            self.verdict.not_checked.push(sentence);
        }
    }

    /// Something a person should know, once.
    pub fn note(&mut self, sentence: impl Into<String>) {
        let sentence = sentence.into();
        if !self.verdict.notes.contains(&sentence) {
            self.verdict.notes.push(sentence);
        }
    }

    /// A stage took so long; more of the same stage is added to it.
    pub fn stage(&mut self, stage: &str, seconds: f64) {
        let seconds = (seconds * 1e3).round() / 1e3;
        match self.verdict.evidence.stages.iter_mut().find(|known| known.stage == stage) {
            Some(known) => known.seconds += seconds,
            None => self.verdict.evidence.stages.push(Stage { stage: stage.to_owned(), seconds }),
        }
    }

    /// What the candidate's process loaded, and what runs it.
    pub fn loaded(&mut self, candidate: &Loaded) {
        let seconds = candidate.seconds;
        for (stage, taken) in
            [("import", seconds.import), ("build", seconds.build), ("construct", seconds.construct)]
        {
            // What a process says; a number that is none would be no JSON.
            if taken.is_finite() && taken > 0.0 {
                self.stage(stage, taken);
            }
        }
        for change in &candidate.changed {
            self.note(format!("Importing the candidate changed a setting of torch: {}.", cut(change)));
        }
        if let Some(made) = &candidate.made {
            self.made(made, |making| &mut making.candidate);
        }
        self.verdict.evidence.training = candidate.training;
        match candidate.training {
            Some(true) => self.note("The modules are in training mode."),
            Some(false) => self.note("The modules are in evaluation mode."),
            None => {}
        }
    }

    /// Which of the candidate's extensions were built as torch builds them, and why.
    pub fn builds(&mut self, seen: &Seen) {
        for (what, reason) in &seen.ordinary {
            self.note(format!(
                "{what} was built with all of torch's headers, which takes longer: {}.",
                cut(reason)
            ));
        }
    }

    /// What runs both, as the reference's process says.
    pub fn runs_on(&mut self, reference: &Loaded) {
        let known = &mut self.verdict.evidence.settings;
        known.extend(
            reference.settings.iter().filter(|one| !known.contains(one)).cloned().collect::<Vec<_>>(),
        );
        if let Some(made) = &reference.made {
            self.made(made, |making| &mut making.reference);
        }
        let versions = &reference.versions;
        self.verdict.evidence.versions = Some(Versions {
            python: versions.python.clone(),
            torch: versions.torch.clone(),
            cuda: versions.cuda.clone(),
            driver: self.request.driver.clone(),
            device: (!versions.device.is_empty()).then(|| versions.device.clone()),
        });
    }

    /// Both have this state.
    pub fn parameters(&mut self, state: &Values) {
        let elements = state.tensors.iter().filter_map(|tensor| tensor.count()).sum();
        let entries = match &state.tree {
            crate::torch::values::Tree::Dict { items } => items.len(),
            _ => state.tensors.len(),
        };
        if entries > 0 {
            self.verdict.evidence.parameters = Some(Parameters { entries, elements, randomised_rounds: 0 });
        }
    }

    /// A round ran with other parameters than were constructed.
    pub fn randomised(&mut self) {
        if let Some(parameters) = &mut self.verdict.evidence.parameters {
            parameters.randomised_rounds += 1;
        }
    }

    /// The verdict: a failure where nothing was compared.
    pub fn finish(mut self) -> Verdict {
        self.simulated_at_the_end();
        self.verdict.evidence.distributions = std::mem::take(&mut self.tried);
        if self.hidden > 0 {
            self.note(format!(
                "{} more values were compared and are the same; they are not listed.",
                self.hidden
            ));
        }
        let anything = self.verdict.compared.iter().any(|compared| compared.count > 0);
        if !anything && self.verdict.answer == Answer::Correct {
            let message = match self.verdict.left_out.first() {
                Some(left_out) => format!(
                    "Nothing could be compared: of `{}`, {}, since {}.",
                    left_out.place, left_out.text, left_out.reason
                ),
                None => "Nothing could be compared: the reference's outputs have no elements.".to_owned(),
            };
            let advice = "Give inputs for which the reference has an answer that it repeats (`--inputs`), or leave out `--train`.";
            self.accuse(Code::VERIFY_NOTHING_COMPARED, Answer::NothingCompared, message, advice);
        }
        let degenerate = self.verdict.evidence.degenerate.clone();
        for one in degenerate {
            let message = format!(
                "In every round, {} would have passed for `{}`, so this verdict tells little of it.",
                one.by, one.output
            );
            self.verdict.findings.push(
                Finding::new(Code::VERIFY_DEGENERATE_TASK, self.span, message).about(self.name.clone()),
            );
        }
        self.verdict
    }
}

/// What a subject is called in its file.
pub(super) fn name_of(subject: &Subject) -> String {
    match &subject.callable {
        Callable::Module { name, .. } | Callable::Function { name } => name.clone(),
        Callable::Statements { lines, .. } => format!("lines {} to {}", lines[0], lines[1]),
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// A text that a process chose, on one line and not too long.
pub(super) fn cut(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(MOST_SAID) {
        Some((at, _)) => format!("{} …", &text[..at]),
        None => text,
    }
}

/// The first line of what was said.
pub(super) fn first_line(text: &str) -> String {
    cut(text.lines().find(|line| !line.trim().is_empty()).unwrap_or("(no message)"))
}

fn last_line(text: &str) -> Option<String> {
    text.lines().rev().find(|line| !line.trim().is_empty()).map(cut)
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

/// What is wrong with a value, in words.
fn wrong_part(part: &Part) -> String {
    if let Some(mismatch) = &part.mismatch {
        return format!("`{}` {mismatch}", part.place);
    }
    let result = &part.result;
    let worst = part.worst.as_deref().unwrap_or("");
    if part.kind.starts_with("a ") || part.kind.starts_with("an ") || part.kind == "None" {
        return format!("`{}` is wrong: {worst}", part.place);
    }
    let mut text = format!(
        "`{}` ({}) is wrong: {} of {} elements differ, worst at {worst}",
        part.place, part.kind, result.outside, result.count
    );
    if part.tolerance > 0.0 {
        text.push_str(&format!(
            "; relative error up to {}, normalised error {}, absolute error up to {:.3e}; tolerance {}",
            percent(result.relative),
            percent(result.normalized),
            result.absolute,
            percent(part.tolerance)
        ));
    }
    text
}

fn of_part(part: &Part, inputs: &str) -> Compared {
    let result = &part.result;
    let finite = |value: f64| value.is_finite().then_some(value);
    Compared {
        what: part.place.clone(),
        inputs: inputs.to_owned(),
        read_as: part.kind.clone(),
        count: result.count,
        different: result.outside + usize::from(part.mismatch.is_some()),
        left_out: result.unsteady,
        tolerance: part.tolerance,
        relative: finite(result.relative),
        normalized: finite(result.normalized),
        absolute: finite(result.absolute),
        differences: if part.is_same() { Vec::new() } else { vec![wrong_part(part)] },
    }
}
