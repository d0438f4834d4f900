use proptest::prelude::*;

use super::super::tests::{Made, floats, gather, integers, tuple, view};
use super::*;
use crate::torch::judge::parallel::ALONE;

fn parts_of(expected: &Made, again: Option<&Made>, got: &Made) -> Vec<Part> {
    compare("output", view(expected), again.map(view), view(got), &Rule::default())
}

fn one(expected: &[f64], got: &[f64]) -> Part {
    let of = |values: &[f64]| floats(Dtype::Float32, &[values.len() as u64], values);
    parts_of(&of(expected), None, &of(got)).remove(0)
}

#[test]
fn zeros_and_the_mean_are_no_softmax() {
    let tiny: Vec<f64> = (0..1000).map(|i| 8.9e-6 + f64::from(i) * 1.51e-8).collect();
    let zeros = one(&tiny, &vec![0.0; 1000]);
    assert_eq!((zeros.result.outside, zeros.result.normalized), (1000, 1.0));
    assert!(one(&tiny, &vec![1.0 / 65536.0; 1000]).result.outside > 990);
    let other_order: Vec<f64> = tiny.iter().map(|v| v * (1.0 + 3e-7)).collect();
    assert!(one(&tiny, &other_order).is_same());
}

#[test]
fn not_a_number_is_no_wildcard_and_infinity_no_tolerance() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    for (expected, got, same) in [
        (nan, nan, true),
        (nan, 1.0, false),
        (1.0, nan, false),
        (inf, inf, true),
        (inf, -inf, false),
        (inf, 1.0, false),
        (1.0, inf, false),
        (0.0, -0.0, true),
    ] {
        assert_eq!(one(&[2.0, expected], &[2.0, got]).is_same(), same, "{expected} {got}");
    }
}

#[test]
fn bits_that_are_the_same_are_counted_as_elements_that_are() {
    let values: Vec<f64> = (0..600_001).map(f64::from).collect();
    for (dtype, count) in [(Dtype::Float32, 600_001), (Dtype::Float64, 600_001), (Dtype::Complex64, 300_000)]
    {
        let numbers = if dtype == Dtype::Complex64 { &values[..600_000] } else { &values[..] };
        let one = floats(dtype, &[count], numbers);
        let part = parts_of(&one, Some(&one), &one).remove(0);
        assert_eq!((part.result.count as u64, part.result.outside, part.result.unsteady), (count, 0, 0));
        assert!(part.is_same() && part.result.worst.is_none() && part.result.relative == 0.0);
        if dtype == Dtype::Complex64 {
            continue;
        }
        // What the reference does not repeat is left out though the candidate gives the first answer.
        let mut other = numbers.to_vec();
        other[7] += 1e6;
        let again = floats(dtype, &[count], &other);
        let part = parts_of(&one, Some(&again), &one).remove(0);
        assert_eq!((part.result.count as u64, part.result.unsteady), (count - 1, 1));
    }
}

#[test]
fn the_worst_element_is_named_by_its_indices() {
    let expected: Vec<f64> = (0..12).map(f64::from).collect();
    let mut got = expected.clone();
    got[3] += 0.01;
    got[7] += 0.5;
    let shaped = |values: &[f64]| floats(Dtype::Float32, &[3, 4], values);
    let part = parts_of(&shaped(&expected), None, &shaped(&got)).remove(0);
    assert_eq!(part.result.outside, 2);
    assert_eq!(part.worst.unwrap(), "[1, 3]: expected 7, got 7.5000000e0");
    assert_eq!(part.kind, "float32 [3, 4]");
}

#[test]
fn every_type_is_compared() {
    for dtype in [Dtype::Float64, Dtype::Float32, Dtype::Float16, Dtype::Bfloat16] {
        let of = |last: f64| floats(dtype, &[2], &[1.0, last]);
        assert!(parts_of(&of(2.0), None, &of(2.0))[0].is_same());
        let part = parts_of(&of(2.0), None, &of(2.25)).remove(0);
        assert_eq!((part.result.outside, part.is_same()), (1, false), "{dtype:?}");
    }
    let complex = |imaginary: f64| floats(Dtype::Complex64, &[2], &[1.0, 2.0, 3.0, imaginary]);
    let part = parts_of(&complex(4.0), None, &complex(5.0)).remove(0);
    assert_eq!((part.result.count, part.result.outside), (2, 1));
    assert_eq!(part.worst.unwrap(), "[1]: expected 3+4i, got 3+5i");
    let part = parts_of(&integers(&[2], &[1, i64::MAX]), None, &integers(&[2], &[1, i64::MAX - 1])).remove(0);
    assert_eq!(part.worst.unwrap(), "[1]: expected 9223372036854775807, got 9223372036854775806");
}

