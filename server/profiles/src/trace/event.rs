//! One event of a trace, and what kind of event it is.
//!
//! Source: Trace Event Format of Chrome for the outer fields; Kineto's `output_json.cpp` and PyTorch's `profiler_kineto.cpp` for categories and
//! arguments, as they are in traces of PyTorch 1.8 to 2.x.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::json::{self, Broken, Value};
use crate::system::Launch;

/// An event. Times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceEvent<'a> {
    /// The phase: `X` complete, `s` and `f` the ends of a flow, `M` metadata.
    pub phase: u8,
    /// The category, as it is written.
    pub category: Cow<'a, str>,
    /// The name.
    pub name: Cow<'a, str>,
    /// The process, or the device. A name stands for a number made from it.
    pub process: u64,
    /// The process's name, where it is one.
    pub process_name: Option<Cow<'a, str>>,
    /// The thread, or the stream.
    pub thread: u64,
    /// When it began.
    pub start: Option<i64>,
    /// How long it took; 0 where nothing is written.
    pub ns: u64,
    /// The flow that it is an end of.
    pub flow: Option<u64>,
    /// Its arguments.
    pub args: Args<'a>,
}

/// Arguments of an event, those that are of use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Args<'a> {
    /// The device.
    pub device: Option<u32>,
    /// The context.
    pub context: Option<u32>,
    /// The stream.
    pub stream: Option<u32>,
    /// What a call and its kernel have in common.
    pub correlation: Option<u64>,
    /// What an operator, its calls and their kernels have in common.
    pub external: Option<u64>,
    /// Of a copy, or of memory that is set.
    pub bytes: Option<u64>,
    /// How a kernel was launched.
    pub launch: Launch,
    /// The number of the node of autograd that an operator makes or runs.
    pub sequence: Option<i64>,
    /// The thread of the forward pass, where the operator belongs to the backward pass.
    pub forward_thread: Option<i64>,
    /// `file(line): function` of each frame, the innermost first, with semicolons.
    pub call_stack: Option<Cow<'a, str>>,
    /// Sizes of an operator's tensors, as they are written: a list for each argument.
    pub input_sizes: Option<&'a [u8]>,
    /// Types of an operator's arguments, as they are written.
    pub input_types: Option<&'a [u8]>,
    /// Strides of an operator's tensors, as they are written.
    pub input_strides: Option<&'a [u8]>,
    /// Values of an operator's arguments that are no tensors, as they are written.
    pub input_values: Option<&'a [u8]>,
}

/// What an event tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A kernel ran.
    Kernel,
    /// A copy ran.
    Copy,
    /// Memory was set.
    Set,
    /// The CUDA runtime or driver was called.
    Call,
    /// An operator of PyTorch ran on the host.
    Operator,
    /// The program marked a range.
    Annotation,
    /// A function of Python ran.
    Python,
    /// The end of a flow from a forward operator to its backward one.
    ForwardBackward,
    /// Nothing that is of use here.
    Other,
}

impl<'a> TraceEvent<'a> {
    /// Reads an event.
    pub fn read(bytes: &'a [u8]) -> Result<Self, Broken> {
        let mut event = Self::default();
        let mut args = None;
        json::object(bytes, |key, value| match key {
            "ph" => event.phase = text(&value).and_then(|text| text.bytes().next()).unwrap_or(0),
            "cat" => event.category = into_text(value),
            "name" => event.name = into_text(value),
            "pid" => {
                event.process = number(&value);
                event.process_name = match value {
                    Value::Text(text) if text.parse::<i64>().is_err() => Some(text),
                    _ => None,
                };
            }
            "tid" => event.thread = number(&value),
            "ts" => event.start = value.nanoseconds(),
            "dur" => event.ns = value.nanoseconds().and_then(|ns| u64::try_from(ns).ok()).unwrap_or(0),
            "id" => event.flow = value.integer().map(|id| id as u64),
            "args" => {
                if let Value::Nested(bytes) = value {
                    args = Some(bytes);
                }
            }
            _ => {}
        })?;
        // Arguments that are no object are none: the rest of the event is of use.
        if let Some(bytes) = args.filter(|bytes| bytes.starts_with(b"{")) {
            event.args = Args::read(bytes)?;
        }
        Ok(event)
    }

    /// When it ended.
    pub fn end(&self) -> i64 {
        self.start.unwrap_or(0).saturating_add(i64::try_from(self.ns).unwrap_or(i64::MAX))
    }

