//! The statements that go before the target: imports, the guard, the candidate's code as a function, what was verified.

use std::collections::{BTreeSet, HashSet};

use stitch_findings::Span;
use tree_sitter::Node;

use super::super::source::{Source, children, docstring};
use super::candidate::{Import, bound, imports, needed, triton_names, whole};
use super::guard::{self, Verified, quoted, tuple};
use super::layout::{free, moved, names};
use super::{SUPPORT, SUPPORT_IMPORTS};

/// Roots of modules that are imported at the top of the file, since they are there wherever the file runs. Others are imported where the
/// extension is built, whose failure is caught.
const ALWAYS: &[&str] =
    &["torch", "math", "functools", "itertools", "os", "sys", "typing", "warnings", "contextlib", "operator"];
/// Parts of torch that need more than torch, or may be missing.
const NOT_ALWAYS: &[&str] = &["torch.utils", "torch._", "torch.cuda.nvtx"];

/// The candidate, and how it is set up.
pub(super) struct New<'s> {
    pub(super) source: &'s Source<'s>,
    /// The name of its class or function.
    pub(super) name: &'s str,
    /// Changes of its text.
    pub(super) edits: Vec<(std::ops::Range<usize>, String)>,
}

/// How calls are guarded.
pub(super) struct Guarded<'s> {
    /// The target's qualified name.
    pub(super) target: &'s str,
    pub(super) verified: &'s Verified,
    /// A tuple for each call, as the guard sees it.
    pub(super) calls: Vec<String>,
    /// Parameters that are given by name.
    pub(super) keywords: Vec<String>,
    pub(super) is_module: bool,
    pub(super) needs: BTreeSet<String>,
    /// Attributes that the edit adds to the original's `__init__`; the settings that were verified have none of these.
    pub(super) added: Vec<String>,
}

/// The edits that come before the target, and the name of the guard.
pub(super) fn before(
    source: &Source<'_>,
    at: usize,
    new: &New<'_>,
    guarded: &Guarded<'_>,
) -> Result<(Vec<(Span, String)>, String), String> {
    let mut used = names(source);
    let statements = needed(new.source, new.name)?;
    let slug = super::super::inputs::snake_case(&guarded.target.replace('.', "_"));
    let make = free(&format!("_make_{slug}"), &mut used);
    let guard = free(&format!("_verified_{slug}"), &mut used);
    let step = source.step();
    let mut lines = imports_for_support(source)?;
    let mut inside: Vec<Import> = Vec::new();
    for import in statements.iter().flat_map(|statement| top_imports(new.source, *statement)) {
        match import_place(source, &import)? {
            Place::There => {}
            Place::Top => lines.push(import.line.clone()),
            Place::Inside => inside.push(import),
        }
    }
    let mut seen = HashSet::new();
    lines.retain(|line| seen.insert(line.clone()));
    let mut edits = Vec::new();
    let newline = source.newline();
    if !lines.is_empty() {
        let (place, prefix) = import_position(source);
        let text: String = lines.iter().map(|line| format!("{line}{newline}")).collect();
        let behind = if children(source.root()).first().is_none_or(|first| place <= first.start_byte()) {
            newline
        } else {
            ""
        };
        edits.push((Span::new(place, place), format!("{prefix}{text}{behind}")));
    }
    let mut text = String::new();
    let support = restep(SUPPORT, &step);
    if !has_support(source, &support)? {
        text.push_str(&support);
        text.push_str("\n\n");
    }
    text.push_str(&maker(&make, new, &statements, &inside, &step, &used, guarded)?);
    text.push_str("\n\n");
    text.push_str(&table(&guard, &make, new, guarded, &step));
    text.push_str("\n\n");
    let text = if newline == "\n" { text } else { text.replace('\n', newline) };
    edits.push((Span::new(at, at), text));
    Ok((edits, guard))
}

/// The imports that a statement of the top level is.
fn top_imports(source: &Source<'_>, statement: Node) -> Vec<Import> {
    let is_import = matches!(statement.kind(), "import_statement" | "import_from_statement");
    if is_import { imports(source, statement) } else { Vec::new() }
}

enum Place {
    There,
    Top,
    Inside,
}

