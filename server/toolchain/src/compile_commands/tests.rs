use super::*;

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A project with one entry for `src/k.cu`, run in `build`.
fn project(command: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let entry =
        serde_json::json!([{"directory": root.join("build"), "command": command, "file": "../src/k.cu"}]);
    write(&root.join("compile_commands.json"), &entry.to_string());
    write(&root.join("src/k.cu"), "__global__ void k() {}\n");
    std::fs::create_dir_all(root.join("build")).unwrap();
    (folder, root)
}

fn flags(command: &str) -> Flags {
    let (_folder, root) = project(command);
    let file = root.join("src/k.cu");
    CompileCommands::find(&file, Some(&root)).unwrap().unwrap().flags_for(&file).unwrap().unwrap()
}

#[test]
fn cmake_puts_include_folders_in_a_response_file() {
    let (_folder, root) = project(
        "nvcc -forward-unknown-to-host-compiler -ccbin=g++ -DNAME=\\\"a\\ b\\\" --options-file CMakeFiles/app.dir/includes_CUDA.rsp \
         -O2 -std=c++17 \"--generate-code=arch=compute_80,code=[compute_80,sm_80]\" -Xcompiler=-fPIC,-Wall -x cu -c ../src/k.cu \
         -o CMakeFiles/app.dir/src/k.cu.o",
    );
    let rsp = root.join("build/CMakeFiles/app.dir/includes_CUDA.rsp");
    let file = root.join("src/k.cu");
    write(&rsp, &format!("-I\"{}/inc dir\" -I../inc2 -isystem ../sys", root.display()));
    let database = CompileCommands::find(&file, Some(&root)).unwrap().unwrap();
    let flags = database.flags_for(&file).unwrap().unwrap();
    assert_eq!(
        flags.arguments,
        [
            "-forward-unknown-to-host-compiler",
            "-ccbin=g++",
            "-DNAME=\"a b\"",
            &format!("-I{}/inc dir", root.display()),
            "-I../inc2",
            "-isystem",
            "../sys",
            "-O2",
            "-std=c++17",
            "--generate-code=arch=compute_80,code=[compute_80,sm_80]",
            "-Xcompiler=-fPIC,-Wall",
        ]
    );
    assert_eq!(flags.architectures, ["compute_80", "sm_80"]);
    assert_eq!(
        (flags.directory, flags.compiler, flags.note),
        (root.join("build"), PathBuf::from("nvcc"), None)
    );

    std::fs::remove_file(&rsp).unwrap();
    let problem = database.flags_for(&file).unwrap().unwrap_err();
    assert!(problem.to_string().contains(&rsp.display().to_string()), "{problem}");
}

#[test]
fn input_and_output_are_left_out_and_all_else_is_kept() {
    for (command, expected) in [
        ("nvcc -dc -MD -MT k.o -MF k.d -o k.o ../src/k.cu -lineinfo", "-rdc=true|-lineinfo"),
        (
            "ccache nvcc -c --output-file=k.o -I ../src -Xptxas -O3 -MFk.d ../src/k.cu",
            "-I|../src|-Xptxas|-O3",
        ),
        (
            "env A=1 /opt/cuda/bin/nvcc --keep --keep-dir x -DX='a b' -optf=more.rsp -c -x cu ../src/k.cu",
            "-DX=a b|-Wrsp",
        ),
        (
            "nvcc @more.rsp -std c++17 -use_fast_math -Xcompiler \"-a,-b\" -okk.o ../src/k.cu",
            "-Wrsp|-std|c++17|-use_fast_math|-Xcompiler|-a,-b",
        ),
        ("my-launcher --x nvcc -O3 -c ../src/k.cu -o x", "-O3"),
        ("nvcc -I../src/k.cu -D c -c ../src/k.cu", "-I../src/k.cu|-D|c"),
        (
            "clang++ -x cuda --cuda-gpu-arch=sm_80 --cuda-path=/c -fPIC -Wall -I../i -DA=1 -std=c++20 -c ../src/k.cu -o x",
            "-gencode=arch=compute_80,code=sm_80|-Xcompiler=-fPIC|-I../i|-DA=1|-std=c++20",
        ),
        ("nvc++ -cuda -gpu=cc90,lineinfo -DA -c ../src/k.cu", "-arch=sm_90|-DA"),
    ] {
        let (_folder, root) = project(command);
        write(&root.join("build/more.rsp"), "-Wrsp");
        let file = root.join("src/k.cu");
        let flags =
            CompileCommands::find(&file, Some(&root)).unwrap().unwrap().flags_for(&file).unwrap().unwrap();
        assert_eq!(flags.arguments.join("|"), expected, "{command}");
    }
}

