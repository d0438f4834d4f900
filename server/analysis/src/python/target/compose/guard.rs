//! What was verified, as the Python table that a guard looks calls up in.

use serde::{Deserialize, Serialize};

/// What a candidate was verified for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verified {
    /// Each call that was found right.
    pub calls: Vec<VerifiedCall>,
    /// Whether gradients were compared as well; else calls that need them keep the original code.
    pub gradients: bool,
    /// Modes of a module that were verified, as its `training`: usually one.
    pub training: Vec<bool>,
    /// What [`super::settings_script`] prints for each module that was verified. Empty where it is not known: then settings such as a
    /// slope or a stride are not compared, and the caller has to tell the person.
    pub settings: Vec<String>,
}

/// One call that was verified.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VerifiedCall {
    /// Arguments by place.
    pub arguments: Vec<Argument>,
    /// Arguments by name.
    pub keywords: Vec<(String, Argument)>,
    /// Parameters and buffers of the module, by their dotted names; empty for a function.
    pub state: Vec<(String, Argument)>,
}

/// An argument as a guard compares it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

impl Argument {
    /// What a literal in a source text stands for, as a default has it; `None` for anything else.
    pub(super) fn literal(text: &str) -> Option<Self> {
        Some(match text {
            "None" => Self::None,
            "True" => Self::Bool { v: true },
            "False" => Self::Bool { v: false },
            _ if text.parse::<i64>().is_ok() => Self::Int { v: text.to_owned() },
            _ if text.starts_with(|c: char| c.is_ascii_digit() || "-.".contains(c))
                && text.parse::<f64>().is_ok() =>
            {
                Self::Float { v: text.to_owned() }
            }
            _ => {
                let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
                let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
                let plain = !inner.contains([quote, '\\', '\n']);
                plain.then(|| Self::Str { v: inner.to_owned() })?
            }
        })
    }

    /// The expression that equals what the guard sees of such an argument.
    pub(super) fn seen(&self) -> String {
        match self {
            Self::Tensor { device, dtype, shape, strides } => {
                let strides =
                    strides.as_ref().map_or_else(|| "None".to_owned(), |strides| tuple(strides.iter()));
                format!("({}, torch.{dtype}, {}, {strides})", quoted(device), tuple(shape.iter()))
            }
            Self::Int { v } => format!("(int, {v})"),
            Self::Float { v } if v.parse::<f64>().is_ok_and(f64::is_finite) => format!("(float, {v})"),
            Self::Float { v } => format!("(float, float({}))", quoted(v)),
            Self::Bool { v } => format!("(bool, {})", if *v { "True" } else { "False" }),
            Self::Str { v } => format!("(str, {})", quoted(v)),
            Self::None => "(type(None), None)".to_owned(),
            Self::Tuple { items } => format!("(tuple, {})", tuple(items.iter().map(Self::seen))),
            Self::List { items } => format!("(list, {})", tuple(items.iter().map(Self::seen))),
            Self::Dict { items } => {
                let items = items.iter().map(|(key, value)| format!("({}, {})", quoted(key), value.seen()));
                format!("(dict, {})", tuple(items))
            }
        }
    }
}

/// A Python tuple.
pub(super) fn tuple(items: impl Iterator<Item = impl ToString>) -> String {
    let items: Vec<_> = items.map(|item| item.to_string()).collect();
    match &items[..] {
        [only] => format!("({only},)"),
        _ => format!("({})", items.join(", ")),
    }
}

/// A Python string literal.
pub(super) fn quoted(text: &str) -> String {
    let mut literal = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => literal.extend(['\\', c]),
            '\n' => literal.push_str("\\n"),
            c if c.is_control() => literal.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => literal.push(c),
        }
    }
    literal.push('"');
    literal
}
