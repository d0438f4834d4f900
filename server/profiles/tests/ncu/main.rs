//! Nsight Compute's output of real kernels, explained: each planted trait on its line, and nothing of it on the good twins.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod documentation;
mod pages;
mod proof;
mod told;

use std::fs::File;
use std::path::PathBuf;

use flate2::read::GzDecoder;
use stitch_findings::Code;
use stitch_profiles::kernel::{Explanation, Insight};
use stitch_profiles::ncu::{self, Report};

pub(crate) fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

pub(crate) fn read(name: &str) -> Report {
    let file = File::open(data(name)).unwrap();
    if name.ends_with(".gz") { ncu::read(GzDecoder::new(file)).unwrap() } else { ncu::read(file).unwrap() }
}

pub(crate) fn session(size: &str) -> Report {
    let mut report = read(&format!("h200/lines.{size}.ncu-raw.csv.gz"));
    report.merge(read(&format!("h200/lines.{size}.ncu-source.csv.gz")));
    report
}

pub(crate) fn told(explanation: &Explanation, code: Code) -> Vec<&Insight> {
    explanation.insights.iter().filter(|insight| insight.code == code).collect()
}
