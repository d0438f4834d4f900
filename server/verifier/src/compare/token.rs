//! What a program printed, cut into words, numbers and addresses.

/// One part of a line. White space between parts does not count: columns move with the width of a number.
#[derive(Clone, Debug, PartialEq)]
pub enum Token<'t> {
    /// A word, or one sign of punctuation.
    Word(&'t str),
    /// A number.
    Number(Number<'t>),
    /// `0x…` of more digits than 32 bits have: a pointer, most likely.
    Address(&'t str),
}

/// A number as it was printed.
#[derive(Clone, Debug, PartialEq)]
pub struct Number<'t> {
    /// As it was printed.
    pub text: &'t str,
    /// Its value.
    pub value: f64,
    /// Whether it was printed as a whole number.
    pub is_whole: bool,
    /// How many digits were printed, leading zeros not counted.
    pub significant: u32,
    /// What one unit of its last printed digit is worth.
    pub last_place: f64,
}

impl<'t> Token<'t> {
    /// As it was printed.
    pub fn text(&self) -> &'t str {
        match self {
            Self::Word(text) | Self::Address(text) => text,
            Self::Number(number) => number.text,
        }
    }

    /// Whether two stand at the same place of the same sentence: equal words, or any two numbers, or any two addresses.
    pub fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Word(one), Self::Word(other)) => one == other,
            (Self::Number(_), Self::Number(_)) | (Self::Address(_), Self::Address(_)) => true,
            _ => false,
        }
    }
}

/// Hexadecimal digits that a 32-bit value can have; a device's pointers have more.
const DIGITS_OF_32_BITS: usize = 8;

/// The tokens of a line.
pub fn tokens(line: &str) -> Vec<Token<'_>> {
    let bytes = line.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at].is_ascii_whitespace() {
            at += 1;
            continue;
        }
        let rest = &line[at..];
        let after_word =
            at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || matches!(bytes[at - 1], b'_' | b')' | b']'));
        let (token, length) = address(rest)
            .or_else(|| {
                number(rest, after_word).map(|number| (Token::Number(number.clone()), number.text.len()))
            })
            .unwrap_or_else(|| word(rest));
        found.push(token);
        at += length;
    }
    found
}

fn address(rest: &str) -> Option<(Token<'_>, usize)> {
    let digits = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X"))?;
    let count = digits.bytes().take_while(u8::is_ascii_hexdigit).count();
    let length = 2 + count;
    let text = rest.get(..length)?;
    match count {
        0 => None,
        count if count > DIGITS_OF_32_BITS => Some((Token::Address(text), length)),
        _ => Some((Token::Word(text), length)),
    }
}

fn word(rest: &str) -> (Token<'_>, usize) {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let length = match rest.find(|c| !part(c)) {
        // One sign alone.
        Some(0) => rest.chars().next().map_or(1, char::len_utf8),
        Some(end) => end,
        None => rest.len(),
    };
    (Token::Word(&rest[..length]), length)
}

/// The number at the start of `rest`; a sign belongs to it unless a word or a number stands right before it.
fn number(rest: &str, after_word: bool) -> Option<Number<'_>> {
    let bytes = rest.as_bytes();
    let sign = usize::from(!after_word && matches!(bytes[0], b'-' | b'+'));
    if let Some(special) = special(&rest[sign..]) {
        if after_word && sign == 0 {
            return None;
        }
        let (value, length) = special;
        let value = if bytes[0] == b'-' { -value } else { value };
        let text = &rest[..sign + length];
        return Some(Number { text, value, is_whole: false, significant: 0, last_place: 0.0 });
    }
    let digits =
        |from: usize| bytes.get(from..).unwrap_or_default().iter().take_while(|b| b.is_ascii_digit()).count();
    let whole = digits(sign);
    let mut end = sign + whole;
    let mut fraction = 0;
    let point = bytes.get(end) == Some(&b'.');
    if point {
        fraction = digits(end + 1);
        // A point after a whole number may end a sentence.
        if fraction > 0 {
            end += 1 + fraction;
        }
    }
    if whole + fraction == 0 {
        return None;
    }
    let mut exponent = 0i32;
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let signed = usize::from(matches!(bytes.get(end + 1), Some(b'-' | b'+')));
        let count = digits(end + 1 + signed);
        if count > 0 {
            let stop = end + 1 + signed + count;
            exponent = rest[end + 1..stop].trim_start_matches('+').parse().unwrap_or(0);
            end = stop;
        }
    }
    let text = &rest[..end];
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let significant = mantissa.bytes().filter(u8::is_ascii_digit).skip_while(|b| *b == b'0').count();
    let places = i32::try_from(fraction).unwrap_or(i32::MAX);
    Some(Number {
        text,
        value: text.parse().ok()?,
        is_whole: fraction == 0 && !text.contains(['e', 'E']),
        significant: u32::try_from(significant).unwrap_or(u32::MAX),
        last_place: 10f64.powi(exponent.saturating_sub(places)),
    })
}

