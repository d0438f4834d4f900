//! Cuts a Python file into pieces: top-level statements, the members of classes, and the statements of long functions.
//!
//! Everything read from a piece depends on the piece's own text, so what is known of an unchanged piece is kept by its
//! text alone, and a key typed in one method of a long class costs that method. A bracket or quote left open while
//! typing is closed by the next line that can only be a statement, so half a call does not swallow the rest of the file. A
//! long string that has no end in the whole file ends with its first line.
//!
//! The splitter keeps its state: it can be stopped between any two lines and goes on from there.

use stitch_findings::Span;

use crate::CutOff;

/// Deeper classes are left inside the piece of their parent.
const CLASS_DEPTH: usize = 16;
/// Lines between two questions whether to go on.
const LINES_PER_QUESTION: u32 = 256;

/// So many long strings without an end are taken to end with their line; each costs reading the rest of the file again.
const PATIENCE: u8 = 4;

/// A function of at least this length, in bytes, is cut into its head and its statements.
const LONG: usize = 4 << 10;

/// A top-level statement, the head of a class or a long function, or a member of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// Whole lines, from the first one's indentation to the last one's text; comments and blanks around are left out.
    pub(super) span: Span,
    /// The piece that is the head of the class or function around.
    pub(super) outer: Option<usize>,
    /// Whether this is the head of a class or function whose members are the pieces that name it.
    pub(super) is_head: bool,
}

/// A string that is not closed yet.
#[derive(Clone, Copy, Debug)]
struct OpenString {
    quote: u8,
    triple: bool,
    /// Where it begins.
    start: usize,
}

#[derive(Debug)]
struct OpenClass {
    piece: usize,
    indent: usize,
    /// The indentation of its members, once the first was seen.
    body: Option<usize>,
}

/// The statements of a function.
#[derive(Debug, Default)]
struct Body {
    indent: Option<usize>,
    /// Only decorators of the last statement were seen.
    decorated: bool,
    /// Where the text before each statement ends, and where the statement's first line starts.
    statements: Vec<(usize, usize)>,
}

/// What the first word of a line says about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Head {
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

/// Cuts one text.
#[derive(Debug, Default)]
pub(super) struct Splitter {
    at: usize,
    depth: usize,
    string: Option<OpenString>,
    /// The last line ended with a backslash.
    joined: bool,
    classes: Vec<OpenClass>,
    /// The indentation of the piece that is being read.
    indent: usize,
    /// Only decorators of the piece that is being read were seen.
    decorated: bool,
    /// The function that is being read, if the piece is one.
    function: Option<Body>,
    pieces: Vec<Piece>,
    /// How many strings had no end.
    endless: u8,
}

impl Splitter {
    /// Goes on until the end of `source`, which must be the same text in every call.
    ///
    /// # Errors
    /// [`CutOff`] when `keep_going` said no.
    pub(super) fn run(&mut self, source: &str, keep_going: &dyn Fn() -> bool) -> Result<(), CutOff> {
        let mut lines = 0;
        while self.at < source.len() {
            self.line(source.as_bytes());
            lines += 1;
            if lines % LINES_PER_QUESTION == 0 && !keep_going() {
                return Err(CutOff);
            }
        }
        self.close();
        Ok(())
    }

    /// The pieces in the order of the text.
    pub(super) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Reads one line.
    fn line(&mut self, source: &[u8]) {
        let start = self.at;
        if self.string.is_none() {
            let (indent, text) = indentation(source, start);
            let blank = matches!(source.get(text), None | Some(b'\n' | b'\r' | b'#'));
            if !blank {
                self.begin(source, start, text, indent);
            }
        }
        self.joined = false;
        let end = self.scan(source);
        if let (Some(piece), true) = (self.pieces.last_mut(), end > start) {
            piece.span.end = piece.span.end.max(end);
        }
        if self.at >= source.len() {
            self.rescue(source);
        }
    }

