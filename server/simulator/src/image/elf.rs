//! Fat binaries in a program's file, for where the program can't hand them over itself: to say what is in it before it
//! runs.

use object::{Object, ObjectSection};

use super::{ImageError, fatbin};

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
