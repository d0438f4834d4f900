//! Builds programs, runs them on the simulator, and keeps what they print.

#![allow(dead_code)] // Each test uses a part.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use stitch_simulator::device::Device;
use stitch_simulator::runtime::engine::Engine;
use stitch_simulator::runtime::report::Report;
use stitch_simulator::runtime::{Config, Watch, serve, stub};

/// A folder, and the engine that programs run on.
pub struct Bench {
    folder: tempfile::TempDir,
    engine: fn() -> Box<dyn Engine>,
}

/// What a program printed, and what the simulator says of it.
pub struct Outcome {
    pub out: String,
    pub err: String,
    pub report: Report,
}

pub fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs")
}

impl Bench {
    pub fn new(engine: fn() -> Box<dyn Engine>) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), engine }
    }

    /// Shared by all tests: it is built once.
    pub fn cache() -> PathBuf {
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("stub")
    }

    /// Builds a program against one version of the stub.
    pub fn build(&self, name: &str, version: u32) -> PathBuf {
        let library = stub::build(&Self::cache(), "cc").unwrap().join(format!("libcudart.so.{version}"));
        let program = self.folder.path().join(format!("{name}-{version}"));
        let built = Command::new("cc")
            .args(["-O1", "-pthread", "-Wall", "-Werror"])
            .arg(programs().join(format!("{name}.c")))
            .arg("-Wl,--no-as-needed")
            .arg(library)
            .arg("-o")
            .arg(&program)
            .output()
            .unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        program
    }

    pub fn config(&self, command: Vec<OsString>) -> Config {
        let output = |name: &str| Stdio::from(File::create(self.folder.path().join(name)).unwrap());
        Config {
            command,
            folder: None,
            environment: Vec::new(),
            device: Device::named("h200").unwrap(),
            engine: (self.engine)(),
            cache: Self::cache(),
            compiler: "cc".to_owned(),
            time_limit: Some(Duration::from_secs(60)),
            stdin: Stdio::null(),
            stdout: output("out"),
            stderr: output("err"),
            watch: Watch::default(),
        }
    }

    pub fn serve(&self, config: Config, cancel: &AtomicBool) -> Outcome {
        let report = serve(config, cancel).unwrap();
        let read = |name: &str| fs::read_to_string(self.folder.path().join(name)).unwrap();
        Outcome { out: read("out"), err: read("err"), report }
    }

    /// Where things may be put.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn run(&self, name: &str, version: u32) -> Outcome {
        let program = self.build(name, version).into_os_string();
        self.serve(self.config(vec![program]), &AtomicBool::new(false))
    }
}
