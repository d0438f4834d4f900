"""A module with all that an edit has to keep."""
from __future__ import annotations

import torch
import torch.nn as nn
import torch.nn.functional as F


class Scaled(nn.Module):
    """Scales."""

    def __init__(self, size: int, slope: float = 0.1):
        super().__init__()
        self.fc = nn.Linear(size, size)
        self.register_buffer("shift", torch.ones(size))
        self.slope = slope
        self.sizes = [size, [size]]

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None, *, scale: float = 2.0) -> torch.Tensor:
        """Scales x."""
        y = F.leaky_relu(self.fc(x), self.slope) * scale
        if mask is not None:
            y = y * mask
        return y + self.shift


def softplus(x, beta=1.0):
    """Smooth."""
    return torch.log1p(torch.exp(x * beta)) / beta


def steps(x, w):
    total = 0
    for i in range(2):
        y = x @ w
        z = torch.relu(y) + i
        total = total + z
    return total, y


if __name__ == "__main__":
    raise SystemExit("run as a program")
