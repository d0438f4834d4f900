//! The declarations of a function that say how much memory a name stands for.

use stitch_findings::Span;

use super::super::arguments::{group_end, split_tokens, template_end};
use super::super::lexer::{Kind, Token};
use super::super::locals::LocalsAt;
use super::super::tidy::tidy;
use super::Outside;
use super::changes::Change;

/// A variable.
pub struct Object {
    /// Its name.
    pub name: String,
    /// Where it can be seen.
    pub visible: Span,
    /// What is done to it that may give it another size.
    pub changes: Vec<Change>,
    /// The bytes of one element: of a vector, of an array, behind a pointer; of a scalar, its own.
    element: Option<i64>,
    kind: Kinds,
}

enum Kinds {
    Scalar,
    Pointer,
    /// The extents of an array, as written.
    Array(Vec<Extent>),
    Vector(Extent),
}

enum Extent {
    /// An expression, and where it stands.
    Written(String, usize),
    /// So many elements in a list, or of a caller's vector.
    Counted(i64),
    Unknown,
}

impl Extent {
    fn value(&self, scope: &LocalsAt) -> Option<i64> {
        match self {
            Extent::Written(text, at) => scope.moved(*at)?.fold(text),
            Extent::Counted(count) => Some(*count),
            Extent::Unknown => None,
        }
        .filter(|count| *count >= 0)
    }
}

impl Object {
    /// Whether it can change its size.
    pub fn is_vector(&self) -> bool {
        matches!(self.kind, Kinds::Vector(_))
    }

    /// How many elements it holds at the place of `scope`.
    pub fn count(&self, scope: &LocalsAt) -> Option<i64> {
        match &self.kind {
            Kinds::Array(extents) => extents.first()?.value(scope),
            Kinds::Vector(start) => match &self.changes[..] {
                [] => start.value(scope),
                [Change::Set { count, at, within }]
                    if *at < scope.place() && within.start <= scope.place() && scope.place() < within.end =>
                {
                    scope.moved(*at)?.fold(count).filter(|count| *count >= 0)
                }
                _ => None,
            },
            Kinds::Scalar | Kinds::Pointer => None,
        }
    }

    /// Its own bytes.
    pub fn storage(&self, scope: &LocalsAt) -> Option<i64> {
        match &self.kind {
            Kinds::Scalar => self.element,
            // On every platform that runs CUDA.
            Kinds::Pointer => Some(8),
            Kinds::Array(extents) => extents
                .iter()
                .try_fold(self.element?, |bytes, extent| bytes.checked_mul(extent.value(scope)?)),
            // How large a vector's own head is depends on the library.
            Kinds::Vector(_) => None,
        }
    }

    /// The bytes of what `*name` is.
    pub fn pointee(&self) -> Option<i64> {
        match &self.kind {
            Kinds::Scalar => None,
            Kinds::Array(extents) if extents.len() > 1 => None,
            _ => self.element,
        }
    }

    /// Why its size is not known, where it is a vector.
    pub fn unknown(&self) -> Option<String> {
        let Kinds::Vector(start) = &self.kind else { return None };
        let name = &self.name;
        Some(match (start, self.changes.iter().find_map(Change::blamed)) {
            (_, Some(by)) => format!("`{name}` may get another size by `{by}`"),
            (Extent::Written(text, _), None) => format!("`{name}` is made with `{text}` elements"),
            _ => format!("nothing says how many elements `{name}` is made with"),
        })
    }
}

/// The parameter `name` of the type `ty`; `count` says how many elements a caller's vector has.
pub fn parameter(name: &str, ty: &str, count: Option<i64>, outside: &Outside) -> Option<Object> {
    let name = name.split('[').next().unwrap_or_default().trim();
    let is_pointer = ty.contains(['*', '[']);
    let (element, kind) = match vector_element(ty) {
        Some(element) => {
            let count = count.map_or(Extent::Unknown, Extent::Counted);
            ((outside.bytes_of)(&element), Kinds::Vector(count))
        }
        None if is_pointer => (pointee_bytes(ty, outside), Kinds::Pointer),
        None => ((outside.bytes_of)(ty), Kinds::Scalar),
    };
    let visible = Span::new(0, usize::MAX);
    (!name.is_empty()).then(|| Object { name: name.to_owned(), visible, changes: Vec::new(), element, kind })
}

fn pointee_bytes(ty: &str, outside: &Outside) -> Option<i64> {
    match ty.matches(['*', '[']).count() {
        0 => None,
        1 => (outside.bytes_of)(ty.split(['*', '[']).next().unwrap_or_default().trim()),
        _ => Some(8),
    }
}

