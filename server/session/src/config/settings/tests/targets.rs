//! `[target.NAME]`: what is said of mistakes, and where a target is found.

use expect_test::expect;

use super::*;

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
