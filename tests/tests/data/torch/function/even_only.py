# expect: wrong | of case 2
import torch
from torch import nn
def rows(x, power=1):
    half = x.shape[1] // 2
    return (x[:, :half] ** power).sum(dim=1) + (x[:, half:2 * half] ** power).sum(dim=1)
