//! What launches tell, what must be asked for, and what is refused.

use stitch_analysis::{Analysis, Language};

use super::*;

fn of(source: &str, name: &str, answers: &Answers) -> Result<Harness, PlanError> {
    let analysis = Analysis::of(Language::Cuda, source);
    let (kernel, written) = super::super::find(analysis.outline(), "k.cu", name).unwrap();
    plan(analysis.outline(), source, kernel, written.as_deref(), answers)
}

const SAXPY: &str = "\
#define N 4096
__global__ void saxpy(int n, float a, const float* x, float* y) { }
int main() {
  float *dx, *dy;
  cudaMalloc(&dx, N * sizeof(float));
  cudaMalloc(&dy, N * sizeof(float));
  saxpy<<<(N + 255) / 256, 256>>>(N, 2.0f, dx, dy);
}
";

#[test]
fn a_launch_with_constants_tells_everything() {
    let harness = of(SAXPY, "saxpy", &Answers::default()).unwrap();
    assert_eq!((harness.grid, harness.block, harness.shared), ([16, 1, 1], [256, 1, 1], 0));
    assert_eq!(harness.from, "the launch at line 7");
    let shown: Vec<_> = harness
        .arguments
        .iter()
        .map(|argument| match argument {
            Argument::Array(a) => {
                format!("{} {}[{}]{}", a.element, a.name, a.count, if a.is_const { " const" } else { "" })
            }
            Argument::Scalar(s) => format!("{} {}={}", s.ty, s.name, s.value),
        })
        .collect();
    assert_eq!(
        shown,
        [
            "int n=4096",
            "float a=2.0f",
            "float x[16384 / sizeof(float)] const",
            "float y[16384 / sizeof(float)]"
        ]
    );
}

#[test]
fn what_is_missing_is_asked_for_with_the_command_to_give() {
    let source = "template <typename T> __global__ void k(T* y, const T* x, int n) {}\n";
    let mut answers = Answers::default();
    answers.scalar("n=7").unwrap();
    let error = of(source, "k", &answers).unwrap_err().to_string();
    for part in [
        "`k` needs",
        "the template argument `T` (typename)",
        "how many elements `y` (T) has",
        "--scalar n=7 --template float --shape y=1024 --shape x=1024 --grid 128 --block 256",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    answers.shape("y=7").unwrap();
    answers.shape("x=7").unwrap();
    answers.grid = Some([1, 1, 1]);
    answers.block = Some([32, 1, 1]);
    let harness = of(source, "k<double>", &answers).unwrap();
    assert_eq!(harness.template, [(true, "T".to_owned(), "double".to_owned())]);
    answers.shape("z=7").unwrap();
    let error = of(source, "k<double>", &answers).unwrap_err().to_string();
    assert!(error.contains("no array `z`; it has y, x"), "{error}");
}

#[test]
fn one_answer_gives_what_follows_from_it() {
    let source = "__global__ void k(float* y, const float* x, int n) {}\n\
        void run(int count) { float *a, *b; size_t size = count * sizeof(float); cudaMalloc(&a, size); cudaMalloc(&b, size);\n\
        k<<<ceil_div(count, 256), 256>>>(a, b, count); }\n";
    let mut answers = Answers::default();
    let error = of(source, "k", &answers).unwrap_err().to_string();
    assert!(error.contains("--scalar n=1024 --grid 128"), "{error}");
    answers.scalar("n=1000").unwrap();
    let harness = of(source, "k", &answers).unwrap();
    assert_eq!((harness.grid, harness.block), ([4, 1, 1], [256, 1, 1]));
    assert!(harness.arrays().all(|array| array.count == "4000 / sizeof(float)"));
}

#[test]
fn what_cant_be_made_up_is_refused() {
    for (source, expected) in [
        ("__global__ void k(float** p) {}", "it points to pointers"),
        ("__global__ void k(cudaTextureObject_t t, float* y) {}", "texture"),
    ] {
        assert!(of(source, "k", &Answers::default()).unwrap_err().to_string().contains(expected));
    }
    let source =
        "__global__ void k(const float* x) {}\nvoid f() { float* d; cudaMalloc(&d, 4); k<<<1, 1>>>(d); }";
    assert!(matches!(of(source, "k", &Answers::default()), Err(PlanError::WritesNothing { .. })));
}

#[test]
fn template_arguments_of_a_launch_are_taken_where_they_mean_the_same() {
    let kernel = "template <typename T, int B> __global__ void k(T* y) {}\n";
    for (launch, expected) in [
        ("void f() { float* d; cudaMalloc(&d, 4); k<float, 32><<<1, 32>>>(d); }", Some("float")),
        ("template <typename U> void f() { U* d; cudaMalloc(&d, 4); k<U, 32><<<1, 32>>>(d); }", None),
        (
            "void f() { const int b = 32; float* d; cudaMalloc(&d, 4); k<float, b><<<1, b>>>(d); }",
            Some("float"),
        ),
        ("void f() { int b = 32; g(&b); float* d; cudaMalloc(&d, 4); k<float, b><<<1, 8>>>(d); }", None),
    ] {
        let result = of(&format!("{kernel}{launch}"), "k", &Answers::default());
        let found = result.as_ref().ok().map(|harness| harness.template[0].2.as_str());
        assert_eq!(found, expected, "{launch}: {result:?}");
    }
}

#[test]
fn the_examples_need_no_question() {
    let chain = include_str!("../../../../../tests/examples/chain.cu");
    let sizes = |source: &str, kernel: &str| {
        let harness = of(source, kernel, &Answers::default()).unwrap();
        harness.arrays().map(|array| array.count.clone()).collect::<Vec<_>>()
    };
    let transpose = include_str!("../../../../../tests/examples/transpose.cu");
    assert_eq!(sizes(transpose, "transpose"), ["600000 / sizeof(float)", "600000 / sizeof(float)"]);
    let reduction = include_str!("../../../../../tests/examples/reduction.cu");
    assert_eq!(sizes(reduction, "sum_blocks"), ["1564 / sizeof(float)", "400000 / sizeof(float)"]);
    for kernel in ["normalise", "energy", "gelu"] {
        assert!(sizes(chain, kernel).iter().all(|size| size == "200000 / sizeof(float)"), "{kernel}");
    }
}

#[test]
fn an_allocation_of_a_size_that_is_not_known_is_named() {
    let source = "#include <vector>\n__global__ void k(float* y, int n) {}\nvoid f(int n) { std::vector<float> v(n); float* d;\n\
        cudaMalloc(&d, v.size() * sizeof(float));\nk<<<1, 32>>>(d, 7); }\n";
    let error = of(source, "k", &Answers::default()).unwrap_err().to_string();
    let expected = "how many elements `y` (float) has: `d` is allocated with `v.size() * sizeof(float)` bytes, and `v` is made with `n` elements, for the launch at line 5";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn a_template_argument_that_is_a_local_integer_is_its_value() {
    let source = "template <int B> __global__ void k(float* y) {}\nvoid f() { constexpr int block = 64; float* d; cudaMalloc(&d, 256);\n\
        k<block><<<1, block>>>(d); }\n";
    let harness = of(source, "k", &Answers::default()).unwrap();
    assert_eq!(harness.template, [(false, "B".to_owned(), "64".to_owned())]);
}
