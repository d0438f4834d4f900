//! Code actions: what a finding means, and compiling now. Pure and fast; what an action does is a command.

use serde_json::{Value, json};
use stitch_findings::{AnchorState, Code, Finding, Producer};
use tower_lsp::ls_types::{
    CodeAction, CodeActionContext, CodeActionDisabled, CodeActionKind, CodeActionOrCommand,
    CodeActionTriggerKind, Command, Diagnostic, NumberOrString, Range,
};

use crate::capabilities::ClientFeatures;
use crate::from_proto;
use crate::handlers::{commands, rewrites};
use crate::session::Session;
use crate::to_proto::SOURCE;
use crate::view::{Placed, View};

/// The kind of the action that optimises a selection.
pub const OPTIMIZE_KIND: &str = "refactor.rewrite.stitchcuda.optimize";

/// The actions for a range.
pub fn actions(
    session: &Session,
    view: &View,
    range: Range,
    context: &CodeActionContext,
    client: &ClientFeatures,
) -> Vec<CodeActionOrCommand> {
    let mut actions = Vec::new();
    if wants(context, &CodeActionKind::QUICKFIX) {
        let wanted = from_proto::request_span(range, &view.document.text, view.encoding);
        let touches =
            |placed: &&Placed<Finding>| placed.span.start <= wanted.end && wanted.start <= placed.span.end;
        let findings: Vec<&Placed<Finding>> = view.findings.iter().filter(touches).collect();
        let mut codes: Vec<Code> = findings.iter().map(|placed| placed.item.code).collect();
        codes.sort();
        codes.dedup();
        let about = |code: Code| -> Vec<Diagnostic> {
            context.diagnostics.iter().filter(|given| is_about(given, code)).cloned().collect()
        };
        let fixes = rewrites::fixes(session, view, &findings, about, client);
        if fixes.is_empty() {
            actions.extend(optimize_for(session, view, &findings, about, client));
        }
        actions.extend(fixes);
        for code in codes {
            let command = command(format!("Explain {code}"), commands::EXPLAIN, json!(code.as_str()));
            actions.push(action(command, CodeActionKind::QUICKFIX, about(code), client));
        }
    }
    actions.extend(optimize(session, view, range, context, client));
    // Only where it is asked for by kind: an action that is always there would light a lamp on every line.
    let asked = context
        .only
        .as_ref()
        .is_some_and(|kinds| kinds.iter().any(|kind| covers(kind, &CodeActionKind::SOURCE)));
    if asked && view.document.path.is_some() {
        let title = "Compile this file and show its resources".to_owned();
        let command = command(title, commands::RECOMPILE, json!(&*view.document.uri));
        actions.push(action(command, CodeActionKind::SOURCE, Vec::new(), client));
    }
    actions
}

/// Optimising the kernel or module of what a profiler found, for findings that no rewrite answers: the first of them, whose place is the job's
/// selection.
fn optimize_for(
    session: &Session,
    view: &View,
    findings: &[&Placed<Finding>],
    about: impl Fn(Code) -> Vec<Diagnostic>,
    client: &ClientFeatures,
) -> Option<CodeActionOrCommand> {
    let is_measured = |placed: &&&Placed<Finding>| {
        let producer = placed.item.code.info().producer;
        matches!(producer, Producer::Ncu | Producer::Nsys) && placed.state != AnchorState::Stale
    };
    let finding = findings.iter().find(is_measured)?;
    let target = crate::optimize::target(session, &view.document, Some(finding.span)).ok()?;
    let scope = target.scope().join(", ");
    let of = if scope.is_empty() { "this" } else { &scope };
    let code = finding.item.code;
    let argument =
        json!({"uri": &*view.document.uri, "range": view.range_here(finding.span), "finding": code.as_str()});
    let command = command(format!("Optimize {of} for {code}"), commands::OPTIMIZE, argument);
    Some(action(command, CodeActionKind::QUICKFIX, about(code), client))
}

/// Optimising what is selected. Where it can't be, the reason, if a person asked for such an action and the editor shows reasons.
fn optimize(
    session: &Session,
    view: &View,
    range: Range,
    context: &CodeActionContext,
    client: &ClientFeatures,
) -> Option<CodeActionOrCommand> {
    let kind = CodeActionKind::from(OPTIMIZE_KIND);
    let asked = context.only.as_ref().is_some_and(|kinds| kinds.iter().any(|asked| covers(asked, &kind)));
    let invoked = context.trigger_kind != Some(CodeActionTriggerKind::AUTOMATIC);
    if !asked && (context.only.is_some() || !invoked || range.start == range.end) {
        return None;
    }
    let selection = from_proto::request_span(range, &view.document.text, view.encoding);
    let target = crate::optimize::target(session, &view.document, Some(selection));
    let of = target.as_ref().ok().map(|chosen| chosen.scope().join(", ")).filter(|of| !of.is_empty());
    let title = of.map_or("Optimize".to_owned(), |of| format!("Optimize {of}"));
    let argument = json!({"uri": &*view.document.uri, "range": range});
    let disabled = target.err().map(|reason| CodeActionDisabled { reason });
    if disabled.is_some() && !(asked && client.disabled_actions && client.code_action_literals) {
        return None;
    }
    match action(command(title, commands::OPTIMIZE, argument), kind, Vec::new(), client) {
        CodeActionOrCommand::CodeAction(action) if disabled.is_some() => {
            Some(CodeActionOrCommand::CodeAction(CodeAction { disabled, command: None, ..action }))
        }
        action => Some(action),
    }
}

fn command(title: String, command: &str, argument: Value) -> Command {
    Command { title, command: command.to_owned(), arguments: Some(vec![argument]) }
}

fn action(
    command: Command,
    kind: CodeActionKind,
    diagnostics: Vec<Diagnostic>,
    client: &ClientFeatures,
) -> CodeActionOrCommand {
    if !client.code_action_literals {
        return CodeActionOrCommand::Command(command);
    }
    CodeActionOrCommand::CodeAction(CodeAction {
        title: command.title.clone(),
        kind: Some(kind),
        diagnostics: (!diagnostics.is_empty()).then_some(diagnostics),
        command: Some(command),
        ..CodeAction::default()
    })
}

/// Another server's diagnostics on the same line are none of ours.
fn is_about(diagnostic: &Diagnostic, code: Code) -> bool {
    let same_code = matches!(&diagnostic.code, Some(NumberOrString::String(given)) if given == code.as_str());
    same_code && diagnostic.source.as_deref() == Some(SOURCE)
}

fn wants(context: &CodeActionContext, kind: &CodeActionKind) -> bool {
    context.only.as_ref().is_none_or(|kinds| kinds.iter().any(|asked| covers(asked, kind)))
}

/// Kinds are a hierarchy: `source` asks for `source.x` too, and the empty kind for all.
fn covers(asked: &CodeActionKind, kind: &CodeActionKind) -> bool {
    let (asked, kind) = (asked.as_str(), kind.as_str());
    asked.is_empty() || kind == asked || kind.strip_prefix(asked).is_some_and(|rest| rest.starts_with('.'))
}
