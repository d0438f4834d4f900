//! The command line without a compiler: input of every kind, formats, exit statuses, configuration.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use stitch_tests::cli::{Finished, Folder, findings, finish};

const STRIDED: &str =
    "__global__ void strided(float* a, int n) {\n  int t = threadIdx.x;\n  if (t < n) a[t * 32] = 1.0f;\n}\n";
const STRIDED_FINDING: &str = "k.cu:3:14 information static/uncoalesced-access";

/// Runs without a toolkit. Fixed places such as `/usr/local/cuda` can't be hidden, so rules alone are asked for where that
/// matters not.
fn bare(folder: &Folder, arguments: &[&str]) -> Finished {
    finish(&mut folder.bare(arguments).unwrap()).unwrap()
}

fn rules(folder: &Folder, files: &[&str]) -> (Finished, Value) {
    let finished = bare(folder, &[&["check", "--no-compile", "--format", "json", "--"], files].concat());
    let report = finished.json().unwrap();
    (finished, report)
}

fn has_system_toolkit() -> bool {
    ["/usr/local/cuda", "/opt/cuda", "/usr/bin/nvcc"].iter().any(|path| Path::new(path).exists())
}

#[test]
fn without_a_compiler_the_rules_speak_and_the_report_says_what_to_do() {
    let folder = Folder::with(&[("k.cu", STRIDED)]).unwrap();
    let mut command = folder.bare(&["check", "--format", "json", "k.cu"]).unwrap();
    let finished = finish(command.env_remove("PATH").env_remove("HOME")).unwrap();
    let report = finished.json().unwrap();
    assert!(findings(&report, true).contains(&STRIDED_FINDING.to_owned()), "{report}");
    if !has_system_toolkit() {
        assert_eq!(finished.status, Some(3), "{}", finished.err);
        let not = &report["files"][0]["notCompiled"][0];
        assert_eq!(not["lack"], "tool");
        assert!(not["reason"].as_str().unwrap().contains("stitchcuda toolchain install"), "{not}");
    }
    // What has nothing to compile lacks nothing.
    folder.write("m.py", "HELP = '__global__ void k() {}'\n").unwrap();
    let mut command = folder.bare(&["check", "m.py"]).unwrap();
    assert_eq!(finish(command.env_remove("PATH").env_remove("HOME")).unwrap().status, Some(0));
}

#[test]
fn a_compiler_that_is_named_and_missing_is_said() {
    let folder = Folder::with(&[("k.cu", STRIDED)]).unwrap();
    for arguments in [["check", "--nvcc", "/nonexistent", "k.cu"], ["check", "k.cu", "--nvcc", "k.cu"]] {
        let finished = bare(&folder, &arguments);
        assert_eq!(finished.status, Some(3), "{}", finished.err);
        assert!(
            finished.out.contains("uncoalesced-access") && finished.out.contains("can't be used"),
            "{}",
            finished.out
        );
    }
}

