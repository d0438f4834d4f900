# expect: wrong verify/wrong-result | do not fit into this machine's memory
import torch
from torch import nn
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.zeros(1, 1).expand(240_000, 250_000)
