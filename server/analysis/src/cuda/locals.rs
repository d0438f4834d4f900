//! The constants at a place of a function, for the values of its launches: `dim3 block(16, 16);`, `int n = 256;`.
//!
//! Read from tokens, since the grammar takes `dim3 block(TILE, TILE);` for a function. A name that is assigned again, or
//! declared twice around the place, has no value: better none than a wrong one.

use std::collections::BTreeMap;

use stitch_findings::Span;

use super::arguments::group_end;
use super::lexer::{Kind, Token};
use super::sizes::{Named, Sizes, spelled};
use super::tidy::tidy;
use crate::outline::TemplateParameter;
use crate::rules::constants::{Constants, fold_dimensions, fold_text};

struct Local {
    name: String,
    /// What it starts as.
    value: String,
    /// Where it can be seen.
    visible: Span,
}

/// The constants of one function.
pub struct Locals<'o> {
    locals: Vec<Local>,
    /// Names that are written to after they were declared, and names without a single value.
    varying: Vec<String>,
    /// What a person said of names; it goes before what the text says.
    assumed: BTreeMap<String, i64>,
    /// How much memory its names stand for, where that was asked for.
    sizes: Option<Sizes>,
    template: &'o [TemplateParameter],
    outer: &'o dyn Constants,
}

impl<'o> Locals<'o> {
    /// Reads the body `tokens`, of the text `masked`; what they lack is asked of `outer`.
    pub fn read(
        tokens: &[Token],
        masked: &str,
        template: &'o [TemplateParameter],
        outer: &'o dyn Constants,
    ) -> Self {
        let mut locals = Self {
            locals: Vec::new(),
            varying: Vec::new(),
            assumed: BTreeMap::new(),
            sizes: None,
            template,
            outer,
        };
        let mut scopes: Vec<usize> = Vec::new();
        let mut list = Dim3List::default();
        let bytes = masked.as_bytes();
        for (index, token) in tokens.iter().enumerate() {
            list.follow(tokens, index, bytes);
            match token.kind {
                Kind::Byte(b'{') => scopes.push(locals.locals.len()),
                Kind::Byte(b'}') => {
                    for local in &mut locals.locals[scopes.pop().unwrap_or(0)..] {
                        local.visible.end = local.visible.end.min(token.start);
                    }
                }
                Kind::Word => locals.word(tokens, index, masked, list.is_open()),
                _ => {}
            }
        }
        locals
    }

    /// Looks at one word; `in_dim3_list` says whether a comma before it goes on with declarations of `dim3`.
    fn word(&mut self, tokens: &[Token], index: usize, masked: &str, in_dim3_list: bool) {
        let bytes = masked.as_bytes();
        let byte = |i: usize| match tokens.get(i).map(|t| t.kind) {
            Some(Kind::Byte(byte)) => byte,
            _ => 0,
        };
        let name = tokens[index].text(bytes);
        let before = index.checked_sub(1).map(|i| tokens[i]);
        let listed = before.is_some_and(|t| t.is(b','));
        let next_dim3 = listed && in_dim3_list;
        let typed = next_dim3 || before.is_some_and(|t| t.kind == Kind::Word && !is_statement(t.text(bytes)));
        let next = index + 1;
        let is_dim3 = next_dim3 || before.is_some_and(|t| t.text(bytes) == b"dim3");
        let value = match byte(next) {
            b'=' if byte(next + 1) == b'=' => return,
            b'=' if typed => statement_value(tokens, next + 1),
            b'(' | b'{' if typed && is_dim3 => {
                group_end(tokens, next).map(|end| Span::new(tokens[next].start, tokens[end].end))
            }
            b'(' | b'{' if typed => group_end(tokens, next)
                .filter(|end| *end > next + 1)
                .map(|end| Span::new(tokens[next + 1].start, tokens[end - 1].end)),
            _ => {
                let written = matches!(byte(next), b'=')
                    || (matches!(
                        byte(next),
                        b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^' | b'<' | b'>'
                    ) && (byte(next + 1) == b'='
                        || (byte(next + 1) == byte(next) && byte(next + 2) == b'=')))
                    || (matches!(byte(next), b'+' | b'-') && byte(next + 1) == byte(next))
                    || (byte(next) == b'.' && byte(next + 2) == b'=' && byte(next + 3) != b'=')
                    || (index >= 2
                        && matches!(byte(index - 1), b'+' | b'-')
                        && byte(index - 1) == byte(index - 2))
                    || (index >= 2 && byte(index - 1) == b'&' && matches!(byte(index - 2), b'(' | b','));
                if written {
                    let list_declares = listed && byte(next) == b'=';
                    if let (true, Some(value)) = (list_declares, statement_value(tokens, next + 1)) {
                        self.declare(name, &masked[value.range()], false, tokens[index].end);
                    } else {
                        self.varying.push(String::from_utf8_lossy(name).into_owned());
                    }
                }
                return;
            }
        };
        if let Some(value) = value {
            self.declare(name, masked.get(value.range()).unwrap_or_default(), is_dim3, tokens[index].end);
        }
    }

