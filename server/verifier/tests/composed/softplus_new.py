import torch
import torch.nn.functional as F


def softplus_new(x, beta=1.0):
    torch.used_softplus = True
    return F.softplus(x, beta)
