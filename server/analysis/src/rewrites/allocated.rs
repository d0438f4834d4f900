//! Whether the pointers that launches pass are to allocations of their own.

use stitch_findings::Span;

use super::Context;
use super::launched::Launched;
use super::restrict::Pointer;
use crate::cuda::{Token, TokenKind};
use crate::outline::Launch;

/// Functions that allocate on the device, and set the pointer whose address is their first argument. Those that allocate on the
/// host are none: what a kernel reads there the host may write meanwhile.
const ALLOCATE: &[&[u8]] = &[b"cudaMalloc", b"cudaMallocManaged", b"cudaMallocAsync", b"cudaMallocPitch"];

/// Whether each launch passes other allocations for every two pointers of which one is written. In words, what it passes.
///
/// # Errors
/// The first argument of which that is not known.
pub fn check_arguments(
    context: &Context,
    launched: &Launched,
    pointers: &[Pointer],
) -> Result<String, String> {
    for launch in &launched.launches {
        let line = context.line(launch.span.start);
        let mut passed: Vec<(&Pointer, &str)> = Vec::new();
        for pointer in pointers {
            let argument = launch.arguments.get(pointer.index);
            let Some(argument) = argument else {
                return Err(format!(
                    "what the launch at line {line} passes for `{}` is not seen",
                    pointer.name
                ));
            };
            let name = without_casts(argument);
            is_own_allocation(context, launch, name)?;
            passed.push((pointer, name));
        }
        for (at, (first, name)) in passed.iter().enumerate() {
            let same = passed[at + 1..].iter().find(|(_, other)| other == name);
            if let Some((second, _)) = same.filter(|(second, _)| first.is_written || second.is_written) {
                return Err(format!(
                    "the launch at line {line} passes `{name}` for both `{}` and `{}`",
                    first.name, second.name
                ));
            }
        }
    }
    Ok("pointers to allocations of their own".to_owned())
}

/// `d_x` in `(float*)d_x`.
fn without_casts(argument: &str) -> &str {
    let mut text = argument.trim();
    while let Some(rest) = text.strip_prefix('(') {
        match rest.split_once(')') {
            Some((ty, after)) if ty.contains('*') && !after.trim().is_empty() => text = after.trim(),
            _ => break,
        }
    }
    text
}

/// Whether `name` holds what one of the allocating functions gave it, and nothing else, ever.
fn is_own_allocation(context: &Context, launch: &Launch, name: &str) -> Result<(), String> {
    let line = context.line(launch.span.start);
    let is_name = name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    if !is_name {
        return Err(format!(
            "the launch at line {line} passes `{name}`, which is no plain name of an allocation"
        ));
    }
    if let Some(at) = context.macro_that_mentions(name) {
        return Err(format!("the macro of line {at} mentions `{name}`"));
    }
    let caller =
        context.outline.functions.iter().filter(|f| f.body.is_some_and(|body| body.contains(launch.span)));
    let caller = caller.min_by_key(|f| f.span.len());
    let Some(caller) = caller else {
        return Err(format!("the function around the launch at line {line} was not found"));
    };
    if caller.parameters.iter().any(|parameter| parameter.name == name) {
        return Err(format!(
            "`{name}` is a parameter of `{}`: it may point to the same memory as another",
            caller.name
        ));
    }
    let body = caller.body.unwrap_or(caller.span);
    let is_local = words(context, body, name).any(|at| declares(context, at));
    let scope = if is_local { body } else { Span::new(0, context.source.len()) };
    if !is_local && !is_declared_once_outside(context, name) {
        return Err(format!("where `{name}` is declared is not seen"));
    }
    let mut allocated = false;
    for at in words(context, scope, name) {
        match role(context, at) {
            Role::Allocated => allocated = true,
            Role::Kept => {}
            Role::Changed => {
                let line = context.line(context.tokens[at].start);
                return Err(format!("`{name}` may be set to something else at line {line}"));
            }
        }
    }
    match allocated {
        true => Ok(()),
        false => Err(format!("where `{name}` is allocated is not seen")),
    }
}

/// Whether a pointer of this name is declared outside all functions, and in none.
fn is_declared_once_outside(context: &Context, name: &str) -> bool {
    let whole = Span::new(0, context.source.len());
    let declared: Vec<usize> = words(context, whole, name).filter(|at| declares(context, *at)).collect();
    let is_inside =
        |at: usize| context.outline.functions.iter().any(|f| f.span.touches(context.tokens[at].start));
    matches!(declared.as_slice(), [only] if !is_inside(*only))
}

/// The tokens in `scope` that are the word `name`.
fn words(context: &Context, scope: Span, name: &str) -> impl Iterator<Item = usize> {
    let bytes = context.source.as_bytes();
    let first = context.tokens.partition_point(|token| token.start < scope.start);
    let end = context.tokens.partition_point(|token| token.start < scope.end);
    let is_name = |index: &usize| {
        let token = context.tokens[*index];
        token.kind == TokenKind::Word && token.text(bytes) == name.as_bytes()
    };
    (first..end).filter(is_name).collect::<Vec<_>>().into_iter()
}

