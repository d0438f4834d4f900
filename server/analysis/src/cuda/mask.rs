//! Makes an item's text one that the grammar can read, byte for byte as long as it was.
//!
//! What the grammar does not know (attribute macros, attributes with arguments or in double brackets, device lambdas,
//! dropped preprocessor branches) becomes blanks. Offsets stay, so nothing is ever mapped back; what a blanked attribute means is kept beside
//! the text as a [`Mark`], and its arguments are read from the original.

use memchr::memchr2_iter;
use smallvec::SmallVec;
use stitch_findings::Span;

use super::head_attributes;
use super::lexer::{Kind, Lexer, Token};
use super::macros::{Macros, Runs};

/// An attribute that was blanked or is a keyword of the grammar: something that tells where a function runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Where, arguments included.
    pub span: Span,
    /// What it says.
    pub runs: Runs,
    /// The arguments of launch bounds, without their parentheses.
    pub bounds: Option<Span>,
    /// Whether it stands in a branch that was dropped: `#if A` `__device__` `#else` `__global__` `#endif`.
    pub dropped: bool,
}

/// An item's text for the grammar.
#[derive(Clone, Debug)]
pub struct Masked {
    /// As long as the item's own text.
    pub text: String,
    /// Its attributes, in the order of the text.
    pub marks: Vec<Mark>,
}

/// An argument list longer than this does not belong to an attribute; its closing parenthesis is missing.
const LONGEST_ARGUMENTS: usize = 4096;

/// Masks `source`, of which `blanks` were dropped by the cut.
pub fn mask(source: &str, blanks: &[Span], macros: &Macros) -> Masked {
    let mut bytes = source.as_bytes().to_vec();
    for blank in blanks {
        wipe(&mut bytes, *blank);
    }
    let kept = String::from_utf8(bytes).unwrap_or_else(|_| source.to_owned());
    let (edits, mut marks) = find_attributes(&kept, macros);
    marks.extend(blanks.iter().flat_map(|blank| dropped_kernels(source, *blank, macros)));
    marks.sort_by_key(|mark| mark.span.start);
    let mut bytes = kept.into_bytes();
    for edit in edits {
        wipe(&mut bytes, edit);
    }
    let odd: SmallVec<[usize; 8]> = memchr2_iter(b'\r', 0, &bytes).collect();
    for at in odd {
        // The grammar's lines end with `\n`.
        let alone = bytes[at] == b'\r' && bytes.get(at + 1) != Some(&b'\n');
        bytes[at] = if alone { b'\n' } else { b' ' };
    }
    let text = String::from_utf8(bytes).unwrap_or_else(|_| source.to_owned());
    Masked { text, marks }
}

