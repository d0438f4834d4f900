//! The doctor on pretended machines: what it says, and that it says how to get what is missing.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use stitch_toolchain::discovery::Search;
use stitch_toolchain::doctor::{self, DeviceFacts, Health, Item, Status};
use stitch_toolchain::environment::Environment;

fn program(path: &Path, says: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\necho '{says}'\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn item<'a>(health: &'a Health, name: &str) -> &'a Item {
    health.items.iter().find(|item| item.name == name).unwrap_or_else(|| panic!("no {name} in {health:?}"))
}

/// An environment in which only what is in the folder is there.
fn bare(root: &Path) -> Environment {
    let variables = [("HOME", root.join("home")), ("PATH", root.join("bin"))];
    Environment::from_variables(variables).with_root(root)
}

#[tokio::test]
async fn on_a_bare_machine_it_says_what_is_missing_and_how_to_get_it() {
    let folder = tempfile::tempdir().unwrap();
    let health = doctor::examine(&Search::new(bare(folder.path())), None).await;
    assert!(!health.is_good());
    assert_eq!(item(&health, "CUDA toolkit").status, Status::Missing);
    assert_eq!(item(&health, "host compiler").status, Status::Missing);
    for optional in [
        "python3",
        "GPU driver",
        "ncu",
        "nsys",
        "compute-sanitizer",
        "cuobjdump",
        "nvdisasm",
        "clang",
        "C library",
    ] {
        assert_eq!(item(&health, optional).status, Status::Optional, "{optional}");
    }
    assert_eq!(item(&health, "cache folder").status, Status::Ok);
    for item in &health.items {
        assert!(item.status == Status::Ok || item.remedy.is_some(), "no remedy: {item:?}");
        assert!(!item.why.is_empty() && !item.detail.is_empty());
    }
    let json = serde_json::to_value(&health).unwrap();
    assert_eq!(json["schema"], "stitchcuda.doctor/1");
    assert_eq!(json["items"][0]["status"], "missing");
}

#[tokio::test]
async fn on_a_whole_machine_it_is_content_and_names_what_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for (place, version) in [("usr/local/cuda-12.8", "12.8"), ("usr/local/cuda-11.8", "11.8")] {
        let top = root.join(place);
        program(&top.join("bin/nvcc"), &format!("Cuda compilation tools, release {version}, V{version}.1"));
        fs::create_dir_all(top.join("include")).unwrap();
        fs::write(top.join("include/cuda_runtime.h"), "").unwrap();
        fs::create_dir_all(top.join("lib64")).unwrap();
        fs::write(top.join("lib64/libcudart.so"), "").unwrap();
    }
    program(&root.join("bin/g++"), "g++ (GCC) 13.2.0");
    program(&root.join("bin/getconf"), "glibc 2.36");
    program(&root.join("bin/python3"), "pip 23.1 from here");
    fs::create_dir_all(root.join("usr/lib64")).unwrap();
    fs::write(root.join("usr/lib64/libcuda.so.1"), "").unwrap();
    let search = Search::new(bare(root));
    let facts = DeviceFacts {
        driver: Some("12.4".parse().unwrap()),
        devices: vec!["NVIDIA H200, sm_90".into()],
        problem: None,
    };
    let health = doctor::examine(&search, Some(&facts)).await;
    assert!(health.is_good(), "{:?}", health.bad().collect::<Vec<_>>());
    let toolkit = item(&health, "CUDA toolkit");
    assert_eq!(
        (toolkit.version.as_deref(), toolkit.origin.as_deref()),
        (Some("12.8"), Some("in a usual place"))
    );
    let other = item(&health, "other CUDA toolkit");
    assert_eq!((other.version.as_deref(), other.status), (Some("11.8"), Status::Optional));
    assert!(item(&health, "GPU").detail.contains("H200"));

    let old_driver = DeviceFacts { driver: Some("11.4".parse().unwrap()), ..facts.clone() };
    let health = doctor::examine(&search, Some(&old_driver)).await;
    assert_eq!(item(&health, "GPU driver").status, Status::Problem);
    let broken = DeviceFacts { problem: Some("driver and library differ".into()), ..DeviceFacts::default() };
    let health = doctor::examine(&search, Some(&broken)).await;
    assert!(item(&health, "GPU driver").detail.contains("differ"));

    let mut configured = search.clone();
    configured.configured = Some(root.join("nowhere"));
    let health = doctor::examine(&configured, None).await;
    assert_eq!(item(&health, "CUDA toolkit").status, Status::Missing);
    assert!(item(&health, "CUDA toolkit setting").detail.contains("nowhere"));

    program(&root.join("bin/g++"), "g++ (GCC) 16.1.0");
    program(&root.join("bin/g++-14"), "g++-14 (GCC) 14.1.0");
    let health = doctor::examine(&search, None).await;
    let compiler = item(&health, "host compiler");
    assert_eq!((compiler.status, compiler.path.clone()), (Status::Problem, Some(root.join("bin/g++-14"))));
    assert!(compiler.remedy.as_ref().unwrap().contains("NVCC_CCBIN"));
}

#[tokio::test]
async fn a_cache_folder_that_cannot_be_written_is_a_problem() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("home/.cache")).unwrap();
    fs::write(folder.path().join("home/.cache/stitchcuda"), "a file").unwrap();
    let health = doctor::examine(&Search::new(bare(folder.path())), None).await;
    let cache = item(&health, "cache folder");
    assert!(cache.status == Status::Problem && cache.remedy.as_ref().unwrap().contains("XDG_CACHE_HOME"));
}
