//! Anchors under edits: by hand where the state matters, and at random against a fresh search.

use proptest::prelude::*;

use super::*;
use crate::{Code, Provenance, Quantity};

const KERNELS: &str = "// é header\n\
__global__ void a(float* x) {\n  x[threadIdx.x * 2] = 1.0;\n}\n\
int between = 1;\n\
__global__ void b(float* x) {\n  x[threadIdx.x * 4] = 2.0;\n}\n\
__global__ void c(float* x) {\n  x[0] = 3.0; // ü\n}\n";

fn functions(text: &str) -> Vec<Span> {
    text.match_indices("__global__")
        .map(|(start, _)| Span::new(start, start + text[start..].find("\n}").unwrap() + 2))
        .collect()
}

fn finding(text: &str, needle: &str) -> Finding {
    let start = text.find(needle).unwrap();
    Finding::new(Code::UNCOALESCED_ACCESS, Span::new(start, start + needle.len()), needle)
}

fn batch(text: &str, needles: &[&str]) -> Batch {
    Batch::new(
        text,
        &functions(text),
        needles.iter().map(|needle| finding(text, needle)).collect(),
        Vec::new(),
    )
}

/// Replaces `span` of `text`, as an editor does.
fn replace(text: &mut String, span: Span, with: &str) -> Edit {
    text.replace_range(span.range(), with);
    Edit { start: span.start, old_end: span.end, new_end: span.start + with.len() }
}

fn places(batch: &Batch, text: &str) -> Vec<(String, AnchorState)> {
    batch.findings().map(|found| (text[found.span.range()].to_owned(), found.state)).collect()
}

#[test]
fn an_edit_elsewhere_shifts_and_an_edit_inside_makes_stale_until_undone() {
    use AnchorState::{Fresh, Shifted, Stale};
    let mut text = KERNELS.to_owned();
    let mut batch = batch(&text, &["x[threadIdx.x * 4]"]);
    assert_eq!(places(&batch, &text), [("x[threadIdx.x * 4]".to_owned(), Fresh)]);

    let typed = replace(&mut text, Span::new(0, 0), "// new\n");
    batch.follow(&[typed], text.as_str());
    assert_eq!(places(&batch, &text), [("x[threadIdx.x * 4]".to_owned(), Shifted)]);

    let at = text.find("2.0").unwrap();
    let typed = replace(&mut text, Span::new(at, at + 1), "7");
    batch.follow(&[typed], text.as_str());
    assert_eq!(places(&batch, &text), [("x[threadIdx.x * 4]".to_owned(), Stale)]);

    let undone = replace(&mut text, Span::new(at, at + 1), "2");
    batch.follow(&[undone], text.as_str());
    assert_eq!(places(&batch, &text), [("x[threadIdx.x * 4]".to_owned(), Shifted)]);

    let undone = replace(&mut text, Span::new(0, 7), "");
    batch.follow(&[undone], text.as_str());
    assert_eq!(places(&batch, &text), [("x[threadIdx.x * 4]".to_owned(), Fresh)]);
}

#[test]
fn a_finding_whose_text_is_gone_is_not_shown_and_comes_back_with_its_text() {
    let mut text = KERNELS.to_owned();
    let mut batch = batch(&text, &["x[threadIdx.x * 4]"]);
    let line = text.find("  x[threadIdx.x * 4]").unwrap();
    let removed = text[line..].split_inclusive('\n').next().unwrap().to_owned();
    let cut = replace(&mut text, Span::new(line, line + removed.len()), "");
    batch.follow(&[cut], text.as_str());
    assert_eq!(batch.findings().count(), 0);
    let pasted = replace(&mut text, Span::new(line, line), &removed);
    batch.follow(&[pasted], text.as_str());
    assert_eq!(places(&batch, &text), [("x[threadIdx.x * 4]".to_owned(), AnchorState::Fresh)]);
}

#[test]
fn a_kernel_moved_elsewhere_takes_its_findings_along() {
    let mut text = KERNELS.to_owned();
    let mut batch = batch(&text, &["x[threadIdx.x * 2]"]);
    let kernel = functions(&text)[0];
    let moved = text[kernel.range()].to_owned();
    let cut = replace(&mut text, kernel, "");
    let end = text.len();
    let pasted = replace(&mut text, Span::new(end, end), &moved);
    batch.follow(&[cut, pasted], text.as_str());
    assert_eq!(places(&batch, &text), [("x[threadIdx.x * 2]".to_owned(), AnchorState::Shifted)]);
}

