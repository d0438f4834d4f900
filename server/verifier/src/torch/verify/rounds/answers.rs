//! What the two versions answered in a round, held against each other: outputs, inputs and state after the call, gradients, exactness.

use super::super::pair::{Pair, is_empty};
use super::super::report::cut;
use super::{Flow, Given, Planned, Rounds, view};
use crate::torch::host::{Called, Calling, ChildError, Filled, Place};
use crate::torch::judge::accuse::{self, Threads};
use crate::torch::judge::compare::{Part, compare, scale_of};
use crate::torch::judge::degenerate::Detector;
use crate::torch::judge::distributions::Distribution;
use crate::torch::judge::elements::all_finite;
use crate::torch::judge::oracle;
use crate::torch::request::TorchError;
use crate::torch::values::Tree;

/// A candidate's error may be so many times the reference's own, both against 64 bits, to count as rounding like it.
const AS_EXACT: f64 = 4.0;

impl Rounds<'_, '_> {
    pub(super) async fn judge(
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
        if got.seen.overwrites && !expected.seen.overwrites {
            self.report.accuse(
                stitch_findings::Code::VERIFY_WRONG_RESULT,
                stitch_findings::Answer::Wrong,
                "The candidate's call changes what its call before had returned, which may still be in use."
                    .to_owned(),
                "Return new memory from every call, as the reference does.",
            );
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
        let brought = pair.bring_reference(drawn.number).await;
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
