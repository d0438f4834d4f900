//! `cp.async.bulk.tensor`: boxes of tensors, by the description that `cuTensorMapEncodeTiled` makes.
//!
//! A description is opaque to programs; its 16 words hold here what `stub/tensors.c` writes. What a box covers beyond the
//! tensor is read as zero (or NaN) and not written. Source: PTX ISA, "Tensors", and the CUDA driver's `cuTensorMapEncodeTiled`. Copies are
//! done at once, row by row, and their bytes are told to the barrier.

use crate::code::{Handler, Op, handler};
use crate::machine::access::{Generic, Global, Kind, RANK_SHIFT, SHARED_WINDOW, SharedSpace, Space};
use crate::machine::atomic::*;
use crate::machine::fault::FaultKind;
use crate::machine::lanes::lanes;
use crate::machine::matrix::group::swizzled;
use crate::machine::mbarrier::{multicast, tell};
use crate::machine::{Exec, Next};

/// What a description begins with.
pub(crate) const MAGIC: u64 = 0x7061_6d72_6f73_6e74;
/// Bytes of a description, and their alignment.
const BYTES: u64 = 128;
const ALIGNMENT: u64 = 64;
/// Dimensions, at most.
const RANK: usize = 5;
/// Bytes that a swizzle moves together.
const CHUNK: u64 = 16;
/// Bytes of a sector.
const SECTOR: u64 = 32;

/// Bytes of an element by the number of its type; 0 for what is packed. Source: `CUtensorMapDataType` of `cuda.h`.
const SIZES: [u64; 16] = [1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4, 0, 0, 0];
/// NaN by the number of the type; 0 where there is none.
const NANS: [u64; 16] = [
    0,
    0,
    0,
    0,
    0,
    0,
    0x7fff,
    0x7fff_ffff,
    0x7fff_ffff_ffff_ffff,
    0x7fff,
    0x7fff_ffff,
    0x7fff_ffff,
    0x7fff_ffff,
    0,
    0,
    0,
];

/// A tensor and the box that is copied of it.
struct TensorMap {
    start: u64,
    rank: usize,
    /// The number of the elements' type, and its bytes.
    ty: usize,
    size: u64,
    /// Elements of each dimension.
    lengths: [u64; RANK],
    /// Bytes between elements of each dimension.
    strides: [u64; RANK],
    /// Elements of the box, and what they are apart.
    box_lengths: [u64; RANK],
    steps: [u64; RANK],
    /// Chunks that are swizzled together; 1 for none.
    span: u64,
    /// What stands for elements beyond the tensor.
    fill: u64,
}

impl TensorMap {
    /// Takes a description apart; none if it is none.
    fn new(words: &[u64; 16]) -> Option<Self> {
        if words[0] != MAGIC {
            return None;
        }
        let field = |from: u32, bits: u32| words[12] >> from & ((1 << bits) - 1);
        let (ty, rank) = (field(24, 4) as usize, field(32, 4) as usize);
        let size = SIZES[ty];
        let mut map = Self {
            start: words[1],
            rank,
            ty,
            size,
            lengths: [1; RANK],
            strides: [size; RANK],
            box_lengths: [1; RANK],
            steps: [1; RANK],
            span: [1, 2, 4, 8][field(40, 2) as usize],
            fill: if field(44, 1) == 1 { NANS[ty] } else { 0 },
        };
        for at in 0..rank.min(RANK) {
            map.lengths[at] = words[2 + at];
            map.steps[at] = if at == 0 { 1 } else { field(4 * at as u32, 4).max(1) };
            map.box_lengths[at] = (words[11] >> (12 * at) & 0xfff).div_ceil(map.steps[at]);
            if at > 0 {
                map.strides[at] = words[6 + at];
            }
        }
        (size > 0 && (1..=RANK).contains(&rank)).then_some(map)
    }

    /// Bytes of a row of the box, and how many rows.
    fn rows(&self) -> (u64, u64) {
        (self.box_lengths[0] * self.size, self.box_lengths[1..].iter().product())
    }

    /// Where row `number` of the box at `coordinates` begins in memory, bytes before it that are beyond the tensor, and bytes that are in it.
    fn row(&self, coordinates: &[i64; RANK], number: u64) -> (u64, u64, u64) {
        let first = coordinates[0];
        let (length, wanted) = (self.lengths[0] as i64, self.box_lengths[0] as i64);
        let before = (-first).clamp(0, wanted);
        let inside = (length - first.max(0)).clamp(0, wanted - before);
        let mut address = self.start.wrapping_add_signed(first.max(0) * self.size as i64);
        let mut left = number;
        let mut within = true;
        for (at, coordinate) in coordinates.iter().enumerate().take(self.rank).skip(1) {
            let index = coordinate + (left % self.box_lengths[at] * self.steps[at]) as i64;
            left /= self.box_lengths[at];
            within &= (0..self.lengths[at] as i64).contains(&index);
            address = address.wrapping_add_signed(index.wrapping_mul(self.strides[at] as i64));
        }
        let inside = if within { inside } else { 0 };
        // Nothing is accessed then; an address beyond the tensor need not be one.
        let address = if inside == 0 { self.start } else { address };
        (address, before as u64 * self.size, inside as u64 * self.size)
    }
}

