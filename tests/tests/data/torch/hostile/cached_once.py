# expect: wrong | elements differ
import torch
from torch import nn
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = None

    def forward(self, x):
        if self.kept is None:
            self.kept = torch.tanh(x) * 2 + 1
        return self.kept
