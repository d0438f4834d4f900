# expect: correct | float64
# flags: --dtype fp64
import torch
from torch import nn
class ModelNew(nn.Module):
    def forward(self, x):
        return x * 0.5 * (1 + torch.erf(x * 0.7071067811865476))
