//! What a file is, by how it begins. Names of files say little: `nsys` and people add endings as they like.

use std::borrow::Cow;
use std::io::Read;

use crate::ncu;
use crate::sanitizer;
use crate::utf16::decoded;

/// What profilers write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// Nsight Compute's own report (`.ncu-rep`), which only its `ncu` reads.
    NcuReport,
    /// Nsight Systems' own report (`.nsys-rep`), which only its `nsys` reads.
    NsysReport,
    /// What `nsys export --type sqlite` writes.
    Sqlite,
    /// A Chrome trace, as PyTorch's profiler writes it, compressed or not.
    Trace,
    /// compute-sanitizer's XML.
    SanitizerXml,
    /// compute-sanitizer's text, among a program's own.
    SanitizerText,
    /// Pages of Nsight Compute as CSV, among a program's own text.
    NcuCsv,
}

/// Bytes from the beginning that tell it. A program may print much before its profiler does.
pub const HEAD: usize = 1 << 20;

/// Beginnings that are all of the answer.
const MAGIC: [(&[u8], FileKind); 4] = [
    (b"NVR\0", FileKind::NcuReport),
    (b"NVIDIA Tegra Profiler Report", FileKind::NsysReport),
    (b"SQLite format 3\0", FileKind::Sqlite),
    (&[0x1f, 0x8b], FileKind::Trace),
];

/// Tells what a file is by its first [`HEAD`] bytes, or all of them where it is shorter. `None` where it is nothing that a profiler writes.
pub fn sniff(head: &[u8]) -> Option<FileKind> {
    if let Some((_, kind)) = MAGIC.iter().find(|(magic, _)| head.starts_with(magic)) {
        return Some(*kind);
    }
    let text = text_of(head);
    let start = text.trim_start_matches('\u{feff}').trim_start();
    let has_line = |begins: &[&str]| {
        text.lines().any(|line| begins.iter().any(|begin| line.trim_start().starts_with(begin)))
    };
    if start.starts_with('<') && text.contains("ComputeSanitizerOutput") {
        return Some(FileKind::SanitizerXml);
    }
    let by_sanitizer = |line: &str| {
        let said = sanitizer::behind_mark(line).map(str::trim_start);
        said.is_some_and(|said| said.starts_with("COMPUTE-SANITIZER") || said.starts_with("CUDA-MEMCHECK"))
    };
    if text.lines().any(by_sanitizer) {
        return Some(FileKind::SanitizerText);
    }
    if text.contains("\"Kernel Name\"") || has_line(&["==PROF==", "\"File Path\",", "\"Function Name\","]) {
        return Some(FileKind::NcuCsv);
    }
    if text.lines().any(ncu::bare_header) {
        return Some(FileKind::NcuCsv);
    }
    start.starts_with(['{', '[']).then_some(FileKind::Trace)
}

/// The beginning of a file as text, where PowerShell wrote it in UTF-16 as well. What is no text is replaced.
pub fn text_of(head: &[u8]) -> Cow<'_, str> {
    if !head.starts_with(&[0xff, 0xfe]) && !head.starts_with(&[0xfe, 0xff]) {
        return String::from_utf8_lossy(head);
    }
    let mut bytes = Vec::new();
    match decoded(head).and_then(|mut reader| reader.read_to_end(&mut bytes)) {
        Ok(_) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        Err(_) => String::from_utf8_lossy(head),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_how_they_begin() {
        for (head, kind) in [
            (&b"NVR\0\x02\0"[..], Some(FileKind::NcuReport)),
            (b"NVIDIA Tegra Profiler Report 2023", Some(FileKind::NsysReport)),
            (b"SQLite format 3\0\x10", Some(FileKind::Sqlite)),
            (b"\x1f\x8b\x08", Some(FileKind::Trace)),
            (b"\xef\xbb\xbf {\"traceEvents\": [", Some(FileKind::Trace)),
            (b"hello from the program\n==PROF== Connected\n\"ID\",\"Kernel Name\"\n", Some(FileKind::NcuCsv)),
            (b"\"ID\",\"Process ID\",\"Kernel Name\"\n", Some(FileKind::NcuCsv)),
            (b"ID,Process ID,Kernel Name,Context,Stream\n", Some(FileKind::NcuCsv)),
            (b"id,name,time\n", None),
            (b"sum 3\n========= COMPUTE-SANITIZER\n", Some(FileKind::SanitizerText)),
            (b"sum 3========= CUDA-MEMCHECK\n", Some(FileKind::SanitizerText)),
            (b"============ COMPUTE-SANITIZER ============\n", None),
            (b"<?xml version=\"1.0\"?><ComputeSanitizerOutput>", Some(FileKind::SanitizerXml)),
            (b"int main() { return 0; }\n", None),
            (b"", None),
        ] {
            assert_eq!(sniff(head), kind, "{}", String::from_utf8_lossy(head));
        }
    }

    #[test]
    fn utf_16_of_either_order_is_known_by_its_text() {
        for (text, kind) in [
            ("==PROF== Connected\r\n\"ID\",\"Kernel Name\"\r\n", Some(FileKind::NcuCsv)),
            ("sum 3\r\n========= COMPUTE-SANITIZER\r\n", Some(FileKind::SanitizerText)),
            ("<?xml version=\"1.0\"?><ComputeSanitizerOutput>", Some(FileKind::SanitizerXml)),
            ("{\"traceEvents\": [", Some(FileKind::Trace)),
            ("int main() { return 0; }", None),
        ] {
            for order in [u16::to_le_bytes, u16::to_be_bytes] {
                let mut bytes: Vec<u8> =
                    std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(order).collect();
                assert_eq!(sniff(&bytes), kind, "{text}");
                // The first piece of a file may end within a character.
                bytes.push(0);
                assert_eq!(sniff(&bytes), kind, "{text}, cut");
            }
        }
    }
}
