//! f32 and f64. Source: PTX ISA, "Floating Point Instructions".

use crate::code::{Form, Lanes};
use crate::machine::alu::{Aux, op};
use crate::math::{Extremum, Mode, Rounding, approximate, double, single};
use crate::ptx::ast::Scalar::{F32, F64};

impl Aux for Rounding {
    fn pack(self) -> u32 {
        self as u32
    }

    #[inline(always)]
    fn unpack(aux: u32) -> Self {
        match aux & 3 {
            0 => Self::Rn,
            1 => Self::Rz,
            2 => Self::Rm,
            _ => Self::Rp,
        }
    }
}

impl Aux for Mode {
    fn pack(self) -> u32 {
        let flags = u32::from(self.ftz) | u32::from(self.saturate) << 1 | u32::from(self.relu) << 2;
        self.rounding.pack() | flags << 2
    }

    #[inline(always)]
    fn unpack(aux: u32) -> Self {
        let rounding = Rounding::unpack(aux);
        Mode { rounding, ftz: aux & 4 != 0, saturate: aux & 8 != 0, relu: aux & 16 != 0 }
    }
}

impl Aux for Extremum {
    fn pack(self) -> u32 {
        [self.ftz, self.nan, self.abs, self.xorsign]
            .iter()
            .rev()
            .fold(0, |bits, flag| bits << 1 | u32::from(*flag))
    }

    #[inline(always)]
    fn unpack(aux: u32) -> Self {
        Extremum { ftz: aux & 1 != 0, nan: aux & 2 != 0, abs: aux & 4 != 0, xorsign: aux & 8 != 0 }
    }
}

/// Takes `.rn` and its like; `.rn` where there is none.
pub(crate) fn rounding(form: &mut Form<'_>) -> Rounding {
    match form.take_any(&["rn", "rz", "rm", "rp"]) {
        Some("rz") => Rounding::Rz,
        Some("rm") => Rounding::Rm,
        Some("rp") => Rounding::Rp,
        _ => Rounding::Rn,
    }
}

/// Takes rounding, `.ftz`, `.sat` and `.relu`.
pub(crate) fn mode(form: &mut Form<'_>) -> Mode {
    Mode {
        rounding: rounding(form),
        ftz: form.take("ftz"),
        saturate: form.take("sat"),
        relu: form.take("relu"),
    }
}

/// Takes the modifiers of `min` and `max`.
pub(crate) fn extremum(form: &mut Form<'_>) -> Extremum {
    Extremum {
        ftz: form.take("ftz"),
        nan: form.take("NaN"),
        xorsign: form.take("xorsign"),
        abs: form.take("abs"),
    }
}

/// An entry of its own where the modifiers are the default, so that they cost nothing there.
macro_rules! moded {
    ($mode:expr, $default:expr, $m:ident: $ty:ty, |$($a:ident: $A:ty),*| -> $R:ty $f:block) => {{
        let mode = $mode;
        if mode == $default {
            op!(|$($a: $A),*| -> $R { let $m: $ty = $default; $f })
        } else {
            op!(with $m: $ty = mode; |$($a: $A),*| -> $R $f)
        }
    }};
}

/// The entry of a floating-point instruction.
pub(crate) fn select(form: &mut Form<'_>) -> Option<Lanes> {
    match form.types[..] {
        [F32] => single(form),
        [F64] => double(form),
        _ => None,
    }
}

fn single(form: &mut Form<'_>) -> Option<Lanes> {
    let opcode = form.opcode;
    match opcode {
        "add" => moded!(mode(form), Mode::RN, m: Mode, |a: f32, b: f32| -> f32 { single::add(a, b, m) }),
        "sub" => moded!(mode(form), Mode::RN, m: Mode, |a: f32, b: f32| -> f32 { single::sub(a, b, m) }),
        "mul" => moded!(mode(form), Mode::RN, m: Mode, |a: f32, b: f32| -> f32 { single::mul(a, b, m) }),
        "fma" | "mad" => {
            moded!(mode(form), Mode::RN, m: Mode, |a: f32, b: f32, c: f32| -> f32 { single::fma(a, b, c, m) })
        }
        "min" => {
            let how = extremum(form);
            moded!(how, Extremum::default(), m: Extremum, |a: f32, b: f32| -> f32 { single::min(a, b, m) })
        }
        "max" => {
            let how = extremum(form);
            moded!(how, Extremum::default(), m: Extremum, |a: f32, b: f32| -> f32 { single::max(a, b, m) })
        }
        "abs" => op!(with ftz: bool = form.take("ftz"); |a: f32| -> f32 { single::abs(a, ftz) }),
        "neg" => op!(with ftz: bool = form.take("ftz"); |a: f32| -> f32 { single::neg(a, ftz) }),
        "copysign" => op!(|a: f32, b: f32| -> f32 { single::copysign(a, b) }),
        "div" | "rcp" | "sqrt" | "rsqrt" => quotient(form),
        "sin" | "cos" | "ex2" | "lg2" | "tanh" => transcendental(form),
        _ => None,
    }
}

