//! Connections that are cut, servers that refuse or lie, downloads that are cancelled or killed.

use super::*;

#[tokio::test]
async fn cut_connections_are_resumed_where_they_were_cut() {
    let place = Place::new().await;
    place.server.manners(LARGE, Manners { cut_after: Some(90_000), ..Manners::default() });
    place.install("13.5").await.unwrap();
    let starts = place.server.starts(LARGE);
    assert!(starts.len() >= 5 && starts.windows(2).all(|pair| pair[1] == pair[0] + 90_000), "{starts:?}");
}

#[tokio::test]
async fn a_server_without_ranges_costs_only_time() {
    let place = Place::new().await;
    let half = place.folder.path().join("cache/downloads");
    fs::create_dir_all(&half).unwrap();
    let bytes = parts_of("13.5").remove(2).2;
    fs::write(half.join(format!("{}.part", sha256(&bytes))), &bytes[..1000]).unwrap();
    place.server.manners(LARGE, Manners { no_ranges: true, ..Manners::default() });
    place.install("13.5").await.unwrap();
    assert_eq!(place.server.starts(LARGE), [1000]);
}

#[tokio::test]
async fn parts_that_are_whole_too_long_or_wrong_are_dealt_with() {
    let bytes = parts_of("13.5").remove(2).2;
    let mut too_long = bytes.clone();
    too_long.extend(b"more");
    let mut wrong = bytes.clone();
    wrong[5] ^= 1;
    for (part, starts) in [
        (bytes.clone(), vec![bytes.len() as u64]),
        (too_long, vec![bytes.len() as u64 + 4, 0]),
        (wrong, vec![bytes.len() as u64, 0]),
    ] {
        let place = Place::new().await;
        let folder = place.folder.path().join("cache/downloads");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{}.part", sha256(&bytes))), part).unwrap();
        place.install("13.5").await.unwrap();
        assert_eq!(place.server.starts(LARGE), starts);
    }
}

#[tokio::test]
async fn a_wrong_hash_is_tried_once_more_and_never_installed() {
    let place = Place::new().await;
    place.server.manners(LARGE, Manners { corrupt: 1, ..Manners::default() });
    place.install("13.5").await.unwrap();

    let place = Place::new().await;
    place.server.manners(LARGE, Manners { corrupt: 100, ..Manners::default() });
    let error = place.install("13.5").await.unwrap_err();
    assert!(matches!(error, InstallError::WrongHash { .. }) && error.kind() == Kind::Failed, "{error}");
    assert_eq!(place.server.starts(LARGE).len(), 2);
    assert!(place.names("toolkits").is_empty());
    assert!(!place.names("downloads").iter().any(|name| name.ends_with(".part")));
}

#[tokio::test]
async fn refusals_are_waited_out_or_explained() {
    let place = Place::new().await;
    place.server.manners(
        LARGE,
        Manners { refusals: vec![(503, "Retry-After: 0\r\n"), (429, ""), (500, "")], ..Manners::default() },
    );
    place.install("13.5").await.unwrap();

    for (status, expected, requests) in [
        (503, "4 times in a row", 4),
        (404, "gone", 1),
        (401, "credentials", 1),
        (403, "netrc", 1),
        (407, "proxy", 1),
        (418, "418", 1),
    ] {
        let place = Place::new().await;
        place.server.manners(LARGE, Manners { refusals: vec![(status, ""); 50], ..Manners::default() });
        let error = place.install("13.5").await.unwrap_err().to_string();
        assert!(
            error.contains(expected) && error.contains("nvidia-nvvm") && error.contains("127.0.0.1"),
            "{error}"
        );
        assert_eq!(place.server.starts(LARGE).len(), requests, "{status}");
    }
    let place = Place::new().await;
    place.index.change("nvidia-nvvm", |wheel| wheel.url = "http://user:hidden@127.0.0.1:1/x.whl".into());
    let error = place.install("13.5").await.unwrap_err().to_string();
    assert!(error.contains("127.0.0.1") && !error.contains("hidden"), "{error}");
}

