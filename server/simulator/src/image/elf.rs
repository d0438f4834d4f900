//! Fat binaries in a program's file, for where the program can't hand them over itself: to say what is in it before it
//! runs.

use object::{Object, ObjectSection};

use super::{EntryKind, ImageError, fatbin};

/// Sections of a program or library that hold fat binaries, as bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sections<'a> {
    /// `.nv_fatbin`: code that is complete.
    pub complete: Vec<&'a [u8]>,
    /// `__nv_relfatbin`: code of separate compilation (`-rdc=true`), to be linked together.
    pub relocatable: Vec<&'a [u8]>,
}

/// The fat binaries in an ELF file.
///
/// # Errors
/// Where it is no ELF file, or a fat binary in it is cut off.
pub fn sections(file: &[u8]) -> Result<Sections<'_>, ImageError> {
    let unreadable = |error: object::Error| ImageError::Elf { reason: error.to_string() };
    let parsed = object::File::parse(file).map_err(unreadable)?;
    let mut found = Sections::default();
    for section in parsed.sections() {
        let list = match section.name() {
            Ok(".nv_fatbin") => &mut found.complete,
            Ok("__nv_relfatbin") => &mut found.relocatable,
            _ => continue,
        };
        list.extend(images(section.data().map_err(unreadable)?)?);
    }
    Ok(found)
}

/// Sections of a cubin that hold what a device runs, or that say how much memory it needs for that. Which registers are used follows from the code;
/// lines, names and bounds of launches stand elsewhere.
const RUN: [&str; 4] = [".text", ".nv.constant", ".nv.shared", ".nv.global"];

/// The machine code in a program, to be compared with that of another. How its kernels are called, and how they were written, is no part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineCode {
    /// For each section its architecture, what it is, its size in bytes, and its bytes where it has any; sorted.
    sections: Vec<(u32, &'static str, u64, Vec<u8>)>,
}

/// The machine code in an ELF file. `None` where it has none.
///
/// # Errors
/// Where it is no ELF file, or what is in it can't be read.
pub fn machine_code(file: &[u8]) -> Result<Option<MachineCode>, ImageError> {
    let unreadable = |error: object::Error| ImageError::Elf { reason: error.to_string() };
    let images = sections(file)?;
    let mut found = Vec::new();
    for image in images.complete.iter().chain(&images.relocatable) {
        for entry in fatbin::read(image)?.iter().filter(|entry| entry.kind == EntryKind::MachineCode) {
            let cubin = entry.bytes()?;
            let parsed = object::File::parse(cubin.as_slice()).map_err(unreadable)?;
            for section in parsed.sections() {
                let name = section.name().map_err(unreadable)?;
                if let Some(kind) = RUN.iter().find(|kind| name.starts_with(**kind)) {
                    let bytes = section.data().map_err(unreadable)?.to_vec();
                    found.push((entry.arch, *kind, section.size(), bytes));
                }
            }
        }
    }
    found.sort_unstable();
    Ok((!found.is_empty()).then_some(MachineCode { sections: found }))
}

/// Fat binaries one after another, with padding between.
fn images(mut bytes: &[u8]) -> Result<Vec<&[u8]>, ImageError> {
    let mut found = Vec::new();
    while bytes.len() >= fatbin::HEADER_LENGTH {
        let Ok(length) = fatbin::length(bytes) else {
            // Padding: images are aligned to 8 bytes.
            bytes = &bytes[8..];
            continue;
        };
        let cut_off =
            ImageError::Truncated { what: "the fat binary", offset: 0, needed: length, left: bytes.len() };
        let length = usize::try_from(length).ok().filter(|&length| length <= bytes.len()).ok_or(cut_off)?;
        found.push(&bytes[..length]);
        bytes = &bytes[length.max(8)..];
    }
    Ok(found)
}
