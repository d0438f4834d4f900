//! The configuration as the client gives it: pulled where it can be asked, else as it pushes it; folder by folder.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use stitch_agents::engines::Engines;
use stitch_session::config::{Config, Folder, Settings, Surroundings};
use stitch_verifier::program;
use tower_lsp::Client;
use tower_lsp::ls_types::ConfigurationItem;

use crate::session::Session;
use crate::uri::{self, Key};
use crate::{elsewhere, guard};

/// The settings' name in the editor.
const SECTION: &str = "stitchcuda";

/// The option of `initialize` that says whether the workspace is trusted.
const TRUST: &str = "workspaceTrusted";

/// The settings, and what they depend on.
pub struct Configuration {
    settings: Settings,
    workspace: Mutex<Workspace>,
}

#[derive(Clone, Default)]
struct Workspace {
    /// As the client spells them.
    folders: Vec<String>,
    is_untrusted: bool,
}

impl Configuration {
    /// Nothing said by a client yet.
    pub fn new(surroundings: Surroundings) -> Self {
        Self { settings: Settings::new(surroundings), workspace: Mutex::default() }
    }

    /// What holds for a file.
    pub fn for_path(&self, path: Option<&std::path::Path>) -> Arc<Config> {
        self.settings.for_path(path)
    }

    /// Whether the person trusts the workspace. Clients that know of no trust run programs anyway, so it is assumed; VS Code says
    /// `workspaceTrusted: false` in its restricted mode, and then no program is run on a save.
    pub fn is_trusted(&self) -> bool {
        !self.workspace().is_untrusted
    }

    /// The innermost folder of the workspace that a file is in.
    pub fn folder_of(&self, path: &std::path::Path) -> Option<PathBuf> {
        let folders = self.workspace().folders;
        let around =
            folders.iter().filter_map(|uri| Key::of(uri).to_path()).filter(|folder| path.starts_with(folder));
        around.max_by_key(|folder| folder.components().count())
    }

    /// The folders of the workspace.
    pub fn folders(&self) -> Vec<PathBuf> {
        self.workspace().folders.iter().filter_map(|uri| Key::of(uri).to_path()).collect()
    }

    /// The first folder of the workspace: what holds there is shown where no file is meant.
    pub fn first_folder(&self) -> Option<PathBuf> {
        self.workspace().folders.first().and_then(|uri| Key::of(uri).to_path())
    }

    /// The folder of the project that a file is in: that of the workspace, or above it the root of the repository, since an editor
    /// may show a part of a project.
    pub fn project_of(&self, path: &std::path::Path) -> Option<PathBuf> {
        let project = stitch_session::config::workspace_of(path);
        match (self.folder_of(path), project) {
            (Some(folder), Some(project)) if folder.starts_with(&project) => Some(project),
            (folder, project) => folder.or(project),
        }
    }

    /// What `initialize` says: folders, trust, and settings for clients that are not asked for them.
    pub fn initialize(&self, folders: Vec<String>, options: Option<&Value>) {
        let option = |name: &str| options.and_then(|options| options.get(name));
        let is_untrusted = option(TRUST).and_then(Value::as_bool) == Some(false);
        *self.lock() = Workspace { folders, is_untrusted };
        self.folders_changed();
        // Some clients wrap the settings, in one way or the other, and some send them as they are.
        let own = || {
            let mut own = options?.clone();
            own.as_object_mut()?.remove(TRUST);
            Some(own)
        };
        if let Some(settings) = option("settings").or_else(|| option(SECTION)).cloned().or_else(own) {
            self.settings.set_editor(None, settings);
        }
    }

    /// Folders came and went.
    pub fn change_folders(&self, added: Vec<String>, removed: &[String]) {
        let mut workspace = self.lock();
        let gone: Vec<Key> = removed.iter().map(|uri| Key::of(uri)).collect();
        workspace.folders.retain(|uri| !gone.contains(&Key::of(uri)));
        workspace.folders.extend(added);
        drop(workspace);
        self.folders_changed();
    }

