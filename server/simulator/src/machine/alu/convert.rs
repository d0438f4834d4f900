//! `cvt`. Source: PTX ISA, "Data Movement and Conversion Instructions: cvt".

use crate::code::{Form, Lanes, is_signed, size};
use crate::machine::alu::float::mode;
use crate::machine::alu::{Aux, by_type, op};
use crate::math::convert::{self, Integer, Tf32Rounding};
use crate::math::half::{Bf16, F16, Half};
use crate::math::minifloat::Minifloat;
use crate::math::single::flush;
use crate::math::{IntegerRounding, Mode, Rounding};
use crate::ptx::ast::Scalar::{self, *};

/// The entry of a conversion.
pub(crate) fn select(form: &mut Form<'_>) -> Option<Lanes> {
    if form.take("pack") {
        return packed_integers(form);
    }
    let [to, from] = form.types[..] else { return None };
    match (is_integer(to), is_integer(from)) {
        (true, true) if form.take("sat") => saturated(to, from),
        (true, true) => integers(to, from),
        (true, false) => to_integer(form, to, from),
        (false, true) => from_integer(form, to, from),
        (false, false) => floats(form, to, from),
    }
}

fn is_integer(ty: Scalar) -> bool {
    matches!(ty, U8 | S8 | U16 | S16 | U32 | S32 | U64 | S64)
}

fn integer(ty: Scalar) -> Integer {
    Integer { bits: size(ty) * 8, signed: is_signed(ty) }
}

fn integers(to: Scalar, from: Scalar) -> Option<Lanes> {
    by_type!(
        from,
        A,
        [U8: u8, S8: i8, U16: u16, S16: i16, U32: u32, S32: i32, U64: u64, S64: i64],
        by_type!(
            to,
            D,
            [U8: u8, S8: i8, U16: u16, S16: i16, U32: u32, S32: i32, U64: u64, S64: i64],
            op!(|a: A| -> D { a as D })
        )
    )
}

impl Aux for Integer {
    fn pack(self) -> u32 {
        self.bits << 1 | u32::from(self.signed)
    }

    #[inline(always)]
    fn unpack(aux: u32) -> Self {
        Integer { bits: aux >> 1, signed: aux & 1 != 0 }
    }
}

fn saturated(to: Scalar, from: Scalar) -> Option<Lanes> {
    let limits = integer(to);
    by_type!(
        from,
        A,
        [U8: u8, S8: i8, U16: u16, S16: i16, U32: u32, S32: i32, U64: u64, S64: i64],
        if size(to) == 8 {
            op!(with to: Integer = limits; |a: A| -> u64 { convert::saturate_int(i128::from(a), to) })
        } else {
            op!(with to: Integer = limits; |a: A| -> u32 { convert::saturate_int(i128::from(a), to) as u32 })
        }
    )
}

/// How a floating-point number becomes an integer.
#[derive(Clone, Copy)]
struct ToInteger {
    to: Integer,
    rounding: IntegerRounding,
    ftz: bool,
}

impl Aux for IntegerRounding {
    fn pack(self) -> u32 {
        self as u32
    }

    #[inline(always)]
    fn unpack(aux: u32) -> Self {
        match aux & 3 {
            0 => Self::Rni,
            1 => Self::Rzi,
            2 => Self::Rmi,
            _ => Self::Rpi,
        }
    }
}

impl Aux for ToInteger {
    fn pack(self) -> u32 {
        self.to.pack() << 3 | self.rounding.pack() << 1 | u32::from(self.ftz)
    }

    #[inline(always)]
    fn unpack(aux: u32) -> Self {
        let rounding = IntegerRounding::unpack(aux >> 1);
        ToInteger { to: Integer::unpack(aux >> 3), rounding, ftz: aux & 1 != 0 }
    }
}

impl ToInteger {
    #[inline(always)]
    fn f32(self, a: f32) -> u64 {
        let a = if self.ftz { flush(a) } else { a };
        convert::float_to_int(f64::from(a), self.rounding, self.to)
    }

    #[inline(always)]
    fn f64(self, a: f64) -> u64 {
        convert::double_to_int(a, self.rounding, self.to)
    }

    #[inline(always)]
    fn half<H: Half>(self, a: u16) -> u64 {
        self.f32(H::to_f32(a))
    }
}

/// Takes `.rni` and its like.
fn integer_rounding(form: &mut Form<'_>) -> Option<IntegerRounding> {
    Some(match form.take_any(&["rni", "rzi", "rmi", "rpi"])? {
        "rni" => IntegerRounding::Rni,
        "rzi" => IntegerRounding::Rzi,
        "rmi" => IntegerRounding::Rmi,
        _ => IntegerRounding::Rpi,
    })
}

