//! Reads `compile_commands.json`: the flags with which a project compiles each of its files.
//!
//! The flags are the project's own and are passed on unmodified and in order; only what says where the input and the output
//! are is taken out, since our compiles write elsewhere. Response files are put in place of their names, because that is
//! where CMake puts the include folders of CUDA files, and they are relative to a folder that our compile may not run in.

mod arguments;
mod nvcc;
mod response;

use std::path::{Path, PathBuf};

use serde::Deserialize;

pub use arguments::split_command;

use crate::paths::absolute;

const FILE_NAME: &str = "compile_commands.json";

/// Folders below a project's root in which build systems put the database.
const BUILD_FOLDERS: [&str; 5] = ["build", "out", "builddir", "_build", "Build"];

/// Build folders that are named after their configuration: `cmake-build-debug`, `build-release`, `out/Debug`.
const BUILD_PREFIXES: [&str; 3] = ["cmake-build-", "build-", "build_"];

/// Endings of files that are compiled, and of files that are only included.
const SOURCES: [&str; 6] = ["cu", "cpp", "cc", "cxx", "c", "cppm"];

/// What went wrong with the database or with one of its entries. Each says which file, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FlagsProblem {
    /// The database itself can not be read.
    #[error(
        "could not read the compile database {path}: {reason}; generate it again, or remove it to have its files compiled without it"
    )]
    Database {
        /// The database.
        path: PathBuf,
        /// What the system or the reader said.
        reason: String,
    },
    /// A response file can not be read.
    #[error(
        "could not read the response file {path} that the compile command of {file} names: {reason}; build the project once, so that it is generated"
    )]
    ResponseFile {
        /// The response file.
        path: PathBuf,
        /// The file that was to be compiled.
        file: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The command of an entry is not a command.
    #[error("could not read the compile command of {file}: {reason}; generate the compile database again")]
    Command {
        /// The file of the entry.
        file: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The file is compiled by something that nvcc can't stand in for.
    #[error(
        "{file} is compiled by `{compiler}`, whose flags have no meaning for nvcc; the configured flags are used instead"
    )]
    OtherCompiler {
        /// The file of the entry.
        file: PathBuf,
        /// The compiler.
        compiler: String,
    },
}

/// The flags of one file, ready for a command of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flags {
    /// Where the command is run; relative paths in the flags are relative to it.
    pub directory: PathBuf,
    /// The compiler as the entry names it: `nvcc`, `/usr/local/cuda-12.4/bin/nvcc`. A path with folders is absolute.
    pub compiler: PathBuf,
    /// The flags in the order of the entry, response files expanded, without input and output.
    pub arguments: Vec<String>,
    /// What `-arch`, `-gencode` and their kin ask for, as written: `compute_80`, `sm_80`, `native`.
    pub architectures: Vec<String>,
    /// The file whose entry this is: the file asked for, or, for a header, the unit whose flags are used.
    pub unit: PathBuf,
    /// Where these flags come from if not from the file's own entry as it stands, in one sentence.
    pub note: Option<String>,
}

/// One entry, as the file has it.
#[derive(Debug, Clone, Deserialize)]
struct RawEntry {
    directory: Option<PathBuf>,
    file: PathBuf,
    arguments: Option<Vec<String>>,
    command: Option<String>,
}

#[derive(Debug, Clone)]
struct Entry {
    directory: PathBuf,
    /// Absolute, without `.` and `..`, links followed where the file exists.
    file: PathBuf,
    arguments: Option<Vec<String>>,
    command: Option<String>,
}

/// A compile database.
#[derive(Debug, Clone)]
pub struct CompileCommands {
    path: PathBuf,
    entries: Vec<Entry>,
}

impl CompileCommands {
    /// Looks for a database from the folder of `file` upward to `workspace`: in each folder itself, then in its build folders.
    /// Without a workspace, up to the root. `None` if there is none.
    pub fn find(file: &Path, workspace: Option<&Path>) -> Option<Result<Self, FlagsProblem>> {
        let file = absolute(file, None);
        let workspace =
            workspace.map(|folder| absolute(folder, None)).filter(|folder| file.starts_with(folder));
        for folder in file.ancestors().skip(1) {
            if let Some(path) = database_in(folder) {
                return Some(Self::load(&path));
            }
            if Some(folder) == workspace.as_deref() {
                break;
            }
        }
        None
    }

    /// Reads the database at `path`, or in the folder `path`.
    pub fn load(path: &Path) -> Result<Self, FlagsProblem> {
        let path = if path.is_dir() { path.join(FILE_NAME) } else { path.to_owned() };
        let path = absolute(&path, None);
        let refuse = |reason: String| FlagsProblem::Database { path: path.clone(), reason };
        let bytes = std::fs::read(&path).map_err(|error| refuse(error.to_string()))?;
        let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        let raw: Vec<RawEntry> = serde_json::from_slice(bytes).map_err(|error| refuse(error.to_string()))?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let entries = raw.into_iter().map(|entry| entry.resolve(&folder)).collect();
        Ok(Self { path, entries })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The files that have an entry, in order.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.entries.iter().map(|entry| entry.file.as_path())
    }

    /// The flags of `file`. A header, or a source without an entry of its own, gets those of a unit that includes it, else of the
    /// nearest CUDA unit. `None` if the database says nothing that could be used.
    pub fn flags_for(&self, file: &Path) -> Option<Result<Flags, FlagsProblem>> {
        let file = absolute(file, None);
        let own = self.entries.iter().filter(|entry| entry.file == file);
        // A file may have several entries; the one by nvcc says most.
        if let Some(entry) = own.clone().find(|entry| entry.is_by_nvcc()).or_else(|| own.clone().next()) {
            return Some(entry.flags());
        }
        let unit = self.unit_for(&file)?;
        Some(unit.flags().map(|flags| {
            let note = format!(
                "{} has no entry in {}; the flags of {} are used",
                file.display(),
                self.path.display(),
                unit.file.display()
            );
            Flags { note: Some(note), ..flags }
        }))
    }

