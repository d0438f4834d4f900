import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x):
        raise ValueError('no such luck')


def get_inputs():
    return [torch.randn(4)]


def get_init_inputs():
    return []
