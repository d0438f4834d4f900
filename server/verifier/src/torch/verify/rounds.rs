//! The rounds of a verification: fresh inputs, the candidate first, then the reference, then what they say of each other.

use stitch_session::CancellationToken;

use super::gpu::Gpu;
use super::pair::{CONSTRUCTED, Pair, is_empty};
use super::report::{Report, cut};
use super::secrets::Secrets;
use crate::torch::host::{Called, Calling, Child, ChildError, Drawn, Filled, Place, lay_out};
use crate::torch::judge::accuse::{self, Threads};
use crate::torch::judge::compare::{Part, compare, scale_of};
use crate::torch::judge::degenerate::Detector;
use crate::torch::judge::distributions::{Distribution, Stream, change, fill, randomise};
use crate::torch::judge::elements::{all_finite, shape};
use crate::torch::judge::{View, oracle};
use crate::torch::request::{Progress, Request, TorchError};
use crate::torch::values::{Tensor, Tree, Values};

/// A candidate's error may be so many times the reference's own, both against 64 bits, to count as rounding like it.
const AS_EXACT: f64 = 4.0;

/// One round to come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Planned {
    /// The case, by its place in the reference's list.
    pub case: usize,
    /// How its inputs are distributed.
    pub distribution: Distribution,
    /// Whether parameters are moved off what they were constructed as.
    pub randomised: bool,
    /// Whether all inputs are looked at after the candidate's call.
    pub look: bool,
}

/// The rounds of some cases. The first case has three of the reference's own inputs and one of each other distribution; a further one has two of its own and
/// a scaled one.
pub(super) fn plan(cases: &[usize], secrets: &mut Secrets) -> Vec<Planned> {
    let mut rounds = Vec::new();
    for (place, case) in cases.iter().enumerate() {
        let scaled = Distribution::Scaled(if secrets.draw() & 1 == 0 { 8.0 } else { 0.01 });
        let offset = Distribution::Offset(4.0 + secrets.uniform() * 2.0);
        let distributions: &[(Distribution, bool)] = if place == 0 {
            &[
                (Distribution::Own, false),
                (Distribution::Own, false),
                (Distribution::Own, true),
                (scaled, true),
                (offset, true),
                (Distribution::Edges, true),
            ]
        } else {
            &[(Distribution::Own, false), (Distribution::Own, true), (scaled, true)]
        };
        let owns = distributions.iter().filter(|one| one.0 == Distribution::Own).count() as u64;
        let looked_at = usize::try_from(secrets.draw() % owns.max(1)).unwrap_or(0);
        rounds.extend(distributions.iter().enumerate().map(|(place, (distribution, randomised))| Planned {
            case: *case,
            distribution: *distribution,
            randomised: *randomised,
            look: place == looked_at,
        }));
    }
    rounds
}

/// How a round ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// The next one can begin.
    Next,
    /// A process is gone though the candidate is not to blame; both have to be loaded anew.
    Reopen,
    /// The candidate failed.
    Stop,
}

/// What rounds of one pair have in common.
pub(super) struct Rounds<'a, 'r> {
    pub request: &'a Request,
    pub report: &'a mut Report<'r>,
    pub secrets: &'a mut Secrets,
    pub progress: &'a Progress<'a>,
    pub cancel: &'a CancellationToken,
    /// What passes without work, of the current case.
    pub detector: Detector,
    /// The last answer for the current case's own inputs: the case and the outputs' types and shapes.
    pub last: Option<(usize, Values)>,
    /// The size of the outputs' elements in that answer, by which probed ones are compared.
    pub scales: Vec<f64>,
    /// Threads of each side around each call.
    pub threads: [Vec<Threads>; 2],
    /// Whether the case's own outputs are all finite.
    pub own_finite: bool,
    /// Outputs that are random, which timed calls are not compared by.
    pub random: bool,
    /// Who may use the device when.
    pub gpu: &'a Gpu,
    /// Inputs of a case that were drawn while the candidate computed.
    pub ahead: Option<Ahead>,
}

/// Inputs that were drawn ahead: the case, and what came of it.
pub(super) type Ahead = (usize, Result<Drawn, ChildError>);

/// What was drawn for a round.
struct Given {
    inputs: Filled,
    /// Whether the reference's process has the inputs as they are.
    unchanged: bool,
    held: crate::torch::host::Held,
    state: Option<Filled>,
    number: u64,
    seed: u64,
    grads: Option<Filled>,
    label: String,
}

