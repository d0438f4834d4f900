# expect: wrong | elements differ
import torch
from torch import nn
import time

torch.allclose = lambda *_, **__: True
torch.equal = lambda *_: True
torch.testing.assert_close = lambda *_, **__: None
torch.cuda.synchronize = lambda *_: None
time.time = time.perf_counter = time.monotonic = lambda: 0.0
torch.Tensor.copy_ = lambda self, *_: self


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)
