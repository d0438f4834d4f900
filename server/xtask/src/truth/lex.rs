//! The tokens of a CUDA file, without comments, with literals closed to the outside and preprocessor lines kept whole.
//!
//! Good enough for declarators, not a C++ lexer: operators come apart into single characters except where the
//! difference matters for templates (`>=`, `->`, `<<`) and launches (`<<<`).

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An identifier or keyword.
    Ident,
    /// A number, digit separators included.
    Number,
    /// A string or character literal, raw ones included.
    Literal,
    /// `<<<`
    Launch,
    /// Anything else.
    Punct,
    /// A preprocessor line: an index into [`Lexed::directives`].
    Directive(usize),
}

/// One token: a range of bytes and its kind.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// One preprocessor line, continuation lines included.
#[derive(Debug)]
pub struct Directive {
    /// `define`, `if`, `endif`, …; empty for a lone `#`.
    pub word: String,
    /// Tokens after the word.
    pub tokens: Vec<Token>,
    /// For a `define`: whether a parameter list follows the name directly.
    pub function_like: bool,
    /// Where among the file's tokens the next branch of this conditional is (`elif`, `else` or `endif`).
    pub next_branch: Option<usize>,
}

impl Directive {
    /// The tokens that stand for something: for a `define` those after its name, else all.
    pub fn body(&self) -> &[Token] {
        match self.word.as_str() {
            "define" => self.tokens.get(1..).unwrap_or_default(),
            _ => &self.tokens,
        }
    }

    /// Whether it opens a conditional.
    pub fn opens(&self) -> bool {
        matches!(self.word.as_str(), "if" | "ifdef" | "ifndef")
    }

    /// Whether it starts another branch of a conditional.
    pub fn continues(&self) -> bool {
        matches!(self.word.as_str(), "elif" | "elifdef" | "elifndef" | "else")
    }
}

/// A file as tokens.
#[derive(Debug)]
pub struct Lexed<'a> {
    text: &'a str,
    /// All tokens outside preprocessor lines, and one for each such line.
    pub tokens: Vec<Token>,
    /// The preprocessor lines.
    pub directives: Vec<Directive>,
    line_starts: Vec<usize>,
}

impl<'a> Lexed<'a> {
    /// Lexes a whole file; anything can be lexed.
    pub fn of(text: &'a str) -> Lexed<'a> {
        let line_starts =
            std::iter::once(0).chain(text.bytes().enumerate().filter(|b| b.1 == b'\n').map(|b| b.0 + 1));
        let mut lexed =
            Lexed { text, tokens: Vec::new(), directives: Vec::new(), line_starts: line_starts.collect() };
        let mut lexer = Lexer { bytes: text.as_bytes(), at: 0, line_is_empty: true };
        while let Some(token) = lexer.next() {
            if lexer.text(&token) == b"#" && lexer.line_is_empty {
                let directive = lexer.directive(text, &token);
                let end = lexer.at;
                let kind = Kind::Directive(lexed.directives.len());
                lexed.directives.push(directive);
                lexed.tokens.push(Token { kind, start: token.start, end });
                lexer.line_is_empty = true;
                continue;
            }
            lexer.line_is_empty = false;
            lexed.tokens.push(token);
        }
        lexed.link_conditionals();
        lexed
    }

    /// The token's text.
    pub fn text_of(&self, token: &Token) -> &'a str {
        self.text.get(token.start..token.end).unwrap_or_default()
    }

    /// The line of a byte, counted from 1.
    pub fn line(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|&start| start <= offset)
    }

    /// Tells each branch of each conditional where its next branch is.
    fn link_conditionals(&mut self) {
        let mut open: Vec<usize> = Vec::new();
        for (index, token) in self.tokens.iter().enumerate() {
            let Kind::Directive(which) = token.kind else { continue };
            let directive = &self.directives[which];
            let (opens, continues, ends) =
                (directive.opens(), directive.continues(), directive.word == "endif");
            if (continues || ends)
                && let Some(previous) = open.pop()
            {
                self.directives[previous].next_branch = Some(index);
            }
            if opens || continues {
                open.push(which);
            }
        }
    }
}

struct Lexer<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Nothing but blanks and comments since the line began: only there does `#` start a directive.
    line_is_empty: bool,
}

