//! Another machine, as far as a test can have one: a worker with a home, a cache and a toolkit of its own, where whoever orders has none.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::cli::{Folder, binary, toolkit};

/// A machine with StitchCUDA on it.
#[derive(Debug)]
pub struct Machine {
    home: tempfile::TempDir,
    environment: Vec<(String, String)>,
}

impl Machine {
    /// One with nothing but the system's own programs.
    ///
    /// # Errors
    /// There is no folder.
    pub fn bare() -> Result<Self> {
        let home = tempfile::tempdir().context("making a folder")?;
        let at = |name: &str| home.path().join(name).display().to_string();
        let environment = vec![
            ("PATH".to_owned(), "/usr/bin:/bin".to_owned()),
            ("HOME".to_owned(), at("")),
            ("STITCHCUDA_CACHE_DIR".to_owned(), at("cache")),
            ("STITCHCUDA_CONFIG_DIR".to_owned(), at("config")),
            ("STITCHCUDA_STATE_DIR".to_owned(), at("state")),
        ];
        Ok(Self { home, environment })
    }

    /// One with the toolkit of `cargo xtask test`.
    ///
    /// # Errors
    /// There is no folder, or no toolkit.
    pub fn new() -> Result<Self> {
        Ok(Self::bare()?.with("CUDA_HOME", &toolkit()?.display().to_string()))
    }

    /// The same with a variable of the environment.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Its home.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The command that gives its worker.
    ///
    /// # Errors
    /// The binary can't be built.
    pub fn command(&self) -> Result<Vec<String>> {
        let variables = self.environment.iter().map(|(name, value)| format!("{name}={value}"));
        let start = ["env".to_owned(), "-i".to_owned()];
        let end = [binary()?.display().to_string(), "worker".to_owned()];
        Ok(start.into_iter().chain(variables).chain(end).collect())
    }

    /// A command for a shell in which `WORKER` stands for the worker's.
    ///
    /// # Errors
    /// The binary can't be built.
    pub fn shell(&self, script: &str) -> Result<Vec<String>> {
        let worker: Vec<String> =
            self.command()?.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
        Ok(vec!["sh".to_owned(), "-c".to_owned(), script.replace("WORKER", &worker.join(" "))])
    }

    /// The folder of what its worker keeps.
    pub fn kept(&self) -> PathBuf {
        self.home.path().join("cache/worker")
    }

    /// How many contents it keeps.
    pub fn contents(&self) -> usize {
        fs::read_dir(self.kept().join("contents")).map_or(0, |entries| entries.flatten().count())
    }

