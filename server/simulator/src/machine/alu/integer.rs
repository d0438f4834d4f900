//! Integer arithmetic. Source: PTX ISA, "Integer Arithmetic Instructions".

use crate::code::{Form, Lanes};
use crate::machine::alu::{by_type, op};
use crate::ptx::ast::Scalar;

/// The entry of an integer instruction whose operands have one width.
pub(crate) fn select(form: &mut Form<'_>) -> Option<Lanes> {
    let ty = form.ty()?;
    if !matches!(ty, Scalar::U16 | Scalar::S16 | Scalar::U32 | Scalar::S32 | Scalar::U64 | Scalar::S64) {
        return None;
    }
    let opcode = form.opcode;
    match opcode {
        "add" if form.take("sat") => by_type!(ty, T, [S32: i32], op!(|a: T, b: T| -> T { a.saturating_add(b) })),
        "sub" if form.take("sat") => by_type!(ty, T, [S32: i32], op!(|a: T, b: T| -> T { a.saturating_sub(b) })),
        "add" => modular(ty).and_then(|ty| {
            by_type!(ty, T, [U16: u16, U32: u32, U64: u64], op!(|a: T, b: T| -> T { a.wrapping_add(b) }))
        }),
        "sub" => modular(ty).and_then(|ty| {
            by_type!(ty, T, [U16: u16, U32: u32, U64: u64], op!(|a: T, b: T| -> T { a.wrapping_sub(b) }))
        }),
        "div" => divide(ty),
        "rem" => remainder(ty),
        "abs" => by_type!(ty, T, [S16: i16, S32: i32, S64: i64], op!(|a: T| -> T { a.wrapping_abs() })),
        "neg" => by_type!(ty, T, [S16: i16, S32: i32, S64: i64], op!(|a: T| -> T { a.wrapping_neg() })),
        "min" => by_type!(
            ty,
            T,
            [U16: u16, S16: i16, U32: u32, S32: i32, U64: u64, S64: i64],
            op!(|a: T, b: T| -> T { a.min(b) })
        ),
        "max" => by_type!(
            ty,
            T,
            [U16: u16, S16: i16, U32: u32, S32: i32, U64: u64, S64: i64],
            op!(|a: T, b: T| -> T { a.max(b) })
        ),
        "sad" => by_type!(
            ty,
            T,
            [U16: u16, S16: i16, U32: u32, S32: i32, U64: u64, S64: i64],
            op!(|a: T, b: T, c: T| -> T { c.wrapping_add(a.abs_diff(b) as T) })
        ),
        _ => None,
    }
}

/// Sums and products of one width are the same for signed and unsigned numbers.
fn modular(ty: Scalar) -> Option<Scalar> {
    use Scalar::*;
    Some(match ty {
        U16 | S16 => U16,
        U32 | S32 => U32,
        U64 | S64 => U64,
        _ => return None,
    })
}

/// Division by zero gives all ones, as the hardware does; the manual leaves it open.
fn divide(ty: Scalar) -> Option<Lanes> {
    by_type!(
        ty,
        T,
        [U16: u16, S16: i16, U32: u32, S32: i32, U64: u64, S64: i64],
        op!(|a: T, b: T| -> T { if b == 0 { !0 } else { a.wrapping_div(b) } })
    )
}

/// The remainder by zero is the dividend, as on the hardware; the manual leaves it open.
fn remainder(ty: Scalar) -> Option<Lanes> {
    by_type!(
        ty,
        T,
        [U16: u16, S16: i16, U32: u32, S32: i32, U64: u64, S64: i64],
        op!(|a: T, b: T| -> T { if b == 0 { a } else { a.wrapping_rem(b) } })
    )
}
