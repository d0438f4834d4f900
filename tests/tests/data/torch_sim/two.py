# expect: correct | `unused` was not launched
import torch
from torch.utils.cpp_extension import load_inline
SRC = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAException.h>

torch::Tensor gelu_of(torch::Tensor x, torch::Tensor b);

__global__ void gelu_kernel(const float* x, const float* b, float* y, long count, int width) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < count) {
    float v = x[i] + b[i % width];
    y[i] = 0.5f * v * (1.0f + tanhf(0.7978845608028654f * (v + 0.044715f * v * v * v)));
  }
}
__global__ void unused(float* x) { x[0] = 1.0f; }
__global__ void in_place(float* x, torch::PackedTensorAccessor32<float, 1, torch::RestrictPtrTraits> b, long count, double by) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < count) x[i] = (x[i] + b[i % b.size(0)]) * by;
}
std::vector<torch::Tensor> gelu(torch::Tensor x, c10::optional<torch::Tensor> b, double by) {
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "gelu", ([&] { static_assert(sizeof(scalar_t) >= 4, ""); }));
  in_place<<<(x.numel() + 63) / 64, 64, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), b->packed_accessor32<float, 1, torch::RestrictPtrTraits>(), x.numel(), by);
  auto zeros = torch::zeros({x.size(1)}, x.options());
  return {gelu_of(x, zeros), x};
}
torch::Tensor gelu_of(torch::Tensor x, torch::Tensor b) {
  TORCH_CHECK(x.is_cuda(), "x must be on the GPU");
  auto y = torch::empty_like(x);
  long count = x.numel();
  gelu_kernel<<<(count + 255) / 256, 256>>>(x.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(), count, x.size(1));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
"""
CPP = """
#include <torch/extension.h>
torch::Tensor gelu_of(torch::Tensor x, torch::Tensor b);
std::vector<torch::Tensor> gelu(torch::Tensor x, c10::optional<torch::Tensor> b, double by);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("gelu", &gelu, "Adds in place.", py::arg("x"), py::arg("b") = py::none(), py::arg("by") = 1.0);
}
"""
ext = load_inline(name="gelu", cpp_sources=CPP, cuda_sources=SRC)
class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(n))
    def forward(self, x):
        sums = x.clone().cuda()
        y, same = ext.gelu(sums.t().contiguous().t().contiguous(), b=self.bias)
        assert y.is_cuda and torch.equal(same, x + self.bias) and torch.cuda.is_available()
        return y.to("cuda:0")
