"""Candidates for problems of KernelBench, each with the verdict it must get. `torch_check.py` runs them on a GPU.

A candidate is the problem's own text with its class named `ModelNew` and another body of `forward`, so nothing of the problems is repeated
here. What stands in `before` comes after the imports; `edits` are replacements besides.
"""

from dataclasses import dataclass, field


@dataclass
class Candidate:
    problem: str
    name: str
    expected: str  # correct, wrong, build-failed, crashed
    forward: str = ""
    before: str = ""
    edits: list = field(default_factory=list)
    faster: float = 0.0  # At least so many times, where the verdict is correct; 0 for not looked at.
    slower: bool = False  # Must be told to be slower.


EXTENSION = '''
from torch.utils.cpp_extension import load_inline

_source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
%(kernel)s
"""
_built = load_inline(name="%(name)s", cpp_sources="%(declaration)s;", cuda_sources=_source, functions=["%(function)s"], verbose=False)
'''


def extension(name, declaration, kernel):
    function = declaration.split("(")[0].split()[-1]
    return EXTENSION % {"name": name, "declaration": declaration, "kernel": kernel, "function": function}


ROWS = """
__global__ void rows(const float* a, const float* b, float* c, long count, int width) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < count%s) c[i] = a[i / width] * b[i];
}
torch::Tensor scale_rows(torch::Tensor a, torch::Tensor b) {
  auto c = torch::empty_like(b);
  long count = b.numel();
  rows<<<(count + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), count, b.size(1));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return c;
}
"""

GELU = """
__global__ void gelu_kernel(const float* x, float* y, long count) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < count) {
    float v = x[i];
    y[i] = 0.5f * v * (1.0f + tanhf(0.7978845608028654f * (v + 0.044715f * v * v * v)));
  }
}
torch::Tensor gelu(torch::Tensor x) {
  auto y = torch::empty_like(x);
  long count = x.numel();
  gelu_kernel<<<(count + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), y.data_ptr<float>(), count);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
"""

BIAS = """
__global__ void bias_relu_kernel(float* x, const float* bias, long count, int width) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < count) x[i] = fmaxf(x[i] + bias[i %% width], 0.0f);
}
torch::Tensor bias_relu(torch::Tensor x, torch::Tensor bias) {
  long count = x.numel();
  bias_relu_kernel<<<(count + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), bias.data_ptr<float>(), count, x.size(1));
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return x;
}
""".replace("%%", "%")

TANH_GELU = "return F.gelu(x, approximate='tanh')"
CACHE = """
key = (A.data_ptr(), B.data_ptr())
if not hasattr(self, 'kept'):
    self.kept = {}
if key not in self.kept:
    self.kept[key] = A.unsqueeze(1) * B
return self.kept[key]
"""
ATTENTION = """
B, T, C = x.size()
q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in (q, k, v))
y = F.scaled_dot_product_attention(q, k, v, is_causal=%s)
return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))
"""
RELU_ATTENTION = """
B, T, C = x.size()
q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in (q, k, v))
att = (q @ k.transpose(-2, -1)).mul_(%s)
att = att.tril_().relu_()
return (att @ v).transpose(1, 2).contiguous().view(B, T, C)
"""
LENET = """
x = F.%(pool)s(F.relu_(self.conv1(x)), 2)
x = F.%(pool)s(F.relu_(self.conv2(x)), 2).flatten(1)
return self.fc3(F.relu_(self.fc2(F.relu_(self.fc1(x)))))
"""
BLOCK = """
identity = self.downsample(x)
out = F.relu_(self.bn1(self.conv1(x)))
out = self.bn2(self.conv2(out))
%s
"""

