//! Numbers as people read them.

use serde::Serialize;

use crate::kernel::{Format, LinePlace, Metric, Unit};
use crate::units;

/// A time in seconds.
pub(super) fn seconds(seconds: f64) -> String {
    units::time((seconds * 1e9).round() as u64)
}

/// A metric's value with its unit.
pub(super) fn metric(metric: Metric, value: f64) -> String {
    match metric.info().unit {
        Unit::Count => Format::Count.show(value),
        Unit::Percent => Format::Percent.show(value),
        Unit::Bytes => Format::Bytes.show(value),
        Unit::BytesPerSecond => format!("{}/s", Format::Bytes.show(value)),
        Unit::Seconds => seconds(value),
        Unit::Hertz => format!("{:.2} GHz", value / 1e9),
        Unit::Ratio => Format::Ratio.show(value),
    }
}

/// Sizes along x, y and z, without those of 1 at the end: `64 × 2`.
pub(crate) fn extent(sizes: [u32; 3]) -> String {
    let used = sizes.iter().rposition(|size| *size != 1).map_or(1, |last| last + 1);
    sizes[..used].iter().map(u32::to_string).collect::<Vec<_>>().join(" × ")
}

/// The name of a file without its folders, whichever way they are separated.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().filter(|name| !name.is_empty()).unwrap_or(path)
}

/// A line of a file, short.
pub(super) fn place(place: &LinePlace) -> String {
    format!("{}:{}", file_name(&place.file), place.line)
}

/// The width of a bar: a percentage that CSS takes.
pub(super) fn width(part: f64) -> String {
    let part = if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 };
    format!("{:.1}", part * 100.0)
}

/// A part of a sentence.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Span {
    text: String,
    /// Whether it stood between backticks.
    is_code: bool,
}

/// A sentence in which code stands between backticks. One backtick without another is itself.
pub(super) fn spans(sentence: &str) -> Vec<Span> {
    let parts: Vec<&str> = sentence.split('`').collect();
    let last = parts.len() - 1;
    let unpaired = last % 2 == 1;
    let part = |(at, text): (usize, &&str)| {
        let is_lone = unpaired && at == last;
        Span {
            text: if is_lone { format!("`{text}") } else { (*text).to_owned() },
            is_code: at % 2 == 1 && !is_lone,
        }
    };
    parts.iter().enumerate().map(part).filter(|span| !span.text.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_stands_between_backticks() {
        let shown = |sentence| {
            let spans = spans(sentence).into_iter();
            spans
                .map(|span| format!("{}{}", if span.is_code { "+" } else { "" }, span.text))
                .collect::<Vec<_>>()
        };
        assert_eq!(shown("`k` waits for `x`."), ["+k", " waits for ", "+x", "."]);
        assert_eq!(shown("a ` b"), ["a ", "` b"]);
        assert_eq!(shown(""), Vec::<String>::new());
    }

    #[test]
    fn numbers_are_written_as_people_read_them() {
        assert_eq!([1.2e-8, 1.54e-6].map(seconds), ["12 ns", "1.54 µs"]);
        assert_eq!(
            [[64, 1, 1], [1, 1, 1], [1, 2, 1], [4, 1, 3]].map(extent),
            ["64", "1", "1 × 2", "4 × 1 × 3"]
        );
        assert_eq!(["/w/k.cu", "C:\\w\\k.cu", "k.cu", "/"].map(file_name), ["k.cu", "k.cu", "k.cu", "/"]);
        assert_eq!([f64::NAN, 7.0, 0.4].map(width), ["0.0", "100.0", "40.0"]);
    }
}
