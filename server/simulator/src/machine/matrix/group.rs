//! `wgmma.mma_async`: the four warps of a warpgroup multiply a matrix of 64 rows by one in shared memory.
//!
//! Each warp does its own 16 rows, when it comes to the instruction; `wgmma.wait_group` waits for the other three, since what
//! one thread then tells others (that a stage of a pipeline is free) holds for the whole group.
//!
//! Sources: PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout" and "Matrix Descriptor Format"; the layouts of
//! descriptors in units of 16 bytes, for matrices along `k` and across it, are those that CUTLASS documents in `mma_traits_sm90_gmma.hpp`.

use crate::code::{Handler, NONE, Op, handler};
use crate::counters::Direction;
use crate::machine::access::{Addresses, SharedSpace, Space};
use crate::machine::fault::FaultKind;
use crate::machine::lanes::lanes;
use crate::machine::matrix::multiply::{accumulators, each, gather, gather_integers, scatter};
use crate::machine::matrix::sparse::spread;
use crate::machine::matrix::{Element, Matrix, Number, Scratch};
use crate::machine::{Exec, Next};
use crate::math::tensor::{self, Parts, Width, special_in};

/// In `Op::slots[3]`: `a` is negated.
pub(crate) const NEGATE_A: u32 = 1;
/// In `Op::slots[3]`: `b` is negated.
pub(crate) const NEGATE_B: u32 = 2;
/// In `Op::slots[3]`: rows of `a` lie across `k` in memory.
pub(crate) const ACROSS_A: u32 = 4;
/// In `Op::slots[3]`: columns of `b` lie across `k` in memory.
pub(crate) const ACROSS_B: u32 = 8;

/// Bytes that descriptors count in, and that are side by side in every layout.
const CHUNK: u64 = 16;
/// Rows that a warp has of the 64.
const ROWS: usize = 16;

/// A matrix in shared memory, as a descriptor tells it.
#[derive(Debug, Clone, Copy)]
struct Descriptor {
    start: u64,
    leading: u64,
    stride: u64,
    /// Chunks of a row that are swizzled together: 8, 4, 2, or 1 for none.
    span: u64,
}

impl Descriptor {
    /// Takes a descriptor apart; none where its matrix begins within a pattern of the swizzle.
    fn new(bits: u64) -> Option<Self> {
        let field = |from: u32| (bits >> from & 0x3fff) * CHUNK;
        let span = [1, 8, 4, 2][(bits >> 62) as usize];
        (bits >> 49 & 7 == 0).then_some(Self { start: field(0), leading: field(16), stride: field(32), span })
    }

    /// Address of chunk `chunk` along the direction that is side by side in memory, at `line` of the other.
    #[inline(always)]
    fn address(&self, across: bool, line: u64, chunk: u64) -> u64 {
        let (line_in, line_out) = (line % 8 * self.span * CHUNK, line / 8);
        let offset = match (across, self.span) {
            (false, 1) => line_in + line_out * self.stride + chunk * self.leading,
            (false, _) => line_in + line_out * self.stride + chunk * CHUNK,
            (true, 1) => line_in + line_out * self.leading + chunk * self.stride,
            (true, span) => {
                line_in + line_out * self.stride + chunk % span * CHUNK + chunk / span * self.leading
            }
        };
        swizzled(self.start + offset, self.span)
    }
}

/// Within each 8 rows of `span` chunks, the chunk's number is exclusive-ored with the row's.
#[inline(always)]
pub(crate) fn swizzled(address: u64, span: u64) -> u64 {
    address ^ (address >> 7 & (span - 1)) << 4
}

/// A part of a matrix in shared memory.
#[derive(Clone, Copy)]
struct Part {
    descriptor: Descriptor,
    /// Its lines lie across `k`.
    across: bool,
    /// First row (column of `b`), and how many.
    first: usize,
    lines: usize,
    /// Elements along `k`.
    k: usize,
    bits: usize,
    /// Accesses are counted.
    counted: bool,
}

/// Slots: 0 whether the accumulator is added (a mask), 1 and 2 the descriptors of `a` ([`NONE`] where it is in registers) and `b`, 3
/// flags, 4 the metadata of a sparse `a`; the list holds `d`, the same as `c`, and the registers of `a`.
pub(crate) fn multiply() -> Handler {
    handler!(run_multiply)
}

