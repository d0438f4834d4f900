import torch
from torch import nn


def steep(x, slope):
    return torch.where(x > 0, x, x * slope)


class Gate(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(size))

    def scaled(self, x):
        torch.gates = getattr(torch, "gates", 0) + 1
        return self.weight * x


class FastBlock(nn.Module):
    def __init__(self, size, slope=0.1):
        super().__init__()
        self.fc = nn.Linear(size, size)
        self.gate = Gate(size)
        self.slope = slope
        self.steepness = slope * 2

    def forward(self, x):
        self.seen = x
        return steep(self.gate.scaled(torch.addmm(self.fc.bias, x, self.fc.weight.t())), self.steepness / 2)


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.first = FastBlock(size)
        self.rest = nn.ModuleList([FastBlock(size) for _ in range(2)])
        self.last = Gate(size)

    def forward(self, x):
        x = self.first(x)
        for block in self.rest:
            x = block(x)
        return self.last.scaled(x)
