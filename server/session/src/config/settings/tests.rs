//! Each case is a scenario as text, and what comes of it: the settings that differ from the defaults, and the warnings.

use std::fmt::Write;
use std::fs;

use expect_test::{Expect, expect};

use super::*;
use crate::config::keys;

/// A scenario: parts that begin with `//- KIND ARGUMENT`.
///
/// `file PATH` writes a file (`~` is the home, `user` the user's configuration folder); `folder PATH` and `untrusted PATH` are
/// folders of the workspace; `editor [FOLDER]` is followed by JSON; `environment` and `flags` by `NAME=value` lines;
/// `for PATH` asks for a file's settings.
struct Scenario {
    root: tempfile::TempDir,
    folders: Vec<Folder>,
    editor: Vec<(Option<PathBuf>, Value)>,
    environment: BTreeMap<String, String>,
    flags: Vec<(String, String)>,
    questions: Vec<String>,
}

impl Scenario {
    fn read(text: &str) -> Self {
        let mut scenario = Self {
            root: tempfile::tempdir().unwrap(),
            folders: Vec::new(),
            editor: Vec::new(),
            environment: BTreeMap::new(),
            flags: Vec::new(),
            questions: Vec::new(),
        };
        for part in text.split("//- ").skip(1) {
            let (head, body) = part.split_once('\n').unwrap_or((part, ""));
            let (kind, argument) = head.trim().split_once(' ').unwrap_or((head.trim(), ""));
            scenario.add(kind, argument, body);
        }
        scenario
    }

    fn add(&mut self, kind: &str, argument: &str, body: &str) {
        let path = self.root.path().join(argument);
        let pairs = || {
            body.lines()
                .filter_map(|line| line.trim().split_once('='))
                .map(|(a, b)| (a.to_owned(), b.to_owned()))
        };
        match kind {
            "file" => {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, body).unwrap();
            }
            "folder" | "untrusted" => self.folders.push(Folder { path, trusted: kind == "folder" }),
            "editor" => {
                let scope = (!argument.is_empty()).then_some(path);
                self.editor.push((scope, serde_json::from_str(body).unwrap()));
            }
            "environment" => self.environment.extend(pairs()),
            "flags" => self.flags.extend(pairs()),
            "for" => self.questions.push(argument.to_owned()),
            other => panic!("no such part: {other}"),
        }
    }

    fn settings(&self) -> Settings {
        let at = |name: &str| Some(self.root.path().join(name));
        let settings = Settings::new(Surroundings {
            folders: Folders { config: at("user"), ..Folders::default() },
            environment: self.environment.clone(),
            home: at("home"),
            working_folder: at("here"),
            flags: self.flags.clone(),
        });
        settings.set_folders(self.folders.clone());
        for (scope, value) in &self.editor {
            settings.set_editor(scope.as_deref(), value.clone());
        }
        settings
    }

    fn run(&self) -> String {
        let settings = self.settings();
        let mut text = String::new();
        for question in &self.questions {
            writeln!(text, "{question}").unwrap();
            let config =
                serde_json::to_value(&*settings.for_path(Some(&self.root.path().join(question)))).unwrap();
            for key in keys() {
                let value = config.pointer(&format!("/{}", key.name.replace('.', "/"))).unwrap();
                if *value != key.default {
                    writeln!(text, "  {} = {value}", key.name).unwrap();
                }
            }
        }
        settings.take_warnings().iter().for_each(|warning| writeln!(text, "! {warning}").unwrap());
        // Asking again says nothing again.
        for question in &self.questions {
            settings.reload();
            settings.for_path(Some(&self.root.path().join(question)));
        }
        assert_eq!(settings.take_warnings(), []);
        text.replace(&*self.root.path().to_string_lossy(), "$")
    }
}

