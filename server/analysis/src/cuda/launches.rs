//! Kernel launches, found on tokens: `k<<<grid, block, shared, stream>>>(…)` and the runtime's launch functions.
//!
//! `<<<` means nothing else in C++, so no tree is needed, and launches are found in macros' bodies and in text that no
//! grammar can read.

use smallvec::SmallVec;
use stitch_findings::Span;

use super::arguments::{group_end, split_tokens, template_end, template_start};
use super::functions::expression;
use super::lexer::{Kind, Token};
use super::tidy::tidy;
use crate::outline::{Expression, Launch};

/// Whether a text can hold a launch at all; asked before it is cut into tokens.
pub fn may_launch(text: &str) -> bool {
    let bytes = text.as_bytes();
    memchr::memmem::find(bytes, b"<<<").is_some() || memchr::memmem::find(bytes, b"cudaLaunch").is_some()
}

/// A configuration longer than this, in tokens, lacks its `>>>`.
const LONGEST: usize = 600;

/// The launches among `tokens` of a text; `source` is its original, from which expressions are taken.
pub fn launches(tokens: &[Token], masked: &str, source: &str) -> Vec<Launch> {
    let reader = Reader { tokens, bytes: masked.as_bytes(), source };
    let mut found = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let launch = match token.kind {
            Kind::Byte(b'<') if reader.is_triple(index, b'<') => reader.chevrons(index),
            Kind::Word => match reader.word(index) {
                b"cudaLaunchKernel" | b"cudaLaunchCooperativeKernel" => reader.launch_kernel(index),
                b"cudaLaunchKernelEx" | b"cudaLaunchKernelExC" => reader.launch_kernel_ex(index),
                _ => None,
            },
            _ => None,
        };
        found.extend(launch);
    }
    found
}

/// A kernel as it is named where it is launched.
struct Named {
    name: String,
    name_span: Span,
    template_arguments: Vec<String>,
    start: usize,
}

struct Reader<'t> {
    tokens: &'t [Token],
    bytes: &'t [u8],
    source: &'t str,
}

