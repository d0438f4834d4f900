//! Numbers and units as Nsight Compute prints them.

use crate::kernel::Unit;

/// A number, or `None` for what was not measured: empty, `nan`, `inf`, `n/a`, `(!) n/a`, `no data`.
///
/// Thousands are separated by commas, or by points where the session's language writes a decimal comma.
pub(super) fn number(text: &str, decimal_comma: bool) -> Option<f64> {
    let text = text.trim().trim_start_matches("(!)").trim();
    if text.is_empty() || !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let plain: String = text
        .chars()
        .filter_map(|c| match c {
            ',' if decimal_comma => Some('.'),
            '.' if decimal_comma => None,
            ',' | '\u{a0}' | '\u{202f}' | '\'' => None,
            c => Some(c),
        })
        .collect();
    plain.parse().ok().filter(|value: &f64| value.is_finite())
}

/// A count.
pub(super) fn count(text: &str, decimal_comma: bool) -> Option<u64> {
    number(text, decimal_comma)
        .filter(|value| *value >= 0.0 && *value < 1e19)
        .map(|value| value.round() as u64)
}

/// Whether a number can only have been written with a decimal comma: `65,77`, `27.595.520`.
pub(super) fn shows_decimal_comma(text: &str) -> bool {
    let text = text.trim();
    if text.is_empty()
        || !text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b',' | b'-'))
    {
        return false;
    }
    match (text.rfind('.'), text.rfind(',')) {
        (Some(point), Some(comma)) => comma > point,
        (Some(_), None) => text.matches('.').count() > 1,
        (None, Some(comma)) => {
            text.matches(',').count() == 1 && (text.len() - comma != 4 || text.starts_with("0,"))
        }
        (None, None) => false,
    }
}

/// Three numbers in brackets: `(65536, 1, 1)`, `(4,096, 1, 1)`, `(32,32,1)`.
pub(super) fn dimensions(text: &str) -> Option<[u32; 3]> {
    let inner = text.trim().strip_prefix('(')?.strip_suffix(')')?;
    let parts: Vec<&str> =
        if inner.contains(", ") { inner.split(", ").collect() } else { inner.split(',').collect() };
    let mut numbers = parts.iter().map(|part| part.replace([',', '.', ' '], "").parse::<u32>().ok());
    let dimensions = [numbers.next()??, numbers.next()??, numbers.next()??];
    numbers.next().is_none().then_some(dimensions)
}

/// What a value in `unit` is multiplied with to be in the base unit of a metric. `None` for a unit that is no such unit.
///
/// Prefixes are decimal: a kernel with 4,096 bytes of shared memory is shown with 4.096 Kbyte.
pub(super) fn factor(unit: &str, base: Unit) -> Option<f64> {
    let unit = unit.trim();
    let (above, below) = unit.split_once('/').unwrap_or((unit, ""));
    match base {
        Unit::Count | Unit::Ratio => Some(prefix(above, &COUNTED).unwrap_or(1.0)),
        Unit::Percent => (unit.is_empty() || unit == "%").then_some(1.0),
        Unit::Bytes => prefix(above, &["byte", "B", "bytes"]),
        Unit::BytesPerSecond => Some(prefix(above, &["byte", "B", "bytes"])? / seconds(below)?),
        Unit::Seconds => seconds(above),
        Unit::Hertz => prefix(above, &["hz", "Hz"])
            .or_else(|| Some(prefix(above, &["cycle", "cycles"])? / seconds(below)?)),
    }
}

/// What is counted, where a prefix may stand before it.
const COUNTED: [&str; 12] = [
    "inst",
    "sector",
    "sectors",
    "cycle",
    "warp",
    "thread",
    "request",
    "requests",
    "block",
    "register",
    "branches",
    "wavefronts",
];

