//! Two numbers.

/// The difference of two numbers over the larger of them: 0 for equal ones, 1 where one of them is zero, 2 for opposite ones.
/// NaN equals NaN, and an infinity itself; with anything else they differ by infinity.
pub fn relative_error(expected: f64, got: f64) -> f64 {
    if expected == got || (expected.is_nan() && got.is_nan()) {
        return 0.0;
    }
    if !expected.is_finite() || !got.is_finite() {
        return f64::INFINITY;
    }
    let larger = expected.abs().max(got.abs());
    // Scaled first: the difference of two large numbers may be infinite.
    (expected / larger - got / larger).abs()
}

/// Whether two numbers are the same within `tolerance`, relative to the larger one.
pub fn same_number(expected: f64, got: f64, tolerance: f64) -> bool {
    relative_error(expected, got) <= tolerance
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn not_a_number_and_infinity() {
        let (nan, inf) = (f64::NAN, f64::INFINITY);
        for (a, b, same) in [
            (nan, nan, true),
            (nan, 0.0, false),
            (1.0, nan, false),
            (nan, inf, false),
            (inf, inf, true),
            (inf, -inf, false),
            (inf, f64::MAX, false),
            (0.0, -0.0, true),
            (0.0, f64::MIN_POSITIVE, false),
            (f64::MAX, -f64::MAX, false),
        ] {
            // Not even the largest finite tolerance bridges these.
            assert_eq!(same_number(a, b, 0.999), same, "{a} {b}");
        }
    }

    proptest! {
        #[test]
        fn the_error_is_symmetric_scales_and_is_at_most_two(a: f64, b: f64, shift in -20..20i32) {
            let error = relative_error(a, b);
            prop_assert_eq!(error.to_bits(), relative_error(b, a).to_bits());
            prop_assert!(!error.is_nan() && error >= 0.0);
            if a.is_finite() && b.is_finite() {
                prop_assert!(error <= 2.0);
                let scale = f64::from(shift).exp2();
                let (x, y) = (a * scale, b * scale);
                if x.is_normal() && y.is_normal() {
                    prop_assert!((relative_error(x, y) - error).abs() <= 1e-12);
                }
            }
        }

        #[test]
        fn zero_is_never_near_another_number(a in any::<f64>().prop_filter("not zero", |a| *a != 0.0)) {
            prop_assert!(!same_number(a, 0.0, 0.999));
            prop_assert!(!same_number(0.0, a, 0.999));
        }
    }
}
