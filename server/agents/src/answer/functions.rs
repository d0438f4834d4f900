//! Puts the functions of a code block in place of those of the same name in a file.

use stitch_analysis::{Analysis, Function};
use stitch_findings::Span;

use crate::edit::Lines;

/// Whether `block` is the whole file: it defines every function that `file` does, and has most of what stands between them.
pub(super) fn is_whole(file: &Analysis, block: &Analysis) -> bool {
    let count =
        |one: &Analysis, name: &str| definitions(one).filter(|function| function.name == name).count();
    let has = |name: &str| count(block, name) >= count(file, name);
    if definitions(file).next().is_none() || !definitions(file).all(|function| has(&function.name)) {
        return false;
    }
    let is_code = |line: &&str| !line.is_empty() && !line.starts_with("//");
    let between = outside(file);
    let lines: Vec<_> = between.lines().map(str::trim).filter(is_code).collect();
    let missing = lines.iter().filter(|line| !block.source().contains(**line)).count();
    missing * 2 <= lines.len()
}

/// The text of `file` with the functions of `blocks` in it. What else a block has (includes, constants, new functions) comes before the
/// first function that it replaces, as far as the file has not got it.
///
/// # Errors
/// Why it can't be told where something belongs, in a sentence.
pub(super) fn put_in_place(file: &Analysis, blocks: &[&Analysis]) -> Result<String, String> {
    let text = file.source();
    let lines = Lines::of(text);
    let mut changes: Vec<(Span, String)> = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        let later = &blocks[index + 1..];
        let mut replaced = Vec::new();
        for function in definitions(block) {
            let Some(place) = place_of(file, function)? else { continue };
            replaced.push(function.span);
            let is_newer = later.iter().any(|later| definitions(later).any(|one| is_same(one, function)));
            if !is_newer {
                changes.push((place, block.source()[function.span.range()].to_owned()));
            }
        }
        let (includes, others) = rest_of(block.source(), &replaced, text);
        if !is_balanced(&others) {
            return Err(
                "The code block holds braces around its functions, so it can't be told where they belong."
                    .to_owned(),
            );
        }
        if !includes.is_empty() {
            changes.push((after_includes(&lines), includes));
        }
        let first = changes.iter().map(|(span, _)| *span).filter(|span| !span.is_empty()).min();
        if let Some(first) = first.filter(|_| !others.trim().is_empty()) {
            changes.push((Span::new(first.start, first.start), format!("{}\n\n", others.trim())));
        }
    }
    changes.sort_by_key(|(span, _)| (span.start, span.end));
    let mut new = String::new();
    let mut done = 0;
    for (span, replacement) in &changes {
        new.push_str(&text[done..span.start]);
        new.push_str(&Lines::of(replacement).texts().collect::<Vec<_>>().join(lines.newline()));
        if replacement.ends_with('\n') {
            new.push_str(lines.newline());
        }
        done = span.end;
    }
    new.push_str(&text[done..]);
    Ok(new)
}

/// The functions with a body that are not inside another one.
fn definitions(analysis: &Analysis) -> impl Iterator<Item = &Function> {
    analysis.outline().functions.iter().filter(|function| function.is_definition && function.unit.is_none())
}

fn is_same(one: &Function, other: &Function) -> bool {
    one.name == other.name && types(one) == types(other)
}

/// The parameters' types without spaces and qualifiers, which a rewrite may add.
fn types(function: &Function) -> Vec<String> {
    let plain = |ty: &str| {
        let words = ty.replace('*', " * ").replace('&', " & ");
        let kept =
            words.split_whitespace().filter(|word| !matches!(*word, "const" | "__restrict__" | "__restrict"));
        kept.collect::<String>()
    };
    function.parameters.iter().map(|parameter| plain(&parameter.ty)).collect()
}

/// Where the function of this name is in the file; `None` if it is new.
fn place_of(file: &Analysis, function: &Function) -> Result<Option<Span>, String> {
    let named: Vec<_> = definitions(file).filter(|one| one.name == function.name).collect();
    match named[..] {
        [] => Ok(None),
        [one] => Ok(Some(one.span)),
        _ => match named.iter().filter(|one| types(one) == types(function)).collect::<Vec<_>>()[..] {
            [one] => Ok(Some(one.span)),
            _ => Err(format!(
                "The file has {} functions of the name `{}`, and it can't be told which the answer's is.",
                named.len(),
                function.name
            )),
        },
    }
}

/// What a block has besides the functions in `taken`: new `#include` lines, and the rest without lines that the file has already.
fn rest_of(block: &str, taken: &[Span], file: &str) -> (String, String) {
    let mut rest = String::new();
    let mut done = 0;
    for span in taken {
        rest.push_str(&block[done..span.start]);
        rest.push('\n');
        done = span.end;
    }
    rest.push_str(&block[done..]);
    let known: Vec<_> = file.lines().map(str::trim).collect();
    let (mut includes, mut others) = (String::new(), String::new());
    for line in rest.lines() {
        let bare = line.trim();
        let is_known =
            !bare.is_empty() && bare != "{" && bare != "}" && bare != "};" && known.contains(&bare);
        // A line inside something new stays, even if the file has one like it.
        let is_inside = others.matches('{').count() > others.matches('}').count();
        if (is_known && !is_inside) || (bare.is_empty() && others.ends_with("\n\n")) {
            continue;
        }
        let part = if bare.starts_with("#include") { &mut includes } else { &mut others };
        part.push_str(line);
        part.push('\n');
    }
    // Comments alone would only repeat what stands above the function.
    if others.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with("//")) {
        others.clear();
    }
    (includes, others)
}

/// The empty place behind the last `#include` of a file, or at its beginning.
fn after_includes(lines: &Lines<'_>) -> Span {
    let last = (0..lines.len()).rev().find(|index| lines.text(*index).trim_start().starts_with("#include"));
    let at = match last {
        Some(index) if index + 1 < lines.len() => lines.span(index + 1, 1).start,
        _ => 0,
    };
    Span::new(at, at)
}

/// The text of a file that is in none of its functions.
fn outside(file: &Analysis) -> String {
    let text = file.source();
    let mut spans: Vec<_> = definitions(file).map(|function| function.span).collect();
    spans.sort_unstable();
    let mut rest = String::new();
    let mut done = 0;
    for span in spans.into_iter().filter(|span| !span.is_empty()) {
        if span.start >= done {
            rest.push_str(&text[done..span.start]);
            done = span.end;
        }
    }
    rest.push_str(&text[done..]);
    rest
}

/// Whether all braces, brackets and parentheses outside of comments and literals are closed.
pub(super) fn is_balanced(code: &str) -> bool {
    let mut open = Vec::new();
    let mut rest = code;
    while let Some(one) = rest.chars().next() {
        let skip = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            match rest.find("*/") {
                Some(end) => end + 2,
                None => return false,
            }
        } else if matches!(one, '"' | '\'') {
            literal(rest, one)
        } else {
            match one {
                '{' | '(' | '[' => open.push(one),
                '}' | ')' | ']' => {
                    let wanted = match one {
                        '}' => '{',
                        ')' => '(',
                        _ => '[',
                    };
                    if open.pop() != Some(wanted) {
                        return false;
                    }
                }
                _ => {}
            }
            one.len_utf8()
        };
        rest = &rest[skip..];
    }
    open.is_empty()
}

/// The length of the literal that begins here; one byte for a quote that is none, as in `1'000` or in an apostrophe.
fn literal(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, one) in text.char_indices().skip(1) {
        match one {
            '\n' => return 1,
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if one == quote => return at + 1,
            _ => {}
        }
    }
    1
}
