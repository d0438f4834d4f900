# expect: correct
# flags: --calls 60
import torch
from torch import nn
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.tanh(x).mul_(2).add_(1)
