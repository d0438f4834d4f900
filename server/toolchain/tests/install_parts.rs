//! Adds libraries to pretended toolkits from a local server.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code, reason = "other tests of installation use the rest")]
mod support;

use std::sync::Arc;

use stitch_toolchain::environment::Environment;
use stitch_toolchain::install::{Installer, Kind, Part};
use support::{Index, Server, archive, noise, parts_of};
use tokio_util::sync::CancellationToken;

struct Place {
    folder: tempfile::TempDir,
    server: Server,
    index: Index,
}

impl Place {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = Self { folder, server: Server::start().await, index: Index::default() };
        place.index.publish(&place.server, "13.5", parts_of("13.5"));
        place
    }
}

#[tokio::test]
async fn libraries_are_added_with_their_headers_and_without_their_bulk() {
    let place = Place::new().await;
    let large = noise(5 << 20);
    let library = archive(&[
        ("nvidia/cu13/include/cublas_v2.h", b"// blas", 0o644),
        ("nvidia/cu13/lib/libcublas.so.13", large.as_slice(), 0o644),
        ("nvidia/cu13/lib/libnvblas.so.13", b"small", 0o644),
        ("nvidia_cublas.dist-info/licenses/License.txt", b"terms", 0o644),
    ]);
    let with_cublas = || {
        let mut parts = parts_of("13.5");
        parts.push(("cublas", "nvidia-cublas".to_owned(), library.clone()));
        parts
    };
    let asked = || vec!["cublas".parse::<Part>().unwrap()];
    let install = |place: &Place, parts: Vec<Part>| {
        let environment = Environment::from_variables([("PATH", "/usr/bin:/bin")]);
        let index = Arc::new(place.index.clone());
        let folder = place.folder.path().join("cache");
        let installer = Installer::with_resolver(folder, environment, index).with(parts);
        async move { installer.install(&"13.5".parse().unwrap(), &|_| {}, &CancellationToken::new()).await }
    };
    let before = install(&place, Vec::new()).await.unwrap();
    let error = install(&place, asked()).await.unwrap_err();
    assert!(error.to_string().contains("no part `cublas`"), "{error}");

    place.index.publish(&place.server, "13.5", with_cublas());
    let added = install(&place, asked()).await.unwrap();
    assert_eq!(added.folder, before.folder);
    let has = |name: &str| added.folder.join(name).exists();
    assert!(has("include/cublas_v2.h") && has("lib/libnvblas.so") && !has("lib/libcublas.so.13"));
    assert!(has("bin/nvcc") && has("lib64/libcudart.so") && has("nvvm/bin/cicc"));
    assert_eq!(added.manifest.wheels.len(), before.manifest.wheels.len() + 1);
    assert!(added.manifest.bytes < before.manifest.bytes + 1000);
    // Nothing is fetched for what is there.
    place.index.publish(&place.server, "13.5", parts_of("13.5"));
    assert_eq!(install(&place, asked()).await.unwrap(), added);

    let other = Place::new().await;
    other.index.publish(&other.server, "13.5", with_cublas());
    let at_once = install(&other, asked()).await.unwrap();
    assert_eq!(at_once.manifest.bytes, added.manifest.bytes);
    assert!(at_once.folder.join("include/cublas_v2.h").exists());
    assert!(!at_once.folder.join("lib/libcublas.so.13").exists());
    assert_eq!("blas".parse::<Part>().unwrap_err().kind(), Kind::Usage);
}
