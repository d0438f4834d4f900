# expect: wrong | has shape [4, 1]
import torch
from torch import nn
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1)[:, :1]
