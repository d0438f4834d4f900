//! Wheels with hostile or wrong contents are not installed.

use super::*;

/// An archive whose one entry has a name that no writer writes.
fn renamed(written: &str, wanted: &str) -> Vec<u8> {
    let mut bytes = archive(&[(written, b"x", 0o644)]);
    let mut changed = 0;
    for at in 0..bytes.len() - written.len() {
        if bytes[at..].starts_with(written.as_bytes()) {
            bytes[at..at + written.len()].copy_from_slice(wanted.as_bytes());
            changed += 1;
        }
    }
    assert_eq!((changed, written.len()), (2, wanted.len()));
    bytes
}

#[tokio::test]
async fn wheels_that_want_out_of_their_folder_are_refused() {
    let bomb = vec![0_u8; 50_000_000];
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (renamed("nvidia/cu13/aa/aa/aa/aa/evil", "nvidia/cu13/../../../../evil"), "leads out"),
        (renamed("aaaa/evil", "/tmp/evil"), "leads out"),
        (renamed("aa.bb.evil", "..\\..\\evil"), "leads out"),
        (archive_with_link("nvidia/cu13/bin/link", "/etc/passwd"), "a link"),
        (archive(&[("nvidia/cu13/bomb", &bomb, 0o644)]), "unpacks to"),
        (b"this is no archive".to_vec(), "can't be unpacked"),
        (archive(&[("nvidia/cu13/a", &noise(9000), 0o644)])[..5000].to_vec(), "can't be unpacked"),
    ];
    for (bytes, expected) in cases {
        let place = Place::new().await;
        let mut parts = parts_of("13.5");
        parts[4].2 = bytes;
        place.index.publish(&place.server, "13.5", parts);
        let error = place.install("13.5").await.unwrap_err();
        assert!(matches!(error, InstallError::BadWheel { .. }), "{error}");
        assert!(
            error.to_string().contains(expected) && error.to_string().contains("nvidia-cuda-cccl"),
            "{error}"
        );
        assert!(place.names("toolkits").is_empty() && !place.folder.path().join("evil").exists());
    }
}

#[tokio::test]
async fn what_does_not_work_is_not_installed() {
    let place = Place::new().await;
    let mut parts = parts_of("13.5");
    parts[2].2 = archive(&[("nvidia/cu13/lib/libnvvm.so.4", b"", 0o644)]);
    place.index.publish(&place.server, "13.5", parts);
    let error = place.install("13.5").await.unwrap_err().to_string();
    assert!(error.contains("nvvm/bin/cicc is in none of the wheels"), "{error}");

    let mut parts = parts_of("13.5");
    parts[0].2 = parts_of("13.4").remove(0).2;
    place.index.publish(&place.server, "13.5", parts);
    let error = place.install("13.5").await.unwrap_err().to_string();
    assert!(error.contains("says it is CUDA 13.4"), "{error}");

    let mut parts = parts_of("13.5");
    parts.remove(3);
    place.index.publish(&place.server, "13.5", parts);
    let error = place.install("13.5").await.unwrap_err().to_string();
    assert!(error.contains("`cudart`"), "{error}");
    assert!(place.names("toolkits").is_empty());
    assert!(matches!(place.install("13.7").await, Err(InstallError::NotFound { .. })));
    assert!(matches!(place.install("12.6").await, Err(InstallError::NoCompiler { .. })));
}
