//! Whole documents: what is found in real shapes of code, that any text is survived, and that edits in any order give what the
//! last text alone gives.

use std::cell::Cell;
use std::sync::Arc;

use proptest::prelude::*;

use crate::{Analysis, Analyzer, Language, Workspace};

fn read(text: &str) -> Analysis {
    Analysis::of(Language::Cuda, text)
}

/// One line a function and launch: kind, definition or not, qualified name, parameters, line of the name.
fn shown(text: &str) -> Vec<String> {
    let analysis = read(text);
    let line = |at: usize| text[..at].matches('\n').count() + 1;
    let functions = analysis.outline().functions.iter().map(|f| {
        let parameters: Vec<String> = f.parameters.iter().map(|p| format!("{} {}", p.ty, p.name)).collect();
        let template: Vec<String> = f
            .template_parameters
            .iter()
            .map(|t| {
                format!(
                    "{} {}{}",
                    t.kind,
                    t.name,
                    t.default.as_ref().map(|d| format!("={d}")).unwrap_or_default()
                )
            })
            .collect();
        let bounds = f.launch_bounds.as_ref().map(|b| {
            let parts = [Some(&b.max_threads), b.min_blocks.as_ref(), b.max_cluster.as_ref()];
            let parts: Vec<String> = parts
                .into_iter()
                .flatten()
                .map(|e| format!("{}={:?}", e.text, e.value.map(|v| v[0])))
                .collect();
            format!(" bounds {}", parts.join(", "))
        });
        format!(
            "{}: {:?} {}{}({}){}{}",
            line(f.name_span.start),
            f.kind,
            f.qualified_name,
            if template.is_empty() { String::new() } else { format!("<{}>", template.join(", ")) },
            parameters.join(", "),
            bounds.unwrap_or_default(),
            if f.is_definition { "" } else { ";" },
        )
    });
    functions.collect()
}