/// Quotients and roots, rounded or approximate.
fn quotient(form: &mut Form<'_>) -> Option<Lanes> {
    let approximate = form.take_any(&["approx", "full"]);
    if approximate.is_some() || form.opcode == "rsqrt" {
        let ftz = form.take("ftz");
        return match (form.opcode, approximate) {
            ("div", Some("full")) => {
                op!(with ftz: bool = ftz; |a: f32, b: f32| -> f32 { approximate::div_full(a, b, ftz) })
            }
            ("div", _) => op!(with ftz: bool = ftz; |a: f32, b: f32| -> f32 { approximate::div(a, b, ftz) }),
            ("rcp", _) => op!(with ftz: bool = ftz; |a: f32| -> f32 { approximate::rcp(a, ftz) }),
            ("sqrt", _) => op!(with ftz: bool = ftz; |a: f32| -> f32 { approximate::sqrt(a, ftz) }),
            _ => op!(with ftz: bool = ftz; |a: f32| -> f32 { approximate::rsqrt(a, ftz) }),
        };
    }
    let opcode = form.opcode;
    match opcode {
        "div" => moded!(mode(form), Mode::RN, m: Mode, |a: f32, b: f32| -> f32 { single::div(a, b, m) }),
        "rcp" => moded!(mode(form), Mode::RN, m: Mode, |a: f32| -> f32 { single::rcp(a, m) }),
        "sqrt" => moded!(mode(form), Mode::RN, m: Mode, |a: f32| -> f32 { single::sqrt(a, m) }),
        _ => None,
    }
}

fn transcendental(form: &mut Form<'_>) -> Option<Lanes> {
    if !form.take("approx") {
        return None;
    }
    let ftz = form.take("ftz");
    let opcode = form.opcode;
    match opcode {
        "sin" => op!(with ftz: bool = ftz; |a: f32| -> f32 { approximate::sin(a, ftz) }),
        "cos" => op!(with ftz: bool = ftz; |a: f32| -> f32 { approximate::cos(a, ftz) }),
        "ex2" => op!(with ftz: bool = ftz; |a: f32| -> f32 { approximate::ex2(a, ftz) }),
        "lg2" => op!(with ftz: bool = ftz; |a: f32| -> f32 { approximate::lg2(a, ftz) }),
        _ => op!(|a: f32| -> f32 { approximate::tanh(a) }),
    }
}

fn double(form: &mut Form<'_>) -> Option<Lanes> {
    const RN: Rounding = Rounding::Rn;
    let opcode = form.opcode;
    match opcode {
        "add" => moded!(rounding(form), RN, m: Rounding, |a: f64, b: f64| -> f64 { double::add(a, b, m) }),
        "sub" => moded!(rounding(form), RN, m: Rounding, |a: f64, b: f64| -> f64 { double::sub(a, b, m) }),
        "mul" => moded!(rounding(form), RN, m: Rounding, |a: f64, b: f64| -> f64 { double::mul(a, b, m) }),
        "fma" | "mad" => {
            moded!(rounding(form), RN, m: Rounding, |a: f64, b: f64, c: f64| -> f64 { double::fma(a, b, c, m) })
        }
        "div" => moded!(rounding(form), RN, m: Rounding, |a: f64, b: f64| -> f64 { double::div(a, b, m) }),
        "rcp" if form.take("approx") => {
            form.take("ftz").then_some(())?;
            op!(|a: f64| -> f64 { approximate::rcp_ftz_f64(a) })
        }
        "rcp" => moded!(rounding(form), RN, m: Rounding, |a: f64| -> f64 { double::rcp(a, m) }),
        "sqrt" => moded!(rounding(form), RN, m: Rounding, |a: f64| -> f64 { double::sqrt(a, m) }),
        "rsqrt" if form.take("approx") => match form.take("ftz") {
            true => op!(|a: f64| -> f64 { approximate::rsqrt_ftz_f64(a) }),
            false => op!(|a: f64| -> f64 { approximate::rsqrt_f64(a) }),
        },
        "min" => op!(|a: f64, b: f64| -> f64 { double::min(a, b, Extremum::default()) }),
        "max" => op!(|a: f64, b: f64| -> f64 { double::max(a, b, Extremum::default()) }),
        "abs" => op!(|a: f64| -> f64 { a.abs() }),
        "neg" => op!(|a: f64| -> f64 { -a }),
        "copysign" => op!(|a: f64, b: f64| -> f64 { b.copysign(a) }),
        _ => None,
    }
}
