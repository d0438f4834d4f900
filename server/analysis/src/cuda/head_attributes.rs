//! Attributes in the head of a function that no table knows, told by where they stand.
//!
//! `MY_API void f()`, `__global__ void MY_BOUNDS(128) k(float* p)`: a name in capitals before a keyword of a type, or
//! one with arguments before the real name and its parameters, can be nothing else in a program that compiles.

use smallvec::SmallVec;
use stitch_findings::Span;

use super::lexer::{Kind, Token};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    Word(Token),
    /// A group in parentheses.
    Group(Span),
    Other,
}

/// The pieces of an item before its body, template parameters left out.
#[derive(Default)]
pub struct Elements {
    elements: SmallVec<[Element; 16]>,
    parentheses: u32,
    angles: u32,
    template: bool,
    /// What ended the head; nothing is noted after it.
    end: Option<Kind>,
    last: Option<Token>,
}

/// A head with more pieces than this is no function's.
const LONGEST: usize = 256;

impl Elements {
    /// Notes the next token.
    pub fn add(&mut self, token: Token, bytes: &[u8]) {
        if self.end.is_some() {
            return;
        }
        let last = self.last.replace(token);
        match token.kind {
            Kind::Byte(b'(') => {
                self.parentheses += 1;
                if self.parentheses == 1 && self.angles == 0 {
                    self.elements.push(Element::Group(Span::new(token.start, token.start)));
                }
            }
            Kind::Byte(b')') if self.parentheses > 0 => {
                self.parentheses -= 1;
                if self.parentheses == 0
                    && self.angles == 0
                    && let Some(Element::Group(span)) = self.elements.last_mut()
                {
                    span.end = token.end;
                }
            }
            _ if self.parentheses > 0 => {}
            Kind::Byte(b'<') if self.angles > 0 || self.template => {
                self.template = false;
                self.angles += 1;
            }
            Kind::Byte(b'>') if self.angles > 0 => {
                self.angles -= u32::from(!last.is_some_and(|l| l.is(b'-')));
            }
            Kind::Byte(b'{' | b';') => self.end = Some(token.kind),
            _ if self.angles > 0 => {}
            Kind::Byte(b'=') => self.end = Some(token.kind),
            Kind::Word => {
                self.template = token.text(bytes) == b"template";
                self.elements.push(Element::Word(token));
            }
            _ => self.elements.push(Element::Other),
        }
        if self.elements.len() > LONGEST {
            self.elements.clear();
            self.end = Some(Kind::Byte(b';'));
        }
    }

    /// What is an attribute by where it stands.
    pub fn attributes(&self, bytes: &[u8]) -> Vec<Span> {
        let mut found = Vec::new();
        for (index, element) in self.elements.iter().enumerate() {
            let Element::Word(word) = element else { continue };
            let name = word.text(bytes);
            let span = match self.elements.get(index + 1) {
                Some(Element::Group(group)) => {
                    self.called(index, name, *group, bytes).map(|g| Span::new(word.start, g.end))
                }
                Some(Element::Word(next)) => {
                    self.plain(index, name, next.text(bytes), bytes).then(|| Span::new(word.start, word.end))
                }
                None => self.trails(index, name, bytes).then(|| Span::new(word.start, word.end)),
                Some(Element::Other) => None,
            };
            found.extend(span);
        }
        found
    }

    fn word_at(&self, index: usize) -> Option<Token> {
        match self.elements.get(index) {
            Some(Element::Word(word)) => Some(*word),
            _ => None,
        }
    }

    /// Whether the word at `index`, with another behind it, is an attribute.
    fn plain(&self, index: usize, name: &[u8], next: &[u8], bytes: &[u8]) -> bool {
        let before = index.checked_sub(1).and_then(|i| self.word_at(i)).map_or(&b""[..], |w| w.text(bytes));
        if !in_capitals(name)
            || matches!(before, b"goto" | b"typename" | b"using" | b"namespace" | b"operator")
        {
            return false;
        }
        if matches!(before, b"class" | b"struct" | b"union") {
            let groups = self.elements.iter().any(|e| matches!(e, Element::Group(_)));
            return !groups && self.end == Some(Kind::Byte(b'{'));
        }
        let named_and_called = matches!(self.elements.get(index + 2), Some(Element::Group(_)));
        begins_type(next)
            || (begins_type(before) && before != b"static" && before != b"inline" && named_and_called)
    }

