//! What can be configured. The comments here are the documentation that people read.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::optimize::{Model, Optimize};
use super::runs::{OnSave, Simulator, Verify, Worker};

/// All settings of StitchCUDA.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Config {
    /// The compiler that has the last word on CUDA code.
    pub nvcc: Nvcc,
    /// When and how long files are compiled.
    pub compile: Compile,
    /// What else is done when a file is saved.
    pub on_save: OnSave,
    /// Type errors between keystrokes, where clang is installed.
    pub clang: Clang,
    /// Numbers at the end of a line: registers, occupancy, spills.
    pub inlay_hints: InlayHints,
    /// Lines above kernels and launches, with what can be done there.
    pub code_lens: CodeLens,
    /// The table shown for a kernel under the pointer.
    pub hover: Hover,
    /// Findings as the editor's diagnostics.
    pub diagnostics: Diagnostics,
    /// Rules over the code's syntax, which need no compiler.
    pub static_rules: StaticRules,
    /// Theoretical occupancy.
    pub occupancy: Occupancy,
    /// Results kept on disk, so that the same text is not compiled twice.
    pub cache: Cache,
    /// Which files are looked into.
    pub files: Files,
    /// What the server writes down about itself.
    pub log: Log,
    /// Runs on the simulator.
    pub simulator: Simulator,
    /// How much a verification may take.
    pub verify: Verify,
    /// What plans and codes, and how much an optimisation may take.
    pub optimize: Optimize,
    /// The model that plans and codes, behind an endpoint that speaks OpenAI's chat completions. Its key is no setting: it comes from the
    /// variable `STITCHCUDA_API_KEY`, else `OPENAI_API_KEY`, and is never written down.
    pub model: Model,
    /// The device that code is compiled for, and numbers are about: `auto` (the first GPU of this machine, if it has
    /// one), `cuda:N`, a simulated one as `sim:NAME`, or for PyTorch code `cpu`. With `worker.command` it is a device of the machine that the
    /// command leads to; a `stitchcuda.toml` may have both in one table: `device.name` and `device.command`.
    pub device: Device,
    /// Another machine, whose device runs, verifies and profiles what is edited here.
    pub worker: Worker,
}

/// The compiler that has the last word on CUDA code.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Nvcc {
    /// The `nvcc` to use: a path, or a name to look for in `PATH`. When unset, it is looked for in `CUDA_HOME`, `CUDA_PATH`,
    /// `PATH`, `/usr/local/cuda`, the active Python environment and the toolkits that `stitchcuda toolchain install` made.
    #[schemars(extend("x-path" = "program", "x-restricted" = true))]
    pub path: Option<PathBuf>,
    /// The architecture to compile for: one like `sm_90`, or `auto` (that of the device; without a device, that of
    /// `compile_commands.json`; without either, a stated default).
    pub architecture: Architecture,
    /// Flags for `nvcc` after all others, one an entry. Relative paths in them start at the folder of the compiled
    /// file's command; write `${workspaceFolder}/include` to be sure.
    #[schemars(extend("x-restricted" = true))]
    pub extra_flags: Vec<String>,
}

/// When and how long files are compiled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Compile {
    /// Compile a file when it is saved, for errors, warnings, registers and spills. Off leaves the static rules only.
    pub on_save: bool,
    /// How many seconds one compile may take before it is ended.
    #[schemars(range(min = 1, max = 3600))]
    pub time_limit_seconds: u32,
}

impl Default for Compile {
    fn default() -> Self {
        Self { on_save: true, time_limit_seconds: 120 }
    }
}

/// Type errors between keystrokes, where clang is installed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Clang {
    /// Whether clang checks a CUDA file while you type. What nvcc says on save replaces what clang said.
    pub enable: Switch,
    /// The `clang` to use: a path, or a name to look for in `PATH`. When unset, the newest clang in `PATH` that can check CUDA.
    #[schemars(extend("x-path" = "program", "x-restricted" = true))]
    pub path: Option<PathBuf>,
}

/// Whether something optional is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Switch {
    /// If what it needs is found.
    #[default]
    Auto,
    /// Yes, and say so when what it needs is missing.
    On,
    /// No.
    Off,
}

