//! One process that runs a person's code, and the requests it takes.

mod ask;

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::assist::Assistant;
use super::channel::Channel;
use super::error::ChildError;
use super::filled::Filled;
use super::messages::{Batch, Called, Calling, Load, Loaded, Profiling, Timed};
use super::output::Output;
use super::zygote::Link;
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
    assistant: Option<Arc<dyn Assistant>>,
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
        Self { number, channel, output, link, time_limit, cancel, is_gone: false, assistant: None }
    }

    /// Sets how long each of the following requests may take.
    pub fn set_time_limit(&mut self, limit: Duration) {
        self.time_limit = limit;
    }

    /// Has it ask for its CUDA extensions here, from [`Self::load`] on.
    pub fn assist(&mut self, assistant: Arc<dyn Assistant>) {
        self.assistant = Some(assistant);
    }

    /// What it has printed so far, standard output and standard error together; of much, the beginning and the end.
    pub fn printed(&self) -> String {
        self.output.text()
    }

    /// Whether it has ended, so that no request will be answered.
    pub fn is_gone(&self) -> bool {
        self.is_gone
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
            "assisted": self.assistant.is_some(),
        });
        let answer = self.ask("loading", request, &[]).await?;
        self.heed(answer.all())
    }

    /// Draws the inputs of a case under a seed.
    ///
    /// # Errors
    /// What the code raises, or how the process ended.
    pub async fn draw(&mut self, seed: u64, case: usize) -> Result<Filled, ChildError> {
        let request = json!({ "do": "draw", "seed": seed, "case": case });
        let mut answer = self.ask("drawing inputs", request, &[]).await?;
        let values = self.part(&mut answer, "values")?;
        Ok(self.fetch("inputs", values).await?.0)
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
        let request = json!({ "do": "set_state", "values": state.values });
        self.ask("setting the state", request, &[state]).await.map(|_| ())
    }

    /// Calls the subject.
    ///
    /// # Errors
    /// What the code raises, or how the process ended.
    pub async fn call(&mut self, inputs: &Filled, calling: &Calling) -> Result<Called, ChildError> {
        let request = json!({
            "do": "call",
            "values": inputs.values,
            "seed": calling.seed,
            "poison": calling.poison,
            "grads": calling.grads.as_ref().map(|grads| &grads.values),
        });
        let regions: Vec<&Filled> = std::iter::once(inputs).chain(&calling.grads).collect();
        let mut answer = self.ask("calling", request, &regions).await?;
        let (outputs, inputs_after) =
            (self.part(&mut answer, "outputs")?, self.part(&mut answer, "inputs_after")?);
        let (state_after, grads): (_, Option<Values>) =
            (self.part(&mut answer, "state_after")?, self.part(&mut answer, "grads")?);
        let (seen, wall) = (self.part(&mut answer, "seen")?, answer.wall);
        Ok(Called {
            outputs: self.fetch("outputs", outputs).await?.0,
            inputs_after: self.fetch("inputs_after", inputs_after).await?.0,
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
        let request = json!({ "do": "oracle", "values": inputs.values });
        let mut answer = self.ask("computing in float64", request, &[inputs]).await?;
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
            self.ask("preparing to time", json!({ "do": "set", "values": set.values }), &[set]).await?;
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
        let request = json!({
            "do": "profile",
            "values": inputs.values,
            "calls": profiling.calls,
            "warm_up": WARM_UP,
            "path": profiling.path,
            "lines_path": profiling.lines_path,
            "folders": profiling.folders,
        });
        self.ask("profiling", request, &[inputs]).await.map(|_| ())
    }

    /// Replaces the subject by `torch.compile` of it, in this mode.
    ///
    /// # Errors
    /// Torch has no compiler, or what it raises.
    pub async fn compile(&mut self, mode: &str) -> Result<(), ChildError> {
        self.ask("compiling", json!({ "do": "compile", "mode": mode }), &[]).await.map(|_| ())
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
