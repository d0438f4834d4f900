//! Which settings hold for which file.
//!
//! Later sources win: the defaults, the user's own `stitchcuda.toml`, the workspace's, the environment, the editor, flags. The
//! workspace's is the nearest one above a file that lies within the file's folder, or above that within its repository; of several
//! folders of a workspace, it is the one with the longest path. So two projects in one window don't share settings.
//!
//! Files are read once, until [`Settings::reload`]. Whoever owns a watcher calls it when a `stitchcuda.toml` changes.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::check::{merge, read};
use super::expand::Expansion;
use super::file::File;
use super::keys::target_table;
use super::model::Config;
use super::sources::{self, Layer};
use super::target::{NamedTarget, Target};
use super::warning::{Source, Warning};
use crate::folders::Folders;

/// The name of the file with settings.
pub const FILE_NAME: &str = "stitchcuda.toml";
/// How many folders' settings are remembered; then they are found anew.
const MOST_REMEMBERED: usize = 10_000;

/// A folder of the workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// Where it is; absolute.
    pub path: PathBuf,
    /// Whether its `stitchcuda.toml` may name programs, and files to write to.
    pub trusted: bool,
}

/// What a process was started with.
#[derive(Clone, Default)]
pub struct Surroundings {
    /// Where the user's own `stitchcuda.toml` lies.
    pub folders: Folders,
    /// The variables of the environment. Those whose name or value is no text can't be settings and are left out.
    pub environment: BTreeMap<String, String>,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// Where relative paths in variables and flags start.
    pub working_folder: Option<PathBuf>,
    /// Settings given on the command line, as keys and texts.
    pub flags: Vec<(String, String)>,
}

impl Surroundings {
    /// Those of this process, with these flags.
    pub fn of_this_process(flags: Vec<(String, String)>) -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self {
            folders: Folders::find(),
            environment: std::env::vars_os().filter_map(text).collect(),
            home: etcetera::home_dir().ok(),
            working_folder: std::env::current_dir().ok(),
            flags,
        }
    }
}

/// The settings of a session, for each of its files.
pub struct Settings {
    surroundings: Surroundings,
    environment: Layer,
    flags: Layer,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    folders: Vec<Folder>,
    /// What the editor said, for all folders (`None`) or for one.
    editor: BTreeMap<Option<PathBuf>, Layer>,
    files: HashMap<PathBuf, Option<Arc<File>>>,
    configs: HashMap<Option<PathBuf>, Arc<Config>>,
    said: HashSet<(Source, String)>,
    unsaid: Vec<Warning>,
}

impl Settings {
    /// The settings of a process with these surroundings, without folders yet.
    pub fn new(surroundings: Surroundings) -> Self {
        Self {
            environment: sources::environment(&surroundings.environment),
            flags: sources::flags(&surroundings.flags),
            surroundings,
            state: Mutex::default(),
        }
    }

    /// The folders of the workspace, in place of those before. What the editor said for a folder that is gone is forgotten.
    pub fn set_folders(&self, folders: Vec<Folder>) {
        let mut state = self.state();
        state.editor.retain(|scope, _| {
            scope.as_ref().is_none_or(|scope| folders.iter().any(|folder| folder.path == *scope))
        });
        state.folders = folders;
        state.configs.clear();
    }

    /// What the editor says for one folder, or (`None`) for all for which it says nothing of their own.
    pub fn set_editor(&self, folder: Option<&Path>, settings: Value) {
        let mut state = self.state();
        state.editor.insert(folder.map(Path::to_owned), sources::editor(settings));
        state.configs.clear();
    }

    /// Reads all files again when they are next needed.
    pub fn reload(&self) {
        let mut state = self.state();
        state.files.clear();
        state.configs.clear();
    }

    /// What holds for a file (or for a folder of the workspace itself). `None`, and a file outside of all folders: what
    /// holds for the user. Reads files the first time it is asked for a folder.
    pub fn for_path(&self, path: Option<&Path>) -> Arc<Config> {
        let mut state = self.state();
        let is_folder = |path: &Path| state.folders.iter().any(|folder| folder.path == path);
        let place = path
            .and_then(|path| if is_folder(path) { Some(path) } else { path.parent() })
            .map(Path::to_owned);
        if let Some(config) = state.configs.get(&place) {
            return config.clone();
        }
        let config = Arc::new(self.resolve(&mut state, place.as_deref()));
        if state.configs.len() >= MOST_REMEMBERED {
            state.configs.clear();
        }
        state.configs.insert(place, config.clone());
        config
    }

    /// The target `name` of the nearest `stitchcuda.toml` that has one of that name, from `place` (a folder) upwards within
    /// its folder of the workspace. `None` if there is none.
    ///
    /// # Errors
    /// Why it can't be used, in whole sentences.
    pub fn target(&self, place: &Path, name: &str) -> Result<Option<NamedTarget>, String> {
        let mut state = self.state();
        let folder = folder_of(&state.folders, place).cloned();
        for file in state.files_above(place, folder.as_ref()) {
            let Some((_, entries)) = file.targets.iter().find(|(known, _)| known == name) else { continue };
            let base = file.folder().unwrap_or(place);
            let expansion = Expansion {
                workspace_folder: folder.as_ref().map(|folder| folder.path.as_path()),
                home: self.surroundings.home.as_deref(),
                environment: &self.surroundings.environment,
                base: Some(base),
            };
            let trusted = folder.as_ref().is_some_and(|folder| folder.trusted);
            let target: Target = read(target_table(), entries, &file.layer.source, expansion, trusted)?;
            return Ok(Some(NamedTarget { name: name.to_owned(), target, folder: base.to_owned() }));
        }
        Ok(None)
    }

