# expect: correct | kernelbench-old
# flags: --tolerance kernelbench-old
import torch
from torch import nn
class ModelNew(nn.Module):
    def forward(self, x):
        return nn.functional.gelu(x, approximate='tanh')
