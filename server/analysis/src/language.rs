//! Which language a file is in.

use std::path::Path;

/// The languages that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// CUDA C++: `.cu`, `.cuh`, and headers that an editor calls CUDA.
    Cuda,
    /// Python, for PyTorch modules and the CUDA strings inside.
    Python,
}

impl Language {
    /// By the file's name. Plain C++ headers are not ours: only an editor's language id makes them CUDA.
    pub fn of_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "cu" | "cuh" => Some(Self::Cuda),
            "py" => Some(Self::Python),
            _ => None,
        }
    }

    /// By the id an editor gives: VS Code says `cuda-cpp`, Vim and Neovim `cuda`.
    pub fn of_id(id: &str) -> Option<Self> {
        match id {
            "cuda-cpp" | "cuda" => Some(Self::Cuda),
            "python" => Some(Self::Python),
            _ => None,
        }
    }
}
