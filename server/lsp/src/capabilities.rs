//! What the client can do, and what we offer it.

use serde_json::Value;
use stitch_analysis::Encoding;
use tower_lsp::ls_types::{
    CodeActionKind, CodeActionOptions, CodeActionProviderCapability, CodeLensOptions, ExecuteCommandOptions,
    HoverProviderCapability, InlayHintOptions, InlayHintServerCapabilities, OneOf, PositionEncodingKind,
    SaveOptions, ServerCapabilities, TextDocumentSyncCapability, TextDocumentSyncKind,
    TextDocumentSyncOptions, TextDocumentSyncSaveOptions, WorkDoneProgressOptions,
    WorkspaceFoldersServerCapabilities, WorkspaceServerCapabilities,
};

use crate::handlers::{actions, commands};

/// What the client said it can do, as far as it matters here. All off unless said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientFeatures {
    /// What columns count.
    pub encoding: Encoding,
    /// Shows other places with a diagnostic.
    pub related_information: bool,
    /// Shows a link with a diagnostic's code.
    pub code_description: bool,
    /// Gives `data` of a diagnostic back.
    pub diagnostic_data: bool,
    /// Shows Markdown in hovers.
    pub markdown: bool,
    /// Shows nested document symbols.
    pub nested_symbols: bool,
    /// Takes code actions that are no bare commands.
    pub code_action_literals: bool,
    /// Shows why a code action is not to be had.
    pub disabled_actions: bool,
    /// Takes edits of one version of a document.
    pub versioned_edits: bool,
    /// Asks the person before it makes an edit that wants that.
    pub annotated_edits: bool,
    /// Asks again for inlay hints when told to.
    pub inlay_hint_refresh: bool,
    /// Resolves the tooltip of a hint later.
    pub inlay_hint_tooltip: bool,
    /// Asks again for code lenses when told to.
    pub code_lens_refresh: bool,
    /// Shows progress that the server starts.
    pub progress: bool,
    /// Answers `workspace/configuration`.
    pub configuration: bool,
    /// Registers for changes of the configuration at run time.
    pub configuration_registration: bool,
    /// Registers file watchers at run time.
    pub watched_files: bool,
    /// What a plugin of ours asks for beyond the protocol.
    pub plugin: Plugin,
}

/// What `experimental.stitchcuda` of the client's capabilities asks for; see `editors/PROTOCOL.md`. A client that asks for nothing is sent
/// nothing of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plugin {
    /// Is told of jobs.
    pub jobs: bool,
    /// Shows candidates itself, and says what becomes of them.
    pub review: bool,
    /// Shows the state of the server.
    pub status: bool,
    /// Shows the findings at a place beside its hover, so that the hover need not repeat them.
    pub diagnostics_in_hover: bool,
}

impl ClientFeatures {
    /// Reads the client's capabilities. From JSON: a single field of an unexpected type must not hide the others.
    pub fn read(capabilities: &Value) -> Self {
        let is = |pointer: &str| capabilities.pointer(pointer).and_then(Value::as_bool).unwrap_or(false);
        let has = |pointer: &str| capabilities.pointer(pointer).is_some_and(|value| !value.is_null());
        let lists = |pointer: &str, item: &str| {
            let list = capabilities.pointer(pointer).and_then(Value::as_array);
            list.is_some_and(|list| list.iter().any(|value| value == item))
        };
        Self {
            encoding: encoding(capabilities),
            related_information: is("/textDocument/publishDiagnostics/relatedInformation"),
            code_description: is("/textDocument/publishDiagnostics/codeDescriptionSupport"),
            diagnostic_data: is("/textDocument/publishDiagnostics/dataSupport"),
            markdown: lists("/textDocument/hover/contentFormat", "markdown"),
            nested_symbols: is("/textDocument/documentSymbol/hierarchicalDocumentSymbolSupport"),
            code_action_literals: has("/textDocument/codeAction/codeActionLiteralSupport"),
            disabled_actions: is("/textDocument/codeAction/disabledSupport"),
            versioned_edits: is("/workspace/workspaceEdit/documentChanges"),
            annotated_edits: has("/workspace/workspaceEdit/changeAnnotationSupport"),
            inlay_hint_refresh: is("/workspace/inlayHint/refreshSupport"),
            inlay_hint_tooltip: lists("/textDocument/inlayHint/resolveSupport/properties", "tooltip"),
            code_lens_refresh: is("/workspace/codeLens/refreshSupport"),
            progress: is("/window/workDoneProgress"),
            configuration: is("/workspace/configuration"),
            configuration_registration: is("/workspace/didChangeConfiguration/dynamicRegistration"),
            watched_files: is("/workspace/didChangeWatchedFiles/dynamicRegistration"),
            plugin: Plugin {
                jobs: is("/experimental/stitchcuda/jobs"),
                review: is("/experimental/stitchcuda/review"),
                status: is("/experimental/stitchcuda/status"),
                diagnostics_in_hover: is("/experimental/stitchcuda/diagnosticsInHover"),
            },
        }
    }
}

