//! The container: a head, then entries, each with a head of its own.
//!
//! ```text
//! head    0 u32 magic   4 u16 version   6 u16 length of this head   8 u64 bytes of all entries
//! entry   0 u16 kind    2 u16 version   4 u32 length of this head   8 u64 bytes stored, padded to 8
//!        16 u32 bytes stored, without padding (0 where not compressed)
//!        24 u16 minor, u16 major: version of the PTX or of the machine code's ABI
//!        28 u32 architecture           40 u64 flags                56 u64 bytes when decompressed
//! ```

use super::{Compression, Entry, EntryKind, ImageError};

/// The first four bytes of a fat binary, little endian.
pub const MAGIC: u32 = 0xBA55_ED50;

/// Bytes of the head that [`length`] reads.
pub const HEADER_LENGTH: usize = 16;

/// Bytes of an entry's head up to the last field that is read here.
const ENTRY_HEAD: usize = 64;

/// Flags of an entry.
const LZ4: u64 = 0x2000;
const ZSTD: u64 = 0x8000;

const KIND_PTX: u16 = 1;
const KIND_MACHINE_CODE: u16 = 2;

/// Bytes with a place in them.
struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    /// The next `needed` bytes.
    fn take(&mut self, what: &'static str, needed: u64) -> Result<&'a [u8], ImageError> {
        let left = self.bytes.len() - self.offset;
        let cut_off = ImageError::Truncated { what, offset: self.offset, needed, left };
        let count = usize::try_from(needed).ok().filter(|&count| count <= left).ok_or(cut_off)?;
        let taken = &self.bytes[self.offset..self.offset + count];
        self.offset += count;
        Ok(taken)
    }
}

/// `N` bytes at `at` of a head that is long enough.
fn field<const N: usize>(head: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&head[at..at + N]);
    bytes
}

fn u16_at(head: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(field(head, at))
}

fn u32_at(head: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(field(head, at))
}

fn u64_at(head: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(field(head, at))
}

/// How long a fat binary is in all, from its first [`HEADER_LENGTH`] bytes.
///
/// # Errors
/// Where it is none.
pub fn length(head: &[u8]) -> Result<u64, ImageError> {
    let head = Reader { bytes: head, offset: 0 }.take("the head", HEADER_LENGTH as u64)?;
    let found = u32_at(head, 0);
    if found != MAGIC {
        return Err(ImageError::NotFat { found });
    }
    Ok(u64::from(u16_at(head, 6)).saturating_add(u64_at(head, 8)))
}

/// Reads the entries of the fat binary that `bytes` starts with. What follows it is left alone.
///
/// # Errors
/// Where it is none, or is cut off.
pub fn read(bytes: &[u8]) -> Result<Vec<Entry<'_>>, ImageError> {
    let total = length(bytes)?;
    let whole = Reader { bytes, offset: 0 }.take("the fat binary", total)?;
    let mut reader = Reader { bytes: whole, offset: 0 };
    // It may claim to be shorter than its head.
    Reader { bytes: whole, offset: 0 }.take("the head", HEADER_LENGTH as u64)?;
    reader.take("the head", u64::from(u16_at(whole, 6)))?;
    let mut entries = Vec::new();
    while reader.offset < whole.len() {
        entries.push(entry(&mut reader)?);
    }
    Ok(entries)
}

fn entry<'a>(reader: &mut Reader<'a>) -> Result<Entry<'a>, ImageError> {
    let head = reader.take("an entry's head", ENTRY_HEAD as u64)?;
    let rest = u64::from(u32_at(head, 4)).saturating_sub(ENTRY_HEAD as u64);
    reader.take("the rest of an entry's head", rest)?;
    let padded = reader.take("an entry", u64_at(head, 8))?;
    let flags = u64_at(head, 40);
    let compression = match (flags & LZ4 != 0, flags & ZSTD != 0) {
        (_, true) => Compression::Zstd,
        (true, false) => Compression::Lz4,
        (false, false) => Compression::None,
    };
    let unpadded = u32_at(head, 16) as usize;
    let stored =
        if compression == Compression::None { padded } else { padded.get(..unpadded).unwrap_or(padded) };
    let kind = match u16_at(head, 0) {
        KIND_PTX => EntryKind::Ptx,
        KIND_MACHINE_CODE => EntryKind::MachineCode,
        other => EntryKind::Other(other),
    };
    Ok(Entry { kind, arch: u32_at(head, 28), compression, length: u64_at(head, 56), stored })
}
