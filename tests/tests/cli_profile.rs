//! `stitchcuda profile` as a person runs it: files of every profiler, pages, exit statuses, and the simulator.

#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;
use stitch_tests::cli::{Finished, Folder, finish};
use stitch_tests::recorded::{data, lines, unpacked};

fn import(folder: &Folder, file: &Path, more: &[&str]) -> Finished {
    let arguments = [&["profile", "--import", file.to_str().unwrap()], more].concat();
    finish(&mut folder.bare(&arguments).unwrap()).unwrap()
}

fn json(folder: &Folder, file: &Path) -> (Finished, Value) {
    let finished = import(folder, file, &["--format", "json"]);
    let profile = finished.json().unwrap();
    assert_eq!(profile["schema"], "stitchcuda.profile/1");
    (finished, profile)
}

/// A page that runs nothing and loads nothing.
fn assert_page(path: &Path) -> String {
    let page = fs::read_to_string(path).unwrap();
    for what in ["<script", "<link", "<img", "<iframe", "src=", "url(", "@import"] {
        assert!(!page.contains(what), "{what}");
    }
    for (at, _) in page.match_indices("http") {
        let before = &page[..at];
        let is_fine = ["<a href=\"", "xmlns=\"", "<meta "].iter().any(|what| before.ends_with(what));
        assert!(is_fine, "{}", page[at..].chars().take(80).collect::<String>());
    }
    assert!(page.contains("default-src 'none'"));
    assert!(page.trim_end().ends_with("</html>"));
    page
}

#[test]
fn pages_of_ncu_are_read_and_told_at_lines() {
    let folder = Folder::new().unwrap();
    let pages = ["h200/lines.full.ncu-raw.csv.gz", "h200/lines.full.ncu-source.csv.gz"];
    let file = unpacked(&folder, &pages, "lines.csv");
    let (finished, profile) = json(&folder, &file);
    assert_eq!(finished.status, Some(0), "{}", finished.err);
    assert_eq!(profile["launches"].as_array().unwrap().len(), 15);
    assert_eq!(profile["way"]["by"], "a file of Nsight Compute");
    let conflict = profile["explanations"][3]["insights"].as_array().unwrap().iter();
    let lines: Vec<&Value> = conflict
        .filter(|insight| insight["code"] == "ncu/bank-conflict")
        .map(|insight| &insight["place"]["line"])
        .collect();
    assert_eq!(lines, [40]);
    let told = import(&folder, &file, &[]);
    assert_eq!(told.status, Some(0));
    assert!(told.out.contains("lines.cu:40: ") && told.out.contains("[ncu/bank-conflict]"), "{}", told.out);
}

#[test]
fn programs_that_nsys_recorded_are_read_and_told() {
    let folder = Folder::new().unwrap();
    let file = unpacked(&folder, &["nsys/h200_pytorch_mlp.sqlite.gz"], "mlp.sqlite");
    let (finished, profile) = json(&folder, &file);
    assert_eq!(finished.status, Some(0), "{}", finished.err);
    assert_eq!(profile["device"], "NVIDIA H200");
    assert_eq!(profile["system"]["kernels"].as_array().unwrap().len(), 4);
    let codes: Vec<&Value> =
        profile["limits"].as_array().unwrap().iter().map(|limit| &limit["code"]).collect();
    assert!(codes.iter().any(|code| *code == "nsys/pageable-copy"), "{codes:?}");
    let told = import(&folder, &file, &[]);
    assert!(told.out.contains("12 copies host to device (pageable), 42.0 MB, 7.77 GB/s"), "{}", told.out);
}

#[test]
fn a_trace_and_a_sanitizers_report_are_read() {
    let folder = Folder::new().unwrap();
    let (finished, profile) = json(&folder, &data("trace/train_step.json"));
    assert_eq!(finished.status, Some(0), "{}", finished.err);
    assert!(profile["python"]["kernelNs"].as_u64().unwrap() > 0, "{}", profile["python"]);
    // Defects were found: the answer is bad, and said.
    let (finished, profile) = json(&folder, &data("h200/bad.compute-sanitizer.txt"));
    assert_eq!(finished.status, Some(1), "{}", finished.err);
    assert!(!profile["defects"].as_array().unwrap().is_empty());
}

#[test]
fn a_profile_without_a_kernel_says_why() {
    let folder = Folder::new().unwrap();
    let file = unpacked(&folder, &["nsys/no_kernels.sqlite.gz"], "no_kernels.sqlite");
    let (finished, profile) = json(&folder, &file);
    assert_eq!(finished.status, Some(1));
    let notes = profile["notes"].as_array().unwrap();
    assert!(notes.iter().any(|note| note["text"].as_str().unwrap().contains("kernel")), "{notes:?}");
    let none = import(&folder, &data("cases/ncu_none.txt"), &[]);
    assert_eq!(none.status, Some(1), "{}", none.err);
    assert!(none.err.contains("--target-processes all"), "{}", none.err);
    assert!(!none.err.contains("ERR_NVGPUCTRPERM"), "{}", none.err);
}

