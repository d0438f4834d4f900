//! One entry: a file with a head that says how long the rest is and what it hashes to.
//!
//! A folder is stored in one file too, as a row of records, so that it appears, is checked and goes as one.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Component, Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

const MAGIC: &[u8; 8] = b"stitch1\n";
/// The magic, the length (8 bytes) and the hash (16 bytes) of what follows.
pub(super) const HEAD: u64 = 32;

const FOLDER: u8 = 0;
const PLAIN: u8 = 1;
const EXECUTABLE: u8 = 2;
/// Longer paths are damage.
const LONGEST_PATH: u32 = 64 * 1024;

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

/// Hashes and counts what is written through it, and refuses what is too much.
struct Payload<'a> {
    file: BufWriter<&'a mut File>,
    hash: Xxh3,
    length: u64,
    limit: u64,
}

impl<'a> Payload<'a> {
    fn new(file: &'a mut File, limit: u64) -> io::Result<Self> {
        let mut file = BufWriter::new(file);
        file.write_all(&[0; HEAD as usize])?;
        Ok(Self { file, hash: Xxh3::new(), length: 0, limit: limit.saturating_sub(HEAD) })
    }

    /// Writes the head, now that it is known. The size of the whole file.
    fn finish(mut self) -> io::Result<u64> {
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(MAGIC)?;
        self.file.write_all(&self.length.to_le_bytes())?;
        self.file.write_all(&self.hash.digest128().to_le_bytes())?;
        self.file.flush()?;
        Ok(HEAD + self.length)
    }
}

impl Write for Payload<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() as u64 > self.limit - self.length {
            let message = format!("the value is larger than the cache may be ({} bytes)", self.limit);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        let written = self.file.write(bytes)?;
        self.hash.update(&bytes[..written]);
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes an entry for `value` of at most `limit` bytes. Its size.
pub(super) fn write(file: &mut File, value: &[u8], limit: u64) -> io::Result<u64> {
    let mut payload = Payload::new(file, limit)?;
    payload.write_all(value)?;
    payload.finish()
}

/// The value of an entry.
pub(super) fn read(file: &mut File) -> io::Result<Vec<u8>> {
    let (length, expected) = read_head(file)?;
    // The length equals the file's, so it is no larger than what was once put.
    let mut value = Vec::with_capacity(usize::try_from(length).map_err(|_| damaged("too long"))?);
    file.read_to_end(&mut value)?;
    let mut hash = Xxh3::new();
    hash.update(&value);
    if value.len() as u64 != length || hash.digest128() != expected {
        return Err(damaged("the value is not the one that was put"));
    }
    Ok(value)
}

fn read_head(file: &mut File) -> io::Result<(u64, u128)> {
    let mut head = [0; HEAD as usize];
    file.read_exact(&mut head).map_err(|_| damaged("the head is cut off"))?;
    let (magic, rest) = head.split_at(8);
    let (length, hash) = rest.split_at(8);
    let number =
        |bytes: &[u8]| bytes.iter().rev().fold(0_u128, |number, byte| (number << 8) | u128::from(*byte));
    let length = u64::try_from(number(length)).map_err(|_| damaged("the length is wrong"))?;
    if magic != MAGIC || Some(file.metadata()?.len()) != length.checked_add(HEAD) {
        return Err(damaged("the head is not ours, or the length is wrong"));
    }
    Ok((length, number(hash)))
}

/// Writes an entry for the folder `root`, of at most `limit` bytes. Its size.
pub(super) fn write_folder(file: &mut File, root: &Path, limit: u64) -> io::Result<u64> {
    let mut payload = Payload::new(file, limit)?;
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let mut children = std::fs::read_dir(root.join(&folder))?.collect::<io::Result<Vec<_>>>()?;
        children.sort_by_key(std::fs::DirEntry::file_name);
        for child in children {
            let path = folder.join(child.file_name());
            // Not followed: a link may lead out of the folder.
            let metadata = std::fs::symlink_metadata(child.path())?;
            if metadata.is_dir() {
                write_record(&mut payload, FOLDER, &path, 0)?;
                folders.push(path);
            } else if metadata.is_file() {
                let kind = if is_executable(&metadata) { EXECUTABLE } else { PLAIN };
                write_record(&mut payload, kind, &path, metadata.len())?;
                let copied = io::copy(&mut File::open(child.path())?.take(metadata.len()), &mut payload)?;
                if copied != metadata.len() {
                    return Err(unsupported(&path, "shrank while it was stored"));
                }
            } else {
                return Err(unsupported(&path, "is neither a file nor a folder"));
            }
        }
    }
    payload.finish()
}

