//! Types as far as the rules need them: what is float and what is double, and how many bytes lie between two elements.

/// The kind of number a type holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scalar {
    /// A template parameter, a class, or not known.
    #[default]
    Unknown,
    /// Integers, characters and `bool`.
    Integer,
    /// `half` and `bfloat16`.
    Half,
    /// `float`.
    Float,
    /// `double`.
    Double,
}

/// A type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Type {
    /// What its numbers are.
    pub scalar: Scalar,
    /// Numbers in it: 4 for `float4`, else 1.
    pub lanes: u8,
    /// Bytes of one number; 0 where not known.
    pub width: u8,
    /// How many times it must be dereferenced to get to the numbers: 1 for `float*`.
    pub pointers: u8,
}

impl Type {
    /// Nothing is known.
    pub const UNKNOWN: Type = Type { scalar: Scalar::Unknown, lanes: 1, width: 0, pointers: 0 };
    /// `int`.
    pub const INT: Type = Type { scalar: Scalar::Integer, lanes: 1, width: 4, pointers: 0 };
    /// `float`.
    pub const FLOAT: Type = Type { scalar: Scalar::Float, lanes: 1, width: 4, pointers: 0 };
    /// `double`.
    pub const DOUBLE: Type = Type { scalar: Scalar::Double, lanes: 1, width: 8, pointers: 0 };

    /// The type that a text names: `const float* __restrict__`, `unsigned long long`, `std::uint8_t [4]`.
    pub fn parse(text: &str) -> Self {
        let mut found = Type::UNKNOWN;
        let mut pointers = 0u8;
        let mut templates = 0u32;
        for word in words(text) {
            match word {
                "<" => templates += 1,
                ">" => templates = templates.saturating_sub(1),
                _ if templates > 0 => {}
                "*" | "[" => pointers = pointers.saturating_add(1),
                "unsigned" | "signed" if found == Type::UNKNOWN => found = Type::INT,
                // `long` has 8 bytes where most CUDA code runs; nothing here depends on Windows' 4.
                "long" => {
                    found =
                        Type { width: 8, ..if found.scalar == Scalar::Double { found } else { Type::INT } }
                }
                "int" if found.scalar == Scalar::Integer => {}
                _ => {
                    if let Some((_, scalar, width)) = SCALARS.iter().find(|(name, ..)| *name == word) {
                        let keep = found.scalar == Scalar::Integer && found.width == 8;
                        if !keep || *scalar != Scalar::Integer {
                            found = Type { scalar: *scalar, width: *width, lanes: 1, pointers: 0 };
                        }
                    } else if let Some(vector) = vector(word) {
                        found = vector;
                    }
                }
            }
        }
        Type { pointers, ..found }
    }

    /// Bytes of one element; `None` where not known.
    pub fn bytes(self) -> Option<i64> {
        match (self.pointers, self.width) {
            (1.., _) => Some(8),
            (_, 0) => None,
            (_, width) => Some(i64::from(width) * i64::from(self.lanes)),
        }
    }

    /// What a pointer points to.
    pub fn pointee(self) -> Type {
        if self.pointers == 0 { Type::UNKNOWN } else { Type { pointers: self.pointers - 1, ..self } }
    }

    /// A pointer to it.
    pub fn pointer(self) -> Type {
        Type { pointers: self.pointers.saturating_add(1), ..self }
    }

    /// One of its numbers, as `.x` gives.
    pub fn component(self) -> Type {
        if self.pointers == 0 && self.lanes > 1 { Type { lanes: 1, ..self } } else { Type::UNKNOWN }
    }

    /// Whether it is a single `float`.
    pub fn is_float(self) -> bool {
        self.is(Scalar::Float)
    }

    /// Whether it is a single `double`.
    pub fn is_double(self) -> bool {
        self.is(Scalar::Double)
    }

    /// Whether it is a single integer.
    pub fn is_integer(self) -> bool {
        self.is(Scalar::Integer)
    }

    fn is(self, scalar: Scalar) -> bool {
        self.scalar == scalar && self.lanes == 1 && self.pointers == 0
    }