/// The client's first choice among those we have; UTF-16 where it does not say (LSP 3.17, `positionEncodings`).
fn encoding(capabilities: &Value) -> Encoding {
    let offered = capabilities.pointer("/general/positionEncodings").and_then(Value::as_array);
    let known = |name: &Value| match name.as_str()? {
        "utf-8" => Some(Encoding::Utf8),
        "utf-16" => Some(Encoding::Utf16),
        "utf-32" => Some(Encoding::Utf32),
        _ => None,
    };
    offered.into_iter().flatten().find_map(known).unwrap_or_default()
}

fn encoding_kind(encoding: Encoding) -> PositionEncodingKind {
    match encoding {
        Encoding::Utf8 => PositionEncodingKind::UTF8,
        Encoding::Utf16 => PositionEncodingKind::UTF16,
        Encoding::Utf32 => PositionEncodingKind::UTF32,
    }
}

/// What we offer.
pub fn server(client: &ClientFeatures) -> ServerCapabilities {
    let no_progress = WorkDoneProgressOptions::default();
    ServerCapabilities {
        position_encoding: Some(encoding_kind(client.encoding)),
        text_document_sync: Some(TextDocumentSyncCapability::Options(TextDocumentSyncOptions {
            open_close: Some(true),
            change: Some(TextDocumentSyncKind::INCREMENTAL),
            save: Some(TextDocumentSyncSaveOptions::SaveOptions(SaveOptions { include_text: Some(false) })),
            ..TextDocumentSyncOptions::default()
        })),
        hover_provider: Some(HoverProviderCapability::Simple(true)),
        document_symbol_provider: Some(OneOf::Left(true)),
        code_lens_provider: Some(CodeLensOptions { resolve_provider: Some(false) }),
        inlay_hint_provider: Some(OneOf::Right(InlayHintServerCapabilities::Options(InlayHintOptions {
            resolve_provider: Some(true),
            work_done_progress_options: no_progress,
        }))),
        code_action_provider: Some(CodeActionProviderCapability::Options(CodeActionOptions {
            code_action_kinds: Some(vec![
                CodeActionKind::QUICKFIX,
                CodeActionKind::from(actions::OPTIMIZE_KIND),
                CodeActionKind::SOURCE,
            ]),
            work_done_progress_options: no_progress,
            resolve_provider: Some(false),
        })),
        execute_command_provider: Some(ExecuteCommandOptions {
            commands: commands::NAMES.iter().map(|name| (*name).to_owned()).collect(),
            work_done_progress_options: no_progress,
        }),
        workspace: Some(WorkspaceServerCapabilities {
            workspace_folders: Some(WorkspaceFoldersServerCapabilities {
                supported: Some(true),
                change_notifications: Some(OneOf::Left(true)),
            }),
            file_operations: None,
        }),
        ..ServerCapabilities::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_clients_first_known_encoding_is_taken() {
        let rows = [
            (json!({}), Encoding::Utf16),
            (json!({"general": {"positionEncodings": []}}), Encoding::Utf16),
            (json!({"general": {"positionEncodings": ["utf-8", "utf-16"]}}), Encoding::Utf8),
            (json!({"general": {"positionEncodings": ["utf-16", "utf-8"]}}), Encoding::Utf16),
            (json!({"general": {"positionEncodings": ["utf-7", 3, "utf-32"]}}), Encoding::Utf32),
            (json!({"general": 5}), Encoding::Utf16),
        ];
        for (capabilities, expected) in rows {
            assert_eq!(encoding(&capabilities), expected, "{capabilities}");
        }
    }
}
