//! `math` against rustc's soft floats, against the tables of the ISA, and against what roots and logarithms are.

use super::exact::Discard;
use super::half::{self, Bf16, F16, Half};
use super::minifloat::Minifloat;
use super::{IntegerRounding, Mode, Rounding, approximate, convert, double, exact, single};
use proptest::prelude::*;
use rustc_apfloat::ieee::{self, BFloat, Float8E4M3FN, Float8E5M2, Quad, Single};
use rustc_apfloat::{Float, FloatConvert, StatusAnd};

const ROUNDINGS: [Rounding; 4] = [Rounding::Rn, Rounding::Rz, Rounding::Rm, Rounding::Rp];

fn mode(rounding: Rounding) -> Mode {
    Mode::RN.rounded(rounding)
}

fn bits_of<F: Float>(value: StatusAnd<F>, nan: u128) -> u128 {
    if value.value.is_nan() { nan } else { value.value.to_bits() }
}

/// All bit patterns, with those near each other and near the limits more often than by chance.
fn floats(exponent: u32, mantissa: u32) -> impl Strategy<Value = u64> {
    let sign = 1u64 << (exponent + mantissa);
    let one = ((1u64 << (exponent - 1)) - 1) << mantissa;
    let infinity = ((1u64 << exponent) - 1) << mantissa;
    let near = 4u64 << mantissa;
    prop_oneof![
        0..=sign | (sign - 1),
        (one - near..one + near).prop_map(|bits| bits),
        (one - near..one + near).prop_map(move |bits| bits | sign),
        (0..near),
        (infinity - near..infinity + 2),
        prop::sample::select(vec![
            0,
            sign,
            1,
            sign | 1,
            one,
            sign | one,
            infinity,
            sign | infinity,
            one - 1,
            one + 1
        ]),
    ]
}

fn f32s() -> impl Strategy<Value = f32> {
    floats(8, 23).prop_map(|bits| f32::from_bits(bits as u32))
}