    /// The type of arithmetic between two single numbers.
    pub fn arithmetic(self, other: Type) -> Type {
        let (left, right) = (self.arithmetic_rank(), other.arithmetic_rank());
        match (left, right) {
            (None, _) | (_, None) => Type::UNKNOWN,
            (Some(left_rank), Some(right_rank)) if left_rank >= right_rank => self,
            _ => other,
        }
    }

    fn arithmetic_rank(self) -> Option<u8> {
        match self.scalar {
            _ if self.lanes != 1 || self.pointers != 0 => None,
            Scalar::Integer => Some(self.width),
            Scalar::Float => Some(100),
            Scalar::Double => Some(101),
            Scalar::Half | Scalar::Unknown => None,
        }
    }
}

/// The names and the signs of a type, one after the other.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let first = rest.chars().next()?;
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let end =
            if is_word(first) { rest.find(|c| !is_word(c)).unwrap_or(rest.len()) } else { first.len_utf8() };
        let (word, after) = rest.split_at(end);
        rest = after;
        Some(word)
    })
}

/// Names of single numbers, what they hold, and their bytes.
const SCALARS: &[(&str, Scalar, u8)] = &[
    ("float", Scalar::Float, 4),
    ("double", Scalar::Double, 8),
    ("int", Scalar::Integer, 4),
    ("uint", Scalar::Integer, 4),
    ("bool", Scalar::Integer, 1),
    ("char", Scalar::Integer, 1),
    ("uchar", Scalar::Integer, 1),
    ("short", Scalar::Integer, 2),
    ("ushort", Scalar::Integer, 2),
    ("int8_t", Scalar::Integer, 1),
    ("uint8_t", Scalar::Integer, 1),
    ("int16_t", Scalar::Integer, 2),
    ("uint16_t", Scalar::Integer, 2),
    ("int32_t", Scalar::Integer, 4),
    ("uint32_t", Scalar::Integer, 4),
    ("int64_t", Scalar::Integer, 8),
    ("uint64_t", Scalar::Integer, 8),
    ("size_t", Scalar::Integer, 8),
    ("ssize_t", Scalar::Integer, 8),
    ("ptrdiff_t", Scalar::Integer, 8),
    ("half", Scalar::Half, 2),
    ("__half", Scalar::Half, 2),
    ("nv_half", Scalar::Half, 2),
    ("bfloat16", Scalar::Half, 2),
    ("nv_bfloat16", Scalar::Half, 2),
    ("__nv_bfloat16", Scalar::Half, 2),
];

/// `float4`, `half2`, `uchar3` and their kin.
fn vector(word: &str) -> Option<Type> {
    let lanes = match word.as_bytes().last()? {
        digit @ (b'1'..=b'4') => digit - b'0',
        _ => return None,
    };
    let (scalar, width) = match &word[..word.len() - 1] {
        "float" => (Scalar::Float, 4),
        "double" => (Scalar::Double, 8),
        "int" | "uint" => (Scalar::Integer, 4),
        "char" | "uchar" => (Scalar::Integer, 1),
        "short" | "ushort" => (Scalar::Integer, 2),
        "longlong" | "ulonglong" => (Scalar::Integer, 8),
        "half" | "__half" | "__nv_bfloat16" | "nv_bfloat16" => (Scalar::Half, 2),
        _ => return None,
    };
    Some(Type { scalar, width, lanes, pointers: 0 })
}

/// What a function of the CUDA maths library does with types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maths {
    /// Takes and returns `float`: `sqrtf`, `__expf`.
    Float,
    /// Overloaded: returns what its arguments promote to: `exp`, `max`.
    Overloaded,
}

