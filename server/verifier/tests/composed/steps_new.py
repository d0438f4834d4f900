import torch


def fused(x, w, i, total):
    torch.used_steps = True
    y = torch.mm(x, w)
    return y, total + (y.clamp_min(0) + i)
