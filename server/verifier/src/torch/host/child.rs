//! One process that runs a person's code, and the requests it takes.

mod ask;

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::assist::{Assistant, Helpers};
use super::channel::Channel;
use super::error::ChildError;
use super::filled::Filled;
use super::messages::{Batch, Called, Calling, Drawn, Held, Load, Loaded, Made, Profiling, Timed};
use super::output::Output;
use super::slots::{LARGE, Slot, Slots};
use super::zygote::Link;
use crate::torch::builds::Builds;
use crate::torch::values::Values;
use ask::{Answer, hex};

/// Calls before those that are profiled: the first chooses algorithms and builds what is built late.
const WARM_UP: u32 = 2;

/// A process that was forked for one role in one verification. It ends when the value is dropped.
pub struct Child {
    number: u64,
    channel: Channel,
    output: Output,
    link: Link,
    time_limit: Duration,
    cancel: CancellationToken,
    is_gone: bool,
    helpers: Helpers,
    slots: Slots,
    /// Where inputs were drawn last.
    held: Held,
}

impl Child {
    pub(super) fn new(
        number: u64,
        channel: Channel,
        output: Output,
        link: Link,
        time_limit: Duration,
        cancel: CancellationToken,
    ) -> Self {
        let (slots, held) = (Slots::default(), Held::default());
        Self {
            number,
            channel,
            output,
            link,
            time_limit,
            cancel,
            is_gone: false,
            helpers: Helpers::default(),
            slots,
            held,
        }
    }

    /// Sets how long each of the following requests may take.
    pub fn set_time_limit(&mut self, limit: Duration) {
        self.time_limit = limit;
    }

    /// Has it ask for its CUDA extensions here, from [`Self::load`] on.
    pub fn assist(&mut self, assistant: Arc<dyn Assistant>) {
        self.helpers.assistant = Some(assistant);
    }

    /// Has it ask for the libraries of its extensions here, from [`Self::load`] on.
    pub fn build_with(&mut self, builds: Arc<Builds>) {
        self.helpers.builds = Some(builds);
    }

    /// What it has printed so far, standard output and standard error together; of much, the beginning and the end.
    pub fn printed(&self) -> String {
        self.output.text()
    }

    /// Whether it has ended, so that no request will be answered.
    pub fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// Begins to use the device, which takes a while and needs nothing of a person's code.
    ///
    /// # Errors
    /// There is no device, or how the process ended.
    pub async fn warm_up(&mut self) -> Result<(), ChildError> {
        self.ask("starting torch", json!({ "do": "warm" }), &[]).await.map(|_| ())
    }

    /// Imports the file, finds the subject, constructs it. Once for each child.
    ///
    /// # Errors
    /// What the code raises, or how the process ended.
    pub async fn load(&mut self, load: &Load) -> Result<Loaded, ChildError> {
        let request = json!({
            "do": "load",
            "subject": load.subject,
            "seed": load.seed,
            "dtype": load.dtype,
            "train": load.train,
            "build": load.build,
            "stands_for": load.stands_for,
            "passes_for_gpu": load.passes_for_gpu,
            "settings_script": load.settings_script,
            "assisted": self.helpers.assistant.is_some(),
            "builds": self.helpers.builds.is_some(),
        });
        let answer = self.ask("loading", request, &[]).await?;
        self.heed(answer.all())
    }

    /// Draws the inputs of a case under a seed, on the device where that makes no difference.
    ///
    /// # Errors
    /// What the code raises, or how the process ended.
    pub async fn draw(&mut self, seed: u64, case: usize) -> Result<Filled, ChildError> {
        Ok(self.draw_held(seed, case).await?.inputs)
    }

    /// The same, and says where the process has them for a call.
    ///
    /// # Errors
    /// As for [`Child::draw`].
    pub async fn draw_held(&mut self, seed: u64, case: usize) -> Result<Drawn, ChildError> {
        self.draw_on(seed, case, true).await
    }