    fn declare(&mut self, name: &[u8], value: &str, is_dim3: bool, from: usize) {
        let value = tidy(value);
        let value = match value.strip_prefix('(') {
            Some(rest) if is_dim3 => format!("dim3({rest}"),
            _ => value,
        };
        let name = String::from_utf8_lossy(name).into_owned();
        self.locals.push(Local { name, value, visible: Span::new(from, usize::MAX) });
    }

    /// The same, with values for names that a person has said.
    pub fn assuming(mut self, values: BTreeMap<String, i64>) -> Self {
        self.assumed = values;
        self
    }

    /// The same, with what is known of the sizes of its vectors and arrays.
    pub fn knowing(mut self, sizes: Sizes) -> Self {
        self.sizes = Some(sizes);
        self
    }

    /// The same, with values that its callers give its parameters, where the body neither changes nor hides them.
    pub fn called_with(mut self, values: &BTreeMap<String, i64>) -> Self {
        for (name, value) in values {
            let hidden = self.locals.iter().any(|local| local.name == *name);
            if !hidden && !self.varying.contains(name) {
                self.assumed.entry(name.clone()).or_insert(*value);
            }
        }
        self
    }

    /// Why the vector `name` has no size that is known at `at`, where it is one.
    pub fn unknown_size(&self, name: &str, at: usize) -> Option<String> {
        self.sizes.as_ref()?.unknown(name, at)
    }

    /// The constants at the byte `at`.
    pub fn at(&self, at: usize) -> LocalsAt<'_, 'o> {
        LocalsAt { locals: self, at, depth: 0 }
    }
}

/// Whether the tokens are inside a list of declarations: `dim3 grid(n / 32, n / 32), block(32, 32);`.
#[derive(Default)]
struct Dim3List {
    depth: usize,
    /// The depth of the list's own commas.
    open: Option<usize>,
}

impl Dim3List {
    /// Goes to the token at `index`.
    fn follow(&mut self, tokens: &[Token], index: usize, bytes: &[u8]) {
        match tokens[index].kind {
            Kind::Byte(b'(' | b'[' | b'{') => self.depth += 1,
            Kind::Byte(b')' | b']' | b'}') => {
                self.depth = self.depth.saturating_sub(1);
                self.open = self.open.filter(|depth| *depth <= self.depth);
            }
            Kind::Byte(b';') => self.open = None,
            Kind::Word if tokens[index].text(bytes) == b"dim3" => {
                let declares = tokens.get(index + 1).is_some_and(|next| next.kind == Kind::Word);
                self.open = declares.then_some(self.depth);
            }
            _ => {}
        }
    }

    fn is_open(&self) -> bool {
        self.open == Some(self.depth)
    }
}

/// Words before a name that do not declare it.
fn is_statement(word: &[u8]) -> bool {
    matches!(
        word,
        b"return" | b"else" | b"new" | b"delete" | b"throw" | b"case" | b"goto" | b"do" | b"sizeof"
    )
}

/// What stands between `first` and the end of its declarator.
fn statement_value(tokens: &[Token], first: usize) -> Option<Span> {
    let start = tokens.get(first)?.start;
    let mut depth = 0u32;
    for index in first..tokens.len().min(first + 256) {
        match tokens[index].kind {
            Kind::Byte(b'(' | b'[' | b'{') => depth += 1,
            Kind::Byte(b')' | b']' | b'}') => depth = depth.checked_sub(1)?,
            Kind::Byte(b';' | b',') if depth == 0 => {
                return (index > first).then(|| Span::new(start, tokens[index - 1].end));
            }
            _ => {}
        }
    }
    None
}

/// Constants that stand for others deeper than this are not followed.
const DEEPEST: u32 = 16;

/// The constants at one place.
#[derive(Clone, Copy)]
pub struct LocalsAt<'l, 'o> {
    locals: &'l Locals<'o>,
    at: usize,
    depth: u32,
}

impl LocalsAt<'_, '_> {
    /// The byte it is about.
    pub fn place(&self) -> usize {
        self.at
    }

    /// The same at the byte `at`, one step deeper; `None` where that is too deep.
    pub fn moved(&self, at: usize) -> Option<Self> {
        (self.depth < DEEPEST).then_some(Self { locals: self.locals, at, depth: self.depth + 1 })
    }

    /// The value of an integer expression, sizes of vectors and arrays included.
    pub fn fold(&self, text: &str) -> Option<i64> {
        match self.spelled(text) {
            Some(text) => fold_text(&text, self),
            None => fold_text(text, self),
        }
    }