#[test]
fn what_no_profiler_wrote_is_wrong_input() {
    let nvprof =
        "==30610== NVPROF is profiling process 30610, command: ./main\n==30610== Profiling result:\n";
    let folder =
        Folder::with(&[("notes.txt", "nothing of the kind\n"), ("empty", ""), ("nvprof.log", nvprof)])
            .unwrap();
    let cut = unpacked(&folder, &["nsys/cut.sqlite.gz"], "cut.sqlite");
    let at = |name: &str| folder.path().unwrap().join(name);
    for (file, words) in [
        (at("notes.txt"), "nothing that a profiler wrote"),
        (at("empty"), "empty"),
        (at("gone.sqlite"), "can't be read"),
        (folder.path().unwrap(), "can't be read"),
        (cut, "damaged"),
        (at("nvprof.log"), "is of nvprof"),
    ] {
        let finished = import(&folder, &file, &[]);
        assert_eq!(finished.status, Some(2), "{}: {}", file.display(), finished.err);
        assert!(finished.err.starts_with("error: "), "{}", finished.err);
        assert!(finished.err.contains(words), "{}: {}", file.display(), finished.err);
        assert_eq!(finished.out, "");
    }
}

#[test]
fn a_report_that_only_a_missing_tool_can_read_says_how_to_get_it() {
    let folder = Folder::with(&[("k.ncu-rep", b"NVR\0\x08\x00\x00\x00 and more of it")]).unwrap();
    let finished = import(&folder, &folder.path().unwrap().join("k.ncu-rep"), &[]);
    assert_eq!(finished.status, Some(3), "{}", finished.err);
    for words in ["ncu", "was not found", "NVIDIA Nsight Compute", "--csv --page raw"] {
        assert!(finished.err.contains(words), "{}", finished.err);
    }
}

/// What `ncu` prints where counters are for administrators alone.
const FORBIDDEN: &str = "cases/ncu_no_permission.txt";

#[test]
fn forbidden_counters_are_said_with_the_remedy() {
    let folder = Folder::new().unwrap();
    let finished = import(&folder, &data(FORBIDDEN), &[]);
    assert_eq!(finished.status, Some(3), "{}", finished.err);
    for words in ["ERR_NVGPUCTRPERM", "NVreg_RestrictProfilingToAdminUsers=0", "SYS_ADMIN"] {
        assert!(finished.err.contains(words), "{words}: {}", finished.err);
    }
    assert_eq!(finished.out, "");
}

/// An `ncu` that may not read counters is in the way of nothing that needs none: the simulator counts by itself.
#[test]
fn an_ncu_without_permission_is_in_nobodys_way_on_the_simulator() {
    let folder = Folder::new().unwrap();
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *--version*) echo 'NVIDIA (R) Nsight Compute Command Line Profiler'; echo 'Version 2025.3.1.0 (build 1)'; exit 0;; esac\ncat '{}'; exit 1\n",
        data(FORBIDDEN).display()
    );
    let fake = folder.write("bin/ncu", script).unwrap();
    fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", fake.parent().unwrap().display());
    // A report goes through it, and what it says is told.
    let report = folder.write("k.ncu-rep", b"NVR\0\x08\x00\x00\x00 and more of it").unwrap();
    let arguments = ["profile", "--import", report.to_str().unwrap()];
    let refused = finish(folder.bare(&arguments).unwrap().env("PATH", &path)).unwrap();
    assert_eq!(refused.status, Some(3), "{refused:?}");
    assert!(refused.err.contains("ERR_NVGPUCTRPERM"), "{}", refused.err);
    assert_eq!(refused.out, "");
    let program = lines();
    let arguments =
        ["profile", program.to_str().unwrap(), "--device", "sim:h200", "--format", "json", "--", "small"];
    let finished = finish(folder.command(&arguments).unwrap().env("PATH", &path)).unwrap();
    assert_eq!(finished.status, Some(0), "{}", finished.err);
    assert_eq!(finished.json().unwrap()["launches"].as_array().unwrap().len(), 15);
}

#[test]
fn a_report_is_a_page_of_its_own_whole_or_not_at_all() {
    let folder = Folder::new().unwrap();
    let file = unpacked(&folder, &["nsys/h200_pytorch_mlp.sqlite.gz"], "mlp.sqlite");
    let finished = import(&folder, &file, &["--report", "out.html"]);
    assert_eq!(finished.status, Some(0), "{}", finished.err);
    assert!(finished.err.contains("The report is in out.html"), "{}", finished.err);
    let out = folder.path().unwrap().join("out.html");
    let page = assert_page(&out);
    for told in ["Timeline", "ceiling", "by our estimate"] {
        assert!(page.contains(told), "{told}");
    }
    // Written again over the old one, with nothing left beside it.
    folder.write("out.html", "old").unwrap();
    assert_eq!(import(&folder, &file, &["--report", "out.html"]).status, Some(0));
    assert_eq!(fs::read_to_string(&out).unwrap(), page);
    let beside: Vec<String> = fs::read_dir(folder.path().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with('.'))
        .collect();
    assert_eq!(beside, Vec::<String>::new());
}

