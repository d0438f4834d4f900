# expect: correct
import torch
from torch import nn
class Square(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(context, grad):
        (x,) = context.saved_tensors
        return 3 * x * grad


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8))

    def forward(self, x):
        return Square.apply(x) * self.weight