fn check(scenario: &str, expected: Expect) {
    expected.assert_eq(&Scenario::read(scenario).run());
}

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
fn wrong_values_are_named_and_the_default_stays() {
    check(
        "//- file w/stitchcuda.toml
device = 'gpu'
clang = 'on'
unknown = 1

[nvcc]
architecture = 'sm90'
extraFlags = '-O3'
path = 3
pahtt = 'x'

[compile]
onSave = 'yes'
timeLimitSeconds = 0
[occupancy]
assumedBlockSize = 1025
[inlayHints]
stale = 'blink'
enable = { a = 1 }
[diagnostics]
severity = 'off'
[log]
level = 1979-05-27
[cache]
sizeLimitMegabytes = 1.5
[files]
sizeLimitMegabytes = inf
//- folder w
//- for w/k.cu
",
        expect![[r#"
            w/k.cu
            ! $/w/stitchcuda.toml:1:1: `device` must be `auto`, `cuda:N` or `sim:NAME`, but is the text "gpu". It is not used.
            ! $/w/stitchcuda.toml:2:1: `clang` is a group of settings, like `clang.enable`, but is the text "on".
            ! $/w/stitchcuda.toml:3:1: The setting `unknown` is not known.
            ! $/w/stitchcuda.toml:6:1: `nvcc.architecture` must be `auto` or an architecture like `sm_90`, but is the text "sm90". It is not used.
            ! $/w/stitchcuda.toml:7:1: `nvcc.extraFlags` must be a list of texts, but is the text "-O3". It is not used.
            ! $/w/stitchcuda.toml:8:1: `nvcc.path` must be a path or the name of a program, but is 3. It is not used.
            ! $/w/stitchcuda.toml:9:1: The setting `nvcc.pahtt` is not known. Did you mean `nvcc.path`?
            ! $/w/stitchcuda.toml:12:1: `compile.onSave` must be true or false, but is the text "yes". It is not used.
            ! $/w/stitchcuda.toml:13:1: `compile.timeLimitSeconds` must be a whole number from 1 to 3600, but is 0. It is not used.
            ! $/w/stitchcuda.toml:15:1: `occupancy.assumedBlockSize` must be a whole number from 1 to 1024, but is 1025. It is not used.
            ! $/w/stitchcuda.toml:17:1: `inlayHints.stale` must be `dim` or `hide`, but is the text "blink". It is not used.
            ! $/w/stitchcuda.toml:18:1: `inlayHints.enable` must be true or false, but is a table. It is not used.
            ! $/w/stitchcuda.toml:20:1: `diagnostics.severity` must be a table whose values are `off`, `hint`, `information`, `warning` or `error`, but is the text "off". It is not used.
            ! $/w/stitchcuda.toml:22:1: `log.level` must be `error`, `warn`, `info`, `debug` or `trace`, but is the text "1979-05-27". It is not used.
            ! $/w/stitchcuda.toml:24:1: `cache.sizeLimitMegabytes` must be a whole number from 0 to 1000000, but is 1.5. It is not used.
            ! $/w/stitchcuda.toml:26:1: `files.sizeLimitMegabytes` must be a whole number from 1 to 100, but is the text "inf". It is not used.
        "#]],
    );
}

#[test]
fn codes_that_no_finding_has_are_named() {
    check(
        "//- file w/stitchcuda.toml
[diagnostics.severity]
'static/double-literl' = 'off'
'sttic/*' = 'off'
'static/double-literal' = 'loud'
'zzz' = 'off'
//- folder w
//- for w/k.cu
",
        expect![[r#"
            w/k.cu
            ! $/w/stitchcuda.toml:2:1: No finding has the code `static/double-literl`. Did you mean `static/double-literal`?
            ! $/w/stitchcuda.toml:3:1: No finding has the code `sttic/*`.
            ! $/w/stitchcuda.toml:4:1: `diagnostics.severity.static/double-literal` must be `off`, `hint`, `information`, `warning` or `error`, but is the text "loud". It is not used.
            ! $/w/stitchcuda.toml:5:1: No finding has the code `zzz`.
        "#]],
    );
}

#[test]
fn a_broken_file_is_one_warning_and_the_rest_works() {
    for broken in [
        "device = \"cuda:0\"\n[nvcc\npath = 1",
        "device = ",
        "a = 1\na = 2",
        "\u{0}",
        "[target.x]\n[target.x]",
    ] {
        let scenario = format!(
            "//- file w/stitchcuda.toml\n{broken}\n//- folder w\n//- editor\n{{\"hover.enable\": false}}\n//- for w/k.cu\n"
        );
        let text = Scenario::read(&scenario).run();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[..2], ["w/k.cu", "  hover.enable = false"], "{broken}");
        assert_eq!(lines.len(), 3, "{text}");
        assert!(lines[2].starts_with("! $/w/stitchcuda.toml:"), "{text}");
        assert!(lines[2].contains("The file is not used until this is mended: "), "{text}");
    }
    check(
        "//- file w/stitchcuda.toml\nhover.enable = false\n\n  größe = 1 2\n//- folder w\n//- for w/k.cu\n",
        expect![[r#"
            w/k.cu
            ! $/w/stitchcuda.toml:3:5: The file is not used until this is mended: invalid unquoted key, expected letters, numbers, `-`, `_`.
        "#]],
    );
}

#[test]
fn what_is_no_text_file_is_a_warning() {
    let scenario = Scenario::read("//- folder w\n//- for w/k.cu\n");
    let file = scenario.root.path().join("w").join(FILE_NAME);
    fs::create_dir_all(&file).unwrap();
    expect![[r#"
        w/k.cu
        ! $/w/stitchcuda.toml: The file is not used until this is mended: it is not a file.
    "#]]
    .assert_eq(&scenario.run());
    fs::remove_dir(&file).unwrap();
    fs::write(&file, b"device = \"\xff\"").unwrap();
    expect![[r#"
        w/k.cu
        ! $/w/stitchcuda.toml: The file is not used until this is mended: it is not UTF-8 (at byte 10).
    "#]]
    .assert_eq(&scenario.run());
    fs::write(&file, "# \n".repeat(1 << 19)).unwrap();
    expect![[r#"
        w/k.cu
        ! $/w/stitchcuda.toml: The file is not used until this is mended: it is larger than a megabyte.
    "#]]
    .assert_eq(&scenario.run());
    fs::write(&file, "\u{feff}hover.enable = false\r\n[compile]\r\nonSave = false\r\n").unwrap();
    expect![[r#"
        w/k.cu
          compile.onSave = false
          hover.enable = false
    "#]]
    .assert_eq(&scenario.run());
}

#[test]
fn nested_input_does_not_overflow_the_stack() {
    let deep = 100_000;
    for text in [
        format!("{} = 1", vec!["a"; deep].join(".")),
        format!("[{}]", vec!["a"; deep].join(".")),
        format!("a = {}", "[".repeat(deep)),
        format!("a = {}", "{a=".repeat(deep)),
        format!("a = {{ {} = 1 }}", vec!["a"; deep].join(".")),
        format!("device = {{ {} = 1 }}", vec!["a"; deep].join(".")),
        format!("{} = 1", vec!["\"a\""; deep].join(".")),
        format!("{} = 1", vec!["'a'"; deep].join(" . ")),
        format!("[{}]", vec!["\"=\""; deep].join(".")),
    ] {
        let file = File::parse(&text, Source::Workspace("w".into()));
        assert!(!file.warnings.is_empty() || !file.layer.entries.is_empty());
    }
}

#[test]
fn many_mistakes_are_counted() {
    let lines: String = (0..1000).map(|number| format!("zzzz{number} = 1\n")).collect();
    let text =
        Scenario::read(&format!("//- file w/stitchcuda.toml\n{lines}//- folder w\n//- for w/k.cu\n")).run();
    assert_eq!(text.lines().count(), 1 + 21);
    assert!(text.ends_with("980 more settings here are not used.\n"));
}

#[test]
fn an_untrusted_workspace_names_no_programs() {
    let file = "//- file w/stitchcuda.toml
device = 'cuda:1'
nvcc.path = './evil'
nvcc.extraFlags = ['-ccbin', './evil']
nvcc.architecture = 'sm_80'
clang.path = './evil'
cache.folder = '/home/u'
log.file = '/home/u/.bashrc'
model.endpoint = 'https://else.where/v1'
model.name = 'm'
//- file user/stitchcuda.toml
clang.path = '/mine'
//- environment
STITCHCUDA_LOG_FILE=/mine
//- for w/k.cu
";
    check(
        &format!("{file}//- untrusted w\n"),
        expect![[r#"
            w/k.cu
              clang.path = "/mine"
              device = "cuda:1"
              log.file = "/mine"
              model.name = "m"
              nvcc.architecture = "sm_80"
            ! $/w/stitchcuda.toml:2:6: `nvcc.path` is not taken from a workspace that you have not trusted, since it can run programs, write files or send your code away.
            ! $/w/stitchcuda.toml:3:6: `nvcc.extraFlags` is not taken from a workspace that you have not trusted, since it can run programs, write files or send your code away.
            ! $/w/stitchcuda.toml:5:7: `clang.path` is not taken from a workspace that you have not trusted, since it can run programs, write files or send your code away.
            ! $/w/stitchcuda.toml:6:7: `cache.folder` is not taken from a workspace that you have not trusted, since it can run programs, write files or send your code away.
            ! $/w/stitchcuda.toml:7:5: `log.file` is not taken from a workspace that you have not trusted, since it can run programs, write files or send your code away.
            ! $/w/stitchcuda.toml:8:7: `model.endpoint` is not taken from a workspace that you have not trusted, since it can run programs, write files or send your code away.
        "#]],
    );
    check(
        &format!("{file}//- folder w\n"),
        expect![[r#"
            w/k.cu
              cache.folder = "/home/u"
              clang.path = "$/w/evil"
              device = "cuda:1"
              log.file = "/mine"
              model.endpoint = "https://else.where/v1"
              model.name = "m"
              nvcc.architecture = "sm_80"
              nvcc.extraFlags = ["-ccbin","./evil"]
              nvcc.path = "$/w/evil"
        "#]],
    );
}

#[test]
fn paths_start_where_they_were_written_and_variables_are_replaced() {
    check(
        "//- file user/stitchcuda.toml
cache.folder = 'relative'
//- file w/sub/stitchcuda.toml
nvcc.path = 'tools/nvcc'
nvcc.extraFlags = ['-I${workspaceFolder}/include', '${env:FLAG}', '${env:TWICE}', '$x {y} ${', '~/x']
clang.path = 'clang-22'
log.file = '~/logs/${env:NAME}.log'
//- environment
FLAG=-DX
TWICE=${env:FLAG}
NAME=n
//- folder w
//- for w/sub/k.cu
",
        expect![[r#"
            w/sub/k.cu
              cache.folder = "$/user/relative"
              clang.path = "clang-22"
              log.file = "$/home/logs/n.log"
              nvcc.extraFlags = ["-I$/w/include","-DX","${env:FLAG}","$x {y} ${","~/x"]
              nvcc.path = "$/w/sub/tools/nvcc"
        "#]],
    );
    check(
        "//- environment
STITCHCUDA_NVCC_PATH=./nvcc
STITCHCUDA_LOG_FILE=~
//- editor
{\"clang.path\": \"bin/clang\", \"nvcc.extraFlags\": [\"${workspaceFolder}\"]}
//- flags
cache.folder=/absolute
//- folder w
//- for w/k.cu
",
        expect![[r#"
            w/k.cu
              cache.folder = "/absolute"
              clang.path = "$/w/bin/clang"
              log.file = "$/home"
              nvcc.extraFlags = ["$/w"]
              nvcc.path = "$/here/nvcc"
        "#]],
    );
    check(
        "//- editor
{\"nvcc.extraFlags\": [\"${workspaceFolder}\"], \"log.file\": \"${env:MISSING}/x\", \"cache.folder\": \"${userHome}/x\"}
//- for k.cu
",
        expect![[r#"
            k.cu
            ! editor settings: `stitchcuda.cache.folder` is not used: `${userHome}` is not known; `${workspaceFolder}` and `${env:NAME}` are.
            ! editor settings: `stitchcuda.log.file` is not used: the variable `MISSING` is not set.
            ! editor settings: `stitchcuda.nvcc.extraFlags` is not used: there is no workspace folder for `${workspaceFolder}`.
        "#]],
    );
}

#[test]
fn targets_are_checked_and_set_nothing() {
    check(
        "//- file w/stitchcuda.toml
[target.gemm]
files = ['gemm.cu']
build = 'make'
run = './gemm'
args = ['1024']
cwd = 'sub'
inputs = ['data.bin']
tolerance = 1e-4
precision = 'fp32'
device = 'cuda:0'
[target.wrong]
biuld = 'make'
run = 3
tolerance = 2
precision = 'fp31'
[target]
plain = 'make'
//- folder w
//- for w/k.cu
",
        expect![[r#"
            w/k.cu
            ! $/w/stitchcuda.toml:17:1: `target.plain` must be a table, as in `[target.NAME]`. It is not used.
            ! $/w/stitchcuda.toml:12:1: The setting `target.wrong.biuld` is not known. Did you mean `target.wrong.build`?
            ! $/w/stitchcuda.toml:13:1: `target.wrong.run` must be a text, but is 3. It is not used.
            ! $/w/stitchcuda.toml:14:1: `target.wrong.tolerance` must be a number from 0.0 to 1.0, but is 2. It is not used.
            ! $/w/stitchcuda.toml:15:1: `target.wrong.precision` must be `fp64`, `fp32`, `tf32`, `bf16`, `fp16` or `fp8`, but is the text "fp31". It is not used.
        "#]],
    );
    check(
        "//- file w/stitchcuda.toml\ntarget = 3\n//- folder w\n//- for w/k.cu\n",
        expect![[r#"
        w/k.cu
        ! $/w/stitchcuda.toml:1:1: `target` must be a table, as in `[target.NAME]`. It is not used.
    "#]],
    );
}

#[test]
fn a_target_is_found_by_its_name_and_only_where_programs_may_be_named() {
    let mut scenario = Scenario::read(
        "//- file w/stitchcuda.toml
[target.gemm]
files = ['gemm.cu', 'main.cu']
build = 'make ARCH=${env:ARCH}'
cwd = 'sub'
tolerance = 1e-4
biuld = 3
[target.other]
device = 'sim:h200'
//- folder w
",
    );
    let place = scenario.root.path().join("w/deep/er");
    let settings = scenario.settings();
    let found = settings.target(&place, "gemm");
    assert!(found.unwrap_err().contains("`ARCH` is not set"));
    let other = settings.target(&place, "other").unwrap().unwrap();
    assert_eq!(other.target.device, Some(crate::config::Device::Simulator("h200".into())));
    assert_eq!(other.folder, scenario.root.path().join("w"));
    assert_eq!(settings.target(&place, "absent"), Ok(None));
    assert_eq!(settings.target_names(&place), ["gemm", "other"]);
    assert_eq!(settings.target(Path::new("/nowhere"), "gemm"), Ok(None));

    scenario.environment.insert("ARCH".into(), "90".into());
    let gemm = scenario.settings().target(&place, "gemm").unwrap().unwrap().target;
    assert_eq!(gemm.build.as_deref(), Some("make ARCH=90"));
    assert_eq!(gemm.cwd, Some(scenario.root.path().join("w/sub")));
    scenario.folders[0].trusted = false;
    assert!(scenario.settings().target(&place, "gemm").unwrap_err().contains("not trusted"));
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
fn a_file_belongs_to_its_repository_or_to_the_nearest_marked_folder() {
    let scenario = Scenario::read(
        "//- file r/.git/HEAD\n//- file r/a/stitchcuda.toml\n//- file r/a/b/k.cu\n//- file r/c/k.cu\n\
         //- file m/stitchcuda.toml\n//- file m/n/compile_commands.json\n//- file m/n/o/k.cu\n//- file open/stitchcuda.toml\n\
         //- file open/k.cu\n//- file open/p/k.cu\n",
    );
    let root = scenario.root.path();
    #[cfg(unix)]
    {
        let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(root.join("open"), everybody).unwrap();
    }
    for (file, folder) in [
        ("r/a/b/k.cu", "r"),
        ("r/c/k.cu", "r"),
        ("r/c/not/there.cu", "r"),
        ("m/n/o/k.cu", "m/n"),
        ("m/x/k.cu", "m"),
        ("open/k.cu", "open"),
        ("open/p/k.cu", if cfg!(unix) { "open/p" } else { "open" }),
    ] {
        assert_eq!(workspace_of(&root.join(file)), Some(root.join(folder)), "{file}");
    }
    assert_eq!(workspace_of(Path::new("/nowhere/k.cu")), Some("/nowhere".into()));
    assert_eq!(workspace_of(Path::new("/")), None);
}

#[test]
fn a_folder_that_is_a_part_of_a_repository_has_the_settings_of_the_whole() {
    let scenario = Scenario::read(
        "//- file r/.git/HEAD\n//- folder r/src/app\n//- file r/stitchcuda.toml\n[hover]\nenable = false\n//- folder o/in\n\
         //- file o/stitchcuda.toml\n[hover]\nenable = false\n",
    );
    let settings = scenario.settings();
    let root = scenario.root.path();
    assert!(!settings.for_path(Some(&root.join("r/src/app/k.cu"))).hover.enable);
    assert!(settings.for_path(Some(&root.join("o/in/k.cu"))).hover.enable, "no repository: another project");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(100))]

    /// Whatever an editor or a file says, there are settings, and the warnings can be shown.
    #[test]
    fn no_input_makes_it_fail(text in "[a-z.\\[\\]{}=\"' \n0-9#\\\\$~-]{0,80}", key in 0_usize..64, value in json()) {
        let keys: Vec<_> = keys().map(|key| key.name.as_str()).collect();
        let scenario = Scenario::read(&format!("//- folder w\n//- file w/stitchcuda.toml\n{text}\n"));
        let settings = scenario.settings();
        settings.set_editor(None, serde_json::json!({ keys[key % keys.len()]: value.clone(), "stitchcuda": value }));
        settings.for_path(Some(&scenario.root.path().join("w/k.cu")));
        let warnings = settings.take_warnings();
        proptest::prop_assert!(warnings.iter().all(|warning| !warning.to_string().contains('\n')));
        let editor = warnings.iter().filter(|warning| warning.source == Source::Editor).count();
        proptest::prop_assert!(editor <= 21);
    }
}

fn json() -> impl proptest::strategy::Strategy<Value = Value> {
    use proptest::prelude::*;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,80}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::vec((r"nvcc|path|enable|a\.b|.{0,5}", inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}
