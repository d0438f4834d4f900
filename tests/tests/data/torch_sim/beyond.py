# expect: nothing-compared verify/nothing-compared | namespace "torch" has no member "relu"
import torch
from torch.utils.cpp_extension import load_inline
SRC = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAException.h>

__global__ void gelu_kernel(const float* x, const float* b, float* y, long count, int width) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < count) {
    float v = x[i] + b[i % width];
    y[i] = 0.5f * v * (1.0f + tanhf(0.7978845608028654f * (v + 0.044715f * v * v * v)));
  }
}
torch::Tensor gelu(torch::Tensor x, torch::Tensor b) {
  TORCH_CHECK(x.is_cuda(), "x must be on the GPU");
  auto y = torch::relu(x);
  long count = x.numel();
  gelu_kernel<<<(count + 255) / 256, 256>>>(x.data_ptr<float>(), b.data_ptr<float>(), y.data_ptr<float>(), count, x.size(1));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
"""
ext = load_inline(name="gelu", cpp_sources="torch::Tensor gelu(torch::Tensor x, torch::Tensor b);", cuda_sources=SRC, functions=["gelu"])
class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(n))
    def forward(self, x):
        return ext.gelu(x.contiguous(), self.bias)