#[inline(always)]
unsafe fn run_multiply(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    if let Some(next) = x.meet(mask) {
        return next;
    }
    let mut scratch = x.scratch();
    // SAFETY: lowering makes ops of this form.
    let next = unsafe { multiply_with(x, op, &mut scratch) };
    x.warp.scratch = Some(scratch);
    next
}

#[inline(always)]
unsafe fn multiply_with(x: &mut Exec<'_>, op: &Op, s: &mut Scratch) -> Next {
    let matrix = x.matrix(op);
    let [d, a, _, c] = matrix.registers;
    let (results, of_c, of_a) = (x.list(op, 0, d), x.list(op, d, c), x.list(op, d + c, a));
    let (live, r) = (x.group.mask, x.registers);
    // SAFETY: the caller's promise.
    unsafe {
        let adds = r.predicate(op.slots[0]) >> live.trailing_zeros() & 1 == 1;
        let of_c = if adds { of_c } else { &[] };
        let parts = match parts(x, op, matrix) {
            Ok(parts) => parts,
            Err(next) => return next,
        };
        let wrong = if matrix.c == Number::S32 {
            integer_product(x, op, s, parts, (of_a, of_c))
        } else {
            float_product(x, op, s, parts, (of_a, of_c))
        };
        if let Some(next) = wrong {
            return next;
        }
        scatter(r, matrix, s, results, live);
    }
    Next::Advance
}

/// What of `a` (none where it is in registers) and `b` the warp reads.
#[inline(always)]
unsafe fn parts(x: &mut Exec<'_>, op: &Op, matrix: &Matrix) -> Result<[Option<Part>; 2], Next> {
    let [_, n, k] = matrix.shape;
    let lane = x.group.mask.trailing_zeros() as usize;
    let within = x.warp.index as usize % 4;
    let mut parts = [None; 2];
    for (at, part) in parts.iter_mut().enumerate() {
        let slot = op.slots[1 + at];
        if slot == NONE {
            continue;
        }
        // SAFETY: the caller's promise.
        let Some(descriptor) = Descriptor::new(unsafe { x.registers.get::<u64>(slot, lane) }) else {
            let message = "wgmma: a descriptor with a base offset is not simulated".to_owned();
            return Err(x.fault(FaultKind::Unsupported, lane, None, message));
        };
        let is_a = at == 0;
        let (first, lines) = if is_a { (within * ROWS, ROWS) } else { (0, n) };
        let across = op.slots[3] & if is_a { ACROSS_A } else { ACROSS_B } != 0;
        let bits = if is_a { matrix.a.bits() } else { matrix.b.bits() };
        let k = if is_a { packed(matrix) } else { k };
        // The group reads `b` once.
        *part = Some(Part { descriptor, across, first, lines, k, bits, counted: is_a || within == 0 });
    }
    Ok(parts)
}

/// Columns of `a` that are there: half of them of a sparse one.
fn packed(matrix: &Matrix) -> usize {
    matrix.shape[2] / if matrix.sparse.is_some() { 2 } else { 1 }
}

/// Multiplies integers; `registers`: those of `a`, and of the accumulator where it is added.
#[inline(always)]
unsafe fn integer_product(
    x: &mut Exec<'_>,
    op: &Op,
    s: &mut Scratch,
    [part_a, part_b]: [Option<Part>; 2],
    (of_a, of_c): (&[u32], &[u32]),
) -> Option<Next> {
    let (matrix, r) = (x.matrix(op), x.registers);
    let [_, n, k] = matrix.shape;
    let [to_a, to_b, to_c, packed_a] = &mut s.integers;
    to_c.clear();
    to_c.resize(ROWS * n, 0);
    // SAFETY: the caller's promise.
    unsafe {
        let there = if matrix.sparse.is_some() { &mut *packed_a } else { &mut *to_a };
        let wrong = match part_a {
            Some(part) => integers(x, op, there, part, matrix.a, false),
            None => {
                gather_integers(r, there, ROWS * packed(matrix), matrix.a, of_a, &matrix.a_places);
                None
            }
        };
        if let (Some(selector), None) = (matrix.sparse, &wrong) {
            to_a.clear();
            to_a.resize(ROWS * k, 0);
            spread(r, matrix, ROWS, op.slots[4], selector, |from, to| to_a[to] = packed_a[from]);
        }
        let wrong = wrong.or_else(|| integers(x, op, to_b, part_b?, matrix.b, true));
        if wrong.is_some() {
            return wrong;
        }
        each(r, of_c, 1, &matrix.c_places, |at, bits, _| to_c[at] = bits as i32);
    }
    tensor::multiply_integers(to_a, to_b, to_c, [ROWS, n, k], matrix.saturate);
    None
}

