//! The page of a profile: complete in itself, and broken by nothing that a profile may hold.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod common;

use std::fs::File;
use std::path::Path;

use flate2::read::GzDecoder;
use proptest::prelude::*;
use stitch_profiles::kernel::{Counters, KernelLaunch, SourceLine, Stall, kernel_name};
use stitch_profiles::note::{Note, NoteKind};
use stitch_profiles::profile::{NotTaken, Profile, Way};
use stitch_profiles::report::page;
use stitch_profiles::{ncu, nsys, python, sanitizer};

fn data(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn of(by: &str) -> Profile {
    Profile::new("lines.cu", Way { by: by.to_owned(), ..Way::default() })
}

fn closely() -> Profile {
    let read = |name: &str| ncu::read(GzDecoder::new(File::open(data(name)).unwrap())).unwrap();
    let mut report = read("h200/lines.full.ncu-raw.csv.gz");
    report.merge(read("h200/lines.full.ncu-source.csv.gz"));
    let mut profile = of("Nsight Compute");
    profile.launches = report.launches;
    profile
}

/// What no page may have: something that runs, or something that is loaded.
fn assert_alone(page: &str) {
    let lower = page.to_lowercase();
    let within = |what: &str| {
        lower.find(what).map(|at| page[at.saturating_sub(80)..].chars().take(200).collect::<String>())
    };
    for what in
        ["<script", "<iframe", "<object", "<embed", "<link", "<img", "src=", "@import", "url(", "javascript:"]
    {
        assert_eq!(within(what), None, "{what}");
    }
    assert!(page.contains("http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'"));
    // Every address is a link that a person may follow, or the name of SVG.
    for (at, _) in page.match_indices("http") {
        let before = &page[..at];
        let is_fine = ["href=\"", "xmlns=\"", "<meta "].iter().any(|what| before.ends_with(what));
        assert!(is_fine, "{}", &page[at.saturating_sub(60)..].chars().take(120).collect::<String>());
    }
    for tag in ["section", "article", "table", "figure", "svg", "ol", "ul", "dl", "p"] {
        let opened = lower.matches(&format!("<{tag}>")).count() + lower.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, lower.matches(&format!("</{tag}>")).count(), "{tag}");
    }
}

#[test]
fn kernels_are_shown_with_their_roofline_stalls_and_lines() {
    let page = page(&closely()).unwrap();
    assert_alone(&page);
    assert_eq!(page.matches("<article").count(), 15);
    assert!(page.matches("class=\"stalls\"").count() >= 14);
    for told in [
        "of the peak",
        "memory-bound by device memory",
        "32-way bank conflict",
        "lines.cu:40",
        "long scoreboard",
        "by our estimate",
        "ncu&#x2f;bank-conflict",
        "@media print",
        "prefers-color-scheme: dark",
    ] {
        assert!(page.contains(told), "{told}");
    }
}

#[test]
fn a_program_is_shown_with_its_timeline_and_ceilings() {
    let fixture = common::nsys("h200_pytorch_mlp.sqlite");
    let mut profile = of("Nsight Systems");
    profile.system = Some(nsys::read(&fixture.path).unwrap());
    let page = page(&profile).unwrap();
    assert_alone(&page);
    for told in
        ["aria-label=\"Timeline", "ceiling", "pageable", "cudaStreamSynchronize", "kernels, GPU 0, stream 7"]
    {
        assert!(page.contains(told), "{told}");
    }
}

#[test]
fn lines_of_python_and_defects_are_shown() {
    let workspace = python::Workspace {
        folders: vec!["/w".into()],
        files: vec!["/w/train.py".into()],
        from_elsewhere: false,
    };
    let (system, python) = python::read(&data("trace/train_step.json"), &workspace).unwrap();
    let mut profile = of("PyTorch's profiler");
    profile.system = Some(system);
    profile.python = Some(python);
    let file = File::open(data("h200/bad.compute-sanitizer.txt")).unwrap();
    profile.defects = sanitizer::read(std::io::BufReader::new(file)).unwrap().defects;
    let page = page(&profile).unwrap();
    assert_alone(&page);
    for told in ["Lines of Python", "Defects", "bad.cu:3"] {
        assert!(page.contains(told), "{told}");
    }
}

/// A profile all of whose texts are this one.
fn all_of(text: &str) -> Profile {
    let line = SourceLine {
        file: text.to_owned(),
        line: 2,
        text: text.to_owned(),
        counters: Counters {
            sectors: Some(3200),
            sectors_ideal: Some(400),
            samples: Some(7),
            stalls: [(Stall::Barrier, 7)].into(),
            ..Counters::default()
        },
        ..SourceLine::default()
    };
    let launch = KernelLaunch { kernel: kernel_name(text), lines: vec![line], ..KernelLaunch::default() };
    let by = Way {
        by: text.to_owned(),
        not_taken: vec![NotTaken { by: text.to_owned(), why: text.to_owned() }],
        ..Way::default()
    };
    let mut profile = Profile::new(text, by);
    profile.device = Some(text.to_owned());
    profile.launches = vec![launch];
    profile.notes = vec![Note::new(NoteKind::Remark, text)];
    profile
}

#[test]
fn a_name_is_text_whatever_is_in_it() {
    let name = format!("<script>alert('1')</script>\"'&&<b onclick=\"x\">]]>--><!--{}", "λ<T>&".repeat(100));
    let page = page(&all_of(&name)).unwrap();
    assert_alone(&page);
    assert!(page.contains("&lt;script&gt;alert(&#x27;1&#x27;)"));
    assert!(!page.contains("<b onclick"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_text_leaves_the_page_whole(text in "\\PC{0,300}") {
        let page = page(&all_of(&text)).unwrap();
        prop_assert_eq!(page.matches("<section").count(), page.matches("</section>").count());
        prop_assert_eq!(page.matches("<table").count(), page.matches("</table>").count());
    }
}

#[test]
fn an_empty_profile_says_so() {
    let page = page(&of("nobody")).unwrap();
    assert_alone(&page);
    assert!(page.contains("No kernel is in this profile."));
}
