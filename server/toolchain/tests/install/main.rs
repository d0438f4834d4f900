//! Installs pretended toolkits from a local server that misbehaves.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod downloads;
mod pip;
#[path = "../support/mod.rs"]
mod support;
mod wheels;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use stitch_toolchain::discovery::{self, Origin, Search, Version};
use stitch_toolchain::environment::Environment;
use stitch_toolchain::install::{
    InstallError, Installed, Installer, Kind, Patience, Pip, Progress, Release, Resolver, Stage,
};
use support::{Index, Manners, Server, archive, archive_with_link, noise, parts_of, sha256};
use tokio_util::sync::CancellationToken;

const LARGE: &str = "nvidia-nvvm-13.5.whl";

struct Place {
    folder: tempfile::TempDir,
    server: Server,
    index: Index,
}

impl Place {
    async fn new() -> Self {
        let place = Self {
            folder: tempfile::tempdir().unwrap(),
            server: Server::start().await,
            index: Index::default(),
        };
        place.index.publish(&place.server, "13.5", parts_of("13.5"));
        place
    }

    fn installer(&self) -> Installer {
        let quick = Patience {
            tries: 4,
            first_pause: Duration::from_millis(5),
            longest_pause: Duration::from_millis(50),
        };
        let environment = Environment::from_variables([("PATH", "/usr/bin:/bin")]);
        let folder = self.folder.path().join("cache");
        Installer::with_resolver(folder, environment, Arc::new(self.index.clone())).patience(quick)
    }

    async fn install(&self, release: &str) -> Result<Installed, InstallError> {
        self.installer().install(&release.parse()?, &|_| {}, &CancellationToken::new()).await
    }

    fn names(&self, place: &str) -> Vec<String> {
        let entries =
            fs::read_dir(self.folder.path().join("cache").join(place)).into_iter().flatten().flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.retain(|name| name != ".lock");
        names.sort();
        names
    }
}

fn version(text: &str) -> Version {
    text.parse().unwrap()
}

#[tokio::test]
async fn a_toolkit_is_installed_whole_and_found() {
    let place = Place::new().await;
    let seen: Mutex<Vec<Progress>> = Mutex::default();
    let report = |progress: Progress| seen.lock().unwrap().push(progress);
    let installed =
        place.installer().install(&Release::Latest, &report, &CancellationToken::new()).await.unwrap();
    let root = &installed.folder;
    assert_eq!(*root, place.folder.path().join("cache/toolkits/13.5"));
    let mode = |file: &str| fs::metadata(root.join(file)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("bin/nvcc"), mode("bin/ptxas"), mode("bin/nvcc.profile")), (0o755, 0o755, 0o644));
    assert_eq!(fs::read_link(root.join("lib/libcudart.so")).unwrap(), PathBuf::from("libcudart.so.13"));
    assert_eq!(fs::read(root.join("lib64/libcudart.so")).unwrap(), b"x");
    assert_eq!(fs::read(root.join("wheels/part.dist-info/licenses/License.txt")).unwrap(), b"terms");
    assert_eq!(fs::read(root.join("nvvm/bin/cicc")).unwrap(), noise(400_000));
    assert_eq!((installed.manifest.full_version.as_str(), installed.manifest.wheels.len()), ("13.5.0", 5));
    assert!(place.names("downloads").is_empty());

    let seen = seen.into_inner().unwrap();
    let mut stages: Vec<_> = seen.iter().map(|progress| progress.stage).collect();
    stages.dedup();
    assert_eq!(
        stages,
        [Stage::Resolving, Stage::Downloading, Stage::Unpacking, Stage::Checking, Stage::Done]
    );
    for stage in [Stage::Downloading, Stage::Unpacking] {
        let of_stage: Vec<_> = seen.iter().filter(|progress| progress.stage == stage).collect();
        assert!(
            of_stage.windows(2).all(|pair| pair[0].done <= pair[1].done && pair[0].total == pair[1].total)
        );
        assert_eq!(of_stage.last().map(|last| Some(last.done)), of_stage.last().map(|last| last.total));
    }

    let cache = place.folder.path().join("xdg/stitchcuda");
    fs::create_dir_all(cache.parent().unwrap()).unwrap();
    fs::rename(place.folder.path().join("cache"), &cache).unwrap();
    let xdg = place.folder.path().join("xdg");
    let variables = [("XDG_CACHE_HOME", xdg.as_os_str()), ("PATH", "/usr/bin:/bin".as_ref())];
    let search = Search::new(Environment::from_variables(variables).with_root(place.folder.path()));
    let toolkit =
        tokio::task::spawn_blocking(move || discovery::find(&search)).await.unwrap().chosen.unwrap();
    assert_eq!((toolkit.origin, toolkit.version), (Origin::Private, version("13.5")));
    assert_eq!(toolkit.root, cache.join("toolkits/13.5"));
}

