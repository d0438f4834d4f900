//! How an integer, used as an index, depends on the thread: `stride * threadIdx.x + …`.
//!
//! Only the coefficients of the thread's own coordinates are kept, since neighbouring threads differ in nothing else. A
//! value of which these are not known is [`Index::UNKNOWN`], and every rule about indices is silent about it.

/// What one coordinate of the thread is multiplied with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coefficient {
    /// A known number; 0 where the value does not depend on the coordinate.
    Number(i64),
    /// A value that is the same for all threads but is not known here: the node where it is written, by its bytes.
    Symbol(Symbol),
    /// Not known, or not linear.
    Unknown,
}

/// A run-time factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Symbol {
    /// First byte of its text.
    pub start: u32,
    /// One past the last.
    pub end: u32,
    /// Whether a template parameter is in it, so that it may be anything, 1 included.
    pub template: bool,
    /// Whether the coefficient is a multiple of it: `4 * n`, `n * m`.
    pub scaled: bool,
}

impl Coefficient {
    /// Not dependent.
    pub const ZERO: Self = Self::Number(0);

    fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Number(left), Self::Number(right)) => {
                left.checked_add(right).map_or(Self::Unknown, Self::Number)
            }
            (Self::Number(0), symbol) | (symbol, Self::Number(0)) => symbol,
            _ => Self::Unknown,
        }
    }

    fn times(self, factor: i64) -> Self {
        match self {
            Self::Number(number) => number.checked_mul(factor).map_or(Self::Unknown, Self::Number),
            Self::Symbol(_) if factor == 0 => Self::ZERO,
            Self::Symbol(symbol) if factor > 0 => {
                Self::Symbol(Symbol { scaled: symbol.scaled || factor > 1, ..symbol })
            }
            _ => Self::Unknown,
        }
    }

    fn times_symbol(self, symbol: Symbol) -> Self {
        match self {
            Self::Number(0) => self,
            Self::Number(factor @ 1..) => {
                Self::Symbol(Symbol { scaled: symbol.scaled || factor > 1, ..symbol })
            }
            // The product of two run-time factors: the outer one names it.
            Self::Symbol(inner) => {
                Self::Symbol(Symbol { template: inner.template || symbol.template, scaled: true, ..symbol })
            }
            _ => Self::Unknown,
        }
    }

    fn divided(self, divisor: i64) -> Self {
        match self {
            Self::Number(number) if divisor != 0 && number % divisor == 0 => Self::Number(number / divisor),
            _ => Self::Unknown,
        }
    }
}

/// The loop variables with which an index goes up by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// None.
    None,
    /// One, by its number among the function's variables.
    Variable(u32),
    /// Scaled ones, or several of which none is known to be the innermost.
    Many,
}

/// The dependence of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Index {
    /// The coefficient of `threadIdx.x`.
    pub x: Coefficient,
    /// The coefficient of `threadIdx.y`.
    pub y: Coefficient,
    /// The coefficient of `threadIdx.z`.
    pub z: Coefficient,
    /// Whether `blockIdx` is in it.
    pub block: bool,
    /// Whether `blockIdx` is multiplied by a value of the run other than `blockDim`.
    pub block_scaled: bool,
    /// Whether it is `blockDim` itself.
    pub width: bool,
    /// Whether it differs between warps in another way (`threadIdx.x / 32`), the same for all threads of one warp.
    pub warp: bool,
    /// The innermost loop's part in it.
    pub step: Step,
    /// Whether it changes in a loop.
    pub looped: bool,
    /// Whether a template parameter without a known value is in it.
    pub template: bool,
    /// What constants add to it.
    pub offset: i64,
}

impl Index {
    /// The same for all threads, whatever it is.
    pub const UNIFORM: Self = Self {
        x: Coefficient::ZERO,
        y: Coefficient::ZERO,
        z: Coefficient::ZERO,
        block: false,
        block_scaled: false,
        width: false,
        warp: false,
        step: Step::None,
        looped: false,
        template: false,
        offset: 0,
    };

    /// Nothing is known.
    pub const UNKNOWN: Self =
        Self { x: Coefficient::Unknown, y: Coefficient::Unknown, z: Coefficient::Unknown, ..Self::UNIFORM };

    /// A constant.
    pub fn constant(value: i64) -> Self {
        Self { offset: value, ..Self::UNIFORM }
    }

    /// Whether the threads of a block all have the same value, as far as can be seen.
    pub fn is_uniform(self) -> bool {
        self.x == Coefficient::ZERO && self.y == Coefficient::ZERO && self.z == Coefficient::ZERO
    }

    /// Whether it can be anything.
    pub fn is_unknown(self) -> bool {
        [self.x, self.y, self.z].contains(&Coefficient::Unknown)
    }

    /// Whether it may differ between the threads of a grid.
    pub fn varies(self) -> bool {
        !self.is_uniform() || self.block || self.warp
    }

    /// Whether it is `threadIdx.x` with `blockIdx`, the usual global index, perhaps further on.
    pub fn is_global_thread(self) -> bool {
        self.x == Coefficient::Number(1) && self.block
    }

    fn mixed(self, other: Self) -> Self {
        Self {
            block: self.block || other.block,
            block_scaled: self.block_scaled || other.block_scaled,
            width: false,
            warp: self.warp || other.warp,
            looped: self.looped || other.looped,
            template: self.template || other.template,
            ..self
        }
    }

