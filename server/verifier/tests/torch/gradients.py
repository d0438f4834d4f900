"""y = w x^2, whose gradients are known."""
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((1,), 2.0))
        self.unused = torch.nn.Parameter(torch.zeros(1))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        # No part of the state, and another one after each call.
        self.carried = torch.zeros(1)
        # A function that holds on to the module.
        self.square = lambda x: self.weight * x * x

    def forward(self, x):
        self.calls += 1
        assert x.dtype is torch.float64 or self.carried.dtype is not torch.float64
        self.carried = (self.carried.to(x.device) * x.sum()).to(x.dtype)
        return self.square(x) + self.carried


def get_init_inputs():
    return []


def get_inputs():
    return [torch.rand(3)]
