# expect: crashed | exited with status 0
import torch
from torch import nn
import os

os._exit(0)


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.tanh(x) * 2 + 1
