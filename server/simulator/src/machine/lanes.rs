//! Loops over the 32 lanes of a warp.
//!
//! An instruction is given as its scalar meaning, a closure; [`map1`] and its kin apply it to rows of registers. Rows are
//! read in pieces of eight lanes by value, so that the compiler sees no aliasing between sources and destination and makes
//! vector code of the loop.

use crate::code::{CONSTANT, Class, NONE, Op};
use crate::machine::Exec;

/// All lanes.
pub const FULL: u32 = u32::MAX;

/// Lanes that are read, computed and written together.
const PIECE: usize = 8;

/// A type that a lane holds in a register.
pub trait Lane: Copy + Default {
    /// What the register keeps for a lane.
    type Cell: Copy + Default;
    /// The class of the register.
    const CLASS: Class;
    /// The value in a register; what lies above a narrow type is ignored.
    fn read(cell: Self::Cell) -> Self;
    /// The register for a value; above an unsigned narrow type zeros, above a signed one its sign.
    fn write(self) -> Self::Cell;
}

/// `[f(0), f(1), …]`, as a plain loop: that of [`std::array::from_fn`] and of `map` is not always inlined into functions that are
/// compiled for wider vectors, and then calls `f` lane by lane.
#[inline(always)]
pub(crate) fn each<R: Copy + Default, const N: usize>(f: impl Fn(usize) -> R) -> [R; N] {
    let mut all = [R::default(); N];
    for (i, one) in all.iter_mut().enumerate() {
        *one = f(i);
    }
    all
}

macro_rules! lane {
    ($($ty:ty: $cell:ty, $class:ident, |$c:ident| $read:expr, |$v:ident| $write:expr;)*) => {$(
        impl Lane for $ty {
            type Cell = $cell;
            const CLASS: Class = Class::$class;
            #[inline(always)]
            fn read($c: $cell) -> Self { $read }
            #[inline(always)]
            fn write(self) -> $cell { let $v = self; $write }
        }
    )*};
}
lane! {
    u8: u32, Single, |c| c as u8, |v| u32::from(v);
    i8: u32, Single, |c| c as i8, |v| i32::from(v) as u32;
    u16: u32, Single, |c| c as u16, |v| u32::from(v);
    i16: u32, Single, |c| c as i16, |v| i32::from(v) as u32;
    u32: u32, Single, |c| c, |v| v;
    i32: u32, Single, |c| c as i32, |v| v as u32;
    f32: u32, Single, |c| f32::from_bits(c), |v| v.to_bits();
    u64: u64, Double, |c| c, |v| v;
    i64: u64, Double, |c| c as i64, |v| v as u64;
    f64: u64, Double, |c| f64::from_bits(c), |v| v.to_bits();
    u128: u128, Quad, |c| c, |v| v;
}

/// Where the registers of the current frame and the program's constants lie.
#[derive(Clone, Copy)]
pub(crate) struct Registers {
    /// The frame's rows; the constants' rows.
    pub bases: [*mut u8; 2],
    /// The frame's masks.
    pub predicates: *mut u32,
}

/// All of these are unsafe for one reason: a slot must name a row of the cell's class (or the index of a mask) of the current
/// frame or of the constants; what is written must not be a constant; a lane is below 32. Lowering makes only such slots.
#[allow(clippy::missing_safety_doc)]
impl Registers {
    /// The row that a slot names, as 32 cells.
    #[inline(always)]
    pub unsafe fn row<C>(self, slot: u32) -> *mut C {
        let base = self.bases[(slot >> 31) as usize];
        // SAFETY: the caller's promise.
        unsafe { base.add((slot & !CONSTANT) as usize).cast() }
    }

    /// A lane's value.
    #[inline(always)]
    pub unsafe fn get<T: Lane>(self, slot: u32, lane: usize) -> T {
        // SAFETY: the caller's promise.
        unsafe { T::read(self.row::<T::Cell>(slot).add(lane).read()) }
    }

    /// Sets a lane's value.
    #[inline(always)]
    pub unsafe fn set<T: Lane>(self, slot: u32, lane: usize, value: T) {
        // SAFETY: the caller's promise.
        unsafe { self.row::<T::Cell>(slot).add(lane).write(value.write()) }
    }

