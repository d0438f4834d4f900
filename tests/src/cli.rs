//! The command line as a person or a script runs it: a process in a folder of its own, with none of this machine's settings.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::lsp_client;

/// The binary: the one that `cargo xtask test` built, else the one beside the test.
///
/// # Errors
/// It can't be built.
pub fn binary() -> Result<PathBuf> {
    std::env::var_os("STITCHCUDA_TEST_BINARY").map_or_else(lsp_client::binary, |path| Ok(PathBuf::from(path)))
}

/// The toolkit that `cargo xtask test` installed: the newest in its cache folder.
///
/// # Errors
/// It is not there.
pub fn toolkit() -> Result<PathBuf> {
    let toolkits = cache()?.join("toolkits");
    let entries = fs::read_dir(&toolkits).with_context(|| format!("no toolkit in {}", toolkits.display()))?;
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    found.retain(|folder| folder.join("bin/nvcc").is_file());
    found.sort();
    found.pop().with_context(|| format!("no toolkit in {}; run `cargo xtask test`", toolkits.display()))
}

/// The cache folder in which `cargo xtask test` installed a toolkit.
///
/// # Errors
/// The test lies in no target folder.
pub fn cache() -> Result<PathBuf> {
    if let Some(cache) = std::env::var_os("STITCHCUDA_TEST_CACHE") {
        return Ok(PathBuf::from(cache));
    }
    let test = std::env::current_exe().context("finding the test's own program")?;
    Ok(test.ancestors().nth(3).context("the test lies in no target folder")?.join("test-cache"))
}

/// A folder with files, in which commands are run.
#[derive(Debug)]
pub struct Folder {
    folder: tempfile::TempDir,
}

/// What a command printed, and how it ended.
#[derive(Debug)]
pub struct Finished {
    /// The exit status; `None` if a signal ended it.
    pub status: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Folder {
    /// An empty folder.
    ///
    /// # Errors
    /// It can't be made.
    pub fn new() -> Result<Self> {
        let folder = tempfile::tempdir().context("making a folder")?;
        fs::create_dir_all(folder.path().join("work")).context("making a folder")?;
        Ok(Self { folder })
    }

    /// A folder with these files.
    ///
    /// # Errors
    /// They can't be written.
    pub fn with<T: AsRef<[u8]>>(files: &[(&str, T)]) -> Result<Self> {
        let folder = Self::new()?;
        for (name, text) in files {
            folder.write(name, text)?;
        }
        Ok(folder)
    }

    /// Where commands are run.
    ///
    /// # Errors
    /// It is gone.
    pub fn path(&self) -> Result<PathBuf> {
        self.folder.path().join("work").canonicalize().context("the folder is gone")
    }

    /// Writes a file, and the folders it is in.
    ///
    /// # Errors
    /// It can't be written.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> Result<PathBuf> {
        let path = self.path()?.join(name);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        }
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        Ok(path)
    }

    /// Copies a folder of fixtures here, with `@CASE@` in its files replaced by this folder.
    ///
    /// # Errors
    /// It can't be read or written.
    pub fn copy(&self, fixtures: &Path) -> Result<()> {
        let here = self.path()?.display().to_string();
        let mut folders = vec![fixtures.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let name = path.strip_prefix(fixtures)?.to_string_lossy().into_owned();
                self.write(&name, fs::read_to_string(&path)?.replace("@CASE@", &here))?;
            }
        }
        Ok(())
    }

    /// `stitchcuda` with these arguments, where nothing but the system's own programs is to be found.
    ///
    /// # Errors
    /// The binary can't be built.
    pub fn bare(&self, arguments: &[&str]) -> Result<Command> {
        let mut command = Command::new(binary()?);
        let home = self.folder.path().join("home");
        command
            .args(arguments)
            .current_dir(self.path()?)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", &home)
            .env("STITCHCUDA_CACHE_DIR", home.join("cache"))
            .env("STITCHCUDA_CONFIG_DIR", home.join("config"))
            .env("STITCHCUDA_STATE_DIR", home.join("state"))
            .stdin(Stdio::null());
        Ok(command)
    }

    /// The same with the toolkit of `cargo xtask test`.
    ///
    /// # Errors
    /// There is no binary, or no toolkit.
    pub fn command(&self, arguments: &[&str]) -> Result<Command> {
        let mut command = self.bare(arguments)?;
        command.env("CUDA_HOME", toolkit()?);
        Ok(command)
    }

    /// Runs `stitchcuda` with the toolkit.
    ///
    /// # Errors
    /// It can't be run, or prints no UTF-8.
    pub fn run(&self, arguments: &[&str]) -> Result<Finished> {
        finish(&mut self.command(arguments)?)
    }

    /// Checks files and reads the report.
    ///
    /// # Errors
    /// It can't be run, or prints no JSON.
    pub fn check(&self, files: &[&str]) -> Result<(Finished, Value)> {
        let finished = self.run(&[&["check", "--format", "json"], files].concat())?;
        let report = finished.json()?;
        ensure!(report["schema"] == "stitchcuda.check/1", "{report}");
        Ok((finished, report))
    }
}

/// Runs a command to its end.
///
/// # Errors
/// It can't be run, or prints no UTF-8.
pub fn finish(command: &mut Command) -> Result<Finished> {
    let Output { status, stdout, stderr } = command.output().context("running stitchcuda")?;
    let text = |bytes| String::from_utf8(bytes).context("stitchcuda printed no UTF-8");
    Ok(Finished { status: status.code(), out: text(stdout)?, err: text(stderr)? })
}

impl Finished {
    /// Standard output as JSON.
    ///
    /// # Errors
    /// It is none.
    pub fn json(&self) -> Result<Value> {
        serde_json::from_str(&self.out).with_context(|| format!("no JSON: {:?}; {}", self.out, self.err))
    }
}

/// The findings of a report, each as `file:line:column severity code`; those of the static rules only where `rules`.
pub fn findings(report: &Value, rules: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for file in report["files"].as_array().into_iter().flatten() {
        for finding in file["findings"].as_array().into_iter().flatten() {
            let word = |value: &Value| value.as_str().unwrap_or("?").to_owned();
            let (path, code) = (word(&file["path"]), word(&finding["code"]));
            let name = Path::new(&path).file_name().map(OsStr::to_string_lossy).unwrap_or_default();
            let (line, column) = (&finding["range"]["startLine"], &finding["range"]["startColumn"]);
            if rules || !code.starts_with("static/") {
                lines.push(format!("{name}:{line}:{column} {} {code}", word(&finding["severity"])));
            }
        }
    }
    lines
}

/// The kernel of a report by its name.
pub fn kernel<'a>(report: &'a Value, name: &str) -> &'a Value {
    let files = report["files"].as_array().into_iter().flatten();
    let mut kernels = files.flat_map(|file| file["kernels"].as_array().into_iter().flatten());
    kernels.find(|kernel| kernel["name"] == name).unwrap_or(&Value::Null)
}