    /// What it tells.
    pub fn kind(&self) -> Kind {
        if matches!(self.phase, b's' | b'f') {
            let forward = self.category.eq_ignore_ascii_case("fwdbwd") || self.category == "forward_backward";
            return if forward { Kind::ForwardBackward } else { Kind::Other };
        }
        if self.phase != b'X' || self.start.is_none() {
            return Kind::Other;
        }
        // Kineto of PyTorch 1.8 wrote `Kernel`, `Runtime` and `Operator`.
        match self.category.to_ascii_lowercase().as_str() {
            "kernel" | "concurrent_kernel" => Kind::Kernel,
            "gpu_memcpy" | "memcpy" => Kind::Copy,
            "gpu_memset" | "memset" => Kind::Set,
            "cuda_runtime" | "cuda_driver" | "runtime" | "driver" | "hip_runtime" => Kind::Call,
            "cpu_op" | "operator" => Kind::Operator,
            "user_annotation" => Kind::Annotation,
            "python_function" => Kind::Python,
            // The profiler of PyTorch without Kineto writes no category.
            "" if self.process_name.as_deref() == Some("CPU functions") => Kind::Operator,
            "" if self.process_name.as_deref() == Some("CUDA functions") => Kind::Kernel,
            _ => Kind::Other,
        }
    }
}

impl<'a> Args<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, Broken> {
        let mut args = Self::default();
        json::object(bytes, |key, value| match key {
            "device" => args.device = small(&value),
            "context" => args.context = small(&value),
            "stream" => args.stream = small(&value),
            "correlation" => args.correlation = value.integer().and_then(|id| u64::try_from(id).ok()),
            "External id" | "external id" => {
                args.external = value.integer().and_then(|id| u64::try_from(id).ok());
            }
            "bytes" | "size" => args.bytes = value.integer().and_then(|bytes| u64::try_from(bytes).ok()),
            "grid" => args.launch.grid = triple(&value),
            "block" => args.launch.block = triple(&value),
            "registers per thread" => args.launch.registers = small(&value).unwrap_or(0),
            "shared memory" => args.launch.shared_bytes = small(&value).unwrap_or(0),
            "graph node id" => args.launch.graph = value.integer().is_some_and(|id| id > 0),
            "Sequence number" => args.sequence = value.integer().filter(|number| *number >= 0),
            "Fwd thread id" => args.forward_thread = value.integer(),
            // Older versions wrote `Input dims`.
            "Input Dims" | "Input dims" => args.input_sizes = nested(&value),
            "Input type" => args.input_types = nested(&value),
            "Input Strides" => args.input_strides = nested(&value),
            "Concrete Inputs" => args.input_values = nested(&value),
            "Call stack" => args.call_stack = Some(into_text(value)).filter(|stack| !stack.is_empty()),
            _ => {}
        })?;
        Ok(args)
    }
}

fn text<'v>(value: &'v Value<'_>) -> Option<&'v str> {
    match value {
        Value::Text(text) => Some(text),
        Value::Word(_) | Value::Nested(_) => None,
    }
}

fn into_text(value: Value<'_>) -> Cow<'_, str> {
    match value {
        Value::Text(text) => text,
        Value::Word(word) => Cow::Borrowed(word),
        Value::Nested(_) => Cow::Borrowed(""),
    }
}

fn nested<'a>(value: &Value<'a>) -> Option<&'a [u8]> {
    match value {
        Value::Nested(bytes) => Some(bytes),
        Value::Text(_) | Value::Word(_) => None,
    }
}

fn small(value: &Value<'_>) -> Option<u32> {
    value.integer().and_then(|value| u32::try_from(value).ok())
}

fn triple(value: &Value<'_>) -> [u32; 3] {
    let mut sizes = [0; 3];
    if let Value::Nested(bytes) = value
        && let Ok(values) = json::array(bytes)
    {
        for (size, value) in sizes.iter_mut().zip(&values) {
            *size = small(value).unwrap_or(0);
        }
    }
    sizes
}

/// A process or thread: its number, or the number at the end of its name (`stream 7`), or one made from its name.
fn number(value: &Value<'_>) -> u64 {
    if let Some(number) = value.integer() {
        return number as u64;
    }
    let name = text(value).unwrap_or_default();
    let last = name.rsplit(' ').next().unwrap_or_default();
    last.parse().unwrap_or_else(|_| {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        hasher.finish()
    })
}
