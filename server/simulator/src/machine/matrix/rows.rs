//! `ldmatrix`, `stmatrix`, `movmatrix`: matrices of 8 rows of 16 bytes.
//!
//! Source: PTX ISA, "Warp-level Matrix Load Instruction: ldmatrix": lane `8 j + i` gives the address of row `i` of matrix `j`;
//! register `j` of lane `l` holds the elements `2 (l % 4)` and the one after it of row `l / 4`, or, transposed, of column `l / 4`.

use crate::code::{Handler, Op, handler};
use crate::counters::Direction;
use crate::machine::access::{Addresses, Space, addresses};
use crate::machine::lanes::lanes;
use crate::machine::{Exec, Next};

/// Bytes of a row.
const ROW: usize = 16;
/// Rows of a matrix.
const ROWS: usize = 8;

/// In `Op::slots[5]`: rows and columns change places.
pub(crate) const TRANSPOSED: u32 = 8;

/// Where the two elements of a lane lie in a matrix, in elements of 16 bits.
#[inline(always)]
fn places(lane: usize, transposed: bool) -> [usize; 2] {
    let (major, minor) = (lane / 4, 2 * (lane % 4));
    if transposed {
        [minor * ROWS + major, (minor + 1) * ROWS + major]
    } else {
        [major * ROWS + minor, major * ROWS + minor + 1]
    }
}

/// `ldmatrix` to slots 0 to 3; slot 4 is the address, slot 5 a number: the matrices, with [`TRANSPOSED`].
pub(crate) fn load<S: Space>() -> Handler {
    handler!(where <S: Space> run_load::<S>)
}

/// `stmatrix`, from the same slots.
pub(crate) fn store<S: Space>() -> Handler {
    handler!(where <S: Space> run_store::<S>)
}

/// Addresses of the rows, or the fault that they are; the lanes that give them.
#[inline(always)]
unsafe fn rows<S: Space>(x: &mut Exec<'_>, op: &Op, way: Direction) -> Result<(Addresses, u32), Next> {
    let count = (op.slots[5] & 7) as usize;
    let mask = x.group.mask & (u32::MAX >> (32 - ROWS * count));
    let what = if way == Direction::Load { "ldmatrix" } else { "stmatrix" };
    // SAFETY: the caller's promise.
    let a = unsafe { addresses(x, op, mask, ROW as u64) };
    x.count_access::<S>(&a, mask, ROW as u64, way);
    if mask.count_ones() as usize != ROWS * count {
        let message = format!("{what}: lanes that give addresses have exited");
        return Err(x.fault(crate::machine::FaultKind::Trap, 0, None, message));
    }
    if a.bits % ROW as u64 != 0 {
        return Err(x.access_fault::<S>(what, &a, mask, ROW as u64));
    }
    for lane in lanes(mask) {
        if S::local(a.by_lane[lane]).is_some() || S::pointer(x, a.by_lane[lane], ROW as u64).is_err() {
            return Err(x.access_fault::<S>(what, &a, mask, ROW as u64));
        }
    }
    Ok((a, mask))
}

#[inline(always)]
unsafe fn run_load<S: Space>(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    if let Some(next) = x.meet(mask) {
        return next;
    }
    let live = x.group.mask;
    let (count, transposed) = ((op.slots[5] & 7) as usize, op.slots[5] & TRANSPOSED != 0);
    // SAFETY: lowering makes ops of this form; `rows` checks the addresses.
    unsafe {
        let (a, reading) = match rows::<S>(x, op, Direction::Load) {
            Ok(found) => found,
            Err(next) => return next,
        };
        x.check_access::<S>(op, &a, reading, ROW as u64, Direction::Load, &|_, _| {});
        let mut all = [[0u16; ROWS * ROWS]; 4];
        for (at, matrix) in all[..count].iter_mut().enumerate() {
            for (row, to) in matrix.chunks_mut(ROWS).enumerate() {
                if let Ok(from) = S::pointer(x, a.by_lane[at * ROWS + row], ROW as u64) {
                    to.copy_from_slice(&from.cast::<[u16; ROWS]>().read_unaligned());
                }
            }
        }
        for (at, matrix) in all[..count].iter().enumerate() {
            for lane in lanes(live) {
                let [low, high] = places(lane, transposed).map(|at| u32::from(matrix[at]));
                x.registers.set::<u32>(op.slots[at], lane, low | high << 16);
            }
        }
    }
    Next::Advance
}

#[inline(always)]
unsafe fn run_store<S: Space>(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    if let Some(next) = x.meet(mask) {
        return next;
    }
    let (count, transposed) = ((op.slots[5] & 7) as usize, op.slots[5] & TRANSPOSED != 0);
    // SAFETY: as in `run_load`.
    unsafe {
        let (a, writing) = match rows::<S>(x, op, Direction::Store) {
            Ok(found) => found,
            Err(next) => return next,
        };
        let mut all = [[0u16; ROWS * ROWS]; 4];
        for (at, matrix) in all[..count].iter_mut().enumerate() {
            for lane in 0..32 {
                let bits = x.registers.get::<u32>(op.slots[at], lane);
                let [low, high] = places(lane, transposed);
                (matrix[low], matrix[high]) = (bits as u16, (bits >> 16) as u16);
            }
        }
        let row = |lane: usize| {
            let (at, row) = (lane / ROWS, lane % ROWS);
            all[at][row * ROWS..].first_chunk::<ROWS>().copied().unwrap_or_default()
        };
        x.check_access::<S>(op, &a, writing, ROW as u64, Direction::Store, &|lane, value| {
            value.as_mut_ptr().cast::<[u16; ROWS]>().write_unaligned(row(lane));
        });
        for lane in lanes(writing) {
            if let Ok(to) = S::pointer(x, a.by_lane[lane], ROW as u64) {
                to.cast::<[u16; ROWS]>().write_unaligned(row(lane));
            }
        }
    }
    Next::Advance
}

/// `movmatrix d, a`: transposes a matrix that the lanes hold.
pub(crate) fn transpose() -> Handler {
    handler!(run_transpose)
}

#[inline(always)]
unsafe fn run_transpose(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    if let Some(next) = x.meet(mask) {
        return next;
    }
    let mut matrix = [0u16; ROWS * ROWS];
    // SAFETY: lowering gives this op single rows.
    unsafe {
        for lane in 0..32 {
            let bits = x.registers.get::<u32>(op.slots[1], lane);
            let [low, high] = places(lane, false);
            (matrix[low], matrix[high]) = (bits as u16, (bits >> 16) as u16);
        }
        for lane in lanes(x.group.mask) {
            let [low, high] = places(lane, true).map(|at| u32::from(matrix[at]));
            x.registers.set::<u32>(op.slots[0], lane, low | high << 16);
        }
    }
    Next::Advance
}
