//! What one lane computes: the scalar semantics of PTX's arithmetic, logic and conversion instructions.
//!
//! Every function is pure and small, takes what the registers hold and what the modifiers say, and gives what the device
//! gives, NaN encodings included: a device's f32, f16 and bf16 operations give the one canonical NaN and keep no payload.
//! Where the "Parallel Thread Execution ISA" leaves something open, the text says so and tells what an H200 does, which was
//! measured; where it only bounds an error (`ex2.approx`), the correctly rounded result is given, which is within the bound.

pub mod approximate;
pub mod bits;
pub mod convert;
pub mod double;
mod exact;
pub mod half;
#[cfg(test)]
mod hardware;
pub mod integer;
pub mod minifloat;
pub mod single;
pub mod tensor;
#[cfg(test)]
mod tests;
pub mod video;

/// Rounding of a floating-point result: `.rn`, `.rz`, `.rm`, `.rp` (PTX ISA, "Rounding Modifiers").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// To nearest, ties to even.
    #[default]
    Rn,
    /// Toward zero.
    Rz,
    /// Toward negative infinity.
    Rm,
    /// Toward positive infinity.
    Rp,
}

/// Rounding to an integer: `.rni`, `.rzi`, `.rmi`, `.rpi`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum IntegerRounding {
    /// To nearest, ties to even.
    #[default]
    Rni,
    /// Toward zero.
    Rzi,
    /// Toward negative infinity.
    Rmi,
    /// Toward positive infinity.
    Rpi,
}

/// What the modifiers of a floating-point instruction ask for. The default is `.rn` and nothing else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Mode {
    /// Rounding of the result.
    pub rounding: Rounding,
    /// `.ftz`: subnormal inputs and results become zeros of the same sign.
    pub ftz: bool,
    /// `.sat`: the result is clamped to [0, 1]; NaN and -0 become +0.
    pub saturate: bool,
    /// `.relu`: a negative result becomes +0; NaN becomes the canonical NaN. Of f16 and bf16 operations alone.
    pub relu: bool,
}

impl Mode {
    /// `.rn`.
    pub const RN: Self = Self { rounding: Rounding::Rn, ftz: false, saturate: false, relu: false };

    /// The same with another rounding.
    #[inline]
    pub const fn rounded(self, rounding: Rounding) -> Self {
        Self { rounding, ..self }
    }
}

/// Modifiers of `min` and `max` (PTX ISA, "Floating Point Instructions: min").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Extremum {
    /// `.ftz`.
    pub ftz: bool,
    /// `.NaN`: NaN if either input is NaN, instead of the other input.
    pub nan: bool,
    /// `.abs`, and `.xorsign.abs` where [`Extremum::xorsign`] is set: magnitudes are compared.
    pub abs: bool,
    /// `.xorsign`: the sign of the result is the exclusive or of the signs of the inputs.
    pub xorsign: bool,
}

/// A comparison of `set` and `setp` (PTX ISA, "Comparison and Selection Instructions"). Integer `lo`, `ls`, `hi`, `hs` are
/// `Lt`, `Le`, `Gt`, `Ge` of unsigned values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // The names are PTX's own; those with `u` are true for NaN.
pub enum Comparison {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Equ,
    Neu,
    Ltu,
    Leu,
    Gtu,
    Geu,
    Num,
    Nan,
}

impl Comparison {
    /// The comparison of that name, without its dot.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "eq" => Self::Eq,
            "ne" => Self::Ne,
            "lt" | "lo" => Self::Lt,
            "le" | "ls" => Self::Le,
            "gt" | "hi" => Self::Gt,
            "ge" | "hs" => Self::Ge,
            "equ" => Self::Equ,
            "neu" => Self::Neu,
            "ltu" => Self::Ltu,
            "leu" => Self::Leu,
            "gtu" => Self::Gtu,
            "geu" => Self::Geu,
            "num" => Self::Num,
            "nan" => Self::Nan,
            _ => return None,
        })
    }

    /// Whether it holds. Works for integers and floating-point numbers; flush subnormals first where `.ftz` says so.
    #[inline(always)]
    pub fn holds<T: PartialOrd>(self, a: T, b: T) -> bool {
        let unordered = a.partial_cmp(&b).is_none();
        match self {
            Self::Eq => a == b,
            Self::Ne => a != b && !unordered,
            Self::Lt => a < b,
            Self::Le => a <= b,
            Self::Gt => a > b,
            Self::Ge => a >= b,
            Self::Equ => a == b || unordered,
            Self::Neu => a != b,
            Self::Ltu => a < b || unordered,
            Self::Leu => a <= b || unordered,
            Self::Gtu => a > b || unordered,
            Self::Geu => a >= b || unordered,
            Self::Num => !unordered,
            Self::Nan => unordered,
        }
    }
}

/// A class of `testp` (PTX ISA, "Floating Point Instructions: testp").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // The names are PTX's own.
pub enum Class {
    Finite,
    Infinite,
    Number,
    NotANumber,
    /// Zeros count as normal.
    Normal,
    Subnormal,
}

impl Class {
    /// Whether `value` is in it. An f32 is tested as the f64 of the same value, except for `Normal` and `Subnormal`:
    /// see [`single::is_class`].
    #[inline]
    pub fn holds(self, value: f64) -> bool {
        match self {
            Self::Finite => value.is_finite(),
            Self::Infinite => value.is_infinite(),
            Self::Number => !value.is_nan(),
            Self::NotANumber => value.is_nan(),
            Self::Normal => value.is_normal() || value == 0.0,
            Self::Subnormal => value.is_subnormal(),
        }
    }
}