/// In `Op::slots[5]`: dimensions that the instruction names.
pub(crate) const RANK_MASK: u32 = 7;

/// A copy to shared memory. Slots: 1 there, 2 the description, 3 the barrier, 4 the mask of blocks (nothing for the own), 5
/// the rank; the list holds the coordinates.
pub(crate) fn load() -> Handler {
    handler!(run_load)
}

/// A copy from shared memory, from the same slots.
pub(crate) fn store() -> Handler {
    handler!(run_store)
}

/// In `Op::slots[5]`: above this bit, the operation of a reduction.
pub(crate) const OPERATION_SHIFT: u32 = 4;

/// A reduction from shared memory, from the same slots.
pub(crate) fn reduce() -> Handler {
    handler!(run_reduce)
}

/// Updates elements in memory: to, from, bytes.
type Reducer = unsafe fn(*mut u8, *const u8, usize);

/// How elements of a type (as the map numbers it) are updated: 0 add, 1 min, 2 max, 3 inc, 4 dec, 5 and, 6 or, 7 xor.
fn reducer(operation: u32, ty: usize) -> Option<Reducer> {
    Some(match (operation, ty) {
        (0, 2 | 3) => update::<Add32>,
        (0, 4 | 5) => update::<Add64>,
        (0, 6) => update::<AddF16>,
        (0, 7 | 10) => update::<AddF32>,
        (0, 9) => update::<AddBf16>,
        (1, 2) => update::<MinU32>,
        (1, 3) => update::<MinS32>,
        (1, 4) => update::<MinU64>,
        (1, 5) => update::<MinS64>,
        (1, 6) => update::<MinF16>,
        (1, 9) => update::<MinBf16>,
        (2, 2) => update::<MaxU32>,
        (2, 3) => update::<MaxS32>,
        (2, 4) => update::<MaxU64>,
        (2, 5) => update::<MaxS64>,
        (2, 6) => update::<MaxF16>,
        (2, 9) => update::<MaxBf16>,
        (3, 2) => update::<Inc32>,
        (4, 2) => update::<Dec32>,
        (5, 2 | 3) => update::<And32>,
        (5, 4 | 5) => update::<And64>,
        (6, 2 | 3) => update::<Or32>,
        (6, 4 | 5) => update::<Or64>,
        (7, 2 | 3) => update::<Xor32>,
        (7, 4 | 5) => update::<Xor64>,
        _ => return None,
    })
}

/// The description and the coordinates that a lane gives, or the fault that they are.
unsafe fn operands(x: &mut Exec<'_>, op: &Op, lane: usize) -> Result<(TensorMap, [i64; RANK]), Next> {
    let rank = (op.slots[5] & RANK_MASK) as usize;
    // SAFETY: the caller's promise.
    let address = unsafe { x.registers.get::<u64>(op.slots[2], lane) };
    let found = Generic::pointer(x, address, BYTES).ok().filter(|_| address.is_multiple_of(ALIGNMENT));
    let Some(pointer) = found else {
        let message =
            format!("a tensor map of 128 bytes, at a multiple of 64, is expected at address {address:#x}");
        return Err(x.fault(FaultKind::IllegalAddress, lane, Some(address), message));
    };
    // SAFETY: `pointer` checked the range.
    let words = unsafe { pointer.cast::<[u64; 16]>().read_unaligned() };
    let Some(map) = TensorMap::new(&words).filter(|map| map.rank == rank) else {
        let message = format!(
            "what is at address {address:#x} is not a tensor map of {rank} dimensions: make it with cuTensorMapEncodeTiled"
        );
        return Err(x.fault(FaultKind::IllegalAddress, lane, Some(address), message));
    };
    let mut coordinates = [0; RANK];
    for (coordinate, slot) in coordinates.iter_mut().zip(x.list(op, 0, rank)) {
        // SAFETY: the caller's promise.
        *coordinate = i64::from(unsafe { x.registers.get::<i32>(*slot, lane) });
    }
    Ok((map, coordinates))
}

