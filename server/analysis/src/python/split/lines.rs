//! What is seen of one line: its indentation, its end, its first word.

/// The bytes that are neither blank nor tell anything about lines, strings and brackets.
pub(super) const PLAIN: [bool; 256] = {
    let mut plain = [true; 256];
    let special = b" \t\n\r\x0b\x0c#\\\"'()[]{}";
    let mut index = 0;
    while index < special.len() {
        plain[special[index] as usize] = false;
        index += 1;
    }
    plain
};

/// How many bytes of line end stand at `at`: 0, 1 or 2.
pub(super) fn line_end(source: &[u8], at: usize) -> usize {
    match (source.get(at), source.get(at + 1)) {
        (Some(b'\r'), Some(b'\n')) => 2,
        (Some(b'\r' | b'\n'), _) => 1,
        _ => 0,
    }
}

/// The column of the first character of a line, and where that character is. A tab goes to the next multiple of eight
/// and a form feed starts over, as in CPython.
pub(super) fn indentation(source: &[u8], start: usize) -> (usize, usize) {
    let (mut column, mut at) = (0, start);
    if start == 0 && source.starts_with("\u{feff}".as_bytes()) {
        at = 3;
    }
    loop {
        match source.get(at) {
            Some(b' ') => column += 1,
            Some(b'\t') => column = (column / 8 + 1) * 8,
            Some(b'\x0c') => column = 0,
            _ => return (column, at),
        }
        at += 1;
    }
}

/// What the first word of a line says about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    Class,
    Function,
    /// `import`, `return` and all others that can't stand at the start of a line inside brackets.
    Statement,
    Decorator,
    /// `else`, `except`, …: goes on with the statement before.
    Continues,
    /// Anything else.
    Other,
}

/// Reads the first word of `line`.
pub(super) fn head(line: &[u8]) -> Head {
    if line.first() == Some(&b'@') {
        return Head::Decorator;
    }
    let length = line.iter().take(9).take_while(|byte| byte.is_ascii_lowercase()).count();
    if line.get(length).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80) {
        return Head::Other;
    }
    match &line[..length] {
        b"class" => Head::Class,
        b"def" => Head::Function,
        b"async" if line[length..].trim_ascii_start().starts_with(b"def ") => Head::Function,
        b"import" | b"return" | b"while" | b"with" | b"try" | b"assert" | b"del" | b"global"
        | b"nonlocal" | b"raise" | b"pass" | b"break" | b"continue" => Head::Statement,
        b"else" | b"elif" | b"except" | b"finally" => Head::Continues,
        _ => Head::Other,
    }
}
