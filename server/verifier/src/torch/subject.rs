//! What a person pointed at in a Python file, and how it gets its inputs.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::values::Dtype;

/// A part of a Python file that can be called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subject {
    /// The file.
    pub path: PathBuf,
    /// What is called.
    pub callable: Callable,
    /// Each set of inputs that it is tried with. The first one is timed.
    pub cases: Vec<Case>,
}

impl Subject {
    /// The mode of a module (its `training`) where none was said: evaluation. `None` leaves KernelBench's `Model` as it constructs itself, which is
    /// how KernelBench runs its own.
    pub fn usual_mode(&self) -> Option<bool> {
        let is_kernelbench = matches!(&self.callable, Callable::Module { name, .. } if name == "Model");
        (!is_kernelbench).then_some(false)
    }
}

/// What is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Callable {
    /// A class that derives from `torch.nn.Module`, and how one is made.
    Module {
        /// The class.
        name: String,
        /// Where its arguments come from; without, it takes none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        init: Option<Source>,
    },
    /// A function of the file's top level, or `Class.method` of a static one.
    Function {
        /// Its name.
        name: String,
    },
    /// Statements of the file, which become a function of the names that they read.
    Statements {
        /// The first line and the last one, counted from 1.
        lines: [u32; 2],
        /// Names that they read, in the order of the inputs.
        reads: Vec<String>,
        /// Names that they set and that are read later.
        sets: Vec<String>,
    },
}

/// Where arguments come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "lowercase")]
pub enum Source {
    /// A function of the file that returns a list of positional ones, or a pair of a list and a dictionary.
    Function {
        /// Its name.
        name: String,
    },
    /// The text of an argument list: `randn(32, 1024), n=4`. Torch's factories are known without their prefix.
    Expression {
        /// The text.
        text: String,
    },
    /// A file written by `torch.save`: a tuple, a list, a dictionary of keyword arguments, or one tensor.
    File {
        /// The file.
        path: PathBuf,
    },
}

/// One set of inputs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// Where they come from.
    pub inputs: Source,
    /// What floating-point inputs and parameters are turned into; without, they stay as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dtype: Option<Dtype>,
}
