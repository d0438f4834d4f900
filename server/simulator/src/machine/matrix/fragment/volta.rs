//! `mma.m8n8k4` of f16: four multiplications at once, each by eight lanes.
//!
//! Source: PTX ISA, "Matrix Fragments for mma.m8n8k4 with .f16 floating point type". Lanes 0 to 3 and 16 to 19 do the first, 4 to 7
//! and 20 to 23 the second, and so on. Here they are one multiplication: `a` has the four below each other, each in
//! columns of its own, and `b` has them below each other too.

use crate::machine::matrix::{Matrix, Number};
use crate::math::tensor::{Order, Sum};

/// Rows of a part of `a`; columns of `b`.
const SIDE: usize = 8;
/// What is summed over, in a part.
const K: usize = 4;
/// Parts.
const PARTS: usize = 4;

/// Fills in where elements lie. `a_rows`, `b_rows`: the layout is `.row`.
pub(crate) fn fill(matrix: &mut Matrix, a_rows: bool, b_rows: bool) {
    let part = |lane: usize| lane % 16 / 4;
    let upper = |lane: usize| if lane < 16 { 0 } else { 4 };
    let wide = K * PARTS;
    matrix.shape = [SIDE * PARTS, SIDE, wide];
    matrix.padded = true;
    matrix.sum = Sum { block: K, order: Order::Scalar, ..Sum::HALF };
    matrix.registers[1] = 2;
    matrix.registers[2] = 2;
    matrix.a_places = places(2, 2, |lane, i| {
        let (row, column) = if a_rows { (lane % 4 + upper(lane), i) } else { (i + upper(lane), lane % 4) };
        (part(lane) * SIDE + row) * wide + part(lane) * K + column
    });
    matrix.b_places = places(2, 2, |lane, i| {
        let (row, column) = if b_rows { (lane % 4, i + upper(lane)) } else { (i, lane % 4 + upper(lane)) };
        (part(lane) * K + row) * SIDE + column
    });
    let accumulator = |number: Number| {
        if number == Number::F16 {
            places(4, 2, |lane, i| (part(lane) * SIDE + lane % 4 + upper(lane)) * SIDE + i)
        } else {
            places(8, 1, |lane, i| {
                let row = (lane & 1) + (i & 2) + upper(lane);
                (part(lane) * SIDE + row) * SIDE + (i & 4) + (lane & 2) + (i & 1)
            })
        }
    };
    matrix.c_places = accumulator(matrix.c);
    matrix.d_places = accumulator(matrix.d);
    let registers = |number| if number == Number::F16 { 4 } else { 8 };
    matrix.registers[0] = registers(matrix.d);
    matrix.registers[3] = registers(matrix.c);
}

fn places(registers: usize, count: usize, place: impl Fn(usize, usize) -> usize) -> Vec<u32> {
    let all =
        (0..registers).flat_map(|r| (0..32).flat_map(move |lane| (0..count).map(move |i| (r, lane, i))));
    all.map(|(r, lane, i)| place(lane, r * count + i) as u32).collect()
}
