//! `wmma.load`, `wmma.store`: fragments from and to memory.
//!
//! Source: PTX ISA, "Warp-level Matrix Load Instruction: wmma.load". All lanes give the same address and the same stride, the elements
//! between the beginnings of rows (of columns, for `.col`). Each register is filled by an access of the warp; elements of one
//! that do not lie side by side are accessed one after the other.

use crate::code::{Handler, NONE, Op, handler};
use crate::counters::Direction;
use crate::machine::access::{Addresses, Space, addresses};
use crate::machine::lanes::lanes;
use crate::machine::matrix::MATRIX;
use crate::machine::{Exec, Next};

/// A fragment and where it lies in memory.
#[derive(Debug, Clone)]
pub struct Fragment {
    /// By register, lane and element: row and column.
    pub places: Vec<(u16, u16)>,
    /// Registers that are moved; those beyond them repeat the first.
    pub distinct: usize,
    /// Registers.
    pub registers: usize,
    /// Elements of a register.
    pub count: usize,
    /// Bits of an element.
    pub bits: u64,
    /// Columns lie side by side in memory, not rows.
    pub by_columns: bool,
    /// Elements between rows (columns), where the instruction does not say.
    pub stride: u64,
}

/// Slots: 4 the address, 5 the stride ([`NONE`] for none), 6 the fragment, 7 its registers in the list.
pub(crate) fn load<S: Space>() -> Handler {
    handler!(where <S: Space> run_load::<S>)
}

/// The same.
pub(crate) fn store<S: Space>() -> Handler {
    handler!(where <S: Space> run_store::<S>)
}

/// The accesses of a register: how many, bytes and elements of each.
fn accesses(fragment: &Fragment, stride_of: impl Fn(u16, u16) -> u64) -> (usize, u64) {
    let ends = [fragment.places[0], fragment.places[fragment.count - 1]];
    let [first, last] = ends.map(|(row, column)| stride_of(row, column));
    let together = last.wrapping_sub(first) == (fragment.count as u64 - 1);
    if together || fragment.bits < 8 {
        (1, fragment.count as u64 * fragment.bits / 8)
    } else {
        (fragment.count, fragment.bits / 8)
    }
}

#[inline(always)]
unsafe fn run_load<S: Space>(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    // SAFETY: lowering makes ops of this form.
    unsafe { run::<S>(x, op, mask, Direction::Load) }
}

#[inline(always)]
unsafe fn run_store<S: Space>(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    // SAFETY: lowering makes ops of this form.
    unsafe { run::<S>(x, op, mask, Direction::Store) }
}

#[inline(always)]
unsafe fn run<S: Space>(x: &mut Exec<'_>, op: &Op, mask: u32, way: Direction) -> Next {
    if let Some(next) = x.meet(mask) {
        return next;
    }
    let live = x.group.mask;
    let fragment = &x.code.fragments[op.slots[MATRIX] as usize];
    // SAFETY: lowering makes ops of this form; addresses are checked before they are used.
    unsafe {
        let base = addresses(x, op, live, 1);
        let stride_of_lane = |lane: usize| match op.slots[5] {
            NONE => fragment.stride,
            slot => u64::from(x.registers.get::<u32>(slot, lane)),
        };
        let strides: [u64; 32] = std::array::from_fn(stride_of_lane);
        let index = |(row, column): (u16, u16), stride: u64| {
            let (row, column) = (u64::from(row), u64::from(column));
            if fragment.by_columns { column * stride + row } else { row * stride + column }
        };
        let (parts, size) = accesses(fragment, |row, column| index((row, column), 1 << 20));
        let list = x.list(op, 0, fragment.registers);
        for register in 0..fragment.distinct {
            for part in 0..parts {
                let place = |lane: usize| fragment.places[(register * 32 + lane) * fragment.count + part];
                let by_lane: [u64; 32] = std::array::from_fn(|lane| {
                    let lane = if live >> lane & 1 == 1 { lane } else { live.trailing_zeros() as usize };
                    base.by_lane[lane].wrapping_add(index(place(lane), strides[lane]) * fragment.bits / 8)
                });
                if let Some(next) = access::<S>(x, op, by_lane, size, (list, register, part), way) {
                    return next;
                }
            }
        }
        if way == Direction::Load {
            for register in fragment.distinct..fragment.registers {
                let from = list[register % fragment.distinct];
                for lane in lanes(live) {
                    let value = x.registers.get::<u32>(from, lane);
                    x.registers.set(list[register], lane, value);
                }
            }
        }
    }
    Next::Advance
}

/// One access of the warp: `size` bytes a lane of a register, at `part` times as many from its low end.
#[inline(always)]
unsafe fn access<S: Space>(
    x: &mut Exec<'_>,
    op: &Op,
    by_lane: [u64; 32],
    size: u64,
    (list, register, part): (&[u32], usize, usize),
    way: Direction,
) -> Option<Next> {
    let live = x.group.mask;
    let first = by_lane.iter().copied().fold(u64::MAX, u64::min);
    let end = by_lane.iter().copied().fold(0, u64::max).saturating_add(size);
    let bits = by_lane.iter().fold(0, |all, address| all | address);
    let a = Addresses { by_lane, first, end, bits };
    let what = if way == Direction::Load { "wmma.load" } else { "wmma.store" };
    x.count_access::<S>(&a, live, size, way);
    if a.bits & (size - 1) != 0 {
        return Some(x.access_fault::<S>(what, &a, live, size));
    }
    let (r, slot) = (x.registers, list[register]);
    let (from, bytes) = (part * size as usize, size as usize);
    // SAFETY: the caller's promise; a cell holds the part, and `pointer` checks memory.
    unsafe {
        let cell = |lane: usize| match size {
            8 => r.row::<u64>(slot).add(lane).cast::<u8>(),
            _ => r.row::<u32>(slot).add(lane).cast::<u8>().add(from),
        };
        x.check_access::<S>(op, &a, live, size, way, &|lane, value| {
            value.as_mut_ptr().copy_from_nonoverlapping(cell(lane), bytes);
        });
        for lane in lanes(live) {
            match S::pointer(x, a.by_lane[lane], size) {
                Ok(pointer) if way == Direction::Load => cell(lane).copy_from_nonoverlapping(pointer, bytes),
                Ok(pointer) => pointer.copy_from_nonoverlapping(cell(lane), bytes),
                Err(_) => return Some(x.access_fault::<S>(what, &a, live, size)),
            }
        }
    }
    None
}
