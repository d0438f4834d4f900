//! What is done about a header that is not found, where no compile database says where headers are.
//!
//! A project without a database still has its headers somewhere in the workspace, so their folder is looked for and added, and
//! the report says so. Headers of torch are nowhere in a workspace; a source that needs them is checked by its kernels.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use super::{Lack, NotCompiled};
use crate::compiler_text::{self, Level, Message, Origin};
use crate::units;

/// Folders that are looked into.
const MOST_FOLDERS: usize = 4000;

/// A library whose headers a toolkit need not hold.
struct Library {
    /// How its headers begin.
    starts: &'static [&'static str],
    /// What it is called.
    name: &'static str,
    /// What `stitchcuda toolchain install --with` calls it; `None` for one that is no part of CUDA.
    part: Option<&'static str>,
}

const fn library(starts: &'static [&'static str], name: &'static str, part: Option<&'static str>) -> Library {
    Library { starts, name, part }
}

/// Source: CUDA Toolkit documentation, and the documentation of cuDNN, NCCL, cuTENSOR and CUTLASS.
const LIBRARIES: [Library; 17] = [
    library(&["cublas", "nvblas"], "cuBLAS", Some("cublas")),
    library(&["cufft", "cudalibxt.h"], "cuFFT", Some("cufft")),
    library(&["curand"], "cuRAND", Some("curand")),
    library(&["cusparse"], "cuSPARSE", Some("cusparse")),
    library(&["cusolver"], "cuSOLVER", Some("cusolver")),
    library(&["npp"], "NPP", Some("npp")),
    library(&["nvjpeg"], "nvJPEG", Some("nvjpeg")),
    library(&["nvtx3/", "nvToolsExt"], "NVTX", Some("nvtx")),
    library(&["cudaProfiler.h", "cuda_profiler_api.h"], "the profiler interface", Some("profiler")),
    library(&["nvrtc.h"], "NVRTC", Some("nvrtc")),
    library(&["nvJitLink.h"], "nvJitLink", Some("nvjitlink")),
    library(&["cupti", "nvperf", "generated_cuda_meta.h"], "CUPTI", Some("cupti")),
    library(&["cudnn"], "cuDNN", None),
    library(&["nccl"], "NCCL", None),
    library(&["cutensor"], "cuTENSOR", None),
    library(&["cutlass/", "cute/"], "CUTLASS", None),
    library(&["nvml.h"], "NVML", Some("nvml")),
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

/// What a message stands for that says that a known library's header is not found: not an error of the person's code, but
/// something that this toolkit lacks.
pub(super) fn lack(message: &Message) -> Option<NotCompiled> {
    let header = header_of(message)?;
    let library =
        LIBRARIES.iter().find(|library| library.starts.iter().any(|start| header.starts_with(start)))?;
    let how = match library.part {
        Some(part) => format!(
            "run `stitchcuda toolchain install --with {part}` for a private toolkit with them, or choose a CUDA toolkit that \
             holds them (`nvcc.path`)"
        ),
        None => "install it and name the folder of its headers with `-I` in `nvcc.extraFlags`".to_owned(),
    };
    let reason = format!("the headers of {} ({header}) are not where this nvcc looks; {how}", library.name);
    Some(NotCompiled { reason, lack: Lack::Tool })
}

/// The same for a text that was taken out of its program, of any header: only the whole program's build knows where it is.
pub(super) fn lack_of_text(message: &Message) -> Option<NotCompiled> {
    lack(message).or_else(|| {
        let header = header_of(message).filter(|header| !units::is_torch_header(header))?;
        Some(NotCompiled::by_nature(format!(
            "{header} was not found; only the program's own build knows where it is"
        )))
    })
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

/// Folders above a source in which, and in whose usual folders, a header is looked for. NVIDIA's samples have theirs in `Common`, three
/// folders up.
const MOST_FOLDERS_UP: usize = 5;
const USUAL: [&str; 7] = ["", "include", "inc", "src", "Common", "common", "Common/inc"];

/// The folder from which `header` is found: one of the workspace, the nearest to `source` first; else one above the source.
pub(crate) fn folder_of(header: &str, source: &Path, workspace: &Path) -> Option<PathBuf> {
    below(header, source, workspace)
        .or_else(|| {
            let above = source.ancestors().skip(1).take(MOST_FOLDERS_UP);
            above
                .flat_map(|up| USUAL.map(|usual| up.join(usual)))
                .find(|folder| folder.join(header).is_file())
        })
        .filter(|folder| crate::paths::shell_character(folder).is_none())
}

fn below(header: &str, source: &Path, workspace: &Path) -> Option<PathBuf> {
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
        let said = |text: &str| compiler_text::parse(text.as_bytes()).iter().find_map(lack);
        let cublas = said("a.cu:4:10: fatal error: cublas_v2.h: No such file or directory\n").unwrap();
        assert_eq!(cublas.lack, Lack::Tool);
        assert!(cublas.reason.contains("`stitchcuda toolchain install --with cublas`"), "{cublas:?}");
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
        std::fs::create_dir_all(root.join("near/Common")).unwrap();
        std::fs::write(root.join("near/Common/helper.h"), "").unwrap();
        let source = root.join("near/0/add/add.cu");
        let alone = source.parent().unwrap();
        assert_eq!(folder_of("helper.h", &source, alone), Some(root.join("near/Common")));
    }
}
