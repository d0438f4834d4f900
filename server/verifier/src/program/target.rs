//! From what a person names to a target: a file, a kernel of a file, a `[target.NAME]` of `stitchcuda.toml`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stitch_session::config::{Device, NamedTarget, Precision, Settings};

/// What a person points at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Target {
    /// A program with a `main`.
    Program(Box<Program>),
    /// One kernel of a file.
    Kernel {
        /// The file, absolute.
        path: PathBuf,
        /// The kernel, as it was written.
        kernel: String,
    },
}

/// A CUDA program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// As it was named.
    pub name: String,
    /// What is compiled and linked to one program, absolute; findings are about the first.
    pub sources: Vec<PathBuf>,
    /// The folder of what it reads beside it.
    pub folder: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Files from elsewhere that it reads.
    pub inputs: Vec<PathBuf>,
    /// Commands of its own.
    pub own: Option<OwnBuild>,
    /// How far a number may be off, where the target says it.
    pub tolerance: Option<f64>,
    /// The precision that may not be lowered, where the target says it.
    pub precision: Option<Precision>,
    /// The device that the target says.
    pub device: Option<Device>,
}

/// A person's own build, in a copy of its folder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OwnBuild {
    /// The command that builds it, for a shell.
    pub build: Option<String>,
    /// The command that runs it, for a shell.
    pub run: Option<String>,
    /// The file that a candidate takes the place of, and the candidate.
    pub replaced: Option<(PathBuf, PathBuf)>,
}

/// Why a name means nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// It is neither a file nor a target.
    #[error(
        "`{name}` is neither a file nor a `[target.NAME]` of a stitchcuda.toml here ({}). A kernel is written `file.cu::name`.",
        listed(known)
    )]
    Unknown {
        /// The name.
        name: String,
        /// Targets that there are.
        known: Vec<String>,
    },
    /// It is a folder, or a file that is no CUDA source.
    #[error("{} is no CUDA source: {reason}.", path.display())]
    NotASource {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// The target can't be used.
    #[error("The target `{name}` can't be used: {reason}")]
    Unusable {
        /// Its name.
        name: String,
        /// Why, in whole sentences.
        reason: String,
    },
}

fn listed(known: &[String]) -> String {
    if known.is_empty() { "there is none".to_owned() } else { format!("there are {}", known.join(", ")) }
}

/// Endings of files that nvcc compiles to programs.
const ENDINGS: [&str; 5] = ["cu", "cuh", "cpp", "cc", "c"];

/// The target that `text` names in `folder`. `with` are further sources of the program.
///
/// # Errors
/// There is none, or it can't be used.
pub fn find(text: &str, folder: &Path, with: &[PathBuf], settings: &Settings) -> Result<Target, TargetError> {
    let path = folder.join(text);
    if path.exists() {
        return source(text, &path, with, folder).map(Box::new).map(Target::Program);
    }
    if let Some((file, kernel)) = text.split_once("::")
        && folder.join(file).is_file()
    {
        let program = source(file, &folder.join(file), &[], folder)?;
        let path = program.sources.into_iter().next().unwrap_or_default();
        return Ok(Target::Kernel { path, kernel: kernel.to_owned() });
    }
    let unusable = |reason| TargetError::Unusable { name: text.to_owned(), reason };
    match settings.target(folder, text).map_err(unusable)? {
        Some(named) => of_named(named).map(Box::new).map(Target::Program),
        None => Err(TargetError::Unknown { name: text.to_owned(), known: settings.target_names(folder) }),
    }
}

fn source(name: &str, path: &Path, with: &[PathBuf], folder: &Path) -> Result<Program, TargetError> {
    let refuse = |path: &Path, reason: &str| TargetError::NotASource {
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    let mut sources = Vec::new();
    for path in std::iter::once(path.to_owned()).chain(with.iter().map(|path| folder.join(path))) {
        if !path.is_file() {
            let reason = if path.is_dir() { "it is a folder" } else { "it is not there" };
            return Err(refuse(&path, reason));
        }
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_lowercase());
        if !ending.is_some_and(|ending| ENDINGS.contains(&ending.as_str())) {
            return Err(refuse(&path, "its name ends in none of .cu, .cuh, .cpp, .cc and .c"));
        }
        sources.push(crate::paths::canonical(&path));
    }
    let folder = sources[0].parent().unwrap_or(Path::new("/")).to_owned();
    Ok(Program { name: name.to_owned(), sources, folder, ..Program::default() })
}