/// Replaces a span by blanks, keeping line ends. A span that would split a character is left alone by the caller's check.
fn wipe(bytes: &mut [u8], span: Span) {
    let end = span.end.min(bytes.len());
    let start = span.start.min(end);
    for byte in &mut bytes[start..end] {
        if !matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

/// The attributes of kernels in a dropped branch.
fn dropped_kernels(source: &str, blank: Span, macros: &Macros) -> Vec<Mark> {
    let Some(text) = source.get(blank.range()).filter(|text| !text.starts_with('#')) else {
        return Vec::new();
    };
    let kernel = |token: &Token| {
        let word = token.text(text.as_bytes());
        token.kind == Kind::Word
            && (Runs::of_keyword(word).kernel
                || macros.get(word).is_some_and(|attribute| attribute.runs.kernel))
    };
    let mark = |token: Token| Mark {
        span: Span::new(token.start, token.end).shifted(blank.start),
        runs: Runs { kernel: true, ..Runs::default() },
        bounds: None,
        dropped: true,
    };
    Lexer::at(text, 0).filter(kernel).map(mark).collect()
}

struct Search<'t> {
    text: &'t str,
    bytes: &'t [u8],
    macros: &'t Macros,
    edits: Vec<Span>,
    marks: Vec<Mark>,
}

/// What is to be blanked, and what it means.
fn find_attributes(text: &str, macros: &Macros) -> (Vec<Span>, Vec<Mark>) {
    let mut search = Search { text, bytes: text.as_bytes(), macros, edits: Vec::new(), marks: Vec::new() };
    let mut lexer = Lexer::at(text, 0);
    let mut head = head_attributes::Elements::default();
    let mut last: Option<Token> = None;
    while let Some(token) = lexer.next() {
        match token.kind {
            Kind::BrokenLiteral => search.edits.push(Span::new(token.start, token.end)),
            Kind::Word if search.word(token, last, &mut lexer) => continue,
            Kind::Byte(b'[') if search.double_brackets(token, &mut lexer) => continue,
            _ => {}
        }
        head.add(token, search.bytes);
        last = Some(token);
    }
    search.edits.extend(head.attributes(search.bytes));
    (search.edits, search.marks)
}

impl Search<'_> {
    /// Reads a word. Whether it is an attribute that is blanked.
    fn word(&mut self, token: Token, last: Option<Token>, lexer: &mut Lexer) -> bool {
        let word = token.text(self.bytes);
        let runs = Runs::of_keyword(word);
        if runs != Runs::default() || word == b"__forceinline__" || word == b"__noinline__" {
            let span = Span::new(token.start, token.end);
            // `[=] __device__ (…)`: the grammar has no attributes on lambdas, and what they say is no function's.
            if last.is_some_and(|l| l.is(b']')) {
                self.edits.push(span);
                return true;
            }
            if runs != Runs::default() {
                self.marks.push(Mark { span, runs, bounds: None, dropped: false });
            }
            // The grammar's `__noinline__` stands in fewer places than the compiler's.
            return word == b"__noinline__" && {
                self.edits.push(span);
                true
            };
        }
        if last.is_some_and(|l| l.is(b'.')) {
            return false;
        }
        let Some(attribute) = self.macros.get(word) else { return false };
        let arguments = if attribute.call { self.arguments(lexer) } else { None };
        if attribute.call && arguments.is_none() && !word.starts_with(b"__") {
            return false;
        }
        let span = Span::new(token.start, arguments.map_or(token.end, |a| a.end));
        let bounds = memchr::memmem::find(word, b"LAUNCH_BOUNDS").is_some() || word == b"__launch_bounds__";
        let inside = arguments.map(|a| Span::new(a.start + 1, a.end - 1)).filter(|_| bounds);
        self.edits.push(span);
        self.marks.push(Mark { span, runs: attribute.runs, bounds: inside, dropped: false });
        true
    }

    /// Blanks `[[nodiscard]]` and its kin, if `token` begins one: two brackets in a row can be nothing else in C++. The
    /// grammar does not know them in all places, and then takes the `__global__` behind them for something else.
    fn double_brackets(&mut self, token: Token, lexer: &mut Lexer) -> bool {
        let mut ahead = lexer.clone();
        if !ahead.next().is_some_and(|next| next.is(b'[')) {
            return false;
        }
        let mut depth = 2u32;
        while depth > 0 {
            let Some(next) = ahead.next() else { return false };
            if next.end - token.start > LONGEST_ARGUMENTS || next.is(b'{') || next.is(b';') {
                return false;
            }
            if next.is(b'[') {
                depth += 1;
            } else if next.is(b']') {
                depth -= 1;
            }
        }
        self.edits.push(Span::new(token.start, ahead.position()));
        *lexer = ahead;
        true
    }

    /// The argument list that follows, parentheses included; the lexer goes behind it.
    fn arguments(&self, lexer: &mut Lexer) -> Option<Span> {
        let mut ahead = lexer.clone();
        let open = ahead.next().filter(|t| t.is(b'('))?;
        let mut depth = 1u32;
        while depth > 0 {
            let token = ahead.next()?;
            if token.end - open.start > LONGEST_ARGUMENTS || token.is(b'{') || token.is(b';') {
                return None;
            }
            if token.is(b'(') {
                depth += 1;
            } else if token.is(b')') {
                depth -= 1;
            }
        }
        let span = Span::new(open.start, ahead.position());
        debug_assert!(self.text.is_char_boundary(span.end));
        *lexer = ahead;
        Some(span)
    }
}
