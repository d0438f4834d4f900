//! Builds of `torch.utils.cpp_extension`'s extensions: the same functions in seconds instead of a minute.
//!
//! A child's `load` and `load_inline` run torch's own code up to the build file and the sources; those come here. Kernels are then taken apart
//! from the C++ around them (`split.rs`), so that nvcc never reads torch's headers, and what a C++ compiler reads of these is compiled once
//! for all (`preludes.rs`). What can't be taken apart for sure, nvcc compiles whole; what fails is built once more, as torch builds it, and
//! what is said then is what torch would have said.
//!
//! Compilers run in a sandbox of their own, which sees neither what a candidate wrote nor what it could write. What they make is kept under a
//! hash of everything that went in (`store.rs`), which no candidate's process can see: it gets the bytes.

pub(crate) mod environment;
mod flags;
mod headers;
mod launch;
mod ninja;
mod plan;
mod preludes;
mod split;
mod store;
mod tools;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use stitch_session::CancellationToken;
use stitch_session::cache::Cache;
use stitch_toolchain::process::{Finished, Scratch};

use super::host::{Needs, Place, Wrap};
use ninja::BuildFile;
use plan::{OUTPUT, Plan};
use store::{Built, Store};
use tools::Tools;

/// What a child asks for: what torch wrote into the folder of an extension.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Asked {
    /// The folder.
    pub folder: String,
    /// The build file.
    pub ninja: String,
    /// Sources by path.
    pub sources: BTreeMap<String, String>,
    /// Variables that compilers heed, as the process has them.
    pub environment: BTreeMap<String, String>,
}

/// What came of it.
#[derive(Clone, Debug)]
pub enum Answer {
    /// The library, the name that it is to have, and what the compilers printed.
    Built {
        /// Its bytes.
        bytes: Arc<[u8]>,
        /// Its name in the extension's folder.
        name: String,
    },
    /// The compilers refuse the code: what they printed when it was built as torch builds it.
    Wrong(String),
    /// Torch has to build it, for this reason.
    Ordinary(String),
}

/// How builds went, for a verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Extensions that were built, found, or not built.
    pub extensions: usize,
    /// Those that lay in the cache.
    pub found: usize,
    /// Sources or extensions that were not taken apart: file or extension, and the reason.
    pub ordinary: Vec<(String, String)>,
}

/// What builds extensions.
pub struct Builds {
    /// Puts compilers into a sandbox.
    wrap: Wrap,
    /// Their environment, but for what a child has set otherwise.
    variables: Vec<(OsString, OsString)>,
    /// Where they may read besides the system.
    readable: Vec<PathBuf>,
    store: Store,
    cancel: CancellationToken,
    seen: Mutex<Seen>,
}

/// Why there is no library.
enum Failed {
    /// What the compilers printed.
    Compilers(String),
    /// It was not even tried.
    Other(String),
}

impl Builds {
    /// What builds in this environment. `folder` keeps compiled headers, `cache` what was built.
    pub fn new(
        wrap: Wrap,
        variables: Vec<(OsString, OsString)>,
        readable: Vec<PathBuf>,
        folder: PathBuf,
        cache: Cache,
        cancel: CancellationToken,
    ) -> Self {
        Self { wrap, variables, readable, store: Store::new(folder, cache), cancel, seen: Mutex::default() }
    }

