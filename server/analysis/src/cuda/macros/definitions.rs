//! What the `#define`s of a text say of attribute macros.

use super::{Attribute, Names, Runs};
use crate::cuda::lexer::{Kind, Lexer, column};

/// A macro whose kind depends on others, with what is known of it.
type Open<'a> = (&'a [u8], Attribute, &'a [Box<[u8]>]);

/// What was seen of a macro.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Seen {
    Attribute(Attribute),
    /// Its body has other names, all of which must turn out to be attributes.
    Depends(Attribute, Vec<Box<[u8]>>),
    /// Something else, by at least one definition.
    Other,
}

/// The macros that a text defines.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    seen: Names<Seen>,
}

impl Definitions {
    /// Adds the `#define`s of a text.
    pub fn add(&mut self, text: &str) {
        let bytes = text.as_bytes();
        for at in memchr::memchr_iter(b'#', bytes) {
            let after = skip_blanks(bytes, at + 1);
            if !bytes[after..].starts_with(b"define") || column(bytes, at).is_none() {
                continue;
            }
            if let Some((name, seen)) = read_definition(text, at) {
                self.merge(name, seen);
            }
        }
    }

    /// A hash of the `#define`s of a text, which costs less than to read them.
    pub fn hash(text: &str) -> u64 {
        let bytes = text.as_bytes();
        let mut hasher = xxhash_rust::xxh3::Xxh3::new();
        for at in memchr::memchr_iter(b'#', bytes) {
            if column(bytes, at).is_some() && bytes[skip_blanks(bytes, at + 1)..].starts_with(b"define") {
                // One sign more tells whether the text goes on behind the longest.
                let window = &bytes[at..bytes.len().min(at + LONGEST_ATTRIBUTE + 4)];
                let line = logical_line(window);
                // Two lines are not one that has the text of both.
                hasher.update(&line.len().to_le_bytes());
                hasher.update(line);
            }
        }
        hasher.digest()
    }

    fn merge(&mut self, name: &[u8], seen: Seen) {
        let Some(known) = self.seen.get_mut(name) else {
            self.seen.insert(name.into(), seen);
            return;
        };
        *known = match (std::mem::replace(known, Seen::Other), seen) {
            (Seen::Attribute(a), Seen::Attribute(b)) => Seen::Attribute(both(a, b)),
            (Seen::Attribute(a), Seen::Depends(b, names)) | (Seen::Depends(a, names), Seen::Attribute(b)) => {
                Seen::Depends(both(a, b), names)
            }
            (Seen::Depends(a, mut names), Seen::Depends(b, more)) => {
                names.extend(more);
                names.sort();
                names.dedup();
                Seen::Depends(both(a, b), names)
            }
            _ => Seen::Other,
        };
    }

    /// Those that are attributes, given those that are known to be.
    pub(super) fn resolve(&self, known: &dyn Fn(&[u8]) -> Option<Attribute>) -> Names<Option<Attribute>> {
        let mut resolved: Names<Option<Attribute>> = Names::default();
        let mut open: Vec<Open<'_>> = Vec::new();
        for (name, seen) in &self.seen {
            match seen {
                Seen::Attribute(attribute) => drop(resolved.insert(name.clone(), Some(*attribute))),
                Seen::Other => drop(resolved.insert(name.clone(), None)),
                Seen::Depends(attribute, names) => open.push((name, *attribute, names)),
            }
        }
        // A macro made of macros: a few rounds settle any chain that people write.
        for _ in 0..8 {
            let before = open.len();
            open.retain(|(name, attribute, names)| {
                let parts: Option<Vec<Attribute>> =
                    names.iter().map(|n| resolved.get(n).copied().unwrap_or_else(|| known(n))).collect();
                let Some(parts) = parts else { return true };
                let whole = parts.into_iter().fold(*attribute, |whole, part| Attribute {
                    runs: whole.runs.and(part.runs),
                    call: whole.call,
                });
                resolved.insert((*name).into(), Some(whole));
                false
            });
            if open.len() == before {
                break;
            }
        }
        for (name, ..) in open {
            resolved.insert(name.into(), None);
        }
        resolved
    }

    pub(super) fn fingerprint(&self) -> u64 {
        self.seen.iter().fold(0, |sum: u64, (name, seen)| {
            let mut hasher = xxhash_rust::xxh3::Xxh3::new();
            hasher.update(name);
            match seen {
                Seen::Other => hasher.update(b"-"),
                Seen::Attribute(a) => hasher.update(&attribute_bytes(*a)),
                Seen::Depends(a, names) => {
                    hasher.update(&attribute_bytes(*a));
                    names.iter().for_each(|n| {
                        hasher.update(b" ");
                        hasher.update(n);
                    });
                }
            }
            sum.wrapping_add(hasher.digest())
        })
    }
}

fn attribute_bytes(a: Attribute) -> [u8; 4] {
    [a.runs.kernel, a.runs.device, a.runs.host, a.call].map(u8::from)
}

fn both(a: Attribute, b: Attribute) -> Attribute {
    Attribute { runs: a.runs.and(b.runs), call: a.call || b.call }
}

fn skip_blanks(bytes: &[u8], at: usize) -> usize {
    at + bytes[at.min(bytes.len())..].iter().take_while(|b| matches!(b, b' ' | b'\t')).count()
}

