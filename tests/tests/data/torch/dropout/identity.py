# expect: correct verify/degenerate-task | input[0] itself
# flags: --eval
import torch
from torch import nn
class ModelNew(nn.Module):
    def forward(self, x):
        return x.clone()
