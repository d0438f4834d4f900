# expect: nothing-compared | no elements
import torch
from torch import nn
class ModelNew(nn.Module):
    def forward(self, x):
        return x[:0] * 2
