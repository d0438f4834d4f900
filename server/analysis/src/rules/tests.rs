//! The rules over the fixtures: CUDA texts in which `//^ code` stands under each line that has a finding.

pub mod harness;

use std::collections::BTreeSet;

/// A fixture speaks of the codes in its first line only.
fn check_fixture(name: &str, source: &str) {
    let codes: Vec<&str> = source
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("// rules:"))
        .unwrap_or_else(|| panic!("{name} does not start with `// rules:`"))
        .split_whitespace()
        .collect();
    let mut expected = BTreeSet::new();
    let mut last = 0;
    for (number, line) in source.lines().enumerate() {
        if let Some(code) = line.trim().strip_prefix("//^") {
            expected.insert((last + 1, code.trim().to_owned()));
        } else {
            last = number;
        }
    }
    let line_of = |byte: usize| source[..byte].matches('\n').count() + 1;
    let found: BTreeSet<(usize, String)> = harness::check(source)
        .iter()
        .filter(|finding| codes.contains(&finding.code.as_str()))
        .map(|finding| (line_of(finding.span.start), finding.code.to_string()))
        .collect();
    let missed: Vec<_> = expected.difference(&found).collect();
    let wrong: Vec<_> = found.difference(&expected).collect();
    assert!(missed.is_empty() && wrong.is_empty(), "{name}: missed {missed:?}, wrong {wrong:?}");
}

macro_rules! fixtures {
    ($($name:ident,)*) => {
        $(#[test]
        fn $name() {
            check_fixture(stringify!($name), include_str!(concat!("fixtures/", stringify!($name), ".cu")));
        })*
    };
}

fixtures! {
    api_result_ignored,
    block_size,
    divergent_reduction,
    double_literal,
    malloc_in_loop,
    missing_bounds_guard,
    pow_small_exponent,
    row_major_slow_axis,
    shared_bank_conflict,
    synchronize_in_loop,
    unchecked_launch,
    uncoalesced_access,
}

fn codes(source: &str) -> Vec<(usize, String)> {
    let line_of = |byte: usize| source[..byte].matches('\n').count() + 1;
    harness::check(source)
        .iter()
        .map(|finding| (line_of(finding.span.start), finding.code.to_string()))
        .collect()
}

#[test]
fn planted_traits_and_their_good_twins() {
    let found = codes(include_str!("fixtures/traits.cu"));
    let kernels: Vec<(usize, &str)> = found
        .iter()
        .filter(|(_, code)| !matches!(code.as_str(), "static/unchecked-launch" | "static/api-result-ignored"))
        .map(|(line, code)| (*line, code.as_str()))
        .collect();
    let expected = [
        (11, "static/row-major-slow-axis"),
        (22, "static/shared-bank-conflict"),
        (47, "static/divergent-reduction"),
        (57, "static/double-literal"),
        (64, "static/missing-bounds-guard"),
    ];
    assert_eq!(kernels, expected);
}

#[test]
fn hostile_texts_neither_crash_nor_overflow() {
    let depth = 100_000;
    let texts = [
        format!("__global__ void k(float* a) {{ {}", "{".repeat(depth)),
        format!("__global__ void k(float* a) {{ a[{}0{}] = 1; }}", "(".repeat(depth), ")".repeat(depth)),
        format!("__global__ void k(float* a) {{ a[0{}] = 1; }}", " + threadIdx.x * 2".repeat(20_000)),
        format!("__global__ void k(float* a) {{ a{} = 1; }}", "[a".repeat(20_000)),
        format!("void f() {{ {} k<<<1, 100>>>(); }}", "for (;;) ".repeat(20_000)),
        format!("__global__ void k(float{} a) {{ a[threadIdx.x * 32] = 1; }}", "*".repeat(20_000)),
        format!("void f() {{ dim3 a(a, a); k<<<{}1{}, a>>>(); }}", "dim3(".repeat(5_000), ")".repeat(5_000)),
        "__global__ void k(float* a) { int i = i; i = i; a[i * 9223372036854775807 * 2 << 63] = 0.5 * a[i]; }".to_owned(),
        "__global__ void k(float* a) { int i = threadIdx.x & 9223372036854775807; a[i % 9223372036854775807] = 1 >> 63; }\n\
         void f(int n) { dim3 g(n + 9223372036854775807 / 2); k<<<g, 9223372036854775807>>>(a); k<<<1, dim3(-1, 7)>>>(a); }"
            .to_owned(),
        "__global__ void k() { a[] = ; threadIdx. ; pow(,2); <<<>>>; if () return; for (;;; }".to_owned(),
        "__global__ void é(float* ü) { ü[threadIdx.x * 32] = 'é'; /* \u{0} */ }".to_owned(),
        "\u{0}\u{feff}".to_owned(),
    ];
    for text in texts {
        harness::check(&text);
    }
}

