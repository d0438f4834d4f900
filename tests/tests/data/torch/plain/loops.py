# expect: timed-out verify/timeout | calling
# flags: --time-limit 6
import torch
from torch import nn
class ModelNew(nn.Module):
    def forward(self, x):
        while True:
            pass
