//! Reports made from what a real nvcc printed; no compiler is needed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stitch_findings::{Code, Quantity};

use super::cached::Outcome;
use super::workings::Workings;
use super::{CompileReport, Trouble};

/// A source in a folder of its own, and what a compile of it said.
struct Compiled {
    folder: tempfile::TempDir,
    text: String,
}

impl Compiled {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        Self { folder, text: files[0].1.to_owned() }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    fn report(&self, name: &str, said: &str, success: bool) -> Result<CompileReport, Trouble> {
        let root = self.root();
        let workings = Workings {
            unit: root.join(name),
            asked: root.join(name),
            asked_text: self.text.as_str().into(),
            block_size: 256,
            tool: "ptxas 13.5".to_owned(),
            directory: root.clone(),
            system: vec![PathBuf::from("/usr/local/cuda"), PathBuf::from("/usr/include")],
            default_architecture: Some("sm_90".to_owned()),
            foreign: None,
        };
        workings.report(&Outcome {
            success,
            text: said.to_owned(),
            dependencies: vec![name.to_owned(), "k.cuh".to_owned()],
            command: "nvcc".to_owned(),
            from_cache: false,
        })
    }
}

fn lines(report: &CompileReport, root: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for file in &report.files {
        for finding in &file.findings {
            let line = file.text[..finding.span.start].matches('\n').count() + 1;
            let name = file.path.strip_prefix(root).unwrap().display();
            all.push(format!("{name}:{line} {} `{}`", finding.code, &file.text[finding.span.range()]));
        }
    }
    all.sort();
    all
}

#[test]
fn findings_stand_at_their_tokens_also_in_headers() {
    let source = include_str!("../../tests/fixtures/text/nvcc13.cu");
    let header = include_str!("../../tests/fixtures/text/nvcc13.cuh");
    let compiled = Compiled::new(&[("a b(c).cu", source), ("a.cuh", header)]);
    let report =
        compiled.report("a b(c).cu", include_str!("../../tests/fixtures/text/nvcc13.log"), false).unwrap();
    assert_eq!(
        lines(&report, &compiled.root()),
        [
            "a b(c).cu:10 nvcc/error `\"x\"`",
            "a b(c).cu:10 nvcc/error `\"x\"`",
            "a b(c).cu:10 nvcc/error `nope`",
            "a b(c).cu:10 nvcc/warning `3`",
            "a b(c).cu:4 nvcc/error `alpha`",
            "a b(c).cu:5 nvcc/warning `unused_here`",
            "a b(c).cu:7 nvcc/error `atomicAdd`",
            "a b(c).cu:9 nvcc/error `p`",
            "a b(c).cu:9 nvcc/error `static_assert`",
            "a.cuh:3 nvcc/error `x`",
            "a.cuh:3 nvcc/warning `unused`",
        ]
    );
    let in_header = report.file(&compiled.root().join("a.cuh")).unwrap();
    let error = in_header.findings.iter().find(|finding| finding.code == Code::NVCC_ERROR).unwrap();
    assert!(error.related[0].message.contains("instantiation"), "{error:?}");
}

const SPILLS: &str = "struct P { float x; };\nnamespace ns { __global__ void edge(P* p) { p->x = 1; } }\n\
    __device__ __noinline__ void helper(float* p, int n) {}\n\
    template <int N> __global__ void __launch_bounds__(128) mixer(float* p, int n) { helper(p, n); }\n\
    extern \"C\" __global__ void edge() {}\n\
    void go(float* p) {\n  mixer<96><<<4, 64, 1024>>>(p, 3);\n  ns::edge<<<1, dim3(16, 16)>>>(nullptr);\n}\n";

