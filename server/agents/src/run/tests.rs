use stitch_verifier::measure::Cost;

use super::*;
use crate::engine::Tokens;

fn manifest() -> Manifest {
    Manifest {
        schema: Manifest::SCHEMA.to_owned(),
        id: String::new(),
        started: "2026-11-29T20:16:50Z".to_owned(),
        target: "k.cu::ns::k<4>".to_owned(),
        folder: "/w".into(),
        file: "/w/k.cu".into(),
        kernel: Some("ns::k<4>".to_owned()),
        with: Vec::new(),
        selection: None,
        scope: Vec::new(),
        device: "sim:h200".to_owned(),
        engine: "builtin".to_owned(),
        model: None,
        tolerance: Some(1e-5),
        precision: Some(stitch_session::config::Precision::Fp32),
        arguments: vec!["7".to_owned()],
        answers: stitch_verifier::harness::Answers::default(),
        inputs: Vec::new(),
        init: None,
        train: None,
        python: None,
        time_limit_seconds: 600,
        budget: Budget::BUILTIN,
    }
}

fn attempt(number: u32, outcome: Outcome, gain: f64) -> Entry {
    Entry::Attempt(Box::new(Attempt {
        number,
        plan: 0,
        task: 0,
        composed_of: None,
        title: "t".to_owned(),
        outcome,
        said: String::new(),
        explanation: String::new(),
        gain: Some(gain),
        interval: None,
        cost: Some(Cost::default()),
        profile: String::new(),
        verdict: None,
        findings: Vec::new(),
        seconds: 1.0,
        tokens: Tokens::default(),
    }))
}

#[test]
fn a_run_is_written_as_it_happens_and_read_again() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path().join("runs");
    let mut run = Run::create(&root, manifest(), "int a;\n").unwrap();
    assert_eq!(run.manifest().id, "20261129-201650-ns__k_4_");
    run.append(Entry::Baseline {
        cost: Cost::default(),
        profile: "p".into(),
        recorded: String::new(),
        seconds: 1.0,
    })
    .unwrap();
    run.write_candidate(1, "int b;\n").unwrap();
    run.append(attempt(1, Outcome::Kept, 2.0)).unwrap();
    run.write_candidate(2, "int c;\n").unwrap();
    run.append(attempt(2, Outcome::Kept, 1.5)).unwrap();
    assert_eq!(run.current().unwrap(), "int b;\n", "the best, not the last");
    let patch = std::fs::read_to_string(run.folder().join("best.patch")).unwrap();
    assert!(patch.contains("+int b;"), "{patch}");
    let id = run.manifest().id.clone();
    assert!(matches!(Run::resume(&root, &id), Err(RunError::Busy { .. })), "one process at a time");
    assert!(matches!(remove(&root, &id), Err(RunError::Busy { .. })));
    let history = run.history().to_vec();
    drop(run);
    let resumed = Run::resume(&root, &id).unwrap();
    assert_eq!((resumed.manifest().tolerance, resumed.history()), (Some(1e-5), &history[..]));
    drop(resumed);
    assert_eq!(list(&root).0[0].gain, Some(2.0));
    remove(&root, &id).unwrap();
    assert!(list(&root).0.is_empty());
}

#[test]
fn runs_of_one_second_have_names_of_their_own() {
    let root = tempfile::tempdir().unwrap();
    let ids: Vec<String> =
        (0..3).map(|_| Run::create(root.path(), manifest(), "").unwrap().manifest().id.clone()).collect();
    assert_eq!(ids[1..], [format!("{}-2", ids[0]), format!("{}-3", ids[0])]);
}

#[test]
fn what_was_cut_off_is_not_there() {
    let root = tempfile::tempdir().unwrap();
    let mut run = Run::create(root.path(), manifest(), "").unwrap();
    run.append(Entry::Baseline {
        cost: Cost::default(),
        profile: String::new(),
        recorded: String::new(),
        seconds: 1.0,
    })
    .unwrap();
    let (folder, id) = (run.folder().to_owned(), run.manifest().id.clone());
    drop(run);
    // A kill between writing a file and moving it to its place leaves such a file.
    std::fs::write(folder.join("history/.tmpAbC"), "{\"entry\":").unwrap();
    assert_eq!(Run::resume(root.path(), &id).unwrap().history().len(), 1);
    // A folder whose run was never begun is no run.
    std::fs::create_dir(root.path().join("20261129-000000-x")).unwrap();
    assert_eq!(list(root.path()).0.len(), 1);
    // A damaged file is said, and hides no other run.
    std::fs::write(folder.join("history/0001.json"), "{").unwrap();
    let (runs, troubles) = list(root.path());
    assert_eq!((runs.len(), troubles.len()), (0, 1));
    assert!(troubles[0].to_string().contains("0001.json"), "{}", troubles[0]);
}

#[test]
fn a_name_leads_nowhere_else() {
    let root = tempfile::tempdir().unwrap();
    let runs = root.path().join("runs");
    Run::create(&root.path().join("other"), manifest(), "").unwrap();
    for id in ["../other/20261129-201650-ns__k_4_", "", ".", "..", "/etc", "no"] {
        assert!(matches!(Record::read(&runs, id), Err(RunError::Unknown { .. })), "{id}");
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_said() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("file");
    std::fs::write(&file, "").unwrap();
    let error = Run::create(&file, manifest(), "").unwrap_err().to_string();
    assert!(error.contains("file could not be written") && error.contains("STITCHCUDA_STATE_DIR"), "{error}");
}
