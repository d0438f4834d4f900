# expect: correct verify/degenerate-task | an answer of zeros
import torch
from torch import nn
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.zeros_like(x)