#[test]
fn files_of_every_kind_are_read_or_named() {
    let folder = Folder::with(&[
        ("k.cu", STRIDED),
        ("empty.cu", ""),
        ("empty.py", ""),
        ("notes.txt", "x"),
        ("sub/one.cuh", STRIDED),
    ])
    .unwrap();
    let wide: Vec<u8> =
        [0xff, 0xfe].into_iter().chain(STRIDED.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    folder.write("wide.cu", wide).unwrap();
    folder.write("latin.cu", [b"// \xe9t\xe9\n", STRIDED.as_bytes()].concat()).unwrap();
    folder.write("mark.cu", format!("\u{feff}{STRIDED}")).unwrap();
    folder.write("binary.cu", (0..=255).cycle().take(100_000).collect::<Vec<u8>>()).unwrap();
    folder.write("-k.cu", STRIDED).unwrap();
    folder
        .write(
            "one line.cu",
            format!("__global__ void k(float* p) {{ {} }}", "p[threadIdx.x * 32] = 1.0f; ".repeat(20_000)),
        )
        .unwrap();
    let locked = folder.write("locked.cu", STRIDED).unwrap();
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o0)).unwrap();
    let fifo =
        std::process::Command::new("mkfifo").arg(folder.path().unwrap().join("pipe.cu")).status().unwrap();
    assert!(fifo.success());
    std::os::unix::fs::symlink("nowhere", folder.path().unwrap().join("dangling.cu")).unwrap();
    fs::create_dir(folder.path().unwrap().join("void")).unwrap();
    let root = fs::read(&locked).is_ok();

    for (name, status, says) in [
        ("k.cu", 0, ""),
        ("sub", 0, ""),
        ("empty.cu", 0, ""),
        ("empty.py", 0, ""),
        ("latin.cu", 0, ""),
        ("mark.cu", 0, ""),
        ("binary.cu", 0, ""),
        ("one line.cu", 0, ""),
        ("-k.cu", 0, ""),
        ("wide.cu", 2, "is UTF-16; save it as UTF-8"),
        ("locked.cu", if root { 0 } else { 2 }, if root { "" } else { "can't be read" }),
        ("pipe.cu", 2, "is no regular file"),
        ("missing.cu", 2, "missing.cu: no such file"),
        ("missing", 2, "missing: no such file"),
        ("-", 2, "-: no such file"),
        ("dangling.cu", 2, "no such file"),
        ("notes.txt", 2, "neither CUDA (.cu, .cuh) nor Python (.py)"),
        ("void", 2, "no .cu, .cuh or .py file in this folder"),
    ] {
        for format in ["json", "human", "sarif"] {
            let finished = bare(&folder, &["check", "--no-compile", "--format", format, "--", name]);
            assert_eq!(finished.status, Some(status), "{name} as {format}: {}", finished.err);
            assert!(finished.err.contains(says), "{name}: {}", finished.err);
            if format != "human" {
                finished.json().unwrap();
            }
        }
    }
    // What can be read is checked, whatever stands beside it.
    let (finished, report) = rules(&folder, &["missing.cu", "k.cu"]);
    assert_eq!((finished.status, findings(&report, true)[0].as_str()), (Some(2), STRIDED_FINDING));
    let (_, report) = rules(&folder, &["latin.cu"]);
    assert_eq!(findings(&report, true)[0], "latin.cu:4:14 information static/uncoalesced-access");
    assert!(report["notes"].to_string().contains("latin.cu: 2 bytes are no UTF-8"), "{report}");
}

#[test]
fn a_file_too_large_for_the_rules_is_said() {
    let folder = Folder::with(&[("k.cu", STRIDED.repeat(60_000))]).unwrap();
    let (finished, report) = rules(&folder, &["k.cu"]);
    assert_eq!((finished.status, findings(&report, true).len()), (Some(0), 0));
    assert!(report["notes"].to_string().contains("k.cu: too large for the static rules"), "{report}");
}

#[test]
fn sarif_has_what_the_standard_requires() {
    let folder = Folder::with(&[("a b/k+1.cu", STRIDED)]).unwrap();
    let finished = bare(&folder, &["check", "--no-compile", "--format", "sarif", "a b/k+1.cu"]);
    let log = finished.json().unwrap();
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    assert_eq!(run["tool"]["driver"]["name"], "stitchcuda");
    assert_eq!(run["columnKind"], "utf16CodeUnits");
    assert_eq!(run["invocations"][0]["executionSuccessful"], true);
    let results = run["results"].as_array().unwrap();
    assert!(!results.is_empty());
    for result in results {
        let rule =
            &run["tool"]["driver"]["rules"][usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap()];
        assert_eq!(rule["id"], result["ruleId"]);
        assert!(!result["message"]["text"].as_str().unwrap().is_empty());
        assert!(["error", "warning", "note"].contains(&result["level"].as_str().unwrap()));
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "a%20b/k%2B1.cu");
    }
    let strided = results.iter().find(|result| result["ruleId"] == "static/uncoalesced-access").unwrap();
    let region = &strided["locations"][0]["physicalLocation"]["region"];
    assert_eq!(
        (&region["startLine"], &region["startColumn"], &region["endLine"]),
        (&json!(3), &json!(14), &json!(3))
    );
    let at = usize::try_from(region["byteOffset"].as_u64().unwrap()).unwrap();
    assert!(STRIDED[at..].starts_with("a[t * 32]"));
}

