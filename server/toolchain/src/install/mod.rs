//! Private CUDA toolkits, made from wheels in the user's cache folder.
//!
//! `pip` answers only where the wheels are (`pip install --dry-run --report`): so a person's own index, proxy and
//! credentials count, and no environment of theirs is written. The bytes are fetched here, because a toolkit is 300 MB:
//! a cut connection or a killed process must not begin it anew. What is fetched is checked against the hash that pip
//! gave, unpacked beside its place, tried out, and moved there in one step.
//!
//! ```text
//! <cache>/stitchcuda/downloads/<sha256>.part    resumed by the next try
//! <cache>/stitchcuda/toolkits/13.5/bin/nvcc     one folder a release, with a manifest.json
//! ```
//!
//! Releases before CUDA 13 can't be installed: their wheels hold `ptxas` and `libnvvm`, but not the driver `nvcc`
//! (looked at: nvidia-cuda-nvcc-cu12 12.9.86).

mod access;
mod download;
mod error;
mod packages;
mod pip;
mod store;
mod unpack;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::discovery::{Search, Version};
use crate::environment::Environment;
use crate::process::Program;
pub use access::Access;
pub use download::Patience;
pub(crate) use download::free_bytes;
pub use error::{InstallError, Kind};
pub use packages::{Part, Release};
pub use pip::Pip;
pub use store::{Installed, Manifest, Removed, WheelRecord};

/// What an installation is doing. `done` and `total` are bytes while downloading and unpacking; while resolving, `done` is
/// what pip fetched to answer; else they are zero.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// The step.
    pub stage: Stage,
    /// The wheel, or what is waited for.
    pub item: String,
    /// How much of the whole step is done.
    pub done: u64,
    /// How much there is, once it is known.
    pub total: Option<u64>,
}

/// The steps of an installation, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Stage {
    /// Another process installs or removes.
    Waiting,
    /// pip is asked which wheels there are.
    Resolving,
    /// The wheels are fetched.
    Downloading,
    /// The wheels are unpacked.
    Unpacking,
    /// The new nvcc is tried.
    Checking,
    /// The toolkit is in place.
    Done,
}

/// One wheel, as a resolver found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wheel {
    /// The package.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Where it is: `http`, `https` or `file`.
    pub url: String,
    /// The hash of its file, in hexadecimal.
    pub sha256: String,
    /// What it requires, as its metadata says (`Requires-Dist`).
    pub requires: Vec<String>,
}

/// Finds wheels. [`Pip`] is the one for people; tests have their own.
pub trait Resolver: Send + Sync {
    /// The wheel for each requirement (`name` or `name==1.2.*`), without what they depend on. `report` hears of what has to be
    /// fetched to answer.
    fn resolve<'a>(
        &'a self,
        requirements: &'a [String],
        report: Report<'a>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Vec<Wheel>, InstallError>>;

    /// How the index is reached: proxy, certificates, credentials.
    fn access<'a>(&'a self, cancel: &'a CancellationToken) -> BoxFuture<'a, Access>;
}

/// Called with each step of an installation.
pub type Report<'a> = &'a (dyn Fn(Progress) + Send + Sync);

/// Installs, lists and removes private toolkits in one cache folder.
#[derive(Clone)]
pub struct Installer {
    folder: PathBuf,
    environment: Environment,
    resolver: Arc<dyn Resolver>,
    patience: Patience,
    parts: Vec<Part>,
}

impl Installer {
    /// For the cache folder and the Python of this search.
    pub fn new(search: &Search) -> Self {
        let resolver = Arc::new(Pip::new(search));
        Self::with_resolver(search.environment.cache_folder(), search.environment.clone(), resolver)
    }

    /// With another folder and resolver.
    pub fn with_resolver(folder: PathBuf, environment: Environment, resolver: Arc<dyn Resolver>) -> Self {
        Self { folder, environment, resolver, patience: Patience::default(), parts: Vec::new() }
    }

    /// Sets how long failed downloads are tried again.
    pub fn patience(mut self, patience: Patience) -> Self {
        self.patience = patience;
        self
    }

    /// Asks for these libraries besides. Where the release is installed, they are added to it.
    pub fn with(mut self, parts: Vec<Part>) -> Self {
        self.parts = parts;
        self
    }

    /// The folder of the toolkits.
    pub fn toolkits(&self) -> PathBuf {
        self.folder.join("toolkits")
    }

    /// Installs a release, or returns it as it is if it is there. `report` is called at each step, and often while
    /// downloading. Cancelling leaves what was downloaded, for the next try, and returns when all that was started has ended.
    ///
    /// # Errors
    /// See [`InstallError`]; nothing half-made is ever in the place of a toolkit.
    pub async fn install(
        &self,
        release: &Release,
        report: Report<'_>,
        cancel: &CancellationToken,
    ) -> Result<Installed, InstallError> {
        release.check()?;
        if let Some(version) = release.exact()
            && let Some(installed) = self.load(version)
        {
            report(Progress { stage: Stage::Done, item: version.to_string(), done: 0, total: None });
            return Ok(installed);
        }
        match self.install_anew(release, report, cancel).await {
            Err(_) if cancel.is_cancelled() => Err(self.cancelled()),
            done => done,
        }
    }

    /// What to say of an installation that was cancelled: how much of it is kept.
    pub fn cancelled(&self) -> InstallError {
        InstallError::Cancelled { kept: download::kept(&self.folder.join("downloads")) }
    }