    /// The same on the processor: what a module is made with, which is told to another process.
    ///
    /// # Errors
    /// As for [`Child::draw`].
    pub async fn draw_arguments(&mut self, seed: u64, case: usize) -> Result<Filled, ChildError> {
        Ok(self.draw_on(seed, case, false).await?.inputs)
    }

    async fn draw_on(&mut self, seed: u64, case: usize, on_device: bool) -> Result<Drawn, ChildError> {
        let request = json!({ "do": "draw", "seed": seed, "case": case, "on_device": on_device });
        let mut answer = self.ask("drawing inputs", request, &[]).await?;
        let (values, made): (Values, Option<Made>) =
            (self.part(&mut answer, "values")?, self.part(&mut answer, "made")?);
        self.accept("inputs", &values)?;
        self.held = Held(!self.held.0);
        let held = self.held;
        self.check_memory(Slot::of(held), "inputs", values.bytes)?;
        let (inputs, _) = self.fetch_into(Slot::of(held), "inputs", values).await?;
        Ok(Drawn { inputs, made: made.unwrap_or_default(), held })
    }

    /// Gives large regions back, whose contents are needed no more.
    ///
    /// # Errors
    /// How the process ended.
    pub async fn give_back(&mut self) -> Result<(), ChildError> {
        let names = self.slots.forget_large();
        if names.is_empty() || self.is_gone {
            return Ok(());
        }
        self.ask("giving memory back", json!({ "do": "rest", "drop": names }), &[]).await.map(|_| ())
    }

    /// Whether values are so large that they are given back after each round.
    pub fn is_large(values: &Filled) -> bool {
        values.bytes.len() as u64 > LARGE
    }

    /// Parameters and buffers: a dictionary with the keys of the state dictionary. Entries that share memory share a tensor.
    ///
    /// # Errors
    /// How the process ended, or that the state has what can't be passed on.
    pub async fn state(&mut self) -> Result<Filled, ChildError> {
        let mut answer = self.ask("reading the state", json!({ "do": "state" }), &[]).await?;
        let values = self.part(&mut answer, "values")?;
        Ok(self.fetch("state", values).await?.0)
    }

    /// Sets parameters and buffers, in place.
    ///
    /// # Errors
    /// Names that are missing or unexpected, other shapes or types: a `Python` error of the kind `StateError` that lists them.
    pub async fn set_state(&mut self, state: &Filled) -> Result<(), ChildError> {
        self.bring(state, None, true).await
    }

    /// Sets parameters and buffers to the state that was set last, moved by what a seed gives, or as it was. Its bytes pass only if the process has them
    /// no longer; two processes that get the same have the same bits.
    ///
    /// # Errors
    /// As for [`Child::set_state`].
    pub async fn set_state_again(&mut self, state: &Filled, moved: Option<u64>) -> Result<(), ChildError> {
        let is_gone = !self.slots.has(Slot::State);
        self.bring(state, moved, is_gone).await
    }

    async fn bring(&mut self, state: &Filled, moved: Option<u64>, writes: bool) -> Result<(), ChildError> {
        let from = Slot::State.name();
        let request = json!({ "do": "set_state", "values": state.values, "from": from, "moved": moved });
        let written: Vec<_> = writes.then_some((Slot::State, state)).into_iter().collect();
        self.ask("setting the state", request, &written).await.map(|_| ())
    }

