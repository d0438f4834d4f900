//! What the simulator catches, told by `check --run`, `profile` and `verify`, with a real nvcc.
//!
//! `data/simulated/bad.cu` has four planted defects, picked by its argument; NVIDIA's compute-sanitizer names the same lines on an H200.

#![cfg(target_os = "linux")]

use serde_json::Value;
use stitch_tests::cli::{Finished, Folder};

const BAD: &str = include_str!("data/simulated/bad.cu");
const RACE: &str = include_str!("data/simulated/race.cu");
const BARRIER: &str = include_str!("data/simulated/barrier.cu");
const INSIDE_WARP: &str = include_str!("data/simulated/inside_warp.cu");
const LANES: &str = include_str!("data/simulated/lanes.cu");

fn json(folder: &Folder, arguments: &[&str]) -> (Finished, Value) {
    let finished = folder.run(arguments).unwrap();
    let value = finished.json().unwrap_or_else(|error| panic!("{error:#}"));
    (finished, value)
}

/// Codes and lines of the simulator's findings, of severity and related lines.
fn simulated(report: &Value) -> Vec<(String, u64, String, Vec<u64>)> {
    let findings =
        report["files"].as_array().unwrap().iter().flat_map(|file| file["findings"].as_array().unwrap());
    findings
        .filter(|finding| finding["code"].as_str().unwrap().starts_with("sim/"))
        .map(|finding| {
            let text = |key: &str| finding[key].as_str().unwrap().to_owned();
            let related = finding["related"].as_array().unwrap().iter();
            let lines = related.map(|one| one["line"].as_u64().unwrap()).collect();
            (text("code"), finding["range"]["startLine"].as_u64().unwrap(), text("severity"), lines)
        })
        .collect()
}

#[test]
fn the_defects_of_bad_are_those_of_compute_sanitizer() {
    let folder = Folder::with(&[("bad.cu", BAD)]).unwrap();
    for (case, kind, kernel, line, thread) in [
        ("0", "out-of-bounds", "oob", 3, [232, 0, 0]),
        ("1", "shared-race", "race", 4, [32, 0, 0]),
        ("2", "uninitialised-read", "uninit", 5, [0, 0, 0]),
        ("3", "divergent-barrier", "badsync", 6, [0, 0, 0]),
    ] {
        let arguments = ["profile", "--format", "json", "--device", "sim:h200", "bad.cu", "--", case];
        let (_, report) = json(&folder, &arguments);
        assert_eq!(report["run"]["checks"], "all");
        let defects = report["run"]["defects"].as_array().unwrap();
        assert_eq!(defects.len(), 1, "{case}: {defects:#?}");
        let defect = &defects[0];
        assert_eq!((defect["kind"].as_str().unwrap(), defect["place"][1].as_u64()), (kind, Some(line)));
        assert!(defect["kernel"].as_str().unwrap().contains(kernel));
        let first: [u64; 3] = serde_json::from_value(defect["thread"].clone()).unwrap();
        assert_eq!(first, thread, "{defect:#}");
    }
}

#[test]
fn a_race_is_told_although_the_answer_is_right() {
    let files =
        [("race.cu", RACE), ("barrier.cu", BARRIER), ("inside_warp.cu", INSIDE_WARP), ("lanes.cu", LANES)];
    let folder = Folder::with(&files).unwrap();
    let (finished, report) = json(&folder, &["check", "--run", "--format", "json", "race.cu"]);
    let race = ("sim/shared-race".to_owned(), 9, "warning".to_owned(), vec![7, 5]);
    assert_eq!(simulated(&report), [race], "{report:#}");
    // A warning alone is no error.
    assert_eq!(finished.status, Some(0));
    let (_, log) = json(&folder, &["check", "--run", "--format", "sarif", "race.cu"]);
    let results = log["runs"][0]["results"].as_array().unwrap();
    let race = results.iter().find(|result| result["ruleId"] == "sim/shared-race").unwrap();
    assert_eq!(
        (&race["level"], &race["relatedLocations"][0]["id"]),
        (&"warning".into(), &1.into()),
        "{race:#}"
    );
    assert!(race["partialFingerprints"]["stitchcuda/v1"].is_string(), "{race:#}");
    for name in ["barrier.cu", "inside_warp.cu", "lanes.cu"] {
        let (finished, report) = json(&folder, &["check", "--run", "--format", "json", name]);
        assert_eq!((simulated(&report), finished.status), (Vec::new(), Some(0)), "{report:#}");
    }
    let (_, report) = json(&folder, &["check", "--run", "--checks", "memory", "--format", "json", "race.cu"]);
    assert_eq!(simulated(&report), []);
    let notes = report["notes"].to_string();
    assert!(notes.contains("--checks memory"), "{notes}");
}

#[test]
fn a_candidate_with_a_race_that_its_reference_has_not_is_not_good() {
    let folder = Folder::with(&[("race.cu", RACE), ("barrier.cu", BARRIER)]).unwrap();
    let verify = |reference: &str, candidate: &str, more: &[&str]| {
        let all =
            [&["verify", "--format", "json", "--device", "sim:h200"], more, &[reference, candidate]].concat();
        let (finished, verdict) = json(&folder, &all);
        assert_eq!(verdict["answer"], "correct", "{verdict:#}");
        let findings = verdict["findings"].as_array().unwrap();
        let races = findings.iter().filter(|finding| finding["code"] == "sim/shared-race").count();
        (races, finished.status)
    };
    assert_eq!(verify("barrier.cu", "race.cu", &[]), (1, Some(1)));
    assert_eq!(verify("race.cu", "race.cu", &[]), (0, Some(0)));
    assert_eq!(verify("race.cu", "barrier.cu", &[]), (0, Some(0)));
    assert_eq!(verify("barrier.cu", "race.cu", &["--checks", "none"]), (0, Some(0)));
}
