//! Wrong values, broken files and hostile input: what is said, and that the rest holds.

use expect_test::expect;

use super::*;

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
            ! $/w/stitchcuda.toml:1:1: `device` must be `auto`, `cuda:N`, `sim:NAME` or `cpu`, but is the text "gpu". It is not used.
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