fn soft(value: f32) -> Single {
    Single::from_bits(value.to_bits().into())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn f32_is_rounded_as_soft_floats_are(a in f32s(), b in f32s(), c in f32s()) {
        for rounding in ROUNDINGS {
            let (m, round) = (mode(rounding), double::round(rounding));
            let check = |ours: f32, theirs: StatusAnd<Single>| u128::from(ours.to_bits()) == bits_of(theirs, 0x7fff_ffff);
            prop_assert!(check(single::add(a, b, m), soft(a).add_r(soft(b), round)), "{a:e} + {b:e} {rounding:?}");
            prop_assert!(check(single::sub(a, b, m), soft(a).sub_r(soft(b), round)), "{a:e} - {b:e} {rounding:?}");
            prop_assert!(check(single::mul(a, b, m), soft(a).mul_r(soft(b), round)), "{a:e} * {b:e} {rounding:?}");
            prop_assert!(check(single::div(a, b, m), soft(a).div_r(soft(b), round)), "{a:e} / {b:e} {rounding:?}");
            prop_assert!(
                check(single::fma(a, b, c, m), soft(a).mul_add_r(soft(b), soft(c), round)),
                "{a:e} * {b:e} + {c:e} {rounding:?}"
            );
        }
    }

    #[test]
    fn f64_is_rounded_as_soft_floats_are(a in floats(11, 52), b in floats(11, 52), c in floats(11, 52), close in 0u64..8) {
        let soft = |value: f64| ieee::Double::from_bits(value.to_bits().into());
        let check = |got: f64, want: StatusAnd<ieee::Double>| {
            want.value.is_nan() && got.is_nan() || u128::from(got.to_bits()) == want.value.to_bits()
        };
        let (a, b, c) = (f64::from_bits(a), f64::from_bits(b), f64::from_bits(c));
        // A third operand that all but cancels the product, too.
        let cancels = -f64::from_bits((a * b).to_bits() ^ close);
        for rounding in ROUNDINGS {
            let round = double::round(rounding);
            prop_assert!(check(double::add(a, b, rounding), soft(a).add_r(soft(b), round)), "{a:e} + {b:e} {rounding:?}");
            prop_assert!(check(double::mul(a, b, rounding), soft(a).mul_r(soft(b), round)), "{a:e} * {b:e} {rounding:?}");
            prop_assert!(check(double::div(a, b, rounding), soft(a).div_r(soft(b), round)), "{a:e} / {b:e} {rounding:?}");
            for c in [c, cancels] {
                let want = soft(a).mul_add_r(soft(b), soft(c), round);
                prop_assert!(check(double::fma(a, b, c, rounding), want), "{a:e} * {b:e} + {c:e} {rounding:?}");
            }
        }
    }

    #[test]
    fn halves_are_rounded_as_soft_floats_are(a: u16, b: u16, c: u16) {
        halves::<F16, ieee::Half>(a, b, c)?;
        halves::<Bf16, BFloat>(a, b, c)?;
    }

    #[test]
    fn roots_enclose_the_number(a in f32s(), bits in floats(11, 52)) {
        let a = a.abs();
        prop_assume!(a.is_finite() && a > 0.0);
        let (down, up) = (single::sqrt(a, mode(Rounding::Rm)), single::sqrt(a, mode(Rounding::Rp)));
        let square = |value: f32| f64::from(value) * f64::from(value);
        prop_assert!(square(down) <= f64::from(a) && f64::from(a) <= square(up));
        prop_assert!(up == down || up == down.next_up());
        prop_assert_eq!(square(down) == f64::from(a), up == down);
        prop_assert_eq!(single::sqrt(a, mode(Rounding::Rz)).to_bits(), down.to_bits());
        let a = f64::from_bits(bits).abs();
        prop_assume!(a.is_finite() && a > 0.0);
        let (down, up) = (double::sqrt(a, Rounding::Rm), double::sqrt(a, Rounding::Rp));
        let wide = |value: f64| {
            let mut lost = false;
            FloatConvert::<Quad>::convert(ieee::Double::from_bits(value.to_bits().into()), &mut lost).value
        };
        let square = |value: f64| (wide(value) * wide(value)).value;
        prop_assert!(square(down) <= wide(a) && wide(a) <= square(up), "{a:e}");
        prop_assert!(up == down || up == down.next_up());
        prop_assert_eq!(square(down) == wide(a), up == down);
    }

    #[test]
    fn wide_numbers_become_narrow_as_soft_floats_do(bits in floats(11, 52), near in floats(5, 10), nudge in -1i64..2) {
        // An f16, or the middle between two, or just beside it.
        let middle = (f64::from(F16::to_f32(near as u16)) + f64::from(F16::to_f32((near as u16).wrapping_add(1)))) / 2.0;
        let beside = f64::from_bits(middle.to_bits().wrapping_add_signed(nudge));
        for value in [f64::from_bits(bits), middle, beside] {
            prop_assume!(!value.is_nan());
            let theirs = ieee::Double::from_bits(value.to_bits().into());
            for rounding in ROUNDINGS {
                let (m, round, mut lost) = (mode(rounding), double::round(rounding), false);
                let single: StatusAnd<Single> = theirs.convert_r(round, &mut lost);
                prop_assert_eq!(u128::from(convert::f64_to_f32(value, m).to_bits()), single.value.to_bits());
                let narrow: StatusAnd<ieee::Half> = theirs.convert_r(round, &mut lost);
                prop_assert_eq!(u128::from(convert::double_to_half::<F16>(value, m)), narrow.value.to_bits());
                let narrow: StatusAnd<BFloat> = theirs.convert_r(round, &mut lost);
                prop_assert_eq!(u128::from(convert::double_to_half::<Bf16>(value, m)), narrow.value.to_bits());
            }
        }
    }

    #[test]
    fn integers_become_floats_as_soft_floats_do(value: i64, shift in 0u32..64) {
        let value = value >> shift;
        for rounding in ROUNDINGS {
            let round = double::round(rounding);
            let single = Single::from_i128_r(value.into(), round).value.to_bits();
            prop_assert_eq!(u128::from(convert::s64_to_f32(value, rounding).to_bits()), single);
            let double = ieee::Double::from_i128_r(value.into(), round).value.to_bits();
            prop_assert_eq!(u128::from(convert::s64_to_f64(value, rounding).to_bits()), double);
            let narrow = ieee::Half::from_i128_r(value.into(), round).value.to_bits();
            prop_assert_eq!(u128::from(convert::int_to_half::<F16>(value.into(), rounding)), narrow);
            let double = ieee::Double::from_u128_r((value as u64).into(), round).value.to_bits();
            prop_assert_eq!(u128::from(convert::u64_to_f64(value as u64, rounding).to_bits()), double);
            let single = Single::from_u128_r((value as u64).into(), round).value.to_bits();
            prop_assert_eq!(u128::from(convert::u64_to_f32(value as u64, rounding).to_bits()), single);
        }
    }

    #[test]
    fn floats_become_integers_as_soft_floats_do(bits in floats(11, 52)) {
        let value = f64::from_bits(bits);
        prop_assume!(!value.is_nan());
        let theirs = ieee::Double::from_bits(bits.into());
        let roundings = [IntegerRounding::Rni, IntegerRounding::Rzi, IntegerRounding::Rmi, IntegerRounding::Rpi];
        for (rounding, soft) in roundings.into_iter().zip(ROUNDINGS) {
            for (bits, signed) in [(8, false), (8, true), (16, true), (32, false), (32, true), (64, false), (64, true)] {
                let mut exact = false;
                let ours = convert::float_to_int(value, rounding, convert::Integer { bits, signed });
                // Both clamp what is out of range.
                let theirs = if signed {
                    theirs.to_i128_r(bits as usize, double::round(soft), &mut exact).value as u64
                } else {
                    theirs.to_u128_r(bits as usize, double::round(soft), &mut exact).value as u64
                };
                prop_assert_eq!(ours, theirs, "{:e} {:?} {} {}", value, rounding, bits, signed);
            }
        }
    }

    #[test]
    fn logarithm_and_power_undo_each_other(a in 1e-3f32..1e3) {
        let again = approximate::ex2(approximate::lg2(a, false), false);
        prop_assert!((again - a).abs() / a < 1e-5, "{a} {again}");
        let (sine, cosine) = (f64::from(approximate::sin(a, false)), f64::from(approximate::cos(a, false)));
        prop_assert!((sine * sine + cosine * cosine - 1.0).abs() < 1e-6);
        prop_assert_eq!(approximate::rcp(a, true), single::rcp(a, Mode::RN));
        prop_assert_eq!(approximate::sqrt(a, true), single::sqrt(a, Mode::RN));
        prop_assert!((approximate::rsqrt(a, true) * approximate::sqrt(a, true) - 1.0).abs() < 2e-7);
        let e = approximate::ex2(2.0 * std::f32::consts::LOG2_E * a.min(10.0), false);
        prop_assert!((approximate::tanh(a.min(10.0)) - (e - 1.0) / (e + 1.0)).abs() < 1e-5);
    }
}