#[test]
fn a_run_replaces_only_its_own_producer_and_origin() {
    let mut store = Store::default();
    let text = KERNELS;
    store.replace("k.cuh", Producer::Nvcc, "one.cu", batch(text, &["1.0"]));
    store.replace("k.cuh", Producer::Nvcc, "two.cu", batch(text, &["2.0"]));
    store.replace("k.cuh", Producer::Static, "k.cuh", batch(text, &["3.0"]));
    let found = |store: &Store| -> Vec<String> {
        store.findings("k.cuh").iter().map(|found| found.item.message.clone()).collect()
    };
    assert_eq!(found(&store), ["1.0", "2.0", "3.0"]);
    store.replace("k.cuh", Producer::Nvcc, "one.cu", batch(text, &[]));
    assert_eq!(found(&store), ["2.0", "3.0"]);
    assert_eq!(store.retract(Producer::Nvcc, "two.cu", &[]), ["k.cuh"]);
    assert_eq!(found(&store), ["3.0"]);
    store.forget("k.cuh");
    assert_eq!(found(&store), [""; 0]);
}

#[test]
fn measurements_follow_edits_too() {
    let mut text = KERNELS.to_owned();
    let start = text.find("b(float").unwrap();
    let measurement = Measurement {
        quantity: Quantity::Registers,
        value: 32.0,
        subject: "b".to_owned(),
        span: Span::new(start, start + 1),
        note: None,
        provenance: Provenance {
            producer: Producer::Ptxas,
            tool: "ptxas 13.5".to_owned(),
            device: "sm_90".to_owned(),
            runs: 1,
        },
    };
    let mut batch = Batch::new(text.as_str(), &functions(&text), Vec::new(), vec![measurement]);
    let typed = replace(&mut text, Span::new(0, 0), "\n");
    batch.follow(&[typed], text.as_str());
    let found: Vec<_> = batch.measurements().collect();
    assert_eq!((found[0].span.start, found[0].state), (start + 1, AnchorState::Shifted));
}

/// A random edit: where (as shares of the text, so that it always fits), and what to put there.
fn edits() -> impl Strategy<Value = Vec<(f64, f64, String, bool)>> {
    let text = prop_oneof![
        Just(String::new()),
        Just("\n".to_owned()),
        Just("x[threadIdx.x * 4]".to_owned()),
        Just(KERNELS.to_owned()),
        "[a-c{}é\n]{0,6}",
    ];
    prop::collection::vec((0.0..=1.0, 0.0..=0.1, text, any::<bool>()), 1..25)
}

fn boundary(text: &str, share: f64) -> usize {
    let mut at = (share * text.len() as f64) as usize;
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

proptest! {
    /// After any edits, some of them undone, each anchor is where a search of the new text finds its kernel.
    #[test]
    fn anchors_equal_a_fresh_search(edits in edits()) {
        let needles = ["x[threadIdx.x * 2]", "x[threadIdx.x * 4]", "3.0", "between"];
        let mut text = KERNELS.to_owned();
        let scopes = functions(&text);
        let mut batch = batch(&text, &needles);
        for (from, share, with, undo) in edits {
            let start = boundary(&text, from);
            let end = boundary(&text, (from + share).min(1.0)).max(start);
            let removed = text[start..end].to_owned();
            let edit = replace(&mut text, Span::new(start, end), &with);
            batch.follow(&[edit], text.as_str());
            if undo {
                let edit = replace(&mut text, Span::new(start, start + with.len()), &removed);
                batch.follow(&[edit], text.as_str());
            }
            for found in batch.findings() {
                let original = found.item.span;
                let shown = text.get(found.span.range());
                prop_assert!(shown.is_some(), "every place is inside the text, between characters");
                let scope = scopes.iter().find(|scope| scope.contains(original));
                match (found.state, scope) {
                    (AnchorState::Fresh, _) => prop_assert_eq!(&text, KERNELS),
                    (AnchorState::Shifted, scope) => {
                        prop_assert_eq!(shown, Some(&KERNELS[original.range()]));
                        if let Some(scope) = scope {
                            let kernel = found.span.start - (original.start - scope.start);
                            prop_assert!(text[kernel..].starts_with(&KERNELS[scope.range()]));
                        }
                    }
                    (AnchorState::Stale, Some(scope)) => {
                        prop_assert_ne!(text.matches(&KERNELS[scope.range()]).count(), 1);
                    }
                    (AnchorState::Stale, None) => {}
                }
            }
            for scope in &scopes {
                let held = needles.iter().map(|needle| finding(KERNELS, needle).span).find(|span| scope.contains(*span));
                if let (Some(span), 1) = (held, text.matches(&KERNELS[scope.range()]).count()) {
                    let expected = text.find(&KERNELS[scope.range()]).unwrap_or_default() + span.start - scope.start;
                    prop_assert!(batch.findings().any(|found| found.span.start == expected));
                }
            }
        }
    }
}