#[test]
fn messages_say_what_was_seen() {
    let found = harness::check(
        "__global__ void k(float* a, int n) {\n  int t = threadIdx.x;\n  if (t < n) a[t * 32] = 1.0f;\n}\n",
    );
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0].message,
        "Neighbouring threads are 32 elements (128 bytes) apart in `a[t * 32]`, so each store of a warp touches 32 sectors \
         where 4 would hold its data."
    );
    assert_eq!(found[0].subject.as_deref(), Some("k"));
    assert!(found[0].advice.is_some());
}

#[test]
fn a_bank_conflict_says_how_many_lanes_meet() {
    let conflict = |body: &str, launch: &str| {
        let found = harness::check(&format!("__global__ void k(float* a) {{ {body} }}\n{launch}\n"));
        let found: Vec<_> = found
            .into_iter()
            .filter(|finding| finding.code.as_str() == "static/shared-bank-conflict")
            .collect();
        assert_eq!(found.len(), 1, "{body}");
        found[0].message.clone()
    };
    let body = "__shared__ float t[32][32]; t[threadIdx.x][0] = 1; a[0] = t[threadIdx.x][1];";
    assert!(conflict(body, "").contains("all 32 lanes"));
    assert!(conflict(body, "void f() { k<<<9, dim3(16, 16)>>>(0); }").contains("up to 16 lanes"));
    for (guard, lanes) in [
        ("int lane = threadIdx.x & 31; if (lane < 16)", "up to 16 lanes"),
        ("if (threadIdx.x <= 23)", "up to 24 lanes"),
        ("if (24 > threadIdx.x && a != 0)", "up to 24 lanes"),
        ("if (threadIdx.x >= 16) return;", "up to 16 lanes"),
        ("if (!(threadIdx.x < 20) || a == 0) { return; }", "up to 20 lanes"),
        ("if (threadIdx.x > 15) a[0] = 1; else", "up to 16 lanes"),
        ("if (threadIdx.x < 16 || a == 0)", "all 32 lanes"),
        ("if (threadIdx.x < 64)", "all 32 lanes"),
        ("if (threadIdx.x >= 16)", "all 32 lanes"),
        ("if (threadIdx.y < 16)", "all 32 lanes"),
        ("int n = a[0]; if (threadIdx.x - n < 16)", "all 32 lanes"),
        ("if (threadIdx.x < 16) a[0] = 1;", "all 32 lanes"),
    ] {
        let body = format!("__shared__ float t[32][32]; {guard} t[threadIdx.x][0] = 1;");
        let message = conflict(&body, "");
        assert!(message.contains(lanes), "{guard}: {message}");
    }
    let chosen = "__shared__ float t[32][32]; a[0] = threadIdx.x < 8 ? t[threadIdx.x][1] : 0;";
    assert!(conflict(chosen, "").contains("up to 8 lanes"));
    let rows = "__shared__ float t[8][64]; t[threadIdx.x][0] = 1;";
    assert_eq!(
        conflict(rows, ""),
        "Threads with neighbouring threadIdx.x are 64 words apart in `t[threadIdx.x][0]` of `t[8][64]`: up to 8 lanes of a \
         warp fall into the same bank, and the hardware serves them one after the other."
    );
}

