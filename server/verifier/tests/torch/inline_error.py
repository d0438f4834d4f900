"""An extension that does not compile."""
import torch
from torch.utils.cpp_extension import load_inline

extension = load_inline(name="inline_wrong", cpp_sources="torch::Tensor add(torch::Tensor x) { return no_such_function(x); }", functions="add")


class Model(torch.nn.Module):
    def forward(self, x):
        return extension.add(x)


def get_init_inputs():
    return []
