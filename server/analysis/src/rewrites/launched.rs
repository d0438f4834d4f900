//! How a kernel is launched, where the file shows every launch there is.

use super::{Context, Function};
use crate::cuda::TokenKind;
use crate::outline::{FunctionKind, Launch};

/// Runtime functions that take a kernel and do not launch it.
const ASKS_ABOUT_KERNELS: &[&[u8]] = &[
    b"cudaFuncGetAttributes",
    b"cudaFuncSetAttribute",
    b"cudaFuncSetCacheConfig",
    b"cudaFuncSetSharedMemConfig",
    b"cudaOccupancyMaxActiveBlocksPerMultiprocessor",
    b"cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
    b"cudaOccupancyMaxPotentialBlockSize",
];

/// All launches of a kernel.
pub struct Launched<'c> {
    /// In the order of the text; at least one.
    pub launches: Vec<&'c Launch>,
    /// What the file can't show.
    pub assumed: Vec<String>,
}

/// All launches of `kernel`.
///
/// # Errors
/// Why there may be others than those that are seen.
pub fn launches_of<'c>(context: &Context<'c>, kernel: &Function) -> Result<Launched<'c>, String> {
    let name = kernel.outline.name.as_str();
    if kernel.outline.kind != FunctionKind::Kernel {
        return Err(format!("`{name}` is no kernel"));
    }
    let same = |f: &&crate::Function| f.name == name && f.is_definition;
    if context.outline.functions.iter().filter(same).count() != 1 {
        return Err(format!("more than one function is called `{name}`"));
    }
    if context.directives.is_header {
        return Err(format!("this is a header: other files may launch `{name}`"));
    }
    let launches: Vec<&Launch> = context.outline.launches.iter().filter(|l| l.kernel == name).collect();
    if launches.is_empty() {
        return Err(format!("no launch of `{name}` is in this file"));
    }
    if let Some(line) = other_mention(context, name, &launches) {
        return Err(format!(
            "`{name}` is also named at line {line}, where it may be launched in another way"
        ));
    }
    let head = context.source.get(kernel.outline.span.start..kernel.outline.name_span.start).unwrap_or("");
    let is_static = head.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|word| word == "static");
    let assumed = match is_static {
        true => Vec::new(),
        false => vec![format!("no other file launches `{name}`, which is not `static`")],
    };
    Ok(Launched { launches, assumed })
}

/// The line where the kernel's name is used for something else than to declare, launch or ask about it.
fn other_mention(context: &Context, name: &str, launches: &[&Launch]) -> Option<usize> {
    let bytes = context.source.as_bytes();
    if let Some(line) = context.macro_that_mentions(name) {
        return Some(line);
    }
    let tokens = &context.tokens;
    tokens
        .iter()
        .enumerate()
        .filter(|(_, token)| token.kind == TokenKind::Word && token.text(bytes) == name.as_bytes())
        .find(|(index, token)| {
            let declared =
                context.outline.functions.iter().any(|f| f.name == name && f.name_span.start == token.start);
            let launched = launches.iter().any(|launch| launch.name_span.start == token.start);
            !declared && !launched && !is_asked_about(context, *index)
        })
        .map(|(_, token)| context.line(token.start))
}

/// Whether the token is an argument of a function that asks about kernels.
fn is_asked_about(context: &Context, index: usize) -> bool {
    let mut depth = 0u32;
    for at in (0..index).rev() {
        let token = context.tokens[at];
        match token.kind {
            TokenKind::Byte(b')') => depth += 1,
            TokenKind::Byte(b'(') if depth > 0 => depth -= 1,
            TokenKind::Byte(b'(') => {
                let before = at.checked_sub(1).map(|at| context.tokens[at].text(context.source.as_bytes()));
                if before.is_some_and(|word| ASKS_ABOUT_KERNELS.contains(&word)) {
                    return true;
                }
            }
            TokenKind::Byte(b';' | b'{' | b'}') => return false,
            _ => {}
        }
    }
    false
}

/// The block of every launch, in threads along x, y and z.
///
/// # Errors
/// Which launch has a block that is not known.
pub fn blocks(context: &Context, launched: &Launched) -> Result<Vec<[i64; 3]>, String> {
    let block = |launch: &&Launch| {
        launch.block.as_ref().and_then(|block| block.value).ok_or_else(|| {
            format!("the block size of the launch at line {} is not known", context.line(launch.span.start))
        })
    };
    launched.launches.iter().map(block).collect()
}

/// Which launches, for a sentence: "the only launch, line 40," or "the 3 launches (lines 40, 52 and 60)".
pub fn in_words(context: &Context, launched: &Launched) -> String {
    let lines: Vec<String> =
        launched.launches.iter().map(|launch| context.line(launch.span.start).to_string()).collect();
    match lines.as_slice() {
        [only] => format!("the only launch, line {only},"),
        [first @ .., last] => {
            format!("the {} launches (lines {} and {last})", lines.len(), first.join(", "))
        }
        [] => "no launch".to_owned(),
    }
}
