# expect: nothing-compared verify/nothing-compared | builds no extension from CUDA texts
import torch


class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.randn(n))
    def forward(self, x):
        return torch.nn.functional.gelu(x + self.bias, approximate='tanh')