#[tokio::test]
async fn a_cancelled_download_goes_on_from_its_part() {
    let place = Place::new().await;
    place
        .server
        .manners(LARGE, Manners { slow: Some((20_000, Duration::from_millis(60))), ..Manners::default() });
    let cancel = CancellationToken::new();
    let report = |progress: Progress| {
        if progress.stage == Stage::Downloading && progress.item == "nvidia-nvvm" && progress.done > 350_000 {
            cancel.cancel();
        }
    };
    let began = Instant::now();
    let error = place.installer().install(&Release::Latest, &report, &cancel).await.unwrap_err();
    assert!(matches!(error, InstallError::Cancelled { kept } if kept > 100_000), "{error}");
    assert!(error.kind() == Kind::Cancelled && error.to_string().contains("MB of its wheels are kept"));
    assert!(began.elapsed() < Duration::from_secs(10));
    let parts: Vec<_> = place.names("downloads").into_iter().filter(|name| name.ends_with(".part")).collect();
    assert_eq!(parts.len(), 1);
    assert!(place.names("toolkits").is_empty());
    place.server.manners(LARGE, Manners::default());
    place.install("13.5").await.unwrap();
    let starts = place.server.starts(LARGE);
    assert!(starts.len() == 2 && starts[1] > 0, "{starts:?}");
    assert_eq!(
        place.server.starts("nvidia-cuda-nvcc-13.5.whl").len(),
        2,
        "a fetched wheel is only checked again"
    );
}

/// Not a test of its own: the process that the next test kills in the middle of a download.
#[tokio::test]
#[ignore = "run by a_killed_download_goes_on_from_its_part"]
async fn download_to_be_killed() {
    let (Some(url), Some(folder)) = (std::env::var("TEST_URL").ok(), std::env::var_os("TEST_FOLDER")) else {
        return;
    };
    let server = Server::start().await;
    let index = Index::default();
    index.publish(&server, "13.5", parts_of("13.5"));
    index.change("nvidia-nvvm", |wheel| wheel.url.clone_from(&url));
    let installer = Installer::with_resolver(folder.into(), Environment::of_this_process(), Arc::new(index));
    installer.install(&Release::Latest, &|_| {}, &CancellationToken::new()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_download_goes_on_from_its_part() {
    let place = Place::new().await;
    let large = noise(4_000_000);
    let parts = || {
        let mut parts = parts_of("13.5");
        parts[2].2 = archive(&[("nvidia/cu13/nvvm/bin/cicc", &large, 0o755)]);
        parts
    };
    let hash = sha256(&parts()[2].2);
    place.index.publish(&place.server, "13.5", parts());
    let url = place.server.put(
        LARGE,
        parts().remove(2).2,
        Manners { slow: Some((100_000, Duration::from_millis(30))), ..Manners::default() },
    );
    // The process to be killed must agree on the hash, so it is told by the name of the part.
    let part = place.folder.path().join(format!("cache/downloads/{hash}.part"));
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "downloads::download_to_be_killed", "--ignored"])
        .env("TEST_URL", &url)
        .env("TEST_FOLDER", place.folder.path().join("cache"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let small =
        place.folder.path().join(format!("cache/downloads/{}.part", sha256(&parts_of("13.5").remove(2).2)));
    let began = Instant::now();
    while fs::metadata(&small).map_or(0, |metadata| metadata.len()) < 1_000_000 {
        assert!(began.elapsed() < Duration::from_secs(30));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // It was told the hash of the small wheel; here its bytes are what the server sent of the large one.
    fs::rename(&small, &part).unwrap();
    let have = fs::metadata(&part).unwrap().len();
    place.server.manners(LARGE, Manners::default());
    place.install("13.5").await.unwrap();
    assert_eq!(place.server.starts(LARGE).last(), Some(&have));
    assert_eq!(fs::read(place.folder.path().join("cache/toolkits/13.5/nvvm/bin/cicc")).unwrap(), large);
}