    /// How builds went so far.
    pub fn seen(&self) -> Seen {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Builds an extension, or finds it.
    pub async fn build(&self, asked: Asked) -> Answer {
        let (mut built, mut name) = (Err(Failed::Other(String::new())), String::new());
        let mut found = false;
        match ninja::read(&asked.ninja) {
            Ok(file) => {
                name.clone_from(&file.output);
                built = self.found_or_built(&file, &asked, &mut found).await;
            }
            Err(reason) => built = Err(Failed::Other(reason)).or(built),
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.extensions += 1;
        seen.found += usize::from(found);
        let said = |seen: &mut Seen, what: &str, why: &str| {
            let entry = (what.to_owned(), why.to_owned());
            if !seen.ordinary.contains(&entry) {
                seen.ordinary.push(entry);
            }
        };
        match built {
            Ok(built) => {
                for (source, reason) in &built.about.whole {
                    said(&mut seen, &short(source), reason);
                }
                Answer::Built { bytes: built.bytes, name }
            }
            Err(Failed::Compilers(text)) => Answer::Wrong(text),
            Err(Failed::Other(reason)) => {
                said(&mut seen, &name, &reason);
                Answer::Ordinary(reason)
            }
        }
    }

    async fn found_or_built(
        &self,
        file: &BuildFile,
        asked: &Asked,
        found: &mut bool,
    ) -> Result<Built, Failed> {
        let variables = environment::with(&self.variables, &asked.environment).map_err(Failed::Other)?;
        let tools = Tools::find(file, &variables).map_err(Failed::Other)?;
        check(asked).map_err(Failed::Other)?;
        for path in asked.sources.keys().filter(|path| self.is_readable(path)) {
            // A person's own file, which compilers may read where it lies: it is what was said.
            let text = asked.sources.get(path).map(String::as_bytes);
            if std::fs::read(path).ok().as_deref() != text {
                return Err(Failed::Other(format!("{path} is not what was passed on")));
            }
        }
        let key = store::key(asked, &tools.identity, &variables, |path| !self.is_readable(path));
        if let Some(built) = self.store.get(&key).await {
            *found = true;
            return Ok(built);
        }
        let lock = self.store.lock(&key.to_string(), &self.cancel).await.map_err(Failed::Other)?;
        // Somebody else may have built it while we waited.
        if let Some(built) = self.store.get(&key).await {
            *found = true;
            return Ok(built);
        }
        let built = self.built(file, asked, &tools, &variables).await?;
        self.store.put(&key, &built).await;
        drop(lock);
        Ok(built)
    }

    /// Builds by the plan; where that fails, as torch does.
    async fn built(
        &self,
        file: &BuildFile,
        asked: &Asked,
        tools: &Tools,
        variables: &[(OsString, OsString)],
    ) -> Result<Built, Failed> {
        let known = plan::Tools {
            cuda_version: tools.cuda_version,
            host_cxx: &tools.host_cxx,
            nvcc_flags: &tools.nvcc_flags,
            prelude: &|compiled| self.store.prelude_folder(compiled, tools),
        };
        let plan = plan::plan(file, &asked.sources, &known).map_err(Failed::Other)?;
        // Each keeps one processor busy, for as long as a source with all of torch's headers would.
        let made = plan.preludes.iter().map(|compiled| self.prelude(compiled, tools, variables));
        futures::future::try_join_all(made).await.map_err(Failed::Other)?;
        let scratch = self.scratch()?;
        for (name, text) in &plan.files {
            write(scratch.path(), name, text)?;
        }
        write(scratch.path(), "build.ninja", &plan.ninja)?;
        let (finished, began) = self.run(tools, &scratch, variables).await?;
        if finished.status.success() {
            return self.taken(&scratch, OUTPUT, &plan, began);
        }
        tracing::debug!("An extension is built once more, as torch does: {}", finished.stdout_text());
        let first = first_error(&finished.stdout_text());
        drop(scratch);
        let what = if plan.apart > 0 {
            "taken apart, it does not compile"
        } else {
            "with a part of torch's headers it does not compile"
        };
        let whole = vec![(file.output.clone(), format!("{what}: {first}"))];
        self.as_torch_does(file, asked, tools, variables, Plan { whole, ..Plan::default() }).await
    }

    /// Builds with torch's own build file, in a folder of our own.
    async fn as_torch_does(
        &self,
        file: &BuildFile,
        asked: &Asked,
        tools: &Tools,
        variables: &[(OsString, OsString)],
        plan: Plan,
    ) -> Result<Built, Failed> {
        let is_seen = |path: &String| Path::new(path).starts_with(&asked.folder) || self.is_readable(path);
        if !asked.sources.keys().all(is_seen) {
            let reason = plan.whole.into_iter().map(|(_, reason)| reason).next().unwrap_or_default();
            return Err(Failed::Other(format!("its sources lie where it alone can read; {reason}")));
        }
        let scratch = self.scratch()?;
        let folder = scratch.path().display().to_string();
        for (path, text) in &asked.sources {
            if let Ok(name) = Path::new(path).strip_prefix(&asked.folder) {
                write(scratch.path(), &name.display().to_string(), text)?;
            }
        }
        // What the compilers read is noted in files that stay.
        let ninja =
            asked.ninja.replace(&asked.folder, &folder).replace("  deps = gcc\n", "").replace("-MMD", "-MD");
        write(scratch.path(), "build.ninja", &ninja)?;
        let (finished, began) = self.run(tools, &scratch, variables).await?;
        if finished.status.success() {
            return self.taken(&scratch, &file.output, &plan, began);
        }
        let text = finished.stdout_text() + &finished.stderr_text();
        // Torch starts ninja in the folder itself.
        let text = match text.split_once('\n') {
            Some((line, rest)) if line.starts_with("ninja: Entering directory") => rest.to_owned(),
            _ => text,
        };
        Err(Failed::Compilers(text.replace(&folder, &asked.folder).replace(" -MD -MF ", " -MMD -MF ")))
    }

    /// Whether compilers can read a file where it lies.
    fn is_readable(&self, path: &str) -> bool {
        self.readable.iter().any(|folder| Path::new(path).starts_with(folder))
    }

    fn scratch(&self) -> Result<Scratch, Failed> {
        Scratch::new("build")
            .map_err(|error| Failed::Other(format!("a scratch folder could not be made ({error})")))
    }

    async fn run(
        &self,
        tools: &Tools,
        scratch: &Scratch,
        variables: &[(OsString, OsString)],
    ) -> Result<(Finished, std::time::SystemTime), Failed> {
        let began = std::time::SystemTime::now();
        let mut variables = variables.to_vec();
        environment::set(&mut variables, "HOME", scratch.path().as_os_str());
        environment::set(&mut variables, "TMPDIR", scratch.path().as_os_str());
        let mut readable = self.readable.clone();
        readable.push(self.store.preludes());
        let needs = Needs {
            program: tools.ninja.clone(),
            arguments: ["-v".into(), "-C".into(), scratch.path().into()].into(),
            environment: variables,
            readable,
            place: Place::Cpu,
            memory_bytes: None,
        };
        let job = (self.wrap)(&needs, scratch, self.cancel.child_token()).map_err(Failed::Other)?;
        Ok((job.await.map_err(Failed::Other)?, began))
    }

    /// The library that a build left.
    fn taken(
        &self,
        scratch: &Scratch,
        name: &str,
        plan: &Plan,
        began: std::time::SystemTime,
    ) -> Result<Built, Failed> {
        let failed =
            |error: std::io::Error| Failed::Other(format!("what was built could not be read ({error})"));
        let bytes = store::read_plain(&scratch.path().join(name)).map_err(failed)?;
        let read = store::what_was_read(scratch.path(), began);
        let about = store::About { read, whole: plan.whole.clone(), apart: plan.apart };
        Ok(Built { bytes: bytes.into(), about })
    }
}

/// Whether a CUDA text can be taken apart, before any compiler has seen it.
///
/// # Errors
/// Why not: a sentence without its end.
pub fn can_be_taken_apart(text: &str) -> Result<(), String> {
    split::split(text, 0, &[]).map(|_| ())
}

/// Whether sources lie where a build file may name them.
fn check(asked: &Asked) -> Result<(), String> {
    let folder = Path::new(&asked.folder);
    if asked.folder.len() < 2 || !folder.is_absolute() {
        return Err("its folder has no absolute path".to_owned());
    }
    for path in asked.sources.keys().map(Path::new) {
        if !path.is_absolute() || path.components().any(|part| part == std::path::Component::ParentDir) {
            return Err(format!("{} is no plain absolute path", path.display()));
        }
    }
    let says_time = |text: &String| {
        ["__TIME__", "__DATE__", "__TIMESTAMP__", ".incbin", "#embed"].iter().any(|word| text.contains(word))
    };
    if asked.sources.values().any(says_time) {
        return Err("what is compiled depends on more than its text".to_owned());
    }
    Ok(())
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), Failed> {
    let path = folder.join(name);
    let parent = path.parent().unwrap_or(folder);
    std::fs::create_dir_all(parent)
        .and_then(|()| std::fs::write(&path, text))
        .map_err(|error| Failed::Other(format!("{} could not be written ({error})", path.display())))
}

fn short(path: &str) -> String {
    Path::new(path).file_name().map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// The first error of compilers, in one line.
fn first_error(text: &str) -> String {
    let line = text.lines().find(|line| {
        line.contains("error:") || line.contains("error ") || line.contains("undefined reference")
    });
    let line = line.unwrap_or("the compilers give no reason");
    let said = line.split_once("error:").map_or(line, |(_, said)| said).trim();
    said.chars().take(160).collect()
}
