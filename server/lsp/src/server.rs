//! The methods of the protocol, each handed to its handler with the version of the document it came for.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use stitch_session::config::Config;
use tower_lsp::jsonrpc::Result;
use tower_lsp::ls_types::{
    CodeActionParams, CodeActionResponse, CodeLens, CodeLensParams, DidChangeConfigurationParams,
    DidChangeWatchedFilesParams, DidChangeWorkspaceFoldersParams, DidSaveTextDocumentParams,
    DocumentSymbolParams, DocumentSymbolResponse, ExecuteCommandParams, Hover, HoverParams, InitializeParams,
    InitializeResult, InitializedParams, InlayHint, InlayHintParams, ServerInfo,
    WorkDoneProgressCancelParams, WorkspaceFolder,
};
use tower_lsp::{Client, LanguageServer};

use crate::capabilities;
use crate::handlers::{actions, commands, hints, hover, lenses, symbols};
use crate::ingress::pinned;
use crate::session::Session;
use crate::uri::Key;
use crate::view::View;
use crate::watchdog::Watchdog;
use crate::{compile, configuration, dependents, guard, optimize, profile, progress, watched};

/// The server behind tower-lsp's router.
#[derive(Debug)]
pub struct Server {
    /// What all parts share.
    pub session: Arc<Session>,
    /// To the client.
    pub client: Client,
    /// Told whose process to watch.
    pub watchdog: Watchdog,
}

impl Server {
    /// The pinned version with what is known of it, and its settings. `None` for a document that is not open.
    async fn view(&self) -> Option<(View, Arc<Config>)> {
        let document = pinned()?;
        let config = self.session.configuration.for_path(document.path.as_deref());
        Some((self.session.view(document).await, config))
    }

    /// `window/workDoneProgress/cancel`, for which the library has no method.
    pub async fn cancel_progress(&self, params: WorkDoneProgressCancelParams) {
        if let Some(job) = progress::job_of(&params.token) {
            self.session.jobs.cancel(job);
        }
    }

    /// Asks for the settings, and acts on them. Spawned, since it waits for the client.
    fn pull_settings(&self) {
        let (session, client) = (self.session.clone(), self.client.clone());
        tokio::spawn(async move {
            if session.features().configuration {
                session.configuration.pull(&client).await;
            }
            configuration::changed(&session);
            if session.features().plugin.status {
                configuration::tell_status(&session).await;
            }
        });
    }
}

impl LanguageServer for Server {
    async fn initialize(&self, params: InitializeParams) -> Result<InitializeResult> {
        // What the client can do was read where the message came in, from its JSON.
        let offered = capabilities::server(&self.session.features());
        if let Some(process) = params.process_id {
            self.watchdog.watch(process);
        }
        self.session.configuration.initialize(folders(&params), params.initialization_options.as_ref());
        let server_info =
            ServerInfo { name: "stitchcuda".into(), version: Some(env!("CARGO_PKG_VERSION").into()) };
        Ok(InitializeResult { capabilities: offered, server_info: Some(server_info), offset_encoding: None })
    }

    async fn initialized(&self, _: InitializedParams) {
        self.session.ready.notify_one();
        self.pull_settings();
        tokio::spawn(watched::register(self.client.clone(), self.session.features()));
    }

    async fn shutdown(&self) -> Result<()> {
        self.watchdog.set_status(0);
        for job in self.session.jobs.list() {
            self.session.jobs.cancel(job.id);
        }
        Ok(())
    }

    async fn did_save(&self, _: DidSaveTextDocumentParams) {
        if let Some(document) = pinned() {
            document.live.save();
            compile::start(&self.session, &document, compile::Reason::Saved);
            profile::saved(&self.session, &document);
            dependents::compile(&self.session, &document);
            // Not every client watches files.
            if let Some(path) = document.path.as_deref().filter(|path| watched::is_header(path)) {
                watched::changed(&self.session, std::iter::once(path));
            }
        }
    }

    async fn did_change_configuration(&self, params: DidChangeConfigurationParams) {
        if !self.session.features().configuration {
            self.session.configuration.pushed(params.settings);
        }
        self.pull_settings();
    }

    async fn did_change_workspace_folders(&self, params: DidChangeWorkspaceFoldersParams) {
        let names = |folders: Vec<WorkspaceFolder>| folders.into_iter().map(|folder| folder.uri.to_string());
        let removed: Vec<_> = names(params.event.removed).collect();
        self.session.configuration.change_folders(names(params.event.added).collect(), &removed);
        self.pull_settings();
    }

    async fn did_change_watched_files(&self, params: DidChangeWatchedFilesParams) {
        let changed: Vec<_> =
            params.changes.iter().filter_map(|change| Key::of(change.uri.as_str()).to_path()).collect();
        watched::changed(&self.session, changed.iter().map(Path::new));
    }

    async fn hover(&self, params: HoverParams) -> Result<Option<Hover>> {
        let position = params.text_document_position_params.position;
        let view = self.view().await.filter(|(_, config)| config.hover.enable);
        Ok(view.and_then(|(view, _)| hover::hover(&view, position, &self.session.features())))
    }

    async fn document_symbol(&self, _: DocumentSymbolParams) -> Result<Option<DocumentSymbolResponse>> {
        let Some(document) = pinned() else { return Ok(None) };
        match self.session.view_of_known(document).await {
            Some(view) => Ok(Some(symbols::symbols(&view, &self.session.features()))),
            None => Err(guard::still_read()),
        }
    }

    async fn code_lens(&self, _: CodeLensParams) -> Result<Option<Vec<CodeLens>>> {
        let view = self.view().await.filter(|(_, config)| config.code_lens.enable);
        let can = |view: &View| optimize::is_possible(&self.session, &view.document);
        Ok(view.map(|(view, _)| lenses::lenses(&view, can(&view))))
    }

    async fn inlay_hint(&self, params: InlayHintParams) -> Result<Option<Vec<InlayHint>>> {
        let view = self.view().await.filter(|(_, config)| config.inlay_hints.enable);
        let hints = |(view, config): (View, Arc<Config>)| {
            hints::hints(&view, params.range, &config.inlay_hints, &self.session.features())
        };
        Ok(view.map(hints))
    }

    async fn inlay_hint_resolve(&self, hint: InlayHint) -> Result<InlayHint> {
        match self.view().await {
            Some((view, _)) => Ok(hints::resolve(&view, hint, &self.session.features())),
            None => Ok(hint),
        }
    }

    async fn code_action(&self, params: CodeActionParams) -> Result<Option<CodeActionResponse>> {
        let Some((view, _)) = self.view().await else { return Ok(None) };
        Ok(Some(actions::actions(
            &self.session,
            &view,
            params.range,
            &params.context,
            &self.session.features(),
        )))
    }

    async fn execute_command(&self, params: ExecuteCommandParams) -> Result<Option<Value>> {
        commands::execute(&self.session, &params.command, &params.arguments).await.map(Some)
    }
}

/// The workspace's folders, from whichever field the client fills.
#[allow(deprecated, reason = "older clients know only `rootUri` and `rootPath`")]
fn folders(params: &InitializeParams) -> Vec<String> {
    match (&params.workspace_folders, &params.root_uri, &params.root_path) {
        (Some(folders), ..) if !folders.is_empty() => {
            folders.iter().map(|folder| folder.uri.to_string()).collect()
        }
        (_, Some(root), _) => vec![root.to_string()],
        (_, _, Some(path)) if !path.is_empty() => vec![crate::uri::from_path(Path::new(path))],
        _ => Vec::new(),
    }
}