/// Whether the file has an import, can have it at its top, or must not.
fn import_place(source: &Source<'_>, import: &Import) -> Result<Place, String> {
    if import.path.starts_with('.') {
        return Err(format!("The candidate imports `{}` relative to its own package.", import.path));
    }
    let there = top_level(source).into_iter().filter(|(local, _)| *local == import.local).collect::<Vec<_>>();
    let submodule =
        import.line.starts_with("import ") && import.line.contains('.') && !import.line.contains(" as ");
    let same = there.len() == 1 && there.iter().all(|(_, path)| path.as_deref() == Some(&import.path));
    if same && !submodule {
        return Ok(Place::There);
    }
    let root = import.path.split('.').next().unwrap_or_default();
    let always = ALWAYS.contains(&root)
        && !NOT_ALWAYS.iter().any(|start| import.path.starts_with(start) || import.line.contains(start));
    Ok(if there.is_empty() && always { Place::Top } else { Place::Inside })
}

/// Names of the file's top level; for imports with their paths.
fn top_level(source: &Source<'_>) -> Vec<(String, Option<String>)> {
    let mut found = Vec::new();
    for statement in children(source.root()) {
        let own = top_imports(source, statement);
        if own.is_empty() {
            found.extend(bound(source, statement).into_iter().map(|name| (name, None)));
        } else {
            for import in own {
                let pair = (import.local, Some(import.path));
                if !found.contains(&pair) {
                    found.push(pair);
                }
            }
        }
    }
    found
}

/// The imports of the guard that the file lacks.
fn imports_for_support(source: &Source<'_>) -> Result<Vec<String>, String> {
    let known = top_level(source);
    let mut lines = Vec::new();
    for name in SUPPORT_IMPORTS {
        let mut own = known.iter().filter(|(local, _)| local == name).peekable();
        if own.peek().is_none() {
            lines.push(format!("import {name}"));
        } else if !own.all(|(_, path)| path.as_deref() == Some(name)) {
            return Err(format!(
                "`{name}` is something else in this file than the module of that name, which the guard needs."
            ));
        }
    }
    Ok(lines)
}

/// Where imports are inserted, and what has to stand before them: behind the imports at the top, else behind the docstring.
fn import_position(source: &Source<'_>) -> (usize, &'static str) {
    let mut last = None;
    let doc = docstring(source.root());
    for (index, statement) in children(source.root()).into_iter().enumerate() {
        let is_import = statement.kind().contains("import");
        let is_doc = index == 0 && doc.is_some();
        if is_import || is_doc {
            last = Some(statement);
        } else if matches!(
            statement.kind(),
            "class_definition" | "function_definition" | "decorated_definition"
        ) {
            break;
        }
    }
    match last {
        Some(statement) => {
            let end = source.line_end(statement.end_byte());
            let unended = end == source.text.len() && !source.text.ends_with(['\n', '\r']);
            (end, if unended { source.newline() } else { "" })
        }
        None => {
            // Behind a byte order mark, `#!` and the encoding.
            let mut at = if source.text.starts_with('\u{feff}') { 3 } else { 0 };
            while source.text[at..].starts_with("#!") || at_encoding(source, at) {
                at = source.line_end(at);
            }
            (at, "")
        }
    }
}

fn at_encoding(source: &Source<'_>, at: usize) -> bool {
    let line = &source.text[at..source.line_end(at)];
    line.starts_with('#') && (line.contains("coding:") || line.contains("coding="))
}

/// Whether the file has the guard already.
fn has_support(source: &Source<'_>, support: &str) -> Result<bool, String> {
    let text = source.text.replace("\r\n", "\n").replace('\r', "\n");
    if text.contains(support.trim_end()) {
        return Ok(true);
    }
    if names(source).contains("_Verified") {
        return Err("The file has a `_Verified` that is not the guard of this version; remove what was put in before first.".to_owned());
    }
    Ok(false)
}

