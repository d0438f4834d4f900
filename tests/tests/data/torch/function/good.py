# expect: correct | of case 2
import torch
from torch import nn
def rows(x, power=1):
    return torch.stack([row.pow(power).sum() for row in x])