fn to_integer(form: &mut Form<'_>, to: Scalar, from: Scalar) -> Option<Lanes> {
    let rounding = integer_rounding(form)?;
    let ftz = form.take("ftz");
    // Results are clamped to the type's range in any case.
    form.take("sat");
    let how = ToInteger { to: integer(to), rounding, ftz };
    let truncated = rounding == IntegerRounding::Rzi && !ftz;
    match (from, to) {
        (F32, S32) if truncated => op!(|a: f32| -> i32 { convert::f32_to_s32(a, IntegerRounding::Rzi) }),
        (F32, U32) if truncated => op!(|a: f32| -> u32 { convert::f32_to_u32(a, IntegerRounding::Rzi) }),
        (F32, U64 | S64) => op!(with how: ToInteger = how; |a: f32| -> u64 { how.f32(a) }),
        (F32, _) => op!(with how: ToInteger = how; |a: f32| -> u32 { how.f32(a) as u32 }),
        (F64, U64 | S64) => op!(with how: ToInteger = how; |a: f64| -> u64 { how.f64(a) }),
        (F64, _) => op!(with how: ToInteger = how; |a: f64| -> u32 { how.f64(a) as u32 }),
        (F16, U64 | S64) => op!(with how: ToInteger = how; |a: u16| -> u64 { how.half::<F16>(a) }),
        (F16, _) => op!(with how: ToInteger = how; |a: u16| -> u32 { how.half::<F16>(a) as u32 }),
        (Bf16, U64 | S64) => op!(with how: ToInteger = how; |a: u16| -> u64 { how.half::<Bf16>(a) }),
        (Bf16, _) => op!(with how: ToInteger = how; |a: u16| -> u32 { how.half::<Bf16>(a) as u32 }),
        _ => None,
    }
}

#[allow(clippy::useless_conversion)] // Of the widest of several types.
fn from_integer(form: &mut Form<'_>, to: Scalar, from: Scalar) -> Option<Lanes> {
    let m = mode(form);
    if m.saturate || m.ftz || m.relu {
        return None;
    }
    let r = m.rounding;
    match (from, to) {
        (S32, F32) if r == Rounding::Rn => return op!(|a: i32| -> f32 { a as f32 }),
        (U32, F32) if r == Rounding::Rn => return op!(|a: u32| -> f32 { a as f32 }),
        (S32, F64) => return op!(|a: i32| -> f64 { f64::from(a) }),
        (U32, F64) => return op!(|a: u32| -> f64 { f64::from(a) }),
        _ => {}
    }
    match to {
        F32 if is_signed(from) => by_type!(
            from,
            A,
            [S8: i8, S16: i16, S32: i32, S64: i64],
            op!(with r: Rounding = r; |a: A| -> f32 { convert::s64_to_f32(a.into(), r) })
        ),
        F32 => by_type!(
            from,
            A,
            [U8: u8, U16: u16, U32: u32, U64: u64],
            op!(with r: Rounding = r; |a: A| -> f32 { convert::u64_to_f32(a.into(), r) })
        ),
        F64 if is_signed(from) => by_type!(
            from,
            A,
            [S8: i8, S16: i16, S64: i64],
            op!(with r: Rounding = r; |a: A| -> f64 { convert::s64_to_f64(a.into(), r) })
        ),
        F64 => by_type!(
            from,
            A,
            [U8: u8, U16: u16, U64: u64],
            op!(with r: Rounding = r; |a: A| -> f64 { convert::u64_to_f64(a.into(), r) })
        ),
        F16 => by_type!(
            from,
            A,
            [U8: u8, S8: i8, U16: u16, S16: i16, U32: u32, S32: i32, U64: u64, S64: i64],
            op!(with r: Rounding = r; |a: A| -> u16 { convert::int_to_half::<F16>(i128::from(a), r) })
        ),
        Bf16 => by_type!(
            from,
            A,
            [U8: u8, S8: i8, U16: u16, S16: i16, U32: u32, S32: i32, U64: u64, S64: i64],
            op!(with r: Rounding = r; |a: A| -> u16 { convert::int_to_half::<Bf16>(i128::from(a), r) })
        ),
        _ => None,
    }
}

/// Rounding to an integral number of the same type.
#[derive(Clone, Copy)]
struct Integral {
    rounding: IntegerRounding,
    mode: Mode,
}

