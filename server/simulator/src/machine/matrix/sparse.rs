//! Sparse factors of `mma.sp` and `wgmma.mma_async.sp`: half of a row's elements are there, and metadata says where they belong.
//!
//! Source: PTX ISA, "Sparse matrix storage" and the figures of "Matrix fragments for multiply-accumulate operation with sparse
//! matrix A". A row goes in chunks, each with four bits: two numbers of two bits that tell the places of what is there. Of 16 and 8
//! bits a chunk has four elements, two of them there; of 4 bits eight, in pairs; of 32 bits two, one of them there, where the bits
//! are 0b0100 for the first and 0b1110 for the second.

use crate::machine::lanes::Registers;
use crate::machine::matrix::{Element, Matrix};

/// Elements of a chunk, and how many lie together.
fn chunk_of(element: Element) -> (usize, usize) {
    match element {
        Element::Tf32 => (2, 1),
        Element::S4 | Element::U4 => (8, 2),
        _ => (4, 1),
    }
}

/// The lane of four that holds a chunk's bits, and where they begin. Of 16 bits and more, a lane holds four chunks of two rows, 8
/// apart; below, eight chunks of one row. Where two lanes have all of a row, the selector names the pair, or the lane.
fn place_of_bits(
    element: Element,
    chunks: usize,
    selector: usize,
    row: usize,
    chunk: usize,
) -> (usize, usize) {
    let upper = row / 8;
    match (element.bits() >= 16, chunks) {
        (true, 4) => (selector, 16 * upper + 4 * chunk),
        (true, _) => (2 * (selector % 2) + chunk / 4, 16 * upper + 4 * (chunk % 4)),
        (false, 8) => (2 * (selector % 2) + upper, 4 * chunk),
        (false, _) => (2 * (chunk / 8) + upper, 4 * (chunk % 8)),
    }
}

/// Calls `put` with the place of each element among those that are there, and its place in the whole of the warp's `rows`.
///
/// # Safety
/// The slot must name a single row.
#[inline(always)]
pub(crate) unsafe fn spread(
    r: Registers,
    matrix: &Matrix,
    rows: usize,
    metadata: u32,
    selector: u32,
    mut put: impl FnMut(usize, usize),
) {
    let [_, _, k] = matrix.shape;
    let (wide, together) = chunk_of(matrix.a);
    let chunks = k / wide;
    for row in 0..rows {
        for chunk in 0..chunks {
            let (lane, shift) = place_of_bits(matrix.a, chunks, selector as usize, row, chunk);
            // SAFETY: the caller's promise.
            let bits = unsafe { r.get::<u32>(metadata, row % 8 * 4 + lane) } >> shift;
            for i in 0..wide / 2 {
                let number = (bits >> (2 * (i / together)) & 3) as usize;
                let place = if wide == 2 { number / 2 } else { number * together + i % together };
                put(row * k / 2 + chunk * wide / 2 + i, row * k + chunk * wide + place);
            }
        }
    }
}
