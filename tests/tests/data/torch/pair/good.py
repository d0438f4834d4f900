# expect: correct
import torch
from torch import nn
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.einsum('ij->i', x), x + x
