import torch


class Model(torch.nn.Module):
    def forward(self, *values):
        return values


def get_init_inputs():
    return []
