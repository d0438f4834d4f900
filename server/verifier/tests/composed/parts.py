import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(size))

    def forward(self, x):
        return x * self.weight


class Block(nn.Module):
    def __init__(self, size, slope=0.1):
        super().__init__()
        self.fc = nn.Linear(size, size)
        self.gate = Gate(size)
        self.slope = slope

    def forward(self, x):
        return nn.functional.leaky_relu(self.gate(self.fc(x)), self.slope)


class Stack(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.first = Block(size)
        self.rest = nn.ModuleList([Block(size) for _ in range(2)])
        self.last = Gate(size)

    def forward(self, x):
        x = self.first(x)
        for block in self.rest:
            x = block(x)
        return self.last(x)