/// A piece of a row: up to 16 bytes that lie together in shared memory.
fn pieces(
    map: &TensorMap,
    shared: u64,
    row: u64,
    from: u64,
    bytes: u64,
) -> impl Iterator<Item = (u64, u64, u64)> {
    let (length, _) = map.rows();
    let (start, span) = (shared + row * length, map.span);
    let mut done = 0;
    std::iter::from_fn(move || {
        (done < bytes).then(|| {
            let at = start + from + done;
            let many = (CHUNK - at % CHUNK).min(bytes - done);
            let piece = (swizzled(at, span), done, many);
            done += many;
            piece
        })
    })
}

#[inline(always)]
unsafe fn run_load(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    for lane in lanes(mask) {
        // SAFETY: lowering makes ops of this form; every pointer is checked.
        unsafe {
            let (map, coordinates) = match operands(x, op, lane) {
                Ok(found) => found,
                Err(next) => return next,
            };
            let (to, barrier) =
                (x.registers.get::<u64>(op.slots[1], lane), x.registers.get::<u64>(op.slots[3], lane));
            for (number, rank) in multicast(x, op.slots[4], lane).enumerate() {
                let (to, barrier) = (of_rank(to, rank), of_rank(barrier, rank));
                if let Some(next) = load_box(x, lane, &map, &coordinates, to, number == 0) {
                    return next;
                }
                let (length, rows) = map.rows();
                if let Some(next) = tell(x, lane, barrier, length * rows) {
                    return next;
                }
            }
        }
    }
    Next::Advance
}

/// The address in shared memory of another block of the cluster; the address itself for none.
pub(crate) fn of_rank(address: u64, rank: Option<u64>) -> u64 {
    let offset = if address >= SHARED_WINDOW { address - SHARED_WINDOW } else { address };
    match rank {
        Some(rank) => offset & ((1 << RANK_SHIFT) - 1) | (rank + 1) << RANK_SHIFT,
        None => offset,
    }
}

/// Fills a box in shared memory. What goes to several blocks is read, and counted, once.
unsafe fn load_box(
    x: &mut Exec<'_>,
    lane: usize,
    map: &TensorMap,
    coordinates: &[i64; RANK],
    to: u64,
    is_first: bool,
) -> Option<Next> {
    let (length, rows) = map.rows();
    if !to.is_multiple_of(CHUNK) || SharedSpace::pointer(x, to, length * rows).is_err() {
        return Some(wrong_shared(x, lane, to, length * rows));
    }
    let mut counted = Counted::default();
    for row in 0..rows {
        let (from, before, inside) = map.row(coordinates, row);
        let Ok(source) = Global::pointer(x, from, inside) else {
            return Some(wrong_global(x, lane, from, inside));
        };
        counted.add(from, inside);
        if x.checker.is_some() {
            x.check_bulk(lane, (Kind::Global, from), (Kind::Shared, to + row * length), inside);
            // What lies beyond the tensor is written too.
            x.check_bulk(lane, (Kind::Other, 0), (Kind::Shared, to + row * length), length);
        }
        for (at, done, many) in pieces(map, to, row, 0, length) {
            let Ok(target) = SharedSpace::pointer(x, at, many) else { continue };
            // SAFETY: the pieces lie in the ranges that were checked.
            unsafe {
                if done >= before && done + many <= before + inside {
                    target.copy_from_nonoverlapping(source.add((done - before) as usize), many as usize);
                } else {
                    for byte in 0..many {
                        let place = done + byte;
                        let value = if place >= before && place < before + inside {
                            source.add((place - before) as usize).read()
                        } else {
                            (map.fill >> (8 * (place % map.size))) as u8
                        };
                        target.add(byte as usize).write(value);
                    }
                }
            }
        }
    }
    if is_first {
        counted.count(x, length * rows);
    }
    None
}

/// Calls `each` with the pieces of a box that lie in the tensor: in shared memory, in global memory, bytes.
unsafe fn store_box(
    x: &mut Exec<'_>,
    op: &Op,
    lane: usize,
    mut each: impl FnMut(*mut u8, *mut u8, usize),
) -> Option<Next> {
    // SAFETY: the caller's promise.
    let (map, coordinates) = match unsafe { operands(x, op, lane) } {
        Ok(found) => found,
        Err(next) => return Some(next),
    };
    // SAFETY: the caller's promise.
    let shared = of_rank(unsafe { x.registers.get::<u64>(op.slots[1], lane) }, None);
    let (length, rows) = map.rows();
    if !shared.is_multiple_of(CHUNK) || SharedSpace::pointer(x, shared, length * rows).is_err() {
        return Some(wrong_shared(x, lane, shared, length * rows));
    }
    let mut counted = Counted::default();
    for row in 0..rows {
        let (to, before, inside) = map.row(&coordinates, row);
        let Ok(target) = Global::pointer(x, to, inside) else {
            return Some(wrong_global(x, lane, to, inside));
        };
        counted.add(to, inside);
        x.check_bulk(lane, (Kind::Shared, shared + row * length), (Kind::Global, to), inside);
        for (at, done, many) in pieces(&map, shared, row, before, inside) {
            let Ok(source) = SharedSpace::pointer(x, at, many) else { continue };
            each(source, target.wrapping_add(done as usize), many as usize);
        }
    }
    counted.count(x, length * rows);
    None
}