#[test]
fn functions_of_every_shape() {
    for (text, expected) in [
        ("__global__ void k(float* p, int n) {}", "1: Kernel k(float* p, int n)"),
        (
            "template <typename T, int N = 4>\n__global__ void __launch_bounds__(N * 32, 2, 1) k(const T* __restrict__ p = nullptr) {}",
            "2: Kernel k<typename T, int N=4>(const T* __restrict__ p) bounds N * 32=Some(128), 2=Some(2), 1=Some(1)",
        ),
        ("static __device__ __forceinline__ float f(float x[3]) { return *x; }", "1: Device f(float [3] x)"),
        ("__host__ __device__ int g(void);", "1: HostDevice g();"),
        ("int main() { return 0; }", "1: Host main()"),
        (
            "namespace a::b { namespace { extern \"C\" { void f() {} } } }\nvoid g() {}",
            "1: Host a::b::f()|2: Host g()",
        ),
        (
            "struct S { __device__ int f() const { return 1; } S(int x) : a{x} {} int operator()(int i); int a; };",
            "1: Device S::f()|1: Host S::S(int x)|1: Host S::operator()(int i);",
        ),
        ("template <> __global__ void k<int>(int* p) {}", "1: Kernel k(int* p)"),
        ("template __global__ void k<int>(int* p);\nvoid f() {}", "2: Host f()"),
        ("void A::B<int>::f() { }", "1: Host A::B::f()"),
        ("CUDF_KERNEL void k(int n) {}", "1: Kernel k(int n)"),
        ("#define K extern \"C\" __global__\nK void k(int n) {}", "2: Kernel k(int n)"),
        ("#define LB(n) __launch_bounds__(n)\n__global__ void LB(64) k() {}", "2: Kernel k()"),
        ("__global__ void MY_LAUNCH_BOUNDS(64) k() {}", "1: Kernel k()"),
        (
            "__cluster_dims__(2, 1, 1) __launch_bounds__(128) __global__ void k() {}",
            "1: Kernel k() bounds 128=Some(128)",
        ),
        ("__global__ void __maxnreg__(32) __cluster_dims__(1) k(int* p) {}", "1: Kernel k(int* p)"),
        ("[[maybe_unused]] __global__ void k(int* p) {}", "1: Kernel k(int* p)"),
        (
            "template <class T> [[nodiscard(\"a]]\")]] static __device__ T f(T x) { [[maybe_unused]] int y[2]; return y[x[0]]; }",
            "1: Device f<class T>(T x)",
        ),
        ("[[using gnu: hot, aligned(sizeof(int[4]))]] __global__ void k [[gnu::hot]] () {}", "1: Kernel k()"),
        (
            "__global__ void k() {}; __global__ void j() {};\nbool operator==(int a) {};",
            "1: Kernel k()|1: Kernel j()|2: Host operator==(int a)",
        ),
        (
            "auto l = [](int i) { return i; };\nint a(3), b{4};\nstruct S { S() {}; void f() { g(); }; } s{};\nvoid g() {}",
            "3: Host S::S()|3: Host S::f()|4: Host g()",
        ),
        (
            "struct S { void a() {}; int b() const { return 1; }; virtual void c() {};\n__device__ void d() {}; template <class T> void e() {};\n\
             virtual void f() = 0; void g(); static void h() { {} }; void i() {};; S() {}; ~S() {}; };",
            "1: Host S::a()|1: Host S::b()|1: Host S::c()|2: Device S::d()|2: Host S::e<class T>()|3: Host S::f();|\
             3: Host S::g();|3: Host S::h()|3: Host S::i()|3: Host S::S()|3: Host S::~S()",
        ),
        (
            "namespace n { void a() {}; void b() { a(); }; }\nextern \"C\" { __global__ void c() {}; void d(); }\n\
             extern \"C\" void e() {};\n#if A\nvoid f() {};\n#else\nvoid g() {};\n#endif",
            "1: Host n::a()|1: Host n::b()|2: Kernel c()|2: Host d();|3: Host e()|5: Host f()|7: Host g()",
        ),
        ("TEST(A, b) { k<<<1, 2>>>(); }", "1: Host TEST(A , b )"),
        ("MACRO(x)\n__global__ void k() {}", "2: Kernel k()"),
        (
            "__global__ void k(\n#if A\n  int a,\n#else\n  float a,\n#endif\n  int n)\n{\n}",
            "1: Kernel k(int a, int n)",
        ),
        ("__global__ void k(int a)\n#pragma unroll\n{\n}\nvoid f() {}", "1: Kernel k(int a)|5: Host f()"),
        (
            "#ifdef A\nvoid a() {\n#else\nvoid b() {\n#endif\n}\n__global__ void k() {}",
            "2: Host a()|7: Kernel k()",
        ),
        (
            "#ifdef A\nvoid a() {}\n#else\nvoid b() {}\n#endif\nvoid c() {}",
            "2: Host a()|4: Host b()|6: Host c()",
        ),
        (
            "template <class T>\n#if A\n__global__ void k(T x) {}\n#else\n__global__ void k(int y) {}\n#endif\nvoid f() {}",
            "3: Kernel k<class T>(T x)|5: Kernel k(int y)|7: Host f()",
        ),
        ("#ifdef A\n__device__\n#else\n__global__\n#endif\nvoid k(int x) {}", "6: Kernel k(int x)"),
        ("#if 0\nthis isn't C {\n#endif\n__global__ void k() {}", "4: Kernel k()"),
        ("#if 0\n__global__ void k() {}\n#endif", ""),
        ("#if false\nvoid a() {}\n#else\nvoid b() {}\n#endif\nvoid c() {}", "4: Host b()|6: Host c()"),
        ("#if 1\nvoid a() {}\n#else\nvoid b() {}\n#endif\nvoid c() {}", "2: Host a()|6: Host c()"),
        (
            "#if A\nvoid a() {}\n#elif 1\nvoid b() {}\n#elif B\nvoid c() {}\n#else\nvoid d() {}\n#endif",
            "2: Host a()|4: Host b()",
        ),
        ("#if 0\n#if A\nvoid a() {}\n#else\nvoid b() {}\n#endif\n#else\nvoid c() {}\n#endif", "8: Host c()"),
        ("#if 0\nnamespace a {\n#else\nnamespace b {\n#endif\nvoid f() {}\n}", "6: Host b::f()"),
        ("#if 0\nvoid a() {\n#endif\nvoid b() {}", "4: Host b()"),
        ("#if 0\nvoid a() {}", ""),
        ("#if 1\nvoid a() {}\n#else\n} isn't } C\n#endif\nvoid b() {}", "2: Host a()|6: Host b()"),
        (
            "#ifdef __cplusplus\nextern \"C\" {\n#endif\nvoid f();\n#ifdef __cplusplus\n}\n#endif\nvoid g();",
            "4: Host f();|8: Host g();",
        ),
        (
            "#define KERNEL(name) \\\n __global__ void name##_kernel(int* p) { \\\n }",
            "2: Kernel name##_kernel(int* p)",
        ),
        ("auto l = [=] __device__ (int i) { return i; };\nvoid f() {}", "2: Host f()"),
        ("void f() {\n  if (x) {\n}\n\n__global__ void k() {}\n", "1: Host f()|5: Kernel k()"),
        ("float f(int n) {\n  for (int i = 0; i <\n  g(;\n}\nvoid g() {}", "1: Host f(int n)|5: Host g()"),
        ("struct X { int a; }\n__global__ void k() {}", "2: Kernel k()"),
        ("template <class T> requires requires (T t) { t.x; }\nvoid f(T t) {}", "2: Host f<class T>(T t)"),
        ("void f(int (*callback)(int), int&& x) {}", "1: Host f(int (* )(int) callback, int&& x)"),
        ("operator int() {}", "1: Host operator int()"),
        (
            "\u{feff}__global__ void k() {}\r\nvoid f() {}\rvoid g() {}",
            "1: Kernel k()|2: Host f()|2: Host g()",
        ),
        (
            "// __global__ void a() {}\n/* __global__ void b() {} */ const char* s = R\"(__global__ void c() {})\";",
            "",
        ),
        ("__global__ void k() { /* never ended", "1: Kernel k()"),
    ] {
        assert_eq!(shown(text).join("|"), expected, "{text}");
    }
}