#[test]
fn another_shape_type_device_or_nesting_is_said_before_any_element() {
    let a = floats(Dtype::Float32, &[2, 1], &[1.0, 2.0]);
    let mismatch = |got: &Made| {
        let part = parts_of(&a, None, got).remove(0);
        assert!(!part.is_same() && !part.is_compared());
        format!("{} {}", part.place, part.mismatch.unwrap())
    };
    assert_eq!(
        mismatch(&floats(Dtype::Float32, &[1], &[1.0])),
        "output has shape [1], and should have [2, 1]"
    );
    assert_eq!(
        mismatch(&floats(Dtype::Float64, &[2, 1], &[1.0, 2.0])),
        "output has dtype float64, and should have float32"
    );
    assert_eq!(mismatch(&tuple(vec![a.clone()])), "output is a tuple, and should be a tensor");
    let on = |device: &str| {
        let mut made = a.clone();
        made.0.tensors[0].device = Some(device.to_owned());
        made
    };
    let part = parts_of(&on("cuda:0"), None, &on("cpu")).remove(0);
    assert_eq!(part.mismatch.unwrap(), "lies on cpu, and should lie on cuda:0");
    let mut cut = a.clone();
    cut.1.truncate(4);
    assert_eq!(mismatch(&cut), "output has a tensor of shape [2, 1] whose bytes are not all there");
}

#[test]
fn nested_values_are_compared_each() {
    let a = || floats(Dtype::Float32, &[2], &[1.0, 2.0]);
    let dict = |second: Made| {
        gather(vec![a(), second], |items| {
            let mut items = items.into_iter();
            let first = Tree::List { items: vec![items.next().unwrap(), Tree::Int { v: "7".into() }] };
            Tree::Dict { items: vec![("x".into(), first), ("mask".into(), items.next().unwrap())] }
        })
    };
    let wrong = dict(floats(Dtype::Float32, &[2], &[1.0, 3.0]));
    let found = parts_of(&dict(a()), None, &wrong);
    let places: Vec<_> = found.iter().map(|part| (part.place.as_str(), part.is_same())).collect();
    assert_eq!(places, [("output[\"x\"][0]", true), ("output[\"x\"][1]", true), ("output[\"mask\"]", false)]);
    let fewer = gather(vec![a()], |items| Tree::Dict { items: vec![("x".into(), items[0].clone())] });
    let found = parts_of(&dict(a()), None, &fewer).remove(0);
    assert_eq!(found.mismatch.unwrap(), "has [\"x\"], and should have [\"x\"], [\"mask\"]");
}

#[test]
fn scalars_are_values_too() {
    let of = |tree: Tree| (crate::torch::values::Values { tree, tensors: Vec::new(), bytes: 0 }, Vec::new());
    let float = |v: &str| of(Tree::Float { v: v.into() });
    assert!(parts_of(&float("1.0"), None, &float("1.00001"))[0].is_same());
    assert!(parts_of(&float("nan"), None, &float("nan"))[0].is_same());
    let part = parts_of(&float("1.0"), None, &float("1.1")).remove(0);
    assert_eq!(part.worst.unwrap(), "expected 1.0, got 1.1");
    assert_eq!(parts_of(&float("1.0"), Some(&float("2.0")), &float("3.0"))[0].result.unsteady, 1);
    assert!(!parts_of(&of(Tree::None), None, &float("1.0"))[0].is_same());
}

#[test]
fn what_the_reference_does_not_repeat_is_left_out() {
    let of = |values: &[f64]| floats(Dtype::Float32, &[values.len() as u64], values);
    let part = parts_of(&of(&[1.0, 2.0]), Some(&of(&[1.0, 3.0])), &of(&[1.0, 9.0])).remove(0);
    assert_eq!((part.result.count, part.result.unsteady, part.result.outside), (1, 1, 0));
    let part = parts_of(&of(&[1.0, 2.0]), Some(&of(&[1.0])), &of(&[1.0, 9.0])).remove(0);
    assert!(!part.is_compared() && part.result.unsteady == 2);
}

#[test]
fn an_empty_tensor_is_the_same_and_compares_nothing() {
    let empty = || floats(Dtype::Float32, &[0, 3], &[]);
    let part = parts_of(&empty(), None, &empty()).remove(0);
    assert!(part.is_same() && !part.is_compared());
}

