//! The compact form of an instruction: what the machine runs.

use crate::machine::{Exec, Next};

/// What runs an op for the lanes of `mask`, a nonempty subset of the running group's lanes.
///
/// # Safety
/// The op's slots must name rows of the frame that `Exec` points at, of the classes that the handler was chosen for, and
/// the processor must have the features that the handler was compiled for. Lowering guarantees both.
pub type Handler = unsafe fn(&mut Exec<'_>, &Op, u32) -> Next;

/// How wide a register is: its lanes lie side by side in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// A bit a lane: one `u32` for the warp.
    Predicate,
    /// Up to 32 bits: `[u32; 32]`. Types of 8 and 16 bits lie in the low bits; the others are unspecified.
    Single,
    /// 64 bits: `[u64; 32]`.
    Double,
    /// 128 bits: `[u128; 32]`.
    Quad,
}

impl Class {
    /// Rows of 32 words of 32 bits; for predicates, masks.
    #[must_use]
    pub fn rows(self) -> u32 {
        match self {
            Self::Predicate | Self::Single => 1,
            Self::Double => 2,
            Self::Quad => 4,
        }
    }
}

/// Bytes of a row: 32 lanes of 4 bytes.
pub const ROW: u32 = 128;

/// Set in a slot that lies among the program's constants instead of the frame's registers.
pub const CONSTANT: u32 = 1 << 31;

/// A slot that names nothing.
pub const NONE: u32 = u32::MAX;

/// Slots of an op.
pub const SLOTS: usize = 8;

/// A lowered instruction: one cache line.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub struct Op {
    /// What runs it.
    pub run: Handler,
    /// An immediate: an address offset, a branch target.
    pub immediate: i64,
    /// Operands: byte offsets of rows in the frame, or among the constants ([`CONSTANT`]); indices of masks for
    /// predicates. Their meaning is the handler's.
    pub slots: [u32; SLOTS],
    /// Index of the guard's mask. Mask 0 is all ones: no guard.
    pub guard: u16,
    /// [`HIDDEN`], [`ATOMIC`], [`LEAVES`], [`JUMPS`], [`PICKS`].
    pub flags: u16,
    /// Handler's own.
    pub aux: u32,
    /// XORed into the guard's mask.
    pub negate: u32,
}

/// The op does not stand in the PTX text: it is not counted.
pub const HIDDEN: u16 = 1;
/// The op is an atomic on memory that other blocks see: its first slot is what was there.
pub const ATOMIC: u16 = 2;

/// The op ends its lanes' function or kernel.
pub const LEAVES: u16 = 4;
/// The op sends its lanes to op [`Op::immediate`].
pub const JUMPS: u16 = 8;
/// The op sends its lanes to ops of the table [`Op::aux`].
pub const PICKS: u16 = 16;

/// Makes a [`Handler`] of an `#[inline(always)]` function, compiled for the processor's vectors where it has them. Generic
/// parameters that the function's path uses are declared again: `handler!(where <T: Lane> run::<T>)`.
macro_rules! handler {
    ($(where <$($G:ident: $B:path),*>)? $function:expr) => {{
        unsafe fn plain$(<$($G: $B),*>)?(
            x: &mut $crate::machine::Exec<'_>,
            op: &$crate::code::Op,
            mask: u32,
        ) -> $crate::machine::Next {
            // SAFETY: the caller's promise is the callee's.
            unsafe { $function(x, op, mask) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,bmi1,bmi2,lzcnt,popcnt,f16c")]
        unsafe fn wide$(<$($G: $B),*>)?(
            x: &mut $crate::machine::Exec<'_>,
            op: &$crate::code::Op,
            mask: u32,
        ) -> $crate::machine::Next {
            // SAFETY: the caller's promise is the callee's.
            unsafe { $function(x, op, mask) }
        }
        #[cfg(target_arch = "x86_64")]
        let chosen: $crate::code::Handler = if $crate::code::has_wide_vectors() {
            wide$(::<$($G),*>)?
        } else {
            plain$(::<$($G),*>)?
        };
        #[cfg(not(target_arch = "x86_64"))]
        let chosen: $crate::code::Handler = plain$(::<$($G),*>)?;
        chosen
    }};
}
pub(crate) use handler;

/// Does this processor have what the second version of each handler is compiled for?
#[cfg(target_arch = "x86_64")]
#[must_use]
pub fn has_wide_vectors() -> bool {
    use std::sync::OnceLock;
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt")
            && is_x86_feature_detected!("f16c")
    })
}
