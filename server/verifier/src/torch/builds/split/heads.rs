//! What the beginning of an item says: where it runs, what it is called.

use super::words;
use crate::torch::builds::launch::closing;
use crate::units::{Item, ItemKind};

/// A macro that stands for words such as `__host__ __device__`.
pub(super) struct Macro {
    name: String,
    place: Place,
}

/// Where code runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub is_kernel: bool,
    pub is_device: bool,
    pub is_host: bool,
}

impl Place {
    /// As the words before its body say it; a variable's or a type's are all of it.
    pub fn of(bare: &str, macros: &[Macro]) -> Self {
        let mut place = Self::default();
        for word in words(head(bare)) {
            match word {
                "__global__" => (place.is_kernel, place.is_device) = (true, true),
                "__device__" | "__constant__" | "__managed__" => place.is_device = true,
                "__host__" => place.is_host = true,
                _ => {
                    for known in macros.iter().filter(|known| known.name == word) {
                        place.is_kernel |= known.place.is_kernel;
                        place.is_device |= known.place.is_device;
                        place.is_host |= known.place.is_host;
                    }
                }
            }
        }
        place
    }
}

/// Macros of a text whose definition makes device code.
pub(super) fn device_macros(masked: &str, items: &[Item]) -> Vec<Macro> {
    let defines = items.iter().filter(|item| item.kind == ItemKind::Directive).filter_map(|item| {
        let line =
            masked[item.span.range()].trim_start().strip_prefix('#')?.trim_start().strip_prefix("define")?;
        let mut of_line = words(line);
        let name = of_line.next()?.to_owned();
        let has = |word: &str| words(line).any(|known| known == word);
        let place = Place {
            is_kernel: has("__global__"),
            is_device: has("__global__") || has("__device__") || has("__constant__"),
            is_host: has("__host__"),
        };
        place.is_device.then_some(Macro { name, place })
    });
    let of_torch = |name: &str, is_host: bool| Macro {
        name: name.to_owned(),
        place: Place { is_kernel: false, is_device: true, is_host },
    };
    let known =
        [("C10_DEVICE", false), ("C10_HOST_DEVICE", true), ("AT_DEVICE", false), ("AT_HOST_DEVICE", true)];
    defines.chain(known.map(|(name, is_host)| of_torch(name, is_host))).collect()
}

/// What stands before the body.
pub(super) fn head(bare: &str) -> &str {
    &bare[..body(bare).unwrap_or(bare.len())]
}

