# expect: wrong | 1 of 32768 elements differ, worst at [3, 8191]
import torch
from torch import nn
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.softmax(x, dim=1)
        y[-1, -1] *= 1.5
        return y
