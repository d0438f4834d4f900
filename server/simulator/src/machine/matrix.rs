//! Instructions of tensor cores: a warp's lanes hold matrices together.
//!
//! What an instruction's shape and types mean is looked up once, when it is lowered, and kept as a [`Matrix`]: for each
//! register, lane and element where it lies in its matrix. Running one gathers the fragments into scratch memory, multiplies
//! ([`crate::math::tensor`]) and scatters the result.

pub(crate) mod fragment;
pub(crate) mod group;
pub(crate) mod multiply;
pub(crate) mod rows;
pub(crate) mod sparse;
pub(crate) mod wide;

use crate::code::Op;
use crate::machine::warp::{Group, Wait};
use crate::machine::{Exec, Next};
use crate::math::tensor::{Parts, Sum};

/// What an element of a factor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    /// `.f16`.
    F16,
    /// `.bf16`.
    Bf16,
    /// `.tf32`.
    Tf32,
    /// `.e4m3`.
    E4m3,
    /// `.e5m2`.
    E5m2,
    /// `.f64`.
    F64,
    /// `.s8`.
    S8,
    /// `.u8`.
    U8,
    /// `.s4`.
    S4,
    /// `.u4`.
    U4,
    /// `.b1`.
    B1,
}

impl Element {
    /// Bits of it.
    #[must_use]
    pub const fn bits(self) -> usize {
        match self {
            Self::F64 => 64,
            Self::Tf32 => 32,
            Self::F16 | Self::Bf16 => 16,
            Self::E4m3 | Self::E5m2 | Self::S8 | Self::U8 => 8,
            Self::S4 | Self::U4 => 4,
            Self::B1 => 1,
        }
    }

    /// Elements of a register.
    #[must_use]
    pub const fn per_register(self) -> usize {
        if matches!(self, Self::F64) { 1 } else { 32 / self.bits() }
    }
}

/// What accumulators and results are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// `.f16`, two a register.
    F16,
    /// `.f32`.
    F32,
    /// `.f64`.
    F64,
    /// `.s32`.
    S32,
}

/// What is done with bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Logic {
    /// `.xor.popc`.
    Xor,
    /// `.and.popc`.
    And,
}

/// A multiplication of matrices, or a fragment that is loaded or stored, as its instruction describes it.
#[derive(Debug, Clone)]
pub struct Matrix {
    /// Rows of `a`, columns of `b`, and what is summed over: `m`, `n`, `k`.
    pub shape: [usize; 3],
    /// Elements of `a`.
    pub a: Element,
    /// Elements of `b`.
    pub b: Element,
    /// The accumulator.
    pub c: Number,
    /// The result.
    pub d: Number,
    /// How products are added.
    pub sum: Sum,
    /// `.satfinite` of integers.
    pub saturate: bool,
    /// Of bits.
    pub logic: Logic,
    /// Not all of `a` and `b` is there.
    pub padded: bool,
    /// Of a sparse `a`: which lanes of four hold what is where.
    pub sparse: Option<u32>,
    /// Of a sparse `a`: where each column goes, if not all stay.
    pub columns: Vec<u32>,
    /// Where elements of `a` lie (row · k + column): by register, lane, element.
    pub a_places: Vec<u32>,
    /// Where elements of `b` lie (row · n + column).
    pub b_places: Vec<u32>,
    /// Where elements of `c` lie (row · n + column): by register, lane, element.
    pub c_places: Vec<u32>,
    /// Where elements of `d` lie.
    pub d_places: Vec<u32>,
    /// Registers of `d`, `a`, `b`, `c`, in the order of the operands.
    pub registers: [usize; 4],
}

/// Room to work in, kept between instructions.
#[derive(Default)]
pub(crate) struct Scratch {
    pub a: Parts,
    pub b: Parts,
    pub packed: Parts,
    pub c: Vec<f32>,
    pub integers: [Vec<i32>; 4],
    pub doubles: [Vec<f64>; 3],
}

/// The slot, of an op with a [`Matrix`], that holds its number; the next holds where its operands begin in `Code::lists`.
pub(crate) const MATRIX: usize = 6;
/// Where more operands than an op has slots begin in `Code::lists`.
pub(crate) const LIST: usize = 7;

impl<'a> Exec<'a> {
    /// Operands of an op from `first` on.
    #[inline(always)]
    pub(crate) fn list(&self, op: &Op, first: usize, count: usize) -> &'a [u32] {
        let start = op.slots[LIST] as usize + first;
        &self.code.lists[start..start + count]
    }

    /// The op's matrices.
    #[inline(always)]
    pub(crate) fn matrix(&self, op: &Op) -> &'a Matrix {
        &self.code.matrices[op.slots[MATRIX] as usize]
    }

    /// Lanes wait for each other in instructions of one kind.
    const ALL_LANES: u32 = 40;

    /// Waits until all lanes of the warp are at an `.aligned` instruction; then the group holds all of them. `None` when
    /// they are.
    #[inline(always)]
    pub(crate) fn meet(&mut self, mask: u32) -> Option<Next> {
        if mask == self.warp.live && self.group.mask == mask {
            self.group.wait = Wait::Nothing;
            return None;
        }
        self.meet_others(mask)
    }

    #[inline(never)]
    fn meet_others(&mut self, mask: u32) -> Option<Next> {
        let wait = Wait::Lanes { members: u32::MAX, kind: Self::ALL_LANES };
        let (frame, pc) = (self.group.frame, self.group.pc);
        let here = |g: &Group| g.wait == wait && g.frame == frame && g.pc == pc;
        let arrived = mask | self.warp.groups.iter().filter(|g| here(g)).fold(0, |m, g| m | g.mask);
        let rest = self.group.mask & !mask;
        if rest != 0 {
            self.warp.add(Group { pc: pc + 1, mask: rest, wait: Wait::Nothing, ..self.group });
            self.group.mask = mask;
        }
        if self.warp.live & !arrived == 0 {
            self.warp.groups.retain(|g| !here(g));
            self.group.mask = arrived;
            self.group.wait = Wait::Nothing;
            self.enter();
            return None;
        }
        self.check_waiting(self.warp.live & !arrived);
        Some(self.wait(wait))
    }

    /// The scratch memory; give it back to the warp.
    #[inline(always)]
    pub(crate) fn scratch(&mut self) -> Box<Scratch> {
        self.warp.scratch.take().unwrap_or_default()
    }
}
