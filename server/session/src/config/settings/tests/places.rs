//! Where a file belongs, what a workspace may say, and what paths mean where they are written.

use expect_test::expect;

use super::*;

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