/// Text with four spaces a step in another step.
fn restep(text: &str, step: &str) -> String {
    let line = |line: &str| {
        let rest = line.trim_start_matches(' ');
        let steps = (line.len() - rest.len()) / 4;
        format!("{}{rest}", step.repeat(steps))
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n") + "\n"
}

/// The function that holds the candidate's statements.
fn maker(
    make: &str,
    new: &New<'_>,
    statements: &[Node],
    inside: &[Import],
    step: &str,
    used: &HashSet<String>,
    guarded: &Guarded<'_>,
) -> Result<String, String> {
    let mut text = format!(
        "def {make}():\n{step}\"\"\"What was verified in place of `{}`; run once, at the first call that needs it.\"\"\"\n",
        guarded.target
    );
    let mut globals: Vec<String> = triton_names(new.source, statements).into_iter().collect();
    globals.sort();
    if let Some(taken) = globals.iter().find(|name| used.contains(*name)) {
        return Err(format!(
            "A kernel of the candidate uses the name `{taken}`, which the file uses for something of its own."
        ));
    }
    if !globals.is_empty() {
        text.push_str(&format!("{step}# Kernels of Triton are looked up among the names of the file.\n"));
        text.push_str(&format!("{step}global {}\n", globals.join(", ")));
    }
    for import in inside {
        text.push_str(&format!("{step}{}\n", import.line));
    }
    let own_step = new.source.step();
    let mut last_end = None;
    for statement in statements.iter().filter(|statement| !statement.kind().starts_with("import")) {
        let span = whole(new.source, *statement);
        let gap =
            last_end.is_some_and(|end: usize| new.source.text[end..span.start].matches('\n').count() > 1);
        if gap || last_end.is_none() && !inside.is_empty() {
            text.push('\n');
        }
        last_end = Some(span.end);
        text.push_str(&edited(new, span, step, &own_step));
        text.push('\n');
    }
    text.push_str(&format!("{step}return {}\n", new.name));
    Ok(text)
}

/// A statement of the candidate with its changes, indented by one step.
fn edited(new: &New<'_>, span: Span, step: &str, own_step: &str) -> String {
    let mut text = String::new();
    let mut at = span.start;
    let push = |text: &mut String, start: usize, end: usize| {
        if start < end {
            text.push_str(&moved(new.source, start, end, "", step, (own_step, step)));
        }
    };
    for (range, replacement) in new.edits.iter().filter(|(range, _)| span.contains(Span::from(range.clone())))
    {
        push(&mut text, at, range.start);
        for line in replacement.split_inclusive('\n') {
            if line.trim().is_empty() {
                text.push('\n');
            } else {
                text.push_str(step);
                let mut rest = line;
                while let Some(deeper) = rest.strip_prefix(own_step) {
                    text.push_str(step);
                    rest = deeper;
                }
                text.push_str(rest);
            }
        }
        at = range.end.min(span.end);
    }
    push(&mut text, at, span.end);
    text.trim_end().to_owned()
}

/// The object that guards the calls.
fn table(guard: &str, make: &str, new: &New<'_>, guarded: &Guarded<'_>, step: &str) -> String {
    let verified = guarded.verified;
    let gradients = if verified.gradients { "" } else { " where no gradients are needed" };
    let mut text = format!(
        "# `{}` runs the code of `{make}` for these calls{gradients}, and its own for all others.\n{guard} = _Verified(\n",
        guarded.target
    );
    let mut line = |what: &str| text.push_str(&format!("{step}{what},\n"));
    line(&quoted(guarded.target));
    line(make);
    let mut calls = guarded.calls.clone();
    calls.sort();
    calls.dedup();
    line(&format!("calls={{{}}}", calls.join(&format!(",\n{step}{step}"))));
    if !guarded.keywords.is_empty() {
        line(&format!("keywords={}", tuple(guarded.keywords.iter().map(|name| quoted(name)))));
    }
    if guarded.is_module {
        let mut states: Vec<String> = Vec::new();
        for call in &verified.calls {
            let entries =
                call.state.iter().map(|(name, tensor)| format!("{}: {}", quoted(name), guard::seen(tensor)));
            let state = format!("{{{}}}", entries.collect::<Vec<_>>().join(", "));
            if !states.contains(&state) {
                states.push(state);
            }
        }
        line(&format!("state=[{}]", states.join(&format!(",\n{step}{step}"))));
        if !verified.settings.is_empty() {
            line(&format!("settings={}", tuple(verified.settings.iter().map(|text| quoted(text)))));
        }
        let modes = verified.training.iter().map(|mode| if *mode { "True" } else { "False" });
        line(&format!("training={}", tuple(modes)));
        if !guarded.needs.is_empty() {
            line(&format!("needs={}", tuple(guarded.needs.iter().map(|name| quoted(name)))));
        }
    }
    if !guarded.added.is_empty() {
        line(&format!("added={}", tuple(guarded.added.iter().map(|name| quoted(name)))));
    }
    if verified.gradients {
        line("gradients=True");
    }
    let text_of = new.source.text;
    if ["getCurrentCUDAStream", "current_stream", "triton"].iter().any(|word| text_of.contains(word)) {
        line("streams=True");
    }
    text.push_str(")\n");
    text
}
