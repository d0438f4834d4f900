# expect: crashed | SIGKILL
import torch
from torch import nn
import os
import signal


class ModelNew(nn.Module):
    def forward(self, x):
        os.kill(os.getpid(), signal.SIGKILL)