    /// Calls the subject.
    ///
    /// # Errors
    /// What the code raises, or how the process ended.
    pub async fn call(&mut self, inputs: &Filled, calling: &Calling) -> Result<Called, ChildError> {
        let slot = Slot::of(calling.held);
        let request = json!({
            "do": "call",
            "values": inputs.values,
            "from": slot.name(),
            "seed": calling.seed,
            "poison": calling.poison,
            "in_place": calling.in_place,
            "grads": calling.grads.as_ref().map(|grads| &grads.values),
            "grads_from": Slot::Grads.name(),
            "keep": calling.keep,
            "repeats": calling.repeats,
        });
        let grads = calling.grads.iter().map(|grads| (Slot::Grads, grads));
        let written = Some((slot, inputs)).filter(|_| !calling.again);
        let values: Vec<_> = written.into_iter().chain(grads).collect();
        let mut answer = self.ask("calling", request, &values).await?;
        let (outputs, inputs_after): (Values, Values) =
            (self.part(&mut answer, "outputs")?, self.part(&mut answer, "inputs_after")?);
        let (state_after, grads): (_, Option<Values>) =
            (self.part(&mut answer, "state_after")?, self.part(&mut answer, "grads")?);
        let (repeated, changed): (bool, Vec<usize>) =
            (self.part(&mut answer, "repeated")?, self.part(&mut answer, "changed")?);
        let (seen, wall) = (self.part(&mut answer, "seen")?, answer.wall);
        let repeated = repeated && calling.repeats;
        let outputs = if repeated { Filled::empty() } else { self.fetch("outputs", outputs).await?.0 };
        let inputs_after = match !changed.is_empty() || calling.look {
            true => Some(self.fetch("inputs_after", inputs_after).await?.0),
            false => None,
        };
        Ok(Called {
            outputs,
            repeated,
            inputs_after,
            state_after: self.fetch("state_after", state_after).await?.0,
            grads: match grads {
                Some(values) => Some(self.fetch("grads", values).await?.0),
                None => None,
            },
            seen,
            wall,
        })
    }

    /// The same call in float64, with the state as it is now: ask before a call in training mode changes it. Parameters, buffers and
    /// attributes are afterwards what they were; a list or dictionary that the module fills is not, so a child of its own is safest.
    ///
    /// # Errors
    /// What the code raises: some can't be computed in float64.
    pub async fn oracle(&mut self, inputs: &Filled) -> Result<Filled, ChildError> {
        let held = self.held;
        self.oracle_held(inputs, &Calling { held, ..Calling::default() }, None).await
    }

    /// The same with inputs that lie where `calling` says, on the device alone (`Some(true)`), on the processor alone, or where it fits.
    ///
    /// # Errors
    /// As for [`Child::oracle`]; out of memory where it does not fit into the device's.
    pub async fn oracle_held(
        &mut self,
        inputs: &Filled,
        calling: &Calling,
        on_device: Option<bool>,
    ) -> Result<Filled, ChildError> {
        let slot = Slot::of(calling.held);
        let request =
            json!({ "do": "oracle", "values": inputs.values, "from": slot.name(), "on_device": on_device });
        let written: Vec<_> = Some((slot, inputs)).filter(|_| !calling.again).into_iter().collect();
        let mut answer = self.ask("computing in float64", request, &written).await?;
        let values = self.part(&mut answer, "values")?;
        Ok(self.fetch("oracle", values).await?.0)
    }

    /// Gives it the sets of inputs for timing, which stay on the device, and the size of the buffer that is zeroed before each call, in bytes.
    ///
    /// # Errors
    /// Not enough memory, or how the process ended.
    pub async fn prepare(&mut self, sets: &[Filled], l2_bytes: u64) -> Result<(), ChildError> {
        self.ask("preparing to time", json!({ "do": "prepare", "l2_bytes": l2_bytes }), &[]).await?;
        for set in sets {
            let slot = Slot::of(self.held);
            let request = json!({ "do": "set", "values": set.values, "from": slot.name() });
            self.ask("preparing to time", request, &[(slot, set)]).await?;
        }
        Ok(())
    }