    /// At the end of the text, goes back behind the first line of a string that is still open. Nothing but the end of the last
    /// piece changed since: inside a string no line is looked at.
    fn rescue(&mut self, source: &[u8]) {
        let Some(string) = self.string.filter(|string| string.triple && self.endless < PATIENCE) else {
            return;
        };
        self.endless += 1;
        self.string = None;
        let rest = &source[string.start..];
        let end = memchr::memchr2(b'\n', b'\r', rest).map_or(source.len(), |length| string.start + length);
        self.at = end + line_end(source, end);
        if let Some(piece) = self.pieces.last_mut() {
            piece.span.end = string.start + source[string.start..end].trim_ascii_end().len();
        }
    }

    /// Decides what the line at `start` is, whose text begins at `text`.
    fn begin(&mut self, source: &[u8], start: usize, text: usize, indent: usize) {
        let head = head(&source[text..]);
        if self.depth > 0 && matches!(head, Head::Class | Head::Function | Head::Statement) {
            self.depth = 0;
        } else if self.depth > 0 || self.joined {
            return;
        }
        let goes_on = !self.pieces.is_empty()
            && (indent > self.indent || indent == self.indent && (self.decorated || head == Head::Continues));
        if goes_on && !self.opens_body(indent) {
            if indent == self.indent && self.decorated {
                self.decorated = head == Head::Decorator;
                self.open(head, indent);
            } else {
                self.statement(head, start, indent);
            }
            return;
        }
        self.close();
        while self.classes.last().is_some_and(|class| indent <= class.indent) {
            self.classes.pop();
        }
        if let Some(class) = self.classes.last_mut() {
            class.body.get_or_insert(indent);
        }
        let outer = self.classes.last().map(|class| class.piece);
        self.pieces.push(Piece { span: Span::new(start, start), outer, is_head: false });
        self.indent = indent;
        self.decorated = head == Head::Decorator;
        self.open(head, indent);
    }

    /// Notes a line of a function as one of its statements, if it is the first line of one.
    fn statement(&mut self, head: Head, start: usize, indent: usize) {
        let (Some(body), Some(piece)) = (&mut self.function, self.pieces.last()) else { return };
        if *body.indent.get_or_insert(indent) != indent {
            return;
        }
        if !body.decorated && head != Head::Continues {
            body.statements.push((piece.span.end, start));
        }
        body.decorated = head == Head::Decorator;
    }

    /// Ends the last piece; a long function becomes a head and its statements.
    fn close(&mut self) {
        let index = self.pieces.len().saturating_sub(1);
        let (Some(body), Some(piece)) = (self.function.take(), self.pieces.last_mut()) else { return };
        let end = piece.span.end;
        if piece.span.len() < LONG || body.statements.len() < 2 {
            return;
        }
        piece.span.end = body.statements[0].0;
        piece.is_head = true;
        let ends = body.statements[1..].iter().map(|(before, _)| *before).chain([end]);
        let members = body.statements.iter().zip(ends).map(|((_, start), end)| Span::new(*start, end));
        self.pieces.extend(members.map(|span| Piece { span, outer: Some(index), is_head: false }));
    }

    /// Whether a line with this indentation is the first of the class whose head was just read.
    fn opens_body(&self, indent: usize) -> bool {
        self.classes.last().is_some_and(|class| class.body.is_none() && indent > class.indent)
    }

    fn open(&mut self, head: Head, indent: usize) {
        if head == Head::Function {
            self.function = Some(Body::default());
        }
        if head == Head::Class && self.classes.len() < CLASS_DEPTH {
            let piece = self.pieces.len() - 1;
            self.pieces[piece].is_head = true;
            self.classes.push(OpenClass { piece, indent, body: None });
        }
    }

