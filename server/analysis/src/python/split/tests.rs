//! Pieces of whole texts, of texts that are being typed, and of any text.

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