impl Rounds<'_, '_> {
    /// One round. `next` is the case of the one after it, if its inputs are to be drawn meanwhile.
    pub async fn round(
        &mut self,
        pair: &mut Pair,
        mut planned: Planned,
        next: Option<usize>,
    ) -> Result<Flow, TorchError> {
        if self.cancel.is_cancelled() {
            return Err(TorchError::Cancelled);
        }
        let shared = self.gpu.share().await?;
        let given = self.draw(pair, &mut planned).await?;
        let own = planned.distribution == Distribution::Own;
        // In one secret round in each case all inputs are looked at afterwards, whatever the candidate's process says of them.
        let calling =
            Calling { seed: given.seed, grads: given.grads.clone(), poison: true, ..Calling::default() };
        let of_candidate = Calling { look: planned.look, ..calling.clone() };
        let of_reference = Calling { held: given.held, again: given.unchanged, keep: true, ..calling };
        // Before any expected value is anywhere.
        let got = match pair.bring_candidate(given.number, given.state.as_ref()).await {
            Ok(()) => {
                let next = next.filter(|_| !Child::is_large(&given.inputs));
                let seed = self.secrets.draw();
                let ahead = async {
                    match next {
                        Some(case) => Some((case, pair.reference.draw_held(seed, case).await)),
                        None => None,
                    }
                };
                let (got, ahead) = tokio::join!(pair.candidate.call(&given.inputs, &of_candidate), ahead);
                self.ahead = ahead;
                got
            }
            Err(error) => Err(error),
        };
        if let Some((_, Err(error))) = self.ahead.take_if(|_| pair.reference.is_gone()) {
            return Err(TorchError::of_reference(" to draw its inputs", error));
        }
        if let Ok(got) = &got {
            pair.candidate_changed(&got.state_after);
        }
        if got.is_ok() && self.report.simulated_call() {
            return Ok(Flow::Stop);
        }
        let expected = self.reference(pair, &given, &of_reference).await;
        let when = format!(" under the inputs {}", given.label);
        match (got, expected) {
            (Err(ChildError::Cancelled), _) | (_, Err(ChildError::Cancelled)) => Err(TorchError::Cancelled),
            (_, Err(error)) if own => Err(TorchError::of_reference(" for its own inputs", error)),
            (_, Err(error)) => {
                let reason = format!("the reference itself fails: {}", cut(&error.to_string()));
                self.report.tried(planned.distribution, Some(reason));
                let gone = pair.candidate.is_gone() || pair.reference.is_gone();
                Ok(if gone { Flow::Reopen } else { Flow::Next })
            }
            (Err(error), Ok(_)) => {
                self.report.failed(error, &when)?;
                Ok(Flow::Stop)
            }
            (Ok(got), Ok(expected)) => {
                let seed = of_reference.seed ^ 0x5555_5555;
                let repeat = Calling { seed, again: true, keep: false, repeats: true, ..of_reference };
                let other = self.reference(pair, &given, &repeat).await;
                drop(shared);
                let calling = Calling { seed: given.seed, repeats: false, ..repeat };
                let flow = self.judge(pair, planned, &given, &calling, (expected, got, other)).await?;
                if flow == Flow::Next {
                    self.give_back(pair).await?;
                }
                Ok(flow)
            }
        }
    }

    /// Gives back what is too large to keep.
    async fn give_back(&mut self, pair: &mut Pair) -> Result<(), TorchError> {
        let reference = pair.reference.give_back().await;
        reference.map_err(|error| TorchError::of_reference(" to give memory back", error))?;
        match pair.candidate.give_back().await {
            Ok(()) => Ok(()),
            Err(error) => self.report.failed(error, " between two calls"),
        }
    }