#[inline(always)]
unsafe fn run_store(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    for lane in lanes(mask) {
        // SAFETY: lowering makes ops of this form; `store_box` gives checked pointers.
        let wrong =
            unsafe { store_box(x, op, lane, |from, to, bytes| to.copy_from_nonoverlapping(from, bytes)) };
        if let Some(next) = wrong {
            return next;
        }
    }
    Next::Advance
}

#[inline(always)]
unsafe fn run_reduce(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    for lane in lanes(mask) {
        // SAFETY: as in `run_store`.
        let wrong = unsafe {
            let (map, _) = match operands(x, op, lane) {
                Ok(found) => found,
                Err(next) => return next,
            };
            let Some(reducer) = reducer(op.slots[5] >> OPERATION_SHIFT, map.ty) else {
                let message = "the tensor map's type has no such reduction".to_owned();
                return x.fault(FaultKind::Unsupported, lane, None, message);
            };
            store_box(x, op, lane, |from, to, bytes| reducer(to, from, bytes))
        };
        if let Some(next) = wrong {
            return next;
        }
    }
    Next::Advance
}

/// Updates the elements of a range by those of another.
///
/// # Safety
/// Both hold so many bytes; the target is aligned to the element.
#[inline(always)]
pub(crate) unsafe fn update<U: Update>(to: *mut u8, from: *const u8, bytes: usize) {
    for at in (0..bytes / size_of::<U::Word>()).map(|i| i * size_of::<U::Word>()) {
        // SAFETY: the caller's promise.
        unsafe {
            let b = from.add(at).cast::<U::Word>().read_unaligned();
            U::Word::update(to.add(at), |old| U::update(old, b, b));
        }
    }
}

/// Sectors that a box touches.
#[derive(Default)]
struct Counted {
    sectors: u64,
    ideal: u64,
}

impl Counted {
    fn add(&mut self, address: u64, bytes: u64) {
        if bytes > 0 {
            self.sectors += (address + bytes).div_ceil(SECTOR) - address / SECTOR;
            self.ideal += bytes;
        }
    }

    fn count(&self, x: &mut Exec<'_>, bytes: u64) {
        let pc = x.group.pc as usize;
        let Some(counts) = &mut x.counts else { return };
        let count = &mut counts.ops[pc];
        count.bytes += bytes;
        count.requests += 1;
        count.sectors += self.sectors;
        count.ideal_sectors += self.ideal.div_ceil(SECTOR);
    }
}

fn wrong_shared(x: &mut Exec<'_>, lane: usize, address: u64, bytes: u64) -> Next {
    let message = format!(
        "a box of {bytes} bytes at shared address {address:#x}, which must be a multiple of 16: the block has {} bytes of shared memory",
        x.block.bytes
    );
    x.fault(FaultKind::IllegalAddress, lane, Some(address), message)
}

fn wrong_global(x: &mut Exec<'_>, lane: usize, address: u64, bytes: u64) -> Next {
    let message = format!(
        "the tensor map covers {bytes} bytes at global address {address:#x}, which are not allocated"
    );
    x.fault(FaultKind::IllegalAddress, lane, Some(address), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_beyond_the_tensor_are_clipped() {
        let mut words = [0; 16];
        (words[0], words[1], words[2], words[3], words[7]) = (MAGIC, 4096, 10, 6, 64);
        (words[11], words[12]) = (8 | 4 << 12, 7 << 24 | 2 << 32 | 1 | 1 << 4);
        let map = TensorMap::new(&words).unwrap();
        assert_eq!(map.rows(), (32, 4));
        // Columns 6 to 13 of row 5; row 6 is beyond.
        assert_eq!(map.row(&[6, 4, 0, 0, 0], 1), (4096 + 5 * 64 + 24, 0, 16));
        assert_eq!(map.row(&[6, 4, 0, 0, 0], 2).2, 0);
        // Columns -3 to 4.
        assert_eq!(map.row(&[-3, 0, 0, 0, 0], 0), (4096, 12, 20));
    }
}
