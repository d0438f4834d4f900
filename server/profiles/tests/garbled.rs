//! Whatever a stream holds, a reader gives a report or says why not.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::Read as _;
use std::path::PathBuf;
use std::sync::LazyLock;

use flate2::read::GzDecoder;
use proptest::prelude::*;
use stitch_profiles::kernel::explain;
use stitch_profiles::{ncu, sanitizer};

fn data(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    let bytes = std::fs::read(path).unwrap();
    if !name.ends_with(".gz") {
        return bytes;
    }
    let mut text = Vec::new();
    GzDecoder::new(&bytes[..]).read_to_end(&mut text).unwrap();
    text
}

/// Beginnings of real output, short enough to be read many times.
static REAL: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let names = [
        ("cases/ncu_raw_mixed.csv", 8_000),
        ("h200/lines.small.ncu-source.csv.gz", 40_000),
        ("h200/kernels.ncu-details.csv.gz", 20_000),
        ("cases/sanitizer_variants.txt", 8_000),
        ("h200/bad.compute-sanitizer.txt", 8_000),
    ];
    names.iter().map(|(name, most)| data(name).into_iter().take(*most).collect()).collect()
});

fn read_all(bytes: &[u8]) {
    match ncu::read(bytes) {
        Ok(report) => {
            for launch in &report.launches {
                assert!(launch.metrics.values().all(|value| value.is_finite()));
                for insight in explain(launch).insights {
                    // A garbled name may have brackets of its own.
                    let words = insight.limits.replace(&launch.kernel.base, "");
                    assert!(!words.contains(['{', '[']), "{}", insight.limits);
                    assert!(insight.gain.is_none_or(|gain| (0.0..=1.0).contains(&gain.share)));
                }
            }
        }
        Err(error) => assert!(error.to_string().len() > 40),
    }
    match sanitizer::read(bytes) {
        Ok(report) => report.defects.iter().for_each(|defect| {
            assert!(!defect.message().is_empty() && !defect.advice().is_empty());
            let _ = (defect.kernel(), defect.place());
        }),
        Err(error) => assert!(error.to_string().len() > 40),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_truncated_stream_is_read_or_refused(which in 0_usize..5, part in 0.0_f64..1.0) {
        let text = &REAL[which];
        read_all(&text[..(text.len() as f64 * part) as usize]);
    }

    #[test]
    fn a_garbled_stream_is_read_or_refused(
        which in 0_usize..5,
        edits in prop::collection::vec((0.0_f64..1.0, prop::sample::select(&b"\",\n\r=x0-.:()<>&;[]{}+ \xff\x00"[..])), 1..40),
    ) {
        let mut text = REAL[which].clone();
        for (at, byte) in edits {
            let at = (text.len() as f64 * at) as usize;
            text[at] = byte;
        }
        read_all(&text);
    }

    #[test]
    fn any_text_with_the_tools_words_in_it_is_read_or_refused(
        words in prop::collection::vec(prop::sample::select(&[
            "========= ", "Invalid __global__ ", "at ", "0x", "+0x9", " in ", "a.cu:3", ":", "by thread (", "1,", ")", "and is ", "\n",
            "ERROR SUMMARY: ", "99999999999999999999", "\"ID\",\"Kernel Name\",\"Metric Name\"", "\"File Path\",\"x\"", "\"Line No\",\"Source\",\"Address\",\"Source\"",
            "\"1\",\"@P0 LDS R6, [R7]\",\"0x10\",\"@!P9 FOO.64 R65535, R0\"", "<ComputeSanitizerOutput>", "<record>", "</record>", "é", "\"", ",",
        ][..]), 0..60),
    ) {
        read_all(words.concat().as_bytes());
    }
}
