//! `worker.command` over a local pipe: what is verified, profiled and optimised elsewhere is what would be here, and only what changed travels.

#![cfg(target_os = "linux")]

use std::process::Command;

use serde_json::{Value, json};
use stitch_tests::cli::{Folder, finish};
use stitch_tests::worker::{HEADER, Machine, OTHERWISE, RIGHT, ordering, program};

const WRONG: &str = "if (i < n) y[i] = 1e-6f * x[i];";

fn folder() -> Folder {
    let none = std::path::Path::new("/dev/null");
    Folder::with(&[
        ("ref.cu", program(RIGHT, none, 0)),
        ("good.cu", program(OTHERWISE, none, 0)),
        ("bad.cu", program(WRONG, none, 0)),
        ("nan.cu", program("if (i < n) y[i] = nanf(\"\");", none, 0)),
        ("broken.cu", program("y[i] = nothing;", none, 0)),
        ("parts/square.cuh", HEADER.to_owned()),
    ])
    .unwrap()
}

const VERIFY: [&str; 6] = ["verify", "--format", "json", "--device", "sim:h200", "ref.cu"];

/// What of a verdict is the same each time.
fn lasting(verdict: &Value) -> Value {
    let mut verdict = verdict.clone();
    verdict["device"] = Value::Null;
    for compared in verdict["compared"].as_array_mut().into_iter().flatten() {
        // The numbers depend on inputs that are drawn.
        *compared = json!([compared["what"], compared["same"].is_number(), compared["inputs"]]);
    }
    for finding in verdict["findings"].as_array_mut().into_iter().flatten() {
        *finding = json!([finding["code"], finding["span"], finding["path"]]);
    }
    // Of these the numbers differ from run to run; what there is does not.
    for field in ["evidence", "stages", "versions"] {
        verdict[field] = shape(&verdict[field]);
    }
    verdict
}

