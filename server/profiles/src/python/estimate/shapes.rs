//! What an operator was called with, as the profiler recorded it under `record_shapes`: sizes, element types, strides, and values of what is no tensor.
//!
//! Source: PyTorch's `torch/csrc/profiler/util.cpp` and `collection.cpp`, as traces of 1.9 to 2.x have it: `Input Dims`, `Input type`, `Input Strides`
//! and `Concrete Inputs`, each a list with a place for every argument. Of a list of tensors there are sizes since 2.1, and never types.

use crate::trace::{Args, Value, array};

/// What a tensor's elements are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Truth values.
    Bool,
    /// Integers.
    Integer,
    /// Floating-point numbers.
    Float,
    /// Pairs of them.
    Complex,
}

/// The type of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Element {
    /// What they are. First, for the kind decides what a type becomes beside another.
    pub kind: Kind,
    /// Bytes of one.
    pub bytes: u64,
}

/// Names of types, with what they are.
const ELEMENTS: &[(&str, Kind, u64)] = &[
    ("bool", Kind::Bool, 1),
    ("char", Kind::Integer, 1),
    ("signed char", Kind::Integer, 1),
    ("unsigned char", Kind::Integer, 1),
    ("c10::qint8", Kind::Integer, 1),
    ("c10::quint8", Kind::Integer, 1),
    ("short", Kind::Integer, 2),
    ("short int", Kind::Integer, 2),
    ("unsigned short", Kind::Integer, 2),
    ("int", Kind::Integer, 4),
    ("unsigned int", Kind::Integer, 4),
    ("long", Kind::Integer, 8),
    ("long int", Kind::Integer, 8),
    ("unsigned long", Kind::Integer, 8),
    ("c10::Float8_e4m3fn", Kind::Float, 1),
    ("c10::Float8_e5m2", Kind::Float, 1),
    ("c10::Float8_e4m3fnuz", Kind::Float, 1),
    ("c10::Float8_e5m2fnuz", Kind::Float, 1),
    ("c10::Half", Kind::Float, 2),
    ("c10::BFloat16", Kind::Float, 2),
    ("float", Kind::Float, 4),
    ("double", Kind::Float, 8),
    ("c10::complex<c10::Half>", Kind::Complex, 4),
    ("c10::complex<float>", Kind::Complex, 8),
    ("c10::complex<double>", Kind::Complex, 16),
];

/// Dimensions of a tensor that are read: PyTorch allows 64.
const MOST_DIMENSIONS: usize = 64;

/// Arguments that are read.
const MOST_ARGUMENTS: usize = 64;

/// Tensors of a list that are read: an optimizer may be given some hundreds.
const MOST_TENSORS: usize = 4096;

impl Element {
    /// The type of a name.
    pub fn named(name: &str) -> Option<Self> {
        let (_, kind, bytes) = ELEMENTS.iter().find(|(known, ..)| *known == name)?;
        Some(Self { kind: *kind, bytes: *bytes })
    }

    /// What a person calls it: `float`.
    fn name(self) -> &'static str {
        match (self.kind, self.bytes) {
            (Kind::Bool, _) => "bool",
            (Kind::Integer, 1) => "8-bit integers",
            (Kind::Integer, 2) => "16-bit integers",
            (Kind::Integer, 4) => "int",
            (Kind::Integer, _) => "long",
            (Kind::Float, 1) => "8-bit floats",
            (Kind::Float, 2) => "half",
            (Kind::Float, 4) => "float",
            (Kind::Float, _) => "double",
            (Kind::Complex, _) => "complex",
        }
    }

    /// The type that a kernel's template was made for, where its name tells: of tensors in lists nothing else does.
    pub fn of_kernel(name: &str) -> Option<u64> {
        // `CatArrayBatchedCopy` moves elements of a size, whatever they are.
        if let Some((_, after)) = name.split_once("OpaqueType<") {
            let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
            return digits.parse().ok().filter(|bytes| (1..=16).contains(bytes));
        }
        let is_whole = |at: usize, word: &str| {
            let outside =
                |sign: Option<char>| !sign.is_some_and(|sign| sign.is_alphanumeric() || sign == '_');
            outside(name[..at].chars().next_back()) && outside(name[at + word.len()..].chars().next())
        };
        let floats = ["c10::Half", "c10::BFloat16", "double", "float"];
        let first = floats.iter().filter_map(|word| {
            let (at, _) = name.match_indices(word).find(|(at, _)| is_whole(*at, word))?;
            Some((at, Self::named(word)?.bytes))
        });
        first.min().map(|(_, bytes)| bytes)
    }
}

