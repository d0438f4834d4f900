//! What is known of the value of one expression.

use super::index::{Coefficient, Index, Symbol};
use super::lanes::Lanes;
use super::types::Type;

/// The memory that a pointer points into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Not known.
    Unknown,
    /// Device memory: a pointer parameter of a kernel, a `__device__` variable.
    Global,
    /// A block's shared memory.
    Shared,
    /// A thread's own array.
    Local,
    /// `__constant__`.
    Constant,
}

/// What a pointer or an array is derived from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Base {
    /// The memory.
    pub memory: Memory,
    /// The variable, by its number in the function; `None` for one outside it.
    pub variable: Option<u32>,
    /// For an array: dimensions not yet indexed.
    pub dimensions_left: u8,
}

impl Base {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self { memory: Memory::Unknown, variable: None, dimensions_left: 0 };
}

/// What is known of a value.
#[derive(Clone, Copy, Debug)]
pub struct Value {
    /// Its type.
    pub ty: Type,
    /// How it depends on the thread; for a pointer, the element it points to; for a place, which element it is.
    pub index: Index,
    /// Its value, if it is an integer constant.
    pub constant: Option<i64>,
    /// Its value, if it is a floating constant.
    pub literal: Option<f64>,
    /// For pointers and places: into what.
    pub base: Base,
    /// Whether it is an element in memory, so that its value is what was loaded.
    pub is_place: bool,
    /// For a condition: whether it holds for only a few threads of a warp.
    pub selects_few: bool,
    /// For a condition: whether it holds for all but a few threads of a warp.
    pub spares_few: bool,
    /// For a condition: for how many lanes of a warp it holds.
    pub lanes: Lanes,
    /// Whether it is made of comparisons, each of which was looked at to see whether it guards anything.
    pub is_judged: bool,
    /// The double arithmetic that it is the result of, by its number.
    pub double_use: Option<u32>,
}

impl Value {
    /// Nothing is known.
    pub const UNKNOWN: Self = Self {
        ty: Type::UNKNOWN,
        index: Index::UNKNOWN,
        constant: None,
        literal: None,
        base: Base::UNKNOWN,
        is_place: false,
        selects_few: false,
        spares_few: false,
        lanes: Lanes::ANY,
        is_judged: false,
        double_use: None,
    };

    /// An integer constant.
    pub fn integer(value: i64) -> Self {
        Self { ty: Type::INT, index: Index::constant(value), constant: Some(value), ..Self::UNKNOWN }
    }

    /// A value of which only type and dependence are known.
    pub fn of(ty: Type, index: Index) -> Self {
        Self { ty, index, ..Self::UNKNOWN }
    }

    /// The same for all threads, of this type.
    pub fn uniform(ty: Type) -> Self {
        Self::of(ty, Index::UNIFORM)
    }

    /// The value as an operand: what a place holds, rather than where it is.
    pub fn loaded(self) -> Self {
        if !self.is_place {
            return self;
        }
        let same = self.index.is_uniform();
        let index = if same { Index { offset: 0, ..self.index } } else { Index::UNKNOWN };
        Self { ty: self.ty, index, ..Self::UNKNOWN }
    }

    /// The value as a number for any constant it is.
    pub fn number(self) -> Option<f64> {
        // Constants in source code are small; past 2^53 the nearest double will do.
        self.literal.or(self.constant.map(|value| value as f64))
    }

    /// Whether it is a double literal or a constant made of some.
    pub fn is_double_literal(self) -> bool {
        self.literal.is_some() && self.ty.is_double()
    }

    /// The factor that it is, where it is written at `start..end`.
    pub fn symbol(self, start: usize, end: usize) -> Symbol {
        let at = |byte| u32::try_from(byte).unwrap_or(u32::MAX);
        Symbol { start: at(start), end: at(end), template: self.index.template, scaled: false }
    }

    /// Both values as one: after a branch, or for either arm of `?:`.
    pub fn joined(self, other: Self) -> Self {
        if self.index == other.index
            && self.ty == other.ty
            && self.base == other.base
            && self.constant == other.constant
        {
            return Self { selects_few: false, spares_few: false, lanes: Lanes::ANY, ..self };
        }
        let index = if self.index.is_uniform() && other.index.is_uniform() {
            Index { offset: 0, ..self.index.plus(other.index) }
        } else {
            Index::UNKNOWN
        };
        let ty = if self.ty == other.ty { self.ty } else { self.ty.arithmetic(other.ty) };
        Self { ty, index, double_use: self.double_use.or(other.double_use), ..Self::UNKNOWN }
    }
}

/// The sum of two indices where the second counts in steps of `stride` elements; `None` for a stride that is not known.
pub fn advance(index: Index, by: Index, stride: Option<i64>) -> Index {
    match stride {
        Some(stride) => index.plus(by.times(stride)),
        None if by.is_uniform() => index.plus(Index { offset: 0, ..by }),
        None => Index { block: index.block || by.block, ..Index::UNKNOWN },
    }
}

/// The product of two values, written at the given bytes.
pub fn product(left: (Value, std::ops::Range<usize>), right: (Value, std::ops::Range<usize>)) -> Index {
    let ((left, left_at), (right, right_at)) = (left, right);
    match (left.constant, right.constant) {
        (Some(factor), _) => right.index.times(factor),
        (_, Some(factor)) => left.index.times(factor),
        _ if right.index.is_uniform() => {
            left.index.times_symbol(right.index, right.symbol(right_at.start, right_at.end))
        }
        _ if left.index.is_uniform() => {
            right.index.times_symbol(left.index, left.symbol(left_at.start, left_at.end))
        }
        _ => {
            Index { x: Coefficient::Unknown, block: left.index.block || right.index.block, ..Index::UNKNOWN }
        }
    }
}
