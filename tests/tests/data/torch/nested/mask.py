# expect: wrong | `output["mask"]`
import torch
from torch import nn
class ModelNew(nn.Module):
    def forward(self, x):
        return {'y': [torch.cos(x), torch.max(x, dim=1).indices], 'mask': torch.gt(x, 0.1), 'n': 8, 'mean': x.mean().item(), 'spectrum': torch.fft.fft(x)}
