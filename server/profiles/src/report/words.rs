//! Numbers as people read them.

use serde::Serialize;

use crate::kernel::{Format, LinePlace, Metric, Unit};

/// A time in nanoseconds, in the unit that people would use.
pub(super) fn time(ns: f64) -> String {
    match ns {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{:.1} µs", ns / 1e3),
        ns if ns < 1e9 => format!("{:.2} ms", ns / 1e6),
        ns => format!("{:.2} s", ns / 1e9),
    }
}

/// A whole time.
pub(super) fn whole_time(ns: u64) -> String {
    time(ns as f64)
}

/// A part from 0 to 1.
pub(super) fn share(part: f64) -> String {
    match part * 100.0 {
        percent if percent > 0.0 && percent < 0.95 => format!("{percent:.1} %"),
        percent => format!("{percent:.0} %"),
    }
}

/// A size in bytes.
pub(super) fn size(bytes: u64) -> String {
    Format::Bytes.show(bytes as f64)
}

/// A count with thousands.
pub(super) fn count(count: u64) -> String {
    Format::Count.show(count as f64)
}

/// `one kernel`, `3 kernels`.
pub(super) fn counted(many: u64, one: &str, more: &str) -> String {
    if many == 1 { format!("1 {one}") } else { format!("{} {more}", count(many)) }
}

/// A metric's value with its unit.
pub(super) fn metric(metric: Metric, value: f64) -> String {
    match metric.info().unit {
        Unit::Count => Format::Count.show(value),
        Unit::Percent => Format::Percent.show(value),
        Unit::Bytes => Format::Bytes.show(value),
        Unit::BytesPerSecond => format!("{}/s", Format::Bytes.show(value)),
        Unit::Seconds => time(value * 1e9),
        Unit::Hertz => format!("{:.2} GHz", value / 1e9),
        Unit::Ratio => Format::Ratio.show(value),
    }
}

/// Sizes along x, y and z, without those of 1 at the end: `64 × 2`.
pub(super) fn extent(sizes: [u32; 3]) -> String {
    let used = sizes.iter().rposition(|size| *size != 1).map_or(1, |last| last + 1);
    sizes[..used].iter().map(u32::to_string).collect::<Vec<_>>().join(" × ")
}

/// The name of a file without its folders, whichever way they are separated.
pub(super) fn file_name(path: &str) -> &str {
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
        assert_eq!([12.0, 1_540.0, 2_000_000.0, 3.5e9].map(time), ["12 ns", "1.5 µs", "2.00 ms", "3.50 s"]);
        assert_eq!(
            [[64, 1, 1], [1, 1, 1], [1, 2, 1], [4, 1, 3]].map(extent),
            ["64", "1", "1 × 2", "4 × 1 × 3"]
        );
        assert_eq!([0.0, 0.004, 0.412, 1.0].map(share), ["0 %", "0.4 %", "41 %", "100 %"]);
        assert_eq!(["/w/k.cu", "C:\\w\\k.cu", "k.cu", "/"].map(file_name), ["k.cu", "k.cu", "k.cu", "/"]);
        assert_eq!([f64::NAN, 7.0, 0.4].map(width), ["0.0", "100.0", "40.0"]);
    }
}
