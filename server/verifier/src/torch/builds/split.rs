//! Takes a CUDA text apart: what runs on the device, for nvcc without torch's headers, and what runs on the host, for a C++ compiler.
//!
//! Almost all of the time that a CUDA file of an extension takes goes into torch's headers, which nvcc reads three times; a kernel uses
//! nothing of them. Both parts keep their lines. What can't be told apart for sure is refused, with the reason, and is compiled whole:
//! a wrong guess must end in a compiler's error or in a refusal, never in other code.

mod conditions;
mod heads;
mod includes;

use std::collections::BTreeSet;
use std::ops::Range;

use super::launch;
use crate::units::{Item, ItemKind, items, mask};
use includes::Side;

/// The two parts of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Split {
    /// For the C++ compiler.
    pub host: String,
    /// For nvcc.
    pub device: String,
    /// Kernels that are templates, by the names under which they are declared.
    pub templates: Vec<String>,
    /// All kernels that it defines.
    pub kernels: Vec<String>,
    /// Whether the host part says something to Python.
    pub binds: bool,
}

/// What stands for an unnamed namespace, with the source's number: its kernels must be found by the linker, and only in this source.
const UNNAMED: &str = "stitchcuda_unnamed";
const DEVICE_WORDS: [&str; 7] = [
    "__global__",
    "__device__",
    "__constant__",
    "__managed__",
    "__shared__",
    "__grid_constant__",
    "__launch_bounds__",
];
/// Words of torch and Python: what has one of them can't be compiled for the device without their headers.
const TORCH_WORDS: [&str; 12] = [
    "torch",
    "at",
    "c10",
    "pybind11",
    "py",
    "Tensor",
    "TensorOptions",
    "PyObject",
    "ScalarType",
    "IntArrayRef",
    "Scalar",
    "ArrayRef",
];
/// Names of libraries whose functions launch kernels of their own, so that host code with them is nvcc's.
const DEVICE_LIBRARIES: [&str; 6] = ["thrust", "cub", "cutlass", "cute", "cudf", "nvbench"];

/// What an item is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Both,
    Host,
    Device,
    /// A kernel's definition: the host gets its declaration, if it names it.
    Kernel,
    /// The device's, and the host's if it names it.
    Shared,
    /// The host's, and the device's if it names it.
    Lent,
}

struct Entry {
    range: Range<usize>,
    part: Part,
    names: Vec<String>,
}

/// Takes `text`, the source of this number, apart. `defined` are names that flags define.
///
/// # Errors
/// Why it can't be: a sentence without its end.
pub(super) fn split(text: &str, number: usize, defined: &[String]) -> Result<Split, String> {
    if !text.is_ascii() && text.contains('\u{feff}') {
        return Err("it begins with a byte order mark".to_owned());
    }
    let masked = mask(text);
    if masked.len() != text.len() {
        return Err("it is not plain UTF-8".to_owned());
    }
    conditions::check(text, &masked, defined)?;
    let found = items(text, &masked);
    let macros = heads::device_macros(&masked, &found);
    let mut entries = Vec::with_capacity(found.len());
    for item in &found {
        entries.push(entry(text, &masked, item, &macros)?);
    }
    let host_words = host_words(&masked, &mut entries);
    let device_words = device_words(&masked, &mut entries);
    check_host(&masked, &entries, &host_words)?;
    parts(text, number, &masked, &entries, &host_words, &device_words)
}

/// The words of a text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

fn has_any(bare: &str, known: &[&str]) -> bool {
    words(bare).any(|word| known.contains(&word))
}

fn entry(text: &str, masked: &str, item: &Item, macros: &[heads::Macro]) -> Result<Entry, String> {
    let range = item.span.range();
    let (code, bare) = (&text[range.clone()], &masked[range.clone()]);
    let place = heads::Place::of(bare, macros);
    let uses_torch = has_any(bare, &TORCH_WORDS);
    let part = match item.kind {
        ItemKind::Include => match includes::side(code)? {
            Side::Both => Part::Both,
            Side::Host => Part::Host,
            Side::Device => Part::Device,
        },
        ItemKind::Directive | ItemKind::Container => Part::Both,
        ItemKind::UsingNamespace => of_namespace(bare),
        _ if is_alias(bare) => of_namespace(bare),
        ItemKind::Type if uses_torch => Part::Lent,
        ItemKind::Type => Part::Shared,
        ItemKind::Constant | ItemKind::Other if place.is_device => Part::Device,
        ItemKind::Constant if uses_torch => Part::Host,
        ItemKind::Constant => Part::Lent,
        ItemKind::Function if heads::is_instantiation(bare) && place.is_device => Part::Device,
        ItemKind::Function if place.is_kernel => Part::Kernel,
        ItemKind::Function if place.is_device && place.is_host => Part::Shared,
        ItemKind::Function if place.is_device => Part::Device,
        ItemKind::Function if has_any(heads::head(bare), &["constexpr", "consteval"]) => Part::Lent,
        ItemKind::Function => Part::Host,
        ItemKind::Other => Part::Host,
    };
    Ok(Entry { range, part, names: heads::names(item.kind, bare) })
}

/// Whether it gives a namespace another name.
fn is_alias(bare: &str) -> bool {
    bare.starts_with("namespace") && bare.contains('=') && !bare.contains('{')
}

/// Who knows the namespace that is used, or named otherwise.
fn of_namespace(bare: &str) -> Part {
    if has_any(bare, &TORCH_WORDS) {
        Part::Host
    } else if has_any(bare, &DEVICE_LIBRARIES)
        || has_any(bare, &["nvcuda", "cooperative_groups", "wmma", "cg", "cuda"])
    {
        Part::Device
    } else {
        Part::Both
    }
}

