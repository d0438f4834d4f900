"""Parts of a file that can be pointed at."""
import torch

OFFSET = 3.0


class Tools:
    @staticmethod
    def scale(x, bias=None):
        return x * 2 + bias


def double(x):
    return x + x


def work(x, gain):
    if gain > 0:
        y = torch.relu(  # first
            x,
        )
        y, total = y * gain, y.sum().reshape(1) * gain
        return y, total
