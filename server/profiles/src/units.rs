//! Numbers as people write them, one way for sentences, pages, hints and terminals.

/// A time in nanoseconds: three digits and a unit.
pub fn time(ns: u64) -> String {
    match ns as f64 {
        ns if ns < 1e3 => format!("{ns:.0} ns"),
        ns if ns < 1e6 => format!("{} µs", three_digits(ns / 1e3)),
        ns if ns < 1e9 => format!("{} ms", three_digits(ns / 1e6)),
        ns => format!("{} s", three_digits(ns / 1e9)),
    }
}

/// A median with its interval, in nanoseconds: `1.20 ms (1.18 ms to 1.23 ms)`.
pub fn interval(median: u64, low: u64, high: u64) -> String {
    format!("{} ({} to {})", time(median), time(low), time(high))
}

/// A share as a percentage: whole ones from 1% on.
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        percent if percent > 0.0 && percent < 0.95 => format!("{percent:.1}%"),
        percent => format!("{percent:.0}%"),
    }
}

/// A number of bytes.
pub fn size(bytes: u64) -> String {
    match bytes as f64 {
        bytes if bytes < 1e3 => format!("{bytes:.0} bytes"),
        bytes if bytes < 1e6 => format!("{} kB", three_digits(bytes / 1e3)),
        bytes if bytes < 1e9 => format!("{} MB", three_digits(bytes / 1e6)),
        bytes if bytes < 1e12 => format!("{} GB", three_digits(bytes / 1e9)),
        bytes => format!("{} TB", three_digits(bytes / 1e12)),
    }
}

/// A rate in bytes a second.
pub fn rate(bytes_a_second: f64) -> String {
    format!("{}/s", size(bytes_a_second as u64))
}

/// A count with its thousands apart: `14,680,064`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut shown = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// `1 kernel`, `3 kernels`.
pub fn counted(many: u64, one: &str, more: &str) -> String {
    if many == 1 { format!("1 {one}") } else { format!("{} {more}", count(many)) }
}

/// `once`, `3 times`.
pub fn times(many: u64) -> String {
    if many == 1 { "once".to_owned() } else { format!("{} times", count(many)) }
}

/// A number with three digits, or more where it is large.
pub(crate) fn three_digits(value: f64) -> String {
    match value {
        value if value < 10.0 => format!("{value:.2}"),
        value if value < 100.0 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_for_people() {
        assert_eq!(
            [7, 7_040, 61_344, 3_216_000, 12_000_000_000].map(time),
            ["7 ns", "7.04 µs", "61.3 µs", "3.22 ms", "12.0 s"]
        );
        assert_eq!([0.0, 0.004, 0.412, 1.0].map(percent), ["0%", "0.4%", "41%", "100%"]);
        assert_eq!([32, 4_000, 536_870_912].map(size), ["32 bytes", "4.00 kB", "537 MB"]);
        assert_eq!([7.77e9, 2.5e7, 4.447e12].map(rate), ["7.77 GB/s", "25.0 MB/s", "4.45 TB/s"]);
        assert_eq!([1, 2, 1_000].map(times), ["once", "2 times", "1,000 times"]);
        assert_eq!([0, 999, 1_000, 14_680_064].map(count), ["0", "999", "1,000", "14,680,064"]);
        assert_eq!([1, 3].map(|many| counted(many, "copy", "copies")), ["1 copy", "3 copies"]);
    }
}
