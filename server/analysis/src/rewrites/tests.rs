//! Every rule over its folder of `fixtures/`: `NAME.cu` beside `NAME.after.cu`, the text with all rewrites, and `NAME.txt`, what
//! the rule says of each place. `UPDATE_EXPECT=1` writes both anew.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use expect_test::expect_file;
use stitch_findings::CODES;

use super::*;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/rewrites/fixtures")
}

fn proposals(rule: &'static Rule, source: &str) -> Vec<Proposal> {
    let analysis = Analysis::of(Language::Cuda, source);
    propose_with(&[rule], &analysis, &Workspace::default(), None)
}

/// What the rule says of each place of a text.
fn said(rule: &'static Rule, source: &str) -> String {
    let mut said = String::new();
    for proposal in proposals(rule, source) {
        let line = source[..proposal.place().start].matches('\n').count() + 1;
        match proposal {
            Proposal::Refused(refusal) => writeln!(said, "{line}: refused: {}", refusal.reason).unwrap(),
            Proposal::Rewrite(rewrite) => {
                writeln!(said, "{line}: {}", rewrite.title).unwrap();
                rewrite.proven.iter().for_each(|fact| writeln!(said, "    proven: {fact}").unwrap());
                rewrite.assumed.iter().for_each(|fact| writeln!(said, "    assumed: {fact}").unwrap());
                if rewrite.changes_rounding {
                    said.push_str("    may change the last bits\n");
                }
                writeln!(said, "    expected: {}", rewrite.expected.in_words()).unwrap();
            }
        }
    }
    said
}

/// The functions that could be read without an error, by name.
fn readable(source: &str) -> Vec<String> {
    let analysis = Analysis::of(Language::Cuda, source);
    let reading = crate::cuda::Reading::of(source, &Workspace::default());
    let context = Context::new(&analysis, &reading);
    let whole = context.functions.iter().filter(|function| !function.node.has_error());
    whole.map(|function| function.outline.name.clone()).collect()
}

#[test]
fn every_rule_does_to_its_fixtures_what_stands_beside_them() {
    for rule in RULES {
        let folder = fixtures().join(rule.code.as_str().trim_start_matches("rewrite/"));
        let mut inputs: Vec<PathBuf> = fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.to_str().unwrap().ends_with(".cu"))
            .filter(|path| !path.to_str().unwrap().ends_with(".after.cu"))
            .collect();
        inputs.sort();
        let (mut applied, mut refused) = (0, 0);
        for input in inputs {
            let source = fs::read_to_string(&input).unwrap();
            let said = said(rule, &source);
            refused += said.matches(": refused: ").count();
            expect_file![input.with_extension("txt")].assert_eq(&said);
            let (after, count) = rewritten(&[rule], &source, &Workspace::default());
            let beside = input.with_extension("after.cu");
            if count == 0 {
                assert!(!beside.exists(), "{}: nothing is rewritten", beside.display());
            } else {
                assert!(count < 100, "{} goes on and on:\n{after}", rule.code);
                applied += count;
                // Files of expectations have plain line ends.
                expect_file![beside].assert_eq(&after.replace("\r\n", "\n"));
                // A rewrite may add a function, but none may be broken.
                let (before, now) = (readable(&source), readable(&after));
                assert!(before.iter().all(|name| now.contains(name)), "{}: {after}", input.display());
                let ends = if source.contains("\r\n") { after.matches('\n').count() } else { 0 };
                assert_eq!(after.matches("\r\n").count(), ends, "{}: line ends", input.display());
            }
        }
        assert!(applied > 0 && refused > 0, "{}: one applied and one refused at least", rule.code);
    }
}

#[test]
fn a_rewrite_that_was_made_is_not_proposed_again() {
    for rule in RULES {
        let folder = fixtures().join(rule.code.as_str().trim_start_matches("rewrite/"));
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if !path.to_str().unwrap().ends_with(".cu") {
                continue;
            }
            let source = fs::read_to_string(&path).unwrap();
            let rewrites = |text: &str, title: &str| {
                let all = proposals(rule, text).into_iter();
                all.filter(|p| matches!(p, Proposal::Rewrite(r) if r.title == title)).count()
            };
            for proposal in proposals(rule, &source) {
                let Proposal::Rewrite(rewrite) = proposal else { continue };
                let after = apply(&source, &rewrite.edits).unwrap();
                let (left, were) = (rewrites(&after, &rewrite.title), rewrites(&source, &rewrite.title));
                assert!(left < were, "{}: {}\n{after}", path.display(), rewrite.title);
            }
        }
    }
}

#[test]
fn every_rule_has_a_page_and_every_page_a_rule() {
    let pages: Vec<&str> =
        CODES.iter().map(|info| info.code.as_str()).filter(|code| code.starts_with("rewrite/")).collect();
    let mut rules: Vec<&str> = RULES.iter().map(|rule| rule.code.as_str()).collect();
    rules.sort_unstable();
    assert_eq!(rules, pages);
}

#[test]
fn a_selection_proposes_what_is_in_it_and_a_cursor_its_function() {
    let source = "__global__ void a(float* x) { x[0] = powf(x[1], 2.0f); x[2] = powf(x[3], 2.0f); }\n\
                  __global__ void b(float* x) { x[0] = powf(x[4], 2.0f); }\n";
    let analysis = Analysis::of(Language::Cuda, source);
    let titles = |scope: Option<Span>| -> Vec<String> {
        let proposals = propose(&analysis, &Workspace::default(), scope);
        let title = |proposal| match proposal {
            Proposal::Rewrite(rewrite) => rewrite.title,
            Proposal::Refused(refusal) => refusal.reason,
        };
        proposals.into_iter().map(title).collect()
    };
    let at = |text: &str| source.find(text).unwrap();
    assert_eq!(titles(None).len(), 3);
    assert_eq!(
        titles(Some(Span::new(at("x[3]"), at("x[3]") + 4))),
        ["Write `powf(x[3], 2.0f)` as `x[3] * x[3]`"]
    );
    let cursor = at("x[0]");
    assert_eq!(titles(Some(Span::new(cursor, cursor))).len(), 2);
    assert_eq!(titles(Some(Span::new(0, 3))), Vec::<String>::new());
}

#[test]
fn a_python_file_has_no_proposals() {
    let source = "kernel = '''__global__ void a(float* x) { x[0] = powf(x[1], 2.0f); }'''\n";
    let analysis = Analysis::of(Language::Python, source);
    assert!(propose(&analysis, &Workspace::default(), None).is_empty());
}

#[test]
fn any_text_gives_proposals_and_no_panic() {
    for rule in RULES {
        let folder = fixtures().join(rule.code.as_str().trim_start_matches("rewrite/"));
        for entry in fs::read_dir(&folder).unwrap() {
            let source = fs::read_to_string(entry.unwrap().path()).unwrap();
            // Cut off anywhere, as while it is typed.
            for end in (0..source.len()).step_by(149).filter(|end| source.is_char_boundary(*end)) {
                let analysis = Analysis::of(Language::Cuda, &source[..end]);
                for proposal in propose(&analysis, &Workspace::default(), None) {
                    if let Proposal::Rewrite(rewrite) = proposal {
                        assert!(apply(&source[..end], &rewrite.edits).is_some(), "{}", rewrite.title);
                    }
                }
            }
        }
    }
}
