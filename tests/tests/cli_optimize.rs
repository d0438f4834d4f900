//! `stitchcuda optimize` and `stitchcuda runs`, end to end on the simulator.

#![cfg(target_os = "linux")]

use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use stitch_tests::cli::{Finished, Folder, finish};
use stitch_tests::endpoint::{Answer, Endpoint, Step, event};

/// A kernel that the engine without a model makes better, in a program that checks nothing itself.
const POWERS: &str = r#"#include <cstdio>
__global__ void energy(float* y, const float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = pow(x[i], 2) + powf(x[i], 3.0f);
}
int main() {
  const int n = 4096;
  static float x[n];
  for (int i = 0; i < n; ++i) x[i] = (i % 64) * 0.25f;
  float *device_x, *device_y;
  cudaMalloc(&device_x, n * sizeof(float));
  cudaMalloc(&device_y, n * sizeof(float));
  cudaMemcpy(device_x, x, n * sizeof(float), cudaMemcpyHostToDevice);
  energy<<<n / 256, 256>>>(device_y, device_x, n);
  cudaMemcpy(x, device_y, n * sizeof(float), cudaMemcpyDeviceToHost);
  printf("%g\n", x[100]);
  return 0;
}
"#;

/// The events that a command printed, one a line.
fn events(finished: &Finished) -> Vec<Value> {
    finished.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn attempts(events: &[Value]) -> Vec<(&str, f64)> {
    events
        .iter()
        .filter(|event| event["entry"] == "attempt")
        .map(|event| (event["outcome"].as_str().unwrap(), event["gain"].as_f64().unwrap_or_default()))
        .collect()
}

#[test]
fn a_program_is_made_better_and_the_run_can_be_read_again() {
    let folder = Folder::with(&[("p.cu", POWERS)]).unwrap();
    let run = folder.run(&["optimize", "p.cu", "--device", "sim:h200", "--format", "json"]).unwrap();
    assert_eq!(run.status, Some(0), "{}", run.err);
    let events = events(&run);
    assert_eq!(
        (&events[0]["event"], &events[0]["schema"]),
        (&"begun".into(), &"stitchcuda.optimize/1".into())
    );
    let id = events[0]["run"].as_str().unwrap();
    let attempts = attempts(&events);
    assert!(attempts.iter().any(|(outcome, gain)| *outcome == "kept" && *gain > 1.1), "{attempts:?}");
    let last = events.last().unwrap();
    assert_eq!(last["event"], "finished");
    let patch = last["patch"].as_str().unwrap();
    assert!(patch.contains("-  if (i < n) y[i] = pow(x[i], 2)"), "{patch}");
    assert_eq!(
        std::fs::read_to_string(folder.path().unwrap().join("p.cu")).unwrap(),
        POWERS,
        "nothing is changed unasked"
    );

    let list = folder.run(&["runs", "list", "--format", "json"]).unwrap().json().unwrap();
    assert_eq!(list["runs"][0]["id"], id);
    assert_eq!(list["runs"][0]["finished"], true);
    let shown = folder.run(&["runs", "show", id]).unwrap();
    assert!(shown.out.contains("kept: ") && shown.out.contains("verdict: right"), "{}", shown.out);
    let diff = folder.run(&["runs", "diff", id]).unwrap();
    std::fs::write(folder.path().unwrap().join("best.patch"), &diff.out).unwrap();
    let applied = std::process::Command::new("git")
        .args(["apply", "best.patch"])
        .current_dir(folder.path().unwrap())
        .status()
        .unwrap();
    assert!(applied.success(), "{}", diff.out);
    assert!(!std::fs::read_to_string(folder.path().unwrap().join("p.cu")).unwrap().contains("pow("));
    // At its end, a run goes no further under the same budget.
    let again = folder.run(&["runs", "resume", id, "--format", "json"]).unwrap();
    assert_eq!(again.status, Some(0), "{}", again.err);
    assert!(!again.out.contains("\"entry\":\"attempt\""), "{}", again.out);
    assert_eq!(folder.run(&["runs", "remove", id]).unwrap().status, Some(0));
    let gone = folder.run(&["runs", "show", id]).unwrap();
    assert_eq!(gone.status, Some(2));
    assert!(gone.err.contains("runs list"), "{}", gone.err);
}

#[test]
fn the_answer_is_written_over_the_file_only_where_that_is_asked() {
    let folder = Folder::with(&[("p.cu", POWERS.replace('\n', "\r\n"))]).unwrap();
    let run = folder.run(&["optimize", "p.cu", "--device", "sim:h200", "--apply"]).unwrap();
    assert_eq!(run.status, Some(0), "{}", run.err);
    let text = std::fs::read_to_string(folder.path().unwrap().join("p.cu")).unwrap();
    assert!(!text.contains("pow(") && text.matches("\r\n").count() == text.matches('\n').count(), "{text}");
}

#[test]
fn a_kernel_without_a_main_runs_in_its_harness_and_keeps_to_the_selection() {
    let text = "__global__ void squares(float* y, const float* x, int n) {\n  int i = blockIdx.x * 256 + threadIdx.x;\n  \
                if (i < n) y[i] = powf(x[i], 2.0f);\n}\n__global__ void other(float* y) { y[0] = powf(y[0], 2.0f); }\n";
    let folder = Folder::with(&[("k.cu", text)]).unwrap();
    let arguments =
        ["optimize", "k.cu::squares", "--shape", "x=1024", "--shape", "y=1024", "--scalar", "n=1024"];
    let more = ["--grid", "4", "--block", "256", "--device", "sim:h200", "--format", "json"];
    let run = folder.run(&[&arguments[..], &more[..]].concat()).unwrap();
    assert_eq!(run.status, Some(0), "{}", run.err);
    let events = events(&run);
    assert_eq!(attempts(&events)[0].0, "kept");
    let patch = events.last().unwrap()["patch"].as_str().unwrap().to_owned();
    assert!(patch.contains("x[i] * x[i]") && !patch.contains("-__global__ void other"), "{patch}");
    // Which kernel is meant has to be said.
    let unsaid = folder.run(&["optimize", "k.cu", "--device", "sim:h200"]).unwrap();
    assert_eq!(unsaid.status, Some(2));
    assert!(unsaid.err.contains("k.cu::squares, k.cu::other"), "{}", unsaid.err);
    let selected = folder.run(&["optimize", "k.cu", "--select", "2:3", "--device", "sim:h200"]).unwrap();
    assert!(selected.err.contains("--shape"), "what a harness needs is asked for: {}", selected.err);
}

#[test]
fn where_nothing_is_better_the_answer_says_why() {
    let text = "#include <cstdio>\n__global__ void copy(int* y) { y[threadIdx.x] = threadIdx.x; }\nint main() { int* y; cudaMalloc(&y, 1024);\n\
                copy<<<1, 256>>>(y); int h[256]; cudaMemcpy(h, y, 1024, cudaMemcpyDeviceToHost); printf(\"%d\\n\", h[7]); }\n";
    let folder = Folder::with(&[("c.cu", text)]).unwrap();
    let run = folder.run(&["optimize", "c.cu", "--device", "sim:h200"]).unwrap();
    assert_eq!(run.status, Some(0), "{}", run.err);
    assert!(run.out.contains("100% of the sectors that it moves are needed"), "{}", run.out);
}

#[test]
fn a_reference_that_fails_is_said_and_nothing_is_tried() {
    let text = "__global__ void k(int* y) { y[0] = 1; }\nint main() { k<<<1, 1>>>(nullptr); return cudaDeviceSynchronize() != cudaSuccess; }\n";
    let folder =
        Folder::with(&[("f.cu", text), ("n.cu", "int main() {}\n"), ("s.cu", "__global__ void k( {\n")])
            .unwrap();
    for (file, status, said) in
        [("f.cu", 1, "nothing to measure"), ("n.cu", 2, "no kernel"), ("missing.cu", 2, "missing.cu")]
    {
        let run = folder.run(&["optimize", file, "--device", "sim:h200"]).unwrap();
        assert_eq!(run.status, Some(status), "{file}: {}", run.err);
        assert!(run.err.contains(said), "{file}: {}", run.err);
    }
    let bad = folder.run(&["optimize", "f.cu", "--select", "7:9", "--device", "sim:h200"]).unwrap();
    assert_eq!(bad.status, Some(2));
    assert!(bad.err.contains("no line 7"), "{}", bad.err);
}

#[test]
#[cfg(unix)]
fn a_run_that_is_killed_goes_on_where_it_was() {
    let folder = Folder::with(&[("p.cu", POWERS)]).unwrap();
    let arguments = ["optimize", "p.cu", "--device", "sim:h200", "--format", "json"];
    let mut child =
        folder.command(&arguments).unwrap().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let runs = folder.path().unwrap().parent().unwrap().join("home/state/runs");
    let begun = Instant::now();
    // Killed when its plan is there: in the middle of the first attempt.
    let run = loop {
        assert!(begun.elapsed() < Duration::from_secs(300), "the plan never came");
        let run =
            std::fs::read_dir(&runs).ok().and_then(|mut runs| runs.next()).map(|run| run.unwrap().path());
        match run {
            Some(run) if run.join("history/0002.json").exists() => break run,
            _ => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    child.kill().unwrap();
    child.wait().unwrap();
    let id = run.file_name().unwrap().to_str().unwrap();
    let before = std::fs::read_dir(run.join("history")).unwrap().count();
    let resumed = folder.run(&["runs", "resume", id, "--format", "json"]).unwrap();
    assert_eq!(resumed.status, Some(0), "{}", resumed.err);
    let events = events(&resumed);
    assert_eq!(events[0]["resumed"], true);
    assert!(!resumed.out.contains("\"entry\":\"baseline\""), "what was done is not done again");
    assert!(events.last().unwrap()["patch"].as_str().unwrap().contains("x[i] * x[i]"));
    assert!(std::fs::read_dir(run.join("history")).unwrap().count() > before);
}

/// The program above, which computes for ever where a file `slow` lies beside it.
fn slow_where_asked() -> String {
    let endless = "int n, int more) {\n  while (more && y[threadIdx.x] < 1.0f) y[threadIdx.x] *= -0.5f;";
    let kernel = POWERS.replace("int n) {", endless).replace("device_x, n)", "device_x, n, slow)");
    kernel.replace("int n = 4096;", "int n = 4096, slow = fopen(\"slow\", \"r\") != nullptr;")
}

#[test]
fn an_interrupt_while_it_is_measured_leaves_no_process_and_a_run_that_goes_on() {
    let folder = Folder::with(&[("p.cu", slow_where_asked().as_str()), ("slow", "")]).unwrap();
    let arguments = ["optimize", "p.cu", "--device", "sim:h200"];
    let child =
        folder.command(&arguments).unwrap().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let home = folder.path().unwrap().parent().unwrap().join("home");
    let scratch = home.join("cache/scratch").display().to_string();
    let begun = Instant::now();
    // The program lies in the scratch folder, and runs from when the reference is measured.
    while !running_with(&scratch)
        .iter()
        .any(|line| line.split(' ').next().is_some_and(|word| word.ends_with("/program")))
    {
        assert!(begun.elapsed() < Duration::from_secs(300), "the reference was never measured");
        std::thread::sleep(Duration::from_millis(20));
    }
    let ended = Instant::now();
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(ended.elapsed() < Duration::from_secs(10), "{:?}", ended.elapsed());
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(running_with(&scratch), Vec::<String>::new());
    let said = String::from_utf8(output.stderr).unwrap();
    let id = said.rsplit("runs resume ").next().unwrap().split('`').next().unwrap().to_owned();
    std::fs::remove_file(folder.path().unwrap().join("slow")).unwrap();
    let resumed = folder.run(&["runs", "resume", &id]).unwrap();
    assert_eq!(resumed.status, Some(0), "{said}{}", resumed.err);
    assert!(resumed.out.contains("kept: "), "{}", resumed.out);
}

/// Command lines of processes that name `word`.
fn running_with(word: &str) -> Vec<String> {
    let lines = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ").trim_end().to_owned()
    });
    lines.filter(|line| line.contains(word)).collect()
}

#[test]
fn a_run_does_not_go_on_where_its_costs_mean_something_else() {
    let folder = Folder::with(&[("p.cu", POWERS)]).unwrap();
    let begin = ["optimize", "p.cu", "--device", "sim:h200", "--attempts", "1", "--format", "json"];
    let run = folder.run(&begin).unwrap();
    assert_eq!(run.status, Some(0), "{}", run.err);
    let id = events(&run)[0]["run"].as_str().unwrap().to_owned();
    let history = folder.path().unwrap().parent().unwrap().join("home/state/runs").join(&id).join("history");
    let files = || {
        let mut files: Vec<_> =
            std::fs::read_dir(&history).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files.iter().map(|file| (file.clone(), std::fs::read(file).unwrap())).collect::<Vec<_>>()
    };
    let before = files();
    let elsewhere = folder.run(&["runs", "resume", &id, "--device", "sim:a100", "--attempts", "9"]).unwrap();
    assert_eq!(elsewhere.status, Some(2), "{}{}", elsewhere.out, elsewhere.err);
    for part in ["measured on sim:h200", "go on with sim:a100", "begin a new run"] {
        assert!(elsewhere.err.contains(part), "{part}: {}", elsewhere.err);
    }
    assert_eq!(files(), before, "nothing is lost, nothing is added");
    let same = folder.run(&["runs", "resume", &id, "--device", "sim:h200"]).unwrap();
    assert_eq!(same.status, Some(0), "{}", same.err);
    for part in ["taken up again", "Attempt 2: ", "Attempt 1 takes"] {
        assert!(same.out.contains(part), "{part}: {}", same.out);
    }
}

#[test]
fn the_demo_does_the_main_job() {
    let folder = Folder::new().unwrap();
    let demo = folder.run(&["demo"]).unwrap();
    assert_eq!(demo.status, Some(0), "{}{}", demo.out, demo.err);
    for said in [
        "== transpose.cu",
        "== reduction.cu",
        "== chain.cu",
        "The plan",
        "kept: ",
        "verdict: right",
        "+++ b/",
    ] {
        assert!(demo.out.contains(said), "{said}: {}", demo.out);
    }
    assert!(!demo.out.contains("/tmp"), "{}", demo.out);
    assert!(!folder.path().unwrap().join("chain.cu").exists());
    std::fs::write(folder.path().unwrap().join("chain.cu"), "int mine;\n").unwrap();
    let refused = folder.run(&["demo", "--write"]).unwrap();
    assert_eq!(refused.status, Some(2));
    assert!(refused.err.contains("it is another"), "{}", refused.err);
}

#[test]
fn without_a_compiler_and_a_network_the_demo_shows_the_static_findings() {
    let folder = Folder::new().unwrap();
    let mut command = folder.bare(&["demo"]).unwrap();
    // An index that nobody answers for.
    let demo =
        finish(command.env("PIP_INDEX_URL", "http://127.0.0.1:9/simple").env("PIP_RETRIES", "0")).unwrap();
    assert_eq!(demo.status, Some(3), "{}{}", demo.out, demo.err);
    assert!(demo.out.contains("static/divergent-reduction"), "{}", demo.out);
}

/// A secret that must turn up nowhere.
const SECRET: &str = "sk-end-to-end-0123456789";

fn with_model(folder: &Folder, endpoint: &Endpoint, arguments: &[&str]) -> std::process::Command {
    let mut command = folder.command(arguments).unwrap();
    command
        .env("STITCHCUDA_MODEL_ENDPOINT", endpoint.base())
        .env("STITCHCUDA_MODEL_NAME", "scripted")
        .env("STITCHCUDA_API_KEY", SECRET);
    command
}

/// An answer that puts `line` in the place of the kernel's one statement.
fn edit(line: &str) -> Answer {
    Answer::text(&format!(
        "<<<<<<< SEARCH\n  if (i < n) y[i] = pow(x[i], 2) + powf(x[i], 3.0f);\n=======\n{line}\n>>>>>>> REPLACE\n"
    ))
}

fn plan(titles: &[&str]) -> Answer {
    let tasks: Vec<Value> = titles.iter().map(|title| json!({"title": title, "scope": ["energy"]})).collect();
    Answer::text(&json!({"summary": "Powers are dear.", "tasks": tasks}).to_string())
}

#[test]
fn a_model_errs_is_told_replans_and_wins() {
    let unchanged = "  if (i < n) y[i] = pow(x[i], 2) + powf(x[i], 3.0f);";
    let endpoint = Endpoint::with(vec![
        plan(&["Products", "One thread more"]),
        edit("  if (i < n) y[i] = x[i] * x[i] + ;"),
        edit("  if (i < n) y[i] = x[i] + x[i];"),
        edit("  if (i < n) y[i] = pow(x[i], 2) + powf(x[i], 3.0f) + 0.0f * x[0];"),
        edit("  while (n > 0) y[i] = x[i];"),
        // An answer that changes nothing is asked for once more.
        edit(unchanged),
        edit(unchanged),
        edit("  if (i < n) y[i] = powf(x[i], 3.0f) + pow(x[i], 2);"),
        plan(&["Products after all"]),
        edit("  if (i < n) y[i] = x[i] * x[i] + x[i] * x[i] * x[i];"),
        plan(&[]),
    ])
    .unwrap();
    let folder = Folder::with(&[("p.cu", POWERS)]).unwrap();
    let arguments = [
        "optimize",
        "p.cu",
        "--engine",
        "llm",
        "--device",
        "sim:h200",
        "--time-limit",
        "20",
        "--format",
        "json",
    ];
    let run = finish(&mut with_model(&folder, &endpoint, &arguments)).unwrap();
    assert_eq!(run.status, Some(0), "{}", run.err);
    assert!(run.err.contains(&endpoint.base()) && run.err.contains("STITCHCUDA_API_KEY"), "{}", run.err);
    let events = events(&run);
    let outcomes: Vec<&str> = attempts(&events).iter().map(|(outcome, _)| *outcome).collect();
    assert_eq!(
        outcomes,
        ["build-failed", "wrong", "not-better", "wrong", "unusable", "not-better", "kept"],
        "{}",
        run.out
    );
    let questions = endpoint.questions();
    let said = questions[2].text();
    assert!(said.contains("does not compile: p.cu(4): error"), "what the compiler said is told: {said}");
    assert!(questions[3].text().contains("wrong: "), "what differs is told");
    let last = events.last().unwrap();
    assert!(
        last["patch"].as_str().unwrap().contains("+  if (i < n) y[i] = x[i] * x[i] + x[i] * x[i] * x[i];")
    );
    // What was asked and answered is kept; the key is not.
    let id = events[0]["run"].as_str().unwrap();
    let folder_of_run = std::path::PathBuf::from(events[0]["folder"].as_str().unwrap());
    assert_eq!(std::fs::read_dir(folder_of_run.join("exchanges")).unwrap().count(), 11);
    let found = std::process::Command::new("grep").args(["-r", SECRET]).arg(&folder_of_run).output().unwrap();
    assert!(found.stdout.is_empty() && !run.out.contains(SECRET) && !run.err.contains(SECRET));
    assert!(folder.run(&["runs", "show", id]).unwrap().out.contains("scripted"));
    // The second time, the endpoint is known.
    let endpoint_again = finish(&mut with_model(&folder, &endpoint, &["runs", "resume", id])).unwrap();
    assert!(!endpoint_again.err.contains("said once"), "{}", endpoint_again.err);
}

#[test]
fn the_planner_is_told_what_profilers_see_of_the_reference() {
    let strided = POWERS.replace("pow(x[i], 2) + powf(x[i], 3.0f)", "x[(i * 32) % n]");
    let folder = Folder::with(&[("p.cu", strided)]).unwrap();
    let endpoint = Endpoint::with(vec![plan(&[])]).unwrap();
    let arguments = ["optimize", "p.cu", "--engine", "llm", "--device", "sim:h200", "--format", "json"];
    let run = finish(&mut with_model(&folder, &endpoint, &arguments)).unwrap();
    assert_eq!(run.status, Some(0), "{}", run.err);
    let asked = endpoint.questions()[0].text();
    let told = asked.split_once("## Profile of the code\n").unwrap().1;
    let told = told.split_once("\n## ").unwrap().0;
    assert!(told.contains("Recorded on sim:h200 by the simulator."), "{told}");
    assert!(told.contains("Kernel `energy`, grid 16, block 256: latency-bound, by estimate ("), "{told}");
    assert!(
        told.contains("- p.cu:4: The loads of `energy` here take") && told.contains("Gain: about "),
        "{told}"
    );
    assert!(told.contains(" sectors (") && told.contains("Not by Nsight Compute"), "{told}");
    // The run keeps it as evidence, and says how it was made.
    let events = events(&run);
    let recorded = events.iter().find_map(|event| event["recorded"].as_str()).unwrap();
    assert!(recorded.starts_with("Profiled by the simulator."), "{recorded}");
    let kept = std::path::Path::new(events[0]["folder"].as_str().unwrap()).join("profile.json");
    let profile: Value = serde_json::from_slice(&std::fs::read(kept).unwrap()).unwrap();
    assert_eq!(profile["schema"], "stitchcuda.profile/1");
    assert_eq!(profile["launches"][0]["kernel"]["base"], "energy");
}

#[test]
fn an_endpoint_that_refuses_is_said_with_what_to_do() {
    let endpoint =
        Endpoint::start(|_, _| Answer::error(401, "invalid_api_key", "Incorrect API key")).unwrap();
    let folder = Folder::with(&[("p.cu", POWERS)]).unwrap();
    let arguments = ["optimize", "p.cu", "--engine", "llm", "--device", "sim:h200"];
    let run = finish(&mut with_model(&folder, &endpoint, &arguments)).unwrap();
    assert_eq!(run.status, Some(3), "{}{}", run.out, run.err);
    assert!(run.err.contains("STITCHCUDA_API_KEY") && !run.err.contains(SECRET), "{}", run.err);
    let without = folder.run(&arguments).unwrap();
    assert_eq!(without.status, Some(3));
    assert!(without.err.contains("model.endpoint"), "{}", without.err);
}

#[test]
fn an_interrupt_in_mid_stream_keeps_the_run() {
    let endpoint = Endpoint::start(|_, _| {
        Answer::stream(event(&json!({"content": "{\"summary\": "}), None)).then(Step::Hang)
    })
    .unwrap();
    let folder = Folder::with(&[("p.cu", POWERS)]).unwrap();
    let arguments = ["optimize", "p.cu", "--engine", "llm", "--device", "sim:h200"];
    let mut command = with_model(&folder, &endpoint, &arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    assert!(endpoint.wait_for_questions(1, Duration::from_secs(300)));
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("stitchcuda runs resume "), "{said}");
    let id = said.rsplit("runs resume ").next().unwrap().split('`').next().unwrap().to_owned();
    let answers = Endpoint::with(vec![
        plan(&["Products"]),
        edit("  if (i < n) y[i] = x[i] * x[i] + x[i] * x[i] * x[i];"),
        plan(&[]),
    ]);
    let resumed = finish(&mut with_model(&folder, &answers.unwrap(), &["runs", "resume", &id])).unwrap();
    assert_eq!(resumed.status, Some(0), "{}", resumed.err);
    assert!(resumed.out.contains("kept: "), "{}", resumed.out);
}