#[tokio::test]
async fn versions_lie_side_by_side_and_are_removed_one_by_one() {
    let place = Place::new().await;
    place.index.publish(&place.server, "13.10", parts_of("13.10"));
    place.install("13.5").await.unwrap();
    place.install("13.10").await.unwrap();
    let listed = || {
        place
            .installer()
            .list()
            .iter()
            .map(|installed| installed.manifest.version.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(listed(), ["13.10", "13.5"]);
    let requests = place.server.starts(LARGE).len();
    place.install("13.5").await.unwrap();
    assert_eq!(place.server.starts(LARGE).len(), requests, "what is there is not fetched again");

    let removed = place.installer().remove(version("13.5")).await.unwrap();
    assert!(removed.bytes > 400_000 && !removed.folder.exists());
    assert_eq!((listed(), place.names("toolkits")), (vec!["13.10".to_string()], vec!["13.10".to_string()]));
    let error = place.installer().remove(version("13.5")).await.unwrap_err();
    assert!(error.to_string().contains("Installed: 13.10") && error.kind() == Kind::Usage, "{error}");

    // What we did not make is not touched, neither by removing nor by installing.
    let toolkits = place.folder.path().join("cache/toolkits");
    fs::create_dir_all(toolkits.join("13.5/bin")).unwrap();
    fs::create_dir_all(place.folder.path().join("mine")).unwrap();
    fs::copy(toolkits.join("13.10/manifest.json"), place.folder.path().join("mine/manifest.json")).unwrap();
    std::os::unix::fs::symlink(place.folder.path().join("mine"), toolkits.join("13.6")).unwrap();
    for text in ["13.5", "13.6"] {
        assert!(
            matches!(place.installer().remove(version(text)).await, Err(InstallError::Foreign { .. })),
            "{text}"
        );
    }
    assert!(matches!(place.install("13.5").await, Err(InstallError::Foreign { .. })));
    assert!(toolkits.join("13.5/bin").exists() && place.folder.path().join("mine/manifest.json").exists());
    assert_eq!(listed(), ["13.10"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_at_once_download_once_and_leftovers_are_cleared() {
    let place = Arc::new(Place::new().await);
    let left = place.folder.path().join("cache/toolkits/.new-13.5-dead/bin");
    fs::create_dir_all(left).unwrap();
    place
        .server
        .manners(LARGE, Manners { slow: Some((100_000, Duration::from_millis(100))), ..Manners::default() });
    let waited: Arc<Mutex<bool>> = Arc::default();
    let jobs: Vec<_> = (0..2)
        .map(|_| {
            let (place, waited) = (Arc::clone(&place), Arc::clone(&waited));
            tokio::spawn(async move {
                let report = |progress: Progress| *waited.lock().unwrap() |= progress.stage == Stage::Waiting;
                place.installer().install(&Release::Latest, &report, &CancellationToken::new()).await
            })
        })
        .collect();
    for job in jobs {
        job.await.unwrap().unwrap();
    }
    assert_eq!(place.server.starts(LARGE), [0]);
    assert!(*waited.lock().unwrap());
    assert_eq!(place.names("toolkits"), ["13.5"]);
}

#[tokio::test]
async fn folders_that_cannot_be_made_are_named() {
    let place = Place::new().await;
    fs::write(place.folder.path().join("cache"), "a file").unwrap();
    let error = place.install("13.5").await.unwrap_err();
    assert!(
        matches!(error, InstallError::File { .. })
            && error.to_string().contains("cache/toolkits could not be made"),
        "{error}"
    );
}

#[tokio::test]
async fn a_release_is_removed_by_its_major_number_where_that_means_one() {
    let place = Place::new().await;
    let ask = |text: &str| place.installer().installed_as(&text.parse().unwrap());
    let error = ask("13").unwrap_err();
    assert!(error.kind() == Kind::Usage, "{error}");
    assert!(error.to_string().contains("CUDA 13 is not installed here"), "{error}");
    place.install("13.5").await.unwrap();
    for text in ["13", "latest", "13.5"] {
        assert_eq!(ask(text).unwrap().to_string(), "13.5");
    }
    assert!(ask("14").unwrap_err().to_string().contains("Installed: 13.5"));
}