/// The declarations among the tokens of a body.
pub fn of(tokens: &[Token], masked: &str, outside: &Outside) -> Vec<Object> {
    let reader = Reader { tokens, masked, outside };
    let mut objects: Vec<Object> = Vec::new();
    let mut scopes: Vec<usize> = Vec::new();
    let mut starts = true;
    for (index, token) in tokens.iter().enumerate() {
        if starts && token.kind == Kind::Word {
            reader.statement(index, &mut objects);
        }
        starts = matches!(token.kind, Kind::Byte(b';' | b'{' | b'}' | b'('));
        match token.kind {
            Kind::Byte(b'{') => scopes.push(objects.len()),
            Kind::Byte(b'}') => {
                let first = scopes.pop().unwrap_or(0).min(objects.len());
                for object in &mut objects[first..] {
                    object.visible.end = object.visible.end.min(token.start);
                }
            }
            _ => {}
        }
    }
    objects
}

/// The element of `std::vector<float>`, `vector<int, A>`, references to these included.
fn vector_element(ty: &str) -> Option<String> {
    let (head, rest) = ty.split_once('<')?;
    let name = head.trim().trim_start_matches("const ").trim_start_matches("static ").trim();
    matches!(name, "std::vector" | "vector" | "::std::vector").then_some(())?;
    let inside = rest.rsplit_once('>')?.0;
    Some(inside.split(',').next()?.trim().to_owned())
}

/// More tokens than a type has.
const LONGEST_TYPE: usize = 24;

struct Reader<'t> {
    tokens: &'t [Token],
    masked: &'t str,
    outside: &'t Outside<'t>,
}

