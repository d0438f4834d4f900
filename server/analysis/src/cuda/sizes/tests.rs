//! Sizes of allocations, through the launch that they are for.

use std::collections::BTreeMap;

use crate::{Analysis, Language, assume};

const HEAD: &str = "#include <vector>\n#define ROWS (1 << 5)\n#define REAL float\nenum { COLUMNS = 24, MORE };\n\
    inline constexpr int kDepth = 3;\nusing number = double;\ntypedef unsigned long long word;\n\
    __global__ void k(float* x, int n);\n\
    void fill(std::vector<float>& v) { v.push_back(1); }\nvoid show(const std::vector<float>& v, int n);\nvoid copy(std::vector<float> v);\n";

/// Bytes behind the first argument of the only launch, the grid along x, and why the bytes are not known.
fn read(source: &str) -> (Option<i64>, Option<i64>, Option<String>) {
    let analysis = Analysis::of(Language::Cuda, source);
    let launch = &analysis.outline().launches[0];
    let assumed = assume(source, analysis.outline(), launch, &BTreeMap::new());
    let grid = assumed.launch.grid.as_ref().and_then(|grid| grid.value).map(|grid| grid[0]);
    (assumed.launch.argument_facts[0].bytes, grid, assumed.unknown_sizes[0].clone())
}

fn bytes(body: &str, size: &str) -> Option<i64> {
    read(&format!("{HEAD}int main(int argc, char** argv) {{ {body} float* d; cudaMalloc(&d, {size}); k<<<1, 1>>>(d, 1); }}\n")).0
}

#[test]
fn vectors_and_arrays_tell_how_much_is_allocated() {
    for (body, size, expected) in [
        ("std::vector<float> v(4 * 8);", "v.size() * sizeof(float)", Some(128)),
        ("const int w = 5, h = 3; std::vector<float> a(w * h), b(h);", "b.size() * sizeof(float)", Some(12)),
        ("std::vector<double> v(10, 0.5);", "sizeof(double) * v.size()", Some(80)),
        ("std::vector<int> v{1, 2, 3};", "v.size() * sizeof(v[0])", Some(12)),
        ("std::vector<int> v = {1, 2, 3, 4};", "v.size() * sizeof v[0]", Some(16)),
        ("auto v = std::vector<float>(7);", "v.size() * sizeof(float)", Some(28)),
        ("std::vector<float> v = std::vector<float>(7, 1.0f);", "v.size() * 4", Some(28)),
        ("std::vector<float> v; v.resize(9);", "v.size() * 4", Some(36)),
        ("std::array<float, 6> v;", "v.size() * sizeof(float)", Some(24)),
        ("std::array<float, 6> v;", "sizeof(v)", Some(24)),
        ("float a[ROWS];", "sizeof(a)", Some(128)),
        ("static double a[ROWS][2];", "sizeof a", Some(512)),
        ("int a[] = {1, 2, 3,};", "sizeof(a)", Some(12)),
        ("int a[] = {1, 2, 3}; const size_t n = sizeof(a) / sizeof(a[0]);", "n * sizeof *a", Some(12)),
        ("float* p = new float[50];", "50 * sizeof *p", Some(200)),
        ("int n = 6; float* p = (float*)malloc(n * sizeof(float));", "n * sizeof(*p)", Some(24)),
        ("std::vector<float> v(6); const size_t size = v.size() * sizeof(float);", "size", Some(24)),
        ("std::vector<float> v(COLUMNS);", "v.size() * sizeof(REAL)", Some(96)),
        ("int n = std::max(3, ROWS);", "n * sizeof(number)", Some(256)),
        ("", "kDepth * sizeof(word)", Some(24)),
        ("", "MORE * sizeof(float)", Some(100)),
        ("dim3 b(16, 8);", "b.x * b.y * sizeof(float)", Some(512)),
        // What does not change a size.
        (
            "std::vector<float> v(4); for (float& x : v) x = 1; v[0] = v.at(1); std::fill(v.begin(), v.end(), 2.f); show(v, 1); copy(v);",
            "v.size() * 4",
            Some(16),
        ),
    ] {
        assert_eq!(bytes(body, size), expected, "{body} {size}");
    }
}