    /// A predicate's mask.
    #[inline(always)]
    pub unsafe fn predicate(self, slot: u32) -> u32 {
        // SAFETY: the caller's promise.
        unsafe { *self.predicates.add(slot as usize) }
    }

    /// Sets the bits of `mask` in a predicate; [`NONE`](crate::code::NONE) takes nothing.
    #[inline(always)]
    pub unsafe fn set_predicate(self, slot: u32, mask: u32, value: u32) {
        if slot == NONE {
            return;
        }
        // SAFETY: the caller's promise.
        unsafe {
            let at = self.predicates.add(slot as usize);
            *at = (*at & !mask) | (value & mask);
        }
    }

    /// Eight lanes from `at` on, which is at most 24.
    #[inline(always)]
    pub unsafe fn piece<T: Lane>(self, slot: u32, at: usize) -> [T; PIECE] {
        // SAFETY: the caller's promise.
        let cells = unsafe { self.row::<T::Cell>(slot).add(at).cast::<[T::Cell; PIECE]>().read() };
        each(|i| T::read(cells[i]))
    }

    /// Writes `f(lane)` for the lanes of `mask`, eight at a time.
    #[inline(always)]
    pub unsafe fn fill<R: Lane>(self, slot: u32, mask: u32, f: impl Fn(usize) -> [R; PIECE]) {
        for at in (0..32).step_by(PIECE) {
            let bits = mask >> at;
            let values = f(at);
            let new: [R::Cell; PIECE] = each(|i| values[i].write());
            // SAFETY: the caller's promise.
            unsafe {
                let place = self.row::<R::Cell>(slot).add(at).cast::<[R::Cell; PIECE]>();
                if mask == FULL {
                    place.write(new);
                } else {
                    let old = place.read();
                    place.write(each(|i| if bits >> i & 1 == 1 { new[i] } else { old[i] }));
                }
            }
        }
    }
}

/// The set bits of a mask, lowest first.
#[inline(always)]
pub fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    let mut left = mask;
    std::iter::from_fn(move || {
        (left != 0).then(|| {
            let lane = left.trailing_zeros() as usize;
            left &= left - 1;
            lane
        })
    })
}

/// Fewer lanes than this are done one by one.
const FEW: u32 = 4;

macro_rules! map {
    ($name:ident, $($t:ident $a:ident $slot:literal),*) => {
        /// `d = f(sources)`: `d` is slot 0, the sources are the slots after it.
        ///
        /// # Safety
        /// The slots must name rows of the classes of these types.
        #[inline(always)]
        pub(crate) unsafe fn $name<$($t: Lane,)* R: Lane>(x: &mut Exec<'_>, op: &Op, mask: u32, f: impl Fn($($t),*) -> R) {
            let r = x.registers;
            // SAFETY: the caller's promise.
            unsafe {
                if mask.count_ones() < FEW {
                    for lane in lanes(mask) {
                        r.set(op.slots[0], lane, f($(r.get::<$t>(op.slots[$slot], lane)),*));
                    }
                    return;
                }
                r.fill(op.slots[0], mask, |at| {
                    $(let $a: [$t; PIECE] = r.piece(op.slots[$slot], at);)*
                    each(|i| f($($a[i]),*))
                });
            }
        }
    };
}
map!(map1, A a 1);
map!(map2, A a 1, B b 2);
map!(map3, A a 1, B b 2, C c 3);

/// The mask of the lanes for which `f(a, b)` holds: slots `first` and `first + 1`. All lanes are asked.
///
/// # Safety
/// The slots must name rows of `T`'s class.
#[inline(always)]
pub(crate) unsafe fn test<T: Lane>(x: &Exec<'_>, op: &Op, first: usize, f: impl Fn(T, T) -> bool) -> u32 {
    let r = x.registers;
    let mut mask = 0;
    for at in (0..32).step_by(PIECE) {
        // SAFETY: the caller's promise.
        let (a, b) = unsafe { (r.piece::<T>(op.slots[first], at), r.piece::<T>(op.slots[first + 1], at)) };
        let bits: [u32; PIECE] = each(|i| u32::from(f(a[i], b[i])) << i);
        mask |= bits.iter().fold(0, |all, bit| all | bit) << at;
    }
    mask
}
