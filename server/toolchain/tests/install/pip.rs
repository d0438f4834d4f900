//! What pip says, and does not say, when it is asked where the wheels are.

use super::*;

/// A folder with a `python3` that answers as told.
fn python(folder: &Path, name: &str, script: &str) -> PathBuf {
    let bin = folder.join(name);
    fs::create_dir_all(&bin).unwrap();
    fs::write(bin.join("python3"), format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(bin.join("python3"), fs::Permissions::from_mode(0o755)).unwrap();
    bin
}

fn pip(folders: &[&PathBuf], root: &Path) -> Pip {
    let path = std::env::join_paths(folders).unwrap();
    Pip::new(&Search::new(Environment::from_variables([("PATH", path)]).with_root(root)))
}

#[tokio::test]
async fn a_pip_that_fetches_wheels_is_told_of_and_ends_when_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let script = format!(
        "echo $$ > {}/pid; echo $TMPDIR > {}/scratch; trap '' TERM INT; /usr/bin/head -c 3000000 /dev/zero > $TMPDIR/x.whl; while :; do /bin/sleep 1; done",
        root.display(),
        root.display()
    );
    let endless = python(root, "endless", &script);
    let path = std::env::join_paths([&endless]).unwrap();
    let search = Search::new(Environment::from_variables([("PATH", path)]).with_root(root));
    let installer =
        Installer::with_resolver(root.join("cache"), search.environment.clone(), Arc::new(Pip::new(&search)));
    let cancel = CancellationToken::new();
    let told = Mutex::new(0);
    let report = |progress: Progress| {
        if progress.stage == Stage::Resolving && progress.done >= 3_000_000 {
            *told.lock().unwrap() = progress.done;
            cancel.cancel();
        }
    };
    let error = installer.install(&Release::Latest, &report, &cancel).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "The installation was cancelled. Nothing was kept; the next try begins anew."
    );
    assert!(*told.lock().unwrap() >= 3_000_000);
    let said = |name: &str| fs::read_to_string(root.join(name)).unwrap().trim().to_owned();
    assert!(!Path::new(&format!("/proc/{}/exe", said("pid"))).exists(), "pip is gone");
    assert!(!Path::new(&said("scratch")).exists(), "and so is what it fetched");
}

#[tokio::test]
async fn pip_is_asked_and_its_refusals_understood() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let none = python(root, "none", "echo \"$0: No module named pip\" >&2; exit 1");
    let old = python(root, "old", "echo 'no such option: --report' >&2; exit 2");
    let lacking = python(
        root,
        "lacking",
        "echo 'ERROR: No matching distribution found for cuda-toolkit==13.9.*' >&2; exit 1",
    );
    let offline =
        python(root, "offline", "echo 'ERROR: Could not install packages: no route to host' >&2; exit 1");
    let hash = sha256(b"x");
    let report = format!(
        r#"{{"install": [{{"download_info": {{"url": "file:///x.whl", "archive_info": {{"hashes": {{"sha256": "{hash}"}}}}}}, "metadata": {{"name": "cuda-toolkit", "version": "13.5.0"}}}}]}}"#
    );
    fs::write(root.join("report"), report).unwrap();
    let good = format!(
        "for a; do [ \"$last\" = --report ] && /bin/cp {}/report \"$a\"; last=$a; done; echo \"$PIP_TARGET$PIP_USER\" > {}/env",
        root.display(),
        root.display()
    );
    let good = python(root, "good", &good);
    let asked = ["cuda-toolkit==13.9.*".to_string()];
    let cancel = CancellationToken::new();
    let dead = python(
        root,
        "dead",
        "echo \"WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'NewConnectionError('x: Connection refused')'\" >&2\n\
         echo 'ERROR: Could not find a version that satisfies the requirement cuda-toolkit (from versions: none)' >&2\n\
         echo 'ERROR: No matching distribution found for cuda-toolkit' >&2; exit 1",
    );
    let cases: [(&[&PathBuf], &str, Kind); 7] = [
        (&[], "No python3 was found", Kind::Missing),
        (&[&none], "has no pip", Kind::Missing),
        (&[&old], "older than 22.2", Kind::Missing),
        (&[&none, &old], "has no pip", Kind::Missing),
        (&[&lacking], "no wheel for cuda-toolkit==13.9.*", Kind::Missing),
        (&[&offline, &good], "no route to host", Kind::Missing),
        (&[&dead, &good], "No package index could be reached", Kind::Missing),
    ];
    for (folders, expected, kind) in cases {
        let error = pip(folders, root).resolve(&asked, &|_| {}, &cancel).await.unwrap_err();
        assert!(error.to_string().contains(expected) && error.kind() == kind, "{error}");
    }
    let found = pip(&[&none, &old, &good], root).resolve(&asked, &|_| {}, &cancel).await.unwrap();
    assert_eq!((found[0].version.as_str(), &found[0].sha256), ("13.5.0", &hash));
    assert_eq!(fs::read_to_string(root.join("env")).unwrap(), "0\n");
}