    /// The unit whose flags fit a file without an entry.
    fn unit_for(&self, file: &Path) -> Option<&Entry> {
        let cuda = |entry: &&Entry| entry.is_by_nvcc() || has_extension(&entry.file, &["cu"]);
        let is_header = !has_extension(file, &SOURCES);
        let includes = |entry: &&Entry| is_header && includes_by_name(&entry.file, file);
        self.entries.iter().filter(cuda).find(includes).or_else(|| {
            self.entries.iter().filter(cuda).max_by_key(|entry| shared_folders(&entry.file, file))
        })
    }
}

impl RawEntry {
    fn resolve(self, database_folder: &Path) -> Entry {
        let directory = self.directory.unwrap_or_default();
        let directory = absolute(&directory, Some(database_folder));
        let file = absolute(&self.file, Some(&directory));
        Entry { directory, file, arguments: self.arguments, command: self.command }
    }
}

impl Entry {
    fn words(&self) -> Result<Vec<String>, FlagsProblem> {
        let refuse =
            |reason: &str| FlagsProblem::Command { file: self.file.clone(), reason: reason.to_owned() };
        match (&self.arguments, &self.command) {
            (Some(arguments), _) if !arguments.is_empty() => Ok(arguments.clone()),
            (_, Some(command)) => split_command(command).ok_or_else(|| refuse("a quote is not closed")),
            _ => Err(refuse("it is empty")),
        }
    }

    fn is_by_nvcc(&self) -> bool {
        self.words().is_ok_and(|words| {
            arguments::compiler_of(&words).is_some_and(|(_, kind)| kind == arguments::Kind::Nvcc)
        })
    }

    fn flags(&self) -> Result<Flags, FlagsProblem> {
        let words = self.words()?;
        let Some((at, kind)) = arguments::compiler_of(&words) else {
            return Err(FlagsProblem::Command {
                file: self.file.clone(),
                reason: "it names no compiler".to_owned(),
            });
        };
        let expanded = response::expand(&words[at + 1..], &self.directory)
            .map_err(|(path, reason)| FlagsProblem::ResponseFile { path, file: self.file.clone(), reason })?;
        let compiler = arguments::compiler_path(&words[at], &self.directory);
        let (arguments, note) = match kind {
            arguments::Kind::Nvcc => {
                (nvcc::without_input_and_output(&expanded, &self.file, &self.directory), None)
            }
            arguments::Kind::Clang | arguments::Kind::Nvcxx | arguments::Kind::Gcc => {
                let note = format!(
                    "{} is compiled by `{}`; its flags were translated for nvcc",
                    self.file.display(),
                    words[at]
                );
                (nvcc::translate(&expanded, &self.file, &self.directory), Some(note))
            }
            arguments::Kind::Other => {
                return Err(FlagsProblem::OtherCompiler {
                    file: self.file.clone(),
                    compiler: words[at].clone(),
                });
            }
        };
        let architectures = nvcc::architectures(&arguments);
        Ok(Flags {
            directory: self.directory.clone(),
            compiler,
            arguments,
            architectures,
            unit: self.file.clone(),
            note,
        })
    }
}

/// The database in a folder or in one of its build folders. Of several build folders, the first in the order of their names.
fn database_in(folder: &Path) -> Option<PathBuf> {
    let direct = folder.join(FILE_NAME);
    if direct.is_file() {
        return Some(direct);
    }
    for name in BUILD_FOLDERS {
        let path = folder.join(name).join(FILE_NAME);
        if path.is_file() {
            return Some(path);
        }
    }
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .ok()?
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            BUILD_PREFIXES.iter().any(|prefix| name.to_string_lossy().starts_with(prefix))
        })
        .map(|entry| entry.path().join(FILE_NAME))
        .filter(|path| path.is_file())
        .collect();
    found.extend(["build", "out"].iter().flat_map(|name| nested_in(&folder.join(name))));
    found.sort();
    found.into_iter().next()
}

/// Databases one folder further down: `out/build/…` of CMake presets is a folder a configuration.
fn nested_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.flatten().map(|entry| entry.path().join(FILE_NAME)).filter(|path| path.is_file()).collect()
}

fn has_extension(path: &Path, endings: &[&str]) -> bool {
    path.extension().and_then(|ending| ending.to_str()).is_some_and(|ending| endings.contains(&ending))
}

/// How many leading parts two paths share.
fn shared_folders(one: &Path, other: &Path) -> usize {
    one.components().zip(other.components()).take_while(|(a, b)| a == b).count()
}

/// Whether `unit` has an `#include` that ends in the name of `header`.
fn includes_by_name(unit: &Path, header: &Path) -> bool {
    let Some(name) = header.file_name().and_then(|name| name.to_str()) else { return false };
    let Ok(bytes) = std::fs::read(unit) else { return false };
    let text = String::from_utf8_lossy(&bytes);
    text.lines().any(|line| {
        let directive = line.trim_start().strip_prefix('#').map(str::trim_start);
        let named = directive.and_then(|rest| rest.strip_prefix("include")).map(str::trim);
        named.is_some_and(|named| {
            let named = named.trim_matches(['"', '<', '>', ' ']);
            named == name || named.strip_suffix(name).is_some_and(|folder| folder.ends_with('/'))
        })
    })
}

#[cfg(test)]
mod tests;