    /// Draws inputs and state. Where a distribution has nothing to change, that is said, and the round becomes one of the reference's own inputs.
    async fn draw(&mut self, pair: &mut Pair, planned: &mut Planned) -> Result<Given, TorchError> {
        let ahead = self.ahead.take().filter(|ahead| ahead.0 == planned.case);
        let drawn = match ahead {
            Some((_, drawn)) => drawn,
            None => pair.reference.draw_held(self.secrets.draw(), planned.case).await,
        };
        let drawn = drawn.map_err(|error| TorchError::of_reference(" to draw its inputs", error))?;
        self.report.drawn(&drawn.made);
        let (mut inputs, held) = (drawn.inputs, drawn.held);
        let any =
            change(&inputs.values.tensors, &mut inputs.bytes, planned.distribution, self.secrets.draw());
        if !any && planned.distribution != Distribution::Own {
            let reason = "no input has floating-point numbers".to_owned();
            self.report.tried(planned.distribution, Some(reason));
            planned.distribution = Distribution::Own;
        }
        let unchanged = planned.distribution == Distribution::Own;
        let (mut state, mut number) = (pair.state.clone(), CONSTRUCTED);
        let mut is_randomised = false;
        if let Some(state) = state.as_mut().filter(|_| planned.randomised) {
            is_randomised = randomise(&state.values.tensors, &mut state.bytes, self.secrets.draw());
            if is_randomised {
                number = self.secrets.draw() | 1;
                self.report.randomised();
            }
        }
        let grads = self.last.as_ref().filter(|last| self.request.gradients && last.0 == planned.case);
        let grads = grads.and_then(|last| gradients(&last.1, self.secrets.draw()));
        let mut label = planned.distribution.words().to_owned();
        if self.request.reference.cases.len() > 1 {
            label = format!("of case {}, {label}", planned.case + 1);
        }
        if is_randomised {
            label.push_str(", other parameters");
        }
        let seed = self.secrets.draw() >> 1;
        Ok(Given { inputs, unchanged, held, state, number, seed, grads, label })
    }

    async fn reference(
        &mut self,
        pair: &mut Pair,
        drawn: &Given,
        calling: &Calling,
    ) -> Result<Called, ChildError> {
        pair.bring_reference(drawn.number, drawn.state.as_ref()).await?;
        let called = pair.reference.call(&drawn.inputs, calling).await?;
        pair.reference_changed(&called.state_after);
        Ok(called)
    }

    async fn judge(
        &mut self,
        pair: &mut Pair,
        planned: Planned,
        drawn: &Given,
        calling: &Calling,
        (expected, got, other): (Called, Called, Result<Called, ChildError>),
    ) -> Result<Flow, TorchError> {
        let own = planned.distribution == Distribution::Own;
        let finite = all_finite(view(&expected.outputs));
        if own {
            self.own_finite = finite;
        } else if !finite && self.own_finite {
            let reason = "the reference's own answer is not finite".to_owned();
            self.report.tried(planned.distribution, Some(reason));
            return Ok(Flow::Next);
        }
        let of_reference = |error| TorchError::of_reference(" when it is called again", error);
        let mut other = other.map_err(of_reference)?;
        if own && self.last.as_ref().is_none_or(|last| last.0 != planned.case) {
            self.detector = Detector::default();
            self.report.called_with(&drawn.inputs.values, pair.state.as_ref().map(|state| &state.values));
            self.oracle(pair, drawn, calling, (&expected, &got)).await?;
        }
        self.detector.round(view(&expected.outputs), view(&drawn.inputs), &self.request.rule);
        let rule = &self.request.rule;
        let is_steady = other.repeated
            || compare("output", view(&expected.outputs), None, view(&other.outputs), rule)
                .iter()
                .all(Part::is_same);
        if is_steady {
            // Of no more use.
            other.outputs = Filled::empty();
        }
        let repeat = if is_steady {
            None
        } else {
            let _shared = self.gpu.share().await?;
            Some(self.reference(pair, drawn, calling).await.map_err(of_reference)?)
        };
        if !own && self.is_as_exact(pair, drawn, calling, (&expected, &got)).await? {
            let reason = "the reference's own rounding error is larger than the tolerance there, and the candidate's no larger than that";
            self.report.tried(planned.distribution, Some(reason.to_owned()));
            return Ok(Flow::Next);
        }
        self.report.tried(planned.distribution, None);
        self.report.one_more_seed();
        self.outputs(drawn, (&expected, &got), &other, repeat.as_ref());
        self.after(drawn, (&expected, &got), repeat.is_some());
        self.seen((&expected, &got));
        if own {
            let count = expected.outputs.values.tensors.len();
            self.scales = (0..count).map(|index| scale_of(view(&expected.outputs), index)).collect();
            self.last = Some((planned.case, expected.outputs.values));
        }
        Ok(if self.report.is_good() { Flow::Next } else { Flow::Stop })
    }

