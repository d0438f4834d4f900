# expect: correct | draws the same numbers
# flags: --train
import torch
from torch import nn
class ModelNew(nn.Module):
    def forward(self, x):
        return nn.functional.dropout(x, 0.5, True)