/// Numbers at the end of a line: registers, occupancy, spills.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct InlayHints {
    /// Show numbers at the end of a line. At most one hint a line.
    pub enable: bool,
    /// What becomes of a number when the code it was measured on was edited since.
    pub stale: StaleHints,
    /// The least part that a line must have to get a hint of its time: of the GPU's time, or of the samples of its kernel. 0 shows all of them.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub threshold: f64,
}

/// A hint on every line would be one on none. Source: ours.
const LEAST_SHARE: f64 = 0.01;

impl Default for InlayHints {
    fn default() -> Self {
        Self { enable: true, stale: StaleHints::default(), threshold: LEAST_SHARE }
    }
}

/// What becomes of a hint whose code was edited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StaleHints {
    /// It stays, marked as from before the edit.
    Dim,
    /// It is gone until it is measured again, or the edit is undone.
    #[default]
    Hide,
}

macro_rules! only_enable {
    ($(#[$doc:meta])* $name:ident, $(#[$field:meta])*) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase", default, deny_unknown_fields)]
        pub struct $name {
            $(#[$field])*
            pub enable: bool,
        }

        impl Default for $name {
            fn default() -> Self {
                Self { enable: true }
            }
        }
    };
}

only_enable! {
    /// Lines above kernels and launches, with what can be done there.
    CodeLens,
    /// Show the lines above kernels and launches.
}

only_enable! {
    /// The table shown for a kernel under the pointer.
    Hover,
    /// Show what is known of a kernel, and the page of a finding, under the pointer.
}

only_enable! {
    /// Rules over the code's syntax, which need no compiler.
    StaticRules,
    /// Check the static rules while you type. Single rules are turned off with `diagnostics.severity`.
}

/// Findings as the editor's diagnostics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Diagnostics {
    /// Show findings as diagnostics. Hover, hints and the command line show them all the same.
    pub enable: bool,
    /// How severe each finding is, by its code: `{ "static/double-literal" = "off", "static/*" = "hint" }`. A `*` stands
    /// for any text. A code's own entry wins over a pattern, and a longer pattern over a shorter one. A pattern leaves alone what
    /// is off by default; a code's own entry turns it on. Entries of all sources are put together.
    #[schemars(extend("x-codes" = true))]
    pub severity: BTreeMap<String, Level>,
}

impl Default for Diagnostics {
    fn default() -> Self {
        Self { enable: true, severity: BTreeMap::new() }
    }
}

/// How severe a finding is, or that it is not shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Not shown.
    Off,
    /// Minor.
    Hint,
    /// Worth reading.
    Information,
    /// A likely defect.
    Warning,
    /// Does not compile, or computes wrong.
    Error,
}

/// Theoretical occupancy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Occupancy {
    /// Threads in a block, for a kernel whose launch is not known. The number shown says that it was assumed.
    #[schemars(range(min = 1, max = 1024))]
    pub assumed_block_size: u32,
}

impl Default for Occupancy {
    fn default() -> Self {
        Self { assumed_block_size: 256 }
    }
}

/// Results kept on disk, so that the same text is not compiled twice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Cache {
    /// Where results are kept. When unset, `results` in the user's cache folder (`~/.cache/stitchcuda`, or `STITCHCUDA_CACHE_DIR`).
    #[schemars(extend("x-path" = "path", "x-restricted" = true))]
    pub folder: Option<PathBuf>,
    /// How many megabytes results may take. The least recently used go first. 0 keeps none.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub size_limit_megabytes: u32,
}

impl Default for Cache {
    fn default() -> Self {
        Self { folder: None, size_limit_megabytes: 1024 }
    }
}

/// Which files are looked into.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Files {
    /// Files of more megabytes than this are kept in step with the editor, but not parsed.
    #[schemars(range(min = 1, max = 100))]
    pub size_limit_megabytes: u32,
}

impl Default for Files {
    fn default() -> Self {
        Self { size_limit_megabytes: 5 }
    }
}

/// What the server writes down about itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Log {
    /// How much is written. Never the text of your files.
    pub level: LogLevel,
    /// A file to write to. When unset, messages go to the editor, and warnings and errors to the standard error stream.
    #[schemars(extend("x-path" = "path", "x-restricted" = true))]
    pub file: Option<PathBuf>,
}

