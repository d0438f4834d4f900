# expect: wrong | input after the call
import torch
from torch import nn
class ModelNew(nn.Module):
    def forward(self, x):
        return (x * 2).relu() + 1
