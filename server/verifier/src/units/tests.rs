use super::*;

const TEXT: &str = r#"#include <torch/extension.h>
#include <cuda_fp16.h>
#define BLOCK 256 /* { */
#define CHECK(x) TORCH_CHECK(x.is_cuda(), "é")
#define KERNEL(T) __global__ void made_##T() {}
using namespace torch::indexing;
constexpr int N = 4, M = N == 4 ? 1 : 2;
const auto options = torch::TensorOptions().dtype(torch::kFloat32);
__constant__ float table[N] = {1, 2, 3, 4};
struct P { int a; float f() const { return a; } };
int counter = 0;
namespace { namespace detail {
template <typename T, int K = 3> __device__ T twice(T x) { return x * K; } // "}"
torch::Tensor helper(torch::Tensor x) { return x + 1; }
}}
template <typename scalar_t>
__global__ void __launch_bounds__(BLOCK) k(const scalar_t* __restrict__ a, scalar_t* b, int n) {
  const char* s = "}{"; char c = '}';
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] = detail::twice(a[i]);
}
KERNEL(int)
torch::Tensor run(torch::Tensor x) {
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "run", ([&] { k<scalar_t><<<1, 256>>>(x.data_ptr<scalar_t>(), nullptr, 3); }));
  return x;
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
"#;

#[test]
fn host_code_goes_and_lines_stay() {
    let part = device_part(TEXT);
    assert!(part.has_device_code);
    assert_eq!(part.text.len(), TEXT.len());
    let shape = |text: &str| text.match_indices('\n').map(|(at, _)| at).collect::<Vec<_>>();
    assert_eq!(shape(&part.text), shape(TEXT));
    for kept in [
        "#include <cuda_fp16.h>",
        "#define CHECK(x)",
        "constexpr int N",
        "__constant__ float table",
        "struct P {",
        "twice(T x)",
        "}}",
        "k(const scalar_t*",
        "KERNEL(int)",
    ] {
        assert_eq!(part.text.find(kept), TEXT.find(kept), "{kept}");
    }
    for gone in [
        "torch/extension.h",
        "torch::indexing",
        "TensorOptions",
        "int counter",
        "helper",
        "AT_DISPATCH",
        "PYBIND11",
        "Tensor run",
    ] {
        assert!(!part.text.contains(gone), "{gone}");
    }
    assert!(part.left_out.iter().any(|name| name == "counter"));
}

#[test]
fn odd_texts_are_cut_without_harm() {
    for text in [
        "",
        "}",
        "}}};;;",
        "{",
        "template",
        "template <",
        "#",
        "#define A \\\n",
        "namespace {",
        "extern \"C\" {",
        "R\"(",
        "R\"x(a)y\"",
        "'",
        "\"\\",
        "/*",
        "//\\\n",
        "=",
        "(",
        "é = 1;",
        "1'000;",
        "struct",
        "using namespace",
        "int f(",
        "\u{0}",
    ] {
        let part = device_part(text);
        assert_eq!(part.text.len(), text.len(), "{text}");
    }
    for deep in [
        "{".repeat(100_000),
        "namespace a {".repeat(50_000),
        "template <".repeat(50_000),
        "(".repeat(100_000),
    ] {
        device_part(&deep);
    }
}

#[test]
fn templates_are_instantiated_for_what_is_launched() {
    let text = "template <typename T, int B> __global__ void k(T* p) {}\ntemplate <class T> __global__ void q(T* p) {}\n\
                template <typename T> __global__ void unused(T* p) {}\nvoid f() {\n  constexpr int BLOCK = 64; // note\n  \
                AT_DISPATCH_INTEGRAL_TYPES(t, \"f\", [&] { k<scalar_t, BLOCK><<<1, 2>>>(p); });\n  k<double, 7><<<1, 2>>>(p);\n  q<<<1, 2>>>(p);\n}\n";
    let analysis = stitch_analysis::Analysis::of(stitch_analysis::Language::Cuda, text);
    let code = instantiations(text, analysis.outline());
    assert!(
        code.contains("&k<int, 64>;") && code.contains("&k<double, 7>;") && !code.contains("unused"),
        "{code}"
    );
    assert!(code.contains("&q<int>;") || code.contains("&q<float>;"), "{code}");
}