#[test]
fn large_tensors_are_cut_without_a_seam() {
    let count = (ALONE / 4) * 3 + 1;
    #[allow(clippy::cast_precision_loss)]
    let values: Vec<f64> = (0..count).map(|i| (i % 1000) as f64 / 8.0).collect();
    for at in [0, count / 2, count / 2 + 1, count - 1] {
        let mut got = values.clone();
        got[at] += 1.0;
        let part = one(&values, &got);
        assert_eq!((part.result.outside, part.result.count), (1, count));
        assert_eq!(part.result.worst.unwrap().index, at);
    }
}

/// The rule as it is written, without haste.
fn by_the_letter(expected: &[f64], got: &[f64], tolerance: f64) -> usize {
    let finite: Vec<f64> = expected.iter().copied().filter(|value| value.is_finite()).collect();
    #[allow(clippy::cast_precision_loss)]
    let rms = (finite.iter().map(|value| value * value).sum::<f64>() / finite.len().max(1) as f64).sqrt();
    let outside = |(expected, got): &(&f64, &f64)| {
        let (expected, got) = (**expected, **got);
        if expected.is_finite() && got.is_finite() {
            (got - expected).abs() > tolerance * expected.abs() + tolerance * rms.min(1.0) + 1e-18
        } else {
            !(expected == got || expected.is_nan() && got.is_nan())
        }
    };
    expected.iter().zip(got).filter(outside).count()
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => -2f64..2.0, 2 => -1e5..1e5f64, 1 => -1e-6..1e-6f64, 1 => Just(f64::NAN), 1 => Just(f64::INFINITY), 1 => Just(0.0),
    ]
}

proptest! {
    #[test]
    fn the_rule_is_the_one_that_is_written(pairs in prop::collection::vec((number(), number(), any::<bool>()), 1..80)) {
        let expected: Vec<f64> = pairs.iter().map(|pair| pair.0).collect();
        let got: Vec<f64> = pairs.iter().map(|(a, b, near)| if *near { a * (1.0 + b * 1e-9) } else { *b }).collect();
        let of = |values: &[f64]| floats(Dtype::Float64, &[values.len() as u64], values);
        let part = parts_of(&of(&expected), None, &of(&got)).remove(0);
        prop_assert_eq!(part.result.outside, by_the_letter(&expected, &got, 1e-9));
    }

    #[test]
    fn never_looser_than_allclose(pairs in prop::collection::vec((-3f64..3.0, -3e-4f64..3e-4), 1..60)) {
        let expected: Vec<f64> = pairs.iter().map(|pair| pair.0).collect();
        let got: Vec<f64> = pairs.iter().map(|pair| pair.0 + pair.1).collect();
        let of = |values: &[f64]| floats(Dtype::Float64, &[values.len() as u64], values);
        let rule = Rule { tolerance: Some(1e-4) };
        let part = compare("output", view(&of(&expected)), None, view(&of(&got)), &rule).remove(0);
        let close = expected.iter().zip(&got).all(|(a, b)| (a - b).abs() <= 1e-4 + 1e-4 * a.abs());
        prop_assert!(!part.is_same() || close);
    }

    #[test]
    fn anything_is_itself(values in prop::collection::vec(any::<f64>(), 1..60)) {
        let made = floats(Dtype::Float64, &[values.len() as u64], &values);
        let part = parts_of(&made, Some(&made), &made).remove(0);
        prop_assert!(part.is_same() && part.result.count == values.len());
    }

    #[test]
    fn zeros_never_pass_for_small_numbers(values in prop::collection::vec(0.5f64..1.0, 1..60), exponent in -60..0i32) {
        let values: Vec<f64> = values.iter().map(|value| value * f64::from(exponent).exp2()).collect();
        prop_assert!(one(&values, &vec![0.0; values.len()]).result.outside == values.len());
    }

    #[test]
    fn claims_never_panic(offset: u64, bytes: u64, shape in prop::collection::vec(any::<u64>(), 0..4), i in 0usize..3) {
        let mut made = floats(Dtype::Float32, &[2], &[1.0, 2.0]);
        made.0.tree = Tree::Tensor { i };
        made.0.tensors[0] = Tensor { dtype: Dtype::Float32, shape, strides: None, offset, bytes, device: None };
        let other = floats(Dtype::Float32, &[2], &[1.0, 2.0]);
        parts_of(&other, Some(&made), &made);
        parts_of(&made, None, &other);
    }
}
