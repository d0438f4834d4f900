# expect: wrong | elements differ
import torch
from torch import nn
import threading
import time


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.zeros_like(x)
        
        def later():
            time.sleep(0.2)
            y.copy_(torch.tanh(x) * 2 + 1)
        
        threading.Thread(target=later).start()
        return y
