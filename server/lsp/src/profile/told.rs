//! What rules say of a profile, at the places of one text: into the store, which hints, diagnostics and heat are made from.

use std::path::Path;
use std::sync::Arc;

use stitch_analysis::{Analysis, FunctionKind};
use stitch_findings::{Batch, Finding, Measurement, Producer, Span};
use stitch_profiles::place::{self, Target};
use stitch_profiles::profile::Profile as Recorded;

use super::related;
use crate::configuration;
use crate::documents::Document;
use crate::session::Session;
use crate::view::edit_between;

/// Producers whose findings a profile of a document makes.
pub(super) const PRODUCERS: [Producer; 4] =
    [Producer::Ncu, Producer::Nsys, Producer::Sanitizer, Producer::Sim];

/// What is told of a text.
pub(super) struct Told<'a> {
    text: &'a str,
    /// Its functions.
    pub functions: Vec<Span>,
    pub findings: Vec<Finding>,
    pub measurements: Vec<Measurement>,
    /// Whether the profile names anything of the text. One of another machine may be about others.
    pub is_about: bool,
}

impl<'a> Told<'a> {
    /// Findings and measurements about the text of a file; `defects` are what its kernels did wrong, besides what is recorded.
    pub(super) fn of(
        (path, text): (&Path, &'a str),
        analysis: &Analysis,
        recorded: &Recorded,
        defects: &[Finding],
    ) -> Self {
        let functions = &analysis.outline().functions;
        let kernels = functions.iter().filter(|function| function.kind == FunctionKind::Kernel);
        let kernels: Vec<(String, Span)> =
            kernels.map(|kernel| (kernel.name.to_string(), kernel.name_span)).collect();
        let program = functions.iter().find(|function| &*function.name == "main").map(|main| main.name_span);
        let target = Target { path, text, kernels: &kernels, program };
        let mut findings = place::findings(recorded, &target);
        related::add(&mut findings, analysis);
        findings.extend(defects.iter().cloned());
        Self {
            text,
            functions: analysis.function_spans(),
            findings,
            measurements: place::measurements(recorded, &target),
            is_about: place::speaks_of(recorded, &target),
        }
    }

    /// Puts it into the store, in place of what these producers said before.
    pub(super) fn put(&self, session: &Arc<Session>, document: &Document, producers: &[Producer]) {
        let mut documents = session.documents();
        // Closed meanwhile: what is known is of no use to anyone.
        let Some(open) = documents.get(&document.key).map(|open| open.text.to_source()) else { return };
        let edit = edit_between(self.text, &open);
        let key = document.key.as_str();
        for &producer in producers {
            let findings = self.findings.iter().filter(|found| found.code.info().producer == producer);
            let measured = self.measurements.iter().filter(|found| found.provenance.producer == producer);
            let (findings, measured) = (findings.cloned().collect(), measured.cloned().collect());
            let mut batch = Batch::new(self.text, &self.functions, findings, measured);
            if let Some(edit) = edit {
                batch.follow(&[edit], &*open);
            }
            documents.store.replace(key, producer, key, batch);
        }
        drop(documents);
        session.publisher.mark(vec![document.key.clone()]);
        configuration::refresh(session);
    }
}
