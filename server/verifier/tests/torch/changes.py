"""Changes an input, and hides it from the runner if its argument says so."""
import sys

import torch


class Model(torch.nn.Module):
    def __init__(self, how):
        super().__init__()
        self.how = how

    def forward(self, x, y):
        out = x + y
        x.zero_()
        if self.how == "hides":
            sys.modules["stitchcuda_runner.values"].differs = lambda *_: False
        return out
