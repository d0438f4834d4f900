//! The toolkits on disk: manifests, the lock between processes, putting in place, listing, removing.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::error::at;
use super::packages::{Part, Plan};
use super::{InstallError, Progress, Report, Stage};
use crate::discovery::Version;
use crate::removal::remove_folder;

const MANIFEST: &str = "manifest.json";
/// Says that a manifest is ours, and how it is written.
const SCHEMA: &str = "stitchcuda.toolkit/1";
/// Names of folders that are being made and being removed. Discovery does not look at hidden folders.
const NEW: &str = ".new-";
const GONE: &str = ".gone-";
/// How often a held lock is tried.
const LOCK_PAUSE: Duration = Duration::from_millis(200);

/// What was installed, and from what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// `stitchcuda.toolkit/1`.
    pub schema: String,
    /// The release.
    pub version: Version,
    /// The release with its update, such as 13.5.0.
    #[serde(rename = "fullVersion")]
    pub full_version: String,
    /// Size of all files, in bytes.
    pub bytes: u64,
    /// The wheels.
    pub wheels: Vec<WheelRecord>,
    /// The parts that these are, by their names among the extras of `cuda-toolkit`.
    #[serde(default)]
    pub parts: Vec<String>,
}

/// One wheel of an installation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WheelRecord {
    /// The package.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The hash of its file.
    pub sha256: String,
    /// The size of its file, in bytes.
    pub bytes: u64,
}

impl Manifest {
    pub(super) fn of(plan: &Plan, files: &[PathBuf], bytes: u64) -> Self {
        let record = |(wheel, file): (&super::Wheel, &PathBuf)| WheelRecord {
            name: wheel.name.clone(),
            version: wheel.version.clone(),
            sha256: wheel.sha256.clone(),
            bytes: fs::metadata(file).map_or(0, |metadata| metadata.len()),
        };
        Self {
            schema: SCHEMA.into(),
            version: plan.version,
            full_version: plan.full_version.clone(),
            bytes,
            wheels: plan.wheels.iter().zip(files).map(record).collect(),
            parts: plan.parts.clone(),
        }
    }

    /// The same on top of what was there.
    pub(super) fn over(mut self, before: &Self) -> Self {
        self.bytes += before.bytes;
        self.wheels.splice(0..0, before.wheels.iter().cloned());
        self
    }

    /// Whether these parts are there.
    pub(super) fn has(&self, asked: &[Part]) -> bool {
        asked.iter().all(|part| self.parts.iter().any(|known| known == part.name()))
    }
}

/// An installed toolkit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Installed {
    /// Its folder, which is the root of the toolkit.
    pub folder: PathBuf,
    /// What it was made from.
    pub manifest: Manifest,
}

/// A removed toolkit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Removed {
    /// The release.
    pub version: Version,
    /// Where it was.
    pub folder: PathBuf,
    /// How much room that made, in bytes.
    pub bytes: u64,
}

/// The toolkit of a release, if it is whole.
pub(super) fn load(toolkits: &Path, version: Version) -> Option<Installed> {
    let folder = toolkits.join(version.to_string());
    let manifest = manifest_in(&folder)?;
    (manifest.version == version && folder.join("bin/nvcc").is_file())
        .then_some(Installed { folder, manifest })
}

fn manifest_in(folder: &Path) -> Option<Manifest> {
    // A link would let a removal reach another place.
    if fs::symlink_metadata(folder).ok()?.is_symlink() {
        return None;
    }
    let text = fs::read(folder.join(MANIFEST)).ok()?;
    let manifest: Manifest = serde_json::from_slice(&text).ok()?;
    (manifest.schema == SCHEMA).then_some(manifest)
}

pub(super) fn list(toolkits: &Path) -> Vec<Installed> {
    let entries = fs::read_dir(toolkits).into_iter().flatten().flatten();
    let versions = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut installed: Vec<_> = versions.filter_map(|version| load(toolkits, version)).collect();
    installed.sort_by_key(|installed| std::cmp::Reverse(installed.manifest.version));
    installed
}

/// Says whether a release can be put in its place: nothing there, or a broken installation of ours.
pub(super) fn check_place(toolkits: &Path, version: Version) -> Result<(), InstallError> {
    let folder = toolkits.join(version.to_string());
    if fs::symlink_metadata(&folder).is_ok() && manifest_in(&folder).is_none() {
        return Err(InstallError::Foreign { folder });
    }
    Ok(())
}

