//! The Python interpreter that has torch.
//!
//! Asking one means importing torch, which takes seconds; a yes is remembered on disk for as long as neither the interpreter nor torch
//! changes. A no is quick, and asked again: a person may have installed torch meanwhile.

use std::fs;
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use stitch_toolchain::discovery::{Interpreter, Search, interpreters};
use stitch_toolchain::process::Program;
use xxhash_rust::xxh3::Xxh3;

/// How long an import of torch may take: minutes from a cold network disk.
const TIME_LIMIT: Duration = Duration::from_secs(180);
/// Where interpreters lie though nothing points to them.
const USUAL: &[&str] = &["usr/bin/python3", "usr/local/bin/python3"];
/// The oldest versions that the runner works with.
const OLDEST: (&str, &str) = ("3.9", "1.13");
const QUESTION: &str = r#"
import json, site, sys
import torch
print("\n" + json.dumps({
    "version": sys.version.split()[0], "torch": torch.__version__, "cuda": torch.version.cuda,
    "folder": torch.__path__[0], "user_base": site.getuserbase(),
    "prefixes": sorted({sys.prefix, sys.base_prefix, sys.exec_prefix}),
}))
"#;

/// An interpreter that has torch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Python {
    /// The program.
    #[serde(skip)]
    pub path: PathBuf,
    /// How it was found, in words.
    #[serde(skip)]
    pub origin: String,
    /// Its version.
    pub version: String,
    /// Torch's version.
    pub torch: String,
    /// The CUDA version that torch was built with; `None` for one that has only the CPU.
    pub cuda: Option<String>,
    /// Torch's folder.
    pub folder: PathBuf,
    /// The folder of packages that the user installed for this interpreter.
    pub user_base: Option<PathBuf>,
    /// The folders of its installation.
    pub prefixes: Vec<PathBuf>,
}

/// No interpreter with torch was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", advice(tried, *was_named))]
pub struct NoTorch {
    /// What was tried, and what came of it.
    pub tried: Vec<(PathBuf, String)>,
    /// Whether a person named the interpreter.
    pub was_named: bool,
}

fn advice(tried: &[(PathBuf, String)], was_named: bool) -> String {
    let get = "Install torch for it (`python3 -m pip install torch`; https://pytorch.org/get-started has the line for each GPU)";
    match tried {
        [] => format!(
            "No Python interpreter was found, and verifying PyTorch code needs one with torch. {get}, or name one with --python."
        ),
        [(path, why)] if was_named => {
            format!("{} can't be used: {why}. {get}, or name another.", path.display())
        }
        _ => {
            let tried: Vec<_> =
                tried.iter().map(|(path, why)| format!("{} ({why})", path.display())).collect();
            format!(
                "No Python interpreter has torch. Tried: {}. {get}, activate the environment that has it, or name its interpreter with \
                 --python.",
                tried.join(", ")
            )
        }
    }
}

/// Finds it: the one that is named, else the first that has torch of the active environments, of `PATH`, of the usual places. Blocks
/// while torch is imported.
///
/// # Errors
/// There is none; says what was tried.
pub fn find(named: Option<&Path>, search: &Search, cache: Option<&Path>) -> Result<Python, NoTorch> {
    let interpreters = match named {
        Some(path) => {
            let found = path.to_str().and_then(|name| search.environment.find_program(name));
            let path =
                if path.components().count() == 1 { found } else { None }.unwrap_or_else(|| path.to_owned());
            vec![Interpreter { path, origin: "the configuration".to_owned() }]
        }
        None => all(search),
    };
    let mut tried = Vec::new();
    for interpreter in interpreters {
        match ask(&interpreter, search, cache) {
            Ok(python) => return Ok(python),
            Err(why) => tried.push((interpreter.path, why)),
        }
    }
    Err(NoTorch { tried, was_named: named.is_some() })
}