fn write_record(payload: &mut Payload<'_>, kind: u8, path: &Path, length: u64) -> io::Result<()> {
    let name = path.to_str().ok_or_else(|| unsupported(path, "is not UTF-8"))?;
    let name_length = u32::try_from(name.len()).map_err(|_| unsupported(path, "is too long"))?;
    payload.write_all(&[kind])?;
    payload.write_all(&name_length.to_le_bytes())?;
    payload.write_all(name.as_bytes())?;
    payload.write_all(&length.to_le_bytes())
}

fn unsupported(path: &Path, what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, format!("{} {what}", path.display()))
}

fn is_executable(metadata: &std::fs::Metadata) -> bool {
    #[cfg(unix)]
    return std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o100 != 0;
    #[cfg(not(unix))]
    false
}

/// Makes the folder of an entry at `into`, which must not exist. Checked before anything is made, and made aside.
pub(super) fn read_folder(file: &mut File, into: &Path) -> io::Result<()> {
    if into.symlink_metadata().is_ok() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            format!("{} is there already", into.display()),
        ));
    }
    let (_, expected) = read_head(file)?;
    let mut hash = Xxh3::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        hash.update(&buffer[..read]);
    }
    if hash.digest128() != expected {
        return Err(damaged("the folder is not the one that was put"));
    }
    file.seek(SeekFrom::Start(HEAD))?;
    let parent = into.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let aside = tempfile::Builder::new().prefix(".stitchcuda-").tempdir_in(parent)?;
    let made = aside.path().join("folder");
    std::fs::create_dir(&made)?;
    let mut records = BufReader::new(file);
    while !records_end(&mut records)? {
        read_record(&mut records, &made)?;
    }
    std::fs::rename(&made, into)
}

fn records_end(records: &mut impl io::BufRead) -> io::Result<bool> {
    records.fill_buf().map(<[u8]>::is_empty)
}

fn read_record(records: &mut impl Read, root: &Path) -> io::Result<()> {
    let (mut kind, mut name_length, mut length) = ([0; 1], [0; 4], [0; 8]);
    records.read_exact(&mut kind)?;
    records.read_exact(&mut name_length)?;
    let name_length = u32::from_le_bytes(name_length);
    if name_length > LONGEST_PATH {
        return Err(damaged("a path is too long"));
    }
    let mut name = vec![0; name_length as usize];
    records.read_exact(&mut name)?;
    records.read_exact(&mut length)?;
    let name = PathBuf::from(String::from_utf8(name).map_err(|_| damaged("a path is not UTF-8"))?);
    if !name.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(damaged("a path leads out of the folder"));
    }
    let path = root.join(name);
    match kind[0] {
        FOLDER => std::fs::create_dir(&path),
        PLAIN | EXECUTABLE => {
            let mut file = File::create_new(&path)?;
            let length = u64::from_le_bytes(length);
            if io::copy(&mut records.take(length), &mut file)? != length {
                return Err(damaged("a file is cut off"));
            }
            if kind[0] == EXECUTABLE { make_executable(&file) } else { Ok(()) }
        }
        _ => Err(damaged("a record of an unknown kind")),
    }
}

fn make_executable(file: &File) -> io::Result<()> {
    #[cfg(unix)]
    {
        let mut permissions = file.metadata()?.permissions();
        let mode = std::os::unix::fs::PermissionsExt::mode(&permissions);
        std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, mode | 0o111);
        file.set_permissions(permissions)?;
    }
    Ok(())
}
