# expect: wrong | elements differ
import torch
from torch import nn
class ModelNew(nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=1).half().float()
