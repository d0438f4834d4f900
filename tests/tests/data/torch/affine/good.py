# expect: correct
import torch
from torch import nn
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(64))
        self.bias = nn.Parameter(torch.zeros(64))

    def forward(self, x):
        return torch.addcmul(self.bias, x, self.weight)
