//! Findings that stand for several accesses: one for an array and a stride, with the other places beside it.

use std::collections::HashMap;

use stitch_findings::{Place, Related};
use tree_sitter::Node;

use super::report::{Report, span};

/// How many other places a finding names.
const MOST_PLACES: usize = 8;

/// An array (its number, or its name where it has none here) and what it is accessed with.
pub type Group<'t> = ((Option<u32>, &'t str), String);

/// The groups that have a finding.
#[derive(Default)]
pub struct Groups<'t> {
    findings: HashMap<Group<'t>, usize>,
}

impl<'t> Groups<'t> {
    /// Notes that the last finding stands for `group`.
    pub fn begin(&mut self, group: Group<'t>, report: &Report) {
        if let Some(last) = report.count().checked_sub(1) {
            self.findings.insert(group, last);
        }
    }

    /// Adds an access to the finding of its group, if there is one; says whether there is.
    pub fn join(&self, group: &Group<'t>, node: Node, report: &mut Report) -> bool {
        let Some(finding) = self.findings.get(group).and_then(|number| report.at(*number)) else {
            return false;
        };
        let place = Place::Here(span(node));
        let is_known = finding.span == span(node) || finding.related.iter().any(|other| other.place == place);
        if !is_known && finding.related.len() < MOST_PLACES {
            finding.related.push(Related { place, message: "here too".to_owned() });
        }
        true
    }
}