/// A tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Its elements; `None` in a list.
    pub element: Option<Element>,
    /// Its sizes.
    pub sizes: Vec<u64>,
    /// How far apart elements are along each of them, where that was recorded. 0 where it was expanded: there is one element for all.
    strides: Option<Vec<i64>>,
}

impl Tensor {
    /// Elements.
    pub fn count(&self) -> u64 {
        product(&self.sizes)
    }

    /// Elements that lie in memory: an expanded dimension has one.
    pub fn stored(&self) -> u64 {
        let Some(strides) = self.strides.as_ref().filter(|strides| strides.len() == self.sizes.len()) else {
            return self.count();
        };
        let sizes = self.sizes.iter().zip(strides);
        sizes.fold(
            1,
            |all, (size, stride)| if *stride == 0 && *size > 0 { all } else { all.saturating_mul(*size) },
        )
    }
}

/// The product of sizes.
pub fn product(sizes: &[u64]) -> u64 {
    sizes.iter().fold(1, |all, size| all.saturating_mul(*size))
}

/// An argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A tensor.
    Tensor(Tensor),
    /// A list of tensors.
    List(Vec<Tensor>),
    /// A list of tensors of which nothing is known.
    UnknownList,
    /// A number, a word, nothing.
    Other,
}

/// What an operator was called with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    /// Its arguments.
    pub all: Vec<Argument>,
    /// Values of those that are no tensor; empty where they were not recorded.
    pub values: Vec<String>,
}

impl Arguments {
    /// Reads them from an event. `None` where no shapes were recorded.
    pub fn of(args: &Args<'_>) -> Option<Self> {
        let types: Vec<String> = array(args.input_types?).ok()?.iter().map(word).collect();
        let sizes = array(args.input_sizes?).ok()?;
        let strides = args.input_strides.and_then(|bytes| array(bytes).ok()).unwrap_or_default();
        let values = args.input_values.and_then(|bytes| array(bytes).ok()).unwrap_or_default();
        let one = |(at, name): (usize, &String)| argument(name, sizes.get(at), strides.get(at));
        let all = types.iter().take(MOST_ARGUMENTS).enumerate().map(one).collect();
        Some(Self { all, values: values.iter().take(MOST_ARGUMENTS).map(word).collect() })
    }

    /// Types and sizes of the tensors: `float [64, 3], long int [64]`, cut after so many letters.
    pub fn words(&self, most: usize) -> String {
        let mut words = String::new();
        for tensor in self.tensors() {
            let name = tensor.element.map_or("tensor", Element::name);
            let sizes: Vec<String> = tensor.sizes.iter().map(u64::to_string).collect();
            let one = format!("{name} [{}]", sizes.join(", "));
            if words.len() + one.len() + 2 > most {
                words.push_str(", …");
                break;
            }
            if !words.is_empty() {
                words.push_str(", ");
            }
            words.push_str(&one);
        }
        words
    }

    /// The tensor at a place.
    pub fn tensor(&self, at: usize) -> Option<&Tensor> {
        match self.all.get(at)? {
            Argument::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// All tensors, those in lists too, in order.
    pub fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.all.iter().flat_map(|argument| match argument {
            Argument::Tensor(tensor) => std::slice::from_ref(tensor),
            Argument::List(tensors) => tensors,
            Argument::UnknownList | Argument::Other => &[],
        })
    }

    /// Whether there is a list of which nothing is known.
    pub fn has_unknown_list(&self) -> bool {
        self.all.contains(&Argument::UnknownList)
    }

    /// The list of numbers at a place: `[1, 1]`, or one number.
    pub fn numbers(&self, at: usize) -> Option<Vec<i64>> {
        let text = self.values.get(at)?.trim();
        let inside = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text).trim();
        if inside.is_empty() {
            return text.starts_with('[').then(Vec::new);
        }
        inside.split(',').map(|number| number.trim().parse().ok()).collect()
    }

    /// The truth value at a place, where numbers above 0 are true: kinds of masks are numbered.
    pub fn truth(&self, at: usize) -> Option<bool> {
        match self.values.get(at)?.as_str() {
            "True" => Some(true),
            "False" => Some(false),
            number => number.parse::<i64>().ok().map(|number| number > 0),
        }
    }
}