/// The same of floating-point numbers.
#[inline(always)]
unsafe fn float_product(
    x: &mut Exec<'_>,
    op: &Op,
    s: &mut Scratch,
    [part_a, part_b]: [Option<Part>; 2],
    (of_a, of_c): (&[u32], &[u32]),
) -> Option<Next> {
    let (matrix, r) = (x.matrix(op), x.registers);
    let [_, n, k] = matrix.shape;
    // SAFETY: the caller's promise.
    unsafe {
        let there = if matrix.sparse.is_some() { &mut s.packed } else { &mut s.a };
        let wrong = match part_a {
            Some(part) => floats(x, op, there, part, matrix.a, false),
            None => {
                gather(r, there, ROWS * packed(matrix), matrix.a, of_a, &matrix.a_places);
                None
            }
        };
        if let (Some(selector), None) = (matrix.sparse, &wrong) {
            s.a.clear();
            s.a.resize(ROWS * k);
            let (packed, whole) = (&s.packed, &mut s.a);
            spread(r, matrix, ROWS, op.slots[4], selector, |from, to| {
                whole.set(to, (packed.significands[from], packed.exponents[from]));
            });
        }
        let wrong = wrong.or_else(|| floats(x, op, &mut s.b, part_b?, matrix.b, true));
        if wrong.is_some() {
            return wrong;
        }
        accumulators(r, matrix, &mut s.c, of_c);
    }
    negate(s, op.slots[3]);
    sums(s, matrix, n, k);
    None
}

fn negate(s: &mut Scratch, flags: u32) {
    if (flags & NEGATE_A != 0) != (flags & NEGATE_B != 0) {
        s.a.significands.iter_mut().for_each(|a| *a = -*a);
    }
}

#[inline(always)]
fn sums(s: &mut Scratch, matrix: &Matrix, n: usize, k: usize) {
    s.b.special = special_in(&s.b.significands);
    let width = if matrix.d == Number::F16 { Width::Half } else { Width::Single };
    tensor::multiply(&s.a, &s.b, &mut s.c, [ROWS, n, k], matrix.sum, width);
}

/// Reads a part's numbers, `a` by rows, `b` (`turned`) by columns.
#[inline(always)]
unsafe fn floats(
    x: &mut Exec<'_>,
    op: &Op,
    to: &mut Parts,
    part: Part,
    element: Element,
    turned: bool,
) -> Option<Next> {
    to.resize(part.lines * part.k);
    let (line, along) = strides(part, turned);
    // SAFETY: the caller's promise.
    unsafe {
        match element {
            Element::F16 => {
                read(x, op, part, |l, k, bits| to.set(l * line + k * along, tensor::of_f16(bits)))
            }
            Element::Bf16 => {
                read(x, op, part, |l, k, bits| to.set(l * line + k * along, tensor::of_bf16(bits)))
            }
            Element::E4m3 => {
                read(x, op, part, |l, k, bits| to.set(l * line + k * along, tensor::of_e4m3(bits)))
            }
            Element::E5m2 => {
                read(x, op, part, |l, k, bits| to.set(l * line + k * along, tensor::of_e5m2(bits)))
            }
            _ => read(x, op, part, |l, k, bits| to.set(l * line + k * along, tensor::of_tf32(bits))),
        }
    }
}

/// The same of integers.
#[inline(always)]
unsafe fn integers(
    x: &mut Exec<'_>,
    op: &Op,
    to: &mut Vec<i32>,
    part: Part,
    element: Element,
    turned: bool,
) -> Option<Next> {
    to.resize(part.lines * part.k, 0);
    let (line, along) = strides(part, turned);
    let signed = element == Element::S8;
    // SAFETY: the caller's promise.
    unsafe {
        read(x, op, part, |l, k, bits| {
            to[l * line + k * along] = if signed { i32::from(bits as i8) } else { i32::from(bits as u8) };
        })
    }
}

/// Distance of lines, and of elements along `k`.
fn strides(part: Part, turned: bool) -> (usize, usize) {
    if turned { (1, part.lines) } else { (part.k, 1) }
}

