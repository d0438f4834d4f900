//! Which rewrites answer which finding, of whatever producer: a rule's own static one, and what profilers and the compiler say of the same trouble.

use stitch_findings::{Code, Span};

use super::{
    Proposal, RULES, Rewrite, Rule, atomics, launch_bounds, literals, padding, propose_with, reduction,
    tiled_transpose, vectors, warp_shuffle,
};
use crate::{Analysis, Workspace};

/// Findings besides [`Rule::finding`], and the rewrites that answer them. Source: the pages of both, of which one says what is wrong and the other
/// what it removes.
pub static ANSWERS: &[(Code, &[&Rule])] = &[
    (Code::NCU_ATOMIC_CONTENTION, &[&atomics::RULE]),
    (Code::NCU_BANK_CONFLICT, &[&padding::RULE]),
    (Code::NCU_DIVERGENCE, &[&reduction::RULE]),
    (Code::NCU_DOUBLE_PRECISION, &[&literals::RULE]),
    (Code::NCU_SPILL, &[&launch_bounds::RULE]),
    (Code::NCU_STALL, &[&vectors::RULE, &warp_shuffle::RULE]),
    (Code::NCU_UNCOALESCED_ACCESS, &[&tiled_transpose::RULE]),
    (Code::PTXAS_SPILL, &[&launch_bounds::RULE]),
];

/// The rewrites that answer a finding, in the order in which they are tried.
pub fn answering(code: Code) -> impl Iterator<Item = &'static Rule> {
    let also: &[&Rule] = ANSWERS.iter().find(|(known, _)| *known == code).map_or(&[], |(_, rules)| rules);
    RULES
        .iter()
        .copied()
        .filter(move |rule| rule.finding == Some(code) || also.iter().any(|known| known.code == rule.code))
}

/// What can be done about a finding at `span` of the analysed text.
///
/// A rewrite may edit another line than the one that a finding stands at: the declaration of an array whose accesses conflict. So all of the function
/// around the finding is looked at, and of what is found there, what edits the finding's own line, or else all of it.
pub fn answers(code: Code, span: Span, analysis: &Analysis, workspace: &Workspace) -> Vec<Rewrite> {
    let rules: Vec<&'static Rule> = answering(code).collect();
    if rules.is_empty() {
        return Vec::new();
    }
    let around = Span::new(span.start, span.start);
    let found = propose_with(&rules, analysis, workspace, Some(around));
    let found = found.into_iter().filter_map(|proposal| match proposal {
        Proposal::Rewrite(rewrite) => Some(rewrite),
        Proposal::Refused(_) => None,
    });
    let touches = |one: Span| one.start <= span.end && span.start <= one.end;
    let is_here =
        |rewrite: &Rewrite| touches(rewrite.place) || rewrite.edits.iter().any(|edit| touches(edit.span));
    let (here, elsewhere): (Vec<Rewrite>, Vec<Rewrite>) = found.partition(is_here);
    if here.is_empty() { elsewhere } else { here }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_finding_stands_once_and_has_answers() {
        assert!(ANSWERS.is_sorted_by_key(|(code, _)| code.as_str()));
        for (code, rules) in ANSWERS {
            let found: Vec<_> = answering(*code).map(|rule| rule.code).collect();
            assert_eq!(found.len(), rules.len(), "{code}");
        }
        let of = |code| answering(code).map(|rule| rule.code).collect::<Vec<_>>();
        assert_eq!(of(Code::SHARED_BANK_CONFLICT), of(Code::NCU_BANK_CONFLICT));
        assert!(of(Code::NCU_TAIL).is_empty());
    }

    #[test]
    fn a_conflict_at_an_access_is_answered_where_its_array_is_declared() {
        let text = include_str!("fixtures/pad-shared-tile/transpose.cu");
        let analysis = Analysis::of(crate::Language::Cuda, text);
        let at = text.find("tile[threadIdx.x][threadIdx.y]").unwrap();
        let found =
            answers(Code::NCU_BANK_CONFLICT, Span::new(at, at + 30), &analysis, &Workspace::default());
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].place.end < at, "{found:?}");
        let nothing = answers(Code::NCU_TAIL, Span::new(at, at + 30), &analysis, &Workspace::default());
        assert!(nothing.is_empty());
    }
}
