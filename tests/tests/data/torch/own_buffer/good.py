# expect: correct |
import torch
from torch import nn
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(64))

    def forward(self, x):
        return torch.add(x, self.total, alpha=0.5, out=self.total)