#[test]
fn a_thread_that_takes_all_its_elements_is_told_to_take_a_vector() {
    let takes_all = |body: &str| {
        let found = harness::check(&format!(
            "__global__ void k(float* a, float* out, int n) {{ int i = blockIdx.x * blockDim.x + threadIdx.x; {body} }}\n"
        ));
        let found: Vec<_> =
            found.iter().filter(|finding| finding.code.as_str() == "static/uncoalesced-access").collect();
        assert_eq!(found.len(), 1, "{body}");
        found[0].message.starts_with("Each thread takes")
    };
    for (body, together) in [
        ("for (int k = 0; k < 4; ++k) { int at = i * 4 + k; out[i] = a[at]; }", true),
        ("for (int k = 0; k < 16; ++k) out[i] += i < n ? a[i * 16 + k] : 0.f;", true),
        ("for (; i < n; i += 64) { float* p = a + i * 16; for (int j = 0; j < 16; ++j) p[j] = 0.f; }", true),
        ("for (int k = 0; k <= 2; ++k) { out[i] += a[i * 6 + k * 2] + a[i * 6 + k * 2 + 1]; }", true),
        ("for (int k = 0; k < 4; ++k) out[i] += a[i * 16 + k];", false),
        ("for (int k = 0; k < 99; ++k) out[i] += a[i * 16 + k * n * 16];", false),
        ("if (threadIdx.x < 32) out[i] = a[threadIdx.x * 8];", false),
    ] {
        assert_eq!(takes_all(body), together, "{body}");
    }
}

#[test]
fn a_template_is_judged_by_the_arguments_it_is_launched_with() {
    let found = |launches: &str| {
        let found = harness::check(&format!(
            "template <int TILE = 32> __global__ void k(float* in, float* out) {{ out[threadIdx.x] = in[threadIdx.x * TILE]; }}\n\
             void f(float* p) {{ {launches} }}\n"
        ));
        let mut strided =
            found.into_iter().filter(|finding| finding.code.as_str() == "static/uncoalesced-access");
        strided.next().map(|finding| finding.message)
    };
    let apart = |launches: &str| found(launches).unwrap_or_default();
    assert!(apart("").contains("32 elements (128 bytes) apart"));
    assert!(apart("k<<<9, 32>>>(p, p);").contains("32 elements (128 bytes) apart"));
    assert!(apart("k<16><<<9, 32>>>(p, p);").contains("16 elements (64 bytes) apart"));
    assert!(apart("k<16><<<9, 32>>>(p, p); k<8><<<9, 32>>>(p, p);").ends_with("launch with `TILE = 16`."));
    assert_eq!(found("k<16><<<9, 32>>>(p, p); k<1><<<9, 32>>>(p, p);"), None);
    assert_eq!(found("k<16><<<9, 32>>>(p, p); k<SIZE><<<9, 32>>>(p, p);"), None);
}

#[test]
fn a_reduction_is_told_what_its_threads_are_multiples_of() {
    let found = harness::check(
        "__global__ void k(float* g) { int t = threadIdx.x; for (int d = 1; d < 256; d = d * 2) { \
         if ((t & (2 * d - 1)) == 0) g[t] += g[t + d]; } }\n",
    );
    assert_eq!(found.len(), 1);
    assert!(found[0].message.starts_with("`(t & (2 * d - 1)) == 0` keeps every `2 * d`-th thread"));
}

#[test]
fn a_negative_power_is_a_division() {
    let found = harness::check("__global__ void k(float* a) { a[0] = powf(a[1], -1.0f); }\n");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].advice.as_deref(), Some("Write it as a division: `1 / x`."));
}

#[test]
fn a_file_that_checks_nothing_is_left_alone() {
    let launch = "__global__ void k(float* a) { a[0] = 1; }\nint main() { float* a; cudaMalloc(&a, 4); k<<<1, 32>>>(a); }\n";
    assert_eq!(codes(launch), []);
    let checks = format!("{launch}void g(float* a) {{ CHECK(cudaMemset(a, 0, 4)); }}\n");
    let found: Vec<String> = codes(&checks).into_iter().map(|(_, code)| code).collect();
    assert_eq!(found, ["static/api-result-ignored", "static/unchecked-launch"]);
}
