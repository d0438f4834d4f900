//! Device `printf`: the format is read as C reads it, its values from a buffer where each lies at a multiple of its size.
//!
//! Source: CUDA C++ Programming Guide, "Formatted Output"; nvcc passes 4 bytes for `int` and smaller, 8 for the others.

use crate::machine::Exec;

/// A conversion specification: `%-08.3lf`.
#[derive(Debug, Default)]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    alternative: bool,
    zeros: bool,
    width: usize,
    precision: Option<usize>,
    long: bool,
    /// Bytes of `hh` (1) and `h` (2); 4 otherwise.
    bytes: u32,
}

/// Values that follow the format.
struct Values<'x, 'a> {
    x: &'x mut Exec<'a>,
    lane: usize,
    next: u64,
    count: u32,
}

impl Values<'_, '_> {
    fn int(&mut self) -> u32 {
        self.count += 1;
        self.next = self.next.next_multiple_of(4);
        let value = self.x.peek::<u32>(self.lane, self.next).unwrap_or(0);
        self.next += 4;
        value
    }

    fn long(&mut self) -> u64 {
        self.count += 1;
        self.next = self.next.next_multiple_of(8);
        let value = self.x.peek::<u64>(self.lane, self.next).unwrap_or(0);
        self.next += 8;
        value
    }
}

/// The formatted text, and how many values it took.
pub(crate) fn format(x: &mut Exec<'_>, lane: usize, format: &[u8], values: u64) -> (Vec<u8>, u32) {
    let mut values = Values { x, lane, next: values, count: 0 };
    let mut out = Vec::with_capacity(format.len() * 2);
    let mut rest = format;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let (spec, kind, after) = spec(rest, &mut values);
        rest = after;
        convert(&spec, kind, &mut values, &mut out);
    }
    (out, values.count)
}

/// Reads what follows a `%`.
fn spec<'f>(mut rest: &'f [u8], values: &mut Values<'_, '_>) -> (Spec, u8, &'f [u8]) {
    let mut spec = Spec { bytes: 4, ..Spec::default() };
    while let Some(flag) = rest.first() {
        match flag {
            b'-' => spec.left = true,
            b'+' => spec.plus = true,
            b' ' => spec.space = true,
            b'#' => spec.alternative = true,
            b'0' => spec.zeros = true,
            _ => break,
        }
        rest = &rest[1..];
    }
    let width;
    (width, rest) = number(rest, values);
    if let Some(width) = width {
        spec.left |= width < 0;
        spec.width = width.unsigned_abs().min(4096) as usize;
    }
    if let Some((b'.', after)) = rest.split_first() {
        let precision;
        (precision, rest) = number(after, values);
        spec.precision = usize::try_from(precision.unwrap_or(0)).ok().map(|p| p.min(4096));
    }
    while let Some(length) = rest.first() {
        match length {
            b'h' => spec.bytes /= 2,
            b'l' | b'j' | b'z' | b't' | b'L' | b'q' => spec.long = true,
            _ => break,
        }
        rest = &rest[1..];
    }
    match rest.split_first() {
        Some((&kind, after)) => (spec, kind, after),
        None => (spec, b'%', rest),
    }
}

/// A number, or the value that `*` takes.
fn number<'f>(rest: &'f [u8], values: &mut Values<'_, '_>) -> (Option<i64>, &'f [u8]) {
    if let Some((b'*', after)) = rest.split_first() {
        return (Some(i64::from(values.int() as i32)), after);
    }
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let value = rest[..digits].iter().fold(0i64, |n, digit| (n * 10 + i64::from(digit - b'0')).min(1 << 20));
    ((digits > 0).then_some(value), &rest[digits..])
}

fn convert(spec: &Spec, kind: u8, values: &mut Values<'_, '_>, out: &mut Vec<u8>) {
    match kind {
        b'%' => out.push(b'%'),
        b'c' => pad(spec, vec![values.int() as u8], out),
        b's' => {
            let address = values.long();
            let lane = values.lane;
            let mut text = values.x.text(lane, address).unwrap_or_else(|| b"(null)".to_vec());
            text.truncate(spec.precision.unwrap_or(usize::MAX));
            pad(spec, text, out);
        }
        b'p' => {
            let text = format!("{:#x}", values.long());
            pad(spec, text.into_bytes(), out);
        }
        b'd' | b'i' => {
            let value =
                if spec.long { values.long() as i64 } else { i64::from(narrowed(values.int(), spec)) };
            let digits = value.unsigned_abs().to_string();
            numeric(spec, sign(spec, value < 0), spec.precision.is_none(), digits, spec.precision, out);
        }
        b'u' | b'x' | b'X' | b'o' => {
            let value =
                if spec.long { values.long() } else { u64::from(narrowed_unsigned(values.int(), spec)) };
            unsigned(spec, kind, value, out);
        }
        b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => {
            let value = f64::from_bits(values.long());
            float(spec, kind, value, out);
        }
        other => out.extend([b'%', other]),
    }
}

