//! Unpacks wheels into one toolkit, trusting nothing that an archive says of itself.
//!
//! Wheels put everything below `nvidia/cu13`; that prefix is dropped. Their metadata, which holds the licences, is kept
//! in `wheels`. Then what the wheels leave out is made: `libcudart.so`, for which the linker looks, and `lib64`.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use tokio_util::sync::CancellationToken;
use zip::ZipArchive;

use super::download::check_free;
use super::error::at;
use super::packages::{Extent, Plan};
use super::{InstallError, Progress, Report, Stage};

/// What a whole toolkit may hold (13.5 has 600 MB in 8,000 files), so that a bomb stops early.
const MOST_BYTES: u64 = 8 << 30;
const MOST_FILES: usize = 200_000;
/// A file that is packed tighter than this is a bomb. Deflate can't pack tighter than 1032; text packs about 10.
const TIGHTEST: u64 = 200;
/// Small files may pack tighter.
const SMALL: u64 = 1 << 20;

/// Unpacks all wheels into the folder. Returns how many bytes that made.
pub(super) async fn unpack_all(
    plan: &Plan,
    files: &[PathBuf],
    root: &Path,
    report: Report<'_>,
    cancel: &CancellationToken,
) -> Result<u64, InstallError> {
    let named = plan.wheels.iter().zip(&plan.extents);
    let names: Vec<_> = named.map(|(wheel, extent)| (wheel.name.clone(), *extent)).collect();
    let (sender, mut receiver) = tokio::sync::mpsc::channel(64);
    let work = tokio::task::spawn_blocking({
        let (files, root, cancel) = (files.to_vec(), root.to_path_buf(), cancel.clone());
        move || {
            unpack_blocking(&names, &files, &root, &cancel, &|progress| {
                // A reader that is behind misses a step, which it won't notice.
                let _ = sender.try_send(progress);
            })
        }
    });
    while let Some(progress) = receiver.recv().await {
        report(progress);
    }
    let ended = work.await;
    ended.unwrap_or_else(|error| Err(at(root, "unpacked into", io::Error::other(error))))
}

fn unpack_blocking(
    names: &[(String, Extent)],
    files: &[PathBuf],
    root: &Path,
    cancel: &CancellationToken,
    tell: &dyn Fn(Progress),
) -> Result<u64, InstallError> {
    let mut archives = Vec::new();
    let (mut total, mut count) = (0_u64, 0_usize);
    for ((name, extent), file) in names.iter().zip(files) {
        let bad = |problem: String| InstallError::BadWheel { wheel: name.clone(), problem };
        let opened = File::open(file).map_err(|source| at(file, "opened", source))?;
        let mut archive =
            ZipArchive::new(io::BufReader::new(opened)).map_err(|error| bad(error.to_string()))?;
        count += archive.len();
        for index in 0..archive.len() {
            let entry = archive.by_index_raw(index).map_err(|error| bad(error.to_string()))?;
            let size = entry.size();
            if entry.name().is_ok_and(|name| !keeps(*extent, &name, size)) {
                continue;
            }
            total = total.saturating_add(size);
            if entry.size() > SMALL && entry.size() / TIGHTEST > entry.compressed_size() {
                let (name, size) = (entry.name().unwrap_or_default().into_owned(), entry.size());
                return Err(bad(format!("{name} unpacks to {size} bytes")));
            }
        }
        if total > MOST_BYTES || count > MOST_FILES {
            return Err(bad(format!(
                "the toolkit would hold more than {MOST_BYTES} bytes or {MOST_FILES} files"
            )));
        }
        archives.push(archive);
    }
    check_free(root, total)?;
    let mut done = 0;
    for ((name, extent), archive) in names.iter().zip(&mut archives) {
        for index in 0..archive.len() {
            if cancel.is_cancelled() {
                return Err(InstallError::Cancelled { kept: 0 });
            }
            done += unpack_one(name, *extent, archive, index, root)?;
            tell(Progress { stage: Stage::Unpacking, item: name.clone(), done, total: Some(total) });
        }
    }
    Ok(done)
}

/// Libraries up to this size are unpacked with headers: stubs to link with, not code for devices.
const STUB: u64 = 4 << 20;

/// Whether an entry is unpacked. A name that leads elsewhere is, so that it is refused.
fn keeps(extent: Extent, name: &str, size: u64) -> bool {
    extent == Extent::Whole
        || place_of(name).is_none_or(|place| {
            place.starts_with("include")
                || place.starts_with("wheels")
                || (place.starts_with("lib") && size <= STUB)
        })
}

