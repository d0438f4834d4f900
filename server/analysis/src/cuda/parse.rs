//! Parses the text of one item with the CUDA grammar; can be cut off, and goes on where it stopped.
//!
//! A long item is parsed from the tree of the one that was parsed last, since that is mostly the same item before the last key.
//! How the grammar recovers from an error depends on what was there before, so this holds only for texts without errors:
//! at the first one it is given up, and the item parsed afresh.

use std::ops::ControlFlow;

use tree_sitter::{ParseOptions, ParseState, Parser, Tree};

use crate::reparse::edited;

/// Items from this many bytes on are parsed from the last tree.
const LONG: usize = 4 << 10;

/// Items up to this many bytes (two milliseconds) are parsed in one go.
const SHORT: usize = 16 << 10;

/// Items up to this many bytes (thirty milliseconds) are parsed again in one go, if they were cut off and have errors:
/// how the grammar recovers from an error depends on where it was cut off, and a result must depend on the text alone.
const MEDIUM: usize = 256 << 10;

/// Asked often while something takes long; `false` cuts it off.
pub type KeepGoing<'k> = &'k dyn Fn() -> bool;

/// A parser, with the parse it was cut off in.
pub struct ItemParser {
    parser: Parser,
    /// The text of the parse that was cut off, as a hash.
    unfinished: Option<u64>,
    /// The last long item without errors.
    last: Option<(Box<[u8]>, Tree)>,
}

impl ItemParser {
    /// A parser for CUDA.
    pub fn new() -> Self {
        let mut parser = Parser::new();
        // Fails only if grammar and library do not fit, which the first test would show.
        let fits = parser.set_language(&tree_sitter_cuda::LANGUAGE.into()).is_ok();
        debug_assert!(fits, "the CUDA grammar does not fit the tree-sitter library");
        Self { parser, unfinished: None, last: None }
    }

    /// Parses `text`. `None` when `keep_going` said no; the same text again then goes on.
    pub fn parse(&mut self, text: &str, keep_going: KeepGoing) -> Option<Tree> {
        let bytes = text.as_bytes();
        let hash = xxhash_rust::xxh3::xxh3_64(bytes);
        let unfinished = self.unfinished.take();
        let resumed = unfinished == Some(hash);
        if unfinished.is_some() && !resumed {
            self.parser.reset();
        }
        if !resumed && let Some(tree) = self.run_from_last(bytes, keep_going) {
            self.remember(bytes, &tree);
            return Some(tree);
        }
        let tree = if bytes.len() <= SHORT { self.run(bytes, &|| true) } else { self.run(bytes, keep_going) };
        let tree = match tree {
            Some(tree) if resumed && tree.root_node().has_error() && bytes.len() <= MEDIUM => {
                self.run(bytes, &|| true)
            }
            Some(tree) => Some(tree),
            None => {
                self.unfinished = Some(hash);
                None
            }
        }?;
        self.remember(bytes, &tree);
        Some(tree)
    }

    /// Keeps the tree of a long text without errors.
    fn remember(&mut self, bytes: &[u8], tree: &Tree) {
        if bytes.len() >= LONG && !tree.root_node().has_error() {
            self.last = Some((bytes.into(), tree.clone()));
        }
    }

    /// Parses from the last tree, if that of a text that is much the same. `None` where there is an error, or when it was cut off.
    fn run_from_last(&mut self, bytes: &[u8], keep_going: KeepGoing) -> Option<Tree> {
        let (old, tree) = self.last.as_ref().filter(|_| bytes.len() >= LONG)?;
        let base = edited(old, tree, bytes)?;
        let goes_on = |state: &ParseState| !state.has_error() && (bytes.len() <= SHORT || keep_going());
        let tree = self.go(bytes, Some(&base), &goes_on);
        if tree.is_none() {
            self.parser.reset();
        }
        tree.filter(|tree| !tree.root_node().has_error())
    }

    fn run(&mut self, bytes: &[u8], keep_going: KeepGoing) -> Option<Tree> {
        self.go(bytes, None, &|_| keep_going())
    }

