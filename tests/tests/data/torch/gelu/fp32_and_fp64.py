# expect: wrong | float64
# flags: --dtype fp32,fp64
import torch
from torch import nn
class ModelNew(nn.Module):
    def forward(self, x):
        return nn.functional.gelu(x.float()).to(x.dtype)
