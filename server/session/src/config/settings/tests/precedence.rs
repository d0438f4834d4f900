//! Which of several sources wins, and how each of them is read.

use expect_test::expect;

use super::*;

#[test]
fn nothing_said_gives_the_defaults() {
    check(
        "//- folder w\n//- for w/a.cu\n//- for elsewhere/a.cu\n",
        expect![[r#"
        w/a.cu
        elsewhere/a.cu
    "#]],
    );
    let settings = Settings::new(Surroundings::default());
    assert_eq!(*settings.for_path(None), Config::default());
    assert_eq!(*settings.for_path(Some(Path::new(""))), Config::default());
    assert_eq!(*settings.for_path(Some(Path::new("/"))), Config::default());
}

#[test]
fn later_sources_win() {
    let sources = [
        "//- file user/stitchcuda.toml\noccupancy.assumedBlockSize = 1\n",
        "//- file w/stitchcuda.toml\n[occupancy]\nassumedBlockSize = 2\n",
        "//- environment\nSTITCHCUDA_OCCUPANCY_ASSUMED_BLOCK_SIZE=3\n",
        "//- editor\n{\"occupancy\": {\"assumedBlockSize\": 4}}\n",
        "//- flags\noccupancy.assumedBlockSize=5\n",
    ];
    for last in 1..=sources.len() {
        let scenario = format!("//- folder w\n//- for w/a.cu\n{}", sources[..last].concat());
        let expected = format!("w/a.cu\n  occupancy.assumedBlockSize = {last}\n");
        assert_eq!(Scenario::read(&scenario).run(), expected);
    }
}

#[test]
fn the_nearest_file_within_the_folder_counts() {
    check(
        "//- file stitchcuda.toml
occupancy.assumedBlockSize = 1
//- file w/stitchcuda.toml
occupancy.assumedBlockSize = 2
compile.onSave = false
//- file w/a/b/stitchcuda.toml
occupancy.assumedBlockSize = 3
//- folder w
//- for w
//- for w/k.cu
//- for w/a/k.cu
//- for w/a/b/k.cu
//- for w/a/b/c/d/k.cu
//- for other/k.cu
//- for w2/k.cu
",
        expect![[r#"
            w
              compile.onSave = false
              occupancy.assumedBlockSize = 2
            w/k.cu
              compile.onSave = false
              occupancy.assumedBlockSize = 2
            w/a/k.cu
              compile.onSave = false
              occupancy.assumedBlockSize = 2
            w/a/b/k.cu
              occupancy.assumedBlockSize = 3
            w/a/b/c/d/k.cu
              occupancy.assumedBlockSize = 3
            other/k.cu
            w2/k.cu
        "#]],
    );
}

#[test]
fn each_folder_has_its_own_and_the_innermost_counts() {
    check(
        "//- file w/stitchcuda.toml
device = 'cuda:1'
//- file w/inner/deep/stitchcuda.toml
device = 'cuda:2'
//- folder w
//- folder w/inner
//- folder v
//- editor
{\"compile\": {\"timeLimitSeconds\": 1}}
//- editor w/inner
{\"compile\": {\"timeLimitSeconds\": 2}}
//- for w/k.cu
//- for w/inner/k.cu
//- for w/inner/deep/k.cu
//- for v/k.cu
",
        expect![[r#"
            w/k.cu
              compile.timeLimitSeconds = 1
              device = "cuda:1"
            w/inner/k.cu
              compile.timeLimitSeconds = 2
            w/inner/deep/k.cu
              compile.timeLimitSeconds = 2
              device = "cuda:2"
            v/k.cu
              compile.timeLimitSeconds = 1
        "#]],
    );
}

#[test]
fn an_editor_may_nest_or_write_dots_and_its_defaults_hide_nothing() {
    check(
        "//- file w/stitchcuda.toml
hover.enable = false
inlayHints.stale = 'dim'
nvcc.extraFlags = ['-O3']
//- folder w
//- editor
{\"stitchcuda\": {\"hover\": {\"enable\": true}, \"inlayHints\": {\"stale\": \"hide\"}, \"nvcc\": {\"path\": \"\", \"extraFlags\": []}},
 \"stitchcuda.compile.onSave\": false, \"compile.timeLimitSeconds\": 7.0, \"codeLens\": {\"enable\": null}, \"clang\": [],
 \"server\": {\"path\": \"x\"}, \"trace.server\": \"verbose\", \"stitchcuda.trace\": {\"server\": \"off\"}, \"diagnostics.severity\": []}
//- for w/k.cu
",
        expect![[r#"
            w/k.cu
              compile.onSave = false
              compile.timeLimitSeconds = 7
              hover.enable = false
              inlayHints.stale = "dim"
              nvcc.extraFlags = ["-O3"]
        "#]],
    );
}

#[test]
fn tables_of_all_sources_are_put_together() {
    check(
        "//- file user/stitchcuda.toml
[diagnostics.severity]
'static/*' = 'hint'
'static/double-literal' = 'off'
//- file w/stitchcuda.toml
diagnostics.severity = { 'static/double-literal' = 'warning' }
//- environment
STITCHCUDA_DIAGNOSTICS_SEVERITY={\"nvcc/warning\": \"information\", \"ptxas/spill\": 3}
//- folder w
//- for w/k.cu
",
        expect![[r#"
            w/k.cu
              diagnostics.severity = {"nvcc/warning":"information","static/*":"hint","static/double-literal":"warning"}
            ! environment: `STITCHCUDA_DIAGNOSTICS_SEVERITY: ptxas/spill` must be `off`, `hint`, `information`, `warning` or `error`, but is 3. It is not used.
        "#]],
    );
}

#[test]
fn variables_and_flags_are_read_as_their_keys_types() {
    check(
        "//- environment
STITCHCUDA_NVCC_EXTRA_FLAGS=-O3 -Xcompiler '-Wall -Wextra' --define=\"A B\"
STITCHCUDA_COMPILE_ON_SAVE=off
STITCHCUDA_CODE_LENS_ENABLE=maybe
STITCHCUDA_COMPILE_TIME_LIMIT_SECONDS=soon
STITCHCUDA_HOVER_ENABLE=
STITCHCUDA_CACHE_DIR=/somewhere
STITCHCUDA_JOB=17
STITCHCUDA_API_KEY=sk-secret
STITCHCUDA_TEST_BINARY=/x
STITCHCUDA_NVCC_PAHT=/x
STITCHCUDA_ZZZZ=1
HOME=/ignored
//- flags
device=sim:h200
cache.sizeLimitMegabytes=0
nvcc.arch=sm_80
hover.enable=1
inlayHints.enable=0
files.sizeLimitMegabytes=-1
//- for w/k.cu
",
        expect![[r#"
            w/k.cu
              cache.sizeLimitMegabytes = 0
              compile.onSave = false
              device = "sim:h200"
              inlayHints.enable = false
              nvcc.extraFlags = ["-O3","-Xcompiler","-Wall -Wextra","--define=A B"]
            ! environment: `STITCHCUDA_CODE_LENS_ENABLE` must be true or false, but is the text "maybe". It is not used.
            ! environment: `STITCHCUDA_COMPILE_TIME_LIMIT_SECONDS` must be a whole number from 1 to 3600, but is the text "soon". It is not used.
            ! environment: The setting `STITCHCUDA_NVCC_PAHT` is not known. Did you mean `STITCHCUDA_NVCC_PATH`?
            ! environment: The setting `STITCHCUDA_ZZZZ` is not known.
            ! command line: `files.sizeLimitMegabytes` must be a whole number from 1 to 100, but is -1. It is not used.
            ! command line: The setting `nvcc.arch` is not known. Did you mean `nvcc.architecture`?
        "#]],
    );
}

#[test]
fn a_list_in_a_variable_may_be_json() {
    check(
        "//- environment\nSTITCHCUDA_NVCC_EXTRA_FLAGS=[\"-I/a b\", \"-O3\"]\n//- for k.cu\n",
        expect![[r#"
            k.cu
              nvcc.extraFlags = ["-I/a b","-O3"]
        "#]],
    );
    check(
        "//- environment\nSTITCHCUDA_NVCC_EXTRA_FLAGS=-I\"/a b\n//- for k.cu\n",
        expect![[r#"
            k.cu
            ! environment: `STITCHCUDA_NVCC_EXTRA_FLAGS` must be a list of texts, but is the text "-I"/a b". It is not used.
        "#]],
    );
}

#[test]
fn changes_are_live() {
    let scenario = Scenario::read("//- file w/stitchcuda.toml\nhover.enable = false\n//- folder w\n");
    let settings = scenario.settings();
    let (root, file) = (scenario.root.path(), scenario.root.path().join("w/k.cu"));
    let hover = || settings.for_path(Some(&file)).hover.enable;
    assert!(!hover());
    fs::write(root.join("w/stitchcuda.toml"), "").unwrap();
    assert!(!hover(), "files are read once");
    settings.reload();
    assert!(hover());
    settings.set_editor(None, serde_json::json!({"hover": {"enable": false}}));
    assert!(!hover());
    settings.set_editor(Some(&root.join("w")), serde_json::json!({}));
    assert!(hover(), "what is said for the folder holds in place of what is said for all");
    settings.set_folders(Vec::new());
    assert!(!hover(), "and is forgotten with the folder");
}

#[test]
fn a_device_may_be_a_table_that_leads_to_another_machine() {
    check(
        "//- file w/stitchcuda.toml
device.name = 'cuda:1'
device.command = ['ssh', 'gpu01', 'stitchcuda', 'worker']
device.patienceSeconds = 60
//- file v/stitchcuda.toml
device = 'sim:h200'
[worker]
command = ['srun', 'stitchcuda', 'worker']
//- file u/stitchcuda.toml
[device]
commands = ['ssh']
name = 'gpu'
//- file t/stitchcuda.toml
device.command = ['ssh']
//- folder w
//- folder v
//- folder u
//- untrusted t
//- for w/k.cu
//- for v/k.cu
//- for u/k.cu
//- for t/k.cu
",
        expect![[r#"
            w/k.cu
              device = "cuda:1"
              worker.command = ["ssh","gpu01","stitchcuda","worker"]
              worker.patienceSeconds = 60
            v/k.cu
              device = "sim:h200"
              worker.command = ["srun","stitchcuda","worker"]
            u/k.cu
            t/k.cu
            ! $/u/stitchcuda.toml:2:1: The setting `device.commands` is not known.
            ! $/u/stitchcuda.toml:3:1: `device.name` must be `auto`, `cuda:N`, `sim:NAME` or `cpu`, but is the text "gpu". It is not used.
            ! $/t/stitchcuda.toml:1:8: `device.command` is not taken from a workspace that you have not trusted, since it can run programs, write files or send your code away.
        "#]],
    );
    check(
        "//- folder w
//- editor
{\"stitchcuda\": {\"device\": {\"name\": \"cuda:0\", \"command\": [\"ssh\", \"a\"]}}}
//- flags
worker.command=srun -n 1 'stitchcuda' worker
//- for w/k.cu
",
        expect![[r#"
            w/k.cu
              device = "cuda:0"
              worker.command = ["srun","-n","1","stitchcuda","worker"]
        "#]],
    );
}