fn all(search: &Search) -> Vec<Interpreter> {
    let mut all = interpreters(search);
    for usual in USUAL {
        let path = search.environment.under_root(usual);
        if path.is_file() && all.iter().all(|known| known.path != path) {
            all.push(Interpreter { path, origin: "the usual places".to_owned() });
        }
    }
    all
}

/// What is remembered of an answer.
#[derive(Serialize, Deserialize)]
struct Remembered {
    python: Python,
    /// When the interpreter and torch were last changed.
    changed: (Option<u128>, Option<u128>),
}

fn ask(interpreter: &Interpreter, search: &Search, cache: Option<&Path>) -> Result<Python, String> {
    let path = &interpreter.path;
    let mut hasher = Xxh3::new();
    hasher.write(path.as_os_str().as_encoded_bytes());
    // Another PYTHONPATH may have another torch.
    hasher.write(search.environment.get("PYTHONPATH").unwrap_or_default().as_encoded_bytes());
    let remembered = cache.map(|cache| cache.join(format!("torch-{:016x}.json", hasher.finish())));
    let state = |python: &Python| (changed(path), changed(&python.folder.join("version.py")));
    let with = |python: Python| Python { path: path.clone(), origin: interpreter.origin.clone(), ..python };
    if let Some(known) = remembered.as_deref().and_then(recall)
        && known.changed == state(&known.python)
        && known.changed.1.is_some()
    {
        return Ok(with(known.python));
    }
    let python = with(import(path, search)?);
    if let Some(file) = remembered {
        let known = Remembered { changed: state(&python), python: python.clone() };
        if let Err(error) = remember(&file, &known) {
            tracing::debug!("{} could not be written: {error}", file.display());
        }
    }
    Ok(python)
}

fn import(path: &Path, search: &Search) -> Result<Python, String> {
    let environment = search.environment.clone().without_secrets().with("CUDA_VISIBLE_DEVICES", "");
    let folder = tempfile::tempdir().map_err(|error| format!("there is no temporary folder: {error}"))?;
    let finished = Program::new(path)
        .args(["-c", QUESTION])
        .environment(environment)
        .current_dir(folder.path())
        .time_limit(TIME_LIMIT)
        .output_limit(1 << 16)
        .run_blocking()
        .map_err(|error| error.to_string().trim_end_matches('.').to_owned())?;
    if !finished.status.success() {
        let text = finished.stderr_text();
        let last = text.trim().lines().next_back().unwrap_or("it says nothing").to_owned();
        return Err(if last.contains("No module named 'torch'") {
            "it has no torch".to_owned()
        } else {
            last
        });
    }
    let text = finished.stdout_text();
    let line = text.trim().lines().next_back().unwrap_or_default();
    let python: Python =
        serde_json::from_str(line).map_err(|error| format!("its answer is not understood: {error}"))?;
    let (oldest_python, oldest_torch) = OLDEST;
    if older(&python.version, oldest_python) || older(&python.torch, oldest_torch) {
        return Err(format!(
            "it is Python {} with torch {}, and Python {oldest_python} with torch {oldest_torch} are the oldest that work",
            python.version, python.torch
        ));
    }
    Ok(python)
}

/// Whether a version is older than another, by its first two numbers.
fn older(version: &str, oldest: &str) -> bool {
    let numbers = |text: &str| {
        let mut numbers = text.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        (numbers.next(), numbers.next())
    };
    numbers(version) < numbers(oldest)
}

fn changed(path: &Path) -> Option<u128> {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified()).ok()?;
    modified.duration_since(UNIX_EPOCH).ok().map(|passed| passed.as_nanos())
}

fn recall(file: &Path) -> Option<Remembered> {
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}

