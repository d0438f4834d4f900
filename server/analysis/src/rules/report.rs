//! Collects the findings of one function.

use stitch_findings::{Code, Finding, Span};
use tree_sitter::Node;

use super::walk::Walker;

/// The longest piece of source that a message quotes.
const LONGEST_QUOTE: usize = 60;

/// How much of a text is looked at to quote it.
const MOST_BYTES: usize = 400;

/// The findings of one function, as they come.
pub struct Report<'r, 't> {
    walker: &'r Walker<'t>,
    findings: Vec<Finding>,
}

impl<'r, 't> Report<'r, 't> {
    /// No findings yet.
    pub fn new(walker: &'r Walker<'t>) -> Self {
        Self { walker, findings: Vec::new() }
    }

    /// Adds a finding at `node`.
    pub fn add(&mut self, code: Code, node: Node, message: String, advice: &str) -> &mut Finding {
        let finding =
            Finding::new(code, span(node), message).advise(advice).about(self.walker.function.name.clone());
        self.findings.push(finding);
        let last = self.findings.len() - 1;
        &mut self.findings[last]
    }

    /// How many findings there are so far.
    pub fn count(&self) -> usize {
        self.findings.len()
    }

    /// The finding with this number, in the order in which they came.
    pub fn at(&mut self, number: usize) -> Option<&mut Finding> {
        self.findings.get_mut(number)
    }

    /// The findings in the order of the text, each place once a code.
    pub fn finish(mut self) -> Vec<Finding> {
        self.findings.sort_by_key(|finding| (finding.span, finding.code));
        self.findings.dedup_by(|second, first| second.code == first.code && second.span == first.span);
        self.findings
    }

    /// A node's text on one line, as a message quotes it.
    pub fn quote(&self, node: Node) -> String {
        quote(self.walker.text(node))
    }
}

/// A node's bytes.
pub fn span(node: Node) -> Span {
    Span::new(node.start_byte(), node.end_byte())
}

/// A text on one line, cut where it is long, between backticks.
pub fn quote(text: &str) -> String {
    let mut end = text.len().min(MOST_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let words: Vec<&str> = text[..end].split_whitespace().collect();
    let line = words.join(" ").replace('`', "'");
    if line.chars().count() <= LONGEST_QUOTE {
        return format!("`{line}`");
    }
    let cut: String = line.chars().take(LONGEST_QUOTE).collect();
    format!("`{cut}…`")
}
