"""A module with a parameter, a buffer, and one call that changes a buffer in training mode."""
import torch


class Model(torch.nn.Module):
    def __init__(self, size, factor=1.0):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(size))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("hidden", torch.zeros(2), persistent=False)
        self.factor = factor

    def forward(self, x, y=None):
        if self.training:
            self.calls += 1
        out = x * self.weight * self.factor
        if y is not None:
            out = out + y
        return {"out": out, "sizes": (out.numel(), 0.5, None), "noise": torch.rand(3)}


def get_init_inputs():
    return [[4], {"factor": 2.0}]


def get_inputs():
    return [[torch.rand(3, 4).t().contiguous().t()], {"y": torch.ones(4).expand(3, 4)}]
