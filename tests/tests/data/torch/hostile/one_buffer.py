# expect: wrong verify/wrong-result | changes what its call before had returned
import torch
from torch import nn
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = None

    def forward(self, x):
        if self.kept is None:
            self.kept = torch.empty_like(x)
        torch.tanh(x, out=self.kept)
        return self.kept.mul_(2).add_(1)