    fn go(
        &mut self,
        bytes: &[u8],
        base: Option<&Tree>,
        goes_on: &dyn Fn(&ParseState) -> bool,
    ) -> Option<Tree> {
        // A directive in the last line needs a line end.
        let mut read = |offset: usize, _| match offset.cmp(&bytes.len()) {
            std::cmp::Ordering::Less => &bytes[offset..],
            std::cmp::Ordering::Equal => b"\n".as_slice(),
            std::cmp::Ordering::Greater => b"",
        };
        let mut progress = |state: &ParseState| {
            if goes_on(state) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let options = ParseOptions::new().progress_callback(&mut progress);
        self.parser.parse_with_options(&mut read, base, Some(options))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A kernel of some seven kilobytes with what kernels are made of.
    fn kernel() -> String {
        let body = "  __shared__ float tile[32][33];\n  for (int i = threadIdx.x; i < n; i += blockDim.x) {\n    float v = a[i] * 2.f + (float)(i % 7);\n    \
            tile[threadIdx.y][i & 31] = v < 0 ? -v : __shfl_xor_sync(~0u, v, 1); // why\n    auto f = [&](int k) { return k << 2; };\n    \
            if (v > f(i) && i != 3) { b[i] = reinterpret_cast<float4*>(a)[i].x; } else a[i] -= T(1) / v;\n    h<int, 4>(a < b, c > (d));\n  }\n  \
            #pragma unroll\n  while (--n) { switch (n) { case 1: x * y; break; default: x = (y)(z); } }\n  sizeof(int[4]); new (p) S{1, 2}; k<<<1, 2>>>(a);\n";
        format!(
            "template <class T>\n__global__ void k(T* a, float* __restrict__ b, int n) {{\n{}}}\n",
            body.repeat(9)
        )
    }

    const PIECES: &[&str] = &[
        "x",
        "1",
        ";",
        " ",
        "\n",
        "(",
        ")",
        "{",
        "}",
        "<",
        ">",
        "<int>",
        "*",
        "&",
        "/* c */",
        "//",
        "\"",
        "é",
        "a[i] = 2;\n",
        "float y = x * z;\n",
        "if (x) ",
        "else ",
        "for (;;) ",
        "return ",
        "T(x);",
        "x < y > z;",
        "a * b;",
        "(a)(b);",
        "auto l = [=](T t) { return t; };",
        "#if A\n",
        "\n#endif\n",
        "template <int N> ",
        "static_cast<T>(x)",
        ",",
        "::",
        "R\"(",
        ")\"",
        "struct S { int s; };",
        "case 2: ",
        "__syncthreads();",
    ];

    type Edit = (prop::sample::Index, usize, Vec<usize>, bool);

    fn apply(text: &mut String, (place, removed, inserted, _): &Edit) {
        let mut start = place.index(text.len());
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        let mut end = (start + removed).min(text.len());
        while !text.is_char_boundary(end) {
            end += 1;
        }
        text.replace_range(start..end, &inserted.iter().map(|piece| PIECES[*piece]).collect::<String>());
    }

    /// A node: its kind, its field, its bytes, the row where it starts and the column where it ends.
    type Shape<'t> = (u16, Option<&'t str>, std::ops::Range<usize>, (usize, usize));

    fn nodes(tree: &Tree) -> Vec<Shape<'_>> {
        let mut found = Vec::new();
        let mut cursor = tree.walk();
        loop {
            let node = cursor.node();
            let place = (node.start_position().row, node.end_position().column);
            found.push((node.kind_id(), cursor.field_name(), node.byte_range(), place));
            if cursor.goto_first_child() {
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return found;
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn a_long_item_has_the_tree_of_a_fresh_parse(
            edits in prop::collection::vec(
                (any::<prop::sample::Index>(), 0..6usize, prop::collection::vec(0..PIECES.len(), 0..3), any::<bool>()), 1..12
            )
        ) {
            let whole = kernel();
            let mut text = whole.clone();
            let mut parser = ItemParser::new();
            parser.parse(&text, &|| true).unwrap();
            let mut fresh = ItemParser::new();
            for edit in &edits {
                // Most edits of what has an error leave it with one; so many start from what has none.
                if edit.3 {
                    text.clone_from(&whole);
                }
                apply(&mut text, edit);
                let tree = parser.parse(&text, &|| true).unwrap();
                fresh.last = None;
                let expected = fresh.parse(&text, &|| true).unwrap();
                prop_assert_eq!(nodes(&tree), nodes(&expected));
            }
        }
    }

    #[test]
    fn the_last_tree_is_used_and_kept_over_an_error() {
        let text = kernel();
        let mut parser = ItemParser::new();
        assert!(!parser.parse(&text, &|| true).unwrap().root_node().has_error());
        let mut from_last = |text: &str| parser.run_from_last(text.as_bytes(), &|| true).is_some();
        assert!(from_last(&text.replacen("why", "who", 1)));
        assert!(!from_last(&text.replacen("{", "{ (", 1)));
        assert!(from_last(&text.replacen("why", "where", 1)));
    }
}
