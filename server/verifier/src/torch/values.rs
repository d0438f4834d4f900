//! What goes into a call and what comes out: nested values, whose tensors lie in one region of shared memory.

use serde::{Deserialize, Serialize};

/// The type of a tensor's elements, by torch's name for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dtype {
    /// 64-bit floating point.
    Float64,
    /// 32-bit floating point.
    Float32,
    /// IEEE half precision.
    Float16,
    /// bfloat16.
    Bfloat16,
    /// 64-bit signed integer.
    Int64,
    /// 32-bit signed integer.
    Int32,
    /// 16-bit signed integer.
    Int16,
    /// 8-bit signed integer.
    Int8,
    /// 8-bit unsigned integer.
    Uint8,
    /// A byte that is 0 or 1.
    Bool,
    /// Two 32-bit floats.
    Complex64,
    /// Two 64-bit floats.
    Complex128,
}

impl Dtype {
    /// Torch's name for it, without `torch.`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Float64 => "float64",
            Self::Float32 => "float32",
            Self::Float16 => "float16",
            Self::Bfloat16 => "bfloat16",
            Self::Int64 => "int64",
            Self::Int32 => "int32",
            Self::Int16 => "int16",
            Self::Int8 => "int8",
            Self::Uint8 => "uint8",
            Self::Bool => "bool",
            Self::Complex64 => "complex64",
            Self::Complex128 => "complex128",
        }
    }

    /// The size of an element in bytes.
    pub fn size(self) -> u64 {
        match self {
            Self::Bool | Self::Uint8 | Self::Int8 => 1,
            Self::Int16 | Self::Float16 | Self::Bfloat16 => 2,
            Self::Int32 | Self::Float32 => 4,
            Self::Int64 | Self::Float64 | Self::Complex64 => 8,
            Self::Complex128 => 16,
        }
    }

    /// Whether its elements are real or complex floating-point numbers.
    pub fn is_floating(self) -> bool {
        use Dtype::{Bfloat16, Complex64, Complex128, Float16, Float32, Float64};
        matches!(self, Float64 | Float32 | Float16 | Bfloat16 | Complex64 | Complex128)
    }
}

/// Where a tensor lies in its region, and how it is to be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tensor {
    /// The type of its elements.
    pub dtype: Dtype,
    /// Elements in each dimension.
    pub shape: Vec<u64>,
    /// Elements from one index to the next in each dimension, of the tensor itself; its bytes in the region are contiguous.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strides: Option<Vec<i64>>,
    /// Where its bytes begin in the region.
    pub offset: u64,
    /// How many bytes it has.
    pub bytes: u64,
    /// Where it lay: `cpu`, `cuda:0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

impl Tensor {
    /// The number of its elements; `None` where it does not fit 64 bits.
    pub fn count(&self) -> Option<u64> {
        self.shape.iter().try_fold(1u64, |count, size| count.checked_mul(*size))
    }
}

/// A value that a call takes or returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "lowercase")]
pub enum Tree {
    /// A tensor, by its place in the list.
    Tensor {
        /// The place.
        i: usize,
    },
    /// An integer. Python's have no limit, so it is written out.
    Int {
        /// In decimal digits.
        v: String,
    },
    /// A floating-point number, as Python writes it: `1.5`, `nan`, `inf`.
    Float {
        /// As `repr` gives it.
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
        items: Vec<Tree>,
    },
    /// A list.
    List {
        /// Its items.
        items: Vec<Tree>,
    },
    /// A dictionary, in its order.
    Dict {
        /// Keys, as `repr` gives them where they are no texts, and values.
        items: Vec<(String, Tree)>,
    },
    /// A named tuple or a data class.
    Named {
        /// The type's name.
        name: String,
        /// Fields and values.
        items: Vec<(String, Tree)>,
    },
}

/// Nested values and the tensors in them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Values {
    /// How they are nested.
    pub tree: Tree,
    /// The tensors.
    pub tensors: Vec<Tensor>,
    /// The size of the region that holds them, in bytes.
    pub bytes: u64,
}
