use super::*;

struct Names;

impl Constants for Names {
    fn value(&self, name: &str) -> Option<i64> {
        match name {
            "N" => Some(1000),
            "Traits::kTile" => Some(32),
            "ZERO" => Some(0),
            _ => None,
        }
    }

    fn dimensions(&self, name: &str) -> Option<[i64; 3]> {
        (name == "block").then_some([32, 8, 1])
    }
}

#[test]
fn folds_what_is_constant_and_nothing_else() {
    let cases: &[(&str, Option<i64>)] = &[
        ("1 + 2 * 3 - 4 / 2", Some(5)),
        ("(1 + 2) * -3", Some(-9)),
        ("7 % 4 << 2 | 1", Some(13)),
        ("1 << 4 >> 2", Some(4)),
        ("~0 & 0xff ^ 0b1111", Some(0xf0)),
        ("!0 + !5", Some(1)),
        ("0x10 + 010 + 0b10 + 1'000'000", Some(1_000_026)),
        ("32u + 1UL + 2ull + 3z", Some(38)),
        ("'a' + '\\n' + '\\0' + '\\x41'", Some(97 + 10 + 65)),
        ("1 ? 2 : 3", Some(2)),
        ("0 ? 2 : 1 ? 4 : 5", Some(4)),
        ("0 ? unknown : 7", Some(7)),
        ("N > 10 ? N / 10 : unknown", Some(100)),
        ("1 ? 0 ? 1 : 2 : 3", Some(2)),
        ("sizeof(float) * sizeof(unsigned long long) + sizeof(bool)", Some(33)),
        ("sizeof(float4) / sizeof(std::uint16_t)", Some(8)),
        ("(int)3 + (unsigned char)257 + int(2) + static_cast<size_t>(4)", Some(10)),
        ("(signed char)200", Some(-56)),
        ("(N + 255) / 256", Some(4)),
        ("Traits::kTile * 2", Some(64)),
        ("::N", Some(1000)),
        ("true && !false", Some(1)),
        ("ZERO && unknown", Some(0)),
        ("unknown || 1", Some(1)),
        ("3 /* three */ + // two\n 2", Some(5)),
        ("1 + \\\n 2", Some(3)),
        ("3 == 3 && 2 != 2 || 1 <= 1", Some(1)),
        ("(((((3)))))", Some(3)),
        ("- - 3", Some(3)),
        ("(short int)70000", Some(4464)),
        // not known
        ("unknown", None),
        ("unknown && 1", None),
        ("1.5", None),
        ("2e3", None),
        ("1.f", None),
        ("\"text\"", None),
        ("1 / 0", None),
        ("1 % ZERO", None),
        ("1 << 64", None),
        ("1 << -1", None),
        ("9223372036854775807 + 1", None),
        ("-(-9223372036854775807 - 1)", None),
        ("(-9223372036854775807 - 1) / -1", None),
        ("99999999999999999999", None),
        ("sizeof(Unknown)", None),
        ("(float)3", None),
        ("sizeof(long)", None),
        ("f(3)", None),
        // not an expression
        ("", None),
        ("1 +", None),
        ("* 3", None),
        ("(1", None),
        ("1)", None),
        ("1 2", None),
        ("1 ? 2", None),
        ("1 : 2", None),
        ("(1 ? 2) : 3", None),
        ("'", None),
        ("'\\", None),
        ("\"\\é", None),
        ("é", None),
        ("::", None),
        ("/* open", None),
        ("a = 3", None),
    ];
    for (text, expected) in cases {
        assert_eq!(fold_text(text, &Names), *expected, "{text}");
    }
}

#[test]
fn depth_and_length_cost_no_call_stack() {
    let deep = format!("{}1{}", "(".repeat(100_000), ")".repeat(100_000));
    assert_eq!(fold_text(&deep, &()), None);
    let deep = format!("{}1{}", "(".repeat(2_000), ")".repeat(2_000));
    assert_eq!(fold_text(&deep, &()), Some(1));
    let chain = format!("{}1", "0 ? 2 : ".repeat(1_000));
    assert_eq!(fold_text(&chain, &()), Some(1));
    assert_eq!(fold_text(&"-".repeat(100_000), &()), None);
}

#[test]
fn a_launch_has_three_sizes() {
    let cases: &[(&str, Option<[i64; 3]>)] = &[
        ("256", Some([256, 1, 1])),
        ("dim3(32, 8)", Some([32, 8, 1])),
        ("dim3{16, 16, 2}", Some([16, 16, 2])),
        ("{N / 10, 1, 1}", Some([100, 1, 1])),
        ("dim3((1 + 1) * 2, (3))", Some([4, 3, 1])),
        ("dim3()", Some([1, 1, 1])),
        (" block ", Some([32, 8, 1])),
        ("N", Some([1000, 1, 1])),
        ("dim3(n)", None),
        ("dim3(1, 2, 3, 4)", None),
        ("dim3(1, (2)", None),
        ("other", None),
        ("{", None),
    ];
    for (text, expected) in cases {
        assert_eq!(fold_dimensions(text, &Names), *expected, "{text}");
    }
}
