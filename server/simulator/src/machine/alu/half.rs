//! f16, bf16 and pairs of them. Source: PTX ISA, "Half Precision Floating Point Instructions".

use crate::code::{Form, Lanes};
use crate::machine::alu::float::{extremum, mode};
use crate::machine::alu::op;
use crate::math::half::{self, Bf16, F16, both, both3};
use crate::math::{Extremum, Mode, approximate};
use crate::ptx::ast::Scalar;

/// The entry of a half-precision instruction.
pub(crate) fn select(form: &mut Form<'_>) -> Option<Lanes> {
    match form.types[..] {
        [Scalar::F16] => one_f16(form),
        [Scalar::Bf16] => one_bf16(form),
        [Scalar::F16x2] => two_f16(form),
        [Scalar::Bf16x2] => two_bf16(form),
        _ => None,
    }
}

macro_rules! one {
    ($name:ident, $H:ty) => {
        fn $name(form: &mut Form<'_>) -> Option<Lanes> {
            let opcode = form.opcode;
            match opcode {
                "add" => op!(with m: Mode = mode(form); |a: u16, b: u16| -> u16 { half::add::<$H>(a, b, m) }),
                "sub" => op!(with m: Mode = mode(form); |a: u16, b: u16| -> u16 { half::sub::<$H>(a, b, m) }),
                "mul" => op!(with m: Mode = mode(form); |a: u16, b: u16| -> u16 { half::mul::<$H>(a, b, m) }),
                "fma" => {
                    op!(with m: Mode = mode(form); |a: u16, b: u16, c: u16| -> u16 { half::fma::<$H>(a, b, c, m) })
                }
                "neg" => op!(with ftz: bool = form.take("ftz"); |a: u16| -> u16 { half::neg::<$H>(a, ftz) }),
                "abs" => op!(with ftz: bool = form.take("ftz"); |a: u16| -> u16 { half::abs::<$H>(a, ftz) }),
                "min" => op!(with m: Extremum = extremum(form); |a: u16, b: u16| -> u16 { half::min::<$H>(a, b, m) }),
                "max" => op!(with m: Extremum = extremum(form); |a: u16, b: u16| -> u16 { half::max::<$H>(a, b, m) }),
                "ex2" if form.take("approx") => {
                    op!(with ftz: bool = form.take("ftz"); |a: u16| -> u16 { approximate::ex2_half::<$H>(a, ftz) })
                }
                "tanh" if form.take("approx") => op!(|a: u16| -> u16 { approximate::tanh_half::<$H>(a) }),
                _ => None,
            }
        }
    };
}
one!(one_f16, F16);
one!(one_bf16, Bf16);

macro_rules! two {
    ($name:ident, $H:ty) => {
        fn $name(form: &mut Form<'_>) -> Option<Lanes> {
            let opcode = form.opcode;
            match opcode {
                "add" => op!(with m: Mode = mode(form); |a: u32, b: u32| -> u32 { both(a, b, |a, b| half::add::<$H>(a, b, m)) }),
                "sub" => op!(with m: Mode = mode(form); |a: u32, b: u32| -> u32 { both(a, b, |a, b| half::sub::<$H>(a, b, m)) }),
                "mul" => op!(with m: Mode = mode(form); |a: u32, b: u32| -> u32 { both(a, b, |a, b| half::mul::<$H>(a, b, m)) }),
                "fma" => op!(with m: Mode = mode(form); |a: u32, b: u32, c: u32| -> u32 {
                    both3(a, b, c, |a, b, c| half::fma::<$H>(a, b, c, m))
                }),
                "neg" => op!(with ftz: bool = form.take("ftz"); |a: u32| -> u32 { both(a, a, |a, _| half::neg::<$H>(a, ftz)) }),
                "abs" => op!(with ftz: bool = form.take("ftz"); |a: u32| -> u32 { both(a, a, |a, _| half::abs::<$H>(a, ftz)) }),
                "min" => op!(with m: Extremum = extremum(form); |a: u32, b: u32| -> u32 {
                    both(a, b, |a, b| half::min::<$H>(a, b, m))
                }),
                "max" => op!(with m: Extremum = extremum(form); |a: u32, b: u32| -> u32 {
                    both(a, b, |a, b| half::max::<$H>(a, b, m))
                }),
                "ex2" if form.take("approx") => op!(with ftz: bool = form.take("ftz"); |a: u32| -> u32 {
                    both(a, a, |a, _| approximate::ex2_half::<$H>(a, ftz))
                }),
                "tanh" if form.take("approx") => op!(|a: u32| -> u32 { both(a, a, |a, _| approximate::tanh_half::<$H>(a)) }),
                _ => None,
            }
        }
    };
}
two!(two_f16, F16);
two!(two_bf16, Bf16);