/// All words of the host's part, which grows by what it names.
fn host_words<'a>(masked: &'a str, entries: &mut [Entry]) -> BTreeSet<&'a str> {
    let mut known = BTreeSet::new();
    // A macro that pastes names together may name any kernel.
    if masked.contains("##") {
        for entry in entries.iter().filter(|entry| entry.part == Part::Kernel) {
            known.extend(words(heads::head(&masked[entry.range.clone()])));
        }
    }
    for entry in entries.iter() {
        let bare = &masked[entry.range.clone()];
        // A macro that defines device code says nothing of the host.
        if matches!(entry.part, Part::Host | Part::Lent)
            || entry.part == Part::Both && !has_any(bare, &DEVICE_WORDS)
        {
            known.extend(words(bare));
        }
    }
    loop {
        let before = known.len();
        for entry in entries.iter().filter(|entry| matches!(entry.part, Part::Shared | Part::Kernel)) {
            if entry.names.iter().any(|name| known.contains(name.as_str())) {
                let bare = &masked[entry.range.clone()];
                known.extend(words(if entry.part == Part::Kernel { heads::head(bare) } else { bare }));
            }
        }
        if known.len() == before {
            return known;
        }
    }
}

/// All words of the device's part.
fn device_words<'a>(masked: &'a str, entries: &mut [Entry]) -> BTreeSet<&'a str> {
    let mut known = BTreeSet::new();
    for entry in entries
        .iter()
        .filter(|entry| matches!(entry.part, Part::Device | Part::Kernel | Part::Shared | Part::Both))
    {
        known.extend(words(&masked[entry.range.clone()]));
    }
    loop {
        let before = known.len();
        for entry in entries.iter().filter(|entry| entry.part == Part::Lent) {
            if entry.names.iter().any(|name| known.contains(name.as_str())) {
                known.extend(words(&masked[entry.range.clone()]));
            }
        }
        if known.len() == before {
            return known;
        }
    }
}

/// What only nvcc can compile in host code.
fn check_host(masked: &str, entries: &[Entry], host_words: &BTreeSet<&str>) -> Result<(), String> {
    for entry in entries {
        let bare = &masked[entry.range.clone()];
        match entry.part {
            Part::Host if has_any(bare, &DEVICE_WORDS) => {
                return Err("there is device code inside of a host function".to_owned());
            }
            Part::Host if has_any(bare, &DEVICE_LIBRARIES) => {
                return Err(
                    "host code calls a library that launches kernels of its own (thrust, CUB, CUTLASS)"
                        .to_owned(),
                );
            }
            Part::Device => {
                if let Some(name) = entry.names.iter().find(|name| host_words.contains(name.as_str())) {
                    return Err(format!("host code names `{name}`, which is the device's"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn blank(bytes: &mut [u8]) {
    bytes.iter_mut().filter(|byte| !matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
}

fn parts(
    text: &str,
    number: usize,
    masked: &str,
    entries: &[Entry],
    host_words: &BTreeSet<&str>,
    device_words: &BTreeSet<&str>,
) -> Result<Split, String> {
    let (mut host, mut device) = (text.as_bytes().to_vec(), text.as_bytes().to_vec());
    let (mut templates, mut kernels) = (Vec::new(), Vec::new());
    for entry in entries {
        let range = entry.range.clone();
        let bare = &masked[range.clone()];
        let is_named = |known: &BTreeSet<&str>| entry.names.iter().any(|name| known.contains(name.as_str()));
        match entry.part {
            Part::Both => {}
            Part::Host => blank(&mut device[range]),
            Part::Device => blank(&mut host[range]),
            Part::Shared if is_named(host_words) => {}
            Part::Shared => blank(&mut host[range]),
            Part::Lent if is_named(device_words) => {}
            Part::Lent => blank(&mut device[range]),
            Part::Kernel => {
                kernels.extend(entry.names.iter().cloned());
                heads::free(bare, range.start, &mut [&mut host, &mut device]);
                if bare.trim_start().starts_with("template") && !heads::is_specialisation(bare) {
                    templates.extend(entry.names.iter().cloned());
                }
                if !is_named(host_words) {
                    blank(&mut host[range]);
                } else if let Some(body) = heads::body(bare) {
                    blank(&mut host[range.start + body..range.end]);
                    // The body begins with a brace, which is now the declaration's end.
                    host[range.start + body] = b';';
                }
            }
        }
    }
    if kernels.is_empty() {
        return Err("it has no kernel".to_owned());
    }
    let text_of = |bytes: Vec<u8>| String::from_utf8(bytes).map_err(|_| "it is not plain UTF-8".to_owned());
    let (host, device) =
        (named(&text_of(host)?, number, masked, entries), named(&text_of(device)?, number, masked, entries));
    let host = launch::rewritten(&host, &mask(&host))?;
    let binds = has_any(&mask(&host), &["PYBIND11_MODULE", "pybind11", "py", "PyObject"]);
    for names in [&mut templates, &mut kernels] {
        names.sort();
        names.dedup();
    }
    Ok(Split { host, device, templates, kernels, binds })
}

/// The text with its unnamed namespaces named.
fn named(text: &str, number: usize, masked: &str, entries: &[Entry]) -> String {
    let mut out = String::with_capacity(text.len() + 32);
    let mut copied = 0;
    for entry in entries.iter().filter(|entry| heads::is_unnamed(&masked[entry.range.clone()])) {
        out.push_str(&text[copied..entry.range.start]);
        let lines = text[entry.range.clone()].matches('\n').count();
        out.push_str(&format!("inline namespace {UNNAMED}_{number} {}{{", "\n".repeat(lines)));
        copied = entry.range.end;
    }
    out.push_str(&text[copied..]);
    out
}

#[cfg(test)]
mod tests;
