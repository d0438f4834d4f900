# expect: wrong verify/wrong-result | normalised error 100.000 %
import torch
from torch import nn
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)