/// A kernel whose tile conflicts, twice in lines of the same text, and a power that is a product.
const FIXABLE: &str = "__global__ void k(float *y, const float *x) {
  __shared__ float tile[32][32];
  tile[threadIdx.y][threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = tile[threadIdx.x][threadIdx.y] + powf(x[threadIdx.x], 2.0f);
}
void run(float *y, float *x) { k<<<1, dim3(32, 32)>>>(y, x); }
";

/// What an object of SARIF 2.1.0 must have, by the pointer that leads to it; `*` is each element. Source: the OASIS standard "Static Analysis Results
/// Interchange Format (SARIF) Version 2.1.0", the properties that its sections 3.13 to 3.58 require, and the form of their values.
const REQUIRED: &[(&str, &[&str])] = &[
    ("", &["version", "runs"]),
    ("/runs/*", &["tool", "results"]),
    ("/runs/*/tool", &["driver"]),
    ("/runs/*/tool/driver", &["name", "version", "rules"]),
    (
        "/runs/*/tool/driver/rules/*",
        &["id", "shortDescription", "fullDescription", "help", "defaultConfiguration"],
    ),
    ("/runs/*/tool/driver/rules/*/shortDescription", &["text"]),
    ("/runs/*/tool/driver/rules/*/help", &["text"]),
    ("/runs/*/invocations/*", &["executionSuccessful"]),
    ("/runs/*/results/*", &["ruleId", "ruleIndex", "level", "message", "locations", "partialFingerprints"]),
    ("/runs/*/results/*/message", &["text"]),
    ("/runs/*/results/*/locations/*/physicalLocation", &["artifactLocation", "region"]),
    (
        "/runs/*/results/*/locations/*/physicalLocation/region",
        &["startLine", "startColumn", "endLine", "endColumn"],
    ),
    ("/runs/*/results/*/relatedLocations/*", &["id", "message", "physicalLocation"]),
    ("/runs/*/results/*/fixes/*", &["description", "artifactChanges"]),
    ("/runs/*/results/*/fixes/*/artifactChanges/*", &["artifactLocation", "replacements"]),
    ("/runs/*/results/*/fixes/*/artifactChanges/*/replacements/*", &["deletedRegion", "insertedContent"]),
    ("/runs/*/results/*/fixes/*/artifactChanges/*/replacements/*/insertedContent", &["text"]),
];

/// All that a pointer leads to; nothing where an optional part is missing.
fn at<'v>(value: &'v Value, pointer: &str) -> Vec<&'v Value> {
    pointer.split('/').skip(1).fold(vec![value], |found, step| match step {
        "*" => found.into_iter().flat_map(|list| list.as_array().into_iter().flatten()).collect(),
        name => found.into_iter().filter_map(|object| object.get(name)).collect(),
    })
}

fn sarif(folder: &Folder, arguments: &[&str]) -> Value {
    let finished = bare(folder, &[&["check", "--no-compile", "--format", "sarif"], arguments].concat());
    let log = finished.json().unwrap();
    for (pointer, names) in REQUIRED {
        for object in at(&log, pointer) {
            for name in *names {
                assert!(!object[*name].is_null(), "{pointer} lacks {name}: {object}");
            }
        }
    }
    // Numbers of SARIF's regions count from one, and no level but these is known.
    for region in at(&log, "/runs/*/results/*/locations/*/physicalLocation/region") {
        for name in ["startLine", "startColumn", "endLine", "endColumn"] {
            assert!(region[name].as_u64() >= Some(1), "{region}");
        }
    }
    for level in at(&log, "/runs/*/tool/driver/rules/*/defaultConfiguration/level") {
        assert!(["none", "note", "warning", "error"].contains(&level.as_str().unwrap()), "{level}");
    }
    for link in at(&log, "/runs/*/tool/driver/rules/*/helpUri") {
        assert!(link.as_str().unwrap().starts_with("https://"), "{link}");
    }
    log
}