/// What is known of the function `name`, without `std::`.
pub fn maths(name: &str) -> Option<Maths> {
    const OVERLOADED: &[&str] = &[
        "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "cos", "cosh", "erf",
        "erfc", "exp", "exp10", "exp2", "expm1", "fabs", "fdim", "floor", "fma", "fmax", "fmin", "fmod",
        "hypot", "lgamma", "log", "log10", "log1p", "log2", "pow", "rint", "round", "rsqrt", "sin", "sinh",
        "sqrt", "tan", "tanh", "tgamma", "trunc",
    ];
    const FLOAT: &[&str] = &[
        "__expf",
        "__exp10f",
        "__logf",
        "__log2f",
        "__log10f",
        "__sinf",
        "__cosf",
        "__tanf",
        "__powf",
        "__fdividef",
        "__fadd_rn",
        "__fsub_rn",
        "__fmul_rn",
        "__fdiv_rn",
        "__fmaf_rn",
        "__fsqrt_rn",
        "__frcp_rn",
        "__frsqrt_rn",
        "__saturatef",
        "__int2float_rn",
        "__uint2float_rn",
        "__half2float",
        "__bfloat162float",
        "normcdff",
    ];
    if OVERLOADED.binary_search(&name).is_ok() || matches!(name, "min" | "max" | "abs") {
        return Some(Maths::Overloaded);
    }
    let single =
        name.strip_suffix('f').is_some_and(|base| OVERLOADED.binary_search(&base).is_ok() || base == "rsqrt");
    (single || FLOAT.contains(&name)).then_some(Maths::Float)
}

/// The value and the type of a floating literal; `None` for an integer one.
pub fn floating_literal(text: &str) -> Option<(f64, Type)> {
    let hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    if hexadecimal || !text.contains(['.', 'e', 'E']) {
        return None;
    }
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let ty = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "e" => Type::DOUBLE,
        "f" => Type::FLOAT,
        _ => Type::UNKNOWN,
    };
    let value = digits.replace('\'', "").parse().ok()?;
    Some((value, ty))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_types_as_written() {
        let cases: &[(&str, Scalar, u8, u8, u8)] = &[
            ("float", Scalar::Float, 4, 1, 0),
            ("const float* __restrict__", Scalar::Float, 4, 1, 1),
            ("float **", Scalar::Float, 4, 1, 2),
            ("float4 const *", Scalar::Float, 4, 4, 1),
            ("unsigned", Scalar::Integer, 4, 1, 0),
            ("unsigned char", Scalar::Integer, 1, 1, 0),
            ("unsigned long long int", Scalar::Integer, 8, 1, 0),
            ("short int", Scalar::Integer, 2, 1, 0),
            ("std::uint8_t []", Scalar::Integer, 1, 1, 1),
            ("long double", Scalar::Double, 8, 1, 0),
            ("half2", Scalar::Half, 2, 2, 0),
            ("T*", Scalar::Unknown, 0, 1, 1),
            ("std::vector<float>", Scalar::Unknown, 0, 1, 0),
            ("thrust::complex<double>*", Scalar::Unknown, 0, 1, 1),
            ("", Scalar::Unknown, 0, 1, 0),
        ];
        for (text, scalar, width, lanes, pointers) in cases {
            let expected = Type { scalar: *scalar, width: *width, lanes: *lanes, pointers: *pointers };
            assert_eq!(Type::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn reads_floating_literals() {
        assert_eq!(floating_literal("0.5"), Some((0.5, Type::DOUBLE)));
        assert_eq!(floating_literal("1.f"), Some((1.0, Type::FLOAT)));
        assert_eq!(floating_literal("1e-3F"), Some((1e-3, Type::FLOAT)));
        assert_eq!(floating_literal("1'000.5"), Some((1000.5, Type::DOUBLE)));
        assert_eq!(floating_literal("0x1f"), None);
        assert_eq!(floating_literal("12"), None);
        assert_eq!(floating_literal("1.0L").map(|(_, ty)| ty), Some(Type::UNKNOWN));
    }

    #[test]
    fn arithmetic_promotes_as_cpp_does() {
        assert_eq!(Type::FLOAT.arithmetic(Type::DOUBLE), Type::DOUBLE);
        assert_eq!(Type::INT.arithmetic(Type::FLOAT), Type::FLOAT);
        assert_eq!(Type::FLOAT.arithmetic(Type::UNKNOWN), Type::UNKNOWN);
        assert_eq!(Type::FLOAT.pointer().arithmetic(Type::INT), Type::UNKNOWN);
    }

    #[test]
    fn knows_the_maths_library() {
        assert_eq!(maths("sqrtf"), Some(Maths::Float));
        for name in ["acos", "exp", "lgamma", "pow", "rsqrt", "trunc", "max"] {
            assert_eq!(maths(name), Some(Maths::Overloaded), "{name}");
        }
        assert_eq!(maths("half"), None);
    }
}
