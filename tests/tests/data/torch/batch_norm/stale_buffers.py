# expect: wrong | The reference's call changes `norm.
# flags: --train
import torch
from torch import nn
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(8)

    def forward(self, x):
        n = self.norm
        return nn.functional.batch_norm(x, None, None, n.weight, n.bias, True)
