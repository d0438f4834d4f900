import math
import torch
import torch.nn as nn

CALLS = []
BLOCK = 128


def helper(x, slope):
    return torch.where(x > 0, x, x * slope)


class ModelNew(nn.Module):
    def __init__(self, size, slope=0.1):
        super().__init__()
        self.fc = nn.Linear(size, size)
        self.register_buffer("shift", torch.ones(size))
        self.slope = slope
        self.block = BLOCK
        self.root = math.sqrt(slope)
        self.twice = size * 2

    def forward(self, x, mask=None, *, scale=2.0):
        CALLS.append(self.block + self.twice)
        torch.used = len(CALLS)
        self.last = y = torch.addmm(self.fc.bias, x, self.fc.weight.t())
        y = helper(y, self.root * self.root) * scale
        if mask is not None:
            y = y * mask
        return y + self.shift


if __name__ == "__main__":
    raise SystemExit("run as a program")
