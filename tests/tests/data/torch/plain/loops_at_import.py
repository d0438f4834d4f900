# expect: timed-out | 
# flags: --time-limit 6
import torch
from torch import nn
while True:
    pass


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.tanh(x) * 2 + 1