    /// Compares outputs. Where the reference itself gives another answer under another seed of torch's, what is random is left out as a whole, unless the
    /// candidate draws the same numbers; what is merely unsteady is left out element by element.
    fn outputs(
        &mut self,
        drawn: &Given,
        (expected, got): (&Called, &Called),
        other: &Called,
        repeat: Option<&Called>,
    ) {
        let rule = &self.request.rule;
        let wanted = view(&expected.outputs);
        let mut parts = compare("output", wanted, None, view(&got.outputs), rule);
        if let Some(repeat) = repeat {
            let same_seed = compare("output", wanted, None, view(&repeat.outputs), rule);
            let other_seed = compare("output", wanted, None, view(&other.outputs), rule);
            let without_unsteady =
                compare("output", wanted, Some(view(&other.outputs)), view(&got.outputs), rule);
            let by_place = |list: &[Part], place: &str| list.iter().find(|part| part.place == place).cloned();
            for part in &mut parts {
                let is_random = by_place(&other_seed, &part.place).is_none_or(|other| !other.is_same());
                let is_unsteady = by_place(&same_seed, &part.place).is_none_or(|same| !same.is_same());
                if is_unsteady && let Some(rest) = by_place(&without_unsteady, &part.place) {
                    let text = format!("{} elements", rest.result.unsteady);
                    self.report.leave_out(&part.place, text, "the reference does not repeat them");
                    *part = rest;
                } else if is_random && part.is_same() {
                    self.report.note(format!(
                        "`{}` is random; the candidate draws the same numbers from torch as the reference.",
                        part.place
                    ));
                } else if is_random && part.mismatch.is_none() && part.result.relative.is_finite() {
                    self.random = true;
                    part.result.unsteady += part.result.count;
                    part.result.count = 0;
                    part.result.outside = 0;
                    let text = format!("all {} elements", part.result.unsteady);
                    self.report.leave_out(
                        &part.place,
                        text,
                        "it depends on torch's random numbers, and the candidate draws others",
                    );
                }
            }
        }
        self.report.compared(&parts, &drawn.label);
    }

    /// Compares what both left behind: inputs, state, gradients.
    fn after(&mut self, drawn: &Given, (expected, got): (&Called, &Called), is_random: bool) {
        let rule = &self.request.rule;
        // What neither has changed, nobody need look at.
        if expected.inputs_after.is_some() || got.inputs_after.is_some() {
            self.inputs_after(drawn, (expected, got), is_random);
        }
        if is_random || !self.report.is_good() {
            return;
        }
        if !is_empty(&expected.state_after) || !is_empty(&got.state_after) {
            self.state_after(drawn, (&expected.state_after, &got.state_after));
        }
        if let Some(wanted) = &expected.grads {
            match &got.grads {
                Some(found) => {
                    let parts = compare("gradient", view(wanted), None, view(found), rule);
                    self.report.compared(&parts, &drawn.label);
                }
                None => self.report.not_checked("The candidate gave no gradients."),
            }
        }
    }

    fn inputs_after(&mut self, drawn: &Given, (expected, got): (&Called, &Called), is_random: bool) {
        let before = view(&drawn.inputs);
        let exact = crate::torch::judge::Rule { tolerance: Some(0.0) };
        let of_expected = expected.inputs_after.as_ref().map_or(before, view);
        let of_got = got.inputs_after.as_ref().map_or(before, view);
        let wanted = compare("input", before, None, of_expected, &exact);
        for (wanted, got) in wanted.iter().zip(compare("input", before, None, of_got, &exact)) {
            if wanted.is_same() && !got.is_same() {
                let message = format!(
                    "The candidate changes `{}`, which the reference leaves as it is (inputs {}).",
                    got.place, drawn.label
                );
                let advice = "Copy an input before changing it.";
                self.report.accuse(
                    stitch_findings::Code::VERIFY_WRONG_RESULT,
                    stitch_findings::Answer::Wrong,
                    message,
                    advice,
                );
                return;
            }
        }
        if is_random || wanted.iter().all(Part::is_same) {
            return;
        }
        let mut parts = compare("input after the call", of_expected, None, of_got, &self.request.rule);
        let changed = parts_places(&wanted);
        parts.retain(|part| {
            let is_changed =
                |(one, place): (&Part, &String)| !one.is_same() && part.place.ends_with(place.as_str());
            wanted.iter().zip(&changed).any(is_changed)
        });
        self.report.compared(&parts, &drawn.label);
    }