/// Unpacks one entry. Returns its size.
fn unpack_one(
    wheel: &str,
    extent: Extent,
    archive: &mut ZipArchive<io::BufReader<File>>,
    index: usize,
    root: &Path,
) -> Result<u64, InstallError> {
    let bad = |problem: String| InstallError::BadWheel { wheel: wheel.into(), problem };
    let mut entry = archive.by_index(index).map_err(|error| bad(error.to_string()))?;
    let name = entry.name().map_err(|error| bad(error.to_string()))?.into_owned();
    if entry.is_dir() || !keeps(extent, &name, entry.size()) {
        return Ok(0);
    }
    let place = place_of(&name).ok_or_else(|| bad(format!("the name {name:?} leads out of its folder")))?;
    if entry.is_symlink() || entry.encrypted() {
        return Err(bad(format!("{name} is a link or encrypted, as no wheel has it")));
    }
    let path = root.join(place);
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(|source| at(parent, "made", source))?;
    }
    let size = entry.size();
    let mode = entry.unix_mode().unwrap_or_default();
    // It may be a hard link into the toolkit that this one is made from.
    if extent == Extent::ForCompiling && fs::symlink_metadata(&path).is_ok() {
        fs::remove_file(&path).map_err(|source| at(&path, "replaced", source))?;
    }
    let mut file = File::create(&path).map_err(|source| at(&path, "made", source))?;
    let mut beginning = [0_u8; 4];
    let copied = copy(&mut entry, &mut file, size, &mut beginning).map_err(|trouble| match trouble {
        Trouble::Archive(problem) => bad(format!("{name}: {problem}")),
        Trouble::Disk(source) => at(&path, "written", source),
    })?;
    let in_bin = path.parent().and_then(Path::file_name).is_some_and(|folder| folder == "bin");
    let is_program =
        mode & 0o111 != 0 || (in_bin && (beginning.starts_with(b"\x7fELF") || beginning.starts_with(b"#!")));
    let permissions = fs::Permissions::from_mode(if is_program { 0o755 } else { 0o644 });
    fs::set_permissions(&path, permissions).map_err(|source| at(&path, "made executable", source))?;
    Ok(copied)
}

enum Trouble {
    Archive(String),
    Disk(io::Error),
}

/// Copies exactly as many bytes as the archive's directory promised, and keeps the first four.
fn copy(
    from: &mut impl Read,
    to: &mut impl Write,
    size: u64,
    beginning: &mut [u8; 4],
) -> Result<u64, Trouble> {
    let mut buffer = vec![0_u8; 1 << 17];
    let mut copied = 0_u64;
    loop {
        let count = from.read(&mut buffer).map_err(|error| Trouble::Archive(error.to_string()))?;
        if count == 0 {
            break;
        }
        if copied == 0 {
            let known = count.min(4);
            beginning[..known].copy_from_slice(&buffer[..known]);
        }
        copied += count as u64;
        if copied > size {
            return Err(Trouble::Archive("it holds more than its archive says".into()));
        }
        to.write_all(&buffer[..count]).map_err(Trouble::Disk)?;
    }
    if copied < size { Err(Trouble::Archive("it ends early".into())) } else { Ok(copied) }
}

/// Where an entry goes in the toolkit. `None` for a name that leads out of it.
fn place_of(name: &str) -> Option<PathBuf> {
    if name.contains('\\') || name.contains('\0') {
        return None;
    }
    let mut parts = Vec::new();
    for component in Path::new(name).components() {
        match component {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::CurDir => {}
            _ => return None,
        }
    }
    let is_release = |part: &str| {
        part.strip_prefix("cu")
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    match parts.as_slice() {
        [] => None,
        ["nvidia", release, rest @ ..] if is_release(release) && !rest.is_empty() => {
            Some(rest.iter().collect())
        }
        _ => Some(Path::new("wheels").join(parts.iter().collect::<PathBuf>())),
    }
}

/// Makes what the wheels leave out: for each `libNAME.so.13` the link `libNAME.so`, the folder name `lib64`, and `cicc`
/// where nvcc looks for it (the first wheels of 13.0 had it in `bin`).
pub(super) fn complete(root: &Path) -> io::Result<()> {
    let libraries = root.join("lib");
    for entry in fs::read_dir(&libraries).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some((stem, _)) = name.split_once(".so.") {
            let link = libraries.join(format!("{stem}.so"));
            if fs::symlink_metadata(&link).is_err() {
                symlink(&name, link)?;
            }
        }
    }
    if libraries.is_dir() && fs::symlink_metadata(root.join("lib64")).is_err() {
        symlink("lib", root.join("lib64"))?;
    }
    if root.join("bin/cicc").is_file() && !root.join("nvvm/bin/cicc").exists() {
        fs::create_dir_all(root.join("nvvm/bin"))?;
        symlink("../../bin/cicc", root.join("nvvm/bin/cicc"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_the_toolkit() {
        for (name, place) in [
            ("nvidia/cu13/bin/nvcc", "bin/nvcc"),
            ("nvidia/cu14/./lib/a", "lib/a"),
            ("nvidia/__init__.py", "wheels/nvidia/__init__.py"),
            ("nvidia/cublas/lib/x", "wheels/nvidia/cublas/lib/x"),
            ("a.dist-info/RECORD", "wheels/a.dist-info/RECORD"),
        ] {
            assert_eq!(place_of(name), Some(PathBuf::from(place)));
        }
        for name in
            ["../x", "/etc/passwd", "nvidia/cu13/../../../x", "", "a\\..\\b", "nvidia/cu13/..", "a\0b"]
        {
            assert_eq!(place_of(name), None, "{name:?}");
        }
    }
}