#[test]
fn a_signature_split_by_the_preprocessor_is_one_kernel() {
    let text = include_str!("../../../../tests/tests/fixtures/split_signature.cu");
    let analysis = read(text);
    let line = |at: usize| text[..at].matches('\n').count() + 1;
    let kernels: Vec<_> = analysis
        .outline()
        .kernels()
        .map(|k| (k.name.as_str(), line(k.name_span.start), k.body.map(|b| (line(b.start), line(b.end)))))
        .collect();
    assert_eq!(
        kernels,
        [("scale_rows", 2, Some((6, 9))), ("scale_wide", 13, Some((17, 19))), ("after", 21, Some((21, 23)))]
    );
    let findings: Vec<_> =
        analysis.findings().iter().map(|f| (f.code.as_str(), line(f.span.start))).collect();
    assert_eq!(findings, [("static/uncoalesced-access", 18), ("static/uncoalesced-access", 22)]);
}

#[test]
fn what_a_literal_condition_rules_out_is_neither_checked_nor_a_constant() {
    let dead = "#define N 1\n__global__ void dead(float* p) { p[threadIdx.x * 32] = 1; }\nvoid h() { dead<<<1, 2>>>(p); }\n";
    let alive = "#define N 32\n__global__ void alive(float* p) { p[threadIdx.x * N] = 1; }\n";
    let text = format!("#if 0\n{dead}#endif\n#if 1\n{alive}#else\n{dead}#endif\n");
    let check = |analysis: &Analysis| {
        let names: Vec<&str> = analysis.outline().functions.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["alive"]);
        assert!(analysis.outline().launches.is_empty());
        let [finding] = analysis.findings() else { panic!("{:?}", analysis.findings()) };
        assert!(finding.message.contains("32"), "{}", finding.message);
    };
    let mut analyzer = Analyzer::new(Language::Cuda);
    let workspace = Workspace::default();
    check(&analyzer.update(text.as_str().into(), &workspace, &|| true).unwrap());
    // The condition is typed anew, and the `#endif` taken away and given back.
    for (from, to, functions) in
        [("#if 0", "#if A", 3), ("#if 1", "#if 2", 3), ("#endif\n#if 1", "#if 1", 0), ("#else", "", 3)]
    {
        let edited = text.replacen(from, to, 1);
        let analysis = analyzer.update(edited.as_str().into(), &workspace, &|| true).unwrap();
        assert_same(&analysis, &edited);
        assert_eq!(analysis.outline().functions.len(), functions, "{from} -> {to}");
        check(&analyzer.update(text.as_str().into(), &workspace, &|| true).unwrap());
    }
}