/// Calls `put` with each element: its line from the first, its place along `k`, its bits.
#[inline(always)]
unsafe fn read(
    x: &mut Exec<'_>,
    op: &Op,
    part: Part,
    mut put: impl FnMut(usize, usize, u32),
) -> Option<Next> {
    let count = CHUNK as usize * 8 / part.bits;
    // Chunks of a line, and lines, in the direction that memory has.
    let (lines, chunks) =
        if part.across { (part.k, part.lines / count) } else { (part.lines, part.k / count) };
    let (first_line, first_chunk) = if part.across { (0, part.first / count) } else { (part.first, 0) };
    let total = lines * chunks;
    for at in (0..total).step_by(32) {
        let many = (total - at).min(32);
        let mut by_lane = [0; 32];
        for (i, address) in by_lane.iter_mut().enumerate() {
            let number = at + if i < many { i } else { 0 };
            let (line, chunk) = (first_line + number % lines, first_chunk + number / lines);
            *address = part.descriptor.address(part.across, line as u64, chunk as u64);
        }
        if let Some(next) = look(x, op, by_lane, u32::MAX >> (32 - many), part.counted) {
            return Some(next);
        }
        for (i, address) in by_lane[..many].iter().enumerate() {
            let Ok(pointer) = SharedSpace::pointer(x, *address, CHUNK) else { continue };
            // SAFETY: `pointer` checked the range.
            let bytes = unsafe { pointer.cast::<[u8; CHUNK as usize]>().read_unaligned() };
            let (line, chunk) = ((at + i) % lines, (at + i) / lines);
            for e in 0..count {
                let bits = match part.bits {
                    8 => u32::from(bytes[e]),
                    16 => u32::from(bytes[2 * e]) | u32::from(bytes[2 * e + 1]) << 8,
                    _ => u32::from_le_bytes([
                        bytes[4 * e],
                        bytes[4 * e + 1],
                        bytes[4 * e + 2],
                        bytes[4 * e + 3],
                    ]),
                };
                let along = chunk * count + e;
                if part.across { put(along, line, bits) } else { put(line, along, bits) }
            }
        }
    }
    None
}

/// Looks at an access of 16 bytes for each lane of `mask`, where anybody wants to know.
#[inline(always)]
fn look(x: &mut Exec<'_>, op: &Op, by_lane: [u64; 32], mask: u32, counted: bool) -> Option<Next> {
    let first = by_lane.iter().copied().fold(u64::MAX, u64::min);
    let end = by_lane.iter().copied().fold(0, u64::max) + CHUNK;
    let bits = by_lane.iter().fold(0, |all, address| all | address);
    let a = Addresses { by_lane, first, end, bits };
    if end > u64::from(x.block.bytes) {
        let bad = lanes(mask).find(|lane| SharedSpace::pointer(x, a.by_lane[*lane], CHUNK).is_err());
        let address = bad.map_or(end, |lane| a.by_lane[lane]);
        let message = format!(
            "wgmma reads 16 bytes at shared address {address:#x}: the block has {} bytes of shared memory",
            x.block.bytes
        );
        let lane = x.group.mask.trailing_zeros() as usize;
        return Some(x.fault(FaultKind::IllegalAddress, lane, Some(address), message));
    }
    if counted {
        x.count_access::<SharedSpace>(&a, mask, CHUNK, Direction::Load);
    }
    x.check_access::<SharedSpace>(op, &a, mask, CHUNK, Direction::Load, &|_, _| {});
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chunk `c` of row `r` of a tile that TMA wrote with a swizzle of 128 bytes lies at chunk `c ^ (r % 8)`.
    #[test]
    fn swizzles_are_those_of_tensor_maps() {
        let of_128 = Descriptor::new(1 << 62 | (1024 / 16) << 32 | (2048 / 16)).unwrap();
        assert_eq!(of_128.address(false, 3, 2), 2048 + 3 * 128 + 16);
        assert_eq!(of_128.address(false, 9, 1), 2048 + 1024 + 128);
        let of_64 = Descriptor::new(2 << 62 | (512 / 16) << 32).unwrap();
        assert_eq!(of_64.address(false, 2, 1), 2 * 64);
        let of_32 = Descriptor::new(3 << 62 | (256 / 16) << 32).unwrap();
        assert_eq!(of_32.address(false, 4, 0), 4 * 32 + 16);
        let none = Descriptor::new((256 / 16) << 32 | (128 / 16) << 16).unwrap();
        assert_eq!(none.address(false, 9, 1), 256 + 16 + 128);
        assert!(Descriptor::new(1 << 49).is_none());
    }
}
