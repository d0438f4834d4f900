# expect: usage | has no module; name it `ModelNew`
import torch
from torch import nn
class Other(nn.Module):
    pass
