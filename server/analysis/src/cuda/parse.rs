//! Parses the text of one item with the CUDA grammar; can be cut off, and goes on where it stopped.

use std::ops::ControlFlow;

use tree_sitter::{ParseOptions, Parser, Tree};

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
}

impl ItemParser {
    /// A parser for CUDA.
    pub fn new() -> Self {
        let mut parser = Parser::new();
        // Fails only if grammar and library do not fit, which the first test would show.
        let fits = parser.set_language(&tree_sitter_cuda::LANGUAGE.into()).is_ok();
        debug_assert!(fits, "the CUDA grammar does not fit the tree-sitter library");
        Self { parser, unfinished: None }
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
        let tree = if bytes.len() <= SHORT { self.run(bytes, &|| true) } else { self.run(bytes, keep_going) };
        match tree {
            Some(tree) if resumed && tree.root_node().has_error() && bytes.len() <= MEDIUM => {
                self.run(bytes, &|| true)
            }
            Some(tree) => Some(tree),
            None => {
                self.unfinished = Some(hash);
                None
            }
        }
    }

    fn run(&mut self, bytes: &[u8], keep_going: KeepGoing) -> Option<Tree> {
        // A directive in the last line needs a line end.
        let mut read = |offset: usize, _| match offset.cmp(&bytes.len()) {
            std::cmp::Ordering::Less => &bytes[offset..],
            std::cmp::Ordering::Equal => b"\n".as_slice(),
            std::cmp::Ordering::Greater => b"",
        };
        let mut progress =
            |_: &_| if keep_going() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
        let options = ParseOptions::new().progress_callback(&mut progress);
        self.parser.parse_with_options(&mut read, None, Some(options))
    }
}
