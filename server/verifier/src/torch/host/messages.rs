//! What a child is asked, and what it answers.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::super::subject::Subject;
use super::super::values::{Dtype, Tensor};
use super::filled::Filled;

/// What is loaded.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// What a person pointed at, or the candidate for it.
    pub subject: Subject,
    /// The seed under which it is constructed. A candidate's own, which tells nothing of the reference's.
    pub seed: u64,
    /// What floating-point parameters and buffers are turned into; without, they stay as constructed.
    pub dtype: Option<Dtype>,
    /// Training or evaluation mode; without, as constructed, which is training mode for most.
    pub train: Option<bool>,
    /// Where extensions are built; without, the setting's build folder. One that a candidate of other text has used must not be given.
    pub build: Option<PathBuf>,
    /// The file whose place the subject's file takes: its folder is searched for imports, its package is that of relative ones. Without,
    /// the subject's file itself.
    pub stands_for: Option<PathBuf>,
    /// Has tensors, which live on the CPU, pass for those of a GPU: the code asks for one, and its extensions run on the simulator.
    pub passes_for_gpu: bool,
    /// A script that defines `settings_of(module)`, whose text the answer has for a module.
    pub settings_script: Option<String>,
}

impl Load {
    /// Loads a subject under a seed, as it is.
    pub fn new(subject: Subject, seed: u64) -> Self {
        Self {
            subject,
            seed,
            dtype: None,
            train: None,
            build: None,
            stands_for: None,
            passes_for_gpu: false,
            settings_script: None,
        }
    }
}

/// A tensor of a module's state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedTensor {
    /// Its name in the state dictionary.
    pub name: String,
    /// The type of its elements, by torch's name, which may be one that is not among [`Dtype`].
    pub dtype: String,
    /// Elements in each dimension.
    pub shape: Vec<u64>,
}

/// How long the parts of loading took, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seconds {
    /// The file's import, without the building of extensions.
    pub import: f64,
    /// The building of extensions.
    pub build: f64,
    /// The module's construction, with the move to the device.
    pub construct: f64,
}

/// What runs the code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// Python's version: `3.12.3`.
    pub python: String,
    /// Torch's: `2.11.0+cu130`.
    pub torch: String,
    /// The CUDA version that torch was built with.
    #[serde(default)]
    pub cuda: Option<String>,
    /// The device's name.
    #[serde(default)]
    pub device: String,
}

/// What was loaded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Loaded {
    /// `module`, `function` or `statements`.
    pub kind: String,
    /// The type's or the function's name.
    pub name: String,
    /// Whether it is in training mode; `None` for what is no module.
    #[serde(default)]
    pub training: Option<bool>,
    /// Parameters of a module.
    #[serde(default)]
    pub parameters: Vec<NamedTensor>,
    /// Buffers of a module, those that are not in its state dictionary too.
    #[serde(default)]
    pub buffers: Vec<NamedTensor>,
    /// A module's settings as the script of [`Load::settings_script`] tells them.
    #[serde(default)]
    pub settings: Option<String>,
    /// What runs it.
    pub versions: Versions,
    /// How long it took.
    pub seconds: Seconds,
    /// What importing changed in torch's own settings, in words: `allow_tf32 of cuBLAS is True`.
    #[serde(default)]
    pub changed: Vec<String>,
    /// Where a module was constructed; `None` for what is no module.
    #[serde(default)]
    pub made: Option<Made>,
}

/// Where something was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// `cpu`, `cuda:0`.
    pub on: String,
    /// Why not on the GPU, where that was tried.
    #[serde(default)]
    pub reason: Option<String>,
}

/// One of a process's two regions for inputs: while it is called with those of one, the next can be drawn into the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held(pub(super) bool);

/// Inputs as a process drew them.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// The inputs.
    pub inputs: Filled,
    /// Where they were made.
    pub made: Made,
    /// Where the process has them.
    pub held: Held,
}

/// How a call is made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calling {
    /// Torch's seed at the call.
    pub seed: u64,
    /// Gradients of the outputs, one tensor for each floating-point tensor of the outputs, in their order. With them, the gradients of inputs
    /// and parameters are computed; without, the call is made under `torch.no_grad`.
    pub grads: Option<Filled>,
    /// Fills memory that the call could be given with a pattern first.
    pub poison: bool,
    /// Which of the process's regions the inputs lie in.
    pub held: Held,
    /// They lie there already: this process drew them itself and they were not changed since, or it was called with them before.
    pub again: bool,
    /// Puts the inputs where those of the call before were, so that an answer that is remembered by an address is the wrong one. Without, they
    /// lie elsewhere.
    pub in_place: bool,
    /// Keeps a copy of the outputs, for a call that repeats this one.
    pub keep: bool,
    /// The call before was the same, and kept its outputs: where every bit of them came again, they are not fetched.
    pub repeats: bool,
    /// Fetches all inputs after the call. The child learns of it after the call. Without, they are fetched where the child says that it
    /// changed some.
    pub look: bool,
}