    /// Whether the word at `index`, the last of a head, is an attribute behind the parameters.
    fn trails(&self, index: usize, name: &[u8], bytes: &[u8]) -> bool {
        let after_parameters = index >= 2
            && matches!(self.elements[index - 1], Element::Group(_))
            && self.word_at(index - 2).is_some_and(|w| !takes_arguments(w.text(bytes)));
        in_capitals(name) && after_parameters && self.end.is_some()
    }

    /// The group of the word at `index`, if the two are an attribute with arguments.
    fn called(&self, index: usize, name: &[u8], group: Span, bytes: &[u8]) -> Option<Span> {
        if group.is_empty() || takes_arguments(name) {
            return None;
        }
        let is_named = |i: usize| self.word_at(i).filter(|w| !takes_arguments(w.text(bytes)));
        let calls = |i: usize| matches!(self.elements.get(i + 1), Some(Element::Group(g)) if !g.is_empty());
        let later = (index + 2..self.elements.len()).find_map(|i| is_named(i).filter(|_| calls(i)));
        let earlier = (0..index).find_map(|i| is_named(i).filter(|_| calls(i)));
        let directly = self.word_at(index + 2).is_some_and(|w| !takes_arguments(w.text(bytes)));
        let attribute = match (earlier, later) {
            (_, Some(later)) if directly => {
                in_capitals(name) && (!in_capitals(later.text(bytes)) || earlier.is_none())
            }
            (Some(earlier), None) => {
                // `f(int x) MY_BOUNDS(2) {`
                let behind = matches!(self.elements.get(index.wrapping_sub(1)), Some(Element::Group(_)));
                behind && in_capitals(name) && !in_capitals(earlier.text(bytes))
            }
            _ => false,
        };
        attribute.then_some(group)
    }
}

/// Whether a name is written like a macro's.
pub fn in_capitals(name: &[u8]) -> bool {
    name.len() >= 3 && name.iter().any(u8::is_ascii_uppercase) && !name.iter().any(u8::is_ascii_lowercase)
}

/// Words of the language that take something in parentheses and are no function's name.
fn takes_arguments(word: &[u8]) -> bool {
    matches!(
        word,
        b"decltype"
            | b"alignas"
            | b"noexcept"
            | b"explicit"
            | b"requires"
            | b"throw"
            | b"sizeof"
            | b"operator"
    ) || matches!(
        word,
        b"if" | b"for" | b"while" | b"switch" | b"return" | b"asm" | b"static_assert" | b"const"
    )
}

/// Words that begin a declaration's type or stand before it.
fn begins_type(word: &[u8]) -> bool {
    matches!(
        word,
        b"void" | b"int" | b"float" | b"double" | b"bool" | b"char" | b"unsigned" | b"signed" | b"long"
    ) || matches!(
        word,
        b"short" | b"auto" | b"static" | b"inline" | b"constexpr" | b"extern" | b"template" | b"virtual"
    ) || matches!(
        word,
        b"__global__" | b"__device__" | b"__host__" | b"__forceinline__" | b"explicit" | b"friend"
    )
}

#[cfg(test)]
mod tests {
    use super::super::lexer::Lexer;
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        let mut elements = Elements::default();
        for token in Lexer::at(text, 0) {
            elements.add(token, text.as_bytes());
        }
        elements.attributes(text.as_bytes()).into_iter().map(|span| &text[span.range()]).collect()
    }

    #[test]
    fn attributes_by_their_place() {
        for (text, expected) in [
            ("MY_API void f(int x) {", &["MY_API"] as &[_]),
            ("__global__ void MY_BOUNDS(128) k(float* p) {", &["MY_BOUNDS(128)"]),
            ("void MY_BOUNDS(128) KERNEL(float* p) {", &["MY_BOUNDS(128)"]),
            ("void KERNEL(float* p) {", &[]),
            ("void f(int x) MY_NOEXCEPT {", &["MY_NOEXCEPT"]),
            ("void f(int x) MY_BOUNDS(2) {", &["MY_BOUNDS(2)"]),
            ("template <typename T = A(B)> void f(T x) noexcept(true) {", &[]),
            ("class MY_EXPORT Name {", &["MY_EXPORT"]),
            ("struct FILE name;", &[]),
            ("FILE* open(int x) {", &[]),
            ("TEST(Suite, Name) {", &[]),
            ("void MY_ATTR f(int x);", &["MY_ATTR"]),
            ("static TYPE f(int x) {", &[]),
            ("decltype(x) f(int y) {", &[]),
            ("__global__ void k(dim3 g) ;", &[]),
        ] {
            assert_eq!(found(text), expected, "{text}");
        }
    }
}
