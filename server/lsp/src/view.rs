//! One version of a document with everything known of it, placed in that version's text.
//!
//! Analysis and findings may be of an older or a newer version than the one a request came for. Both texts are at hand, so the
//! difference between them is one edit, and places are moved through it. Handlers read from here and nowhere else.

use std::sync::Arc;

use stitch_analysis::{Analysis, Encoding, Function, FunctionKind, Launch};
use stitch_findings::{AnchorState, Edit, Finding, Measurement, Span};
use tower_lsp::ls_types::Range;

use crate::documents::{Document, difference};
use crate::profile::Shown;
use crate::to_proto;

/// Something found, where it is in the view's text.
#[derive(Clone, Debug)]
pub struct Placed<T> {
    /// What.
    pub item: T,
    /// Where.
    pub span: Span,
    /// How far it holds.
    pub state: AnchorState,
}

/// A version of a document and what is known of it.
#[derive(Clone, Debug)]
pub struct View {
    /// The version.
    pub document: Arc<Document>,
    /// What columns count.
    pub encoding: Encoding,
    /// The findings that are to be shown.
    pub findings: Vec<Placed<Finding>>,
    /// The measurements.
    pub measurements: Vec<Placed<Measurement>>,
    /// The last profile, where there is one.
    pub profile: Option<Shown>,
    analysis: Option<Arc<Analysis>>,
    moved: Option<Edit>,
}

impl View {
    /// With the last analysis, of whatever version.
    pub fn new(document: Arc<Document>, encoding: Encoding) -> Self {
        let last = document.last_analysis();
        let is_of_this = last.as_ref().is_some_and(|last| last.revision == document.revision);
        let analysis = last.and_then(|last| last.analysis.clone());
        let moved = match &analysis {
            Some(analysis) if !is_of_this => edit_between(analysis.source(), &document.text.to_source()),
            _ => None,
        };
        Self {
            document,
            encoding,
            findings: Vec::new(),
            measurements: Vec::new(),
            profile: None,
            analysis,
            moved,
        }
    }

    /// The analysis, in its own places.
    pub fn analysis(&self) -> Option<&Analysis> {
        self.analysis.as_deref()
    }

    /// Where a span of the analysis is in this version; it grows or shrinks with what was typed inside.
    pub fn place(&self, span: Span) -> Span {
        self.moved.map_or(span, |edit| edit.stretch(span))
    }

    /// The same as a range of the protocol.
    pub fn range(&self, span: Span) -> Range {
        self.range_here(self.place(span))
    }

    /// The range of a span in this version.
    pub fn range_here(&self, span: Span) -> Range {
        to_proto::range(span, &self.document.text, self.encoding)
    }

    /// The kernel whose name is at `offset`, by its definition, a declaration or a launch.
    pub fn kernel_name_at(&self, offset: usize) -> Option<(&str, Span)> {
        let outline = self.analysis()?.outline();
        let of_function = |function: &'_ &Function| {
            function.kind == FunctionKind::Kernel && self.place(function.name_span).touches(offset)
        };
        let of_launch = |launch: &'_ &Launch| self.place(launch.name_span).touches(offset);
        if let Some(function) = outline.functions.iter().find(of_function) {
            return Some((&function.name, function.name_span));
        }
        outline.launches.iter().find(of_launch).map(|launch| (launch.kernel.as_str(), launch.name_span))
    }

    /// The kernels that are defined here.
    pub fn kernels(&self) -> impl Iterator<Item = &Function> {
        self.analysis().into_iter().flat_map(|analysis| analysis.outline().kernels())
    }

    /// The launches of a kernel in this file.
    pub fn launches_of<'a>(&'a self, kernel: &'a str) -> impl Iterator<Item = &'a Launch> {
        let launches = self.analysis().into_iter().flat_map(|analysis| &analysis.outline().launches);
        launches.filter(move |launch| launch.kernel == kernel)
    }
}

/// The one edit that leads from one text to another; `None` for equal texts.
pub fn edit_between(old: &str, new: &str) -> Option<Edit> {
    if old == new {
        return None;
    }
    let (before, after) = difference(old, new);
    Some(Edit { start: before.start, old_end: before.end, new_end: after.end })
}
