//! `mma` and `wmma.mma`: the lanes of a warp multiply matrices that they hold.

use crate::code::{Handler, Op, handler};
use crate::machine::lanes::{Registers, lanes};
use crate::machine::matrix::sparse::spread;
use crate::machine::matrix::{Element, Logic, Matrix, Number, Scratch};
use crate::machine::{Exec, Next};
use crate::math::Mode;
use crate::math::Rounding;
use crate::math::convert::f32_to_half;
use crate::math::half::{F16, Half};
use crate::math::tensor::{self, Parts, Width, special_in};

/// `d = a · b + c`; operands are those registers, in that order. Slot 0 has the metadata of a sparse `a`.
pub(crate) fn multiply() -> Handler {
    handler!(run_multiply)
}

#[inline(always)]
unsafe fn run_multiply(x: &mut Exec<'_>, op: &Op, mask: u32) -> Next {
    if let Some(next) = x.meet(mask) {
        return next;
    }
    let matrix = x.matrix(op);
    let [d, a, b, c] = matrix.registers;
    let list = x.list(op, 0, d + a + b + c);
    let (results, rest) = list.split_at(d);
    let (of_a, rest) = rest.split_at(a);
    let (of_b, of_c) = rest.split_at(b);
    let mut scratch = x.scratch();
    let live = x.group.mask;
    // SAFETY: lowering gives this op rows of the classes that its types have.
    unsafe {
        let r = x.registers;
        match (matrix.a, matrix.c) {
            (Element::F64, _) => doubles(r, matrix, &mut scratch, of_a, of_b, of_c),
            (_, Number::S32) => integers(r, matrix, &mut scratch, [of_a, of_b, of_c], op.slots[0]),
            _ => floats(r, matrix, &mut scratch, [of_a, of_b, of_c], op.slots[0]),
        }
        scatter(r, matrix, &scratch, results, live);
    }
    x.warp.scratch = Some(scratch);
    Next::Advance
}

#[inline(always)]
unsafe fn floats(r: Registers, matrix: &Matrix, s: &mut Scratch, [a, b, c]: [&[u32]; 3], metadata: u32) {
    let [m, n, k] = matrix.shape;
    if matrix.padded {
        s.a.clear();
    }
    // SAFETY: the caller's promise.
    unsafe {
        match matrix.sparse {
            None => gather(r, &mut s.a, m * k, matrix.a, a, &matrix.a_places),
            Some(selector) => {
                gather(r, &mut s.packed, m * k / 2, matrix.a, a, &matrix.a_places);
                s.a.resize(m * k);
                let (packed, whole) = (&s.packed, &mut s.a);
                spread(r, matrix, metadata, selector, |from, to| {
                    let column = matrix.columns.get(to % k).map_or(to % k, |column| *column as usize);
                    whole.set(to - to % k + column, (packed.significands[from], packed.exponents[from]));
                });
            }
        }
        gather(r, &mut s.b, k * n, matrix.b, b, &matrix.b_places);
        accumulators(r, matrix, &mut s.c, c);
    }
    s.b.special = special_in(&s.b.significands);
    let width = if matrix.d == Number::F16 { Width::Half } else { Width::Single };
    tensor::multiply(&s.a, &s.b, &mut s.c, matrix.shape, matrix.sum, width);
}

/// Reads accumulators that are f16 or f32.
#[inline(always)]
pub(crate) unsafe fn accumulators(r: Registers, matrix: &Matrix, to: &mut Vec<f32>, list: &[u32]) {
    let [m, n, _] = matrix.shape;
    to.clear();
    to.resize(m * n, 0.0);
    // SAFETY: the caller's promise.
    unsafe {
        if matrix.c == Number::F16 {
            each(r, list, 2, &matrix.c_places, |at, bits, i| to[at] = F16::to_f32((bits >> (16 * i)) as u16));
        } else {
            each(r, list, 1, &matrix.c_places, |at, bits, _| to[at] = f32::from_bits(bits));
        }
    }
}

/// Calls `f` with the place of each element of the registers, the register's bits, and the element's number.
#[inline(always)]
pub(crate) unsafe fn each(
    r: Registers,
    list: &[u32],
    count: usize,
    places: &[u32],
    mut f: impl FnMut(usize, u32, usize),
) {
    for (slot, places) in list.iter().zip(places.chunks(32 * count)) {
        // SAFETY: the caller's promise.
        let row = unsafe { &*r.row::<u32>(*slot).cast::<[u32; 32]>() };
        for (bits, places) in row.iter().zip(places.chunks(count)) {
            for (i, at) in places.iter().enumerate() {
                f(*at as usize, *bits, i);
            }
        }
    }
}

/// Takes a fragment's numbers apart.
#[inline(always)]
pub(crate) unsafe fn gather(
    r: Registers,
    to: &mut Parts,
    size: usize,
    element: Element,
    list: &[u32],
    places: &[u32],
) {
    to.resize(size);
    // SAFETY: the caller's promise.
    unsafe {
        match element {
            Element::F16 => {
                each(r, list, 2, places, |at, bits, i| to.set(at, tensor::of_f16(bits >> (16 * i))));
            }
            Element::Bf16 => {
                each(r, list, 2, places, |at, bits, i| to.set(at, tensor::of_bf16(bits >> (16 * i))));
            }
            Element::E4m3 => {
                each(r, list, 4, places, |at, bits, i| to.set(at, tensor::of_e4m3(bits >> (8 * i))));
            }
            Element::E5m2 => {
                each(r, list, 4, places, |at, bits, i| to.set(at, tensor::of_e5m2(bits >> (8 * i))));
            }
            _ => each(r, list, 1, places, |at, bits, _| to.set(at, tensor::of_tf32(bits))),
        }
    }
}

