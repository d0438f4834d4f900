import torch
from torch import nn


class Model(nn.Module):
    """A softmax of large numbers: under inputs of other sizes 32 bits don't know it to the tolerance."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(32, 32))

    def forward(self, x):
        return torch.softmax((x @ self.weight) * 5.0, dim=1)


def get_inputs():
    return [torch.randn(16, 32)]


def get_init_inputs():
    return []
