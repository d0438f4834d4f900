# expect: crashed | EOF
import torch
from torch import nn
class ModelNew(nn.Module):
    def forward(self, x):
        input('which?')
        return torch.tanh(x) * 2 + 1
