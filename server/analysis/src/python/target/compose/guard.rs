//! What was verified, as the Python table that a guard looks calls up in.

use serde::{Deserialize, Serialize};
use stitch_findings::{Argument, VerifiedCall};

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

/// What a literal in a source text stands for, as a default has it; `None` for anything else.
pub(super) fn literal(text: &str) -> Option<Argument> {
    Some(match text {
        "None" => Argument::None,
        "True" => Argument::Bool { v: true },
        "False" => Argument::Bool { v: false },
        _ if text.parse::<i64>().is_ok() => Argument::Int { v: text.to_owned() },
        _ if text.starts_with(|c: char| c.is_ascii_digit() || "-.".contains(c))
            && text.parse::<f64>().is_ok() =>
        {
            Argument::Float { v: text.to_owned() }
        }
        _ => {
            let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
            let plain = !inner.contains([quote, '\\', '\n']);
            plain.then(|| Argument::Str { v: inner.to_owned() })?
        }
    })
}

/// The expression that equals what the guard sees of such an argument.
pub(super) fn seen(argument: &Argument) -> String {
    match argument {
        Argument::Tensor { device, dtype, shape, strides } => {
            let strides = strides.as_ref().map_or_else(|| "None".to_owned(), |strides| tuple(strides.iter()));
            format!("({}, torch.{dtype}, {}, {strides})", quoted(device), tuple(shape.iter()))
        }
        Argument::Int { v } => format!("(int, {v})"),
        Argument::Float { v } if v.parse::<f64>().is_ok_and(f64::is_finite) => format!("(float, {v})"),
        Argument::Float { v } => format!("(float, float({}))", quoted(v)),
        Argument::Bool { v } => format!("(bool, {})", if *v { "True" } else { "False" }),
        Argument::Str { v } => format!("(str, {})", quoted(v)),
        Argument::None => "(type(None), None)".to_owned(),
        Argument::Tuple { items } => format!("(tuple, {})", tuple(items.iter().map(seen))),
        Argument::List { items } => format!("(list, {})", tuple(items.iter().map(seen))),
        Argument::Dict { items } => {
            let items = items.iter().map(|(key, value)| format!("({}, {})", quoted(key), seen(value)));
            format!("(dict, {})", tuple(items))
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