/// The factor of a unit that is one of `names` behind a prefix.
fn prefix(unit: &str, names: &[&str]) -> Option<f64> {
    names.iter().find_map(|name| {
        Some(match unit.strip_suffix(name)? {
            "" => 1.0,
            "K" | "k" => 1e3,
            "M" => 1e6,
            "G" => 1e9,
            "T" => 1e12,
            "P" => 1e15,
            _ => return None,
        })
    })
}

/// How many seconds a unit of time is.
fn seconds(unit: &str) -> Option<f64> {
    Some(match unit {
        "s" | "sec" | "second" | "seconds" => 1.0,
        "ms" | "msec" | "msecond" | "millisecond" => 1e-3,
        "us" | "usec" | "usecond" | "microsecond" => 1e-6,
        "ns" | "nsec" | "nsecond" | "nanosecond" => 1e-9,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_was_not_measured() {
        for text in [
            "",
            " ",
            "nan",
            "-nan",
            "NaN",
            "inf",
            "-inf",
            "n/a",
            "N/A",
            "(!) n/a",
            "no data",
            "PolicySpread",
            "1.2.3",
        ] {
            assert_eq!(number(text, false), None, "{text}");
        }
        for (text, value) in [
            ("0", 0.0),
            ("1,048,576", 1_048_576.0),
            ("2,723,574,025,974.03", 2_723_574_025_974.03),
            ("4194304.000000", 4_194_304.0),
            ("4.0e-05", 4.0e-5),
            ("-3", -3.0),
        ] {
            assert_eq!(number(text, false), Some(value), "{text}");
        }
        assert_eq!(number("27.595.520", true), Some(27_595_520.0));
        assert_eq!(number("65,77", true), Some(65.77));
    }

    #[test]
    fn a_decimal_comma_is_told_from_thousands() {
        for text in ["65,77", "27.595.520", "1.024,5", "0,5", "0,125"] {
            assert!(shows_decimal_comma(text), "{text}");
        }
        for text in ["1,048,576", "65.77", "1,024", "16,384.25", "12", "(1, 1, 1)", "1,234.567", "n/a"] {
            assert!(!shows_decimal_comma(text), "{text}");
        }
    }

    #[test]
    fn units_of_every_age_come_to_the_base() {
        for (unit, base, expected) in [
            ("Kbyte", Unit::Bytes, Some(1e3)),
            ("Gbyte", Unit::Bytes, Some(1e9)),
            ("Kbyte/block", Unit::Bytes, Some(1e3)),
            ("byte/block", Unit::Bytes, Some(1.0)),
            ("Tbyte/s", Unit::BytesPerSecond, Some(1e12)),
            ("Gbyte/second", Unit::BytesPerSecond, Some(1e9)),
            ("byte/nsecond", Unit::BytesPerSecond, Some(1.0 / 1e-9)),
            ("ms", Unit::Seconds, Some(1e-3)),
            ("usecond", Unit::Seconds, Some(1e-6)),
            ("Ghz", Unit::Hertz, Some(1e9)),
            ("cycle/nsecond", Unit::Hertz, Some(1.0 / 1e-9)),
            ("%", Unit::Percent, Some(1.0)),
            ("register/thread", Unit::Count, Some(1.0)),
            ("Minst", Unit::Count, Some(1e6)),
            ("", Unit::Ratio, Some(1.0)),
            ("furlong", Unit::Seconds, None),
            ("", Unit::Bytes, None),
        ] {
            assert_eq!(factor(unit, base), expected, "{unit} as {base:?}");
        }
    }

    #[test]
    fn dimensions_are_three() {
        assert_eq!(dimensions("(65536, 1, 1)"), Some([65_536, 1, 1]));
        assert_eq!(dimensions("(4,096, 1, 1)"), Some([4_096, 1, 1]));
        assert_eq!(dimensions("(32,32,1)"), Some([32, 32, 1]));
        assert_eq!(dimensions("256"), None);
        assert_eq!(dimensions("(1, 2)"), None);
        assert_eq!(dimensions("(1, 2, 3, 4)"), None);
    }
}