fn remember(file: &Path, known: &Remembered) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut aside = tempfile::NamedTempFile::new_in(folder)?;
    serde_json::to_writer(&mut aside, known)?;
    aside.persist(file)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use stitch_toolchain::environment::Environment;

    use super::*;

    /// A folder of programs on a `PATH` of its own, under a root without the usual ones.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn put(&self, folder: &str, script: &str) -> PathBuf {
            let folder = self.0.path().join(folder);
            fs::create_dir_all(&folder).unwrap();
            let path = folder.join("python3");
            fs::write(&path, format!("#!/bin/sh\necho x >> {}/asked\n{script}\n", self.0.path().display()))
                .unwrap();
            fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
            path
        }

        /// One that answers as an interpreter with this torch does.
        fn with_torch(&self, folder: &str, torch: &str) -> PathBuf {
            let packages = self.0.path().join("torch");
            fs::create_dir_all(&packages).unwrap();
            fs::write(packages.join("version.py"), "").unwrap();
            let python = Python {
                path: PathBuf::new(),
                origin: String::new(),
                version: "3.11.2".into(),
                torch: torch.into(),
                cuda: None,
                folder: packages,
                user_base: None,
                prefixes: vec![],
            };
            self.put(folder, &format!("echo '{}'", serde_json::to_string(&python).unwrap()))
        }

        fn find(&self, named: Option<&Path>, path: &[&str]) -> Result<Python, NoTorch> {
            let path: Vec<_> = path.iter().map(|folder| self.0.path().join(folder)).collect();
            let path = std::env::join_paths(path).unwrap();
            let environment = Environment::from_variables([("PATH", path)]).with_root(self.0.path());
            find(named, &Search::new(environment), Some(&self.0.path().join("cache")))
        }

        fn asked(&self) -> usize {
            fs::read_to_string(self.0.path().join("asked")).map_or(0, |text| text.lines().count())
        }
    }

    const NONE: &str = "echo \"ModuleNotFoundError: No module named 'torch'\" >&2; exit 1";

    #[test]
    fn the_first_with_torch_is_taken_and_asked_once() {
        let machine = Machine::new();
        machine.put("a", NONE);
        let path = machine.with_torch("b", "2.11.0+cu130");
        let found = machine.find(None, &["a", "b"]).unwrap();
        assert_eq!(
            (&found.path, found.torch.as_str(), found.origin.as_str()),
            (&path, "2.11.0+cu130", "PATH")
        );
        assert_eq!(machine.asked(), 2);
        assert_eq!(machine.find(None, &["b"]).unwrap(), found);
        assert_eq!(machine.asked(), 2);
        // Torch was installed anew.
        fs::write(machine.0.path().join("torch/version.py"), "new").unwrap();
        machine.find(None, &["b"]).unwrap();
        assert_eq!(machine.asked(), 3);
    }

    #[test]
    fn without_one_it_is_said_what_was_tried_and_how_to_get_it() {
        let machine = Machine::new();
        let error = machine.find(None, &["a"]).unwrap_err().to_string();
        assert!(error.starts_with("No Python interpreter was found") && error.contains("pip install torch"));
        let without = machine.put("a", NONE);
        machine.with_torch("b", "1.12.1");
        let error = machine.find(None, &["a", "b"]).unwrap_err().to_string();
        let had = format!("{} (it has no torch)", without.display());
        assert!(error.contains(&had) && error.contains("1.13 are the oldest that work"), "{error}");
        assert!(error.contains("--python"), "{error}");
        let named = machine.find(Some(&without), &["b"]).unwrap_err();
        assert!(named.was_named && named.to_string().contains("can't be used: it has no torch"), "{named}");
        let named = machine.find(Some(Path::new("/no/such/python")), &[]).unwrap_err();
        assert!(named.to_string().contains("/no/such/python"), "{named}");
    }

    #[test]
    fn versions_are_compared_by_number() {
        assert!(older("1.9.0", "1.13") && older("0.4", "1.13"));
        assert!(!older("1.13.0a0", "1.13") && !older("2.0", "1.13") && !older("3.10.1", "3.9"));
    }
}
