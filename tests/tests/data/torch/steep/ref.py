import torch
from torch import nn


class Model(nn.Module):
    """The sine of a sum: of a large one 32 bits don't know it to the tolerance."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(32, 32))

    def forward(self, x):
        return torch.sin(x @ self.weight)


def get_inputs():
    return [torch.randn(16, 32)]


def get_init_inputs():
    return []
