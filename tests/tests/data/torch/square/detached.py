# expect: wrong | 
# flags: --gradients
import torch
from torch import nn
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8))

    def forward(self, x):
        return x.detach() ** 2 * self.weight
