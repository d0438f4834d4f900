//! Inputs that fool scanners, each with every site it holds: class and name, in order.

use super::{Class, Macros, Truth, scan};

fn scanned(text: &str) -> Truth {
    let mut macros = Macros::default();
    macros.collect(text);
    macros.resolve();
    scan(text, &macros)
}

/// `class name` for each site.
fn sites(text: &str) -> Vec<String> {
    let of = |class| match class {
        Class::Definition => "def",
        Class::Declaration => "decl",
        Class::Instantiation => "inst",
        Class::MacroBody => "macro",
        Class::Other => "other",
        Class::Unsure => "unsure",
    };
    scanned(text)
        .sites
        .iter()
        .map(|site| format!("{} {}", of(site.class), site.name).trim().to_owned())
        .collect()
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(sites(text), expected, "in:\n{text}");
}

#[test]
fn plain_forms() {
    check("__global__ void k(int a) { }", &["def k"]);
    check("void __global__ k(int a) { }", &["def k"]);
    check("static inline __global__ void k() { }", &["def k"]);
    check("extern \"C\" __global__ void k() { }", &["def k"]);
    check("__global__ void k(int a);", &["decl k"]);
    check("friend __global__ void k(int a);", &["decl k"]);
    check("__global__ auto k(int a) -> void { }", &["def k"]);
    check("__global__ void k(int a) = delete;", &["decl k"]);
    check("__global__ void ns::inner::k(int a) { }", &["def k"]);
    check("__global__\nvoid\nk\n(\n)\n{\n}", &["def k"]);
    check(
        "__global__ void a() {} __global__ void b() {} int x; __global__ void c();",
        &["def a", "def b", "decl c"],
    );
}

#[test]
fn attributes() {
    check("__global__ void __launch_bounds__(256) k() { }", &["def k"]);
    check("__global__ __launch_bounds__(256, 2) void k() { }", &["def k"]);
    check("__launch_bounds__(A(1), 2, 3) __global__ void k() { }", &["def k"]);
    check("__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(F<int>::n) k() { }", &["def k"]);
    check("__global__ __maxnreg__(64) static void k() { }", &["def k"]);
    check("[[maybe_unused]] __global__ [[nodiscard]] void k() { }", &["def k"]);
    check("__attribute__((global)) __global__ void __attribute__((used)) k() { }", &["def k"]);
    check("__global__ void k(int a) noexcept(true) { }", &["def k"]);
    check("__global__ void k(int a) TRAILING __attribute__((x)) { }", &["def k"]);
    check("__global__ void k(float* __restrict__ const p, int a[], dim3 d = {1, 2}) { }", &["def k"]);
    check("__global__ void k(void (*f)(int), int (&r)[3]) { }", &["def k"]);
}

#[test]
fn templates() {
    check("template <typename T> __global__ void k(T a) { }", &["def k"]);
    check("template <int N = (3 > 2), class = decltype(1 > 0)>\n__global__ void k() { }", &["def k"]);
    check("template <> __global__ void k<int>(int a) { }", &["def k"]);
    check("template <> __global__ void k<A<B<int>>, (1 > 2)>(int a) { }", &["def k"]);
    check("template __global__ void k<int>(int a);", &["inst k"]);
    check("extern template __global__ void k<int>(int a);", &["inst k"]);
    check("template <template <class> class F> __global__ void k(F<int> a);", &["decl k"]);
    check("template <class T> __global__ std::enable_if_t<(sizeof(T) >= 4), void> k(T a) { }", &["def k"]);
    check("template <class T> __global__ typename A<T>::type k(T a) { }", &["def k"]);
    check("template <class T> requires C<T> __global__ void k(T a) { }", &["def k"]);
    check("template <class T> __global__ void k(T a) requires (sizeof(T) > 4) { }", &["def k"]);
    check("template <class T> __global__ void k(T a) requires requires (T t) { t + 1; } { }", &["unsure k"]);
    check("__global__ void operator()(int a) { }", &["def operator()"]);
    check("__global__ void operator==(int a, int b) { }", &["def operator=="]);
}

#[test]
fn comments_and_literals() {
    check("// __global__ void no() { }\n__global__ void k() { }", &["def k"]);
    check("/* __global__ void no() { } */ __global__ /* void no( */ void // no(\nk() { }", &["def k"]);
    check("// continued \\\n__global__ void no() { }\n__global__ void k() { }", &["def k"]);
    check("auto s = \"__global__ void no() { }\"; __global__ void k() { }", &["def k"]);
    check("auto s = \"\\\"__global__\"; char c = '\"'; __global__ void k() { }", &["def k"]);
    check("auto s = R\"x(__global__ void no() {)\" })x\"; __global__ void k() { }", &["def k"]);
    check("auto s = R\"(\n__global__ void no() {}\n)\"\n\"__global__\"; __global__ void k() { }", &["def k"]);
    check("int n = 1'000'000; __global__ void k() { int m = 0xff'ff; }", &["def k"]);
    check("#if 0\nthis isn't C\n#endif\n__global__ void k() { }", &["def k"]);
    check("int my__global__ = 1, __global__2;", &[]);
}

