//! Kernels that a macro makes: `#define KERNEL(name) __global__ void name##_kernel(float* a) { … }`.
//!
//! No parser sees them, for their names stand nowhere in the text. So macros whose body makes kernels are expanded for each of their
//! invocations, and what comes out is read as CUDA. Their place is the invocation.

use std::collections::HashMap;
use std::sync::Arc;

use stitch_analysis::{Analysis, Function, Language};
use stitch_findings::Span;

use crate::units;

/// Macros of macros are followed so far.
const DEPTH: usize = 4;
/// Invocations that are expanded, and the size of what one may grow to.
const MOST: usize = 2000;
const MOST_BYTES: usize = 1 << 16;

/// A macro with parameters.
#[derive(Debug)]
struct Macro {
    parameters: Vec<String>,
    body: String,
}

/// A kernel that a macro makes.
#[derive(Clone, Debug)]
pub(super) struct Pasted {
    /// The file, by its number.
    pub file: usize,
    /// The kernel, its name at the invocation.
    pub function: Function,
    /// Whether its body declares dynamic shared memory.
    pub dynamic: bool,
}

/// The kernels that macros make in these files. The macros of one may be used in another.
pub(super) fn kernels(files: &[(usize, Arc<str>)]) -> Vec<Pasted> {
    let mut macros = HashMap::new();
    for (_, text) in files {
        macros.extend(defined(text));
    }
    keep_makers(&mut macros);
    let mut found = Vec::new();
    if macros.is_empty() {
        return found;
    }
    for (file, text) in files {
        for (name, arguments, span) in invocations(text, &macros).into_iter().take(MOST) {
            let mut made = String::new();
            expand(&macros, &name, &arguments, DEPTH, &mut made);
            let dynamic = made.contains("extern") && made.contains("__shared__");
            let analysis = Analysis::of(Language::Cuda, &Arc::from(made.as_str()));
            for kernel in analysis.outline().kernels() {
                let function = Function { name_span: span, span, body: None, ..kernel.clone() };
                found.push(Pasted { file: *file, function, dynamic });
            }
        }
    }
    found
}

/// The macros with parameters that a text defines.
fn defined(text: &str) -> Vec<(String, Macro)> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(rest) = line.trim_start().strip_prefix('#').map(str::trim_start) else { continue };
        let Some(rest) = rest.strip_prefix("define") else { continue };
        let mut whole = rest.to_owned();
        while whole.trim_end().ends_with('\\') {
            whole.truncate(whole.trim_end().len() - 1);
            whole.push('\n');
            whole.push_str(lines.next().unwrap_or_default());
        }
        let whole = whole.trim_start();
        let Some((name, rest)) = whole.split_once('(').filter(|(name, _)| name.chars().all(is_word)) else {
            continue;
        };
        let Some((parameters, body)) = rest.split_once(')') else { continue };
        let parameters = parameters.split(',').map(|one| one.trim().replace("...", "__VA_ARGS__")).collect();
        found.push((name.to_owned(), Macro { parameters, body: body.to_owned() }));
    }
    found
}

/// Keeps the macros that make kernels, by themselves or through others of these.
fn keep_makers(macros: &mut HashMap<String, Macro>) {
    let mut makers: Vec<String> = Vec::new();
    for _ in 0..DEPTH {
        let makes = |one: &&Macro| {
            one.body.contains("__global__")
                || one.body.split(|c| !is_word(c)).any(|word| makers.iter().any(|maker| maker == word))
        };
        makers = macros.iter().filter(|(_, one)| makes(one)).map(|(name, _)| name.clone()).collect();
    }
    macros.retain(|name, _| makers.contains(name));
}

/// The invocations of `macros` in a text, with their arguments.
fn invocations(text: &str, macros: &HashMap<String, Macro>) -> Vec<(String, Vec<String>, Span)> {
    let masked = units::mask(text);
    let mut found = Vec::new();
    let mut start = 0;
    let mut continues = false;
    for line in masked.split_inclusive('\n') {
        let is_directive = continues || line.trim_start().starts_with('#');
        continues = is_directive && line.trim_end().ends_with('\\');
        let mut at = 0;
        while !is_directive && at < line.len() {
            let rest = &line[at..];
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            if length == 0 {
                at += rest.chars().next().map_or(1, char::len_utf8);
                continue;
            }
            let from = start + at + length;
            if macros.contains_key(&rest[..length])
                && let Some((arguments, end)) = arguments(text, &masked, from)
            {
                found.push((rest[..length].to_owned(), arguments, Span::new(start + at, end)));
            }
            at += length;
        }
        start += line.len();
    }
    found
}