fn fingerprints(log: &Value) -> Vec<String> {
    let all = at(log, "/runs/*/results/*/partialFingerprints");
    all.iter().map(|all| all["stitchcuda/v1"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn sarif_has_fixes_and_results_that_stay_the_same_ones() {
    let folder = Folder::with(&[("k.cu", FIXABLE)]).unwrap();
    let log = sarif(&folder, &["k.cu"]);
    let fixes = at(&log, "/runs/*/results/*/fixes/*");
    assert!(fixes.len() >= 2, "{log}");
    let mut text = FIXABLE.to_owned();
    let mut edits: Vec<(usize, usize, String)> =
        at(&log, "/runs/*/results/*/fixes/*/artifactChanges/*/replacements/*")
            .iter()
            .map(|edit| {
                let number =
                    |name: &str| usize::try_from(edit["deletedRegion"][name].as_u64().unwrap()).unwrap();
                let inserted = edit["insertedContent"]["text"].as_str().unwrap().to_owned();
                (number("byteOffset"), number("byteLength"), inserted)
            })
            .collect();
    edits.sort();
    edits.dedup();
    for (start, length, inserted) in edits.iter().rev() {
        text.replace_range(*start..start + length, inserted);
    }
    assert!(text.contains("float tile[32][33];") && !text.contains("powf"), "{text}");
    let before = fingerprints(&log);
    assert_eq!(before.len(), before.iter().collect::<std::collections::HashSet<_>>().len(), "{before:?}");
    folder.write("k.cu", format!("// one more line\n{FIXABLE}")).unwrap();
    assert_eq!(fingerprints(&sarif(&folder, &["k.cu"])), before);
    folder.write("k.cu", format!("{FIXABLE}{}", FIXABLE.replace("void k(", "void k2("))).unwrap();
    let twice = fingerprints(&sarif(&folder, &["k.cu"]));
    assert!(before.iter().all(|known| twice.contains(known)) && twice.len() > before.len(), "{twice:?}");
}

#[test]
fn a_pipe_gets_no_colours_and_a_terminal_is_asked_by_name_only() {
    let folder = Folder::with(&[("k.cu", format!("{STRIDED}// \u{1b}[31m\n"))]).unwrap();
    for (variable, value, coloured) in
        [("UNUSED", "", false), ("NO_COLOR", "1", false), ("CLICOLOR_FORCE", "1", true)]
    {
        for arguments in
            [vec!["check", "--no-compile", "k.cu"], vec!["doctor"], vec!["explain", "ptxas/spill"]]
        {
            let mut command = folder.bare(&arguments).unwrap();
            let finished = finish(command.env(variable, value)).unwrap();
            assert!(
                !finished.err.contains('\u{1b}') || coloured,
                "{variable} {arguments:?}: {}",
                finished.err
            );
            let shown = finished.out.contains('\u{1b}');
            assert_eq!(
                shown,
                coloured && arguments[0] != "explain",
                "{variable} {arguments:?}: {}",
                finished.out
            );
        }
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_output_in_silence() {
    let many: String = (0..600).map(|i| STRIDED.replace("strided", &format!("strided_{i}"))).collect();
    let folder = Folder::with(&[("many.cu", many)]).unwrap();
    for format in ["json", "human", "sarif"] {
        let (reader, writer) = std::io::pipe().unwrap();
        let mut command = folder.bare(&["check", "--no-compile", "--format", format, "many.cu"]).unwrap();
        let child = command.stdout(writer).stderr(std::process::Stdio::piped()).spawn().unwrap();
        drop(command);
        let mut first = [0];
        std::io::Read::read_exact(&mut &reader, &mut first).unwrap();
        drop(reader);
        let output = child.wait_with_output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 1 | 141)), "{format}: {:?}", output.status);
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{format}");
    }
}

#[test]
fn explain_knows_every_code_and_the_nearest_to_a_slip() {
    let folder = Folder::new().unwrap();
    let list = bare(&folder, &["explain", "--format", "json"]).json().unwrap();
    let codes = list["codes"].as_array().unwrap();
    assert!(codes.len() > 10);
    for code in codes {
        let code = code["code"].as_str().unwrap();
        let page = bare(&folder, &["explain", code]);
        assert_eq!(page.status, Some(0));
        assert!(page.out.starts_with(&format!("# {code}")) && page.out.len() > 200, "{}", page.out);
    }
    let slip = bare(&folder, &["explain", "static/uncoalesed-acces"]);
    assert_eq!((slip.status, slip.out.as_str()), (Some(2), ""));
    assert!(slip.err.contains("Did you mean `static/uncoalesced-access`?"), "{}", slip.err);
    let nonsense = bare(&folder, &["explain", "zzz"]);
    assert!(nonsense.status == Some(2) && !nonsense.err.contains("Did you mean"), "{}", nonsense.err);
}

#[test]
fn wrong_usage_is_two() {
    let folder = Folder::new().unwrap();
    for arguments in [
        &["check"][..],
        &["chekc"],
        &["check", "--format", "xml", "k.cu"],
        &["toolchain", "remove", "x"],
        &["toolchain", "install", "x"],
        &[],
    ] {
        let finished = bare(&folder, arguments);
        assert_eq!(finished.status, Some(2), "{arguments:?}: {}", finished.err);
        assert!(!finished.err.is_empty() && finished.out.is_empty());
    }
    assert_eq!(bare(&folder, &["--version"]).status, Some(0));
}

#[test]
fn doctor_and_toolchain_print_objects() {
    let folder = Folder::new().unwrap();
    let doctor = bare(&folder, &["doctor", "--format", "json"]);
    let health = doctor.json().unwrap();
    assert!(health["schema"].as_str().unwrap().starts_with("stitchcuda.doctor/"), "{health}");
    assert!(health["items"].as_array().unwrap().len() > 3);
    if !has_system_toolkit() {
        assert_eq!(doctor.status, Some(3), "{health}");
        let toolchain = bare(&folder, &["toolchain", "--format", "json"]);
        let found = toolchain.json().unwrap();
        assert_eq!((toolchain.status, &found["chosen"]), (Some(3), &Value::Null), "{found}");
        assert!(bare(&folder, &["toolchain"]).out.contains("stitchcuda toolchain install"));
    }
}

#[test]
fn a_toolkit_in_conda_is_taken_whole() {
    let folder = Folder::new().unwrap();
    folder.copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/conda")).unwrap();
    let root = folder.path().unwrap();
    let made = std::process::Command::new("sh").args(["make.sh", "T"]).current_dir(&root).status().unwrap();
    assert!(made.success());
    let root = root.join("T");
    let at = |name: &str| root.join(name).display().to_string();
    let both = format!("{}:{}:/usr/bin:/bin", at("env/bin"), at("old/bin"));
    let old = format!("{}:/usr/bin:/bin", at("old/bin"));
    for (conda, home, path) in [(true, false, &both), (true, true, &both), (false, true, &old)] {
        let mut command = folder.bare(&["toolchain", "--format", "json"]).unwrap();
        command.env("PATH", path);
        if conda {
            command.env("CONDA_PREFIX", at("env"));
        }
        if home {
            command.env("CUDA_HOME", at("env"));
        }
        let finished = finish(&mut command).unwrap();
        let found = finished.json().unwrap();
        assert_eq!(finished.status, Some(0), "{found}");
        let chosen = &found["chosen"];
        assert_eq!(chosen["nvcc"], at("env/bin/nvcc"));
        assert_eq!(chosen["include"], at("env/targets/x86_64-linux/include"));
        assert!(chosen["version"].to_string().contains("12"), "{chosen}");
        assert!(!chosen.to_string().contains("/old/"), "{chosen}");
        assert!(found["seen"].to_string().contains(&at("old/bin/nvcc")), "{found}");
    }
}

#[test]
fn severities_are_configured_and_wrong_keys_are_said_once() {
    let folder = Folder::with(&[("k.cu", STRIDED), ("b.cu", STRIDED)]).unwrap();
    folder.write("stitchcuda.toml", "[diagnostics.severity]\n\"static/uncoalesced-access\" = \"off\"\n[nvcc]\narchitectur = \"sm_90\"\n").unwrap();
    let (finished, report) = rules(&folder, &["k.cu", "b.cu"]);
    assert!(findings(&report, true).iter().all(|line| !line.ends_with("uncoalesced-access")), "{report}");
    assert_eq!(finished.err.matches("`nvcc.architectur`").count(), 1, "{}", finished.err);
    assert!(finished.err.contains("architecture"), "{}", finished.err);

    folder
        .write("stitchcuda.toml", "[diagnostics.severity]\n\"static/uncoalesced-access\" = \"error\"\n")
        .unwrap();
    let (finished, report) = rules(&folder, &["k.cu"]);
    assert_eq!(
        (finished.status, findings(&report, true)[0].as_str()),
        (Some(1), "k.cu:3:14 error static/uncoalesced-access")
    );

    let mut command = folder.bare(&["check", "k.cu"]).unwrap();
    let finished = finish(command.env("STITCHCUDA_NVCC_PATH", "/nonexistent")).unwrap();
    assert_eq!(finished.status, Some(3), "{}", finished.err);

    folder.write("stitchcuda.toml", "[diagnostics.severity\n").unwrap();
    let (finished, report) = rules(&folder, &["k.cu"]);
    assert_eq!((finished.status, findings(&report, true)[0].as_str()), (Some(0), STRIDED_FINDING));
    assert!(finished.err.contains("stitchcuda.toml"), "{}", finished.err);
}

#[test]
fn a_home_that_is_not_there_or_can_not_be_written_hinders_nothing() {
    let folder = Folder::with(&[("k.cu", STRIDED)]).unwrap();
    let blocked = folder.write("file", "").unwrap();
    for home in ["/nonexistent", "/dev/null", blocked.to_str().unwrap()] {
        let mut command = folder.bare(&["check", "k.cu"]).unwrap();
        for name in ["HOME", "STITCHCUDA_CACHE_DIR", "STITCHCUDA_CONFIG_DIR"] {
            command.env(name, home);
        }
        let finished = finish(&mut command).unwrap();
        let expected = if has_system_toolkit() { 0 } else { 3 };
        assert_eq!(finished.status, Some(expected), "{home}: {}", finished.err);
        assert!(finished.out.contains("uncoalesced-access"));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_output_is_said_and_no_success() {
    let folder =
        Folder::with(&[("k.cu", "__global__ void k(double* a) { a[threadIdx.x * 32] = 1; }\n")]).unwrap();
    for arguments in [
        &["check", "--no-compile", "k.cu"][..],
        &["check", "--no-compile", "--format", "json", "k.cu"],
        &["check", "--no-compile", "--format", "sarif", "k.cu"],
        &["explain", "static/double-literal"],
        &["doctor"],
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut command = folder.bare(arguments).unwrap();
        let output = command.stdout(full).stderr(std::process::Stdio::piped()).spawn().unwrap();
        let output = output.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        let expected = "error: the result can't be written to standard output: No space left on device";
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}