impl Aux for Integral {
    fn pack(self) -> u32 {
        self.rounding.pack() | self.mode.pack() << 2
    }

    #[inline(always)]
    fn unpack(aux: u32) -> Self {
        Integral { rounding: IntegerRounding::unpack(aux), mode: Mode::unpack(aux >> 2) }
    }
}

fn floats(form: &mut Form<'_>, to: Scalar, from: Scalar) -> Option<Lanes> {
    if to == from
        && let Some(rounding) = integer_rounding(form)
    {
        let how = Integral { rounding, mode: mode(form) };
        return match to {
            F32 => {
                op!(with how: Integral = how; |a: f32| -> f32 { convert::round_f32(a, how.rounding, how.mode) })
            }
            F64 => op!(with how: Integral = how; |a: f64| -> f64 { convert::round_f64(a, how.rounding) }),
            F16 => {
                op!(with how: Integral = how; |a: u16| -> u16 { convert::round_half::<F16>(a, how.rounding, how.mode) })
            }
            Bf16 => {
                op!(with how: Integral = how; |a: u16| -> u16 { convert::round_half::<Bf16>(a, how.rounding, how.mode) })
            }
            _ => None,
        };
    }
    if to == Tf32 {
        return tf32(form, from);
    }
    let finite = form.take("satfinite");
    let m = mode(form);
    match (to, from, finite) {
        (E4m3x2 | E5m2x2, _, true) | (F16x2, E4m3x2 | E5m2x2, false) => minifloats(to, from, m),
        (F16x2, F32, false) => op!(with m: Mode = m; |a: f32, b: f32| -> u32 { pair::<F16>(a, b, m) }),
        (Bf16x2, F32, false) => op!(with m: Mode = m; |a: f32, b: f32| -> u32 { pair::<Bf16>(a, b, m) }),
        (F16x2, F32, true) => {
            op!(with m: Mode = m; |a: f32, b: f32| -> u32 { pair_finite::<F16>(a, b, m) })
        }
        (Bf16x2, F32, true) => {
            op!(with m: Mode = m; |a: f32, b: f32| -> u32 { pair_finite::<Bf16>(a, b, m) })
        }
        (F16, F32, true) => {
            op!(with m: Mode = m; |a: f32| -> u16 { convert::f32_to_half_finite::<F16>(a, m) })
        }
        (Bf16, F32, true) => {
            op!(with m: Mode = m; |a: f32| -> u16 { convert::f32_to_half_finite::<Bf16>(a, m) })
        }
        (_, _, true) => None,
        (F32, F32, _) => op!(with m: Mode = m; |a: f32| -> f32 { convert::f32_to_f32(a, m) }),
        (F64, F64, _) if m.saturate => op!(|a: f64| -> f64 { convert::saturate_f64(a) }),
        (F64, F64, _) => op!(|a: f64| -> f64 { a }),
        (F32, F64, _) => op!(with m: Mode = m; |a: f64| -> f32 { convert::f64_to_f32(a, m) }),
        (F64, F32, _) => op!(with m: Mode = m; |a: f32| -> f64 { convert::f32_to_f64(a, m) }),
        (F16, F32, _) => op!(with m: Mode = m; |a: f32| -> u16 { convert::f32_to_half::<F16>(a, m) }),
        (Bf16, F32, _) => op!(with m: Mode = m; |a: f32| -> u16 { convert::f32_to_half::<Bf16>(a, m) }),
        (F16, F64, _) => op!(with m: Mode = m; |a: f64| -> u16 { convert::double_to_half::<F16>(a, m) }),
        (Bf16, F64, _) => op!(with m: Mode = m; |a: f64| -> u16 { convert::double_to_half::<Bf16>(a, m) }),
        (F32, F16, _) => op!(with m: Mode = m; |a: u16| -> f32 { convert::f16_to_f32(a, m) }),
        (F32, Bf16, _) => op!(with m: Mode = m; |a: u16| -> f32 { convert::bf16_to_f32(a, m) }),
        (F64, F16, _) => op!(|a: u16| -> f64 { f64::from(F16::to_f32(a)) }),
        (F64, Bf16, _) => op!(|a: u16| -> f64 { f64::from(Bf16::to_f32(a)) }),
        (F16, F16, _) => op!(with m: Mode = m; |a: u16| -> u16 { convert::half_to_half::<F16, F16>(a, m) }),
        (Bf16, Bf16, _) => {
            op!(with m: Mode = m; |a: u16| -> u16 { convert::half_to_half::<Bf16, Bf16>(a, m) })
        }
        (Bf16, F16, _) => op!(with m: Mode = m; |a: u16| -> u16 { convert::half_to_half::<F16, Bf16>(a, m) }),
        (F16, Bf16, _) => op!(with m: Mode = m; |a: u16| -> u16 { convert::half_to_half::<Bf16, F16>(a, m) }),
        _ => None,
    }
}