/// Removes a release: moved aside in one step, so that nobody finds half of it, then deleted.
pub(super) fn remove(toolkits: &Path, version: Version) -> Result<Removed, InstallError> {
    let folder = toolkits.join(version.to_string());
    if fs::symlink_metadata(&folder).is_err() {
        let installed: Vec<_> =
            list(toolkits).iter().map(|installed| installed.manifest.version.to_string()).collect();
        let installed = if installed.is_empty() { "nothing".into() } else { installed.join(", ") };
        return Err(InstallError::NotInstalled { release: version.to_string(), installed });
    }
    let Some(manifest) = manifest_in(&folder) else { return Err(InstallError::Foreign { folder }) };
    put_aside(toolkits, &folder)?;
    Ok(Removed { version, folder, bytes: manifest.bytes })
}

fn put_aside(toolkits: &Path, folder: &Path) -> Result<(), InstallError> {
    let aside = tempfile::Builder::new()
        .prefix(GONE)
        .tempdir_in(toolkits)
        .map_err(|source| at(toolkits, "written", source))?;
    let aside = aside.keep();
    fs::rename(folder, aside.join("toolkit")).map_err(|source| at(folder, "moved", source))?;
    remove_folder(&aside).map_err(|source| at(&aside, "removed", source))
}

/// Removes what killed installations and removals left. Only under the lock.
pub(super) fn clear_half_made(toolkits: &Path) {
    for entry in fs::read_dir(toolkits).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if (name.starts_with(NEW) || name.starts_with(GONE))
            && let Err(error) = remove_folder(&entry.path())
        {
            tracing::warn!("{} could not be removed: {error}.", entry.path().display());
        }
    }
}

/// A toolkit that is being made. Dropped before it is put in place, it is removed.
pub(super) struct HalfMade {
    folder: PathBuf,
    in_place: bool,
    toolkits: PathBuf,
    version: Version,
}

impl HalfMade {
    pub(super) fn create(toolkits: &Path, version: Version) -> Result<Self, InstallError> {
        let folder = tempfile::Builder::new().prefix(&format!("{NEW}{version}-")).tempdir_in(toolkits);
        let folder = folder.map_err(|source| at(toolkits, "written", source))?.keep();
        Ok(Self { folder, in_place: false, toolkits: toolkits.to_path_buf(), version })
    }

    pub(super) fn path(&self) -> &Path {
        &self.folder
    }

    /// Takes over all files of an installed toolkit, as hard links where the file system has them, so that it costs no room.
    pub(super) fn begin_with(&self, installed: &Path) -> Result<(), InstallError> {
        link_all(installed, &self.folder).map_err(|source| at(installed, "taken over", source))
    }

    /// Writes the manifest, and moves the toolkit to its place in one step.
    pub(super) fn put_in_place(mut self, manifest: Manifest) -> Result<Installed, InstallError> {
        let path = self.folder.join(MANIFEST);
        let text =
            serde_json::to_vec_pretty(&manifest).map_err(|error| at(&path, "written", error.into()))?;
        fs::write(&path, text).map_err(|source| at(&path, "written", source))?;
        let readable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&self.folder, readable)
            .map_err(|source| at(&self.folder, "made readable", source))?;
        let place = self.toolkits.join(self.version.to_string());
        if fs::symlink_metadata(&place).is_ok() {
            put_aside(&self.toolkits, &place)?;
        }
        fs::rename(&self.folder, &place).map_err(|source| at(&place, "put in place", source))?;
        self.in_place = true;
        Ok(Installed { folder: place, manifest })
    }
}

fn link_all(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            link_all(&entry.path(), &target)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(entry.path())?, &target)?;
        } else if entry.file_name() != MANIFEST && fs::hard_link(entry.path(), &target).is_err() {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}

impl Drop for HalfMade {
    fn drop(&mut self) {
        if !self.in_place
            && let Err(error) = remove_folder(&self.folder)
        {
            tracing::warn!("{} could not be removed: {error}.", self.folder.display());
        }
    }
}

/// The lock between processes that install or remove. The kernel gives it back when a process dies.
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    pub(super) async fn acquire(toolkits: &Path, report: Report<'_>) -> Result<Self, InstallError> {
        fs::create_dir_all(toolkits).map_err(|source| at(toolkits, "made", source))?;
        let path = toolkits.join(".lock");
        let file = File::create(&path).map_err(|source| at(&path, "opened", source))?;
        let mut told = false;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(fs::TryLockError::Error(source)) => return Err(at(&path, "locked", source)),
                Err(fs::TryLockError::WouldBlock) => {
                    if !told {
                        let item = "another installation".into();
                        report(Progress { stage: Stage::Waiting, item, done: 0, total: None });
                        told = true;
                    }
                    tokio::time::sleep(LOCK_PAUSE).await;
                }
            }
        }
    }
}