    fn folders_changed(&self) {
        let workspace = self.workspace();
        let folders = workspace.folders.iter().filter_map(|uri| Key::of(uri).to_path());
        let trusted = !workspace.is_untrusted;
        self.settings.set_folders(folders.map(|path| Folder { path, trusted }).collect());
    }

    /// Settings that the client sent by itself.
    pub fn pushed(&self, settings: Value) {
        self.settings.set_editor(None, settings);
    }

    /// What is wrong with the settings and was not said yet.
    pub fn take_warnings(&self) -> Vec<stitch_session::config::Warning> {
        self.settings.take_warnings()
    }

    /// The files with settings changed on disk.
    pub fn reload(&self) {
        self.settings.reload();
    }

    /// Asks the client for the settings of all folders. Waits for its answer, so never from a handler.
    pub async fn pull(&self, client: &Client) {
        let folders = self.workspace().folders;
        let item = |scope: Option<&String>| {
            let scope_uri = scope.and_then(|uri| uri.parse().or_else(|_| uri::strict(uri).parse()).ok());
            ConfigurationItem { scope_uri, section: Some(SECTION.to_owned()) }
        };
        let items = std::iter::once(item(None)).chain(folders.iter().map(|uri| item(Some(uri)))).collect();
        let Some(answers) = guard::answer(client.configuration(items)).await else { return };
        let mut answers = answers.into_iter();
        if let Some(settings) = answers.next() {
            self.settings.set_editor(None, settings);
        }
        for (folder, settings) in folders.iter().zip(answers) {
            if let Some(path) = Key::of(folder).to_path() {
                self.settings.set_editor(Some(&path), settings);
            }
        }
    }

    fn workspace(&self) -> Workspace {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Workspace> {
        self.workspace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Configuration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Configuration")
    }
}

/// Acts on settings that may have changed: everything shown is shown anew.
pub fn changed(session: &Session) {
    let config = session.configuration.for_path(None);
    let mut documents = session.documents();
    documents.longest =
        usize::try_from(config.files.size_limit_megabytes).unwrap_or(usize::MAX).saturating_mul(1 << 20);
    let open: Vec<_> =
        documents.all().map(|document| (document.key.clone(), document.path.clone())).collect();
    drop(documents);
    // Reading the settings of each folder is what finds mistakes in them.
    open.iter().for_each(|(_, path)| drop(session.configuration.for_path(path.as_deref())));
    session.say_warnings();
    session.publisher.mark(open.into_iter().map(|(key, _)| key));
    refresh(session);
}

/// Says in the status what the settings make of device and engine. Asks the driver, so never from a handler.
pub async fn tell_status(session: &Session) {
    let folder = session.configuration.first_folder();
    let config = session.configuration.for_path(folder.as_deref());
    let device = match session.machines.of(&config) {
        // Nobody is asked before a job needs it: a queue may be before a machine.
        Some(elsewhere) => elsewhere::described(&elsewhere, &config.device),
        None => {
            let device = program::choose(&config.device).await;
            device.map_or_else(|error| format!("none: {error}"), |device| device.to_string())
        }
    };
    let engine = Engines::choose(&config, None, None, None);
    let engine = match engine {
        Ok(engine) => match engine.model() {
            Some(model) => format!("{} ({model})", engine.name()),
            None => engine.name().to_owned(),
        },
        Err(error) => format!("none: {error}"),
    };
    let restricted = !session.configuration.is_trusted();
    session.status.update(&session.notices, |status| {
        (status.device, status.engine) = (Some(device), Some(engine));
        status.restricted = restricted;
    });
}

/// Asks the client to ask again for what it shows beside the text.
pub fn refresh(session: &Session) {
    let Some(client) = session.client() else { return };
    let features = session.features();
    tokio::spawn(async move {
        if features.inlay_hint_refresh {
            guard::answer(client.inlay_hint_refresh()).await;
        }
        if features.code_lens_refresh {
            guard::answer(client.code_lens_refresh()).await;
        }
    });
}