/// How much is written to the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// What went wrong.
    Error,
    /// Also what was left out or looks wrong.
    Warn,
    /// Also what was found and done.
    #[default]
    Info,
    /// Also how.
    Debug,
    /// Everything.
    Trace,
}

/// The architecture to compile for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Architecture {
    /// That of the device; without one that of the compile commands; without either a stated default.
    #[default]
    Auto,
    /// The one of this name, in nvcc's words: `sm_90`, `sm_90a`.
    Named(String),
}

impl TryFrom<String> for Architecture {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let number = text.strip_prefix("sm_").unwrap_or_default();
        // `a` and `f` name an architecture's own features and its family's.
        let digits = number.strip_suffix(['a', 'f']).unwrap_or(number);
        if matches!(digits.len(), 2 | 3) && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(Self::Named(text));
        }
        Err(ARCHITECTURE_EXPECTED)
    }
}

impl From<Architecture> for String {
    fn from(architecture: Architecture) -> Self {
        architecture.to_string()
    }
}

impl fmt::Display for Architecture {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Auto => "auto",
            Self::Named(name) => name,
        })
    }
}

const ARCHITECTURE_EXPECTED: &str = "`auto` or an architecture like `sm_90`";

impl JsonSchema for Architecture {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Architecture".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string", "pattern": "^(auto|sm_[0-9]{2,3}[af]?)$", "x-expected": ARCHITECTURE_EXPECTED
        })
    }
}

/// Where kernels run, or what they are compiled for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Device {
    /// The first GPU, if there is one.
    #[default]
    Auto,
    /// The GPU of this number.
    Cuda(u32),
    /// The simulator, as the GPU of this name.
    Simulator(String),
    /// The processor, for PyTorch code.
    Cpu,
}

impl TryFrom<String> for Device {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.as_str() {
            "auto" => return Ok(Self::Auto),
            "cpu" => return Ok(Self::Cpu),
            _ => {}
        }
        if let Some(number) = text.strip_prefix("cuda:")
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && let Ok(number) = number.parse()
        {
            return Ok(Self::Cuda(number));
        }
        match text.strip_prefix("sim:") {
            Some(name)
                if !name.is_empty()
                    && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') =>
            {
                Ok(Self::Simulator(name.to_owned()))
            }
            _ => Err(DEVICE_EXPECTED),
        }
    }
}

impl From<Device> for String {
    fn from(device: Device) -> Self {
        device.to_string()
    }
}

impl fmt::Display for Device {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => formatter.write_str("auto"),
            Self::Cuda(number) => write!(formatter, "cuda:{number}"),
            Self::Simulator(name) => write!(formatter, "sim:{name}"),
            Self::Cpu => formatter.write_str("cpu"),
        }
    }
}

const DEVICE_EXPECTED: &str = "`auto`, `cuda:N`, `sim:NAME` or `cpu`";

impl JsonSchema for Device {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Device".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string", "pattern": "^(auto|cpu|cuda:[0-9]+|sim:[A-Za-z0-9_]+)$", "x-expected": DEVICE_EXPECTED
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_are_nvccs_words() {
        for good in ["auto", "sm_70", "sm_90", "sm_90a", "sm_100f", "sm_121a"] {
            assert_eq!(Architecture::try_from(good.to_owned()).unwrap().to_string(), good);
        }
        for bad in [
            "",
            "sm",
            "sm_",
            "sm_9",
            "sm_90aa",
            "sm_9000",
            "sm_a",
            "sm_ü0",
            "ü",
            "90",
            "compute_90",
            "SM_90",
            "sm_90 ",
        ] {
            assert!(Architecture::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }

    #[test]
    fn devices_are_those_of_the_contract() {
        for good in ["auto", "cpu", "cuda:0", "cuda:15", "sim:h200"] {
            assert_eq!(Device::try_from(good.to_owned()).unwrap().to_string(), good);
        }
        for bad in
            ["", "cpu:0", "cuda", "cuda:", "cuda:+1", "cuda:x", "cuda:99999999999", "sim:", "sim:a b", "gpu0"]
        {
            assert!(Device::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }
}