/// NaN and infinity as C libraries print them.
fn special(rest: &str) -> Option<(f64, usize)> {
    const NAMES: [(&str, f64); 5] = [
        ("nan(ind)", f64::NAN),
        ("nan(snan)", f64::NAN),
        ("infinity", f64::INFINITY),
        ("nan", f64::NAN),
        ("inf", f64::INFINITY),
    ];
    NAMES.iter().find_map(|(name, value)| {
        let start = rest.get(..name.len())?;
        let ends = !rest[name.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
        (start.eq_ignore_ascii_case(name) && ends).then_some((*value, name.len()))
    })
}

/// Words that follow a time or a rate.
const UNITS: &[&str] = &[
    "s",
    "sec",
    "secs",
    "second",
    "seconds",
    "ms",
    "msec",
    "msecs",
    "millisecond",
    "milliseconds",
    "us",
    "usec",
    "usecs",
    "microsecond",
    "microseconds",
    "µs",
    "ns",
    "nsec",
    "nanoseconds",
    "mins",
    "minutes",
    "fps",
    "Hz",
    "kHz",
    "MHz",
    "GHz",
    "FLOPS",
    "MFLOPS",
    "GFLOPS",
    "TFLOPS",
    "flops",
    "MFlops",
    "GFlops",
    "TFlops",
    "MFlop",
    "GFlop",
    "TFlop",
    "GFLOP",
    "TFLOP",
    "FLOP",
    "KB",
    "MB",
    "GB",
    "TB",
    "KiB",
    "MiB",
    "GiB",
    "TiB",
    "Gbps",
];
/// Units of these are rates only where `/s` follows.
const RATES: &[&str] = &[
    "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB", "FLOP", "MFlop", "GFlop", "TFlop", "GFLOP", "TFLOP",
];
/// Words before a number that make it a measurement.
const MEASURED: &[&str] = &[
    "time",
    "times",
    "elapsed",
    "latency",
    "bandwidth",
    "throughput",
    "speedup",
    "gflops",
    "tflops",
    "gflop",
    "duration",
    "runtime",
    "performance",
    "timing",
    "seconds",
    "milliseconds",
    "microseconds",
];

/// Whether the number at `index` is a time or a rate, by the unit after it, or by the words before it if it is a fraction.
pub fn is_timing(tokens: &[Token], index: usize) -> bool {
    let word = |at: usize| match tokens.get(at) {
        Some(Token::Word(word)) => *word,
        _ => "",
    };
    // `12.5 ms`, `12.5ms`, `12.5 (ms)`.
    let next = if matches!(word(index + 1), "(" | "[") { index + 2 } else { index + 1 };
    if UNITS.contains(&word(next)) {
        let per_second = word(next + 1) == "/" && matches!(word(next + 2), "s" | "sec" | "second");
        if per_second || !RATES.contains(&word(next)) {
            return true;
        }
    }
    // `12.5 Mpixels/sec`.
    if matches!(tokens.get(next), Some(Token::Word(_))) && is_per_second(word(next + 1), word(next + 2)) {
        return true;
    }
    let is_fraction = matches!(&tokens[index], Token::Number(number) if !number.is_whole);
    let clause = tokens[..index].iter().rposition(|token| matches!(token.text(), "," | ";" | "|"));
    let first = clause.map_or(0, |at| at + 1);
    is_fraction
        && (first..index).any(|at| {
            let lower = word(at).to_lowercase();
            lower.split('_').any(|part| MEASURED.contains(&part)) || is_per_second(word(at), word(at + 1))
        })
}

/// `/s`, `per second`.
fn is_per_second(per: &str, time: &str) -> bool {
    matches!(per, "/" | "per") && matches!(time, "s" | "sec" | "second")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Words in quotes, numbers by value, addresses by `@`.
    fn show(line: &str) -> String {
        let shown = tokens(line).into_iter().map(|token| match token {
            Token::Word(word) => format!("'{word}'"),
            Token::Number(number) => format!("{}", number.value),
            Token::Address(_) => "@".to_owned(),
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn lines_are_cut_as_a_person_reads_them() {
        for (line, expected) in [
            ("sum = -1.5e-3", "'sum' '=' -0.0015"),
            ("x[3]=4", "'x' '[' 3 ']' '=' 4"),
            ("N=1024,M=-2.", "'N' '=' 1024 ',' 'M' '=' -2 '.'"),
            ("a-1", "'a' '-' 1"),
            ("3-1", "3 '-' 1"),
            ("H200 fp16 12ms", "'H200' 'fp16' 12 'ms'"),
            ("ptr 0x7f12345678a0 flag 0x1f", "'ptr' @ 'flag' '0x1f'"),
            ("nan -nan inf -inf NaN", "NaN NaN inf -inf NaN"),
            ("nancy info infinity", "'nancy' 'info' inf"),
            ("1.2.3 .5 5.", "1.2 0.3 0.5 5 '.'"),
            ("1e5 1e 2E+03", "100000 1 'e' 2000"),
            ("ünï 1", "'ünï' 1"),
            ("-> --", "'-' '>' '-' '-'"),
        ] {
            assert_eq!(show(line), expected, "{line}");
        }
    }

    #[test]
    fn times_and_rates_are_told_from_results() {
        for (line, expected) in [
            ("kernel took 12.5 ms", true),
            ("12 us", true),
            ("Time = 3.25", true),
            ("time 3", false),
            ("Throughput = 71.8 GB/s", true),
            ("allocated 12 MB", false),
            ("elapsed_time: 1.5", true),
            ("sum 1.5", false),
            ("time ok, sum 1.5", false),
            ("18724.57 Mpixels/sec", true),
            ("GOP/s: 407.6", true),
            ("Gigaoptions per second    : 360.2", true),
            ("Fetch rate (Mpix/s) for pitch linear: 2.71e+05", true),
            ("0.5 per sample", false),
            ("ratio a/b 0.5", false),
            ("100 iterations", false),
        ] {
            let tokens = tokens(line);
            let at = tokens.iter().position(|token| matches!(token, Token::Number(_))).unwrap();
            assert_eq!(is_timing(&tokens, at), expected, "{line}");
        }
    }

    #[test]
    fn printed_digits_are_counted() {
        for (text, significant, last_place) in
            [("0.333", 3, 1e-3), ("0.00", 0, 1e-2), ("1.50e-3", 3, 1e-5), ("12", 2, 1.0), ("0.0120", 3, 1e-4)]
        {
            let Token::Number(number) = tokens(text)[0].clone() else { panic!("{text}") };
            assert_eq!(number.significant, significant, "{text}");
            assert!((number.last_place / last_place - 1.0).abs() < 1e-9, "{text}");
        }
    }

    proptest! {
        #[test]
        fn tokens_are_the_line_without_its_white_space(line in "[ -~µé]{0,60}") {
            let joined: String = tokens(&line).iter().map(Token::text).collect();
            let without: String = line.chars().filter(|c| !c.is_ascii_whitespace()).collect();
            prop_assert_eq!(joined, without);
        }

        #[test]
        fn a_printed_number_is_read_again(value: f64) {
            let line = format!("v {value:e} w");
            let found = tokens(&line);
            let Some(Token::Number(number)) = found.get(1) else { panic!("{line}") };
            prop_assert!(number.value == value || (number.value.is_nan() && value.is_nan()), "{}", line);
        }
    }
}