impl<'t> Reader<'t> {
    fn word(&self, index: usize) -> &'t [u8] {
        match self.tokens.get(index) {
            Some(token) if token.kind == Kind::Word => token.text(self.bytes),
            _ => b"",
        }
    }

    fn text(&self, span: Span) -> String {
        tidy(self.source.get(span.range()).unwrap_or_default())
    }

    fn is(&self, index: usize, byte: u8) -> bool {
        self.tokens.get(index).is_some_and(|t| t.is(byte))
    }

    fn is_triple(&self, index: usize, byte: u8) -> bool {
        let adjacent =
            |i: usize| self.tokens.get(i).zip(self.tokens.get(i + 1)).is_some_and(|(a, b)| a.end == b.start);
        (0..3).all(|i| self.is(index + i, byte))
            && adjacent(index)
            && adjacent(index + 1)
            && !(index > 0 && self.is(index - 1, byte) && adjacent(index - 1))
    }

    /// The index of the `>>>` that closes the configuration which begins at `first`.
    fn configuration_end(&self, first: usize) -> Option<usize> {
        let mut depth = 0u32;
        let mut index = first;
        while index < self.tokens.len().min(first + LONGEST) {
            match self.tokens[index].kind {
                Kind::Byte(b'(' | b'[' | b'{') => depth += 1,
                Kind::Byte(b')' | b']' | b'}') => depth = depth.checked_sub(1)?,
                Kind::Byte(b';') if depth == 0 => return None,
                // The next launch.
                Kind::Byte(b'<') if self.is_triple(index, b'<') => return None,
                Kind::Byte(b'<') => index = template_end(self.tokens, index).unwrap_or(index),
                Kind::Byte(b'>') if depth == 0 && self.is_triple(index, b'>') => return Some(index),
                _ => {}
            }
            index += 1;
        }
        None
    }

    fn chevrons(&self, open: usize) -> Option<Launch> {
        let kernel = self.kernel_before(open)?;
        let close = self.configuration_end(open + 3)?;
        let parts = split_tokens(&self.tokens[open + 3..close]);
        let arguments_open = close + 3;
        let arguments_close =
            self.is(arguments_open, b'(').then(|| group_end(self.tokens, arguments_open)).flatten();
        let arguments = match arguments_close {
            Some(end) => split_tokens(&self.tokens[arguments_open + 1..end]),
            None => SmallVec::new(),
        };
        let last = arguments_close.unwrap_or(close + 2);
        let end = self.tokens[last].end;
        Some(self.launch(kernel, &parts, &arguments, end))
    }

    fn launch(&self, kernel: Named, configuration: &[Span], arguments: &[Span], end: usize) -> Launch {
        let part = |index: usize| -> Option<Expression> {
            configuration.get(index).map(|span| expression(self.source, *span)).filter(|e| !e.text.is_empty())
        };
        Launch {
            kernel: kernel.name,
            template_arguments: kernel.template_arguments,
            argument_facts: Vec::new(),
            grid: part(0),
            block: part(1),
            shared: part(2),
            stream: part(3),
            arguments: arguments.iter().map(|span| self.text(*span)).collect(),
            span: Span::new(kernel.start, end),
            name_span: kernel.name_span,
            caller: None,
            unit: None,
        }
    }

    /// The kernel named before the token at `end`.
    fn kernel_before(&self, end: usize) -> Option<Named> {
        let mut index = end.checked_sub(1)?;
        let mut template_arguments = Vec::new();
        if self.is(index, b'>') {
            let open = template_start(self.tokens, index)?;
            let inside = split_tokens(&self.tokens[open + 1..index]);
            template_arguments = inside.iter().map(|span| self.text(*span)).collect();
            index = open.checked_sub(1)?;
        }
        // `kernels[i]<<<…>>>`, `(*kernel)<<<…>>>`, `get_kernel()<<<…>>>`
        let mut start_index = index;
        while self.is(index, b']') || self.is(index, b')') {
            let open = self.group_start(index)?;
            start_index = open;
            if self.word(open.wrapping_sub(1)).is_empty() {
                index = (open..index).rev().find(|i| !self.word(*i).is_empty())?;
                break;
            }
            index = open - 1;
        }
        let name = self.tokens.get(index).filter(|t| t.kind == Kind::Word)?;
        let start = self.path_start(index.min(start_index));
        Some(Named {
            name: self.text(Span::new(self.pasted_start(index), name.end)),
            name_span: Span::new(self.pasted_start(index), name.end),
            template_arguments,
            start: self.tokens[start].start.min(self.pasted_start(index)),
        })
    }

    /// Where a name begins that a macro pastes together: `prefix##_kernel`.
    fn pasted_start(&self, index: usize) -> usize {
        let mut first = index;
        while first >= 3
            && self.is(first - 1, b'#')
            && self.is(first - 2, b'#')
            && !self.word(first - 3).is_empty()
        {
            first -= 3;
        }
        self.tokens[first].start
    }

    /// The index where the path of scopes or members before the name at `index` begins.
    fn path_start(&self, index: usize) -> usize {
        let mut first = index;
        loop {
            let before = first.wrapping_sub(1);
            if self.word(before) == b"template" && first >= 2 && self.is(first - 2, b':') {
                first -= 1;
                continue;
            }
            let scope = self.is(before, b':') && self.is(first.wrapping_sub(2), b':');
            let member =
                self.is(before, b'.') || (self.is(before, b'>') && self.is(first.wrapping_sub(2), b'-'));
            let width = if scope || (member && self.is(before, b'>')) { 2 } else { usize::from(member) };
            if width == 0 {
                return first;
            }
            let Some(owner) = first.checked_sub(width + 1) else { return first - width };
            if !self.word(owner).is_empty() && self.word(owner) != b"return" {
                first = owner;
            } else if self.is(owner, b'>') {
                match template_start(self.tokens, owner) {
                    Some(open) if open > 0 && !self.word(open - 1).is_empty() => first = open - 1,
                    _ => return first - width,
                }
            } else {
                return first - width;
            }
        }
    }

    /// The index of the bracket that opens the group closed at `close`.
    fn group_start(&self, close: usize) -> Option<usize> {
        let mut depth = 0u32;
        for index in (0..=close).rev() {
            match self.tokens[index].kind {
                Kind::Byte(b')' | b']' | b'}') => depth += 1,
                Kind::Byte(b'(' | b'[' | b'{') => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(index);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// The arguments of the call whose name is at `index`, and where it ends.
    fn call(&self, index: usize) -> Option<(SmallVec<[Span; 8]>, usize)> {
        let mut open = index + 1;
        if self.is(open, b'<') {
            open = template_end(self.tokens, open)? + 1;
        }
        let close = self.is(open, b'(').then(|| group_end(self.tokens, open)).flatten()?;
        Some((split_tokens(&self.tokens[open + 1..close]), self.tokens[close].end))
    }

    /// `cudaLaunchKernel(kernel, grid, block, arguments, shared, stream)`
    fn launch_kernel(&self, index: usize) -> Option<Launch> {
        let (parts, end) = self.call(index)?;
        let kernel = self.kernel_in(*parts.first()?, self.tokens[index].start)?;
        let configuration: SmallVec<[Span; 4]> =
            [1, 2, 4, 5].into_iter().map_while(|i| parts.get(i).copied()).collect();
        Some(self.launch(kernel, &configuration, parts.get(3..4).unwrap_or_default(), end))
    }

    /// `cudaLaunchKernelEx(&configuration, kernel, arguments…)`
    fn launch_kernel_ex(&self, index: usize) -> Option<Launch> {
        let (parts, end) = self.call(index)?;
        let kernel = self.kernel_in(*parts.get(1)?, self.tokens[index].start)?;
        let mut launch = self.launch(kernel, &[], parts.get(2..).unwrap_or_default(), end);
        let configuration = parts.first()?;
        let name = self
            .tokens
            .iter()
            .take(index + 10)
            .find(|t| t.kind == Kind::Word && t.start >= configuration.start)?;
        let field = |field: &[u8]| self.field(name.text(self.bytes), field, index);
        launch.grid = field(b"gridDim");
        launch.block = field(b"blockDim");
        launch.shared = field(b"dynamicSmemBytes");
        launch.stream = field(b"stream");
        Some(launch)
    }

    /// What was last assigned to `owner.field` before the token at `before`.
    fn field(&self, owner: &[u8], field: &[u8], before: usize) -> Option<Expression> {
        let assigned = (4..before).rev().find(|i| {
            self.is(*i - 1, b'=')
                && self.word(*i - 2) == field
                && self.is(*i - 3, b'.')
                && self.word(*i - 4) == owner
        })?;
        let end = (assigned..before).find(|i| self.is(*i, b';'))?;
        let (first, last) = (self.tokens.get(assigned)?, self.tokens.get(end.checked_sub(1)?)?);
        Some(expression(self.source, Span::new(first.start, last.end)))
    }

    /// The kernel in an argument: `k`, `&k<int>`, `(void*)k`, `reinterpret_cast<const void*>(&k)`.
    fn kernel_in(&self, argument: Span, start: usize) -> Option<Named> {
        let inside = |t: &Token| argument.start <= t.start && t.end <= argument.end;
        let first = self.tokens.iter().position(inside)?;
        let mut end = first + self.tokens[first..].iter().take_while(|t| inside(t)).count();
        while end > first && self.is(end - 1, b')') {
            end -= 1;
        }
        let named = self.kernel_before(end)?;
        Some(Named { start, ..named })
    }
}

#[cfg(test)]
mod tests {
    use super::super::lexer::Lexer;
    use super::*;

    fn read(text: &str) -> Vec<Launch> {
        let tokens: Vec<Token> = Lexer::at(text, 0).collect();
        launches(&tokens, text, text)
    }

    fn shown(text: &str) -> String {
        let shown: Vec<String> = read(text)
            .iter()
            .map(|l| {
                let part = |e: &Option<Expression>| e.as_ref().map_or("-".to_owned(), |e| e.text.clone());
                format!(
                    "{}<{}>[{}|{}|{}|{}]({}) {}",
                    l.kernel,
                    l.template_arguments.join("|"),
                    part(&l.grid),
                    part(&l.block),
                    part(&l.shared),
                    part(&l.stream),
                    l.arguments.join("|"),
                    &text[l.span.range()]
                )
            })
            .collect();
        shown.join("\n")
    }

    #[test]
    fn launches_of_every_form() {
        for (text, expected) in [
            ("k<<<1, 2>>>(a, b);", "k<>[1|2|-|-](a|b) k<<<1, 2>>>(a, b)"),
            (
                "x = ns::k<int, (a > b)><<<g(1, 2), dim3(3, 4), n >> 2, s>>>();",
                "k<int|(a > b)>[g(1, 2)|dim3(3, 4)|n >> 2|s]() ns::k<int, (a > b)><<<g(1, 2), dim3(3, 4), n >> 2, s>>>()",
            ),
            (
                "A<T>::template k<1><<<f<a, b>(c), {1, 2}>>>(x)",
                "k<1>[f<a, b>(c)|{1, 2}|-|-](x) A<T>::template k<1><<<f<a, b>(c), {1, 2}>>>(x)",
            ),
            ("kernels[i]<<<1, 2>>>(x)", "kernels<>[1|2|-|-](x) kernels[i]<<<1, 2>>>(x)"),
            ("(*kernel)<<<1, 2>>>(x)", "kernel<>[1|2|-|-](x) (*kernel)<<<1, 2>>>(x)"),
            (
                "cudaLaunchKernel((void*)k<int>, g, b, args, 16, s)",
                "k<int>[g|b|16|s](args) cudaLaunchKernel((void*)k<int>, g, b, args, 16, s)",
            ),
            (
                "cudaLaunchCooperativeKernel(reinterpret_cast<void*>(&ns::k), g, b, args)",
                "k<>[g|b|-|-](args) cudaLaunchCooperativeKernel(reinterpret_cast<void*>(&ns::k), g, b, args)",
            ),
            (
                "cudaLaunchConfig_t c; c.gridDim = dim3(1); c.blockDim = 64; cudaLaunchKernelEx(&c, k<float>, a, b);",
                "k<float>[dim3(1)|64|-|-](a|b) cudaLaunchKernelEx(&c, k<float>, a, b)",
            ),
            ("a##_k<<<1, 2>>>()", "a##_k<>[1|2|-|-]() a##_k<<<1, 2>>>()"),
            ("k<<<1, 2", ""),
            ("k<<<1, 2>>>", "k<>[1|2|-|-]() k<<<1, 2>>>"),
            ("\"k<<<1, 2>>>()\" // k<<<1, 2>>>()", ""),
            ("<<<1, 2>>>(a)", ""),
            ("ptr->k<<<1, 2>>>(a)", "k<>[1|2|-|-](a) ptr->k<<<1, 2>>>(a)"),
            ("obj.k<<<1, 2>>>()", "k<>[1|2|-|-]() obj.k<<<1, 2>>>()"),
            ("obj.k<<<>>>()", "k<>[-|-|-|-]() obj.k<<<>>>()"),
            ("return k<<<1, 2>>>(a)", "k<>[1|2|-|-](a) k<<<1, 2>>>(a)"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }
}
