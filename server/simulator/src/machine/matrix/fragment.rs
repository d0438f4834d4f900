//! Which elements of a matrix a lane holds.
//!
//! Source: PTX ISA, "Matrix Fragments for mma.m16n8k8" and its neighbours for each shape and type: all follow one rule. A
//! lane is member `lane % 4` of group `lane / 4`. A register of `a` or `b` holds neighbouring elements along `k`; the four
//! members of a group hold 16 bytes of a row (of `a`) or of a column (of `b`), the next register the next 16 bytes. Rows 8 to 15 of `a` are
//! in the odd registers. Of `c` and `d`, a member holds two neighbouring columns.
//!
//! The fragments of `wmma` are opaque in PTX; here they are those of `mma` side by side, as on an H200. Registers beyond what the matrix
//! holds repeat it, as those of f16 do. What has 32 columns is multiplied as its transpose with 32 rows.

pub(crate) mod volta;

/// Groups of four lanes.
const GROUP: usize = 4;

/// Columns of a `b` that is held as the rows of its transpose are.
const TURNED: usize = 32;

/// Row and column of `a` (of `m` rows) that element `i` of `count` in register `r` is.
fn a_place(m: usize, k: usize, count: usize, r: usize, lane: usize, i: usize) -> (usize, usize) {
    let (group, member) = (lane / GROUP, lane % GROUP);
    let steps = (k / (GROUP * count)).max(1);
    let r = r % (steps * m.div_ceil(8));
    let (row, step) = if m == 8 {
        (group, r)
    } else {
        let of_16 = r % (2 * steps);
        (16 * (r / (2 * steps)) + group + 8 * (of_16 % 2), of_16 / 2)
    };
    (row, step * GROUP * count + member * count + i)
}

/// Row and column of `b` (of `n` columns).
fn b_place(n: usize, k: usize, count: usize, r: usize, lane: usize, i: usize) -> (usize, usize) {
    if n == TURNED {
        let (column, row) = a_place(n, k, count, r, lane, i);
        return (row, column);
    }
    let (group, member) = (lane / GROUP, lane % GROUP);
    let steps = (k / (GROUP * count)).max(1);
    let r = r % (steps * n.div_ceil(8));
    ((r % steps) * GROUP * count + member * count + i, 8 * (r / steps) + group)
}

/// Row and column of element `i` of a lane in `c` (of `m` rows).
fn c_place(m: usize, n: usize, lane: usize, i: usize) -> (usize, usize) {
    if m == 8 && n == TURNED {
        let (column, row) = c_place(n, m, lane, i);
        return (row, column);
    }
    let (group, member) = (lane / GROUP, lane % GROUP);
    if m == 8 {
        return (group, 8 * (i / 2) + 2 * member + i % 2);
    }
    let tile = i / 4;
    let (down, across) = (tile / (n / 8), tile % (n / 8));
    (16 * down + group + 8 * (i % 4 / 2), 8 * across + 2 * member + i % 2)
}

/// By register, lane and element: row · k + column of `a`.
pub(crate) fn a_places(m: usize, k: usize, registers: usize, count: usize) -> Vec<u32> {
    places(registers, count, |r, lane, i| {
        let (row, column) = a_place(m, k, count, r, lane, i);
        row * k + column
    })
}

/// By register, lane and element: row · n + column of `b`.
pub(crate) fn b_places(n: usize, k: usize, registers: usize, count: usize) -> Vec<u32> {
    places(registers, count, |r, lane, i| {
        let (row, column) = b_place(n, k, count, r, lane, i);
        row * n + column
    })
}

/// By register, lane and element: row · n + column of `c` and `d`.
pub(crate) fn c_places(m: usize, n: usize, registers: usize, count: usize) -> Vec<u32> {
    places(registers, count, |r, lane, i| {
        let (row, column) = c_place(m, n, lane, r * count + i);
        row * n + column
    })
}

fn places(registers: usize, count: usize, place: impl Fn(usize, usize, usize) -> usize) -> Vec<u32> {
    let all =
        (0..registers).flat_map(|r| (0..32).flat_map(move |lane| (0..count).map(move |i| (r, lane, i))));
    all.map(|(r, lane, i)| place(r, lane, i) as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each element of a matrix is in as many places as the registers hold it times.
    fn covers(places: &[u32], size: usize) {
        let mut held = vec![0; size];
        places.iter().for_each(|at| held[*at as usize] += 1);
        let times = places.len() / size;
        assert!(held.iter().all(|count| *count == times), "{held:?}");
    }

    #[test]
    fn fragments_hold_each_element() {
        // m, n, k, elements a register, registers of a and b: mma, then wmma of f16, bf16, tf32, f64, s8, s4, b1.
        for (m, n, k, count, a, b) in [
            (16, 8, 16, 2, 4, 2),
            (16, 8, 8, 2, 2, 1),
            (16, 8, 8, 1, 4, 2),
            (16, 8, 4, 1, 2, 1),
            (16, 8, 16, 1, 8, 4),
            (16, 8, 32, 4, 4, 2),
            (16, 8, 64, 8, 4, 2),
            (16, 8, 256, 32, 4, 2),
            (16, 16, 16, 2, 8, 8),
            (32, 8, 16, 2, 8, 8),
            (8, 32, 16, 2, 8, 8),
            (32, 8, 16, 2, 8, 2),
            (8, 32, 16, 2, 2, 8),
            (16, 16, 8, 1, 4, 4),
            (8, 8, 4, 1, 1, 1),
            (16, 16, 16, 4, 2, 2),
            (32, 8, 16, 4, 4, 1),
            (8, 32, 16, 4, 1, 4),
            (8, 8, 32, 8, 1, 1),
            (8, 8, 128, 32, 1, 1),
        ] {
            covers(&a_places(m, k, a, count), m * k);
            covers(&b_places(n, k, b, count), k * n);
            covers(&c_places(m, n, m * n / 32, 1), m * n);
        }
    }

    /// What an H200 had in the registers of `wmma.m8n32k16` of f16.
    #[test]
    fn what_is_wide_is_held_as_its_transpose() {
        assert_eq!(b_place(32, 16, 2, 1, 4, 1), (1, 9));
        assert_eq!(b_place(32, 16, 2, 6, 2, 0), (12, 16));
        assert_eq!(c_place(8, 32, 2, 3), (5, 8));
        assert_eq!(c_place(8, 32, 5, 6), (2, 25));
    }

    /// Examples of the manual's figures for `mma.m16n8k16` of f16.
    #[test]
    fn fragments_are_the_manuals() {
        assert_eq!(a_place(16, 16, 2, 1, 5, 0), (9, 2));
        assert_eq!(a_place(16, 16, 2, 2, 5, 1), (1, 11));
        assert_eq!(b_place(8, 16, 2, 1, 7, 0), (14, 1));
        assert_eq!(c_place(16, 8, 31, 3), (15, 7));
    }
}
