//! The device part of a CUDA text that needs torch: what can be checked in half a second instead of half a minute.
//!
//! Nearly all of the time that such a text takes goes into torch's headers, and nearly none of its kernels use them. So the
//! kernels are compiled by themselves: host code is blanked out byte for byte, so that lines and columns stay; small
//! stand-ins are put in place of the few types of torch that kernels use; templates are instantiated for what is launched.
//!
//! Whatever then fails for want of something that only torch, or the blanked host code, declares is not the user's error: a false
//! squiggle is worse than a missed one.

mod instantiate;
mod items;
mod mask;

pub use instantiate::instantiations;
pub use items::{Item, ItemKind, items};
pub use mask::mask;

/// Stand-ins for what torch declares and kernels use.
pub const PROLOGUE: &str = include_str!("units/prologue.h");

/// The device part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DevicePart {
    /// As long as the whole text, with the same lines.
    pub text: String,
    /// Names that the parts left out define. An error about one of these is ours.
    pub left_out: Vec<String>,
    /// Whether anything is left to compile.
    pub has_device_code: bool,
}

/// Takes the host code out of `text`.
pub fn device_part(text: &str) -> DevicePart {
    let masked = mask(text);
    let found = items(text, &masked);
    let macros = device_macros(text, &found);
    let mut kept = text.as_bytes().to_vec();
    let mut left_out = Vec::new();
    let mut has_device_code = false;
    for item in &found {
        let code = &text[item.span.range()];
        let bare = &masked[item.span.range()];
        match keeps(item.kind, code, bare, &macros) {
            Keep::Device => has_device_code = true,
            Keep::Yes => {}
            Keep::No => {
                left_out.extend(names(bare));
                blank(&mut kept[item.span.range()]);
            }
        }
    }
    // Blanking replaces whole items, which begin and end at ASCII, so this can't fail; if it did, nothing would be checked.
    let text = String::from_utf8(kept).unwrap_or_default();
    DevicePart { text, left_out, has_device_code }
}

fn blank(bytes: &mut [u8]) {
    bytes.iter_mut().filter(|byte| !matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
}

enum Keep {
    /// A kernel or a device function.
    Device,
    Yes,
    No,
}

/// Folders of headers that only a torch installation has.
const TORCH_HEADERS: [&str; 8] =
    ["torch/", "ATen/", "c10/", "pybind11", "THC", "Python.h", "caffe2/", "numpy/"];

/// Names of torch for which there is no stand-in.
const TORCH_NAMES: [&str; 9] = [
    "torch::Tensor",
    "at::Tensor",
    "torch::nn",
    "py::",
    "pybind11",
    "torch::optional",
    "PyObject",
    "at::cuda",
    "c10::cuda",
];

const DEVICE_WORDS: [&str; 4] = ["__global__", "__device__", "__constant__", "__managed__"];

fn keeps(kind: ItemKind, code: &str, bare: &str, macros: &[String]) -> Keep {
    let has_word = |word: &str| words(bare).any(|known| known == word);
    let is_device =
        || DEVICE_WORDS.iter().any(|word| has_word(word)) || macros.iter().any(|name| has_word(name));
    let uses_torch = || TORCH_NAMES.iter().any(|name| bare.contains(name));
    let yes = |keep: bool| if keep { Keep::Yes } else { Keep::No };
    match kind {
        ItemKind::Include => yes(!code.lines().filter_map(included).any(is_torch_header)),
        ItemKind::Directive | ItemKind::Container => Keep::Yes,
        ItemKind::UsingNamespace => {
            yes(["std", "cooperative_groups", "nvcuda", "cg", "wmma"].iter().any(|name| has_word(name)))
        }
        ItemKind::Type => yes(!uses_torch()),
        ItemKind::Constant => yes(is_device() || !uses_torch()),
        ItemKind::Function | ItemKind::Other if is_device() => Keep::Device,
        ItemKind::Function => yes(has_word("constexpr") && !uses_torch()),
        ItemKind::Other => Keep::No,
    }
}

/// Whether only a torch installation has a header.
pub fn is_torch_header(name: &str) -> bool {
    TORCH_HEADERS.iter().any(|folder| name.starts_with(folder))
}

/// The name in `#include "name"` or `#include <name>`.
pub fn included(line: &str) -> Option<&str> {
    let rest = after_include(line)?;
    let (open, close) = if rest.starts_with('"') { ('"', '"') } else { ('<', '>') };
    rest.strip_prefix(open)?.split_once(close).map(|(name, _)| name)
}

/// The name in `#include "name"`, which is looked for beside the file first.
pub fn included_in_quotes(line: &str) -> Option<&str> {
    after_include(line)?.strip_prefix('"')?.split_once('"').map(|(name, _)| name)
}

fn after_include(line: &str) -> Option<&str> {
    line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include").map(str::trim_start)
}

/// Macros of the text whose definition makes device code: `#define KERNEL __global__ void`.
fn device_macros(text: &str, items: &[Item]) -> Vec<String> {
    let defines = items.iter().filter(|item| item.kind == ItemKind::Directive).filter_map(|item| {
        let rest =
            text[item.span.range()].trim_start().strip_prefix('#')?.trim_start().strip_prefix("define")?;
        let name: String =
            rest.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        DEVICE_WORDS.iter().any(|word| rest.contains(word)).then_some(name)
    });
    let known = ["C10_DEVICE", "C10_HOST_DEVICE", "AT_DEVICE", "AT_HOST_DEVICE"].map(str::to_owned);
    defines.filter(|name| !name.is_empty()).chain(known).collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

/// The names that a part left out may define: the words before `(`, `=`, `;`, `{` and `[` up to its body.
fn names(bare: &str) -> Vec<String> {
    let head = &bare[..bare.find('{').unwrap_or(bare.len())];
    words(head)
        .filter(|word| word.starts_with(|c: char| c.is_alphabetic() || c == '_'))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests;