fn halves<H: Half, S: Float>(a: u16, b: u16, c: u16) -> Result<(), TestCaseError> {
    let soft = |bits: u16| S::from_bits(bits.into());
    let (x, y, z) = (soft(a), soft(b), soft(c));
    let round = double::round(Rounding::Rn);
    let nan = u128::from(half::NAN);
    prop_assert_eq!(u128::from(half::add::<H>(a, b, Mode::RN)), bits_of(x.add_r(y, round), nan));
    prop_assert_eq!(u128::from(half::sub::<H>(a, b, Mode::RN)), bits_of(x.sub_r(y, round), nan));
    prop_assert_eq!(u128::from(half::mul::<H>(a, b, Mode::RN)), bits_of(x.mul_r(y, round), nan));
    prop_assert_eq!(u128::from(half::fma::<H>(a, b, c, Mode::RN)), bits_of(x.mul_add_r(y, z, round), nan));
    Ok(())
}

#[test]
fn every_half_is_its_value() {
    for bits in 0..=u16::MAX {
        let mut lost = false;
        let theirs: StatusAnd<Single> = ieee::Half::from_bits(bits.into()).convert(&mut lost);
        let ours = F16::to_f32(bits);
        assert!(
            theirs.value.is_nan() && ours.is_nan() || u128::from(ours.to_bits()) == theirs.value.to_bits(),
            "{bits:x}"
        );
        if !ours.is_nan() {
            assert_eq!(convert::f32_to_half::<F16>(ours, Mode::RN), bits);
        }
    }
}