    /// The names of all targets that [`Settings::target`] finds from `place`.
    pub fn target_names(&self, place: &Path) -> Vec<String> {
        let mut state = self.state();
        let folder = folder_of(&state.folders, place).cloned();
        let files = state.files_above(place, folder.as_ref());
        files.iter().flat_map(|file| file.targets.iter().map(|(name, _)| name.clone())).collect()
    }

    /// What is wrong with the settings used so far, each thing once in the life of the session.
    pub fn take_warnings(&self) -> Vec<Warning> {
        std::mem::take(&mut self.state().unsaid)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn resolve(&self, state: &mut State, place: Option<&Path>) -> Config {
        let folder = place.and_then(|place| folder_of(&state.folders, place)).cloned();
        let user = self.surroundings.folders.config.as_ref().map(|config| config.join(FILE_NAME));
        let user = user.and_then(|path| state.file(&path, Source::User));
        let workspace = place.zip(folder.as_ref()).and_then(|(place, folder)| {
            // An editor may show a part of a repository.
            let project = repository_of(&folder.path).unwrap_or(&folder.path);
            let within = place.ancestors().take_while(|ancestor| ancestor.starts_with(project));
            within
                .map(|ancestor| ancestor.join(FILE_NAME))
                .find_map(|path| state.file(&path, Source::Workspace))
        });
        let root = folder.as_ref().map(|folder| folder.path.as_path());
        let editor = state.editor.get(&root.map(Path::to_owned)).or_else(|| state.editor.get(&None));
        let working_folder = self.surroundings.working_folder.as_deref();
        let expansion = |base| Expansion {
            workspace_folder: root,
            home: self.surroundings.home.as_deref(),
            environment: &self.surroundings.environment,
            base,
        };
        let files = [user, workspace];
        let layers = files.iter().flatten().map(|file| (&file.layer, expansion(file.folder())));
        let layers = layers
            .chain([(&self.environment, expansion(working_folder))])
            .chain(editor.map(|layer| (layer, expansion(root.or(working_folder)))))
            .chain([(&self.flags, expansion(working_folder))]);
        let (config, warnings) = merge(layers, folder.as_ref().is_some_and(|folder| folder.trusted));
        let of_files = files.iter().flatten().flat_map(|file| file.warnings.clone());
        for warning in of_files.chain(warnings) {
            // The line is left out: a line added above makes no new mistake.
            if state.said.insert((warning.source.clone(), warning.message.clone())) {
                state.unsaid.push(warning);
            }
        }
        config
    }
}

impl State {
    /// The workspace's files from `place` upwards, the nearest first.
    fn files_above(&mut self, place: &Path, folder: Option<&Folder>) -> Vec<Arc<File>> {
        let Some(folder) = folder else { return Vec::new() };
        let within = place.ancestors().take_while(|ancestor| ancestor.starts_with(&folder.path));
        let paths: Vec<_> = within.map(|ancestor| ancestor.join(FILE_NAME)).collect();
        paths.iter().filter_map(|path| self.file(path, Source::Workspace)).collect()
    }

    fn file(&mut self, path: &Path, source: fn(PathBuf) -> Source) -> Option<Arc<File>> {
        if let Some(known) = self.files.get(path) {
            return known.clone();
        }
        let file = File::read(path, source(path.to_owned())).map(Arc::new);
        if self.files.len() >= MOST_REMEMBERED {
            self.files.clear();
        }
        self.files.insert(path.to_owned(), file.clone());
        file
    }
}

impl File {
    /// Where its relative paths start.
    fn folder(&self) -> Option<&Path> {
        match &self.layer.source {
            Source::User(path) | Source::Workspace(path) => path.parent(),
            Source::Environment | Source::Editor | Source::Flag => None,
        }
    }
}

/// What marks the folder of a project, besides the root of a repository.
const MARKS: [&str; 2] = [FILE_NAME, "compile_commands.json"];

/// The folder of the project that a file belongs to, wherever it is looked at from: the root of the repository around it; else the
/// nearest above it with a `stitchcuda.toml` or a `compile_commands.json`; else its own.
///
/// A folder above the file's own that everybody may write to, such as `/tmp`, ends the search: anybody could mark it.
pub fn workspace_of(file: &Path) -> Option<PathBuf> {
    let own = file.parent()?;
    let is_marked = |folder: &&Path| MARKS.iter().any(|mark| folder.join(mark).exists());
    let marked = || upwards(own).find(is_marked);
    Some(repository_of(own).or_else(marked).unwrap_or(own).to_owned())
}

/// The root of the repository that a folder lies in, or is.
fn repository_of(folder: &Path) -> Option<&Path> {
    upwards(folder).find(|above| above.join(".git").exists())
}

/// A folder and those above it, up to one that everybody may write to.
fn upwards(own: &Path) -> impl Iterator<Item = &Path> {
    own.ancestors().take_while(move |folder| *folder == own || !is_open_to_all(folder))
}

#[cfg(unix)]
fn is_open_to_all(folder: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    folder.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o002 != 0)
}

#[cfg(not(unix))]
fn is_open_to_all(_: &Path) -> bool {
    false
}

/// The folder that `place` lies in; of several, the innermost.
fn folder_of<'a>(folders: &'a [Folder], place: &Path) -> Option<&'a Folder> {
    let around = folders.iter().filter(|folder| place.starts_with(&folder.path));
    around.max_by_key(|folder| folder.path.components().count())
}

#[cfg(test)]
mod tests;
