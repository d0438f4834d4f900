import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, size, tied=True, beside=(2,)):
        super().__init__()
        self.emb = nn.Embedding(size, 4)
        self.out = nn.Linear(4, size, bias=False)
        self.out.weight = self.emb.weight
        self.one = self.two = nn.Linear(4, 4)
        self.register_buffer("scale", torch.full(beside, 2.0), persistent=False)
        self.register_buffer("count", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        torch.used += 1
        return self.two(self.one(self.emb(x))) @ self.emb.weight.t() * self.scale[0]
