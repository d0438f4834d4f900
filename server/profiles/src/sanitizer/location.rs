//! Places as compute-sanitizer writes them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::LinePlace;

/// A place in device code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Location {
    /// The function, demangled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The line, where the program was built with `-lineinfo` or `-G`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<LinePlace>,
}

/// A frame of the host's stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Frame {
    /// The function.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The line, where the program has debug information.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<LinePlace>,
    /// The program or library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
}

/// Reads what stands behind `at`:
///
/// - `oob(float *, int)+0x90 in bad.cu:3` and the same without a line,
/// - `0x2d0 in void fill<float>(float*)`, with `in fill.cu:7` behind it at times,
/// - `0x000008f0 in /home/a/sync.cu:20:kernel(int*)`, as cuda-memcheck wrote.
pub(super) fn location(text: &str) -> Location {
    let text = text.trim();
    if let Some(rest) = text.strip_prefix("0x") {
        let Some((_, rest)) = rest.split_once(" in ") else { return Location::default() };
        return old(rest.trim());
    }
    if let Some((function, rest)) = split_offset(text) {
        let place = rest.trim().strip_prefix("in ").and_then(line_place);
        return Location { function: named(function), place };
    }
    match text.split_once(" in ") {
        Some((function, rest)) if line_place(rest).is_some() => {
            Location { function: named(function), place: line_place(rest) }
        }
        _ => Location { function: named(text), place: line_place(text) }.without_path(),
    }
}

impl Location {
    /// A text that is a place is no function.
    fn without_path(mut self) -> Self {
        if self.place.is_some() {
            self.function = None;
        }
        self
    }
}

/// `void fill<float>(float*)`, `/home/a/sync.cu:20:kernel(int*)`, `fill(float*) in fill.cu:7`.
fn old(text: &str) -> Location {
    for (at, _) in text.match_indices(':') {
        let digits = text[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
        let after = &text[at + 1 + digits..];
        if digits > 0
            && let Some(function) = after.strip_prefix(':')
            && !function.starts_with(':')
            && let Some(place) = line_place(&text[..at + 1 + digits])
        {
            return Location { function: named(function), place: Some(place) };
        }
    }
    match text.rsplit_once(" in ") {
        Some((function, rest)) if line_place(rest).is_some() => {
            Location { function: named(function), place: line_place(rest) }
        }
        _ => Location { function: named(text), place: None },
    }
}

/// Splits `name+0x90 rest` behind the offset.
fn split_offset(text: &str) -> Option<(&str, &str)> {
    let at = text.match_indices("+0x").map(|(at, _)| at).find(|at| {
        let rest = &text[at + 3..];
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        digits > 0 && (rest[digits..].is_empty() || rest[digits..].starts_with(' '))
    })?;
    let rest = &text[at + 3..];
    let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
    Some((&text[..at], &rest[digits..]))
}

/// `bad.cu:3`, `C:\work\my app\tile.cu:41`, with anything behind a space left out.
fn line_place(text: &str) -> Option<LinePlace> {
    let text = text.trim();
    let (file, rest) = text.rsplit_once(':')?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let line = rest.get(..digits)?.parse().ok().filter(|line| *line > 0)?;
    let behind = &rest[digits..];
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    (behind.is_empty() || behind.starts_with(' ')).then_some(())?;
    (name.contains('.') && !file.starts_with("0x") && !file.contains('('))
        .then(|| LinePlace { file: file.to_owned(), line })
}

fn named(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty() && !text.starts_with("0x")).then(|| text.to_owned())
}

/// Reads what stands behind `Host Frame:`: `main in bad.cu:7 [0x8d65] in bad`, `cudaMalloc [0x33af0] in app`, `[0x2b10c4] in app.dll`,
/// `/lib64/libcuda.so.1 (cuLaunchKernel + 0x2b8) [0x222dc8]`.
pub(super) fn frame(text: &str) -> Frame {
    let text = text.trim();
    let (head, tail) = match text.find("[0x") {
        Some(at) => (text[..at].trim(), &text[at..]),
        None => (text, ""),
    };
    let module = tail
        .split_once("] in ")
        .map(|(_, module)| module.trim().to_owned())
        .filter(|module| !module.is_empty());
    if let Some((module, call)) = head.split_once(" (")
        && call.contains(" + 0x")
    {
        let function = call.split(" + ").next().and_then(named);
        return Frame { function, place: None, module: Some(module.to_owned()) };
    }
    if let Some((function, place)) = head.rsplit_once(" in ")
        && let Some(place) = line_place(place)
    {
        return Frame { function: named(function), place: Some(place), module };
    }
    let is_path = head.contains('/') && !head.contains('(');
    Frame {
        function: named(head).filter(|_| !is_path),
        place: None,
        module: module.or_else(|| is_path.then(|| head.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, function: Option<&str>, place: Option<(&str, u32)>) {
        let found = location(text);
        assert_eq!(found.function.as_deref(), function, "{text}");
        assert_eq!(found.place.as_ref().map(|place| (place.file.as_str(), place.line)), place, "{text}");
    }

    #[test]
    fn a_location_of_any_age_has_a_function_and_a_line() {
        check("oob(float *, int)+0x90 in bad.cu:3", Some("oob(float *, int)"), Some(("bad.cu", 3)));
        check("unaligned_kernel()+0x50", Some("unaligned_kernel()"), None);
        check(
            "0x2d0 in void fill<float>(float*,unsigned int)",
            Some("void fill<float>(float*,unsigned int)"),
            None,
        );
        check(
            "0x000008f0 in /home/a/sync.cu:20:glob(int*)",
            Some("glob(int*)"),
            Some(("/home/a/sync.cu", 20)),
        );
        check(
            "0x00000148 in ./race.cu:3:a::test(int*, int*)",
            Some("a::test(int*, int*)"),
            Some(("./race.cu", 3)),
        );
        check("0x1a0 in execute", Some("execute"), None);
        check(
            "tile_sum(const float *)+0x90 in C:\\work\\my app\\tile.cu:41",
            Some("tile_sum(const float *)"),
            Some(("C:\\work\\my app\\tile.cu", 41)),
        );
        check("f()+0x90 in C:\\a in b\\tile.cu:41", Some("f()"), Some(("C:\\a in b\\tile.cu", 41)));
        check(
            "[clone k(int *)] outlineSync()+0x11f0 in test.cu:42",
            Some("[clone k(int *)] outlineSync()"),
            Some(("test.cu", 42)),
        );
        check("0x", None, None);
        check("", None, None);
    }

    #[test]
    fn a_host_frame_in_a_library_is_no_place() {
        let main = frame(" main in bad.cu:7 [0x8d65] in bad");
        assert_eq!((main.function.as_deref(), main.module.as_deref()), (Some("main"), Some("bad")));
        assert_eq!(main.place.unwrap().line, 7);
        for text in [
            " _PyEval_EvalFrameDefault [0x1c77e] in python3.11",
            "  [0x2b10c4] in app.dll",
            "/lib64/libcuda.so.1 (cuLaunchKernel + 0x2b8) [0x222dc8]",
            "./race [0x101d9]",
        ] {
            assert_eq!(frame(text).place, None, "{text}");
        }
        assert_eq!(
            frame("/lib64/libcuda.so.1 (cuLaunchKernel + 0x2b8) [0x222dc8]").function.as_deref(),
            Some("cuLaunchKernel")
        );
    }
}
