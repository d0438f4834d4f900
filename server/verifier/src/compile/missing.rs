//! What is done about a header that is not found, where no compile database says where headers are.
//!
//! A project without a database still has its headers somewhere in the workspace, so their folder is looked for and added, and
//! the report says so. Headers of torch are nowhere in a workspace; a source that needs them is checked by its kernels.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use crate::compiler_text::{self, Level, Message, Origin};
use crate::units;

/// Folders that are looked into.
const MOST_FOLDERS: usize = 4000;

/// How the headers of libraries begin that a toolkit need not hold, and what the library is called.
/// Source: CUDA Toolkit documentation, and the documentation of cuDNN, NCCL, cuTENSOR and CUTLASS.
const LIBRARIES: [(&str, &str); 15] = [
    ("cublas", "cuBLAS"),
    ("cufft", "cuFFT"),
    ("curand", "cuRAND"),
    ("cusparse", "cuSPARSE"),
    ("cusolver", "cuSOLVER"),
    ("cudnn", "cuDNN"),
    ("nccl", "NCCL"),
    ("npp", "NPP"),
    ("nvjpeg", "nvJPEG"),
    ("nvtx3/", "NVTX"),
    ("nvToolsExt", "NVTX"),
    ("cupti", "CUPTI"),
    ("cutensor", "cuTENSOR"),
    ("cutlass/", "CUTLASS"),
    ("cute/", "CUTLASS"),
];

/// The header that a failed compile did not find.
pub(crate) fn header(text: &str) -> Option<String> {
    compiler_text::parse(text.as_bytes()).iter().find_map(header_of)
}

/// The header that a message says is not found.
fn header_of(message: &Message) -> Option<String> {
    let about_header = message.level == Level::Error && message.origin != Origin::Driver;
    let name = message
        .text
        .strip_suffix(": No such file or directory")
        .filter(|_| about_header && message.place.is_some());
    let quoted =
        || message.text.strip_prefix("cannot open source file \"").map(|rest| rest.trim_end_matches('"'));
    name.or_else(quoted).map(str::to_owned)
}

/// What to do about a header that a message says is not found, where it is that of a known library.
pub(super) fn advice(message: &Message) -> Option<String> {
    let header = header_of(message)?;
    let (_, library) = LIBRARIES.iter().find(|(start, _)| header.starts_with(start))?;
    Some(format!(
        "This header is {library}'s, which is not installed where nvcc looks. Install it and name the folder of its headers \
         with `-I` in `nvcc.extraFlags`, or choose a CUDA toolkit that holds it (`nvcc.path`)."
    ))
}

/// Whether a compile failed for want of relocatable device code: a project with such code can only be built with it.
pub(crate) fn needs_linking(text: &str) -> bool {
    text.contains("requires separate compilation mode") || text.contains("Unresolved extern function")
}

/// Whether a compile failed for want of torch: its headers are not there, or the text is one to which `load_inline` adds them.
pub(super) fn needs_torch(text: &str) -> bool {
    let undefined = ["torch", "at", "c10"]
        .iter()
        .any(|name| text.contains(&format!("identifier \"{name}\" is undefined")));
    undefined || header(text).is_some_and(|header| units::is_torch_header(&header))
}

/// The folder of the workspace from which `header` is found, the nearest to `source` first.
pub(crate) fn folder_of(header: &str, source: &Path, workspace: &Path) -> Option<PathBuf> {
    let mut best: Option<(usize, PathBuf)> = None;
    let mut folders = VecDeque::from([workspace.to_owned()]);
    let mut seen = 0;
    while let Some(folder) = folders.pop_front() {
        seen += 1;
        if seen > MOST_FOLDERS {
            break;
        }
        if folder.join(header).is_file() {
            let shared = folder.components().zip(source.components()).take_while(|(a, b)| a == b).count();
            if best.as_ref().is_none_or(|(known, _)| shared > *known) {
                best = Some((shared, folder.clone()));
            }
        }
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        let mut below: Vec<PathBuf> = entries
            .flatten()
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
            .map(|entry| entry.path())
            .collect();
        below.sort();
        folders.extend(below);
    }
    best.map(|(_, folder)| folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_header_is_named_and_its_folder_found() {
        let text = "a.cu:1:10: fatal error: sub/h.h: No such file or directory\n";
        assert_eq!(header(text).as_deref(), Some("sub/h.h"));
        assert_eq!(
            header("a.cu(1): catastrophic error: cannot open source file \"h.h\"\n").as_deref(),
            Some("h.h")
        );
        assert_eq!(header("cc1plus: fatal error: k.cu: No such file or directory\n"), None);
        assert_eq!(header("a.cu(1): error: x\n"), None);
        let said = |text: &str| compiler_text::parse(text.as_bytes()).iter().find_map(advice);
        assert!(
            said("a.cu:4:10: fatal error: cublas_v2.h: No such file or directory\n")
                .unwrap()
                .contains("cuBLAS's")
        );
        assert_eq!(said(text), None);
        assert!(needs_torch("a.h:1:10: fatal error: torch/extension.h: No such file or directory\n"));
        assert!(needs_torch("a.cu(4): error: identifier \"torch\" is undefined\n"));
        assert!(
            !needs_torch("a.cu(4): error: identifier \"torch_size\" is undefined\n") && !needs_torch(text)
        );
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for name in ["far/inc/sub/h.h", "near/inc/sub/h.h"] {
            std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            std::fs::write(root.join(name), "").unwrap();
        }
        assert_eq!(folder_of("sub/h.h", &root.join("near/src/a.cu"), root), Some(root.join("near/inc")));
        assert_eq!(folder_of("other.h", &root.join("a.cu"), root), None);
    }
}