    /// Moves over the rest of the line and its end, and returns where its code ends: before a comment and the blanks
    /// at the end.
    fn scan(&mut self, source: &[u8]) -> usize {
        let mut end = self.at;
        while let Some(&byte) = source.get(self.at) {
            if self.string.is_none() && PLAIN[usize::from(byte)] {
                self.at += 1;
                end = self.at;
                continue;
            }
            if byte == b'\n' || byte == b'\r' {
                if self.string.is_some_and(|string| !string.triple) {
                    self.string = None;
                }
                self.at += line_end(source, self.at);
                break;
            }
            if let Some(string) = self.string {
                self.in_string(source, string);
                end = self.at;
                continue;
            }
            match byte {
                b'#' => {
                    self.at = memchr::memchr2(b'\n', b'\r', &source[self.at..])
                        .map_or(source.len(), |length| self.at + length);
                    continue;
                }
                b'\\' if line_end(source, self.at + 1) > 0 => {
                    self.joined = true;
                    self.at += 1 + line_end(source, self.at + 1);
                    return self.at;
                }
                b'"' | b'\'' => {
                    let triple = source[self.at..].starts_with(&[byte; 3]);
                    self.string = Some(OpenString { quote: byte, triple, start: self.at });
                    self.at += if triple { 2 } else { 0 };
                }
                b'(' | b'[' | b'{' => self.depth += 1,
                b')' | b']' | b'}' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
            if !byte.is_ascii_whitespace() {
                end = self.at;
            }
        }
        end
    }

    /// Moves over a stretch of an open string, or over what closes it.
    fn in_string(&mut self, source: &[u8], string: OpenString) {
        let rest = &source[self.at..];
        let plain = memchr::memchr3(b'\\', b'\n', string.quote, rest).unwrap_or(rest.len());
        let plain = memchr::memchr(b'\r', &rest[..plain]).unwrap_or(plain);
        if plain > 0 {
            self.at += plain;
            return;
        }
        let byte = source[self.at];
        if byte == b'\\' {
            // Also in a raw string a backslash keeps the quote behind it from closing.
            self.at += 1;
            let newline = line_end(source, self.at);
            self.at = (self.at + newline.max(1)).min(source.len());
        } else if byte == string.quote && (!string.triple || source[self.at..].starts_with(&[byte; 3])) {
            self.at += if string.triple { 3 } else { 1 };
            self.string = None;
        } else {
            self.at += 1;
        }
    }
}

/// The bytes that are neither blank nor tell anything about lines, strings and brackets.
const PLAIN: [bool; 256] = {
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
fn line_end(source: &[u8], at: usize) -> usize {
    match (source.get(at), source.get(at + 1)) {
        (Some(b'\r'), Some(b'\n')) => 2,
        (Some(b'\r' | b'\n'), _) => 1,
        _ => 0,
    }
}

/// The column of the first character of a line, and where that character is. A tab goes to the next multiple of eight
/// and a form feed starts over, as in CPython.
fn indentation(source: &[u8], start: usize) -> (usize, usize) {
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

/// Reads the first word of `line`.
fn head(line: &[u8]) -> Head {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pieces(source: &str) -> Vec<Piece> {
        let mut splitter = Splitter::default();
        splitter.run(source, &|| true).unwrap();
        splitter.pieces().to_vec()
    }

    /// Each piece's text, with `>` for each class around it and `class:` for a head.
    fn shown(source: &str) -> Vec<String> {
        let pieces = pieces(source);
        pieces
            .iter()
            .map(|piece| {
                let mut depth = 0;
                let mut class = piece.outer;
                while let Some(index) = class {
                    depth += 1;
                    class = pieces[index].outer;
                }
                let mark = if piece.is_head { "class: " } else { "" };
                format!("{}{mark}{}", ">".repeat(depth), source[piece.span.range()].trim_start())
            })
            .collect()
    }

    #[test]
    fn statements_classes_and_members_are_pieces() {
        let source = "import a # why\n\n# about f\n@deco\n@deco(1,\n  2)\ndef f(a,\n      b):\n  x = '''\nclass no:\n'''\n\n  return x\n\
            if a:\n  b\nelif c:\n  d\nelse:\n  e\n@d\nclass C(\n  B):\n    '''doc'''\n    a = 1\n    @p\n    def m(self):\n        pass\n\n    # end\n\
            \n    class D:\n        b = 2\n        c = 3\n    e = 4\nx = 1; y = \\\n  2\n";
        assert_eq!(
            shown(source),
            [
                "import a",
                "@deco\n@deco(1,\n  2)\ndef f(a,\n      b):\n  x = '''\nclass no:\n'''\n\n  return x",
                "if a:\n  b\nelif c:\n  d\nelse:\n  e",
                "class: @d\nclass C(\n  B):",
                ">'''doc'''",
                ">a = 1",
                ">@p\n    def m(self):\n        pass",
                ">class: class D:",
                ">>b = 2",
                ">>c = 3",
                ">e = 4",
                "x = 1; y = \\\n  2",
            ]
        );
    }

    #[test]
    fn what_is_left_open_does_not_swallow_the_next_statement() {
        assert_eq!(shown("x = f(a,\ndef g():\n  pass\n"), ["x = f(a,", "def g():\n  pass"]);
        assert_eq!(
            shown("x = {\nclass A:\n  y = [\n  def h(self): pass\n"),
            ["x = {", "class: class A:", ">y = [", ">def h(self): pass"]
        );
        assert_eq!(shown("x = 'open\ny = 1\n"), ["x = 'open", "y = 1"]);
        assert_eq!(
            shown("x = 1\n'''a\nb\nclass C:\n  def f(self): pass\n  s = \"\"\"not\n\"\"\"\n"),
            ["x = 1", "'''a", "b", "class: class C:", ">def f(self): pass", ">s = \"\"\"not\n\"\"\""],
            "a string without an end ends with its line"
        );
        assert_eq!(shown("f('''  \nimport a\n"), ["f('''", "import a"]);
        assert_eq!(shown("x\ny = \"\"\""), ["x", "y = \"\"\""]);
        assert_eq!(shown("x = (1,\n  returned,\nimports)\ny"), ["x = (1,\n  returned,\nimports)", "y"]);
        assert_eq!(shown("x = r'\\'\ny'\nz"), ["x = r'\\'", "y'", "z"]);
    }

    #[test]
    fn a_long_function_is_cut_into_its_statements() {
        let long = format!("x = '{}'", "y".repeat(LONG));
        let source = format!(
            "@d\nasync def f(a,\n  b): # c\n  '''doc'''\n  # d\n  {long}\n  if a:\n    b\n  else:\n    c\n  @e\n  def g():\n    pass\n  return (1,\n  2)\ny\n"
        );
        assert_eq!(
            shown(&source),
            [
                "class: @d\nasync def f(a,\n  b):",
                ">'''doc'''",
                &format!(">{long}"),
                ">if a:\n    b\n  else:\n    c",
                ">@e\n  def g():\n    pass",
                ">return (1,\n  2)",
                "y"
            ]
        );
    }

    #[test]
    fn line_ends_tabs_form_feeds_and_marks_are_read_as_python_does() {
        assert_eq!(
            shown("\u{feff}class A:\r\n\tx = 1\r\n        y = 2\rz = 3"),
            [
                "\u{feff}class: class A:".replacen("\u{feff}class: ", "class: \u{feff}", 1).as_str(),
                ">x = 1",
                ">y = 2",
                "z = 3"
            ]
        );
        assert_eq!(shown("def f():\n    a\n\x0cdef g():\n    b\n"), ["def f():\n    a", "def g():\n    b"]);
        assert_eq!(shown("  x\n y\nz"), ["x", "y", "z"]);
        assert_eq!(shown("\0\n#\n\\"), ["\0", "\\"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn stopping_between_lines_changes_nothing_and_pieces_never_overlap(
            parts in prop::collection::vec(prop_oneof![
                "[a-z ]{0,6}", Just("\n".into()), Just("\r\n".into()), Just("class A:\n  ".into()), Just("@d\n".into()),
                Just("def f(self):\n    ".into()), Just("'''".into()), Just("\"".into()), Just("\\".into()),
                Just("(".into()), Just(")".into()), Just("# c".into()), Just("é😀".into()), Just("\t".into()),
                Just("else:".into()),
            ], 0..60)
        ) {
            let source: String = parts.concat();
            let whole = pieces(&source);
            let mut splitter = Splitter::default();
            while splitter.at < source.len() {
                splitter.line(source.as_bytes());
            }
            splitter.close();
            prop_assert_eq!(splitter.pieces(), &whole[..]);
            let mut last = 0;
            for piece in &whole {
                prop_assert!(piece.span.start >= last && !piece.span.is_empty(), "{:?}", piece);
                prop_assert!(source.is_char_boundary(piece.span.start) && source.is_char_boundary(piece.span.end));
                prop_assert!(piece.outer.is_none_or(|outer| whole[outer].is_head));
                last = piece.span.end;
            }
        }
    }
}