fn argument(name: &str, sizes: Option<&Value<'_>>, strides: Option<&Value<'_>>) -> Argument {
    let nested = |value: Option<&Value<'_>>| match value {
        Some(Value::Nested(bytes)) => {
            array(bytes).ok().map(|values| values.iter().map(own).collect::<Vec<_>>())
        }
        _ => None,
    };
    let (sizes, strides) = (nested(sizes), nested(strides));
    if let Some(element) = Element::named(name) {
        let Some(sizes) = sizes.as_deref().and_then(numbers) else { return Argument::Other };
        let strides = strides.as_deref().and_then(signed);
        return Argument::Tensor(Tensor { element: Some(element), sizes, strides });
    }
    if !name.contains("TensorList") && !name.contains("Tensor[]") && !name.contains("List[Tensor") {
        return Argument::Other;
    }
    let Some(sizes) = sizes.filter(|sizes| !sizes.is_empty() && sizes.len() <= MOST_TENSORS) else {
        return Argument::UnknownList;
    };
    let strides = strides.unwrap_or_default();
    let tensor = |(at, sizes): (usize, &Owned)| {
        let strides = strides.get(at).and_then(Owned::inner).and_then(|inner| signed(&inner));
        Some(Tensor { element: None, sizes: numbers(&sizes.inner()?)?, strides })
    };
    match sizes.iter().enumerate().map(tensor).collect() {
        Some(tensors) => Argument::List(tensors),
        None => Argument::UnknownList,
    }
}

/// A value of a list: a number, or another list as it is written.
enum Owned {
    Number(i64),
    List(Vec<u8>),
    Other,
}

impl Owned {
    fn inner(&self) -> Option<Vec<Self>> {
        match self {
            Self::List(bytes) => array(bytes).ok().map(|values| values.iter().map(own).collect()),
            _ => None,
        }
    }
}

fn own(value: &Value<'_>) -> Owned {
    match value {
        Value::Nested(bytes) => Owned::List(bytes.to_vec()),
        other => other.integer().map_or(Owned::Other, Owned::Number),
    }
}

fn signed(values: &[Owned]) -> Option<Vec<i64>> {
    let number = |value: &Owned| if let Owned::Number(number) = value { Some(*number) } else { None };
    (values.len() <= MOST_DIMENSIONS).then(|| values.iter().map(number).collect()).flatten()
}

fn numbers(values: &[Owned]) -> Option<Vec<u64>> {
    signed(values)?.into_iter().map(|number| u64::try_from(number).ok()).collect()
}

fn word(value: &Value<'_>) -> String {
    match value {
        Value::Text(text) => text.trim().to_owned(),
        Value::Word(word) => (*word).to_owned(),
        // Some versions write lists as lists.
        Value::Nested(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sizes: &str, types: &str, rest: &str) -> Option<Arguments> {
        let text = format!(
            "{{\"ph\": \"X\", \"ts\": 1, \"args\": {{\"Input Dims\": {sizes}, \"Input type\": {types}{rest}}}}}"
        );
        Arguments::of(&crate::trace::TraceEvent::read(text.as_bytes()).unwrap().args)
    }

    #[test]
    fn tensors_lists_and_values_are_told_apart() {
        let found = read(
            "[[64, 3], [], [[2, 2], [4]], [], [7]]",
            r#"["float", "long int", "TensorList", "Scalar", "ScalarList"]"#,
            r#", "Input Strides": [[0, 1], [], [[2, 1], [1]], [], []], "Concrete Inputs": ["", "", "", "True", "[1, 2]"]"#,
        )
        .unwrap();
        assert_eq!(found.tensor(0).map(|tensor| (tensor.count(), tensor.stored())), Some((192, 3)));
        assert_eq!(found.tensor(1).map(Tensor::count), Some(1));
        let Argument::List(list) = &found.all[2] else { panic!("{found:?}") };
        assert_eq!(list.iter().map(Tensor::count).collect::<Vec<_>>(), [4, 4]);
        assert_eq!((found.truth(3), found.numbers(4)), (Some(true), Some(vec![1, 2])));
        assert_eq!((found.truth(4), found.numbers(9)), (None, None));
        let older = read("[[], []]", r#"["TensorList", "Scalar"]"#, "").unwrap();
        assert!(older.has_unknown_list() && older.tensors().next().is_none());
        assert_eq!(read("7", "[]", ""), None);
        assert!(read("[[-3]]", r#"["float"]"#, "").unwrap().tensor(0).is_none());
    }

    #[test]
    fn a_kernels_name_tells_the_size_of_elements() {
        let cat = "void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::(anonymous namespace)::OpaqueType<4u>, unsigned int, 4, 64, 64>(…)";
        assert_eq!(Element::of_kernel(cat), Some(4));
        let apply = "void multi_tensor_apply_kernel<TensorListMetadata<2>, BinaryOpListAlphaFunctor<c10::Half, 2, 2, 0>, std::plus<float>, float>(…)";
        assert_eq!(Element::of_kernel(apply), Some(2));
        assert_eq!(Element::of_kernel("float_gemm"), None);
    }
}