    /// The one installed release that `release` can mean.
    ///
    /// # Errors
    /// None is installed that it could mean, or several are.
    pub fn installed_as(&self, release: &Release) -> Result<Version, InstallError> {
        let all: Vec<Version> = self.list().iter().map(|installed| installed.manifest.version).collect();
        let meant: Vec<Version> = match release {
            // Whatever is in its folder: even one without a manifest has its own answer.
            Release::Exact(version) => return Ok(*version),
            Release::Major(major) => all.iter().copied().filter(|version| version.major == *major).collect(),
            Release::Latest => all.clone(),
        };
        let names =
            |versions: &[Version]| versions.iter().map(Version::to_string).collect::<Vec<_>>().join(", ");
        match meant.as_slice() {
            [only] => Ok(*only),
            [] => {
                let installed = if all.is_empty() { "none".to_owned() } else { names(&all) };
                Err(InstallError::NotInstalled { release: release.to_string(), installed })
            }
            several => Err(InstallError::Several { text: release.to_string(), installed: names(several) }),
        }
    }

    async fn install_anew(
        &self,
        release: &Release,
        report: Report<'_>,
        cancel: &CancellationToken,
    ) -> Result<Installed, InstallError> {
        let toolkits = self.toolkits();
        // What runs no program and writes nothing but its part files is dropped where it is.
        let cut = || InstallError::Cancelled { kept: 0 };
        let lock = store::Lock::acquire(&toolkits, report);
        let lock = cancel.run_until_cancelled(lock).await.ok_or_else(cut)??;
        store::clear_half_made(&toolkits);
        report(Progress { stage: Stage::Resolving, item: release.to_string(), done: 0, total: None });
        let (version, whole) = packages::look_up(release, self.resolver.as_ref(), report, cancel).await?;
        // It may be there: `latest` is known only now, and another process may have held the lock.
        if let Some(installed) = self.load(version) {
            report(Progress { stage: Stage::Done, item: version.to_string(), done: 0, total: None });
            return Ok(installed);
        }
        store::check_place(&toolkits, version)?;
        let before = store::load(&toolkits, version);
        let manifest = before.as_ref().map(|installed| &installed.manifest);
        let resolver = self.resolver.as_ref();
        let plan = packages::plan(version, &whole, &self.parts, manifest, resolver, report, cancel).await?;
        let access = self.resolver.access(cancel).await;
        let client = access.client()?;
        let downloads = self.folder.join("downloads");
        let fetcher =
            download::Fetcher { client, access: &access, folder: &downloads, patience: self.patience };
        let fetched = cancel.run_until_cancelled(fetcher.fetch_all(&plan.wheels, report)).await;
        let files = fetched.ok_or_else(cut)??;
        let new = store::HalfMade::create(&toolkits, plan.version)?;
        if let Some(before) = &before {
            new.begin_with(&before.folder)?;
        }
        let unpacked = unpack::unpack_all(&plan, &files, new.path(), report, cancel).await?;
        unpack::complete(new.path()).map_err(|source| error::at(new.path(), "completed", source))?;
        report(Progress { stage: Stage::Checking, item: "nvcc".into(), done: 0, total: None });
        self.try_out(new.path(), plan.version, cancel).await?;
        let manifest = Manifest::of(&plan, &files, unpacked);
        let manifest = match &before {
            Some(before) => manifest.over(&before.manifest),
            None => manifest,
        };
        let installed = new.put_in_place(manifest)?;
        download::remove_all(&files);
        drop(lock);
        report(Progress { stage: Stage::Done, item: plan.version.to_string(), done: 0, total: None });
        Ok(installed)
    }

    /// A release that is installed with all that is asked for.
    fn load(&self, version: Version) -> Option<Installed> {
        store::load(&self.toolkits(), version).filter(|installed| installed.manifest.has(&self.parts))
    }

    /// The toolkits that are installed, newest first.
    pub fn list(&self) -> Vec<Installed> {
        store::list(&self.toolkits())
    }

    /// Removes a toolkit, and downloads that nobody came back for. Only a folder with a manifest of ours is touched.
    ///
    /// # Errors
    /// If it is not installed, or its folder can't be removed.
    pub async fn remove(&self, version: Version) -> Result<Removed, InstallError> {
        let toolkits = self.toolkits();
        let _lock = store::Lock::acquire(&toolkits, &|_| {}).await?;
        let removed = store::remove(&toolkits, version)?;
        download::clear_old(&self.folder.join("downloads"));
        Ok(removed)
    }

    /// Runs the new nvcc, and looks for what it calls.
    async fn try_out(
        &self,
        root: &Path,
        version: Version,
        cancel: &CancellationToken,
    ) -> Result<(), InstallError> {
        let broken = |problem: String| InstallError::Broken { version, problem };
        for needed in
            ["bin/ptxas", "bin/cudafe++", "bin/fatbinary", "nvvm/bin/cicc", "include/cuda_runtime.h"]
        {
            if !root.join(needed).is_file() {
                return Err(broken(format!("{needed} is in none of the wheels")));
            }
        }
        let program = Program::new(root.join("bin/nvcc")).arg("--version");
        let program = program
            .environment(self.environment.clone().without_secrets())
            .time_limit(Duration::from_secs(30));
        let finished = program.run(cancel).await.map_err(|error| broken(error.to_string()))?;
        match Version::from_nvcc(&finished.stdout_text()) {
            Some(said) if said == version => Ok(()),
            Some(said) => Err(broken(format!("its nvcc says it is CUDA {said}"))),
            None => Err(broken(format!("nvcc --version failed: {}", finished.stderr_text().trim()))),
        }
    }
}
