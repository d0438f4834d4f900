//! Launches as a C++ compiler reads them.
//!
//! `k<<<grid, block>>>(x)` becomes `(stitchcuda_push(grid, block) ? (void)0 : k(x))`, which is what nvcc's front end makes of it too: the
//! configuration is pushed, and the kernel's stub on the host pops it.

/// The function of the CUDA runtime behind it, under the name that the host text uses.
pub(super) const PUSH: &str = "stitchcuda_push";

/// `text` with its launches rewritten; `masked` is the same without comments and literals.
///
/// # Errors
/// A launch whose parts can't be told apart.
pub(super) fn rewritten(text: &str, masked: &str) -> Result<String, String> {
    let bytes = masked.as_bytes();
    let mut out = String::with_capacity(text.len() + 64);
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = masked.get(at..).and_then(|rest| rest.find("<<<")) {
        let open = at + found;
        let unclear = || format!("a launch in line {} can't be taken apart", line_of(text, open));
        let kernel = kernel_start(bytes, open).filter(|start| *start >= copied).ok_or_else(unclear)?;
        let close = configuration_end(bytes, open + 3).ok_or_else(unclear)?;
        let arguments = skip_blanks(bytes, close + 3);
        let end = closing(bytes, arguments).ok_or_else(unclear)?;
        let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
        // A launch among the arguments of another one is no C++.
        if part(open + 3, end).contains("<<<") {
            return Err(unclear());
        }
        out.push_str(part(copied, kernel));
        out.push_str(&format!("({PUSH}({}) ? (void)0 : ", part(open + 3, close)));
        out.push_str(part(kernel, open));
        out.push_str(part(close + 3, end + 1));
        out.push(')');
        copied = end + 1;
        at = copied;
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Ok(out)
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

/// Of a name; in macros, parts of it are pasted together by `##`.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'#')
}

fn skip_blanks(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|byte| byte.is_ascii_whitespace() || *byte == b'\\') {
        at += 1;
    }
    at
}

/// Where the name of what is launched begins: `k`, `ns::k`, `k<float, 4>`, `ns::k<T>`.
fn kernel_start(bytes: &[u8], open: usize) -> Option<usize> {
    let mut at = blanks_before(bytes, open);
    if at > 0 && bytes[at - 1] == b'>' {
        at = blanks_before(bytes, angle_start(bytes, at - 1)?);
    }
    loop {
        let end = at;
        while at > 0 && is_word(bytes[at - 1]) {
            at -= 1;
        }
        if at == end || bytes[at].is_ascii_digit() {
            return None;
        }
        let before = blanks_before(bytes, at);
        if before < 2 || &bytes[before - 2..before] != b"::" {
            // What stands before is another statement's, or the launch is part of something larger.
            let ends =
                before == 0 || matches!(bytes[before - 1], b';' | b'{' | b'}' | b')' | b':' | b'(' | b',');
            let is_macro = starts_line(bytes, at);
            return (ends || is_macro || after_else(bytes, before)).then_some(at);
        }
        at = blanks_before(bytes, before - 2);
        if at == 0 || !is_word(bytes[at - 1]) {
            return Some(before - 2);
        }
    }
}

fn after_else(bytes: &[u8], end: usize) -> bool {
    bytes.get(..end).is_some_and(|before| before.ends_with(b"else") || before.ends_with(b"do"))
}

fn starts_line(bytes: &[u8], at: usize) -> bool {
    let line = bytes.iter().take(at).rposition(|byte| *byte == b'\n').map_or(0, |found| found + 1);
    let text = &bytes[line..at];
    // A directive's own words end where what it stands for begins.
    text.iter().all(u8::is_ascii_whitespace) || text.trim_ascii_start().starts_with(b"#")
}

/// Where blanks begin that end at a byte; a macro's lines go on after a backslash.
fn blanks_before(bytes: &[u8], mut at: usize) -> usize {
    while at > 0 && (bytes[at - 1].is_ascii_whitespace() || bytes[at - 1] == b'\\') {
        at -= 1;
    }
    at
}

/// The `<` that belongs to the `>` at a byte.
fn angle_start(bytes: &[u8], close: usize) -> Option<usize> {
    let (mut angles, mut round) = (0usize, 0usize);
    let mut at = close + 1;
    while at > 0 {
        at -= 1;
        match bytes[at] {
            b'>' if round == 0 => angles += 1,
            b'<' if round == 0 => {
                angles -= 1;
                if angles == 0 {
                    return Some(at);
                }
            }
            b')' => round += 1,
            b'(' => round = round.checked_sub(1)?,
            b';' | b'{' | b'}' => return None,
            _ => {}
        }
    }
    None
}

/// The `>>>` that ends a configuration.
fn configuration_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut at = start;
    while at < bytes.len() {
        match bytes[at] {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
            b'>' if depth == 0 && bytes.get(at..at + 3) == Some(b">>>") => {
                let follows = skip_blanks(bytes, at + 3);
                return (bytes.get(follows) == Some(&b'(')).then_some(at);
            }
            b';' => return None,
            _ => {}
        }
        at += 1;
    }
    None
}

/// The bracket that closes the one at a byte.
pub(super) fn closing(bytes: &[u8], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (at, byte) in bytes.iter().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<String, String> {
        rewritten(text, &crate::units::mask(text))
    }

    #[test]
    fn a_launch_is_what_nvcc_makes_of_it() {
        let pairs = [
            ("f(); k<<<1, 2>>>(x, y);", "f(); (stitchcuda_push(1, 2) ? (void)0 : k(x, y));"),
            (
                "{ k<T, (a > b)><<<g, dim3(4, 4), 0, s>>>(x); }",
                "{ (stitchcuda_push(g, dim3(4, 4), 0, s) ? (void)0 : k<T, (a > b)>(x)); }",
            ),
            (
                "if (a) ns::k<float> <<<1, 2>>> (x); else k<<<(n + 7) >> 3, 2>>>();",
                "if (a) (stitchcuda_push(1, 2) ? (void)0 : ns::k<float>  (x)); else (stitchcuda_push((n + 7) >> 3, 2) ? (void)0 : k());",
            ),
            ("#define L(n) k<n><<<1, n>>>(x)", "#define L(n) (stitchcuda_push(1, n) ? (void)0 : k<n>(x))"),
            (
                "#define L(t) \\\n  a_##t##_b<4>  \\\n  <<<1, t>>>(x); \\\n  k<<<2, t>>>(y)",
                "#define L(t) \\\n  (stitchcuda_push(1, t) ? (void)0 : a_##t##_b<4>  \\\n  (x)); \\\n  (stitchcuda_push(2, t) ? (void)0 : k(y))",
            ),
            ("{ ::k<<<1, 2>>>(); }", "{ (stitchcuda_push(1, 2) ? (void)0 : ::k()); }"),
            ("a = b << 3; // k<<<1, 2>>>()", "a = b << 3; // k<<<1, 2>>>()"),
        ];
        for (text, expected) in pairs {
            assert_eq!(of(text).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn what_is_unclear_is_left_alone() {
        for text in ["{ (*f)<<<1, 2>>>(); }", "{ k<<<1, 2>>>; }", "{ k<<<1, 2>>>(x", "{ x[1]<<<1, 2>>>(); }"]
        {
            let got = of(text);
            assert!(got.as_ref().is_err_and(|why| why.contains("line 1")), "{text}: {got:?}");
        }
    }
}