/// Two f32 as a pair of halves, `a` in the high one.
#[inline(always)]
fn pair<H: Half>(a: f32, b: f32, m: Mode) -> u32 {
    u32::from(convert::f32_to_half::<H>(a, m)) << 16 | u32::from(convert::f32_to_half::<H>(b, m))
}

/// As [`pair`], with the largest finite number for what is too large.
#[inline(always)]
fn pair_finite<H: Half>(a: f32, b: f32, m: Mode) -> u32 {
    let one = |value| u32::from(convert::f32_to_half_finite::<H>(value, m));
    one(a) << 16 | one(b)
}

/// `cvt.rn{.satfinite}{.relu}.tf32.f32`: `.rn` and `.rz` take both modifiers, `.rna` the first.
#[derive(Clone, Copy)]
struct ToTf32 {
    rounding: Tf32Rounding,
    relu: bool,
    finite: bool,
}

impl Aux for ToTf32 {
    fn pack(self) -> u32 {
        let rounding = match self.rounding {
            Tf32Rounding::Rna => 0,
            Tf32Rounding::Rn => 1,
            Tf32Rounding::Rz => 2,
        };
        rounding | u32::from(self.relu) << 2 | u32::from(self.finite) << 3
    }

    #[inline(always)]
    fn unpack(aux: u32) -> Self {
        let rounding = match aux & 3 {
            0 => Tf32Rounding::Rna,
            1 => Tf32Rounding::Rn,
            _ => Tf32Rounding::Rz,
        };
        ToTf32 { rounding, relu: aux >> 2 & 1 == 1, finite: aux >> 3 & 1 == 1 }
    }
}

fn tf32(form: &mut Form<'_>, from: Scalar) -> Option<Lanes> {
    let rounding = match form.take_any(&["rna", "rn", "rz"])? {
        "rna" => Tf32Rounding::Rna,
        "rn" => Tf32Rounding::Rn,
        _ => Tf32Rounding::Rz,
    };
    if from != F32 {
        return None;
    }
    let how = ToTf32 { rounding, finite: form.take("satfinite"), relu: form.take("relu") };
    op!(with how: ToTf32 = how; |a: f32| -> f32 {
        convert::f32_to_tf32(a, how.rounding, how.relu, how.finite)
    })
}

fn minifloats(to: Scalar, from: Scalar, m: Mode) -> Option<Lanes> {
    use Minifloat::{E4m3, E5m2};
    let relu = m.relu;
    match (to, from) {
        (E4m3x2, F32) => {
            op!(with relu: bool = relu; |a: f32, b: f32| -> u16 { E4m3.pair_from_f32(a, b, relu) })
        }
        (E5m2x2, F32) => {
            op!(with relu: bool = relu; |a: f32, b: f32| -> u16 { E5m2.pair_from_f32(a, b, relu) })
        }
        (E4m3x2, F16x2) => {
            op!(with relu: bool = relu; |a: u32| -> u16 { E4m3.pair_from_half::<F16>(a, relu) })
        }
        (E5m2x2, F16x2) => {
            op!(with relu: bool = relu; |a: u32| -> u16 { E5m2.pair_from_half::<F16>(a, relu) })
        }
        (F16x2, E4m3x2) => op!(with relu: bool = relu; |a: u16| -> u32 { E4m3.pair_to_half::<F16>(a, relu) }),
        (F16x2, E5m2x2) => op!(with relu: bool = relu; |a: u16| -> u32 { E5m2.pair_to_half::<F16>(a, relu) }),
        _ => None,
    }
}

/// `cvt.pack.sat.to.s32{.b32} d, a, b{, c}`.
fn packed_integers(form: &mut Form<'_>) -> Option<Lanes> {
    if !form.take("sat") {
        return None;
    }
    match form.types[..] {
        [to @ (U16 | S16), S32] => {
            op!(with to: Integer = integer(to); |a: i32, b: i32| -> u32 { convert::pack(a, b, 0, to) })
        }
        [to @ (U8 | S8), S32, B32] => {
            op!(with to: Integer = integer(to); |a: i32, b: i32, c: u32| -> u32 { convert::pack(a, b, c, to) })
        }
        _ => None,
    }
}