#[test]
fn a_report_that_can_not_be_written_is_said_before_anything_is_done() {
    let folder = Folder::with(&[("file", "x")]).unwrap();
    fs::create_dir(folder.path().unwrap().join("taken.html")).unwrap();
    let file = data("trace/train_step.json");
    for place in ["no/such/folder/out.html", "taken.html", "file/out.html", "/proc/out.html"] {
        let finished = import(&folder, &file, &["--report", place]);
        assert_eq!(finished.status, Some(2), "{place}: {}", finished.err);
        let expected = format!("error: The report can't be written to {place}: ");
        assert!(finished.err.starts_with(&expected), "{}", finished.err);
        assert_eq!(finished.out, "");
    }
    assert_eq!(fs::read_to_string(folder.path().unwrap().join("file")).unwrap(), "x");
}

#[test]
fn what_the_simulator_counted_is_a_page_too() {
    let folder = Folder::new().unwrap();
    let program = lines();
    let arguments =
        ["profile", program.to_str().unwrap(), "--device", "sim:h200", "--report", "sim.html", "--", "small"];
    let finished = folder.run(&arguments).unwrap();
    assert_eq!(finished.status, Some(0), "{}", finished.err);
    let page = assert_page(&folder.path().unwrap().join("sim.html"));
    for told in [
        "by the simulator",
        "tile[threadIdx.x][threadIdx.y]",
        "transpose_conflict",
        "32-way bank conflict",
        "There is no roofline",
    ] {
        assert!(page.contains(told), "{told}");
    }
}

/// What the simulator can know of the traits that comments of `lines.cu` plant, by their first words, and what tells it. The others are
/// spills, pipes, and what only time tells.
const KNOWN: &[(&str, &str)] = &[
    ("uncoalesced load", "uncoalesced-load"),
    ("uncoalesced store", "uncoalesced-store"),
    ("32-way bank conflict", "bank-conflict"),
    ("divergent branch", "divergence"),
    ("atomic contention", "atomics-same-address"),
];

/// The table stands in `docs/profiles.md`; `UPDATE_EXPECT=1` writes it anew.
#[test]
fn the_simulator_tells_each_trait_that_it_can_know_on_its_line_and_no_other() {
    let folder = Folder::new().unwrap();
    let program = lines();
    let arguments =
        ["profile", program.to_str().unwrap(), "--device", "sim:h200", "--format", "json", "--", "small"];
    let finished = folder.run(&arguments).unwrap();
    assert_eq!(finished.status, Some(0), "{}", finished.err);
    let profile = finished.json().unwrap();
    let source = fs::read_to_string(&program).unwrap();
    let planted = source.lines().zip(1u64..).filter_map(|(line, number)| {
        let text = line.split_once("// trait: ")?.1;
        let (_, rule) = KNOWN.iter().find(|(words, _)| text.starts_with(words))?;
        Some((number, text.to_owned(), *rule))
    });
    let planted: Vec<_> = planted.collect();
    assert_eq!(planted.len(), KNOWN.len());
    let launches = profile["launches"].as_array().unwrap().iter();
    let mut told: Vec<(u64, String, String)> = Vec::new();
    for (launch, explanation) in launches.zip(profile["explanations"].as_array().unwrap()) {
        let kernel = launch["kernel"]["base"].as_str().unwrap();
        for insight in explanation["insights"].as_array().unwrap() {
            let rule = insight["rule"].as_str().unwrap();
            if KNOWN.iter().any(|(_, known)| *known == rule) {
                told.push((insight["place"]["line"].as_u64().unwrap(), rule.to_owned(), kernel.to_owned()));
            }
        }
    }
    told.sort();
    let lines: Vec<_> = told.iter().map(|(line, rule, _)| (*line, rule.as_str())).collect();
    assert_eq!(lines, planted.iter().map(|(line, _, rule)| (*line, *rule)).collect::<Vec<_>>());
    let mut table =
        "| kernel | planted | marked line | told by the simulator |\n|---|---|---|---|\n".to_owned();
    for ((line, rule, kernel), (marked, text, _)) in told.iter().zip(&planted) {
        table.push_str(&format!("| `{kernel}` | {text} | {marked} | {rule} at {line} |\n"));
    }
    expect_test::expect_file!["../../server/profiles/tests/data/profiles.simulator.md"].assert_eq(&table);
}

#[test]
fn a_way_that_can_not_be_gone_is_refused() {
    let folder = Folder::with(&[("p.cu", "int main() {}\n")]).unwrap();
    for (arguments, said) in [
        (&["profile", "p.cu", "--by", "gprof"][..], "one of ncu+nsys, ncu, nsys is expected"),
        (&["profile", "p.cu", "--by", "ncu", "--device", "sim:h200"], "`--by` is for a GPU"),
        (&["profile", "--import", "x.json", "--by", "ncu"], "cannot be used with"),
    ] {
        let finished = folder.run(arguments).unwrap();
        assert_eq!(finished.status, Some(2), "{arguments:?}: {}", finished.err);
        assert!(finished.err.contains(said), "{arguments:?}: {}", finished.err);
    }
}
