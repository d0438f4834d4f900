"""Extensions of our own, each with calls whose results are compared: what the two ways of building must agree about."""

_RELU = """
#include <torch/extension.h>
#include <cuda_runtime.h>
__global__ void relu_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = fmaxf(x[i], 0.f);
}
torch::Tensor relu(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int n = x.numel();
  relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
"""

_TYPES = """
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>
namespace {
template <typename T>
__device__ __forceinline__ float wide(T x) { return static_cast<float>(x); }

template <typename T, int N>
static __global__ void __launch_bounds__(256) scale_kernel(const T* __restrict__ x, T* __restrict__ y, float by, int64_t n) {
  for (int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < n; i += int64_t(gridDim.x) * blockDim.x)
    y[i] = static_cast<T>(wide(x[i]) * by + N);
}
}  // namespace
torch::Tensor scale(torch::Tensor x, double by, bool up) {
  TORCH_CHECK(x.is_cuda(), "x must be on the GPU");
  auto y = torch::empty_like(x);
  auto stream = c10::cuda::getCurrentCUDAStream();
  AT_DISPATCH_FLOATING_TYPES_AND2(at::ScalarType::Half, at::ScalarType::BFloat16, x.scalar_type(), "scale", ([&] {
    if (up) scale_kernel<scalar_t, 1><<<64, 256, 0, stream>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), by, x.numel());
    else scale_kernel<scalar_t, 0><<<64, 256, 0, stream>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(), by, x.numel());
  }));
  return y;
}
"""

_SHARED = """
#include <torch/extension.h>
#include <vector>
struct Shape { int rows, columns; };
constexpr int kThreads = 128;
#define CHECK_FLOAT(x) TORCH_CHECK((x).scalar_type() == torch::kFloat32, #x " must be float32")
__global__ void sum_kernel(const float* x, float* y, Shape shape) {
  extern __shared__ float part[];
  float sum = 0.f;
  for (int i = threadIdx.x; i < shape.columns; i += blockDim.x) sum += x[blockIdx.x * shape.columns + i];
  part[threadIdx.x] = sum;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}
static int calls = 0;
std::vector<torch::Tensor> sums(torch::Tensor x) {
  CHECK_FLOAT(x);
  auto y = torch::empty({x.size(0)}, x.options());
  size_t bytes = 65536;
  cudaFuncSetAttribute(sum_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  sum_kernel<<<dim3(x.size(0)), dim3(kThreads), bytes>>>(x.data_ptr<float>(), y.data_ptr<float>(), Shape{int(x.size(0)), int(x.size(1))});
  return {y, torch::full({1}, double(++calls))};
}
int64_t count() { return calls; }
"""

_BOUND = """
#include <torch/extension.h>
#include <map>
__global__ void add_kernel(float* x, float by, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] += by; }
class Adder {
 public:
  explicit Adder(double by) : by_(by) {}
  torch::Tensor operator()(torch::Tensor x) {
    auto y = x.clone();
    add_kernel<<<(y.numel() + 127) / 128, 128>>>(y.data_ptr<float>(), float(by_), int(y.numel()));
    ++times_;
    return y;
  }
  int times() const { return times_; }
 private:
  double by_;
  int times_ = 0;
};
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  py::class_<Adder>(m, "Adder").def(py::init<double>(), py::arg("by") = 1.0).def("__call__", &Adder::operator()).def("times", &Adder::times);
}
"""

_CONSTANT = """
#include <torch/extension.h>
__constant__ float weights[4];
__global__ void weigh_kernel(const float* x, float* y, int n) { int i = threadIdx.x; if (i < n) y[i] = x[i] * weights[i % 4]; }
torch::Tensor weigh(torch::Tensor x) {
  const float host[4] = {1.f, 2.f, 3.f, 4.f};
  cudaMemcpyToSymbol(weights, host, sizeof host);
  auto y = torch::empty_like(x);
  weigh_kernel<<<1, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), int(x.numel()));
  return y;
}
"""

_MATH = """
#include <torch/extension.h>
#include <cuda_fp16.h>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void gelu_kernel(const float4* x, float4* y, int n) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 v = x[i];
  auto one = [](float a) { return 0.5f * a * (1.f + tanhf(0.79788456f * (a + 0.044715f * a * a * a))) + __expf(-fabsf(a)) * 1e-3f; };
  y[i] = make_float4(one(v.x), one(v.y), one(v.z), one(v.w) + 0 * warp.thread_rank());
}
torch::Tensor gelu(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int n = x.numel() / 4;
  gelu_kernel<<<(n + 127) / 128, 128>>>(reinterpret_cast<const float4*>(x.data_ptr<float>()), reinterpret_cast<float4*>(y.data_ptr<float>()), n);
  return y;
}
"""

_CPU = """
#include <torch/extension.h>
torch::Tensor twice(torch::Tensor x) { return x * 2; }
std::tuple<torch::Tensor, int64_t> shifted(const torch::Tensor& x, int64_t by) { return {x + by, by}; }
"""


def _x(torch, device, dtype=None):
    generator = torch.Generator().manual_seed(7)
    return torch.randn(64, 256, generator=generator).to(device=device, dtype=dtype or torch.float32)


def _types(module, torch, device):
    return [module.scale(_x(torch, device, dtype), 1.5, up) for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16) for up in (True, False)]


def _adder(module, torch, device):
    adder = module.Adder(by=2.5)
    return [adder(_x(torch, device)), torch.tensor(adder.times())]


#: Name: C++ and CUDA texts, functions, further arguments of `load_inline`, calls. A name that ends in `_whole` is not taken apart.
CASES = {
    "relu": ("torch::Tensor relu(torch::Tensor x);", _RELU, ["relu"], {}, lambda m, t, d: [m.relu(_x(t, d))]),
    "types": ("torch::Tensor scale(torch::Tensor x, double by, bool up);", _TYPES, ["scale"], {"extra_cuda_cflags": ["-O3"]}, _types),
    "shared": ("#include <vector>\nstd::vector<torch::Tensor> sums(torch::Tensor x); int64_t count();", _SHARED, ["sums", "count"], {},
               lambda m, t, d: m.sums(_x(t, d)) + m.sums(_x(t, d)) + [t.tensor(m.count())]),
    "bound": ("", _BOUND, None, {}, _adder),
    "constant_whole": ("torch::Tensor weigh(torch::Tensor x);", _CONSTANT, ["weigh"], {}, lambda m, t, d: [m.weigh(_x(t, d)[0])]),
    "math": ("torch::Tensor gelu(torch::Tensor x);", _MATH, {"gelu": "GELU by tanh"}, {"extra_cuda_cflags": ["-O3", "--use_fast_math"]},
             lambda m, t, d: [m.gelu(_x(t, d))]),
    "cpu": (_CPU, "", ["twice", "shifted"], {"extra_cflags": ["-O2"]}, lambda m, t, d: [m.twice(_x(t, "cpu")), m.shifted(_x(t, "cpu"), 3)[0]]),
}
