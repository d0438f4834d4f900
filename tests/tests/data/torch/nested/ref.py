import torch
from torch import nn
class Model(nn.Module):
    def forward(self, x):
        return {'y': [x.cos(), x.argmax(dim=1)], 'mask': x > 0, 'n': x.shape[0], 'mean': float(x.mean()), 'spectrum': torch.fft.fft(x)}


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
