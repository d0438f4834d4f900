"""A module whose state has numbers of many types, tensors of one number, and one tensor under two names."""
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.ones = torch.nn.Parameter(torch.ones(1000))
        self.zeros = torch.nn.Parameter(torch.zeros(1000))
        self.drawn = torch.nn.Parameter(torch.randn(5, 7).t())
        self.same = self.drawn
        self.register_buffer("long", torch.randn(33, dtype=torch.float64))
        self.register_buffer("short", torch.randn(33).half())
        self.register_buffer("brain", torch.ones(33).bfloat16())
        self.register_buffer("complex", torch.randn(4, dtype=torch.complex64))
        self.register_buffer("unbounded", torch.full((3,), float("inf")))
        self.register_buffer("nothing", torch.empty(0))
        self.register_buffer("count", torch.tensor(3))

    def forward(self, x):
        return x * self.ones


def get_inputs():
    return [torch.randn(1000)]


def get_init_inputs():
    return []
