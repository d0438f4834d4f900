# expect: wrong | [64]
import torch
from torch import nn
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.bias = nn.Parameter(torch.zeros(64))

    def forward(self, x):
        return x * self.weight + self.bias
