# expect: nothing-compared verify/nothing-compared | random
# flags: --train
import torch
from torch import nn
class ModelNew(nn.Module):
    def forward(self, x):
        return x * 2 * (torch.rand(x.shape[::-1]).t() > 0.5)
