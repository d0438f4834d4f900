//! What a hover says of real kernels and lines: the whole text, as it was recorded on an H200.

#![allow(clippy::unwrap_used)]

mod common;

use std::fs::File;
use std::path::Path;

use expect_test::expect_file;
use flate2::read::GzDecoder;
use stitch_findings::Code;
use stitch_profiles::kernel::KernelLaunch;
use stitch_profiles::profile::{Profile, Way};
use stitch_profiles::text::{self, Occupancy};
use stitch_profiles::{ncu, nsys, python};

fn data(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn read(name: &str) -> ncu::Report {
    ncu::read(GzDecoder::new(File::open(data(name)).unwrap())).unwrap()
}

fn launches() -> Vec<KernelLaunch> {
    let mut report = read("h200/lines.full.ncu-raw.csv.gz");
    report.merge(read("h200/lines.full.ncu-source.csv.gz"));
    report.launches
}

fn known(_: &KernelLaunch) -> Occupancy {
    Occupancy {
        step: Some("at most 56 registers a thread (now 64): 5 blocks, 62%".into()),
        ..Occupancy::default()
    }
}

#[test]
fn kernels_of_nsight_compute() {
    let launches = launches();
    for name in ["scale_strided", "transpose_conflict", "spill_registers", "fma_chain"] {
        let ours: Vec<&KernelLaunch> = launches.iter().filter(|launch| launch.kernel.base == name).collect();
        let told = text::launches(&ours, known).unwrap();
        expect_file![data(&format!("text/{name}.md"))].assert_eq(&told);
    }
    assert_eq!(text::launches(&[], known), None);
}

#[test]
fn lines_of_nsight_compute() {
    let launches = launches();
    let is_file = |name: &str| name.ends_with("lines.cu");
    let told: Vec<String> = [14, 40, 63, 88, 126]
        .iter()
        .map(|line| text::line(&launches, &is_file, *line, &[]).unwrap())
        .collect();
    expect_file![data("text/lines.md")].assert_eq(&told.join("\n---\n\n"));
    // What a finding beside it says is not said again; what warps wait for is.
    let rest = |number: u32, code: Code| text::line(&launches, &is_file, number, &[code]).unwrap();
    let [strided, conflict] = [rest(14, Code::NCU_UNCOALESCED_ACCESS), rest(40, Code::NCU_BANK_CONFLICT)];
    assert!(!strided.contains("sectors of global") && strided.contains("fixed latency"), "{strided}");
    assert!(!conflict.contains("wavefronts") && conflict.contains("lanes at work"), "{conflict}");
    assert!(rest(14, Code::NCU_BANK_CONFLICT).contains("sectors of global"));
    assert_eq!(text::line(&launches, &is_file, 1, &[]), None);
    assert_eq!(text::line(&launches, &|_| false, 14, &[]), None);
}

#[test]
fn what_was_not_measured_is_no_zero() {
    let told = text::launch(&KernelLaunch::default(), &Occupancy::default());
    assert!(told.contains("not classified") && told.contains("were not measured"), "{told}");
    assert!(!told.contains('0') && !told.contains("occupancy"), "{told}");
    let details = read("h200/kernels.ncu-details.csv.gz").launches;
    let told = text::launch(&details[0], &Occupancy::default());
    assert!(!told.contains("operations a byte"), "no operations were counted: {told}");
}

#[test]
fn kernels_of_nsight_systems() {
    let system = nsys::read(&common::nsys("h200_pytorch_mlp.sqlite").path).unwrap();
    let base = stitch_profiles::kernel::kernel_name(&system.kernels.as_ref().unwrap()[0].name).base;
    expect_file![data("text/recorded.md")].assert_eq(&text::recorded(&system, &base).unwrap());
    assert_eq!(text::recorded(&system, "nothing"), None);
}

#[test]
fn lines_of_python() {
    let files = vec!["/w/train.py".into(), "/w/models/net.py".into()];
    let workspace = python::Workspace { folders: vec!["/w".into()], files, from_elsewhere: false };
    let (system, python) = python::read(&data("trace/train_step.json"), &workspace).unwrap();
    let way = Way { by: "PyTorch's profiler".to_owned(), ..Way::default() };
    let profile = Profile { system: Some(system), python: Some(python.clone()), ..Profile::new("t", way) };
    let lines = python.lines.iter().map(|line| text::python_line(line, &profile));
    let modules = python.modules.iter().map(text::module);
    expect_file![data("text/python.md")]
        .assert_eq(&lines.chain(modules).collect::<Vec<_>>().join("\n---\n\n"));
}