#[test]
fn each_kernel_has_its_own_spills_and_numbers() {
    let compiled = Compiled::new(&[("k.cu", SPILLS)]);
    let report = compiled.report("k.cu", include_str!("../../tests/fixtures/ptxas/ptxas.txt"), true).unwrap();
    assert_eq!(
        lines(&report, &compiled.root()),
        ["k.cu:3 ptxas/spill `helper`", "k.cu:4 ptxas/spill `mixer`"]
    );
    let subjects: Vec<_> =
        report.files[0].findings.iter().map(|finding| finding.subject.as_deref().unwrap()).collect();
    assert_eq!(subjects, ["mixer<96>", "helper(float*, int)"]);

    let line = |span: stitch_findings::Span| SPILLS[..span.start].matches('\n').count() + 1;
    let rows: Vec<_> = report
        .kernels
        .iter()
        .map(|kernel| {
            (
                kernel.name.as_str(),
                line(kernel.place.as_ref().unwrap().1),
                kernel.registers,
                kernel.block,
                kernel.block_from.as_str(),
                kernel.dynamic_shared,
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            ("ns::edge", 2, Some(10), 256, "launch at line 8", Some(0)),
            ("mixer<96>", 4, Some(32), 64, "launch at line 7", Some(1024)),
            ("edge", 5, Some(8), 256, "assumed", Some(0)),
        ]
    );
    let mixer: Vec<_> =
        report.files[0].measurements.iter().filter(|one| one.subject == "mixer<96>").collect();
    let value = |quantity| mixer.iter().find(|one| one.quantity == quantity).unwrap().value;
    assert_eq!(
        (value(Quantity::Registers), value(Quantity::Stack), value(Quantity::SpillStores)),
        (32.0, 640.0, 660.0)
    );
    assert!(mixer.iter().all(|one| one.provenance.tool == "ptxas 13.5" && one.provenance.device == "sm_90"));
    assert!((value(Quantity::TheoreticalOccupancy) - 1.0).abs() < 1e-9);
    assert!(!report.notes.iter().any(|note| note.contains("occupancy unknown")), "{:?}", report.notes);
}

#[test]
fn a_kernel_of_a_header_is_measured_there() {
    let compiled = Compiled::new(&[
        ("k.cu", "#include \"k.cuh\"\nvoid go() { edge<<<1, 32>>>(); }\n"),
        ("k.cuh", "extern \"C\" __global__ void edge() {}\n"),
    ]);
    let said = include_str!("../../tests/fixtures/ptxas/ptxas_cuda11.txt");
    let report = compiled.report("k.cu", said, true).unwrap();
    let header = report.file(&compiled.root().join("k.cuh")).unwrap();
    assert_eq!(&header.text[header.measurements[0].span.range()], "edge");
    // sm_52 is not in the table: no occupancy, and no guess, which is said once.
    assert_eq!(report.kernels[0].occupancy, None);
    let said = report.notes.iter().filter(|note| note.contains("occupancy unknown for sm_52"));
    assert_eq!(said.count(), 1, "{:?}", report.notes);
    assert_eq!(report.kernels[0].block, 32);
}

#[test]
fn trouble_with_tools_is_no_finding() {
    let compiled = Compiled::new(&[("k.cu", "#include <cuda_runtime.h>\n__global__ void k() {}\n")]);
    for (said, kind) in [
        ("nvcc fatal   : Unsupported gpu architecture 'sm_52'", "architecture"),
        ("nvcc fatal   : Value 'sm_999' is not defined for option 'gpu-architecture'", "architecture"),
        (
            "In file included from /usr/local/cuda/include/cuda_runtime.h:83,\n                 from <command-line>:\n/usr/local/cuda/include/crt/host_config.h:143:2: error: #error -- unsupported GNU version! gcc versions later than 13 are not supported!\n  143 | #error -- unsupported GNU version!\n      |  ^~~~~",
            "host compiler",
        ),
        (
            "/nowhere/g++: No such file or directory\nnvcc fatal   : Failed to preprocess host compiler properties.",
            "host compiler",
        ),
        ("nvcc fatal   : Cannot find compiler 'cl.exe' in PATH", "host compiler"),
        ("nvcc fatal   : Unknown option '--foo'", "flags"),
        (
            "cc1plus: fatal error: cuda_runtime.h: No such file or directory\ncompilation terminated.",
            "toolkit",
        ),
        ("sh: 1: cicc: not found", "toolkit"),
        ("nvcc error   : 'cicc' died due to signal 11 (Invalid memory reference)", "failed"),
        ("Segmentation fault", "failed"),
        ("", "failed"),
    ] {
        let trouble = compiled.report("k.cu", said, false).unwrap_err().to_string();
        assert!(trouble.contains(kind), "{said}: {trouble}");
    }
}

#[test]
fn an_error_in_a_system_header_is_shown_where_the_user_led_there() {
    let text = "#include <vector>\n#include <map>\nint x;\nvoid f() { std::map<int&, int> m; }\n";
    let compiled = Compiled::new(&[("k.cu", text)]);
    let said = "/usr/include/c++/12/bits/stl_map.h(5): error: reference to reference\n          \
                detected during instantiation of class \"std::map<int&, int>\" at line 4 of k.cu\n\n\
                /usr/include/c++/12/vector(3): error: odd\n\n/usr/include/c++/12/vector(4): warning #1-D: odd\n";
    let report = compiled.report("k.cu", said, false).unwrap();
    assert_eq!(
        lines(&report, &compiled.root()),
        ["k.cu:1 nvcc/error `#include <vector>`", "k.cu:4 nvcc/error `void f() { std::map<int&, int> m; }`"]
    );
    let related: Vec<_> =
        report.files[0].findings[0].related.iter().map(|related| related.message.as_str()).collect();
    assert_eq!(related[0], "the error is in this header");
    assert_eq!(related.len(), 2);
}

#[test]
fn the_assembler_names_functions_not_lines() {
    let compiled = Compiled::new(&[(
        "k.cu",
        "extern __device__ int g(int);\n__global__ void f(float* p) { p[0] = g(1); }\n",
    )]);
    let said = "ptxas error   : Entry function '_Z1fPf' uses too much shared data (0x61a80 bytes, 0xc000 max)\n\
                ptxas fatal   : Unresolved extern function '_Z1gi'\n";
    let report = compiled.report("k.cu", said, false).unwrap();
    let said: Vec<_> = report.files[0].findings.iter().map(|finding| finding.message.as_str()).collect();
    assert!(said[0].starts_with("Entry function 'f(float*)' uses too much shared data"), "{said:?}");
    assert_eq!(said[1], "Unresolved extern function 'g(int)'");
    assert_eq!(lines(&report, &compiled.root()), ["k.cu:1 nvcc/error `g`", "k.cu:2 nvcc/error `f`"]);
}

#[test]
fn requests_share_texts() {
    fn shared<T: Send + Sync + Clone>() {}
    shared::<super::CompileRequest>();
    shared::<Arc<str>>();
}

#[tokio::test]
async fn bytes_that_are_no_utf8_keep_every_offset() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("k.cu");
    let bytes = b"/* Andr\xe9 \xe9\xe8 */ __global__ void k() { nope(); }\n";
    std::fs::write(&path, bytes).unwrap();
    let text = super::saved_text(&path).await.unwrap();
    assert_eq!((text.len(), text.find("nope")), (bytes.len(), Some(37)));
    // What a compiler echoes of it reads the same, so that its column can be found.
    let said = [&b"k.cu(1): error: identifier \"nope\" is undefined\n  "[..], bytes, b"  ^\n"].concat();
    assert!(crate::compiler_text::printed(&said).contains(text.as_ref()));
    std::fs::write(&path, b"\xff\xfek\0").unwrap();
    assert!(matches!(super::saved_text(&path).await, Err(Trouble::Unreadable { .. })));
}