    /// The process that does a job, waited for. `but` is one that did it before.
    ///
    /// # Errors
    /// None does one within a minute.
    pub fn doer(&self, but: Option<Pid>) -> Result<Pid> {
        let deadline = Instant::now() + Duration::from_secs(60);
        while Instant::now() < deadline {
            for entry in fs::read_dir(self.kept().join("jobs")).into_iter().flatten().flatten() {
                let folder = entry.path();
                let doer = fs::read(folder.join("doer")).ok();
                let doer = doer.and_then(|text| serde_json::from_slice::<Value>(&text).ok());
                let pid = doer.and_then(|doer| i32::try_from(doer["pid"].as_i64()?).ok()).map(Pid::from_raw);
                // A run of the program is on its way.
                let runs = fs::read_to_string(folder.join("progress")).is_ok_and(|text| !text.is_empty());
                if let Some(pid) = pid.filter(|pid| runs && Some(*pid) != but && kill(*pid, None).is_ok()) {
                    return Ok(pid);
                }
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        bail!("no worker does a job")
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // One that was stopped by a test ends only so.
        for entry in fs::read_dir(self.kept().join("jobs")).into_iter().flatten().flatten() {
            let doer = fs::read(entry.path().join("doer")).ok();
            let doer = doer.and_then(|text| serde_json::from_slice::<Value>(&text).ok());
            let pid = doer.and_then(|doer| i32::try_from(doer["pid"].as_i64()?).ok());
            if let Some(pid) = pid.map(Pid::from_raw).filter(|pid| is_worker(*pid)) {
                let _ = kill(pid, Signal::SIGKILL);
            }
        }
    }
}

/// Whether a process is a worker.
pub fn is_worker(pid: Pid) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.ends_with(b"worker\0")
}

/// Whether a process ends within so long.
pub fn ends(pid: Pid, within: Duration) -> bool {
    let deadline = Instant::now() + within;
    while Instant::now() < deadline {
        if !is_worker(pid) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    false
}

/// What a worker that does a job has started, once there is something: between two runs there is nothing for a moment.
///
/// # Errors
/// It starts nothing.
pub fn started_by(worker: Pid) -> Result<Vec<Process>> {
    let deadline = Instant::now() + Duration::from_secs(60);
    while Instant::now() < deadline {
        let started = descendants(worker);
        if !started.is_empty() {
            return Ok(started);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    bail!("the worker starts nothing")
}

/// The processes that descend from one, each with its name.
pub fn descendants(of: Pid) -> Vec<Process> {
    let all: Vec<Process> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Process::read(entry.file_name().to_str()?.parse().ok()?))
        .collect();
    let (mut found, mut next) = (vec![of.as_raw()], 0);
    while next < found.len() {
        let parent = found[next];
        found.extend(all.iter().filter(|process| process.parent == parent).map(|process| process.pid));
        next += 1;
    }
    all.into_iter().filter(|process| found[1..].contains(&process.pid)).collect()
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// The name of its program, at most 15 bytes of it.
    pub name: String,
    parent: i32,
    /// When it began, as the system counts: numbers are used again.
    began: String,
}

impl Process {
    /// The one of this number, if there is one.
    pub fn read(pid: i32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (start, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        // One that ended and was not waited for is none.
        let is_there = !matches!(*fields.first()?, "Z" | "X");
        let name = start.split_once('(')?.1.to_owned();
        let (parent, began) = (fields.get(1)?.parse().ok()?, (*fields.get(19)?).to_owned());
        is_there.then_some(Self { pid, name, parent, began })
    }

    fn is_there(&self) -> bool {
        Self::read(self.pid).is_some_and(|now| now.began == self.began)
    }
}

/// Those of some processes that are still there after so long.
pub fn left(processes: &[Process], within: Duration) -> Vec<Process> {
    let deadline = Instant::now() + within;
    loop {
        let left: Vec<Process> = processes.iter().filter(|process| process.is_there()).cloned().collect();
        if left.is_empty() || Instant::now() > deadline {
            return left;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// `stitchcuda` in a folder, on a machine that has nothing but that command to another one.
///
/// # Errors
/// The binary can't be built.
pub fn ordering(folder: &Folder, command: &[String], arguments: &[&str]) -> Result<Command> {
    let mut ordering = folder.bare(arguments)?;
    ordering.env("STITCHCUDA_WORKER_COMMAND", serde_json::to_string(command)?);
    Ok(ordering)
}

/// The body of a kernel, and another one that computes the same.
pub const RIGHT: &str = "if (i < n) y[i] = 1e-6f * square(x[i]);";
/// The other one.
pub const OTHERWISE: &str = "if (i < n) y[i] = x[i] * (1e-6f * x[i]);";

/// A folder with `ref.cu` and `good.cu`, which take so many milliseconds and compute the same, and the log that each run adds a line to.
///
/// # Errors
/// They can't be written.
pub fn pair(milliseconds: u32) -> Result<(Folder, PathBuf)> {
    let folder = Folder::new()?;
    let log = folder.path()?.join("runs.log");
    folder.write("ref.cu", program(RIGHT, &log, milliseconds))?;
    folder.write("good.cu", program(OTHERWISE, &log, milliseconds))?;
    folder.write("parts/square.cuh", HEADER)?;
    Ok((folder, log))
}

/// How many runs a log is of.
pub fn runs(log: &Path) -> usize {
    fs::read_to_string(log).unwrap_or_default().lines().count()
}

/// A program that scales its input in a kernel with this body, whose header is another file. It adds a line to `log` whenever it is run, and then
/// takes so many milliseconds.
pub fn program(body: &str, log: &Path, milliseconds: u32) -> String {
    PROGRAM
        .replace("BODY", body)
        .replace("LOG", &log.display().to_string())
        .replace("SLEEP", &(milliseconds * 1000).to_string())
}

/// The header that [`program`] includes.
pub const HEADER: &str = "#pragma once\n__device__ inline float square(float v) { return v * v; }\n";

const PROGRAM: &str = r#"#include <cstdio>
#include <unistd.h>
#include <vector>
#include "parts/square.cuh"
__global__ void tiny(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  BODY
}
int main() {
  if (FILE* log = fopen("LOG", "a")) { fprintf(log, "run\n"); fclose(log); }
  usleep(SLEEP);
  const int n = 4096;
  std::vector<float> x(n), y(n);
  unsigned r = 1;
  for (float& v : x) { r = r * 1664525u + 1013904223u; v = (r >> 8) * (1.f / 16777216.f) + 0.25f; }
  float *dx, *dy;
  cudaMalloc(&dx, n * sizeof(float)); cudaMalloc(&dy, n * sizeof(float));
  cudaMemcpy(dx, x.data(), n * sizeof(float), cudaMemcpyHostToDevice);
  tiny<<<(n + 255) / 256, 256>>>(dx, dy, n);
  cudaMemcpy(y.data(), dy, n * sizeof(float), cudaMemcpyDeviceToHost);
  return 0;
}
"#;