    /// The sum.
    pub fn plus(self, other: Self) -> Self {
        Self {
            x: self.x.plus(other.x),
            y: self.y.plus(other.y),
            z: self.z.plus(other.z),
            step: match (self.step, other.step) {
                (Step::None, step) | (step, Step::None) => step,
                // One goes up by one, whatever the others do.
                (Step::Many, Step::Variable(id)) | (Step::Variable(id), Step::Many) => Step::Variable(id),
                _ => Step::Many,
            },
            offset: self.offset.saturating_add(other.offset),
            ..self.mixed(other)
        }
    }

    /// Times a known number.
    pub fn times(self, factor: i64) -> Self {
        Self {
            x: self.x.times(factor),
            y: self.y.times(factor),
            z: self.z.times(factor),
            step: if factor == 1 || self.step == Step::None { self.step } else { Step::Many },
            offset: self.offset.saturating_mul(factor),
            width: self.width && factor == 1,
            ..self
        }
    }

    /// The negative.
    pub fn negative(self) -> Self {
        self.times(-1)
    }

    /// Times a value that is the same for all threads and written at `symbol`.
    pub fn times_symbol(self, other: Self, symbol: Symbol) -> Self {
        Self {
            x: self.x.times_symbol(symbol),
            y: self.y.times_symbol(symbol),
            z: self.z.times_symbol(symbol),
            step: if self.step == Step::None && other.step == Step::None { Step::None } else { Step::Many },
            offset: 0,
            block_scaled: self.block_scaled
                || other.block_scaled
                || self.block && !other.width
                || other.block && !self.width,
            ..self.mixed(other)
        }
    }

    /// Elements of `from` bytes counted as elements of `to` bytes.
    pub fn rescaled(self, from: i64, to: i64) -> Self {
        if from == to {
            return self;
        }
        let bytes = self.times(from);
        Self {
            x: bytes.x.divided(to),
            y: bytes.y.divided(to),
            z: bytes.z.divided(to),
            offset: bytes.offset.checked_div(to).unwrap_or(0),
            ..bytes
        }
    }

    /// Divided by a known positive number.
    pub fn divided(self, divisor: i64) -> Self {
        let rest = Self {
            step: if self.step == Step::None { Step::None } else { Step::Many },
            offset: 0,
            width: false,
            ..self
        };
        if divisor == 1 {
            self
        } else if self.is_uniform() {
            rest
        } else if self.only_x() && is_whole_warps(divisor) {
            Self { x: Coefficient::ZERO, warp: true, ..rest }
        } else {
            Self { block: self.block, warp: self.warp, looped: self.looped, ..Self::UNKNOWN }
        }
    }

    /// The rest after division by a known positive number.
    pub fn remainder(self, divisor: i64) -> Self {
        if self.is_uniform() || (self.only_x() && is_whole_warps(divisor)) {
            Self { step: if self.step == Step::None { Step::None } else { Step::Many }, width: false, ..self }
        } else {
            Self { block: self.block, warp: self.warp, looped: self.looped, ..Self::UNKNOWN }
        }
    }

    fn only_x(self) -> bool {
        self.x == Coefficient::Number(1) && self.y == Coefficient::ZERO && self.z == Coefficient::ZERO
    }
}

/// Threads that run in step, on every device so far.
pub const WARP: i64 = 32;

/// Whether `count` threads are whole warps, so that dividing by it does not split one.
fn is_whole_warps(count: i64) -> bool {
    count > 0 && count % WARP == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const TX: Index = Index { x: Coefficient::Number(1), ..Index::UNIFORM };
    const N: Symbol = Symbol { start: 3, end: 4, template: false, scaled: false };

    #[test]
    fn linear_in_the_thread() {
        let global = TX.plus(Index { block: true, ..Index::UNIFORM });
        assert!(global.is_global_thread());
        assert_eq!(global.times(4).plus(Index::constant(3)).x, Coefficient::Number(4));
        assert_eq!(global.times(4).plus(Index::constant(3)).offset, 3);
        assert_eq!(TX.times_symbol(Index::UNIFORM, N).x, Coefficient::Symbol(N));
        assert_eq!(TX.plus(TX.negative()).x, Coefficient::ZERO);
        assert!(TX.times_symbol(Index::UNIFORM, N).plus(TX).is_unknown());
        assert!(TX.times(i64::MAX).times(2).is_unknown());
        let multiple = Coefficient::Symbol(Symbol { scaled: true, ..N });
        assert_eq!(TX.times(4).times_symbol(Index::UNIFORM, N).x, multiple);
        assert_eq!(TX.times_symbol(Index::UNIFORM, N).times(4).x, multiple);
        assert_eq!(TX.times_symbol(Index::UNIFORM, N).times_symbol(Index::UNIFORM, N).x, multiple);
    }

    #[test]
    fn whole_warps_divide_and_parts_of_one_do_not() {
        assert_eq!(TX.divided(32).x, Coefficient::ZERO);
        assert!(TX.divided(32).varies());
        assert_eq!(TX.remainder(32).x, Coefficient::Number(1));
        assert!(TX.divided(16).is_unknown());
        assert!(TX.remainder(4).is_unknown());
        assert!(TX.times(2).divided(32).is_unknown());
    }

    #[test]
    fn a_vector_pointer_counts_in_vectors() {
        assert_eq!(TX.times(4).rescaled(4, 16).x, Coefficient::Number(1));
        assert!(TX.times(2).rescaled(4, 16).is_unknown());
        assert_eq!(TX.rescaled(16, 4).x, Coefficient::Number(4));
    }
}