#[test]
fn a_size_that_may_be_another_is_not_known() {
    for (body, size) in [
        ("std::vector<float> v(argc);", "v.size() * 4"),
        ("std::vector<float> v(4); v.push_back(1);", "v.size() * 4"),
        ("std::vector<float> v(4); if (argc) v.resize(2);", "v.size() * 4"),
        ("std::vector<float> v; for (int i = 0; i < 2; ++i) { v.resize(i); }", "v.size() * 4"),
        ("std::vector<float> v; v.resize(2); v.resize(3);", "v.size() * 4"),
        ("std::vector<float> v(4); fill(v);", "v.size() * 4"),
        ("std::vector<float> v(4); elsewhere(v);", "v.size() * 4"),
        ("std::vector<float> v(4); auto& r = v; r.resize(9);", "v.size() * 4"),
        ("std::vector<float> v(4), w(3); v = w;", "v.size() * 4"),
        ("std::vector<float> v(4); elsewhere(&v);", "v.size() * 4"),
        ("std::vector<float> a(4), v(a);", "v.size() * 4"),
        ("int n = 4; float v[n]; scan(&n);", "sizeof(v)"),
        ("std::vector<bool> v(4);", "sizeof(v)"),
        ("struct Two { float a, b; }; Two* p = nullptr;", "4 * sizeof(*p)"),
    ] {
        assert_eq!(bytes(body, size), None, "{body} {size}");
    }
}

#[test]
fn quotients_are_rounded_up_as_the_program_does() {
    for (grid, expected) in [
        ("ceil(1000 / 256.0)", Some(4)),
        ("(int)ceil((float)1024 / 256)", Some(4)),
        ("std::ceil(static_cast<double>(n) / 7)", Some(143)),
        ("ceil(n / 256)", Some(3)),
        ("ceil(1.0 * n / 256)", Some(4)),
        ("ceilf(16777217 / 2.0f)", Some(8_388_608)),
        ("ceil(argc / 256.0)", None),
        ("ceil(1 + n / 256.0)", None),
    ] {
        let source = format!(
            "{HEAD}int main(int argc, char** argv) {{ const int n = 1000; float* d; cudaMalloc(&d, 4); k<<<{grid}, 1>>>(d, 1); }}\n"
        );
        assert_eq!(read(&source).1, expected, "{grid}");
    }
}

#[test]
fn calls_tell_what_their_function_is_given() {
    let with = |body: &str, rest: &str| {
        read(&format!(
            "{HEAD}void run(float* d, int n, const std::vector<float>& v) {{ {body} k<<<n, 1>>>(d, n); }}\n{rest}\n"
        ))
    };
    let main = "int main() { std::vector<float> v(10); float* d; cudaMalloc(&d, v.size() * sizeof(float)); run(d, 3, v); }";
    assert_eq!(with("", main), (Some(40), Some(3), None));
    let inside = "cudaMalloc(&d, v.size() * 8);";
    assert_eq!(with(inside, main).0, Some(80));
    // Calls that agree in one thing tell that one.
    let twice = "int main() { std::vector<float> v(10); float *a, *b; cudaMalloc(&a, 40); cudaMalloc(&b, 44); run(a, 3, v); run(b, 3, v); }";
    assert_eq!(with("", twice), (None, Some(3), None));
    for rest in ["#define GO run(p, 4, q)\n", "auto other = &run;\n"] {
        assert_eq!(with("", &format!("{rest}{main}")).1, None, "{rest}");
    }
    assert_eq!(with("n = 9;", main).1, None);
}

#[test]
fn what_is_not_known_is_said_with_what_is_to_blame() {
    let why = |body: &str| {
        read(&format!("{HEAD}int main(int argc, char** argv) {{ float* d; {body} k<<<1, 1>>>(d, 1); }}\n")).2
    };
    assert_eq!(
        why("std::vector<float> v; v.push_back(1); cudaMalloc(&d, v.size() * 4);").unwrap(),
        "`d` is allocated with `v.size() * 4` bytes, and `v` may get another size by `v.push_back(…)`"
    );
    assert_eq!(
        why("std::vector<float> v(argc); cudaMalloc(&d, v.size() * 4);").unwrap(),
        "`d` is allocated with `v.size() * 4` bytes, and `v` is made with `argc` elements"
    );
    assert_eq!(
        why("cudaMalloc(&d, 4); cudaMalloc(&d, 8);").unwrap(),
        "`d` is allocated 2 times before the launch"
    );
    assert_eq!(why("cudaMalloc(&d, 4);"), None);
    assert_eq!(why(""), None);
}