/// Whether the word at `at` is declared there: `float *name`, `float* a, *name`.
fn declares(context: &Context, at: usize) -> bool {
    let byte = |index: Option<usize>| index.and_then(|index| context.tokens.get(index)).copied();
    let starred = byte(at.checked_sub(1)).is_some_and(|token| token.is(b'*'));
    let before = byte(at.checked_sub(2));
    let ends =
        byte(Some(at + 1)).is_some_and(|token| matches!(token.kind, TokenKind::Byte(b';' | b',' | b'=')));
    let typed = before.is_some_and(|token| token.kind == TokenKind::Word || token.is(b',') || token.is(b'>'));
    starred && typed && ends
}

/// What a mention of a pointer does to it.
enum Role {
    /// An allocation sets it.
    Allocated,
    /// It keeps its value.
    Kept,
    /// It may change.
    Changed,
}

fn role(context: &Context, at: usize) -> Role {
    let bytes = context.source.as_bytes();
    let token = |index: usize| context.tokens.get(index).copied();
    let before = at.checked_sub(1).and_then(token);
    let is = |token: Option<Token>, byte: u8| token.is_some_and(|token| token.is(byte));
    if is(before, b'.') || (is(before, b'>') && at >= 2 && is(token(at - 2), b'-')) {
        // A member of the same name.
        return Role::Kept;
    }
    let (next, second) = (token(at + 1), token(at + 2));
    if is(next, b'=') && !is(second, b'=') {
        let null = second.map_or(&b""[..], |value| value.text(bytes));
        let ends = token(at + 3).is_some_and(|end| end.is(b';') || end.is(b','));
        return if matches!(null, b"0" | b"NULL" | b"nullptr") && ends { Role::Kept } else { Role::Changed };
    }
    let steps = |first: Option<Token>, other: Option<Token>| {
        [b'+', b'-'].iter().any(|sign| is(first, *sign) && (is(other, *sign) || is(other, b'=')))
    };
    if steps(next, second) || (at >= 2 && steps(before, token(at - 2)) && !is(before, b'=')) {
        return Role::Changed;
    }
    let callee = callee(context, at);
    if is(before, b'&') && !at.checked_sub(2).and_then(token).is_some_and(|t| t.is(b'&')) {
        return if callee.is_some_and(|name| ALLOCATE.contains(&name)) {
            Role::Allocated
        } else {
            Role::Changed
        };
    }
    match callee {
        // A function may take it by reference, as `std::swap` does.
        Some(name) if !takes_values(context, name) => Role::Changed,
        _ => Role::Kept,
    }
}

/// The function or the launch among whose arguments the token stands, not in a deeper expression.
fn callee<'c>(context: &Context<'c>, at: usize) -> Option<&'c [u8]> {
    let bytes = context.source.as_bytes();
    let mut depth = 0u32;
    for index in (0..at).rev() {
        let token = context.tokens[index];
        match token.kind {
            TokenKind::Byte(b')') => depth += 1,
            TokenKind::Byte(b'(') if depth > 0 => depth -= 1,
            TokenKind::Byte(b'(') => {
                let before = index.checked_sub(1)?;
                let name = match context.tokens.get(before)?.kind {
                    TokenKind::Word => before,
                    TokenKind::Byte(b'>') => template_name(context, before)?,
                    _ => return None,
                };
                let name = context.tokens.get(name)?.text(bytes);
                // A cast hands on what it is given.
                if !name.ends_with(b"_cast") {
                    return Some(name);
                }
            }
            TokenKind::Byte(b';' | b'{' | b'}') => return None,
            _ => {}
        }
    }
    None
}

/// The index of the name before `<…>`, of which the token at `close` is the last. None for the `>>>` of a launch.
fn template_name(context: &Context, close: usize) -> Option<usize> {
    const LONGEST: usize = 16;
    let is_closing = |index: Option<usize>| {
        index.and_then(|index| context.tokens.get(index)).is_some_and(|token| token.is(b'>'))
    };
    if is_closing(close.checked_sub(1)) {
        return None;
    }
    let open = (close.saturating_sub(LONGEST)..close).rev().find(|index| context.tokens[*index].is(b'<'))?;
    let name = open.checked_sub(1)?;
    (context.tokens[name].kind == TokenKind::Word).then_some(name)
}

/// Whether a function can't change a pointer that it is handed.
fn takes_values(context: &Context, name: &[u8]) -> bool {
    let name = String::from_utf8_lossy(name);
    let known = ["printf", "fprintf", "free", "assert", "if", "while", "sizeof", "return"];
    if (name.starts_with("cuda") && !ALLOCATE.contains(&name.as_bytes())) || known.contains(&name.as_ref()) {
        return true;
    }
    let mut functions = context.outline.functions.iter().filter(|f| f.name == name).peekable();
    functions.peek().is_some()
        && functions.all(|f| f.parameters.iter().all(|parameter| !parameter.ty.contains('&')))
}