impl Reader<'_> {
    fn is(&self, index: usize, byte: u8) -> bool {
        self.tokens.get(index).is_some_and(|token| token.is(byte))
    }

    fn text(&self, first: usize, end: usize) -> String {
        let span = self.tokens.get(first).zip(self.tokens.get(end.wrapping_sub(1)));
        let range = span.map_or(0..0, |(first, last)| first.start..last.end.max(first.start));
        tidy(self.masked.get(range).unwrap_or_default())
    }

    /// Reads the statement at `first`, if it declares.
    fn statement(&self, first: usize, objects: &mut Vec<Object>) {
        let Some(mut at) = self.type_end(first) else { return };
        let ty = self.text(first, at);
        // `return x;`, `delete p;`, `else x = 1;`
        if ["return", "delete", "else", "goto", "case", "throw", "using", "new", "typedef"]
            .iter()
            .any(|word| ty.split(' ').next() == Some(word))
        {
            return;
        }
        loop {
            let mut stars = 0;
            while self.is(at, b'*') || self.is(at, b'&') {
                stars += usize::from(self.is(at, b'*'));
                at += 1;
            }
            while self.word(at).is_some_and(|word| matches!(word, "__restrict__" | "__restrict" | "const")) {
                at += 1;
            }
            let Some(name) = self.word(at) else { return };
            let Some(object) = self.object(&ty, stars, name, at + 1) else { return };
            objects.push(object);
            let Some(end) = self.declarator_end(at + 1) else { return };
            if !self.is(end, b',') {
                return;
            }
            at = end + 1;
        }
    }

    fn word(&self, index: usize) -> Option<&str> {
        let token = self.tokens.get(index).filter(|token| token.kind == Kind::Word)?;
        self.masked.get(token.start..token.end)
    }

    /// Where the type ends that starts at `first`: before the stars and the name of the first declarator.
    fn type_end(&self, first: usize) -> Option<usize> {
        let mut at = first;
        let mut words = 0;
        while at < first + LONGEST_TYPE {
            if self.word(at).is_some() {
                words += 1;
                at += 1;
            } else if self.is(at, b':') && self.is(at + 1, b':') {
                at += 2;
            } else if self.is(at, b'<') && words > 0 {
                at = self.angle_end(at)? + 1;
                // The name follows.
                return (self.word(at).is_some() || self.is(at, b'&') || self.is(at, b'*')).then_some(at);
            } else {
                break;
            }
        }
        if self.is(at, b'*') || self.is(at, b'&') {
            return (words >= 1).then_some(at);
        }
        // The last word is the name.
        let scoped = at >= first + 2 && self.is(at - 2, b':');
        (words >= 2 && !scoped).then(|| at - 1)
    }

    fn angle_end(&self, open: usize) -> Option<usize> {
        let mut depth = 0usize;
        for at in open..self.tokens.len().min(open + LONGEST_TYPE) {
            match self.tokens[at].kind {
                Kind::Byte(b'<') => depth += 1,
                Kind::Byte(b'>') => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(at);
                    }
                }
                Kind::Word | Kind::Number | Kind::Byte(b':' | b',' | b'*') => {}
                _ => return None,
            }
        }
        None
    }

    /// The `,` or `;` after the declarator whose name ends before `at`.
    fn declarator_end(&self, mut at: usize) -> Option<usize> {
        while let Some(token) = self.tokens.get(at) {
            match token.kind {
                Kind::Byte(b',' | b';') => return Some(at),
                Kind::Byte(b'(' | b'[' | b'{') => at = group_end(self.tokens, at)? + 1,
                Kind::Byte(b')' | b']' | b'}') => return None,
                Kind::Byte(b'<') => at = template_end(self.tokens, at).unwrap_or(at) + 1,
                _ => at += 1,
            }
        }
        None
    }

    /// What is declared by `ty`, `stars` and a name that ends before `at`.
    fn object(&self, ty: &str, stars: usize, name: &str, at: usize) -> Option<Object> {
        let start = self.tokens.get(at)?.start;
        let make = |element, kind| {
            let visible = Span::new(start, usize::MAX);
            Some(Object { name: name.to_owned(), visible, changes: Vec::new(), element, kind })
        };
        if stars > 0 {
            let element = if stars == 1 { (self.outside.bytes_of)(ty) } else { Some(8) };
            return make(element, Kinds::Pointer);
        }
        if let Some(element) = vector_element(ty) {
            let element = (self.outside.bytes_of)(&element);
            return make(element, Kinds::Vector(self.vector(ty, element.is_some(), at)));
        }
        if let Some((element, count)) = standard_array(ty) {
            let count = Extent::Written(count, start);
            return make((self.outside.bytes_of)(&element), Kinds::Array(vec![count]));
        }
        if self.is(at, b'[') {
            return make((self.outside.bytes_of)(ty), Kinds::Array(self.extents(at)?));
        }
        if ty == "auto" && self.is(at, b'=') {
            let end = self.type_end(at + 1).or_else(|| self.called_type_end(at + 1))?;
            let made = self.text(at + 1, end);
            let element = (self.outside.bytes_of)(&vector_element(&made)?);
            return make(element, Kinds::Vector(self.contents(end, element.is_some())));
        }
        make((self.outside.bytes_of)(ty), Kinds::Scalar)
    }

    /// The end of the type of `std::vector<float>(n)`.
    fn called_type_end(&self, first: usize) -> Option<usize> {
        let open = (first..first + LONGEST_TYPE).find(|at| self.is(*at, b'<'))?;
        Some(self.angle_end(open)? + 1)
    }

    /// How many elements the vector has whose name ends before `at`.
    fn vector(&self, ty: &str, is_number: bool, at: usize) -> Extent {
        if !self.is(at, b'=') {
            return self.contents(at, is_number);
        }
        if self.is(at + 1, b'{') {
            return self.contents(at + 1, is_number);
        }
        match self.called_type_end(at + 1) {
            Some(end) if vector_element(&self.text(at + 1, end)) == vector_element(ty) => {
                self.contents(end, is_number)
            }
            _ => Extent::Unknown,
        }
    }

    /// How many elements `(n)`, `(n, value)`, `{a, b}` or nothing makes.
    fn contents(&self, at: usize, is_number: bool) -> Extent {
        if self.is(at, b';') || self.is(at, b',') {
            return Extent::Counted(0);
        }
        let Some(end) = group_end(self.tokens, at) else { return Extent::Unknown };
        let parts = split_tokens(&self.tokens[at + 1..end]);
        let after_is_end = self.is(end + 1, b';') || self.is(end + 1, b',');
        match (self.is(at, b'('), &parts[..]) {
            _ if !after_is_end => Extent::Unknown,
            (_, []) => Extent::Counted(0),
            (true, [count] | [count, _]) => {
                let text = tidy(self.masked.get(count.range()).unwrap_or_default());
                Extent::Written(text, self.tokens[at].start)
            }
            // Numbers in braces are the elements themselves.
            (false, _) if self.is(at, b'{') && is_number => {
                Extent::Counted(i64::try_from(parts.len()).unwrap_or(0))
            }
            _ => Extent::Unknown,
        }
    }

    /// `[N][4]`, or `[] = {…}`.
    fn extents(&self, mut at: usize) -> Option<Vec<Extent>> {
        let mut extents = Vec::new();
        while self.is(at, b'[') {
            let end = group_end(self.tokens, at)?;
            extents.push(match end - at {
                1 => Extent::Unknown,
                _ => Extent::Written(self.text(at + 1, end), self.tokens[at].start),
            });
            at = end + 1;
        }
        if let ([first @ Extent::Unknown], true, true) =
            (&mut extents[..], self.is(at, b'='), self.is(at + 1, b'{'))
        {
            let end = group_end(self.tokens, at + 1)?;
            let parts = split_tokens(&self.tokens[at + 2..end]);
            // Inner braces may be those of structs, whose size is not known anyway.
            let trailing = parts.last().is_some_and(|part| part.is_empty());
            *first = Extent::Counted(i64::try_from(parts.len() - usize::from(trailing)).unwrap_or(0));
        }
        Some(extents)
    }
}

/// Element and extent of `std::array<float, N>`.
fn standard_array(ty: &str) -> Option<(String, String)> {
    let (head, rest) = ty.split_once('<')?;
    let name = head.trim().trim_start_matches("const ").trim_start_matches("static ").trim();
    matches!(name, "std::array" | "array").then_some(())?;
    let (element, count) = rest.rsplit_once('>')?.0.rsplit_once(',')?;
    Some((element.trim().to_owned(), count.trim().to_owned()))
}
