//! Sizes and offsets of variables.

use crate::code::form::size;
use crate::ptx::ast::Variable;

/// Bytes of a variable; 0 for an array without a length.
#[must_use]
pub fn bytes(variable: &Variable) -> u64 {
    let elements = variable.dimensions.iter().fold(1, |all: u64, n| all.saturating_mul(*n));
    elements.saturating_mul(u64::from(size(variable.ty)) * u64::from(variable.vector.max(1)))
}

/// Offsets and sizes of variables one after the other, each aligned.
#[must_use]
pub fn sequence(variables: &[Variable]) -> Vec<(u32, u32)> {
    let mut end = 0u32;
    variables
        .iter()
        .map(|variable| {
            let offset = end.next_multiple_of(variable.align.max(1));
            let size = bytes(variable) as u32;
            end = offset + size;
            (offset, size)
        })
        .collect()
}

/// Grows an area by a variable; returns its offset.
pub fn grow(end: &mut u32, bytes: u32, align: u32) -> u32 {
    let offset = end.next_multiple_of(align.max(1));
    *end = offset + bytes;
    offset
}