DIAGONAL = "level1/12_Matmul_with_diagonal_matrices_"
NORM = "level1/40_LayerNorm"
NEW_GELU = "level1/88_MinGPTNewGelu"
GEMM_ADD = "level2/76_Gemm_Add_ReLU"
GEMM_DIVIDE = "level2/63_Gemm_ReLU_Divide"
GEMM_LEAKY = "level2/12_Gemm_Multiply_LeakyReLU"
GEMM_SOFTMAX = "level2/99_Matmul_GELU_Softmax"
CONV = "level2/57_Conv2d_ReLU_HardSwish"
BATCH_NORM = "level2/33_Gemm_Scale_BatchNorm"
MEAN = "level2/23_Conv3d_GroupNorm_Mean"
MAX = "level2/80_Gemm_Max_Subtract_GELU"
MLP = "level3/1_MLP"
LENET5 = "level3/4_LeNet5"
CAUSAL = "level3/43_MinGPTCausalAttention"
RELU = "level3/50_ReLUSelfAttention"
RESNET = "level3/8_ResNetBasicBlock"

CANDIDATES = [
    Candidate(DIAGONAL, "view", "correct", "return A.view(-1, 1) * B"),
    Candidate(DIAGONAL, "kernel", "correct", "return _built.scale_rows(A, B)", extension("rows_good", "torch::Tensor scale_rows(torch::Tensor a, torch::Tensor b)", ROWS % "")),
    Candidate(DIAGONAL, "kernel-without-last-element", "wrong", "return _built.scale_rows(A, B)", extension("rows_short", "torch::Tensor scale_rows(torch::Tensor a, torch::Tensor b)", ROWS % " - 1")),
    Candidate(DIAGONAL, "other-axis", "wrong", "return A.unsqueeze(0) * B"),
    Candidate(DIAGONAL, "matmul", "correct", "return torch.diag(A) @ B", slower=True),
    Candidate(DIAGONAL, "cached-by-pointer", "wrong", CACHE),
    Candidate(DIAGONAL, "half", "wrong", "return (A.half().unsqueeze(1) * B.half()).float()"),
    Candidate(DIAGONAL, "untouched-output", "wrong", "return torch.empty_like(B)"),
    Candidate(NORM, "functional", "correct", "return F.layer_norm(x, self.ln.normalized_shape, self.ln.weight, self.ln.bias, self.ln.eps)", "import torch.nn.functional as F\n"),
    Candidate(NORM, "without-affine", "wrong", "return F.layer_norm(x, self.ln.normalized_shape, None, None, self.ln.eps)", "import torch.nn.functional as F\n"),
    Candidate(NORM, "other-eps", "wrong", "return F.layer_norm(x, self.ln.normalized_shape, self.ln.weight, self.ln.bias, 1e-3)", "import torch.nn.functional as F\n"),
    Candidate(NEW_GELU, "kernel", "correct", "return _built.gelu(x)", extension("gelu_good", "torch::Tensor gelu(torch::Tensor x)", GELU), faster=3.0),
    Candidate(NEW_GELU, "tanh", "correct", TANH_GELU, faster=3.0),
    Candidate(NEW_GELU, "erf", "wrong", "return F.gelu(x)"),
    Candidate(NEW_GELU, "doubles", "correct", "x = x.double()\nreturn (0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))).float()", slower=True),
    Candidate(NEW_GELU, "does-not-compile", "build-failed", "return _built.gelu(x)", extension("gelu_broken", "torch::Tensor gelu(torch::Tensor x)", GELU.replace("float v = x[i];", "float v = z[i];"))),
    Candidate(NEW_GELU, "illegal-address", "crashed", "return _built.gelu(x)", extension("gelu_wild", "torch::Tensor gelu(torch::Tensor x)", GELU.replace("x[i]", "x[i + (1l << 40)]"))),
    Candidate(NEW_GELU, "input-overwritten", "wrong", "return x.copy_(F.gelu(x, approximate='tanh'))"),
    Candidate(GEMM_ADD, "addmm", "correct", "return torch.addmm(self.bias, x, self.gemm.weight.t()).relu_()"),
    Candidate(GEMM_ADD, "kernel", "correct", "return _built.bias_relu(self.gemm(x), self.bias)", extension("bias_good", "torch::Tensor bias_relu(torch::Tensor x, torch::Tensor bias)", BIAS)),
    Candidate(GEMM_ADD, "without-bias", "wrong", "return torch.relu(self.gemm(x))"),
    Candidate(GEMM_ADD, "tf32", "wrong", "return torch.relu(self.gemm(x) + self.bias)", "torch.backends.cuda.matmul.allow_tf32 = True\n"),
    Candidate(GEMM_ADD, "renamed-parameter", "wrong", "return torch.relu(self.gemm(x) + self.offset)", edits=[("self.bias = nn.Parameter", "self.offset = nn.Parameter")]),
    Candidate(GEMM_DIVIDE, "in-place", "correct", "return self.linear(x).relu_().div_(self.divisor)"),
    Candidate(GEMM_DIVIDE, "scaled-weights", "correct", "d = self.divisor\nreturn torch.relu(torch.addmm(self.linear.bias / d, x, (self.linear.weight / d).t()))", slower=True),
    Candidate(GEMM_DIVIDE, "other-order", "wrong", "return torch.relu(self.linear(x) - self.divisor)"),
    Candidate(GEMM_LEAKY, "in-place", "correct", "return torch.nn.functional.leaky_relu_(self.gemm(x).mul_(self.multiplier), 0.1)"),
    Candidate(GEMM_LEAKY, "other-slope", "wrong", "return torch.nn.functional.leaky_relu_(self.gemm(x).mul_(self.multiplier), 0.01)"),
    Candidate(GEMM_SOFTMAX, "same", "correct", "return torch.softmax(torch.nn.functional.gelu(self.linear(x)), 1)"),
    Candidate(GEMM_SOFTMAX, "zeros", "wrong", "return torch.zeros(x.shape[0], self.linear.out_features, device=x.device)"),
    Candidate(GEMM_SOFTMAX, "uniform", "wrong", "n = self.linear.out_features\nreturn torch.full((x.shape[0], n), 1.0 / n, device=x.device)"),
    Candidate(CONV, "hardswish", "correct", "return torch.nn.functional.hardswish(self.conv(x).relu_())"),
    Candidate(CONV, "without-relu", "wrong", "return torch.nn.functional.hardswish(self.conv(x))"),
    Candidate(BATCH_NORM, "in-place", "correct", "return self.bn(self.gemm(x).mul_(self.scale))"),
    Candidate(BATCH_NORM, "statistics-not-updated", "wrong", "return torch.nn.functional.batch_norm(self.gemm(x) * self.scale, None, None, self.bn.weight, self.bn.bias, True, 0.0, self.bn.eps)"),
    Candidate(MEAN, "zeros", "wrong", "return torch.zeros(x.shape[0], device=x.device)"),
    Candidate(MAX, "zeros", "correct", "return torch.zeros(x.shape[0], 1, device=x.device)"),
    Candidate(MLP, "in-place", "correct", "for layer in self.network:\n    x = torch.relu_(layer(x)) if isinstance(layer, nn.Linear) and layer is not self.network[-1] else (layer(x) if layer is self.network[-1] else x)\nreturn x"),
    Candidate(MLP, "relu-at-the-end", "wrong", "return torch.relu(self.network(x))"),
    Candidate(MLP, "autocast", "wrong", "with torch.autocast('cuda', dtype=torch.bfloat16):\n    y = self.network(x)\nreturn y.float()"),
    Candidate(LENET5, "in-place", "correct", LENET % {"pool": "max_pool2d"}),
    Candidate(LENET5, "average", "wrong", LENET % {"pool": "avg_pool2d"}),
    Candidate(CAUSAL, "fused", "correct", ATTENTION % "True", faster=1.5),
    Candidate(CAUSAL, "not-causal", "wrong", ATTENTION % "False"),
    Candidate(RELU, "in-place", "correct", RELU_ATTENTION % "(1.0 / math.sqrt(k.size(-1)))", faster=1.2),
    Candidate(RELU, "other-scale", "wrong", RELU_ATTENTION % "(1.0 / math.sqrt(C))"),
    Candidate(RESNET, "in-place", "correct", BLOCK % "return out.add_(identity).relu_()"),
    Candidate(RESNET, "relu-first", "wrong", BLOCK % "return out.relu_().add_(identity)"),
]