/// Where the body's brace is.
pub(super) fn body(bare: &str) -> Option<usize> {
    let bytes = bare.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'(' | b'[' => at = closing(bytes, at)?,
            b'{' => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

/// `template __global__ void k<float>(…);`
pub(super) fn is_instantiation(bare: &str) -> bool {
    let rest = bare.trim_start();
    let rest = rest.strip_prefix("extern").map_or(rest, str::trim_start);
    rest.strip_prefix("template").is_some_and(|rest| !rest.trim_start().starts_with('<'))
}

/// `template <> __global__ void k<float>(…)`
pub(super) fn is_specialisation(bare: &str) -> bool {
    let rest = bare.trim_start().strip_prefix("template").map(str::trim_start);
    rest.and_then(|rest| rest.strip_prefix('<')).is_some_and(|rest| rest.trim_start().starts_with('>'))
}

/// Whether it opens an unnamed namespace.
pub(super) fn is_unnamed(bare: &str) -> bool {
    bare.strip_prefix("namespace").is_some_and(|rest| rest.trim() == "{")
}

/// Takes `static` from a kernel, which the linker has to find. `start` is where the item begins in the texts.
pub(super) fn free(bare: &str, start: usize, texts: &mut [&mut Vec<u8>]) {
    let head = head(bare);
    let before = head.find("__global__").unwrap_or(0);
    let after = head.find('(').unwrap_or(head.len());
    let mut at = 0;
    while let Some(found) = head[at..after.max(before)].find("static") {
        let begin = at + found;
        let end = begin + "static".len();
        let is_whole =
            |byte: Option<&u8>| byte.is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_');
        let bytes = head.as_bytes();
        if is_whole(begin.checked_sub(1).and_then(|at| bytes.get(at))) && is_whole(bytes.get(end)) {
            for text in texts.iter_mut() {
                text[start + begin..start + end].fill(b' ');
            }
        }
        at = end;
    }
}

/// What an item declares. Of a type that may have several names, all words: an enumerator is a name too.
pub(super) fn names(kind: ItemKind, bare: &str) -> Vec<String> {
    let owned = |words: Vec<&str>| words.into_iter().map(str::to_owned).collect();
    match kind {
        ItemKind::Function => function_name(bare).map(|name| vec![name.to_owned()]).unwrap_or_default(),
        ItemKind::Type => {
            let is_plain = !bare.contains("enum") && body(bare).is_some();
            let text = if is_plain { head(bare) } else { bare };
            owned(words(text).filter(|word| !KEYWORDS.contains(word)).collect())
        }
        ItemKind::Constant | ItemKind::Other => {
            let end = bare.find('=').unwrap_or(bare.len());
            let text = &bare[..end];
            let text = if end == bare.len() { head(text) } else { text };
            owned(words(text).filter(|word| !KEYWORDS.contains(word)).collect())
        }
        _ => Vec::new(),
    }
}

/// Words that are no names of an item's own.
const KEYWORDS: [&str; 45] = [
    "namespace",
    "struct",
    "class",
    "union",
    "enum",
    "typedef",
    "using",
    "template",
    "typename",
    "const",
    "constexpr",
    "static",
    "inline",
    "int",
    "float",
    "double",
    "char",
    "bool",
    "unsigned",
    "signed",
    "long",
    "short",
    "void",
    "auto",
    "extern",
    "volatile",
    "__device__",
    "__constant__",
    "__managed__",
    "__shared__",
    "__align__",
    "alignas",
    "size_t",
    "int64_t",
    "int32_t",
    "uint32_t",
    "uint64_t",
    "uint8_t",
    "int8_t",
    "std",
    "T",
    "half",
    "__half",
    "float4",
    "float2",
];

/// The name before a function's parameters.
fn function_name(bare: &str) -> Option<&str> {
    let head = head(bare);
    let bytes = head.as_bytes();
    let mut at = after_templates(head);
    loop {
        let open = at + head.get(at..)?.find('(')?;
        let end = head[..open].trim_end().len();
        let begin =
            head[..end].rfind(|c: char| !(c.is_alphanumeric() || c == '_')).map_or(0, |found| found + 1);
        let name = &head[begin..end];
        // The name of `template <> void k<float>(…)` is before its arguments.
        let name = if name.is_empty() && head[..end].ends_with('>') {
            let angle = head[..end].rfind('<')?;
            words(&head[..angle]).last()?
        } else {
            name
        };
        match name {
            "__launch_bounds__" | "__cluster_dims__" | "__attribute__" | "alignas" | "__align__"
            | "__declspec" | "decltype" => {
                at = closing(bytes, open)? + 1;
            }
            name => return Some(name).filter(|name| !name.is_empty()),
        }
    }
}

/// Where `template <…>` ends.
fn after_templates(head: &str) -> usize {
    let mut at = head.len() - head.trim_start().len();
    while head[at..].starts_with("template") {
        let open = at + head[at..].find('<').unwrap_or(head.len() - at);
        let mut depth = 0usize;
        let end = head.bytes().enumerate().skip(open).find_map(|(place, byte)| {
            match byte {
                b'<' | b'(' => depth += 1,
                b'>' | b')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            (depth == 0).then_some(place + 1)
        });
        let end = end.unwrap_or(head.len());
        at = end + (head[end..].len() - head[end..].trim_start().len());
    }
    at
}
