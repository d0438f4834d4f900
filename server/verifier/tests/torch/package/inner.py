import torch

from .constant import ANSWER


class Model(torch.nn.Module):
    def forward(self, x):
        return x + ANSWER


def get_init_inputs():
    return []