#[inline(always)]
unsafe fn integers(r: Registers, matrix: &Matrix, s: &mut Scratch, [a, b, c]: [&[u32]; 3], metadata: u32) {
    let [m, n, k] = matrix.shape;
    let [of_a, of_b, of_c, packed] = &mut s.integers;
    // SAFETY: the caller's promise.
    unsafe {
        of_c.resize(m * n, 0);
        each(r, c, 1, &matrix.c_places, |at, bits, _| of_c[at] = bits as i32);
        match matrix.sparse {
            None => gather_integers(r, of_a, m * k, matrix.a, a, &matrix.a_places),
            Some(selector) => {
                gather_integers(r, packed, m * k / 2, matrix.a, a, &matrix.a_places);
                of_a.clear();
                of_a.resize(m * k, 0);
                spread(r, matrix, metadata, selector, |from, to| of_a[to] = packed[from]);
            }
        }
        gather_integers(r, of_b, k * n, matrix.b, b, &matrix.b_places);
    }
    if matrix.a == Element::B1 {
        bits(of_a, of_b, of_c, matrix);
    } else {
        tensor::multiply_integers(of_a, of_b, of_c, matrix.shape, matrix.saturate);
    }
}

/// Integers of a fragment.
#[inline(always)]
pub(crate) unsafe fn gather_integers(
    r: Registers,
    to: &mut Vec<i32>,
    size: usize,
    element: Element,
    list: &[u32],
    places: &[u32],
) {
    to.resize(size, 0);
    // SAFETY: the caller's promise.
    unsafe {
        match element {
            Element::S8 => {
                each(r, list, 4, places, |at, bits, i| to[at] = i32::from((bits >> (8 * i)) as i8));
            }
            Element::U8 => {
                each(r, list, 4, places, |at, bits, i| to[at] = i32::from((bits >> (8 * i)) as u8));
            }
            Element::S4 => {
                each(r, list, 8, places, |at, bits, i| to[at] = (bits << (28 - 4 * i)) as i32 >> 28);
            }
            Element::U4 => each(r, list, 8, places, |at, bits, i| to[at] = (bits >> (4 * i) & 15) as i32),
            _ => each(r, list, 32, places, |at, bits, i| to[at] = (bits >> i & 1) as i32),
        }
    }
}

/// Counts the bits that differ, or that both have.
fn bits(a: &[i32], b: &[i32], c: &mut [i32], matrix: &Matrix) {
    let [m, n, k] = matrix.shape;
    for row in 0..m {
        for column in 0..n {
            let pairs = (0..k).map(|at| (a[row * k + at], b[at * n + column]));
            let count: i32 = match matrix.logic {
                Logic::Xor => pairs.map(|(a, b)| a ^ b).sum(),
                Logic::And => pairs.map(|(a, b)| a & b).sum(),
            };
            c[row * n + column] = c[row * n + column].wrapping_add(count);
        }
    }
}

#[inline(always)]
unsafe fn doubles(r: Registers, matrix: &Matrix, s: &mut Scratch, a: &[u32], b: &[u32], c: &[u32]) {
    let [m, n, k] = matrix.shape;
    let [of_a, of_b, of_c] = &mut s.doubles;
    let fill = |to: &mut Vec<f64>, size: usize, list: &[u32], places: &[u32]| {
        to.resize(size, 0.0);
        for (at, place) in places.iter().enumerate() {
            // SAFETY: the caller's promise.
            to[*place as usize] = unsafe { r.get::<f64>(list[at / 32], at % 32) };
        }
    };
    fill(of_a, m * k, a, &matrix.a_places);
    fill(of_b, k * n, b, &matrix.b_places);
    fill(of_c, m * n, c, &matrix.c_places);
    tensor::multiply_doubles(of_a, of_b, of_c, matrix.shape, Rounding::Rn);
}

/// Writes a result to registers.
#[inline(always)]
pub(crate) unsafe fn scatter(r: Registers, matrix: &Matrix, s: &Scratch, list: &[u32], live: u32) {
    let count = if matrix.d == Number::F16 { 2 } else { 1 };
    for (slot, places) in list.iter().zip(matrix.d_places.chunks(32 * count)) {
        // SAFETY: the caller's promise.
        unsafe {
            match matrix.d {
                Number::F64 => lanes(live).for_each(|l| r.set(*slot, l, s.doubles[2][places[l] as usize])),
                Number::S32 => {
                    lanes(live).for_each(|l| r.set::<i32>(*slot, l, s.integers[2][places[l] as usize]));
                }
                Number::F32 => lanes(live).for_each(|l| r.set::<f32>(*slot, l, s.c[places[l] as usize])),
                Number::F16 => lanes(live).for_each(|l| {
                    let half =
                        |i: usize| u32::from(f32_to_half::<F16>(s.c[places[2 * l + i] as usize], Mode::RN));
                    r.set::<u32>(*slot, l, half(0) | half(1) << 16);
                }),
            }
        }
    }
}