#[test]
fn eight_bit_floats_are_as_soft_floats_are() {
    for bits in 0..=u8::MAX {
        eight::<Float8E4M3FN>(Minifloat::E4m3, bits);
        eight::<Float8E5M2>(Minifloat::E5m2, bits);
    }
    let largest = |of: Minifloat| of.to_f64(of.from_f64(f64::INFINITY, false));
    assert_eq!((largest(Minifloat::E4m3), largest(Minifloat::E5m2)), (448.0, 57344.0));
    for bits in 0..=u16::MAX {
        narrowed::<Float8E4M3FN>(Minifloat::E4m3, bits, 448.0);
        narrowed::<Float8E5M2>(Minifloat::E5m2, bits, 57344.0);
    }
}

fn eight<S: Float + FloatConvert<ieee::Double>>(of: Minifloat, bits: u8) {
    let mut lost = false;
    let theirs = S::from_bits(bits.into()).convert(&mut lost).value;
    let ours = of.to_f64(bits);
    assert!(
        theirs.is_nan() && ours.is_nan() || theirs.to_bits() == u128::from(ours.to_bits()),
        "{of:?} {bits:x} {ours}"
    );
}

fn narrowed<S: Float>(of: Minifloat, bits: u16, largest: f64)
where
    ieee::Half: FloatConvert<S>,
{
    let value = f64::from(F16::to_f32(bits));
    if value.is_nan() || value.abs() > largest {
        return;
    }
    let mut lost = false;
    let theirs: StatusAnd<S> = ieee::Half::from_bits(bits.into()).convert(&mut lost);
    assert_eq!(u128::from(of.from_f64(value, false)), theirs.value.to_bits(), "{of:?} {value}");
}

#[test]
fn four_and_six_bit_floats_have_the_values_of_the_microscaling_formats() {
    let values = |of: Minifloat, count: u8| (0..count).map(|bits| of.to_f64(bits)).collect::<Vec<f64>>();
    assert_eq!(values(Minifloat::E2m1, 8), [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]);
    assert_eq!(values(Minifloat::E2m3, 32)[..3], [0.0, 0.125, 0.25]);
    assert_eq!(values(Minifloat::E2m3, 32)[31], 7.5);
    assert_eq!(values(Minifloat::E3m2, 32)[..3], [0.0, 0.0625, 0.125]);
    assert_eq!(values(Minifloat::E3m2, 32)[31], 28.0);
    for of in [Minifloat::E2m1, Minifloat::E2m3, Minifloat::E3m2] {
        for bits in 0..1u8 << of.bits() {
            assert_eq!(of.from_f64(of.to_f64(bits), false), bits, "{of:?}");
        }
        assert_eq!(of.from_f64(f64::NAN, false), of.from_f64(1e9, false));
    }
    // Ties to even: 2.5 lies between 2 and 3, 5 between 4 and 6.
    assert_eq!([2.5, 5.0, -5.1, 0.25].map(|value| Minifloat::E2m1.from_f64(value, false)), [4, 6, 15, 0]);
}

#[test]
fn narrow_magnitudes_round_ties_away_where_asked() {
    let tf32 = exact::Format { exponent: 8, mantissa: 10 };
    let tie = f64::from(f32::from_bits(0x3f80_1000));
    assert_eq!(exact::magnitude(tie, tf32, Discard::NearestAway), 0x3f80_2000 >> 13);
    assert_eq!(exact::magnitude(tie, tf32, Discard::Mode(Rounding::Rn)), 0x3f80_0000 >> 13);
}