    /// Makes the calls of a batch, one after the other, and waits for the device once at the end.
    ///
    /// # Errors
    /// What the code raises, or how the process ended.
    pub async fn time(&mut self, batch: &Batch) -> Result<Timed, ChildError> {
        let request = json!({
            "do": "time", "calls": batch.calls, "probe": batch.probe, "seed": batch.seed, "empty": batch.empty,
            "processor": batch.processor,
        });
        let mut answer = self.ask("timing", request, &[]).await?;
        let wall = answer.wall;
        let (outputs, text): (Vec<crate::torch::values::Tensor>, Vec<String>) =
            (self.part(&mut answer, "outputs")?, self.part(&mut answer, "probed")?);
        let probed = self.heed(probed(batch, &outputs, &text))?;
        Ok(Timed { wall, outputs, probed })
    }

    /// The whole output of the last timed call, and how long it took to come.
    ///
    /// # Errors
    /// There was no timed call, or how the process ended.
    pub async fn last_output(&mut self) -> Result<(Filled, Duration), ChildError> {
        let mut answer = self.ask("fetching the last output", json!({ "do": "last" }), &[]).await?;
        let values = self.part(&mut answer, "values")?;
        self.fetch("last", values).await
    }

    /// Makes calls under torch's profiler, after two to warm up, and has it write traces. What they say is the process' own word.
    ///
    /// # Errors
    /// What the code or the profiler raises, or how the process ended.
    pub async fn profile(&mut self, inputs: &Filled, profiling: &Profiling) -> Result<(), ChildError> {
        let slot = Slot::of(self.held);
        let request = json!({
            "do": "profile",
            "values": inputs.values,
            "from": slot.name(),
            "calls": profiling.calls,
            "warm_up": WARM_UP,
            "path": profiling.path,
            "lines_path": profiling.lines_path,
            "files_path": profiling.files_path,
            "folders": profiling.folders,
        });
        self.ask("profiling", request, &[(slot, inputs)]).await.map(|_| ())
    }

    /// Replaces the subject by `torch.compile` of it, in this mode.
    ///
    /// # Errors
    /// Torch has no compiler, or what it raises.
    pub async fn compile(&mut self, mode: &str) -> Result<(), ChildError> {
        self.ask("compiling", json!({ "do": "compile", "mode": mode }), &[]).await.map(|_| ())
    }
}

impl Child {
    /// Hangs up and lets it end by itself, where its zygote forks none.
    pub fn leave(mut self) {
        self.is_gone = true;
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.is_gone {
            self.link.kill(self.number);
        }
    }
}

/// Takes the probed elements apart: for each output, hexadecimal digits of all calls' elements.
fn probed(
    batch: &Batch,
    outputs: &[crate::torch::values::Tensor],
    text: &[String],
) -> Result<Vec<Vec<Vec<u8>>>, String> {
    if batch.empty {
        return Ok(vec![Vec::new(); batch.calls.len()]);
    }
    if text.len() != outputs.len() {
        return Err(format!("probed elements of {} tensors for {} outputs", text.len(), outputs.len()));
    }
    let mut calls = vec![Vec::with_capacity(outputs.len()); batch.calls.len()];
    for (tensor, text) in outputs.iter().zip(text) {
        let bytes = hex(text).ok_or("probed elements that are no hexadecimal digits")?;
        let places = if tensor.count() == Some(0) { 0 } else { batch.probe.len() };
        let each = places * usize::try_from(tensor.dtype.size()).unwrap_or(1);
        if bytes.len() != each * calls.len() {
            return Err(format!(
                "{} bytes of probed elements instead of {}",
                bytes.len(),
                each * calls.len()
            ));
        }
        for (index, call) in calls.iter_mut().enumerate() {
            call.push(bytes.get(index * each..(index + 1) * each).unwrap_or_default().to_vec());
        }
    }
    Ok(calls)
}

impl Answer {
    /// The whole answer as one value.
    fn all<T: serde::de::DeserializeOwned>(self) -> Result<T, String> {
        let rest = self.reply.rest.into_iter().collect();
        serde_json::from_value(serde_json::Value::Object(rest)).map_err(|error| error.to_string())
    }
}