/// What a value holds, without what that is.
fn shape(value: &Value) -> Value {
    match value {
        Value::Array(list) => list.iter().map(shape).collect(),
        Value::Object(object) => object
            .iter()
            .map(|(name, value)| (name.clone(), shape(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Number(_) => json!("number"),
        Value::String(_) => json!("text"),
        other => other.clone(),
    }
}

#[test]
fn a_verdict_from_elsewhere_is_the_one_from_here() {
    let (machine, folder) = (Machine::new().unwrap(), folder());
    for (candidate, status, answer) in [
        ("good.cu", 0, "correct"),
        ("bad.cu", 1, "wrong"),
        ("nan.cu", 1, "wrong"),
        ("broken.cu", 1, "build-failed"),
    ] {
        let arguments = [&VERIFY[..], &[candidate]].concat();
        let there = finish(&mut ordering(&folder, &machine.command().unwrap(), &arguments).unwrap()).unwrap();
        let verdict = there.json().unwrap();
        assert_eq!((there.status, &verdict["answer"]), (Some(status), &json!(answer)), "{verdict:#}");
        let device = verdict["device"].as_str().unwrap();
        assert!(device.starts_with("sim:h200 on "), "{device}");
        let here = folder.run(&arguments).unwrap().json().unwrap();
        assert_eq!(lasting(&verdict), lasting(&here));
        // Nothing of where it lay there is left in it.
        assert!(!there.out.contains(&*machine.kept().to_string_lossy()), "{}", there.out);
    }
    // Sources, and the header that they include.
    assert_eq!(machine.contents(), 6);
    let jobs = std::fs::read_dir(machine.kept().join("jobs")).unwrap().count();
    assert_eq!(jobs, 0, "answers that came are kept");
    // Nothing is left on this machine's side: it has neither cache nor toolkit.
    let without = finish(&mut folder.bare(&[&VERIFY[..], &["good.cu"]].concat()).unwrap()).unwrap();
    assert_eq!(without.status, Some(3), "{}", without.err);
}

#[test]
fn what_is_elsewhere_already_does_not_travel_again() {
    let (machine, folder) = (Machine::new().unwrap(), folder());
    let log = machine.home().join("traffic");
    let command = machine.shell(&format!("tee -a '{}' | WORKER", log.display())).unwrap();
    let sent = || {
        let arguments = [&VERIFY[..], &["good.cu"]].concat();
        let finished = finish(&mut ordering(&folder, &command, &arguments).unwrap()).unwrap();
        assert_eq!(finished.status, Some(0), "{}", finished.err);
        let traffic = std::fs::read_to_string(&log).unwrap();
        std::fs::remove_file(&log).unwrap();
        let lines = traffic.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let puts: Vec<Value> = lines.filter(|line| line["type"] == "put").collect();
        puts.len()
    };
    assert_eq!([sent(), sent()], [3, 0]);
    folder.write("parts/square.cuh", format!("{HEADER}// changed\n")).unwrap();
    assert_eq!(sent(), 1);
}

#[test]
fn files_of_this_machine_are_not_looked_for_on_the_other_one() {
    let (machine, folder) = (Machine::new().unwrap(), folder());
    // There the folder is another one, and empty.
    let mount = format!("mount -t tmpfs none '{}' && cd / && exec WORKER", folder.path().unwrap().display());
    let tried = Command::new("unshare").args(["-rm", "sh", "-c", "mount -t tmpfs none /mnt"]).output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        eprintln!("left out: this machine gives no namespace to hide files in");
        return;
    }
    let shell = machine.shell(&mount).unwrap();
    let command = [vec!["unshare".to_owned(), "-rm".to_owned()], shell].concat();
    let arguments = [&VERIFY[..], &["good.cu"]].concat();
    let finished = finish(&mut ordering(&folder, &command, &arguments).unwrap()).unwrap();
    assert_eq!(finished.status, Some(0), "{}", finished.err);
    assert_eq!(finished.json().unwrap()["answer"], "correct");
}

#[test]
fn odd_names_travel() {
    let machine = Machine::new().unwrap();
    let none = std::path::Path::new("/dev/null");
    let folder = Folder::with(&[
        ("my π/ref's (1).cu", program(RIGHT, none, 0)),
        ("my π/good %d.cu", program(OTHERWISE, none, 0)),
        ("my π/broken.cu", program("y[i] = nothing;", none, 0)),
        ("my π/parts/square.cuh", HEADER.to_owned()),
    ])
    .unwrap();
    for (candidate, status, answer) in
        [("my π/good %d.cu", 0, "correct"), ("my π/broken.cu", 1, "build-failed")]
    {
        let arguments =
            ["verify", "--format", "json", "--device", "sim:h200", "my π/ref's (1).cu", candidate];
        let finished =
            finish(&mut ordering(&folder, &machine.command().unwrap(), &arguments).unwrap()).unwrap();
        let verdict = finished.json().unwrap();
        assert_eq!((finished.status, &verdict["answer"]), (Some(status), &json!(answer)), "{verdict:#}");
    }
}

#[test]
fn what_is_said_there_of_a_file_is_at_its_path_here() {
    let machine = Machine::new().unwrap();
    // Homes often lie behind a link.
    let (link, disk) = (machine.home().join("link"), machine.home().join("disk"));
    std::fs::create_dir(&disk).unwrap();
    std::os::unix::fs::symlink(&disk, &link).unwrap();
    let machine = machine.with("STITCHCUDA_CACHE_DIR", &link.display().to_string());
    let folder = folder();
    let build = "readlink -f square.cuh; exit 1";
    let toml = format!(
        "[target.own]\nfiles = ['../ref.cu']\ninputs = ['../parts/square.cuh']\nbuild = '{build}'\nrun = './a'\n"
    );
    folder.write("own/stitchcuda.toml", toml).unwrap();
    let arguments = ["verify", "--device", "sim:h200", "own", "../good.cu"];
    let mut ordering = ordering(&folder, &machine.command().unwrap(), &arguments).unwrap();
    let finished = finish(ordering.current_dir(folder.path().unwrap().join("own"))).unwrap();
    let header = folder.path().unwrap().join("parts/square.cuh").display().to_string();
    let line = finished.err.lines().find(|line| line.contains("square.cuh")).unwrap_or_default();
    assert!(line.ends_with(&header), "{}", finished.err);
    for there in [link, disk] {
        assert!(!line.contains(&*there.to_string_lossy()), "{}", finished.err);
    }
}

#[test]
fn a_toml_names_the_machine_and_a_flag_takes_it_back() {
    let (machine, folder) = (Machine::new().unwrap(), folder());
    let command = serde_json::to_string(&machine.command().unwrap()).unwrap();
    folder
        .write("stitchcuda.toml", format!("device.command = {command}\ndevice.name = \"sim:a100\"\n"))
        .unwrap();
    let verify = ["verify", "--format", "json", "ref.cu::tiny", "good.cu", "--shape", "x=4096"];
    let finished = finish(&mut folder.bare(&verify).unwrap()).unwrap();
    assert_eq!(finished.status, Some(0), "{}", finished.err);
    let device = finished.json().unwrap()["device"].as_str().unwrap().to_owned();
    assert!(device.starts_with("sim:a100 on "), "{device}");
    let here = [&verify[..], &["--device-command", ""]].concat();
    let finished = finish(&mut folder.bare(&here).unwrap()).unwrap();
    assert_eq!(finished.status, Some(3), "{}", finished.err);
}

#[test]
fn profiles_runs_and_the_doctor_come_from_elsewhere() {
    let (machine, folder) = (Machine::new().unwrap(), folder());
    let command = machine.command().unwrap();
    let profile = ["profile", "ref.cu", "--device", "sim:h200", "--format", "json"];
    let finished = finish(&mut ordering(&folder, &command, &profile).unwrap()).unwrap();
    assert_eq!(finished.status, Some(0), "{}", finished.err);
    let report = finished.json().unwrap();
    let lines = report.to_string();
    let here = folder.path().unwrap().join("ref.cu").display().to_string();
    assert!(lines.contains(&here) && !lines.contains(&*machine.kept().to_string_lossy()), "{lines}");

    let doctor = finish(&mut ordering(&folder, &command, &["doctor", "--format", "json"]).unwrap()).unwrap();
    let report = doctor.json().unwrap();
    let names = |items: &Value| -> Vec<(String, String)> {
        let items = items.as_array().unwrap().iter();
        items.map(|item| (item["name"].to_string(), item["status"].to_string())).collect()
    };
    let (here, there) = (names(&report["items"]), names(&report["elsewhere"]["items"]));
    let of = |items: &[(String, String)]| {
        items.iter().find(|(name, _)| name.contains("CUDA toolkit")).map(|(_, status)| status.clone())
    };
    assert_eq!(of(&there).as_deref(), Some("\"ok\""), "{report:#}");
    assert_ne!(of(&here), of(&there), "{report:#}");
}

#[test]
fn a_run_is_judged_elsewhere_and_applied_here() {
    let machine = Machine::new().unwrap();
    let folder = Folder::with(&[("p.cu", stitch_tests::optimizing::TEXT)]).unwrap();
    let optimize =
        ["optimize", "p.cu", "--device", "sim:h200", "--engine", "builtin", "--format", "json", "--apply"];
    let finished = finish(&mut ordering(&folder, &machine.command().unwrap(), &optimize).unwrap()).unwrap();
    assert_eq!(finished.status, Some(0), "{}\n{}", finished.err, finished.out);
    let events: Vec<Value> = finished.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let baseline = events.iter().find(|event| event["event"] == "happened").unwrap();
    assert!(baseline.to_string().contains("sim:h200 on "), "{baseline:#}");
    let kept = events.iter().any(|event| event["entry"] == "attempt" && event["outcome"] == "kept");
    assert!(kept && events.last().unwrap()["event"] == "finished", "{}", finished.out);
    assert!(!finished.out.contains(&*machine.kept().to_string_lossy()), "{}", finished.out);
    let now = std::fs::read_to_string(folder.path().unwrap().join("p.cu")).unwrap();
    assert!(!now.contains("powf(x[i], 3.0f)"), "{now}");
}

#[test]
fn a_build_of_a_persons_own_is_made_elsewhere_with_all_of_its_folder() {
    let (machine, folder) = (Machine::new().unwrap(), folder());
    folder.write("own/make.sh", "exec \"$NVCC\" -I.. -o scale main.cu\n").unwrap();
    let text = std::fs::read_to_string(folder.path().unwrap().join("ref.cu")).unwrap();
    for (name, from) in [("own/main.cu", "parts/square.cuh"), ("candidate/main.cu", "parts/square.cuh")] {
        folder.write(name, text.replace(from, "square.cuh")).unwrap();
    }
    folder.write("own/square.cuh", HEADER).unwrap();
    folder.write("own/data.txt", "7").unwrap();
    let toml = "[target.scale]\nfiles = ['main.cu']\ncwd = '.'\nbuild = 'sh make.sh'\nrun = 'cat data.txt && ./scale'\n";
    folder.write("own/stitchcuda.toml", toml).unwrap();
    let arguments = ["verify", "--format", "json", "--device", "sim:h200", "scale", "../candidate/main.cu"];
    let mut ordering = ordering(&folder, &machine.command().unwrap(), &arguments).unwrap();
    let finished = finish(ordering.current_dir(folder.path().unwrap().join("own"))).unwrap();
    assert_eq!(finished.status, Some(0), "{}\n{}", finished.err, finished.out);
    assert_eq!(finished.json().unwrap()["answer"], "correct");
}