    /// The value of a launch's grid or block.
    pub fn fold_dimensions(&self, text: &str) -> Option<[i64; 3]> {
        match self.spelled(text) {
            Some(text) => fold_dimensions(&text, self),
            None => fold_dimensions(text, self),
        }
    }

    /// How many elements the vector `name` holds here.
    pub fn count(&self, name: &str) -> Option<i64> {
        self.locals.sizes.as_ref()?.count(name, self)
    }

    fn spelled(&self, text: &str) -> Option<String> {
        let sizes = self.locals.sizes.as_ref()?;
        spelled(text, &Spelling { sizes, scope: self })
    }

    /// The local of this name that is seen here: `Err` if the name is a local's without a value.
    fn find(&self, name: &str) -> Result<Option<&Local>, ()> {
        let sees = |l: &&Local| l.name == name && l.visible.start <= self.at && self.at < l.visible.end;
        let found = self.locals.locals.iter().rev().find(sees);
        match found {
            Some(_) if self.depth >= DEEPEST || self.locals.varying.iter().any(|v| v == name) => Err(()),
            found => Ok(found),
        }
    }

    fn within(&self, local: &Local) -> Self {
        Self { locals: self.locals, at: local.visible.start.saturating_sub(1), depth: self.depth + 1 }
    }
}

impl Constants for LocalsAt<'_, '_> {
    fn value(&self, name: &str) -> Option<i64> {
        if let Some(value) = self.locals.assumed.get(name) {
            return Some(*value);
        }
        if let Some(local) = self.find(name).ok()? {
            return self.within(local).fold(&local.value);
        }
        match self.locals.template.iter().find(|p| p.name == name) {
            Some(parameter) => fold_text(parameter.default.as_deref()?, self.locals.outer),
            None if self.locals.varying.iter().any(|v| v == name) => None,
            None => self.locals.outer.value(name),
        }
    }

    fn dimensions(&self, name: &str) -> Option<[i64; 3]> {
        match self.find(name).ok()? {
            Some(local) => self.within(local).fold_dimensions(&local.value),
            None => self.locals.outer.dimensions(name),
        }
    }
}

struct Spelling<'s, 'l, 'o> {
    sizes: &'s Sizes,
    scope: &'s LocalsAt<'l, 'o>,
}

impl Named for Spelling<'_, '_, '_> {
    fn count(&self, name: &str) -> Option<i64> {
        self.sizes.count(name, self.scope)
    }

    fn bytes(&self, name: &str) -> Option<i64> {
        self.sizes.bytes(name, self.scope)
    }

    fn pointee(&self, name: &str) -> Option<i64> {
        self.sizes.pointee(name, self.scope.at)
    }

    fn axes(&self, name: &str) -> Option<[i64; 3]> {
        self.scope.dimensions(name)
    }

    fn integer(&self, text: &str) -> Option<i64> {
        self.scope.moved(self.scope.at)?.fold(text)
    }
}

#[cfg(test)]
mod tests {
    use super::super::lexer::Lexer;
    use super::*;

    #[test]
    fn sizes_of_launches() {
        for (body, size, expected) in [
            ("dim3 b(16, 16); |", "b", Some([16, 16, 1])),
            ("dim3 b = dim3(8); |", "b", Some([8, 1, 1])),
            ("dim3 b{4, 2}; |", "b", Some([4, 2, 1])),
            ("dim3 g(n / 4, 2), b(16, 16); |", "b", Some([16, 16, 1])),
            ("dim3 g, h{1}, b = dim3(8, 2), c(f(3, 4)); |", "b", Some([8, 2, 1])),
            ("dim3 g(4), b(8); b = dim3(9); |", "b", None),
            ("f(dim3(4), b(8)); |", "b", None),
            ("const int n = 64; dim3 b(n, n / 32); |", "b", Some([64, 2, 1])),
            ("int n = 64, m = 2; |", "n * m", Some([128, 1, 1])),
            ("int n = 64; n = 3; |", "n", None),
            ("int n = 64; n += 3; |", "n", None),
            ("int n = 64; f(&n); |", "n", None),
            ("dim3 b(16); b.y = 4; |", "b", None),
            ("{ int n = 1; } int n = 2; |", "n", Some([2, 1, 1])),
            ("int n = 2; { int n = 1; } |", "n", Some([2, 1, 1])),
            ("int n = 2; { int n = 1; | }", "n", Some([1, 1, 1])),
            ("int n = n + 1; |", "n", None),
            ("int a = b; int b = a; |", "b", None),
            ("auto t = 128; |", "(t + 31) / 32", Some([4, 1, 1])),
            ("int t(128); |", "t", Some([128, 1, 1])),
        ] {
            let at = body.find('|').unwrap();
            let text = body.replace('|', " ");
            let tokens: Vec<Token> = Lexer::at(&text, 0).collect();
            let locals = Locals::read(&tokens, &text, &[], &());
            assert_eq!(fold_dimensions(size, &locals.at(at)), expected, "{body}");
        }
    }
}
