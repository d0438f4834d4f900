//! The rounds of a verification: fresh inputs, the candidate first, then the reference, then what they say of each other.

mod answers;

use stitch_session::CancellationToken;

use super::gpu::Gpu;
use super::pair::{CONSTRUCTED, Pair};
use super::report::{Report, cut};
use super::secrets::Secrets;
use crate::torch::host::{Called, Calling, Child, ChildError, Drawn, Filled, lay_out};
use crate::torch::judge::View;
use crate::torch::judge::accuse::Threads;
use crate::torch::judge::degenerate::Detector;
use crate::torch::judge::distributions::{Distribution, Stream, any_floating, change, fill};
use crate::torch::judge::elements::shape;
use crate::torch::request::{Progress, Request, TorchError};
use crate::torch::values::{Tensor, Tree, Values};

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
    /// Whether the candidate gets its inputs at the addresses of the round before.
    pub in_place: bool,
}

/// Inputs that were drawn ahead: the case, and what came of it.
pub(super) type Ahead = (usize, Result<Drawn, ChildError>);

/// What was drawn for a round.
struct Given {
    inputs: Filled,
    /// Whether the reference's process has the inputs as they are.
    unchanged: bool,
    held: crate::torch::host::Held,
    /// That of the state.
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
        let of_candidate = Calling { look: planned.look, in_place: self.in_place, ..calling.clone() };
        let of_reference = Calling { held: given.held, again: given.unchanged, keep: true, ..calling };
        // Before any expected value is anywhere.
        let got = match pair.bring_candidate(given.number).await {
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
            (Err(ChildError::TooLarge { bytes, what }), Ok(expected)) => {
                let bytes_of = |filled: &Filled| filled.values.bytes;
                let parts = [&expected.outputs, &expected.state_after].map(bytes_of);
                let grads = expected.grads.as_ref().map_or(0, bytes_of);
                self.report.too_large(
                    bytes,
                    &what,
                    parts.into_iter().max().unwrap_or(0).max(grads),
                    &when,
                )?;
                Ok(Flow::Stop)
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
        let is_moved = planned.randomised
            && pair.state.as_ref().is_some_and(|state| any_floating(&state.values.tensors));
        let number = if is_moved { self.secrets.draw() | 1 } else { CONSTRUCTED };
        if is_moved {
            self.report.randomised();
        }
        let grads = self.last.as_ref().filter(|last| self.request.gradients && last.0 == planned.case);
        let grads = grads.and_then(|last| gradients(&last.1, self.secrets.draw()));
        let mut label = planned.distribution.words().to_owned();
        if self.request.reference.cases.len() > 1 {
            label = format!("of case {}, {label}", planned.case + 1);
        }
        if is_moved {
            label.push_str(", other parameters");
        }
        let seed = self.secrets.draw() >> 1;
        Ok(Given { inputs, unchanged, held, number, seed, grads, label })
    }

    async fn reference(
        &mut self,
        pair: &mut Pair,
        drawn: &Given,
        calling: &Calling,
    ) -> Result<Called, ChildError> {
        pair.bring_reference(drawn.number).await?;
        let called = pair.reference.call(&drawn.inputs, calling).await?;
        pair.reference_changed(&called.state_after);
        Ok(called)
    }
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
