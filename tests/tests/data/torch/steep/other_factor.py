# expect: wrong verify/wrong-result
import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(32, 32))

    def forward(self, x):
        return torch.sin(x @ (self.weight * 1.0005))
