//! Rewrites as quick fixes: edits that the rules can show to be right, but that nobody has compiled or run.

use std::collections::HashMap;

use stitch_analysis::rewrites::{self, Rewrite};
use stitch_findings::{Code, Finding};
use tower_lsp::ls_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, Diagnostic, DocumentChanges, OneOf,
    OptionalVersionedTextDocumentIdentifier, TextDocumentEdit, TextEdit, Uri, WorkspaceEdit,
};

use crate::capabilities::ClientFeatures;
use crate::session::Session;
use crate::view::{Placed, View};

/// The rewrites that answer these findings of the view's text, each once.
pub fn fixes(
    session: &Session,
    view: &View,
    findings: &[&Placed<Finding>],
    diagnostics: impl Fn(Code) -> Vec<Diagnostic>,
    client: &ClientFeatures,
) -> Vec<CodeActionOrCommand> {
    // An edit can only be an answer of a client that takes answers with edits, and only to the text as it is.
    let Some(analysis) = view.analysis().filter(|_| client.code_action_literals) else { return Vec::new() };
    if **analysis.source() != *view.document.text.to_source() {
        return Vec::new();
    }
    let workspace = session.workspace_for(&view.document);
    let mut made: Vec<Rewrite> = Vec::new();
    let mut actions = Vec::new();
    for finding in findings {
        let code = finding.item.code;
        for rewrite in rewrites::answers(code, finding.span, analysis, &workspace) {
            let is_known =
                |known: &&Rewrite| known.rule.code == rewrite.rule.code && known.place == rewrite.place;
            if !made.iter().any(|known| is_known(&known)) {
                actions.extend(action(view, &rewrite, diagnostics(code), client));
                made.push(rewrite);
            }
        }
    }
    actions
}

fn action(
    view: &View,
    rewrite: &Rewrite,
    diagnostics: Vec<Diagnostic>,
    client: &ClientFeatures,
) -> Option<CodeActionOrCommand> {
    let uri: Uri = view.document.uri.parse().ok()?;
    let edits: Vec<TextEdit> = rewrite
        .edits
        .iter()
        .map(|edit| TextEdit { range: view.range_here(edit.span), new_text: edit.text.clone() })
        .collect();
    let edit = if client.versioned_edits {
        let text_document = OptionalVersionedTextDocumentIdentifier { uri, version: view.document.version };
        let edits = edits.into_iter().map(OneOf::Left).collect();
        let changes = DocumentChanges::Edits(vec![TextDocumentEdit { text_document, edits }]);
        WorkspaceEdit { document_changes: Some(changes), ..WorkspaceEdit::default() }
    } else {
        WorkspaceEdit { changes: Some(HashMap::from([(uri, edits)])), ..WorkspaceEdit::default() }
    };
    Some(CodeActionOrCommand::CodeAction(CodeAction {
        // What Optimize offers was run; this was not, and says so.
        title: format!("{} (not verified)", rewrite.title),
        kind: Some(CodeActionKind::QUICKFIX),
        diagnostics: (!diagnostics.is_empty()).then_some(diagnostics),
        edit: Some(edit),
        ..CodeAction::default()
    }))
}