#[test]
fn architectures_are_read_in_every_spelling() {
    for (options, expected) in [
        ("-arch=sm_90", "sm_90"),
        ("-arch sm_86 -code=sm_86,compute_86", "sm_86|compute_86"),
        (
            "-gencode arch=compute_80,code=sm_80 --generate-code=arch=compute_90,code=\\\"sm_90\\\"",
            "sm_80|sm_90",
        ),
        ("-gencode=arch=compute_90a", "compute_90a"),
        ("--gpu-architecture native", "native"),
        ("-O3", ""),
    ] {
        assert_eq!(
            flags(&format!("nvcc {options} -c ../src/k.cu")).architectures.join("|"),
            expected,
            "{options}"
        );
    }
}

#[test]
fn response_files_nest_and_a_ring_of_them_ends() {
    let (_folder, root) = project("nvcc --options-file one.rsp,two.rsp -c ../src/k.cu");
    write(&root.join("build/one.rsp"), "\u{feff}-DA='x y' -optf \"sub dir/three.rsp\"\n");
    write(&root.join("build/two.rsp"), "-DB=\\\"q\\\" \\\n -IC:\\\\x\\y");
    write(&root.join("build/sub dir/three.rsp"), "-DC=1\r\n-DD=2");
    let file = root.join("src/k.cu");
    let database = CompileCommands::load(&root).unwrap();
    let flags = database.flags_for(&file).unwrap().unwrap();
    assert_eq!(flags.arguments, ["-DA=x y", "-DC=1", "-DD=2", "-DB=\"q\"", "-IC:\\x\\y"]);
    write(&root.join("build/sub dir/three.rsp"), "-optf one.rsp");
    assert!(matches!(database.flags_for(&file), Some(Err(FlagsProblem::ResponseFile { .. }))));
}

#[test]
fn a_header_takes_the_flags_of_a_unit_that_includes_it() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let entry = |file: &str, flag: &str| serde_json::json!({"directory": ".", "arguments": ["nvcc", flag, "-c", file], "file": file});
    let entries =
        serde_json::json!([entry("far/a.cu", "-DA"), entry("src/b.cu", "-DB"), entry("far/c.cu", "-DC")]);
    write(&root.join("out/compile_commands.json"), &entries.to_string());
    for (name, text) in [("far/a.cu", ""), ("src/b.cu", ""), ("far/c.cu", " # include \"../inc/h.cuh\"\n")] {
        write(&root.join("out").join(name), text);
    }
    let database = CompileCommands::find(&root.join("out/inc/h.cuh"), Some(&root)).unwrap().unwrap();
    let flag = |name: &str| database.flags_for(&root.join("out").join(name)).unwrap().unwrap();
    assert_eq!(flag("inc/h.cuh").arguments, ["-DC"]);
    assert_eq!(flag("inc/h.cuh").unit, root.join("out/far/c.cu"));
    assert_eq!(flag("src/new.cu").arguments, ["-DB"]);
    assert!(flag("src/new.cu").note.unwrap().contains("no entry"));
    assert_eq!(flag("src/b.cu").note, None);
}

#[test]
fn broken_databases_say_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let file = root.join("k.cu");
    assert!(CompileCommands::find(&file, Some(&root)).is_none());
    let path = root.join("cmake-build-debug/compile_commands.json");
    write(&path, "[{]");
    let problem = CompileCommands::find(&file, Some(&root)).unwrap().unwrap_err();
    assert!(problem.to_string().contains("cmake-build-debug"), "{problem}");
    for (entry, part) in [
        (r#"{"file": "k.cu", "command": "nvcc \"open"}"#, "quote"),
        (r#"{"file": "k.cu", "command": ""}"#, "names no compiler"),
        (r#"{"file": "k.cu"}"#, "empty"),
        (r#"{"file": "k.cu", "command": "rustc k.rs"}"#, "rustc"),
    ] {
        write(&path, &format!("[{entry}]").replace("k.cu", &file.display().to_string()));
        let problem = CompileCommands::load(&path).unwrap().flags_for(&file).unwrap().unwrap_err();
        assert!(problem.to_string().contains(part), "{problem}");
    }
}

#[test]
fn windows_commands_keep_their_backslashes() {
    let words =
        split_command(r#""C:\Program Files\CUDA\bin\nvcc.exe" -I"C:\a b\\" -DN=\"x\" -c C:\k.cu"#).unwrap();
    assert_eq!(words, [r"C:\Program Files\CUDA\bin\nvcc.exe", r"-IC:\a b\", "-DN=\"x\"", "-c", r"C:\k.cu"]);
    assert_eq!(split_command("nvcc.exe \"open"), None);
}
