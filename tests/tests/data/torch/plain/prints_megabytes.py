# expect: correct
import torch
from torch import nn
class ModelNew(nn.Module):
    def forward(self, x):
        print('x' * 3_000_000)
        return torch.tanh(x) * 2 + 1
