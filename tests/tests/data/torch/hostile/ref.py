import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x):
        return torch.tanh(x) * 2 + 1


def get_inputs():
    return [torch.randn(64, 64)]


def get_init_inputs():
    return []