/// A tensor of the outputs, as it was given back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenTensor {
    /// Its type: `torch.Tensor`, `torch.nn.parameter.Parameter`.
    pub kind: String,
    /// Where it lies: `cpu`, `cuda:0`.
    pub device: String,
    /// Whether it asks for gradients.
    #[serde(default)]
    pub requires_grad: bool,
    /// The input whose memory it shares, by its place.
    #[serde(default)]
    pub shares_input: Option<usize>,
}

/// What was seen of a call besides its values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observations {
    /// The tensors of the outputs, in their order.
    #[serde(default)]
    pub outputs: Vec<SeenTensor>,
    /// Threads before and after.
    #[serde(default)]
    pub threads: [u64; 2],
    /// Processes below this one, before and after.
    #[serde(default)]
    pub processes: [u64; 2],
    /// Torch's own settings that the call changed, in words.
    #[serde(default)]
    pub changed: Vec<String>,
    /// Whether it changed what the call before it had returned.
    #[serde(default)]
    pub overwrites: bool,
    /// Device memory that the call held at most, in bytes; `None` on the CPU.
    #[serde(default)]
    pub peak_bytes: Option<u64>,
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Called {
    /// What it returned.
    pub outputs: Filled,
    /// Whether every bit of the outputs is that of the call before, which [`Calling::repeats`] asks for; they were not fetched then.
    pub repeated: bool,
    /// The inputs after it; `None` where the child says that they are as they were, and nobody looked.
    pub inputs_after: Option<Filled>,
    /// The entries of the state that it changed: a dictionary by name.
    pub state_after: Filled,
    /// Gradients, where they were asked for: a dictionary with `input.0`, …, by the inputs' places, and `parameter.NAME`; `None` where there
    /// is none.
    pub grads: Option<Filled>,
    /// What else was seen.
    pub seen: Observations,
    /// From the request to its answer, by the parent's clock; the copies of the inputs are in it.
    pub wall: Duration,
}

/// What is profiled, and where the Chrome traces go, both in the scratch folder.
#[derive(Clone, Debug)]
pub struct Profiling {
    /// Calls in each trace.
    pub calls: u32,
    /// The trace of the calls as they are: how long things take.
    pub path: PathBuf,
    /// The trace in which lines and modules are ranges, whose names begin with
    /// [`LINE_MARK`](stitch_profiles::python::LINE_MARK) and its like for modules: to which of them things
    /// belong.
    pub lines_path: PathBuf,
    /// Where the files of these folders that were imported are listed, as JSON.
    pub files_path: PathBuf,
    /// Folders whose files' lines are marked.
    pub folders: Vec<PathBuf>,
}

/// Calls that are timed together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// For each call, which of the prepared sets, and what its floating-point tensors are multiplied with.
    pub calls: Vec<(usize, f64)>,
    /// Secret numbers, from which [`Batch::place`] gives the elements of the outputs that are answered.
    pub probe: Vec<u64>,
    /// Torch's seed before the first call.
    pub seed: u64,
    /// Does everything but the calls.
    pub empty: bool,
    /// Whether the time is wanted. The child is not told: what knows a warm-up could behave in it.
    pub warm: bool,
    /// The processor that the calls are made from, by its number; any where it is `None`.
    pub processor: Option<usize>,
}

impl Batch {
    /// The flat index that is probed by number `k` in call `call`, in an output of `count` elements. Each call has its own.
    ///
    /// The increment is the golden ratio's in 64 bits (Weyl sequence), so that neighbouring calls probe far apart.
    pub fn place(&self, call: usize, k: usize, count: u64) -> Option<u64> {
        let number = self.probe.get(k)?.wrapping_add((call as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        number.checked_rem(count)
    }
}

/// What came of timed calls.
#[derive(Clone, Debug, PartialEq)]
pub struct Timed {
    /// From the request to its answer, by the parent's clock.
    pub wall: Duration,
    /// The types and shapes of the outputs' tensors; empty for an empty batch.
    pub outputs: Vec<Tensor>,
    /// For each call, for each tensor of the outputs, the bytes of its probed elements, in the probe's order.
    pub probed: Vec<Vec<Vec<u8>>>,
}

/// The reply to a request, before its parts are read.
#[derive(Debug, Deserialize)]
pub(super) struct Reply {
    pub ok: bool,
    #[serde(default)]
    pub error: Option<WireError>,
    #[serde(flatten)]
    pub rest: BTreeMap<String, serde_json::Value>,
}

/// An error as a child says it.
#[derive(Debug, Deserialize)]
pub(super) struct WireError {
    #[serde(default)]
    pub stage: String,
    #[serde(default, rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub message: String,
    #[serde(default)]
    pub frames: Vec<super::error::Frame>,
    #[serde(default)]
    pub text: String,
    /// `memory` or `gpu`, where it is one of these.
    #[serde(default)]
    pub class: String,
    #[serde(default)]
    pub device: String,
}
