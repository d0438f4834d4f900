# expect: crashed | power
import torch
from torch import nn
def rows(x):
    return x.sum(dim=1)