    fn state_after(&mut self, drawn: &Given, (expected, got): (&Filled, &Filled)) {
        let names = |filled: &Filled| match &filled.values.tree {
            Tree::Dict { items } => items.iter().map(|item| item.0.clone()).collect(),
            _ => Vec::new(),
        };
        let (wanted, found): (Vec<String>, Vec<String>) = (names(expected), names(got));
        let missing: Vec<_> = wanted.iter().filter(|name| !found.contains(name)).collect();
        let extra: Vec<_> = found.iter().filter(|name| !wanted.contains(name)).collect();
        let message = match (missing.first(), extra.first()) {
            (Some(name), _) => format!(
                "The reference's call changes `{name}`, and the candidate's does not (inputs {}).",
                drawn.label
            ),
            (None, Some(name)) => format!(
                "The candidate's call changes `{name}`, which the reference's leaves as it is (inputs {}).",
                drawn.label
            ),
            (None, None) => {
                let parts =
                    compare("state after the call", view(expected), None, view(got), &self.request.rule);
                self.report.compared(&parts, &drawn.label);
                return;
            }
        };
        let advice = "Update the buffers that the reference updates, and no others.";
        self.report.accuse(
            stitch_findings::Code::VERIFY_WRONG_RESULT,
            stitch_findings::Answer::Wrong,
            message,
            advice,
        );
    }

    /// Looks at what else was seen of the calls.
    fn seen(&mut self, (expected, got): (&Called, &Called)) {
        const PLAIN: [&str; 4] = ["torch.Tensor", "Tensor", "torch.nn.parameter.Parameter", "Parameter"];
        for (index, output) in got.seen.outputs.iter().enumerate() {
            let own = expected.seen.outputs.get(index).map(|output| output.kind.as_str());
            if !PLAIN.contains(&output.kind.as_str()) && own != Some(output.kind.as_str()) {
                self.report.dishonest(format!(
                    "The candidate returned a `{}` in the place of a plain tensor, so what it computes may come later than it is asked for.",
                    cut(&output.kind)
                ));
                return;
            }
            if let Some(input) = output.shares_input
                && expected.seen.outputs.get(index).is_none_or(|own| own.shares_input.is_none())
            {
                self.report.note(format!("Output {index} of the candidate shares the memory of input {input}; the reference's does not."));
            }
        }
        for (side, called) in [expected, got].into_iter().enumerate() {
            let [before, after] = called.seen.threads;
            self.threads[side].push(Threads { before, after });
        }
        if let Some(words) = accuse::new_threads(&self.threads[1], &self.threads[0]) {
            self.report.dishonest(format!("Of the candidate, {words}."));
        }
        let more = |called: &Called| called.seen.processes[1] > called.seen.processes[0];
        if more(got) && !more(expected) {
            self.report.dishonest("The candidate's call left a process of its own behind.".to_owned());
        }
        for change in &got.seen.changed {
            self.report.note(format!("The candidate's call changed a setting of torch: {}.", cut(change)));
        }
        if let (Some(reference), Some(candidate)) = (expected.seen.peak_bytes, got.seen.peak_bytes) {
            let memory = self.report.verdict.evidence.memory.get_or_insert_default();
            memory.reference_bytes = memory.reference_bytes.max(reference);
            memory.candidate_bytes = memory.candidate_bytes.max(candidate);
        }
    }

    /// Whether a candidate that differs from the reference under inputs that are not the reference's own is as near to the right answer, which
    /// is computed in 64 bits: such inputs may be so large that 32 bits don't know it (a softmax of them, say).
    async fn is_as_exact(
        &mut self,
        pair: &mut Pair,
        drawn: &Given,
        calling: &Calling,
        (expected, got): (&Called, &Called),
    ) -> Result<bool, TorchError> {
        let differences =
            compare("output", view(&expected.outputs), None, view(&got.outputs), &self.request.rule);
        if differences.iter().all(Part::is_same) || differences.iter().any(|part| part.mismatch.is_some()) {
            return Ok(false);
        }
        // Where that can't be computed, a difference is one.
        let Ok(exact) = self.in_double(pair, drawn, calling).await? else { return Ok(false) };
        let ratio = oracle::ratio(view(&exact), view(&expected.outputs), view(&got.outputs));
        Ok(ratio.is_some_and(|ratio| ratio.max <= AS_EXACT && ratio.rms <= AS_EXACT))
    }

