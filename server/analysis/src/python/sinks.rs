//! The functions that compile CUDA text, as data: where they come from, which argument holds the text, what it is for.

use super::unit::UnitRole;

/// One argument that holds CUDA text.
#[derive(Debug)]
pub(super) struct TextArgument {
    /// Its keywords; they differ between versions of a library.
    pub(super) names: &'static [&'static str],
    /// Its place among the positional arguments.
    pub(super) place: Option<usize>,
    pub(super) role: UnitRole,
}

/// One function that compiles CUDA text.
#[derive(Debug)]
pub(super) struct Sink {
    /// The last part of its name.
    pub(super) name: &'static str,
    /// Its full name must hold one of these; empty where the name alone is clear, so that a wrapper imported from
    /// elsewhere counts too.
    pub(super) within: &'static [&'static str],
    pub(super) texts: &'static [TextArgument],
    /// The keyword of what names the module or the kernel, and its place.
    pub(super) title: (&'static str, usize),
    /// The keywords that hold the compiler's options.
    pub(super) options: &'static [&'static str],
}

const fn text(names: &'static [&'static str], place: Option<usize>, role: UnitRole) -> TextArgument {
    TextArgument { names, place, role }
}

/// Sources: the documentation of `torch.utils.cpp_extension`, `cupy`, `pycuda.compiler`, `cuda.bindings.nvrtc`,
/// `cuda.core`, `pynvrtc`, and the signature of `torch.cuda._compile_kernel`.
const SINKS: &[Sink] = &[
    Sink {
        name: "load_inline",
        within: &[],
        texts: &[
            text(&["cuda_sources", "cuda_source"], Some(2), UnitRole::CudaSource),
            text(&["cpp_sources", "cpp_source"], Some(1), UnitRole::CppSource),
        ],
        title: ("name", 0),
        options: &["extra_cuda_cflags"],
    },
    Sink {
        name: "RawKernel",
        within: &[],
        texts: &[text(&["code"], Some(0), UnitRole::RawKernel)],
        title: ("name", 1),
        options: &["options"],
    },
    Sink {
        name: "RawModule",
        within: &[],
        texts: &[text(&["code"], Some(0), UnitRole::RawModule)],
        title: ("name", usize::MAX),
        options: &["options"],
    },
    Sink {
        name: "SourceModule",
        within: &[],
        texts: &[text(&["source"], Some(0), UnitRole::SourceModule)],
        title: ("name", usize::MAX),
        options: &["options"],
    },
    Sink {
        name: "DynamicSourceModule",
        within: &[],
        texts: &[text(&["source"], Some(0), UnitRole::SourceModule)],
        title: ("name", usize::MAX),
        options: &["options"],
    },
    Sink {
        name: "nvrtcCreateProgram",
        within: &[],
        texts: &[text(&["src"], Some(0), UnitRole::Nvrtc)],
        title: ("name", 1),
        options: &[],
    },
    Sink {
        name: "Program",
        within: &["cuda.core", "nvrtc"],
        texts: &[text(&["code", "src"], Some(0), UnitRole::Nvrtc)],
        title: ("name", usize::MAX),
        options: &["options"],
    },
    Sink {
        name: "compile",
        within: &["pycuda"],
        texts: &[text(&["source"], Some(0), UnitRole::SourceModule)],
        title: ("name", usize::MAX),
        options: &["options"],
    },
    Sink {
        name: "compile_with_cache",
        within: &["cupy"],
        texts: &[text(&["source"], Some(0), UnitRole::Nvrtc)],
        title: ("name", usize::MAX),
        options: &["options"],
    },
    Sink {
        name: "compile_using_nvrtc",
        within: &["cupy"],
        texts: &[text(&["source"], Some(0), UnitRole::Nvrtc)],
        title: ("name", usize::MAX),
        options: &["options"],
    },
    Sink {
        name: "_compile_kernel",
        within: &["torch.cuda"],
        texts: &[text(&["kernel_source"], Some(0), UnitRole::Nvrtc)],
        title: ("kernel_name", 1),
        options: &["nvcc_options"],
    },
];

/// Whether a function whose name ends so may be one of them.
pub(super) fn may_compile(name: &str) -> bool {
    SINKS.iter().any(|sink| sink.name == name)
}

/// The function with this full name, imports resolved.
pub(super) fn find(path: &str) -> Option<&'static Sink> {
    let name = path.rsplit('.').next()?;
    let fits = |sink: &&Sink| sink.within.is_empty() || sink.within.iter().any(|part| path.contains(part));
    SINKS.iter().find(|sink| sink.name == name).filter(fits)
}