/// A `#define` longer than this, in bytes, is no attribute.
const LONGEST_ATTRIBUTE: usize = 400;

/// What the `#define` that begins `window` may be read from: its line with those that continue it, or all of the window where a
/// comment or a raw string may go over the line's end.
fn logical_line(window: &[u8]) -> &[u8] {
    let mut end = 0;
    loop {
        let Some(found) = memchr::memchr2(b'\n', b'\r', &window[end..]) else { return window };
        end += found;
        if !window[..end].ends_with(b"\\") {
            break;
        }
        end += if window[end..].starts_with(b"\r\n") { 2 } else { 1 };
    }
    let line = &window[..end];
    let goes_on = [b"/*".as_slice(), b"R\""].iter().any(|open| memchr::memmem::find(line, open).is_some());
    if goes_on { window } else { line }
}

/// The name and meaning of the `#define` at `at`.
fn read_definition(text: &str, at: usize) -> Option<(&[u8], Seen)> {
    let bytes = text.as_bytes();
    let limit =
        (at + LONGEST_ATTRIBUTE..text.len()).find(|end| text.is_char_boundary(*end)).unwrap_or(text.len());
    let line = Lexer::at(text.get(..limit)?, at).next()?;
    let mut tokens = Lexer::within(text, at + 1, line.end);
    tokens.next()?;
    let name = tokens.next().filter(|t| t.kind == Kind::Word)?;
    if line.end == limit && limit < text.len() {
        return Some((name.text(bytes), Seen::Other));
    }
    let call = bytes.get(name.end) == Some(&b'(');
    if call {
        skip_group(&mut tokens)?;
    }
    Some((name.text(bytes), read_body(bytes, tokens, call)))
}

/// Goes over a group in parentheses.
fn skip_group(tokens: &mut Lexer) -> Option<()> {
    let mut depth = 0usize;
    loop {
        let token = tokens.next()?;
        if token.is(b'(') {
            depth += 1;
        } else if token.is(b')') {
            depth = depth.saturating_sub(1);
        }
        if depth == 0 {
            return Some(());
        }
    }
}

fn read_body(bytes: &[u8], mut tokens: Lexer, call: bool) -> Seen {
    let mut attribute = Attribute { runs: Runs::default(), call };
    let mut names: Vec<Box<[u8]>> = Vec::new();
    let mut tells = false;
    while let Some(token) = tokens.next() {
        let word = token.text(bytes);
        attribute.runs = attribute.runs.and(Runs::of_keyword(word));
        if token.is(b'[') {
            // `[[nodiscard]]`
            if tokens.find(|t| t.is(b']')).is_none() || tokens.next().is_none_or(|t| !t.is(b']')) {
                return Seen::Other;
            }
        } else if token.kind != Kind::Word {
            return Seen::Other;
        } else if is_call_attribute(word) {
            tells = true;
            if skip_group(&mut tokens).is_none() {
                return Seen::Other;
            }
        } else if is_plain_attribute(word) {
            tells = true;
        } else if word == b"extern" {
            if tokens.next().is_none_or(|t| t.kind != Kind::Literal) {
                return Seen::Other;
            }
        } else {
            names.push(word.into());
        }
    }
    match (names.is_empty(), call) {
        // `#define CHECK(x)` throws its argument away; that is a statement, not an attribute.
        (true, true) if !tells => Seen::Other,
        (true, _) => Seen::Attribute(attribute),
        (false, true) => Seen::Other,
        (false, false) => {
            names.sort();
            names.dedup();
            Seen::Depends(attribute, names)
        }
    }
}

fn is_plain_attribute(word: &[u8]) -> bool {
    matches!(
        word,
        b"__global__"
            | b"__device__"
            | b"__host__"
            | b"__forceinline__"
            | b"__noinline__"
            | b"__forceinline"
            | b"__inline__"
            | b"__inline"
            | b"inline"
            | b"static"
            | b"constexpr"
            | b"__restrict__"
            | b"__restrict"
            | b"restrict"
            | b"__constant__"
            | b"__managed__"
            | b"__grid_constant__"
            | b"__tile__"
            | b"__tile_global__"
    )
}

fn is_call_attribute(word: &[u8]) -> bool {
    matches!(
        word,
        b"__attribute__" | b"__declspec" | b"__launch_bounds__" | b"__cluster_dims__" | b"__maxnreg__"
    ) || matches!(word, b"_Pragma" | b"__pragma" | b"__align__" | b"alignas" | b"__block_size__")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_that_are_read_otherwise_have_another_hash() {
        let hash = Definitions::hash;
        for (one, other) in [
            // A comment that ends in the next line, or later.
            ("#define N/* 32\n*/ __device__\n", "#define N/* 32\n __device__\n"),
            // A line that goes on, whatever its line ends are.
            ("#define A \\\r\n __device__\r\n", "#define A \\\r\n int\r\n"),
            ("#define A \\\n \\\n __device__", "#define A \\\n \\\n int"),
            // It is a definition only at the beginning of a line.
            ("\n#define A __device__\n", "x#define A __device__\n"),
            // Two lines that become one.
            ("#define A __device__\n#define B\n", "#define A __device__#define B\n"),
        ] {
            assert_ne!(hash(one), hash(other), "{one:?} {other:?}");
            assert_eq!(hash(one), hash(&format!("void f();\n{one}")), "{one:?}");
        }
    }
}
