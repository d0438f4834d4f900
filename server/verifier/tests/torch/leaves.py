"""Writes a file when its process ends as programs do."""
import atexit

import torch


class Model(torch.nn.Module):
    def __init__(self, path):
        super().__init__()
        atexit.register(lambda: open(path, "w").close())

    def forward(self, x):
        return x + 1