/// The tables "for various corner-case inputs" of the ISA: -Inf, -0, +0, +Inf.
#[test]
fn approximate_functions_have_the_special_values_of_the_isa() {
    type Function = fn(f32, bool) -> f32;
    let (inf, nan) = (f32::INFINITY, single::NAN);
    let table: [(&str, Function, [f32; 4]); 8] = [
        ("rcp", approximate::rcp, [-0.0, -inf, inf, 0.0]),
        ("sqrt", approximate::sqrt, [nan, -0.0, 0.0, inf]),
        ("rsqrt", approximate::rsqrt, [nan, -inf, inf, 0.0]),
        ("sin", approximate::sin, [nan, -0.0, 0.0, nan]),
        ("cos", approximate::cos, [nan, 1.0, 1.0, nan]),
        ("lg2", approximate::lg2, [nan, -inf, -inf, inf]),
        ("ex2", approximate::ex2, [0.0, 1.0, 1.0, inf]),
        ("tanh", |a, _| approximate::tanh(a), [-1.0, -0.0, 0.0, 1.0]),
    ];
    let subnormal = f32::from_bits(0x0060_0000);
    for (name, function, wanted) in table {
        for ftz in [false, true] {
            for (input, wanted) in [-inf, -0.0, 0.0, inf].into_iter().zip(wanted) {
                assert_eq!(function(input, ftz).to_bits(), wanted.to_bits(), "{name} of {input}");
            }
            assert_eq!(function(f32::from_bits(0xff80_0001), ftz).to_bits(), nan.to_bits(), "{name} of NaN");
        }
        if name != "tanh" {
            assert_eq!(
                function(-subnormal, true).to_bits(),
                function(-0.0, true).to_bits(),
                "{name} flushes"
            );
        }
        if !matches!(name, "tanh" | "sin" | "cos" | "ex2") {
            assert_ne!(function(subnormal, false).to_bits(), function(0.0, false).to_bits(), "{name} keeps");
        }
    }
    for function in [approximate::sqrt, approximate::rsqrt, approximate::lg2] {
        assert_eq!(function(-1.0, false).to_bits(), nan.to_bits());
    }
}

/// "For 2^126 < |b| < 2^128, if a is infinity, div.approx.f32 returns NaN, otherwise it returns a sign-preserving zero."
#[test]
fn division_by_a_large_number_gives_zero_only_where_approximate() {
    let large = f32::from_bits(0x7e80_0001);
    for ftz in [false, true] {
        assert_eq!(approximate::div(large, -large, ftz).to_bits(), (-0f32).to_bits());
        assert!(approximate::div(f32::INFINITY, large, ftz).is_nan());
        assert_eq!(approximate::div_full(large, -large, ftz), -1.0);
        assert_eq!(approximate::div(3.0, 2.0, ftz), 1.5);
    }
}

#[test]
fn upper_halves_of_f64_are_approximated() {
    for (input, wanted) in [(0.0, f64::INFINITY), (f64::INFINITY, 0.0), (f64::from_bits(1), f64::INFINITY)] {
        assert_eq!(approximate::rcp_ftz_f64(input), wanted);
        assert_eq!(approximate::rsqrt_ftz_f64(input), wanted);
    }
    assert_eq!(approximate::rcp_ftz_f64(f64::NAN).to_bits(), 0x7fff_ffff_0000_0000);
    assert_eq!(approximate::rsqrt_ftz_f64(-1.0).to_bits(), 0x7fff_ffff_0000_0000);
    assert!((approximate::rcp_ftz_f64(3.0) * 3.0 - 1.0).abs() < 2f64.powi(-19));
    assert_eq!(approximate::rsqrt_f64(0.25), 2.0);
    assert_eq!(approximate::ex2_half::<F16>(0x4200, false), 0x4800); // 2^3
    assert_eq!(approximate::tanh_half::<Bf16>(0x7f80), 0x3f80); // tanh of infinity
}

#[test]
fn flushing_sees_what_only_rounding_lifts() {
    // 2^-126 (1 - 2^-24): with a limitless exponent it needs no rounding and is less than 2^-126.
    let (a, b) = (f32::MIN_POSITIVE, 1.0 - f32::EPSILON / 2.0);
    assert_eq!(single::mul(a, b, Mode::RN), f32::MIN_POSITIVE);
    let ftz = Mode { ftz: true, ..Mode::RN };
    assert_eq!(single::mul(-a, b, ftz).to_bits(), (-0f32).to_bits());
    assert_eq!(half::mul::<F16>(0x8400, 0x3bff, ftz), 0x8000);
    assert_eq!(half::mul::<F16>(0x8400, 0x3bff, Mode::RN), 0x8400);
}
