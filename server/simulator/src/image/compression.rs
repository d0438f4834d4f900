//! Opens compressed entries. The length that an entry claims is not believed until the bytes are there.

use std::io::Read;

use super::{Compression, Entry, ImageError};

/// An LZ4 block holds at most 255 bytes for each byte of its own.
/// Source: LZ4 block format, "a length can be arbitrarily long": each further byte adds up to 255.
const LZ4_MAX_RATIO: u64 = 255;

/// The bytes of an entry.
pub(super) fn open(entry: &Entry<'_>) -> Result<Vec<u8>, ImageError> {
    match entry.compression {
        Compression::None => Ok(entry.stored.to_vec()),
        Compression::Lz4 => lz4(entry).map_err(|reason| failure(entry, "LZ4", reason)),
        Compression::Zstd => zstd(entry).map_err(|reason| failure(entry, "zstd", reason)),
    }
}

fn failure(entry: &Entry<'_>, method: &'static str, reason: String) -> ImageError {
    ImageError::Compression { arch: entry.arch, method, reason }
}

fn lz4(entry: &Entry<'_>) -> Result<Vec<u8>, String> {
    let most = (entry.stored.len() as u64 + 1) * LZ4_MAX_RATIO;
    if entry.length > most {
        return Err(format!("{} bytes can't hold the {} that are claimed", entry.stored.len(), entry.length));
    }
    let length = usize::try_from(entry.length).map_err(|error| error.to_string())?;
    let opened = lz4_flex::block::decompress(entry.stored, length).map_err(|error| error.to_string())?;
    checked(opened, entry)
}

fn zstd(entry: &Entry<'_>) -> Result<Vec<u8>, String> {
    let decoder = ruzstd::decoding::StreamingDecoder::new(entry.stored).map_err(|error| error.to_string())?;
    let mut opened = Vec::new();
    decoder
        .take(entry.length.saturating_add(1))
        .read_to_end(&mut opened)
        .map_err(|error| error.to_string())?;
    checked(opened, entry)
}

fn checked(opened: Vec<u8>, entry: &Entry<'_>) -> Result<Vec<u8>, String> {
    if opened.len() as u64 == entry.length {
        Ok(opened)
    } else {
        Err(format!("it holds {} bytes or more, not the {} that are claimed", opened.len(), entry.length))
    }
}