#[test]
fn launches_have_values_and_callers() {
    let text = "#define BLOCK 128\nconstexpr int GRID = 2 * BLOCK;\n__global__ void k(int) {}\n\
        void host(int n) {\n  dim3 block(BLOCK, 2);\n  k<<<GRID, block, sizeof(int) * n>>>(n);\n}\n\
        #define RUN(n) k<<<n, BLOCK>>>(n)\n";
    let analysis = read(text);
    let launches: Vec<_> = analysis
        .outline()
        .launches
        .iter()
        .map(|l| {
            let value = |e: &Option<crate::Expression>| e.as_ref().and_then(|e| e.value);
            (l.kernel.as_str(), value(&l.grid), value(&l.block), value(&l.shared), l.caller.as_deref())
        })
        .collect();
    assert_eq!(
        launches,
        [
            ("k", Some([256, 1, 1]), Some([128, 2, 1]), None, Some("host")),
            ("k", None, Some([128, 1, 1]), None, None)
        ]
    );
}

#[test]
fn any_text_is_survived() {
    let deep = 100_000;
    for text in [
        "{".repeat(deep),
        "(".repeat(deep),
        "void f() {".to_owned() + &"{".repeat(deep) + &"}".repeat(deep) + "}",
        "int x = ".to_owned() + &"(".repeat(deep) + "1" + &")".repeat(deep) + ";",
        "namespace a {".repeat(deep / 10),
        "#if A\n".repeat(deep / 10),
        "template <".repeat(deep / 10),
        "__global__ ".repeat(deep / 10),
        "__global__ void f(".repeat(deep / 100),
        "k<<<".repeat(deep / 10),
        "\0".repeat(deep),
        "\"".repeat(deep),
        "/*".repeat(deep),
        "void f() {\n".repeat(deep / 100),
        "struct S {\n".repeat(deep / 100),
        "}\n".repeat(deep),
        "a::".repeat(deep / 10),
        "x<".repeat(deep / 10),
        "void f(int a[".repeat(deep / 100),
    ] {
        let started = std::time::Instant::now();
        let analysis = read(&text);
        assert_eq!(&**analysis.source(), text);
        assert!(started.elapsed().as_secs() < 60, "{:?}", &text[..20]);
    }
    let huge = "__global__ void k() {}\n".repeat(50 << 20 >> 4);
    let analysis = read(&huge);
    assert!(analysis.is_too_large() && analysis.outline().functions.is_empty());
}

#[test]
fn depth_costs_no_more_than_length() {
    let deep = 20_000;
    let inside = "__global__ void k(float* p) { p[threadIdx.x * 32] = 1; }\n";
    for (open, close) in [("namespace a {\n", "}\n"), ("struct S {\n", "};\n"), ("#if A\n", "#endif\n")] {
        let text = open.repeat(deep) + inside + &close.repeat(deep);
        let started = std::time::Instant::now();
        let analysis = read(&text);
        // With a cost by the square of the depth this takes minutes.
        assert!(started.elapsed().as_secs() < 10, "{open:?} {:?}", started.elapsed());
        assert_eq!(analysis.outline().kernels().count(), 1, "{open:?}");
    }
}

/// Pieces that break and mend a text.
const PIECES: &[&str] = &[
    "{",
    "}",
    "(",
    ")",
    ";",
    "\"",
    "'",
    "/*",
    "*/",
    "//",
    "\n",
    "\r\n",
    "\r",
    "#if A\n",
    "\n#else\n",
    "\n#endif\n",
    "\n#if 0\n",
    "\n#if 1\n",
    "\n#elif false\n",
    "#define N 32\n",
    "#define ATTR __device__\n",
    "ATTR ",
    "__global__ void k(float* p, int n)",
    "__device__ float f(float x)",
    "{ p[threadIdx.x * N] = 1.0; }",
    "void h() { dim3 b(N, 2); k<<<1, b>>>(p, N); }",
    "namespace a {",
    "template <typename T>",
    "struct S {",
    "};",
    "R\"(",
    ")\"",
    "é",
    "\u{feff}",
    "constexpr int M = N * 2;",
    "extern \"C\" {",
    "\\\n",
    "<<<",
    ">>>",
    "=",
    ",",
    "x",
    " ",
    "\0",
    "else",
    "case 1:",
    "FOO(x)\n",
    "__launch_bounds__(N)",
];

#[derive(Clone, Debug)]
struct Change {
    place: prop::sample::Index,
    removed: usize,
    inserted: Vec<usize>,
    patience: u32,
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change =
        (any::<prop::sample::Index>(), 0..12usize, prop::collection::vec(0..PIECES.len(), 0..3), 0..40u32)
            .prop_map(|(place, removed, inserted, patience)| Change { place, removed, inserted, patience });
    prop::collection::vec(change, 1..25)
}

