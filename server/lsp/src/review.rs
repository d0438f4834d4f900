//! Offers the best attempt of a run for review: to a plugin that shows candidates itself, as an edit that the editor shows before it
//! makes it, or as a question.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::json;
use stitch_agents::patch::{self, Change};
use stitch_agents::run::{Conclusion, Run};
use stitch_analysis::Text;
use stitch_findings::Span;
use stitch_session::jobs::JobId;
use tower_lsp::ls_types::{
    AnnotatedTextEdit, ChangeAnnotation, DocumentChanges, MessageActionItem, MessageType, OneOf,
    OptionalVersionedTextDocumentIdentifier, TextDocumentEdit, TextEdit, Uri, WorkspaceEdit,
};

use crate::board::{self, Decision};
use crate::capabilities::ClientFeatures;
use crate::documents::Document;
use crate::session::Session;
use crate::to_proto;

/// The annotation's name in the edit.
const ANNOTATION: &str = "stitchcuda.optimize";
/// The answers to the question, where the editor itself does not ask.
const APPLY: &str = "Apply";
const DISCARD: &str = "Discard";

/// Offers the result of a run that `job` made, and that began with `document`.
pub async fn offer(
    session: Arc<Session>,
    job: JobId,
    document: Arc<Document>,
    run: Run,
    conclusion: Conclusion,
) {
    let target = run.manifest().target.clone();
    let id = run.manifest().id.clone();
    let Some(number) = conclusion.best else {
        session.notices.show(MessageType::INFO, format!("{target}: {}", conclusion.said));
        return;
    };
    let Ok(text) = run.candidate(number) else {
        session.notices.show(MessageType::ERROR, format!("{target}: the candidate of the run {id} is gone."));
        return;
    };
    // Others may go on with the run while the person reads.
    let changes = patch::changes(run.reference(), &text);
    drop(run);
    let Some(client) = session.client() else { return };
    let features = session.features();
    if features.plugin.review {
        session.board.write(job, |card| card.decision = Some(Decision::Open));
        board::tell(&session, job);
        session.notices.review(json!({
            "job": job, "run": id, "attempt": number, "uri": &*document.uri, "target": target,
            "said": conclusion.said, "speedup": conclusion.gain, "isCurrent": is_current(&session, &document),
        }));
        return;
    }
    let evidence = format!("{} Run {id}.", conclusion.said);
    if !features.annotated_edits {
        let question = format!("{target}: {evidence}");
        let answers = [APPLY, DISCARD]
            .map(|title| MessageActionItem { title: title.to_owned(), properties: HashMap::new() });
        // A person may take as long as they like.
        let answer = client.show_message_request(MessageType::INFO, question, Some(answers.to_vec())).await;
        if answer.ok().flatten().is_none_or(|item| item.title != APPLY) {
            return;
        }
    }
    if !is_current(&session, &document) {
        let file = document.path.as_deref().and_then(|path| path.file_name()).unwrap_or_default();
        let said = format!(
            "{} has changed while {target} was optimised, so nothing was changed. {evidence} `stitchcuda runs diff {id}` prints the patch.",
            file.to_string_lossy()
        );
        session.notices.show(MessageType::WARNING, said);
        return;
    }
    let Some(edit) = edit(&document, &changes, &features, &target, &evidence) else { return };
    if let Err(reason) = make(&session, edit).await {
        session.notices.info(format!("The edit of {target} was not made{reason}; it is in the run {id}."));
    }
}

/// Makes an edit that the person has accepted already. Whether it was made; if not, the person is told.
pub async fn apply(
    session: &Session,
    document: &Document,
    changes: &[Change],
    target: &str,
    evidence: &str,
) -> bool {
    let features = ClientFeatures { annotated_edits: false, ..session.features() };
    let Some(edit) = edit(document, changes, &features, target, evidence) else { return false };
    let made = make(session, edit).await;
    if let Err(reason) = &made {
        session.notices.show(MessageType::WARNING, format!("The edit of {target} was not made{reason}."));
    }
    made.is_ok()
}

/// Asks the client for an edit; why it was not made, in parentheses, where that is known.
async fn make(session: &Session, edit: WorkspaceEdit) -> Result<(), String> {
    let client = session.client().ok_or_else(String::new)?;
    match client.apply_edit(edit).await {
        Ok(answer) if answer.applied => Ok(()),
        Ok(answer) => Err(answer.failure_reason.map(|reason| format!(" ({reason})")).unwrap_or_default()),
        Err(error) => Err(format!(" ({error})")),
    }
}

/// Whether the document is open with the text that it had.
fn is_current(session: &Session, document: &Document) -> bool {
    session.documents().get(&document.key).is_some_and(|now| {
        now.version == document.version && now.text.to_source() == document.text.to_source()
    })
}

fn edit(
    document: &Document,
    changes: &[Change],
    features: &ClientFeatures,
    target: &str,
    evidence: &str,
) -> Option<WorkspaceEdit> {
    let uri: Uri = document.uri.parse().ok()?;
    let edits = edits(&document.text, changes, features);
    if !features.versioned_edits {
        let changes = Some(HashMap::from([(uri, edits)]));
        return Some(WorkspaceEdit { changes, ..WorkspaceEdit::default() });
    }
    let annotated =
        |text_edit| OneOf::Right(AnnotatedTextEdit { text_edit, annotation_id: ANNOTATION.to_owned() });
    let edits = match features.annotated_edits {
        true => edits.into_iter().map(annotated).collect(),
        false => edits.into_iter().map(OneOf::Left).collect(),
    };
    let text_document = OptionalVersionedTextDocumentIdentifier { uri, version: document.version };
    let annotation = ChangeAnnotation {
        label: format!("Optimize {target}"),
        needs_confirmation: Some(true),
        description: Some(evidence.to_owned()),
    };
    Some(WorkspaceEdit {
        document_changes: Some(DocumentChanges::Edits(vec![TextDocumentEdit { text_document, edits }])),
        change_annotations: features
            .annotated_edits
            .then(|| HashMap::from([(ANNOTATION.to_owned(), annotation)])),
        ..WorkspaceEdit::default()
    })
}

fn edits(text: &Text, changes: &[Change], features: &ClientFeatures) -> Vec<TextEdit> {
    let edit = |change: &Change| TextEdit {
        range: to_proto::range(Span::new(change.start, change.end), text, features.encoding),
        new_text: change.text.clone(),
    };
    changes.iter().map(edit).collect()
}
