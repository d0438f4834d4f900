import torch
from torch import nn
class Model(nn.Module):
    """Returns the memory that it keeps, as recurrent modules do with their state."""

    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(64))

    def forward(self, x):
        return self.total.mul_(0.5).add_(x)


def get_inputs():
    return [torch.randn(64)]


def get_init_inputs():
    return []
