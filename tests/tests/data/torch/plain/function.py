# expect: correct
import torch
from torch import nn
def ModelNew(x):
    return torch.tanh(x) * 2 + 1
