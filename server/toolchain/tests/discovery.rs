//! Pretended toolkits in every layout, and which of them is chosen.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use stitch_toolchain::discovery::{self, Discovery, Origin, Search, Verdict};
use stitch_toolchain::environment::Environment;

/// A pretended machine: a folder that is the root of its file system and holds a home and a workspace.
struct Machine {
    folder: tempfile::TempDir,
    environment: Environment,
    configured: Option<PathBuf>,
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        fs::create_dir(&home).unwrap();
        let environment =
            Environment::from_variables([("HOME", home.as_os_str()), ("PATH", "/usr/bin:/bin".as_ref())]);
        let environment = environment.with_root(folder.path());
        Self { folder, environment, configured: None }
    }

    fn at(&self, place: &str) -> PathBuf {
        self.folder.path().join(place)
    }

    fn write(&self, place: &str, text: &str) -> PathBuf {
        let path = self.at(place);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn program(&self, place: &str, text: &str) -> PathBuf {
        let path = self.write(place, text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// An nvcc that answers `--version`, and `--dryrun` if it is given a folder to name.
    fn nvcc(&self, place: &str, version: &str, top: Option<&Path>) -> PathBuf {
        let dry = top.map(|top| {
            format!(
                "echo '#$ TOP={0}/bin/..' >&2; echo '#$ INCLUDES=\"-I{0}/bin/../include\"  ' >&2",
                top.display()
            )
        });
        let dry = dry.unwrap_or("exit 1".into());
        self.program(place, &format!(
            "#!/bin/sh\ncase $1 in --version) echo 'Cuda compilation tools, release {version}, V{version}.1';; *) {dry};; esac\n"
        ))
    }

    fn headers(&self, place: &str, version: &str) {
        let (major, minor) = version.split_once('.').unwrap();
        let number = major.parse::<u32>().unwrap() * 1000 + minor.parse::<u32>().unwrap() * 10;
        self.write(&format!("{place}/cuda_runtime.h"), "#include \"cuda_runtime_api.h\"\n");
        self.write(
            &format!("{place}/cuda_runtime_api.h"),
            &format!("/* */\n#define CUDART_VERSION  {number}\n"),
        );
    }

    /// A whole toolkit in NVIDIA's usual layout.
    fn toolkit(&self, place: &str, version: &str) {
        self.nvcc(&format!("{place}/bin/nvcc"), version, None);
        self.headers(&format!("{place}/include"), version);
        self.write(&format!("{place}/lib64/libcudart.so"), "");
    }

    fn set(&mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) {
        self.environment = self.environment.clone().with(name, value.as_ref());
    }

    fn path(&mut self, places: &[&str]) {
        let folders = places.iter().map(|place| self.at(place)).chain(["/usr/bin".into(), "/bin".into()]);
        let joined = std::env::join_paths(folders).unwrap();
        self.set("PATH", joined);
    }

    fn search(&self) -> Search {
        let workspace = Some(self.at("workspace"));
        Search { configured: self.configured.clone(), workspace, environment: self.environment.clone() }
    }

    fn find(&self) -> Discovery {
        discovery::find(&self.search())
    }
}

fn chosen(found: &Discovery) -> (String, Origin) {
    let toolkit = found.chosen.as_ref().unwrap_or_else(|| panic!("nothing chosen: {found:?}"));
    (toolkit.version.to_string(), toolkit.origin)
}

fn seen(found: &Discovery) -> Vec<(String, Origin)> {
    found.seen.iter().map(|toolkit| (toolkit.version.to_string(), toolkit.origin)).collect()
}

#[test]
fn headers_in_a_conda_environment_are_found_and_never_mixed() {
    let folder = tempfile::tempdir().unwrap();
    let top = folder.path().canonicalize().unwrap().join("T");
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/toolkit_in_conda");
    let made = std::process::Command::new("sh").arg("make.sh").arg(&top).current_dir(&data).status().unwrap();
    assert!(made.success());
    let (environment, old) = (top.join("env"), top.join("old"));
    let on_path = format!("{0}/env/bin:{0}/old/bin:/usr/bin:/bin", top.display());
    let old_on_path = format!("{0}/old/bin:/usr/bin:/bin", top.display());
    let conda = ("CONDA_PREFIX", environment.to_str().unwrap().to_string());
    let home = ("CUDA_HOME", environment.to_str().unwrap().to_string());
    let cases = [
        (vec![conda.clone(), ("PATH", on_path.clone())], Origin::Path),
        (vec![conda.clone(), ("PATH", on_path), home.clone()], Origin::CudaHome),
        (vec![("PATH", old_on_path), home], Origin::CudaHome),
        (vec![conda, ("PATH", "/usr/bin:/bin".into())], Origin::Conda),
    ];
    for (variables, origin) in cases {
        let with_path_to_old = variables.iter().any(|(_, value)| value.contains("/old/"));
        let search = Search::new(Environment::from_variables(variables).with_root(folder.path()));
        let found = discovery::find(&search);
        let toolkit = found.chosen.as_ref().unwrap();
        assert_eq!(
            (toolkit.nvcc.clone(), toolkit.version.to_string()),
            (environment.join("bin/nvcc"), "12.6".into())
        );
        assert_eq!(toolkit.include, environment.join("targets/x86_64-linux/include"));
        assert_eq!(toolkit.origin, origin);
        assert!(found.problems.is_empty(), "{:?}", found.problems);
        let old_toolkit = found.seen.iter().find(|seen| seen.nvcc == old.join("bin/nvcc"));
        assert_eq!(old_toolkit.is_some(), with_path_to_old);
        if let Some(old_toolkit) = old_toolkit {
            assert_eq!(
                (old_toolkit.version.to_string(), &old_toolkit.include),
                ("11.8".into(), &old.join("include"))
            );
        }
        let json = serde_json::to_value(&found).unwrap();
        assert_eq!(json["chosen"]["version"], "12.6");
    }
}

#[test]
fn each_place_is_searched_and_they_come_in_order() {
    let mut machine = Machine::new();
    let places = [
        ("configured", "13.9", Origin::Configured),
        ("cuda-home", "13.8", Origin::CudaHome),
        ("cuda-path", "13.7", Origin::CudaPath),
        ("on-path", "13.6", Origin::Path),
        ("usr/local/cuda", "13.5", Origin::UsrLocal),
        ("usr/local/cuda-13.4", "13.4", Origin::UsrLocal),
        ("usr/local/cuda-9.2", "9.2", Origin::UsrLocal),
        ("opt/cuda", "13.3", Origin::UsrLocal),
        ("virtual/lib/python3.12/site-packages/nvidia/cu14", "14.0", Origin::PythonEnvironment),
        ("virtual/lib/python3.12/site-packages/nvidia/cu13", "13.2", Origin::PythonEnvironment),
        ("workspace/.venv/lib/python3.11/site-packages/nvidia/cu13", "13.1", Origin::PythonEnvironment),
        ("conda", "13.0", Origin::Conda),
        ("home/.cache/stitchcuda/toolkits/12.9", "12.9", Origin::Private),
        ("home/.cache/stitchcuda/toolkits/12.8", "12.8", Origin::Private),
    ];
    for (place, version, _) in places {
        machine.toolkit(place, version);
    }
    machine.write("workspace/.venv/pyvenv.cfg", "");
    machine.write("home/.cache/stitchcuda/toolkits/.new-half/bin/nvcc", "");
    machine.configured = Some("configured".into());
    fs::rename(machine.at("configured"), machine.at("workspace/configured")).unwrap();
    machine.set("CUDA_HOME", machine.at("cuda-home"));
    machine.set("CUDA_PATH", machine.at("cuda-path"));
    machine.set("VIRTUAL_ENV", machine.at("virtual"));
    machine.set("CONDA_PREFIX", machine.at("conda"));
    machine.path(&["on-path/bin"]);
    let found = machine.find();
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    let mut all = vec![chosen(&found)];
    all.extend(seen(&found));
    let expected: Vec<_> = places.iter().map(|(_, version, origin)| (version.to_string(), *origin)).collect();
    assert_eq!(all, expected);
    assert_eq!(found.chosen.unwrap().library, Some(machine.at("workspace/configured/lib64")));
}

#[test]
fn wheels_behind_a_link_are_named_once() {
    let machine = Machine::new();
    machine.write("workspace/.venv/pyvenv.cfg", "");
    machine.write("workspace/.venv/lib/python3.11/site-packages/nvidia/cuda_nvcc/bin/ptxas", "");
    std::os::unix::fs::symlink("lib", machine.at("workspace/.venv/lib64")).unwrap();
    let notes = machine.find().notes;
    assert_eq!(notes.iter().filter(|note| note.contains("ptxas but no nvcc")).count(), 1, "{notes:?}");
}

#[test]
fn a_configured_toolkit_may_be_named_in_three_ways() {
    let mut machine = Machine::new();
    machine.toolkit("home/cuda", "12.6");
    for (name, works) in
        [("~/cuda", true), ("~/cuda/bin", true), ("~/cuda/bin/nvcc", true), ("~/cuda/include", false)]
    {
        machine.configured = Some(name.into());
        let found = machine.find();
        assert_eq!(found.chosen.is_some(), works, "{name}: {found:?}");
        let texts = [found.problems.join("\n"), found.advice()].concat();
        assert!(!texts.contains("..") && !texts.contains(".;"), "{texts}");
    }
}

#[test]
fn a_broken_explicit_setting_is_an_error_that_names_it() {
    let mut machine = Machine::new();
    machine.toolkit("good", "12.6");
    machine.path(&["good/bin"]);
    machine.nvcc("no-headers/bin/nvcc", "12.4", None);
    machine.program("mute/bin/nvcc", "#!/bin/sh\nexit 3\n");
    machine.write("plain/bin/nvcc", "#!/bin/sh\n");
    machine.write("runtime/include/cuda_runtime.h", "");
    machine.program("loader/bin/nvcc", "#!/no/such/shell\n");
    let cases = [
        ("gone", "no such file"),
        ("runtime", "no bin/nvcc"),
        ("plain", "not executable"),
        ("mute", "did not say which CUDA release"),
        ("no-headers", "no headers of that release"),
        ("loader", "interpreter /no/such/shell"),
    ];
    for (place, expected) in cases {
        let folder = machine.at(place);
        machine.configured = Some(folder.clone());
        let found = machine.find();
        assert!(found.chosen.is_none(), "{place}");
        assert_eq!(seen(&found), [("12.6".to_string(), Origin::Path)]);
        assert_eq!(found.problems.len(), 1, "{:?}", found.problems);
        let problem = &found.problems[0];
        assert!(problem.contains(expected) && problem.contains("configuration"), "{problem}");
        assert!(problem.contains(&*folder.to_string_lossy()), "{problem}");

        // In the environment it is as loud, but the search goes on: CUDA_HOME is often left over from another machine.
        machine.configured = None;
        machine.set("CUDA_HOME", &folder);
        let found = machine.find();
        assert_eq!(chosen(&found), ("12.6".into(), Origin::Path));
        assert!(
            found.problems[0].contains(expected) && found.problems[0].contains("CUDA_HOME"),
            "{:?}",
            found.problems
        );
        machine.environment = machine.environment.clone().without("CUDA_HOME");
    }
}

#[test]
fn links_are_followed_to_the_toolkit() {
    let mut machine = Machine::new();
    machine.toolkit("usr/local/cuda-12.4", "12.4");
    fs::create_dir_all(machine.at("etc/alternatives")).unwrap();
    fs::create_dir_all(machine.at("usr/bin")).unwrap();
    symlink(machine.at("usr/local/cuda-12.4"), machine.at("usr/local/cuda")).unwrap();
    symlink(machine.at("usr/local/cuda/bin/nvcc"), machine.at("etc/alternatives/nvcc")).unwrap();
    symlink(machine.at("etc/alternatives/nvcc"), machine.at("usr/bin/nvcc")).unwrap();
    // Headers of Debian's package of another release lie where the link lies: they must not be taken.
    machine.headers("usr/include", "11.8");
    machine.path(&["usr/bin"]);
    let found = machine.find();
    let toolkit = found.chosen.clone().unwrap();
    let real = machine.at("usr/local/cuda-12.4").canonicalize().unwrap();
    assert_eq!((toolkit.nvcc, toolkit.include), (real.join("bin/nvcc"), real.join("include")));
    assert!(found.seen.is_empty() && found.problems.is_empty(), "{found:?}");
}

#[test]
fn debians_package_has_its_headers_in_usr_include() {
    let mut machine = Machine::new();
    machine.nvcc("usr/bin/nvcc", "11.8", None);
    machine.headers("usr/include", "11.8");
    machine.path(&["usr/bin"]);
    let toolkit = machine.find().chosen.unwrap();
    assert_eq!((toolkit.root, toolkit.include), (machine.at("usr"), machine.at("usr/include")));
}

#[test]
fn a_wrapper_script_is_asked_where_its_toolkit_is() {
    let mut machine = Machine::new();
    machine.toolkit("elsewhere/cuda", "12.5");
    let wrapper = machine.nvcc("home/bin/nvcc", "12.5", Some(&machine.at("elsewhere/cuda")));
    machine.path(&["home/bin"]);
    let toolkit = machine.find().chosen.unwrap();
    assert_eq!((toolkit.nvcc, toolkit.root), (wrapper, machine.at("elsewhere/cuda")));
    assert_eq!(toolkit.include, machine.at("elsewhere/cuda/include"));

    // A link to a program of another name (as ccache makes them) is run by the name of the link.
    let mut machine = Machine::new();
    machine.toolkit("elsewhere/cuda", "12.5");
    let inner = machine.nvcc("usr/bin/ccache", "12.5", Some(&machine.at("elsewhere/cuda")));
    fs::create_dir_all(machine.at("usr/lib/ccache")).unwrap();
    symlink(inner, machine.at("usr/lib/ccache/nvcc")).unwrap();
    machine.path(&["usr/lib/ccache"]);
    let toolkit = machine.find().chosen.unwrap();
    assert_eq!(
        (toolkit.nvcc, toolkit.root),
        (machine.at("usr/lib/ccache/nvcc"), machine.at("elsewhere/cuda"))
    );
}

#[test]
fn headers_of_another_release_are_not_taken() {
    let mut machine = Machine::new();
    machine.nvcc("env/bin/nvcc", "12.6", None);
    machine.headers("env/include", "11.8");
    machine.path(&["env/bin"]);
    let found = machine.find();
    assert!(found.chosen.is_none());
    assert!(found.problems[0].contains("headers of CUDA 11.8"), "{:?}", found.problems);
    // The right ones are found behind the wrong ones.
    machine.headers("env/targets/x86_64-linux/include", "12.6");
    machine.headers("env/targets/sbsa-linux/include", "12.6");
    let include = machine.find().chosen.unwrap().include;
    assert!(include.starts_with(machine.at("env/targets")), "{include:?}");
    // Another minor release of the same major one works, and is noted.
    machine.headers("env/include", "12.5");
    fs::remove_dir_all(machine.at("env/targets")).unwrap();
    let found = machine.find();
    assert_eq!(found.chosen.unwrap().include, machine.at("env/include"));
    assert!(found.notes[0].contains("12.5"), "{:?}", found.notes);
}

#[test]
fn wheels_with_ptxas_alone_are_no_toolkit() {
    let mut machine = Machine::new();
    machine.program("v/lib/python3.10/site-packages/nvidia/cuda_nvcc/bin/ptxas", "#!/bin/sh\n");
    machine.set("VIRTUAL_ENV", machine.at("v"));
    let found = machine.find();
    assert!(found.chosen.is_none() && found.problems.is_empty());
    assert!(found.notes[0].contains("ptxas but no nvcc"), "{:?}", found.notes);
    assert!(
        found.advice().contains("toolchain install") && found.advice().contains("ptxas"),
        "{}",
        found.advice()
    );
}

#[test]
fn a_python_on_path_is_asked_if_its_place_says_nothing() {
    let mut machine = Machine::new();
    machine.toolkit("versions/3.11/packages/nvidia/cu13", "13.1");
    let packages = machine.at("versions/3.11/packages");
    machine
        .program("shims/python3", &format!("#!/bin/sh\necho {}\necho /no/such/folder\n", packages.display()));
    machine.path(&["shims"]);
    assert_eq!(chosen(&machine.find()), ("13.1".into(), Origin::PythonEnvironment));
}

#[test]
fn an_nvcc_changed_in_place_is_asked_again() {
    let mut machine = Machine::new();
    machine.toolkit("cuda", "12.6");
    machine.path(&["cuda/bin"]);
    assert_eq!(chosen(&machine.find()).0, "12.6");
    fs::remove_dir_all(machine.at("cuda")).unwrap();
    machine.toolkit("cuda", "12.10");
    assert_eq!(chosen(&machine.find()).0, "12.10");
}

#[test]
fn tools_are_found_in_their_hiding_places() {
    let mut machine = Machine::new();
    machine.toolkit("cuda", "12.6");
    let says = |text: &str| format!("#!/bin/sh\necho '{text}'\n");
    machine.program("opt/nvidia/nsight-compute/2024.3.2/ncu", &says("Version 2024.3.2.0 (build 1)"));
    machine.program("opt/nvidia/nsight-compute/2025.1.0/ncu", &says("Version 2025.1.0.0 (build 1)"));
    machine.program(
        "opt/nvidia/nsight-compute/2025.1.0/host/target-linux-x64/nsys",
        &says("NVIDIA Nsight Systems version 2024.6.2.1-2v0"),
    );
    machine.program("cuda/bin/cuobjdump", &says("Cuda compilation tools, release 12.6, V12.6.85"));
    machine.program("cuda/compute-sanitizer/compute-sanitizer", &says("Version 2024.3.1"));
    machine.program("tools/clang-22", &says("Debian clang version 22.1.8"));
    machine.program("tools/clang", &says("clang version 14.0.6"));
    machine.write("usr/lib/x86_64-linux-gnu/libcuda.so.1", "");
    machine.set("PATH", machine.at("tools"));
    let toolkit = {
        machine.configured = Some(machine.at("cuda"));
        machine.find().chosen.unwrap()
    };
    let found = discovery::tools(&machine.search(), Some(&toolkit));
    let version = |tool: &Option<discovery::Tool>| {
        tool.as_ref().and_then(|tool| tool.version.clone()).unwrap_or_default()
    };
    assert_eq!(version(&found.ncu), "2025.1.0.0");
    assert_eq!(version(&found.nsys), "2024.6.2.1");
    assert_eq!(version(&found.cuobjdump), "12.6");
    assert_eq!(version(&found.compute_sanitizer), "2024.3.1");
    assert_eq!(version(&found.clang), "22.1.8");
    assert!(found.nvdisasm.is_none() && found.nvidia_smi.is_none());
    assert_eq!(found.libcuda.unwrap().path, machine.at("usr/lib/x86_64-linux-gnu/libcuda.so.1"));
}

#[test]
fn a_host_compiler_that_is_too_new_is_refused_and_an_older_one_named() {
    let mut machine = Machine::new();
    machine.toolkit("cuda", "12.4");
    machine.program("tools/g++", "#!/bin/sh\necho 'g++ (GCC) 15.1.0'\n");
    machine.set("PATH", machine.at("tools"));
    machine.configured = Some(machine.at("cuda"));
    let toolkit = machine.find().chosen.unwrap();
    let compilers = discovery::host_compilers(&machine.search(), Some(&toolkit));
    let Verdict::Refused(why) = compilers.default.unwrap().verdict else { panic!("accepted") };
    assert!(why.contains("up to 13") && why.contains("15"), "{why}");
    assert!(compilers.usable.is_none());
    machine.program("tools/g++-12", "#!/bin/sh\necho 'g++-12 (GCC) 12.2.0'\n");
    let compilers = discovery::host_compilers(&machine.search(), Some(&toolkit));
    assert_eq!(compilers.usable.unwrap().path, machine.at("tools/g++-12"));
    // The toolkit's own header knows better than the table.
    machine.write("cuda/include/crt/host_config.h", "#if __GNUC__ > 15\n#if (__clang_major__ >= 21) || x\n");
    let compilers = discovery::host_compilers(&machine.search(), Some(&toolkit));
    assert_eq!(compilers.usable.unwrap().verdict, Verdict::Accepted);
}