#[test]
fn preprocessor() {
    check("#define K(n) __global__ void n() { }\nK(a)", &["macro"]);
    check(
        "#define K(n) \\\n  __global__ \\\n  void n() { }\nK(a)\n__global__ void k() { }",
        &["macro", "def k"],
    );
    check("#ifdef __global__\n#undef __global__\n#endif", &["other", "other"]);
    check("#define __global__\n__global__ void k() { }", &["def k"]);
    check(
        "__global__ void\n#ifdef A\n__launch_bounds__(1)\n#else\n__launch_bounds__(2)\n#endif\nk() { }",
        &["def k"],
    );
    check("__global__ void k(\n#ifdef A\nint a,\n#endif\nint b) { }", &["def k"]);
    check("#ifdef A\n__global__ void k(int a)\n#else\nvoid k(int a)\n#endif\n{ }", &["def k"]);
    check("#ifdef A\nstatic __global__\n#else\n__global__\n#endif\nvoid k(int a) { }", &["def k"]);
    check("__global__ void\n#ifdef A\nk(\n#else\nk_other(\n#endif\nint a) { }", &["unsure k"]);
    check("__global__ void k(int a)\n#ifdef A\n;\n#else\n{ }\n#endif", &["unsure k"]);
    check("#ifdef A\nint x;\n#elif B\n__global__ void k()\n#else\n#endif\n{ }", &["def k"]);
    check("#error don't\n__global__ void k() { }", &["def k"]);
    let k = "__global__ void k() { }";
    check(&format!("#if 0\n{k}\n#if A\n{k}\n#endif\n#endif"), &[]);
    check(&format!("#if false\n#else\n{k}\n#endif"), &["def k"]);
    check(&format!("#if 1\n{k}\n#elif A\n{k}\n#else\n{k}\n#endif"), &["def k"]);
}

#[test]
fn macros_for_global() {
    check("#define KERNEL __global__ static\nKERNEL void k() { }", &["macro", "def k"]);
    check("#define A __global__\n#define B extern \"C\" A\nB void k();", &["macro", "macro", "decl k"]);
    check("#define KERNEL(n) __global__ void __launch_bounds__(n)\nKERNEL(3) k() { }", &["macro", "def k"]);
    check("#define KERNEL __global__\nKERNEL __global__ void k() { }", &["macro", "def k"]);
    check("#define BOUNDS(n) __launch_bounds__(n)\n__global__ void BOUNDS(3) k() { }", &["def k"]);
    check("#define DEF(n) __global__ void n()\nDEF(k) { }", &["macro", "unsure"]);
    check("#define NAME(n) n##_1\n__global__ void NAME(k)(int a) { }", &["unsure NAME"]);
    check("__global__ void BOUNDS_OF_ELSEWHERE(3) k() { }", &["unsure k"]);
}

#[test]
fn not_functions() {
    check("void (*__global__ p)(int);", &["unsure"]);
    check("__global__ void (*p)(int);", &["other"]);
    check("MAKE(__global__ void k() { })", &["unsure k"]);
    check("__global__", &["unsure"]);
    check("__global__ void k(int a", &["unsure k"]);
}

#[test]
fn places() {
    let truth = scanned("// é\n\ntemplate <class T>\n__global__ void\nk(T a) { }");
    let site = &truth.sites[0];
    assert_eq!((site.line, site.token_at, &site.name_at[..]), (4, 26, &[42][..]));

    let text = "__global__ void\n#if A\n__launch_bounds__(1) k(\n#else\nk(\n#endif\nint a) { }";
    let site = &scanned(text).sites[0];
    assert_eq!((site.class, site.name.as_str(), site.name_at.len()), (Class::Definition, "k", 2));
}

#[test]
fn launches() {
    let count = |text: &str| scanned(text).launches.len();
    assert_eq!(count("k<<<1, 2>>>(); ns::k<A<B>><<<dim3(1), 2, 0, s>>>(a << 3);"), 2);
    assert_eq!(count("// k<<<1, 2>>>()\nauto s = \"k<<<1, 2>>>()\";"), 0);
    assert_eq!(count("#define RUN k<<<1, 2>>>()\n#define RUN2 \\\n k<<<1, 2>>>()\nRUN; RUN2;"), 0);
    assert_eq!(count("<<<<<<< ours\n"), 0);
    assert_eq!(count("S& operator<<<int>(S&, int);"), 0);
}

/// A person types from left to right: every beginning of a file is a file.
#[test]
fn every_prefix_is_read() {
    let text = "#if A\n#define K(n) R\"x()x\" \\\n __global__\n#else /* é\n*/\nK(1'0) void operator<<<T>(a[1]) -> b\n\
                #endif\ntemplate <> __global__ void k<(a >> 1), R\"(\n)\", 'x'>(int) requires C { f<<<1, 2>>>(); }";
    for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
        scanned(&text[..end]);
    }
    check(text, &["macro", "unsure operator<<<T>", "def k"]);
}