/// What stands between the brackets that open at or behind `from`, at its commas; and where the brackets end.
fn arguments(text: &str, masked: &str, from: usize) -> Option<(Vec<String>, usize)> {
    let open = from + masked[from..].find(|c: char| !c.is_whitespace())?;
    if !masked[open..].starts_with('(') {
        return None;
    }
    let (mut depth, mut last) = (0usize, open + 1);
    let mut parts = Vec::new();
    for (at, byte) in masked.bytes().enumerate().skip(open).take(MOST_BYTES) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 || (depth == 1 && byte == b',') {
            parts.push(text.get(last..at)?.trim().to_owned());
            last = at + 1;
        }
        if depth == 0 {
            return Some((parts, at + 1));
        }
    }
    None
}

/// Writes what an invocation stands for, and the invocations in it, to `made`.
fn expand(
    macros: &HashMap<String, Macro>,
    name: &str,
    arguments: &[String],
    depth: usize,
    made: &mut String,
) {
    let Some(one) = macros.get(name).filter(|_| depth > 0 && made.len() < MOST_BYTES) else { return };
    let text = substitute(one, arguments);
    let inner = invocations(&text, macros);
    let mut at = 0;
    for (name, arguments, span) in inner {
        made.push_str(text.get(at..span.start).unwrap_or_default());
        expand(macros, &name, &arguments, depth - 1, made);
        at = span.end;
    }
    made.push_str(text.get(at..).unwrap_or_default());
    made.push('\n');
}

/// The body with its parameters replaced, words pasted, and `#parameter` as a string.
fn substitute(one: &Macro, arguments: &[String]) -> String {
    let variadic = one
        .parameters
        .len()
        .checked_sub(1)
        .filter(|_| one.parameters.last().is_some_and(|p| p == "__VA_ARGS__"));
    let value = |word: &str| {
        let index = one.parameters.iter().position(|parameter| parameter == word)?;
        Some(match variadic {
            Some(last) if index == last => arguments.get(last..).unwrap_or_default().join(", "),
            _ => arguments.get(index).cloned().unwrap_or_default(),
        })
    };
    let mut text = String::new();
    let mut rest = one.body.as_str();
    while let Some(first) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("##") {
            text.truncate(text.trim_end().len());
            rest = after.trim_start();
            continue;
        }
        let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        if length == 0 {
            text.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        match value(&rest[..length]) {
            Some(value) if text.ends_with('#') => {
                text.pop();
                text.push_str(&format!("{value:?}"));
            }
            Some(value) => text.push_str(&value),
            None => text.push_str(&rest[..length]),
        }
        rest = &rest[length..];
    }
    text
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_found_at_the_invocations_that_make_them() {
        let header = "#define DEFK(name, op) \\\n  __global__ void __launch_bounds__(128) name ## _kernel(float* a) { \\\n    \
                      extern __shared__ float s[]; a[0] = a[0] op 2.f; }\n#define BOTH(x) DEFK(x##_a, +) DEFK(x##_b, *)\n\
                      #define USE(x) x + x\n#define MANY(kind, ...) __global__ void kind(__VA_ARGS__) {}\n";
        let source = "DEFK(add, +) DEFK(mul,\n  *)\nBOTH(two)\n// DEFK(no, +)\nint y = USE(3);\nMANY(wide, int a, char b)\n";
        let files = [(3, Arc::from(source)), (5, Arc::from(header))];
        let found = kernels(&files);
        let rows: Vec<_> = found
            .iter()
            .map(|made| {
                let bounds = made.function.launch_bounds.as_ref();
                let bounds = bounds.and_then(|bounds| bounds.max_threads.value).map(|value| value[0]);
                let at = &source[made.function.name_span.range()];
                (made.function.name.as_str(), at, bounds, made.dynamic)
            })
            .collect();
        assert_eq!(
            rows,
            [
                ("add_kernel", "DEFK(add, +)", Some(128), true),
                ("mul_kernel", "DEFK(mul,\n  *)", Some(128), true),
                ("two_a_kernel", "BOTH(two)", Some(128), true),
                ("two_b_kernel", "BOTH(two)", Some(128), true),
                ("wide", "MANY(wide, int a, char b)", None, false),
            ]
        );
        assert!(found.iter().all(|made| made.file == 3));
        assert_eq!(found[4].function.parameters.len(), 2);
    }

    #[test]
    fn macros_that_never_end_are_given_up() {
        let text = "#define A(x) __global__ void x() {} A(x) B(x)\n#define B(x) A(x##x) B(x)\nA(k)\nA(\nB(";
        assert!(kernels(&[(0, Arc::from(text))]).iter().any(|made| made.function.name == "k"));
    }
}
