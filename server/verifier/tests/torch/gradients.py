"""y = w x^2, whose gradients are known."""
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((1,), 2.0))
        self.unused = torch.nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return self.weight * x * x


def get_init_inputs():
    return []


def get_inputs():
    return [torch.rand(3)]