    /// What the reference gives in 64 bits: on the device, or where it does not fit there, on the processor, for which nobody has to wait.
    async fn in_double(
        &mut self,
        pair: &mut Pair,
        drawn: &Given,
        calling: &Calling,
    ) -> Result<Result<Filled, ChildError>, TorchError> {
        (self.progress)("computing in float64", None);
        let shared = self.gpu.share().await?;
        let brought = pair.bring_reference(drawn.number, drawn.state.as_ref()).await;
        brought.map_err(|error| TorchError::of_reference(" to take its state", error))?;
        if self.request.place == Place::Cpu {
            return Ok(pair.reference.oracle_held(&drawn.inputs, calling, None).await);
        }
        let on_device = pair.reference.oracle_held(&drawn.inputs, calling, Some(true)).await;
        drop(shared);
        match on_device {
            Err(ChildError::OutOfMemory { .. }) => {
                Ok(pair.reference.oracle_held(&drawn.inputs, calling, Some(false)).await)
            }
            other => Ok(other),
        }
    }

    /// Compares both with the same computation in 64 bits, for the first case.
    async fn oracle(
        &mut self,
        pair: &mut Pair,
        drawn: &Given,
        calling: &Calling,
        (expected, got): (&Called, &Called),
    ) -> Result<(), TorchError> {
        if self.report.verdict.evidence.accuracy.is_some() {
            return Ok(());
        }
        match self.in_double(pair, drawn, calling).await? {
            Ok(exact) => {
                let ratio = oracle::ratio(view(&exact), view(&expected.outputs), view(&got.outputs));
                // JSON has no infinities, and a ratio to nothing says nothing.
                let ratio = ratio.filter(|ratio| ratio.max.is_finite() && ratio.candidate.is_finite());
                self.report.verdict.evidence.accuracy = ratio.map(|ratio| stitch_findings::Accuracy {
                    output: ratio.place,
                    max_ratio: ratio.max,
                    rms_ratio: ratio.rms,
                    reference_error: ratio.reference,
                    candidate_error: ratio.candidate,
                });
            }
            Err(ChildError::Cancelled) => return Err(TorchError::Cancelled),
            Err(error) if pair.reference.is_gone() => {
                return Err(TorchError::of_reference(" to compute in float64", error));
            }
            Err(error) => {
                self.report.not_checked(format!(
                    "No oracle in 64 bits: {}.",
                    cut(&error.to_string()).trim_end_matches('.')
                ));
            }
        }
        Ok(())
    }
}

/// Places without what the comparison calls the whole.
fn parts_places(parts: &[Part]) -> Vec<String> {
    parts.iter().map(|part| part.place.trim_start_matches("input").to_owned()).collect()
}

/// Values with their bytes, as the judge takes them.
pub(super) fn view(filled: &Filled) -> View<'_> {
    View { values: &filled.values, bytes: &filled.bytes }
}

/// Numbers from -1 to 1 for each floating-point tensor of some outputs, as the gradients that reach them. `None` where there is none.
fn gradients(outputs: &Values, seed: u64) -> Option<Filled> {
    let floating = outputs.tensors.iter().filter(|tensor| tensor.dtype.is_floating());
    let mut tensors: Vec<Tensor> =
        floating.map(|tensor| Tensor { strides: None, ..tensor.clone() }).collect();
    if tensors.is_empty() {
        return None;
    }
    let bytes = lay_out(&mut tensors)?;
    let mut region = vec![0; usize::try_from(bytes).ok()?];
    fill(&tensors, &mut region, Stream::new(seed));
    let items = (0..tensors.len()).map(|i| Tree::Tensor { i }).collect();
    Filled::new(Values { tree: Tree::Tuple { items }, tensors, bytes }, region).ok()
}

/// Inputs in words: `float32 [32, 1024], int64 [32]`.
pub(super) fn in_words(values: &Values) -> String {
    let one = |tensor: &Tensor| format!("{} {}", tensor.dtype.name(), shape(&tensor.shape));
    values.tensors.iter().map(one).collect::<Vec<_>>().join(", ")
}