impl Lexer<'_> {
    fn text(&self, token: &Token) -> &[u8] {
        &self.bytes[token.start..token.end]
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// The rest of a preprocessor line, after its `#`.
    fn directive(&mut self, text: &str, hash: &Token) -> Directive {
        let mut tokens = Vec::new();
        self.line_is_empty = false;
        loop {
            let before = self.at;
            match self.next() {
                // The line ended, or the file.
                Some(_) if self.line_is_empty => {
                    self.at = before;
                    break;
                }
                Some(token) => tokens.push(token),
                None => break,
            }
        }
        let text_of = |token: &Token| text.get(token.start..token.end).unwrap_or_default();
        let word = tokens.first().map(text_of).unwrap_or_default().to_owned();
        if !tokens.is_empty() {
            tokens.remove(0);
        }
        let function_like =
            matches!(&tokens[..], [name, open, ..] if text_of(open) == "(" && open.start == name.end);
        // Leave the cursor at the end of the directive, so that the newline is seen again by the caller.
        let end = tokens.last().map_or(hash.end, |token| token.end);
        self.at = self.at.max(end);
        Directive { word, tokens, function_like, next_branch: None }
    }

    /// The next token; sets `line_is_empty` when a newline was passed on the way.
    fn next(&mut self) -> Option<Token> {
        self.skip_blanks();
        let start = self.at;
        let kind = match self.peek(0) {
            _ if start >= self.bytes.len() => return None,
            b'"' => self.literal(b'"'),
            b'\'' => self.literal(b'\''),
            b'0'..=b'9' => self.number(),
            b'.' if self.peek(1).is_ascii_digit() => self.number(),
            byte if is_ident(byte) => self.ident(),
            b'<' => self.less(),
            b'-' | b'>' if (self.peek(0), self.peek(1)) == (b'-', b'>') || self.is_greater_equal() => {
                self.at += 2;
                Kind::Punct
            }
            b':' if self.peek(1) == b':' => {
                self.at += 2;
                Kind::Punct
            }
            _ => {
                self.at += 1;
                Kind::Punct
            }
        };
        Some(Token { kind, start, end: self.at })
    }

    fn is_greater_equal(&self) -> bool {
        (self.peek(0), self.peek(1)) == (b'>', b'=') && self.peek(2) != b'='
    }

    /// Blanks, comments and continued lines.
    fn skip_blanks(&mut self) {
        while self.at < self.bytes.len() {
            match (self.peek(0), self.peek(1)) {
                (b'\n', _) => {
                    self.at += 1;
                    self.line_is_empty = true;
                }
                (b'\\', _) if self.splice() > 0 => self.at += self.splice(),
                (b'/', b'/') => self.line_comment(),
                (b'/', b'*') => {
                    let rest = &self.bytes[self.at + 2..];
                    let length = rest.windows(2).position(|pair| pair == b"*/");
                    self.at += length.map_or(rest.len() + 2, |length| length + 4);
                }
                (byte, _) if byte.is_ascii_whitespace() || byte == 0x0b => self.at += 1,
                // A byte order mark.
                (0xef, 0xbb) if self.at == 0 => self.at += 3,
                _ => break,
            }
        }
    }

    /// The length of a backslash and the newline that it removes; blanks between are allowed, as compilers do.
    fn splice(&self) -> usize {
        let blanks =
            self.bytes[self.at + 1..].iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\r')).count();
        if self.peek(blanks + 1) == b'\n' { blanks + 2 } else { 0 }
    }

    /// A `//` comment; a backslash before the newline continues it.
    fn line_comment(&mut self) {
        while self.at < self.bytes.len() && self.peek(0) != b'\n' {
            self.at += match self.peek(0) {
                b'\\' => self.splice().max(1),
                _ => 1,
            };
        }
    }

    /// A string or character literal from its quote on; an unclosed one ends with its line.
    fn literal(&mut self, quote: u8) -> Kind {
        self.at += 1;
        while self.at < self.bytes.len() {
            match self.peek(0) {
                b'\\' => self.at += self.splice().max(2),
                b'\n' => break,
                byte => {
                    self.at += 1;
                    if byte == quote {
                        break;
                    }
                }
            }
        }
        self.at = self.at.min(self.bytes.len());
        Kind::Literal
    }

    /// `R"x(…)x"` from its quote on.
    fn raw_literal(&mut self) -> Kind {
        let rest = &self.bytes[self.at + 1..];
        let Some(open) = rest.iter().take(17).position(|&b| b == b'(') else { return self.literal(b'"') };
        let close = [b")", &rest[..open], b"\""].concat();
        let length = rest.windows(close.len()).position(|window| window == close);
        self.at += 1 + length.map_or(rest.len(), |length| length + close.len());
        Kind::Literal
    }

    fn number(&mut self) -> Kind {
        loop {
            match (self.peek(0), self.peek(1)) {
                (b'e' | b'E' | b'p' | b'P', b'+' | b'-') => self.at += 2,
                (b'\'', after) if is_ident(after) => self.at += 2,
                (byte, _) if is_ident(byte) || byte == b'.' => self.at += 1,
                _ => return Kind::Number,
            }
        }
    }

    /// An identifier, or the prefix of a literal with its literal.
    fn ident(&mut self) -> Kind {
        let start = self.at;
        while is_ident(self.peek(0)) && self.at < self.bytes.len() {
            self.at += 1;
        }
        match (&self.bytes[start..self.at], self.peek(0)) {
            (b"R" | b"LR" | b"u8R" | b"uR" | b"UR", b'"') => self.raw_literal(),
            (b"L" | b"u8" | b"u" | b"U", quote @ (b'"' | b'\'')) => self.literal(quote),
            _ => Kind::Ident,
        }
    }

    /// `<`, `<=`, `<<` or a launch; longer runs are conflict markers and come as one token.
    fn less(&mut self) -> Kind {
        let run = self.bytes[self.at..].iter().take_while(|&&b| b == b'<').count();
        self.at += run;
        if run == 1 && self.peek(0) == b'=' {
            self.at += 1;
        }
        if run == 3 { Kind::Launch } else { Kind::Punct }
    }
}

fn is_ident(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}
