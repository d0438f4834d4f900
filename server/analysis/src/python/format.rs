//! `str.format`, `%` and `string.Template`: the ways to fill a text besides f-strings.

use stitch_findings::Span;

use super::decoded::Decoded;

/// Knows what an argument holds, by its name or number.
pub(super) type Arguments<'a> = &'a dyn Fn(&str) -> Option<String>;

/// `text.format(…)`: `{{` is a brace, `{name}` an argument; one that is not known, or is formatted, is a hole.
pub(super) fn braces(text: &Decoded, arguments: Arguments) -> Decoded {
    let bytes = text.text().as_bytes();
    let mut result = Decoded::default();
    let (mut copied, mut at, mut number) = (0, 0, 0_usize);
    while at < bytes.len() {
        let brace = bytes[at];
        if !matches!(brace, b'{' | b'}') {
            at += 1;
            continue;
        }
        let close = if bytes.get(at + 1) == Some(&brace) {
            at + 2
        } else if brace == b'{' {
            match memchr::memchr(b'}', &bytes[at..]) {
                Some(length) => at + length + 1,
                None => break,
            }
        } else {
            // A lone brace is an error in Python; it stays.
            at += 1;
            continue;
        };
        result.append_part(text, Span::new(copied, at));
        let place = text.place(Span::new(at, close));
        if close == at + 2 && bytes[at + 1] == brace {
            result.make(if brace == b'{' { "{" } else { "}" }, place);
        } else {
            let field = text.text().get(at + 1..close - 1).unwrap_or_default();
            let numbered = number.to_string();
            let name = if field.is_empty() { numbered.as_str() } else { field };
            number += 1;
            match arguments(name) {
                Some(known) => result.make(&known, place),
                None => result.hole(place),
            }
        }
        at = close;
        copied = close;
    }
    result.append_part(text, Span::new(copied, bytes.len()));
    result
}

/// `text % (…)`: `%%` is a percent sign, `%s`, `%d`, `%(name)s` are arguments; one that is not known, or is formatted, is a
/// hole.
pub(super) fn percent(text: &Decoded, arguments: Arguments) -> Decoded {
    let bytes = text.text().as_bytes();
    let mut result = Decoded::default();
    let (mut copied, mut at, mut number) = (0, 0, 0_usize);
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr(b'%', rest)) {
        let start = at + found;
        at = start + 1;
        let mut name = None;
        if bytes.get(at) == Some(&b'(')
            && let Some(length) = memchr::memchr(b')', &bytes[at..])
        {
            name = text.text().get(at + 1..at + length);
            at += length + 1;
        }
        let flags = at;
        while bytes.get(at).is_some_and(|byte| b"#0- +.123456789*hlL".contains(byte)) {
            at += 1;
        }
        let Some(kind) = bytes.get(at).filter(|byte| b"diouxXeEfFgGcrsa%".contains(byte)) else {
            // No conversion: Python would stop here; the text stays.
            at = start + 1;
            continue;
        };
        result.append_part(text, Span::new(copied, start));
        let place = text.place(Span::new(start, at + 1));
        if *kind == b'%' {
            result.make("%", place);
        } else {
            let numbered = number.to_string();
            number += usize::from(name.is_none());
            let plain = flags == at && matches!(kind, b's' | b'd' | b'i');
            match arguments(name.unwrap_or(&numbered)).filter(|_| plain) {
                Some(known) => result.make(&known, place),
                None => result.hole(place),
            }
        }
        at += 1;
        copied = at;
    }
    result.append_part(text, Span::new(copied, bytes.len()));
    result
}

/// `template.substitute(…)`: `$$` is a dollar sign, `$name` and `${name}` are arguments; one that is not known is a hole.
pub(super) fn dollars(text: &Decoded, arguments: Arguments) -> Decoded {
    let bytes = text.text().as_bytes();
    let mut result = Decoded::default();
    let (mut copied, mut at) = (0, 0);
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr::memchr(b'$', rest)) {
        let start = at + found;
        let braced = bytes.get(start + 1) == Some(&b'{');
        let from = start + 1 + usize::from(braced);
        let is_word = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
        let length = bytes[from..].iter().take_while(is_word).count();
        let closes = !braced || bytes.get(from + length) == Some(&b'}');
        let is_name = length > 0 && !bytes[from].is_ascii_digit() && closes;
        let doubled = bytes.get(start + 1) == Some(&b'$');
        if !(is_name || doubled) {
            // No placeholder: `safe_substitute` lets it stand.
            at = start + 1;
            continue;
        }
        at = if doubled { start + 2 } else { from + length + usize::from(braced) };
        result.append_part(text, Span::new(copied, start));
        let place = text.place(Span::new(start, at));
        let known = if doubled { Some("$".to_owned()) } else { arguments(&text.text()[from..from + length]) };
        match known {
            Some(known) => result.make(&known, place),
            None => result.hole(place),
        }
        copied = at;
    }
    result.append_part(text, Span::new(copied, bytes.len()));
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Decoded {
        let mut decoded = Decoded::default();
        decoded.copy(text, 100);
        decoded
    }

    fn arguments(name: &str) -> Option<String> {
        match name {
            "0" => Some("float".to_owned()),
            "n" => Some("32".to_owned()),
            _ => None,
        }
    }

    #[test]
    fn format_fills_what_is_known() {
        let (made, map) = braces(&text("{{ {0} a[{n}]; {m:>3} {x} }} {"), &arguments).finish();
        assert_eq!(made, "{ float a[32]; stitch_unknown stitch_unknown } {");
        assert_eq!(map.holes().len(), 2);
        assert_eq!(map.span_to_file(Span::new(2, 7)), Some(Span::new(103, 106)));
        assert_eq!(braces(&text("k_{}<{}>"), &arguments).finish().0, "k_float<stitch_unknown>");
    }

    #[test]
    fn a_template_fills_what_is_known() {
        let (made, map) = dollars(&text("k_$n ${n}x $type $$n $5 ${n $é"), &arguments).finish();
        assert_eq!(made, "k_32 32x stitch_unknown $n $5 ${n $é");
        assert_eq!(map.holes().len(), 1);
    }

    #[test]
    fn percent_fills_what_is_known() {
        let (made, map) = percent(&text("%s x[%(n)d] = i %% 3; %5.2f %d; 100% {"), &arguments).finish();
        assert_eq!(made, "float x[32] = i % 3; stitch_unknown stitch_unknown; 100% {");
        assert_eq!(map.holes().len(), 2);
    }
}
