# expect: crashed verify/crashed | exited with status 0
import torch
from torch import nn
import os


class ModelNew(nn.Module):
    def forward(self, x):
        os._exit(0)
