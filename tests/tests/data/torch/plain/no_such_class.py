# expect: usage | neither a class nor a function `Model`
import torch
from torch import nn
class Other(nn.Module):
    pass
