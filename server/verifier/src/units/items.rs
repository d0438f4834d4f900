//! Cuts a text into what stands at its top: directives, types, constants, functions. Namespaces and `extern "C"` are looked into.

use stitch_findings::Span;

/// What an item is, as far as its head tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// `#include`.
    Include,
    /// Another directive.
    Directive,
    /// The opening or closing of a namespace or of `extern "C"`.
    Container,
    /// `using namespace x;`
    UsingNamespace,
    /// A type, an alias, a static assertion.
    Type,
    /// A constant.
    Constant,
    /// A function, defined or declared.
    Function,
    /// Anything else: host variables, invocations of macros.
    Other,
}

/// One item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// What.
    pub kind: ItemKind,
    /// All of it.
    pub span: Span,
}

/// Cuts `text`, with `masked` as [`mask`](super::mask()) made it, into items. Nothing is cut twice; blanks are in none.
pub fn items(text: &str, masked: &str) -> Vec<Item> {
    let bytes = masked.as_bytes();
    let mut items = Vec::new();
    let mut at = 0;
    loop {
        while bytes.get(at).is_some_and(|byte| byte.is_ascii_whitespace() || *byte == b';') {
            at += 1;
        }
        let Some(first) = bytes.get(at) else { return items };
        let (kind, end) = match first {
            b'#' => directive(masked, at),
            b'}' => (ItemKind::Container, at + 1),
            _ => match container(text, masked, at) {
                Some(end) => (ItemKind::Container, end),
                None => declaration(masked, at),
            },
        };
        items.push(Item { kind, span: Span::new(at, end) });
        at = end;
    }
}

fn directive(masked: &str, start: usize) -> (ItemKind, usize) {
    let bytes = masked.as_bytes();
    let mut end = start;
    loop {
        end += memchr::memchr(b'\n', &bytes[end..]).unwrap_or(bytes.len() - end);
        let line = masked[start..end].trim_end_matches('\r');
        if end == bytes.len() || !line.ends_with('\\') {
            break;
        }
        end += 1;
    }
    let include = masked[start + 1..end].trim_start().starts_with("include");
    (if include { ItemKind::Include } else { ItemKind::Directive }, end)
}

/// The end of `namespace a::b {` or `extern "C" {`, if one begins at `start`.
fn container(text: &str, masked: &str, start: usize) -> Option<usize> {
    let brace = masked[start..].find(['{', ';', '(', '='])?;
    let end = start + brace + 1;
    if masked.as_bytes()[end - 1] != b'{' {
        return None;
    }
    let mut words = text[start..end - 1].split_whitespace();
    let first = words.next()?;
    let is = match first {
        "namespace" => true,
        "inline" => words.next() == Some("namespace"),
        "extern" => words.next().is_some_and(|word| word.starts_with('"')) && words.next().is_none(),
        _ => first.starts_with("extern\""),
    };
    is.then_some(end)
}

/// The kind and end of a declaration: at the first `;` outside brackets, or at the end of a function's body.
fn declaration(masked: &str, start: usize) -> (ItemKind, usize) {
    let bytes = masked.as_bytes();
    let mut depth = 0usize;
    let mut head_end = None;
    let mut has_parameters = false;
    let mut assigned = false;
    let mut at = start;
    while at < bytes.len() {
        match bytes[at] {
            b'(' | b'[' => {
                has_parameters |= bytes[at] == b'(' && depth == 0 && !assigned;
                depth += 1;
            }
            b'{' => {
                if depth == 0 {
                    head_end.get_or_insert(at);
                }
                depth += 1;
            }
            b'=' if depth == 0 && head_end.is_none() && is_assignment(bytes, at) => {
                assigned = true;
                head_end.get_or_insert(at);
            }
            b')' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 && is_invocation(masked, start, at + 1) {
                    return (ItemKind::Other, at + 1);
                }
            }
            b'}' => {
                // One that was not opened here closes a namespace.
                if depth == 0 {
                    return (kind(&masked[start..at], at - start, has_parameters), at.max(start + 1));
                }
                depth -= 1;
                let head = &masked[start..head_end.unwrap_or(at)];
                if depth == 0 && !assigned && !is_type(head) {
                    return (kind(masked[start..=at].trim_end(), head.len(), has_parameters), at + 1);
                }
            }
            b';' if depth == 0 => {
                let length = head_end.unwrap_or(at) - start;
                return (kind(&masked[start..at], length, has_parameters), at + 1);
            }
            _ => {}
        }
        at += 1;
    }
    (kind(&masked[start..], head_end.unwrap_or(at) - start, has_parameters), bytes.len())
}

/// Whether `NAME(…)`, which ends at `end`, stands alone: a macro that makes a declaration and needs no semicolon. The next
/// declaration begins on another line.
fn is_invocation(masked: &str, start: usize, end: usize) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let name = masked[start..end].find(|c| !word(c)).unwrap_or(0);
    let follows = masked[end..].trim_start_matches([' ', '\t', '\r']);
    name > 0
        && masked[start + name..end].trim_start().starts_with('(')
        && masked[start..end].bytes().filter(|byte| *byte == b'(').count()
            == masked[start..end].bytes().filter(|byte| *byte == b')').count()
        && follows.starts_with('\n')
        && follows.trim_start().starts_with(word)
}

/// Whether the `=` at a byte assigns, rather than compares or belongs to an operator's name or a template's default.
fn is_assignment(bytes: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).map(|before| bytes[before]);
    let compares = bytes.get(at + 1) == Some(&b'=')
        || matches!(before, Some(b'=' | b'!' | b'<' | b'>' | b'+' | b'-' | b'*' | b'/'));
    let line = &bytes[..at];
    let in_template = {
        let head = &line
            [line.iter().rposition(|byte| matches!(byte, b';' | b'}' | b'{')).map_or(0, |found| found + 1)..];
        let opened = head.iter().filter(|byte| **byte == b'<').count();
        opened > head.iter().filter(|byte| **byte == b'>').count()
    };
    !compares && !in_template && !line.ends_with(b"operator")
}

/// The words of a head after `template <…>`.
fn after_template(head: &str) -> &str {
    let mut rest = head.trim_start();
    while let Some(after) = rest.strip_prefix("template") {
        let after = after.trim_start();
        if !after.starts_with('<') {
            return after;
        }
        let mut depth = 0usize;
        let end = after.bytes().position(|byte| {
            match byte {
                b'<' | b'(' => depth += 1,
                b'>' | b')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0
        });
        rest = end.map_or("", |end| after[end + 1..].trim_start());
    }
    rest
}

fn is_type(head: &str) -> bool {
    let head = after_template(head);
    let first = head.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or("");
    matches!(first, "struct" | "class" | "union" | "enum" | "typedef" | "using" | "concept")
        && !head.contains('(')
        || matches!(first, "typedef" | "using")
}

fn kind(code: &str, head: usize, has_parameters: bool) -> ItemKind {
    let head_text = after_template(code.get(..head).unwrap_or(code));
    let mut words = head_text.split_whitespace();
    let first = words.next().unwrap_or("");
    if first == "using" && words.next() == Some("namespace") {
        return ItemKind::UsingNamespace;
    }
    if is_type(head_text) || first.starts_with("static_assert") {
        return ItemKind::Type;
    }
    let is_constant =
        head_text.split_whitespace().any(|word| matches!(word, "const" | "constexpr" | "__constant__"));
    if has_parameters {
        ItemKind::Function
    } else if is_constant || head_text.contains("__device__") {
        ItemKind::Constant
    } else {
        ItemKind::Other
    }
}
