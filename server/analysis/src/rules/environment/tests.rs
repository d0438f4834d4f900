use super::*;
use crate::rules::tests::harness::parse;

pub(super) fn environment(source: &str) -> Environment {
    let tree = parse(source);
    let mut cursor = tree.root_node().walk();
    let pieces: Vec<Piece> =
        tree.root_node().children(&mut cursor).map(|item| Piece::of(item, source)).collect();
    Environment::new(&pieces, &Outer::default())
}

#[test]
fn constants_of_every_kind_are_folded_in_any_order() {
    let found = environment(
        "#define WIDE (TILE * 2)\n#define TILE 32\nconst int kA = WIDE + 1;\nconstexpr unsigned kB{8};\n\
         namespace n { static constexpr size_t kC = sizeof(float) * TILE; }\n\
         enum Kind { kFirst, kSecond, kTenth = 10, kNext };\nenum class E : int { kScoped = 7 };\n\
         struct Traits { static constexpr int kWarps = 4; enum { kThreads = kWarps * 32 }; };\n\
         #define EPS 1e-6f\n#define NEGATIVE (-0.5)\nint changes = 3;\n#define CALL(x) x\n",
    );
    let cases = [
        ("WIDE", Some(64)),
        ("kA", Some(65)),
        ("kB", Some(8)),
        ("kC", Some(128)),
        ("kFirst", Some(0)),
        ("kNext", Some(11)),
        ("E::kScoped", Some(7)),
        ("Traits::kWarps", Some(4)),
        ("kThreads", Some(128)),
        ("changes", None),
        ("CALL", None),
        ("EPS", None),
    ];
    for (name, value) in cases {
        assert_eq!(found.value(name), value, "{name}");
    }
    assert_eq!(found.floating("EPS"), Some((1e-6, Type::FLOAT)));
    assert_eq!(found.floating("NEGATIVE"), Some((-0.5, Type::DOUBLE)));
}

#[test]
fn what_depends_on_the_preprocessor_or_on_itself_has_no_value() {
    let found = environment(
        "#if X\n#define N 1\n#else\n#define N 2\n#endif\n#define A B\n#define B A\n#define SAME 4\n#undef SAME\n#define SAME 4\n",
    );
    assert_eq!(found.value("N"), None);
    assert_eq!(found.value("A"), None);
    assert_eq!(found.value("SAME"), Some(4));
    let mut chain: String = (0..3000).map(|i| format!("#define C{i} (C{} + 1)\n", i + 1)).collect();
    chain.push_str("#define C3000 0\n");
    assert_eq!(environment(&chain).value("C2999"), Some(1));
}

struct Header;

impl Constants for Header {
    fn value(&self, name: &str) -> Option<i64> {
        matches!(name, "kFromHeader" | "kHidden").then_some(48)
    }
}

#[test]
fn other_files_are_asked_for_what_this_one_does_not_define() {
    let source =
        "#if X\n#define kHidden 1\n#else\n#define kHidden 2\n#endif\nconst int kOwn = kFromHeader * 2;\n";
    let tree = parse(source);
    let piece = Piece::of(tree.root_node(), source);
    let found = Environment::new([&piece], &Outer::new(Arc::new(Header), 1));
    assert_eq!(found.value("kOwn"), Some(96));
    assert_eq!(found.value("kFromHeader"), Some(48));
    assert_eq!(found.value("kHidden"), None);
    assert_ne!(found.hash(), Environment::new([&piece], &Outer::new(Arc::new(Header), 2)).hash());
}

#[test]
fn bodies_of_kernels_leave_the_environment_as_it_is() {
    let with = |body: &str| {
        environment(&format!("#define N 4\n__global__ void k(float* a) {{ {body} }}\nint f() {{ g(); }}\n"))
            .hash()
    };
    assert_eq!(with("a[0] = 1;"), with("for (int i = 0; i < N; ++i) a[i] = 2;"));
    assert_ne!(
        with(""),
        environment("#define N 5\n__global__ void k(float* a) {}\nint f() { g(); }\n").hash()
    );
}

#[test]
fn launches_and_checks() {
    let found = environment(
        "#define OUTER() INNER()\n#define INNER() check(cudaGetLastError())\n\
         void a(int n) { dim3 block(1, 128); int blocks = (n + 127) / 128; dim3 grid(blocks); k<<<grid, block>>>(n); OUTER(); helper(); }\n\
         void b() { k<float><<<4, 64>>>(1); other<<<cdiv(n, 64), dim3(1, 64)>>>(); }\n",
    );
    let launches = found.launches("k");
    assert_eq!((launches.count, launches.rounding_up, launches.one_column), (2, 1, 1));
    assert_eq!(found.instances("k"), [vec![], vec![None]]);
    assert_eq!(found.instances("other"), [Vec::new()]);
    assert!(found.has_one_column("other") && !found.has_one_column("k"));
    let found_one =
        environment("void a() { k<<<1, 256>>>(); l<<<1, 32>>>(); }\nvoid b(int n) { l<<<n, 32>>>(); }\n");
    assert!(found_one.has_one_block("k") && !found_one.has_one_block("l") && !found_one.has_one_block("m"));
    assert!(found.asks_for_errors("OUTER") && found.asks_for_errors("a") && !found.asks_for_errors("b"));
    assert!(found.is_asked_after("helper") && !found.is_asked_after("b"));
}

#[test]
fn a_launch_takes_the_constants_of_its_function_along() {
    let instance = |host: &str| {
        let text = format!(
            "const int T = 9;\nstruct S {{ static const int kT = 8; enum {{ kU = 4 }}; }};\n{host}\n"
        );
        let found = environment(&text);
        (found.launches("k").columns, found.instances("k").to_vec())
    };
    for (host, columns, argument) in [
        ("void f() { const int T = 16; dim3 b(T, T); k<T><<<1, b>>>(); }", Some(16), Some(16)),
        ("void f() { constexpr int W{4}; const int T = W * 2; k<T + 1><<<1, T>>>(); }", Some(8), Some(9)),
        (
            "void f() { static const int T = 2; { const int T = 3; } k<T><<<1, T * 32>>>(); }",
            Some(64),
            Some(2),
        ),
        ("void f() { enum { A = 5, B }; k<B><<<1, A>>>(); }", Some(5), Some(6)),
        ("void f() { { const int T = 3; } k<T><<<1, T>>>(); }", Some(9), Some(9)),
        ("void f(int n) { const int T = n; k<T><<<1, T>>>(); }", None, None),
        ("void f() { k<S::kT><<<1, S::kU>>>(); }", Some(4), Some(8)),
    ] {
        assert_eq!(instance(host), (columns, vec![vec![argument]]), "{host}");
    }
}
