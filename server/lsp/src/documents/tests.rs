use proptest::prelude::*;

use super::*;

fn open(language_id: &str, uri: &str) -> Option<Language> {
    let mut documents = Documents::default();
    let text = String::new();
    let (uri, language_id) = (uri.to_owned(), language_id.to_owned());
    documents.opened(OpenedDocument { uri: uri.clone(), language_id, version: Some(1), text });
    documents.get(&Key::of(&uri)).unwrap().language
}

#[test]
fn the_language_is_the_editors_or_else_the_names() {
    let rows = [
        ("cuda-cpp", "file:///a.cu", Some(Language::Cuda)),
        ("cuda", "untitled:x", Some(Language::Cuda)),
        ("python", "file:///a.txt", Some(Language::Python)),
        ("plaintext", "file:///a.cu", Some(Language::Cuda)),
        ("cpp", "file:///a.cuh", Some(Language::Cuda)),
        ("", "file:///a.py", Some(Language::Python)),
        ("cpp", "file:///a.h", None),
        ("cuda-cpp", "file:///a.h", Some(Language::Cuda)),
        ("cuda-cpp", "file:///a.hpp", Some(Language::Cuda)),
        ("c", "file:///a.hpp", None),
        ("plaintext", "git:/a.cu", Some(Language::Cuda)),
        ("", "", None),
    ];
    for (id, uri, expected) in rows {
        assert_eq!(open(id, uri), expected, "{id} {uri}");
    }
}

#[test]
fn a_text_over_the_limit_is_kept_and_said_once() {
    let mut documents = Documents { longest: 10, ..Documents::default() };
    let opened = |text: &str| OpenedDocument {
        uri: "file:///a.cu".into(),
        language_id: "cuda".into(),
        version: Some(1),
        text: text.into(),
    };
    assert_eq!(documents.opened(opened("short")).note, None);
    let change = |text: &str| Changed {
        text_document: crate::from_proto::Versioned { uri: "file:///a.cu".into(), version: Some(2) },
        content_changes: vec![Change { range: None, text: text.into() }],
    };
    let outcome = documents.changed(change("longer than ten"));
    assert!(outcome.note.unwrap().contains("15 bytes"));
    assert_eq!(outcome.dirty.len(), 1, "what was known is withdrawn");
    let document = documents.get(&Key::of("file:///a.cu")).unwrap();
    assert_eq!((&*document.text.to_source(), document.to_analyse()), ("longer than ten", None));
    assert!(!documents.changed(change("longer than ten too")).note.unwrap_or_default().contains("bytes"));
    documents.changed(change("short"));
    assert_eq!(documents.get(&Key::of("file:///a.cu")).unwrap().to_analyse(), Some(Language::Cuda));
}

proptest! {
    #[test]
    fn a_difference_leads_from_one_text_to_the_other(old in "[aé😀\n]{0,12}", new in "[aé😀\n]{0,12}") {
        let (before, after) = difference(&old, &new);
        let mut text = old.clone();
        text.replace_range(before.range(), &new[after.range()]);
        prop_assert_eq!(text, new);
    }
}
