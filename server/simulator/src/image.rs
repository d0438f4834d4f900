//! Device code as nvcc embeds it: fat binaries, and the PTX in them.
//!
//! A fat binary holds one translation unit several times: as machine code for some architectures and as PTX for others.
//! The simulator wants PTX. Which one it takes is the driver's rule for code that it compiles itself: the newest that is
//! not newer than the device.
//!
//! NVIDIA does not document the layout. It is read here as `fatbinary` of CUDA 11 to 13 writes it; what the fields mean was
//! found by building one source with each `-compress-mode`, and the fixtures of the tests are these files.

mod compression;
mod elf;
mod fatbin;
#[cfg(test)]
mod tests;

pub use elf::{MachineCode, Sections, machine_code, sections};
pub use fatbin::{HEADER_LENGTH, MAGIC, length, read};

/// Where the bytes of an image end too early, or say what can't be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// It does not start as a fat binary does.
    #[error("not a fat binary: it starts with {found:#010x} instead of {MAGIC:#010x}")]
    NotFat {
        /// The first four bytes.
        found: u32,
    },
    /// A length points past the end.
    #[error("the image is cut off: {what} needs {needed} bytes at offset {offset}, and {left} are left")]
    Truncated {
        /// What was being read.
        what: &'static str,
        /// Where, in bytes.
        offset: usize,
        /// How many bytes it needs.
        needed: u64,
        /// How many there are.
        left: usize,
    },
    /// A compressed entry that can't be opened.
    #[error("the PTX for compute_{arch} can't be decompressed ({method}): {reason}")]
    Compression {
        /// Its architecture.
        arch: u32,
        /// `LZ4` or `zstd`.
        method: &'static str,
        /// What the decoder says.
        reason: String,
    },
    /// Decompressed bytes that are no text.
    #[error("the PTX for compute_{arch} is not text: byte {at} is not UTF-8")]
    NotText {
        /// Its architecture.
        arch: u32,
        /// Offset of the first wrong byte.
        at: usize,
    },
    /// Machine code alone.
    #[error(
        "the image has only machine code for {}; the simulator runs PTX: rebuild with `-gencode arch=compute_{device},code=compute_{device}`",
        names("sm_", present)
    )]
    NoPtx {
        /// Architectures of the machine code.
        present: Vec<u32>,
        /// The device's.
        device: u32,
    },
    /// PTX for newer devices alone.
    #[error(
        "the image has PTX for {}, which is newer than the simulated sm_{device}: rebuild with `-gencode arch=compute_{device},code=compute_{device}`, or simulate a newer device",
        names("compute_", present)
    )]
    TooNew {
        /// Architectures of the PTX.
        present: Vec<u32>,
        /// The device's.
        device: u32,
    },
    /// Nothing at all.
    #[error("the image is empty")]
    Empty,
    /// An object file that can't be read.
    #[error("the program's file can't be read: {reason}")]
    Elf {
        /// What is wrong.
        reason: String,
    },
}

/// `sm_75, sm_80 and sm_90`.
fn names(prefix: &str, architectures: &[u32]) -> String {
    let mut names: Vec<String> = architectures.iter().map(|arch| format!("{prefix}{arch}")).collect();
    match names.pop() {
        None => "no architecture".to_owned(),
        Some(last) if names.is_empty() => last,
        Some(last) => format!("{} and {last}", names.join(", ")),
    }
}

/// What an entry of a fat binary is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// PTX text.
    Ptx,
    /// Machine code (an ELF file).
    MachineCode,
    /// Something else, by its number: relocatable PTX, intermediate code of the optimiser.
    Other(u16),
}

/// How an entry is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// An LZ4 block.
    Lz4,
    /// A Zstandard frame.
    Zstd,
}

/// One entry: its head, and its bytes as they are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry<'a> {
    /// What it is.
    pub kind: EntryKind,
    /// Architecture: 90 for `sm_90` and `compute_90`.
    pub arch: u32,
    /// How it is stored.
    pub compression: Compression,
    /// Its length when decompressed, in bytes.
    pub length: u64,
    /// What is stored, without the padding.
    pub stored: &'a [u8],
}

/// PTX and the architecture that it was made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ptx {
    /// 90 for `compute_90`.
    pub arch: u32,
    /// The text.
    pub text: String,
}

/// The PTX that a device of architecture `device` (90 for `sm_90`) runs: the newest not above it.
///
/// # Errors
/// Where there is none, naming what there is; where it can't be decompressed.
pub fn choose(entries: &[Entry<'_>], device: u32) -> Result<Ptx, ImageError> {
    let architectures = |kind: EntryKind| {
        let mut found: Vec<u32> =
            entries.iter().filter(|entry| entry.kind == kind).map(|entry| entry.arch).collect();
        found.sort_unstable();
        found.dedup();
        found
    };
    let texts = entries.iter().filter(|entry| entry.kind == EntryKind::Ptx && entry.arch <= device);
    if let Some(newest) = texts.max_by_key(|entry| entry.arch) {
        return newest.text();
    }
    let (ptx, code) = (architectures(EntryKind::Ptx), architectures(EntryKind::MachineCode));
    if !ptx.is_empty() {
        return Err(ImageError::TooNew { present: ptx, device });
    }
    Err(if code.is_empty() { ImageError::Empty } else { ImageError::NoPtx { present: code, device } })
}

impl Entry<'_> {
    /// The entry's bytes, decompressed.
    ///
    /// # Errors
    /// Where it can't be decompressed.
    pub fn bytes(&self) -> Result<Vec<u8>, ImageError> {
        compression::open(self)
    }

    /// The entry as text.
    ///
    /// # Errors
    /// Where it can't be decompressed, or is no text.
    pub fn text(&self) -> Result<Ptx, ImageError> {
        let mut bytes = self.bytes()?;
        // The text is stored as a C string, and padded.
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        bytes.truncate(end);
        let text = String::from_utf8(bytes)
            .map_err(|error| ImageError::NotText { arch: self.arch, at: error.utf8_error().valid_up_to() })?;
        Ok(Ptx { arch: self.arch, text })
    }
}
