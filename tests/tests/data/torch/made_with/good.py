# expect: correct
import torch
from torch import nn
class ModelNew(nn.Module):
    def __init__(self, features, slope):
        super().__init__()
        self.linear = nn.Linear(features, features)
        self.slope = slope

    def forward(self, x):
        y = x @ self.linear.weight.t() + self.linear.bias
        return torch.where(y > 0, y, y * self.slope)