fn narrowed(value: u32, spec: &Spec) -> i32 {
    match spec.bytes {
        1 => i32::from(value as i8),
        2 => i32::from(value as i16),
        _ => value as i32,
    }
}

fn narrowed_unsigned(value: u32, spec: &Spec) -> u32 {
    match spec.bytes {
        1 => value & 0xff,
        2 => value & 0xffff,
        _ => value,
    }
}

fn sign(spec: &Spec, negative: bool) -> &'static str {
    match (negative, spec.plus, spec.space) {
        (true, ..) => "-",
        (_, true, _) => "+",
        (_, _, true) => " ",
        _ => "",
    }
}

fn unsigned(spec: &Spec, kind: u8, value: u64, out: &mut Vec<u8>) {
    let (digits, prefix) = match kind {
        b'x' => (format!("{value:x}"), "0x"),
        b'X' => (format!("{value:X}"), "0X"),
        b'o' => (format!("{value:o}"), "0"),
        _ => (value.to_string(), ""),
    };
    let prefix = if spec.alternative && value != 0 { prefix } else { "" };
    numeric(spec, prefix, spec.precision.is_none(), digits, spec.precision, out);
}

fn float(spec: &Spec, kind: u8, value: f64, out: &mut Vec<u8>) {
    let sign =
        sign(spec, value.is_sign_negative() && !value.is_nan() || value.is_nan() && value.is_sign_negative());
    let magnitude = value.abs();
    let precision = spec.precision.unwrap_or(6);
    let text = if !value.is_finite() {
        if value.is_nan() { "nan".to_owned() } else { "inf".to_owned() }
    } else {
        match kind.to_ascii_lowercase() {
            b'f' => format!("{magnitude:.precision$}"),
            b'e' => exponential(magnitude, precision),
            b'g' => general(magnitude, precision.max(1), spec.alternative),
            _ => hexadecimal(magnitude, spec.precision),
        }
    };
    let text = if kind.is_ascii_uppercase() { text.to_ascii_uppercase() } else { text };
    numeric(spec, sign, value.is_finite(), text, None, out);
}

/// `d.ddde±dd`.
fn exponential(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// `%g`: the shorter of both, `precision` significant digits, zeros at the end cut.
fn general(value: f64, precision: usize, keep_zeros: bool) -> String {
    let scientific = format!("{:.*e}", precision - 1, value);
    let exponent: i32 = scientific.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    let text = if exponent < -4 || exponent >= precision as i32 {
        exponential(value, precision - 1)
    } else {
        format!("{:.*}", (precision as i32 - 1 - exponent).max(0) as usize, value)
    };
    if keep_zeros || !text.contains('.') {
        return text;
    }
    let (mantissa, exponent) = text.split_at(text.find('e').unwrap_or(text.len()));
    let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
    format!("{mantissa}{exponent}")
}

/// `%a`.
fn hexadecimal(value: f64, precision: Option<usize>) -> String {
    let bits = value.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32;
    let (mut lead, mut mantissa) = (u64::from(exponent != 0), bits & ((1 << 52) - 1));
    let power = if exponent == 0 { if mantissa == 0 { 0 } else { -1022 } } else { exponent - 1023 };
    let mut digits = format!("{mantissa:013x}");
    match precision {
        Some(precision) if precision < 13 => {
            let drop = 4 * (13 - precision as u32);
            let whole = lead << 52 | mantissa;
            let half = 1u64 << (drop - 1);
            let rounded = whole + half - u64::from(whole >> drop & 1 == 0);
            lead = rounded >> 52;
            mantissa = rounded & ((1 << 52) - 1);
            digits = format!("{mantissa:013x}");
            digits.truncate(precision);
        }
        Some(precision) => digits.extend(std::iter::repeat_n('0', precision - 13)),
        None => digits.truncate(digits.trim_end_matches('0').len()),
    }
    let point = if digits.is_empty() { "" } else { "." };
    format!("0x{lead}{point}{digits}p{power:+}")
}

/// A sign or prefix, zeros, digits; padded to the width.
fn numeric(
    spec: &Spec,
    prefix: &str,
    may_fill: bool,
    digits: String,
    least: Option<usize>,
    out: &mut Vec<u8>,
) {
    let mut zeros = least.unwrap_or(0).saturating_sub(digits.len());
    if spec.zeros && !spec.left && may_fill {
        zeros = zeros.max(spec.width.saturating_sub(prefix.len() + digits.len()));
    }
    let text = format!("{prefix}{}{digits}", "0".repeat(zeros));
    pad(spec, text.into_bytes(), out);
}

fn pad(spec: &Spec, text: Vec<u8>, out: &mut Vec<u8>) {
    let fill = spec.width.saturating_sub(text.len());
    if !spec.left {
        out.extend(std::iter::repeat_n(b' ', fill));
    }
    let left = spec.left;
    out.extend(text);
    if left {
        out.extend(std::iter::repeat_n(b' ', fill));
    }
}