fn apply(text: &mut String, change: &Change) {
    let floor = |text: &str, mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = floor(text, change.place.index(text.len() + 1));
    let end = floor(text, start + change.removed).max(start);
    let inserted: String = change.inserted.iter().map(|i| PIECES[*i]).collect();
    text.replace_range(start..end, &inserted);
}

fn assert_same(incremental: &Analysis, text: &str) {
    let fresh = read(text);
    assert_eq!(incremental.outline(), fresh.outline(), "{text:?}");
    assert_eq!(incremental.findings(), fresh.findings(), "{text:?}");
}

#[test]
fn what_decides_a_boundary_goes_with_it() {
    let device = "ATTR void h() { x; }\nvoid after() {}\n";
    for texts in [
        // A mark of the byte order in the middle begins no line, so that no macro is defined.
        &[
            &format!("struct S {{#defin\u{feff}#define ATTR __device__\n{device}"),
            &format!("\u{feff}#define ATTR __device__\n{device}"),
            &format!("é\u{feff}#define ATTR __device__\n{device}"),
        ] as &[&String],
        // Two definitions become one.
        &[
            &format!("#define B \n#define ATTR __device__\n{device}"),
            &format!("#define B #define ATTR __device__\n{device}"),
            &format!("#define B \n#define ATTR __device__\n{device}"),
        ],
        // A comment gets its end far behind what the edit touched.
        &[
            &"int a;\nvoid b() {}\nint c;\nvoid d() {}\n".to_owned(),
            &"int a; /*\nvoid b() {}\nint c;\nvoid d() {}\n".to_owned(),
            &"int a; /*\nvoid b() {}\nint c;\nvoid d() {}\n*/".to_owned(),
            &"int a;\nvoid b() {}\nint c;\nvoid d() {}\n*/".to_owned(),
        ],
        // What stands before a directive makes it one or none.
        &[
            &"int a;\nint b;\n/* c */ #if 0\nvoid d() {}\n#endif\n".to_owned(),
            &"int a;\nint b;\n/* c */ #if 1\nvoid d() {}\n#endif\n".to_owned(),
            &"int a;\nint b; /*\n c */ #if 0\nvoid d() {}\n#endif\n".to_owned(),
            &"int a;\nint b; é #if 0\nvoid d() {}\n#endif\n".to_owned(),
            &"int a;\nint b;\n#if 0\nvoid d() {}\n#endif\n".to_owned(),
        ],
        // The column of an item that never ends tells where the next may begin.
        &[
            &"int a;\n/* */  void b() {\n  int x;\n  void c() {}\n".to_owned(),
            &"int a;\n  void b() {\n  int x;\n  void c() {}\n".to_owned(),
            &"int a;   void b() {\n  int x;\n  void c() {}\n".to_owned(),
        ],
    ] {
        let mut analyzer = Analyzer::new(Language::Cuda);
        for text in texts {
            let analysis = analyzer.update(text.as_str().into(), &Workspace::default(), &|| true).unwrap();
            assert_same(&analysis, text);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn edits_in_any_order_give_what_the_last_text_gives(
        start in prop::collection::vec(0..PIECES.len(), 0..60),
        changes in changes(),
    ) {
        let mut text: String = start.iter().map(|i| PIECES[*i]).collect();
        let mut analyzer = Analyzer::new(Language::Cuda);
        let workspace = Workspace::default();
        for change in &changes {
            apply(&mut text, change);
            let left = Cell::new(change.patience);
            let keep_going = || left.replace(left.get().saturating_sub(1)) > 0;
            let source: Arc<str> = text.as_str().into();
            // Cut off now and then; the next change may come before it is done.
            if change.patience % 3 == 0 {
                if let Ok(analysis) = analyzer.update(source, &workspace, &keep_going) {
                    assert_same(&analysis, &text);
                }
                continue;
            }
            let mut tries = 0;
            let analysis = loop {
                left.set(change.patience + tries);
                tries += 1;
                if let Ok(analysis) = analyzer.update(source.clone(), &workspace, &keep_going) {
                    break analysis;
                }
            };
            assert_same(&analysis, &text);
        }
        let analysis = analyzer.update(text.as_str().into(), &workspace, &|| true).unwrap();
        assert_same(&analysis, &text);
    }
}
