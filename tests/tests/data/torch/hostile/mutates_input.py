# expect: wrong | changes `input[0]`
import torch
from torch import nn
class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.tanh(x) * 2 + 1
        x.zero_()
        return y
