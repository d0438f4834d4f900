//! What a hover says of real kernels and lines: the whole text, as it was recorded on an H200.

#![allow(clippy::unwrap_used)]

mod common;

use std::fs::File;
use std::path::Path;

use expect_test::expect_file;
use flate2::read::GzDecoder;
use stitch_findings::Code;
use stitch_profiles::kernel::{KernelLaunch, Metric};
use stitch_profiles::place::{self, Target};
use stitch_profiles::profile::{Profile, Way};
use stitch_profiles::python::estimate::Arithmetic;
use stitch_profiles::text::{self, Occupancy};
use stitch_profiles::{brief, ncu, nsys, python, report};

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

/// What an H200 can, as the table of devices has it.
fn h200() -> python::Peaks {
    python::Peaks {
        device: "NVIDIA H200".into(),
        bandwidth: 4.814e12,
        l2: 60 << 20,
        flops: [(Arithmetic::Fp32, 66.9e12)].into(),
        source: "the table of devices".into(),
    }
}

/// Lines whose operators' shapes were recorded, and no counter read.
fn shapes() -> Profile {
    let files = vec!["/w/models/net.py".into()];
    let workspace = python::Workspace { folders: vec!["/w".into()], files, from_elsewhere: false };
    let (system, mut time) = python::read(&data("trace/shapes.json"), &workspace).unwrap();
    python::classify(&mut time, Some(&system), Ok(h200()));
    let way = Way { by: "torch.profiler (CUPTI)".to_owned(), ..Way::default() };
    Profile { system: Some(system), python: Some(time), ..Profile::new("net.py", way) }
}

#[test]
fn lines_of_python_by_their_shapes() {
    let profile = shapes();
    let lines = profile.python.iter().flat_map(|python| &python.lines);
    let told: Vec<String> = lines.map(|line| text::python_line(line, &profile)).collect();
    expect_file![data("text/shapes.md")].assert_eq(&told.join("\n---\n\n"));
}

#[test]
fn a_class_by_shapes_stands_in_the_hint_the_brief_and_the_page() {
    let profile = shapes();
    let source = "import torch\n\ndef step(a, b, c):\n    d = a @ b\n    d = d + c\n    d = torch.special.zeta(d)\n    return -d\n";
    let target = Target { path: Path::new("/w/models/net.py"), text: source, kernels: &[], program: None };
    let notes: Vec<String> =
        place::measurements(&profile, &target).into_iter().filter_map(|measured| measured.note).collect();
    assert_eq!(
        notes,
        [
            "90% · 2 kernels · compute-bound",
            "8% · 2 kernels · memory-bound",
            "1% · 2 kernels",
            "0.1% · 2 kernels · latency-bound"
        ]
    );
    let brief = brief::brief(&profile, 1_500);
    for words in [
        "net.py:5: 8% of the kernels' time, 2 launches, memory-bound; aten::add",
        "  by its shapes, aten::add moves at least 1.61 GB in 440 µs: 3.66 TB/s, 76% of 4.81 TB/s",
    ] {
        assert!(brief.contains(words), "{words}\n{brief}");
    }
    let page = report::page(&profile).unwrap();
    for words in [
        "<span class=\"class memory\">memory-bound</span>",
        "76% of 4.81",
        "Of no line: 20.0",
        "stray_kernel",
    ] {
        assert!(page.contains(words), "{words}");
    }
    // A counter that a profiler read knows better.
    let mut measured = profile.clone();
    let metrics = [(Metric::SmThroughput, 10.0), (Metric::MemoryThroughput, 10.0)];
    let kernel = stitch_profiles::kernel::kernel_name("ampere_sgemm_128x64_nn");
    measured.launches = vec![KernelLaunch { kernel, metrics: metrics.into(), ..KernelLaunch::default() }];
    let line = &measured.python.as_ref().unwrap().lines[0];
    assert_eq!(text::class(line, &measured).as_deref(), Some("latency-bound"));
    assert!(!text::python_line(line, &measured).contains("estimate"));
}
