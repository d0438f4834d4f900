//! The fall-back scanner: kernels that the tree does not show, found on tokens.
//!
//! Every `__global__`, and every macro that stands for it, belongs to a kernel. Where no function of the tree begins
//! with it (in a macro's body, in text that no grammar can read), its name, parameters and body are read here.

use stitch_findings::Span;

use super::arguments::{group_end, split_tokens, template_start};
use super::functions::launch_bounds;
use super::lexer::{Kind, Token};
use super::mask::Mark;
use super::tidy::tidy;
use crate::outline::{Function, FunctionKind, Parameter};

/// A text cut into tokens.
pub struct Scan<'t> {
    /// Of the masked text.
    pub tokens: &'t [Token],
    /// The masked text.
    pub masked: &'t str,
    /// The original.
    pub source: &'t str,
    /// The attributes in it.
    pub marks: &'t [Mark],
}

/// The kernels whose attribute no function in `known` begins with.
pub fn missed(scan: &Scan, known: &[&Function]) -> Vec<Function> {
    let mut found: Vec<Function> = Vec::new();
    for mark in scan.marks.iter().filter(|mark| mark.runs.kernel && !mark.dropped) {
        let has = |f: &Function| {
            f.kind == FunctionKind::Kernel
                && f.span.start <= mark.span.start
                && mark.span.start < f.name_span.start
        };
        if known.iter().any(|f| has(f)) || found.iter().any(has) {
            continue;
        }
        found.extend(scan.kernel(*mark));
    }
    found
}

impl Scan<'_> {
    fn is(&self, index: usize, byte: u8) -> bool {
        self.tokens.get(index).is_some_and(|t| t.is(byte))
    }

    fn word(&self, index: usize) -> &[u8] {
        match self.tokens.get(index) {
            Some(token) if token.kind == Kind::Word => token.text(self.masked.as_bytes()),
            _ => b"",
        }
    }

    /// The kernel that the attribute `mark` belongs to.
    fn kernel(&self, mark: Mark) -> Option<Function> {
        let first = self.tokens.partition_point(|t| t.start < mark.span.start);
        let open = self.parameters_open(first)?;
        let close = group_end(self.tokens, open)?;
        let name = self.name_before(open)?;
        let name_span = Span::new(self.tokens[self.pasted_start(name)].start, self.tokens[name].end);
        let start_index = self.head_start(first);
        let instantiates = self.word(start_index) == b"template" && !self.is(start_index + 1, b'<');
        let body = self.body_after(close);
        if instantiates || (body.is_none() && !self.is(close + 1, b';')) {
            return None;
        }
        let end = body.map_or_else(|| self.tokens[close + 1].end, |b| b.end);
        let name = tidy(self.source.get(name_span.range())?);
        let start = self.tokens.get(start_index).map_or(mark.span.start, |t| t.start.min(mark.span.start));
        let span = Span::new(start, end);
        let head = Span::new(start, self.tokens[close].end);
        let bounds = self.marks.iter().filter(|m| head.contains(m.span)).find_map(|m| m.bounds);
        Some(Function {
            qualified_name: name.clone(),
            name,
            kind: FunctionKind::Kernel,
            is_definition: body.is_some(),
            template_parameters: Vec::new(),
            parameters: self.parameters(open, close),
            launch_bounds: bounds.and_then(|b| launch_bounds(self.source, b)),
            span,
            name_span,
            body,
            unit: None,
        })
    }

    /// The index of the parenthesis that opens the parameters: the first that follows a name.
    fn parameters_open(&self, first: usize) -> Option<usize> {
        let mut index = first;
        while let Some(token) = self.tokens.get(index) {
            match token.kind {
                Kind::Byte(b'(') if index > first => {
                    let named = !self.word(index - 1).is_empty() || self.is(index - 1, b'>');
                    if named && !matches!(self.word(index - 1), b"decltype" | b"alignas" | b"noexcept") {
                        return Some(index);
                    }
                    index = group_end(self.tokens, index)?;
                }
                Kind::Byte(b'{' | b'}' | b';' | b'=') => return None,
                _ => {}
            }
            index += 1;
        }
        None
    }

    /// The index of the name before the parameters opened at `open`.
    fn name_before(&self, open: usize) -> Option<usize> {
        let mut index = open.checked_sub(1)?;
        if self.is(index, b'>') {
            index = template_start(self.tokens, index)?.checked_sub(1)?;
        }
        let word = self.word(index);
        (!word.is_empty() && !matches!(word, b"void" | b"__global__")).then_some(index)
    }

    /// The index where a name begins that a macro pastes together: `convert##Layout##Kernel`.
    fn pasted_start(&self, index: usize) -> usize {
        let mut first = index;
        while first >= 3
            && self.is(first - 1, b'#')
            && self.is(first - 2, b'#')
            && !self.word(first - 3).is_empty()
        {
            first -= 3;
        }
        first
    }

    /// The index where a head begins whose attribute is at `first`: its template and its specifiers.
    fn head_start(&self, first: usize) -> usize {
        let mut start = first;
        while start > 0 {
            let before = start - 1;
            if matches!(
                self.word(before),
                b"static" | b"inline" | b"extern" | b"void" | b"constexpr" | b"template"
            ) {
                start = before;
            } else if self.is(before, b'>')
                && let Some(open) = template_start(self.tokens, before)
                && open > 0
                && self.word(open - 1) == b"template"
            {
                start = open - 1;
            } else {
                break;
            }
        }
        start
    }

    /// The body behind the parameters that close at `close`.
    fn body_after(&self, close: usize) -> Option<Span> {
        let mut index = close + 1;
        // `noexcept`, a trailing attribute.
        while !self.word(index).is_empty() {
            index += 1;
            if self.is(index, b'(') {
                index = group_end(self.tokens, index)? + 1;
            }
        }
        let open = self.tokens.get(index).filter(|t| t.is(b'{'))?;
        let end = group_end(self.tokens, index).map_or(self.source.len(), |i| self.tokens[i].end);
        Some(Span::new(open.start, end))
    }

    fn parameters(&self, open: usize, close: usize) -> Vec<Parameter> {
        split_tokens(&self.tokens[open + 1..close])
            .into_iter()
            .filter_map(|span| self.parameter(span))
            .collect()
    }

    fn parameter(&self, span: Span) -> Option<Parameter> {
        let tokens: Vec<&Token> =
            self.tokens.iter().filter(|t| span.start <= t.start && t.end <= span.end).collect();
        let declared = tokens.iter().position(|t| t.is(b'=')).unwrap_or(tokens.len());
        let end = tokens[..declared].last()?.end;
        let text = |from, to| self.source.get(from..to).unwrap_or_default();
        let name = tokens[..declared].iter().rposition(|t| t.kind == Kind::Word).filter(|i| *i > 0);
        let parameter = match name {
            Some(index) => {
                let name = tokens[index];
                let ty = tidy(&format!("{} {}", text(span.start, name.start), text(name.end, end)));
                Parameter { name: text(name.start, name.end).to_owned(), ty, span }
            }
            None => Parameter { name: String::new(), ty: tidy(text(span.start, end)), span },
        };
        (parameter.ty != "void" || !parameter.name.is_empty()).then_some(parameter)
    }
}
