//! Approximate functions: what `math` gives and what an H200 gave lie within the bounds of the ISA of each other.

use super::inputs;
use crate::math::approximate as ours;
use crate::math::half::{Bf16, F16, Half};

const OUTPUTS: &str = include_str!("approximate.txt");

/// How far from each other the ISA lets two results be: `relative` to the result and, near zero, `absolute`.
struct Bound {
    relative: f64,
    absolute: f64,
}

/// The bounds of the ISA's notes of each instruction; one bit more where our rounding adds to the device's error.
fn bound(name: &str, input: f64) -> Option<Bound> {
    // The least subnormal, which is the last bit near zero.
    let (single, half) = (2f64.powi(-149), 2f64.powi(-24));
    let bound = |relative: f64, absolute: f64| Some(Bound { relative: relative.exp2(), absolute });
    match name {
        _ if name.starts_with("sin") || name.starts_with("cos") => {
            // There is no bound past 100 pi; 2 pi is where the tight one ends.
            if input.abs() > std::f64::consts::TAU { None } else { bound(-60.0, (-20.5f64).exp2()) }
        }
        _ if name.starts_with("lg2") => bound(-21.5, (-21.5f64).exp2()),
        "tanh.approx.f32" => bound(-10.9, single),
        "tanh.approx.f16" => bound(-60.0, (-10.5f64).exp2()),
        "tanh.approx.bf16" => bound(-60.0, (-7.5f64).exp2()),
        "ex2.approx.f16" => bound(-9.5, half),
        "ex2.approx.ftz.bf16" => bound(-6.9, 0.0),
        "rcp.approx.ftz.f64" | "rsqrt.approx.ftz.f64" => bound(-19.5, 0.0),
        "rsqrt.approx.f64" => bound(-51.0, 0.0),
        // At most two units in the last place.
        _ => bound(-21.0, 2.0 * single),
    }
}

/// Bits and value of what `math` gives.
fn evaluate(name: &str, x: &[u64]) -> (u64, f64) {
    let (ftz, double) = (name.contains(".ftz"), f64::from_bits(x[0]));
    let single = |at: usize| f32::from_bits(x[at] as u32);
    let of_half = |bits: u16, value: f32| (u64::from(bits), f64::from(value));
    let result = match name {
        "rsqrt.approx.f64" => ours::rsqrt_f64(double),
        "rcp.approx.ftz.f64" => ours::rcp_ftz_f64(double),
        "rsqrt.approx.ftz.f64" => ours::rsqrt_ftz_f64(double),
        "tanh.approx.f16" | "ex2.approx.f16" => {
            let of = if name.starts_with("ex2") {
                |a| ours::ex2_half::<F16>(a, false)
            } else {
                ours::tanh_half::<F16>
            };
            let bits = of(x[0] as u16);
            return of_half(bits, F16::to_f32(bits));
        }
        "tanh.approx.bf16" | "ex2.approx.ftz.bf16" => {
            let of = if name.starts_with("ex2") {
                |a| ours::ex2_half::<Bf16>(a, true)
            } else {
                ours::tanh_half::<Bf16>
            };
            let bits = of(x[0] as u16);
            return of_half(bits, Bf16::to_f32(bits));
        }
        _ => {
            let value = match name.split('.').next() {
                Some("ex2") => ours::ex2(single(0), ftz),
                Some("lg2") => ours::lg2(single(0), ftz),
                Some("sin") => ours::sin(single(0), ftz),
                Some("cos") => ours::cos(single(0), ftz),
                Some("rcp") => ours::rcp(single(0), ftz),
                Some("sqrt") => ours::sqrt(single(0), ftz),
                Some("rsqrt") => ours::rsqrt(single(0), ftz),
                Some("tanh") => ours::tanh(single(0)),
                _ if name.contains("full") => ours::div_full(single(0), single(1), ftz),
                _ => ours::div(single(0), single(1), ftz),
            };
            return (u64::from(value.to_bits()), f64::from(value));
        }
    };
    (result.to_bits(), result)
}

fn value_of(name: &str, bits: u64) -> f64 {
    match name.rsplit('.').next() {
        Some("f64") => f64::from_bits(bits),
        Some("f32") => f64::from(f32::from_bits(bits as u32)),
        Some("f16") => f64::from(F16::to_f32(bits as u16)),
        _ => f64::from(Bf16::to_f32(bits as u16)),
    }
}

#[test]
fn approximate_functions_are_within_the_bounds_of_the_isa_of_a_device() {
    let mut compared = 0;
    for line in OUTPUTS.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        let (name, types) = words.next().unwrap().split_once('|').unwrap();
        for (index, output) in (0..).zip(words) {
            let drawn: Vec<u64> =
                types.split(',').zip(0..).map(|(ty, which)| inputs::input(ty, index, which)).collect();
            let theirs = u64::from_str_radix(output, 16).unwrap();
            let (bits, value) = evaluate(name, &drawn);
            let Some(Bound { relative, absolute }) = bound(name, value_of(name, drawn[0])) else { continue };
            let difference = (value - value_of(name, theirs)).abs();
            let close = difference <= absolute.max(relative * value.abs());
            assert!(bits == theirs || close, "{name} of {drawn:x?} is {theirs:x} there and {bits:x} here");
            compared += 1;
        }
    }
    assert!(compared > 2000, "{compared}");
}
