//! `cp.async.bulk.tensor`: boxes of tensors, by the description that `cuTensorMapEncodeTiled` or `cuTensorMapEncodeIm2col` makes.
//!
//! A description is opaque to programs; its 16 words hold here what `stub/tensors.c` writes (`map.rs`). What a box covers beyond the
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

mod map;

#[cfg(test)]
pub(crate) use map::MAGIC;
use map::{Place, TensorMap};

/// Bytes of a description, and their alignment.
const BYTES: u64 = 128;
const ALIGNMENT: u64 = 64;
/// Bytes that a swizzle moves together.
const CHUNK: u64 = 16;
/// Bytes of a sector.
const SECTOR: u64 = 32;

/// In `Op::slots[5]`: dimensions that the instruction names.
pub(crate) const RANK_MASK: u32 = 7;
/// In `Op::slots[5]`: a tensor of images (im2col), and whether the instruction names the filter's offsets.
pub(crate) const IMAGES: u32 = 8;
pub(crate) const OFFSETS: u32 = 128;

/// A copy to shared memory. Slots: 1 there, 2 the description, 3 the barrier, 4 the mask of blocks (nothing for the own), 5
/// the rank; the list holds the coordinates, and of images the filter's offsets.
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

/// The description and the place that a lane gives, or the fault that they are.
unsafe fn operands(x: &mut Exec<'_>, op: &Op, lane: usize) -> Result<(TensorMap, Place), Next> {
    let (rank, images) = ((op.slots[5] & RANK_MASK) as usize, op.slots[5] & IMAGES != 0);
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
    let right = |map: &TensorMap| map.rank == rank && map.is_images() == images;
    let Some(map) = TensorMap::new(&words).filter(right) else {
        let how = if images { "cuTensorMapEncodeIm2col" } else { "cuTensorMapEncodeTiled" };
        let message = format!(
            "what is at address {address:#x} is not a tensor map of {rank} dimensions for this instruction: make it with {how}"
        );
        return Err(x.fault(FaultKind::IllegalAddress, lane, Some(address), message));
    };
    let mut place = Place::default();
    for (coordinate, slot) in place.coordinates.iter_mut().zip(x.list(op, 0, rank)) {
        // SAFETY: the caller's promise.
        *coordinate = i64::from(unsafe { x.registers.get::<i32>(*slot, lane) });
    }
    if op.slots[5] & OFFSETS != 0 {
        for (offset, slot) in place.offsets.iter_mut().zip(x.list(op, rank, rank - 2)) {
            // SAFETY: the caller's promise.
            *offset = i64::from(unsafe { x.registers.get::<u16>(*slot, lane) });
        }
    }
    Ok((map, place))
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
            let (map, place) = match operands(x, op, lane) {
                Ok(found) => found,
                Err(next) => return next,
            };
            let (to, barrier) =
                (x.registers.get::<u64>(op.slots[1], lane), x.registers.get::<u64>(op.slots[3], lane));
            for (number, rank) in multicast(x, op.slots[4], lane).enumerate() {
                let (to, barrier) = (of_rank(to, rank), of_rank(barrier, rank));
                if let Some(next) = load_box(x, lane, &map, &place, to, number == 0) {
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
    place: &Place,
    to: u64,
    is_first: bool,
) -> Option<Next> {
    let (length, rows) = map.rows();
    if !to.is_multiple_of(CHUNK) || SharedSpace::pointer(x, to, length * rows).is_err() {
        return Some(wrong_shared(x, lane, to, length * rows));
    }
    let mut counted = Counted::default();
    for row in 0..rows {
        let (from, before, inside) = map.row(place, row);
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
    let (map, place) = match unsafe { operands(x, op, lane) } {
        Ok(found) => found,
        Err(next) => return Some(next),
    };
    if !map.is_within() {
        let message =
            "the bounds of the tensor map go beyond the images; such a map is only read from".to_owned();
        return Some(x.fault(FaultKind::IllegalAddress, lane, None, message));
    }
    // SAFETY: the caller's promise.
    let shared = of_rank(unsafe { x.registers.get::<u64>(op.slots[1], lane) }, None);
    let (length, rows) = map.rows();
    if !shared.is_multiple_of(CHUNK) || SharedSpace::pointer(x, shared, length * rows).is_err() {
        return Some(wrong_shared(x, lane, shared, length * rows));
    }
    let mut counted = Counted::default();
    for row in 0..rows {
        let (to, before, inside) = map.row(&place, row);
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