fn of_named(named: NamedTarget) -> Result<Program, TargetError> {
    let NamedTarget { name, target, folder } = named;
    let unusable = |reason: String| TargetError::Unusable { name: name.clone(), reason };
    let sources: Vec<PathBuf> = target.files.iter().map(|file| folder.join(file)).collect();
    if let Some(missing) = sources.iter().find(|file| !file.is_file()) {
        return Err(unusable(format!("its file {} is not there.", missing.display())));
    }
    if sources.is_empty() && target.build.is_none() {
        return Err(unusable("it has neither `files` nor a `build` command.".to_owned()));
    }
    if target.build.is_some() && target.run.is_none() {
        return Err(unusable("it has a `build` command, but no `run` command.".to_owned()));
    }
    let cwd = target.cwd.clone().unwrap_or_else(|| folder.clone());
    if !cwd.is_dir() {
        return Err(unusable(format!("its folder {} is not there.", cwd.display())));
    }
    let own = (target.build.is_some() || target.run.is_some()).then_some(OwnBuild {
        build: target.build,
        run: target.run,
        replaced: None,
    });
    Ok(Program {
        sources: sources.iter().map(|file| crate::paths::canonical(file)).collect(),
        folder: crate::paths::canonical(&cwd),
        arguments: target.args,
        inputs: target.inputs.iter().map(|file| folder.join(file)).collect(),
        own,
        tolerance: target.tolerance,
        precision: target.precision,
        device: target.device,
        name,
    })
}

impl Program {
    /// The candidate that is this program with `other` in the place of one of its files: the one of the same name, or else
    /// the first. Its data, its arguments and its build stay the same.
    pub fn with_candidate(&self, other: &Self) -> Self {
        let Some(candidate) = other.sources.first() else { return other.clone() };
        let same_name = |file: &&PathBuf| file.file_name() == candidate.file_name();
        let replaced = self.sources.iter().find(same_name).or_else(|| self.sources.first());
        let mut program = Self { name: other.name.clone(), ..self.clone() };
        program.sources = match replaced {
            Some(replaced) => {
                let rest = self.sources.iter().filter(|file| *file != replaced).cloned();
                std::iter::once(candidate.clone()).chain(rest).collect()
            }
            None => vec![candidate.clone()],
        };
        if let (Some(own), Some(replaced)) = (&mut program.own, replaced) {
            own.replaced = Some((replaced.clone(), candidate.clone()));
        }
        program
    }
}

#[cfg(test)]
mod tests {
    use stitch_session::config::{Folder, Surroundings};

    use super::*;

    fn workspace(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf, Settings) {
        let temporary = tempfile::tempdir().unwrap();
        let root = temporary.path().canonicalize().unwrap();
        for (name, text) in files {
            std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            std::fs::write(root.join(name), text).unwrap();
        }
        let settings = Settings::new(Surroundings::default());
        settings.set_folders(vec![Folder { path: root.clone(), trusted: true }]);
        (temporary, root, settings)
    }

    #[test]
    fn names_become_targets() {
        let (_keep, root, settings) = workspace(&[
            ("a.cu", ""),
            ("b.cu", ""),
            ("data.txt", ""),
            ("sub/c.cu", ""),
            (
                "stitchcuda.toml",
                "[target.gemm]\nfiles = ['sub/c.cu', 'a.cu']\nargs = ['7']\ncwd = 'sub'\n[target.half]\nbuild = 'make'\n[target.lost]\nfiles = ['no.cu']\n",
            ),
        ]);
        let find = |text: &str, with: &[PathBuf]| super::find(text, &root, with, &settings);
        let Target::Program(two) = find("a.cu", &["b.cu".into()]).unwrap() else { panic!() };
        assert_eq!(two.sources, [root.join("a.cu"), root.join("b.cu")]);
        assert_eq!(
            find("a.cu::ns::k<4>", &[]).unwrap(),
            Target::Kernel { path: root.join("a.cu"), kernel: "ns::k<4>".into() }
        );
        let Target::Program(gemm) = find("gemm", &[]).unwrap() else { panic!() };
        assert_eq!((gemm.folder, gemm.arguments), (root.join("sub"), vec!["7".to_owned()]));
        assert_eq!(gemm.sources, [root.join("sub/c.cu"), root.join("a.cu")]);
        for (name, expected) in [
            ("gem", "there are gemm, half, lost"),
            ("half", "no `run` command"),
            ("lost", "no.cu is not there"),
            ("data.txt", "ends in none of"),
            ("sub", "it is a folder"),
            ("no.cu::k", "neither a file nor"),
        ] {
            let error = find(name, &[]).unwrap_err().to_string();
            assert!(error.contains(expected), "{name}: {error}");
        }
    }

    #[test]
    fn a_candidate_takes_the_place_of_its_namesake_or_of_the_first() {
        let reference = Program {
            sources: vec!["/r/main.cu".into(), "/r/gemm.cu".into()],
            folder: "/r".into(),
            arguments: vec!["7".into()],
            own: Some(OwnBuild { build: Some("make".into()), ..OwnBuild::default() }),
            ..Program::default()
        };
        for (file, expected, replaced) in [
            ("/c/gemm.cu", ["/c/gemm.cu", "/r/main.cu"], "/r/gemm.cu"),
            ("/c/new.cu", ["/c/new.cu", "/r/gemm.cu"], "/r/main.cu"),
        ] {
            let candidate = Program { name: "c".into(), sources: vec![file.into()], ..Program::default() };
            let made = reference.with_candidate(&candidate);
            assert_eq!(made.sources, expected.map(PathBuf::from));
            assert_eq!(made.own.unwrap().replaced, Some((replaced.into(), file.into())));
            assert_eq!((made.folder, made.arguments), (PathBuf::from("/r"), vec!["7".to_owned()]));
        }
    }
}
