//! A call that was verified, by what it was given: types, shapes and plain values, never the numbers in a tensor.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One call that was verified.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VerifiedCall {
    /// Arguments by place.
    pub arguments: Vec<Argument>,
    /// Arguments by name.
    pub keywords: Vec<(String, Argument)>,
    /// The tensors of the module's state dictionary, under all of their names there; empty for a function.
    pub state: Vec<(String, Argument)>,
}

/// An argument.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "t", rename_all = "lowercase")]
pub enum Argument {
    /// A tensor.
    Tensor {
        /// `cpu`, or `cuda:9.0` with the compute capability.
        device: String,
        /// torch's name of the type: `float32`.
        dtype: String,
        /// Elements in each dimension.
        shape: Vec<u64>,
        /// Elements between neighbours in each dimension; `None` for a contiguous one.
        strides: Option<Vec<i64>>,
    },
    /// An integer, in decimal digits.
    Int {
        /// The digits.
        v: String,
    },
    /// A floating-point number as Python's `repr` writes it.
    Float {
        /// The text.
        v: String,
    },
    /// True or false.
    Bool {
        /// Which.
        v: bool,
    },
    /// A text.
    Str {
        /// The text.
        v: String,
    },
    /// `None`.
    None,
    /// A tuple.
    Tuple {
        /// Its items.
        items: Vec<Argument>,
    },
    /// A list.
    List {
        /// Its items.
        items: Vec<Argument>,
    },
    /// A dictionary with texts as keys.
    Dict {
        /// Keys and values, in order.
        items: Vec<(String, Argument)>,
    },
}
