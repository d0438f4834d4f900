"""A C++ extension that needs none of torch's headers, which not every installation has: built by torch, called through ctypes."""
import ctypes
import os
import tempfile

import torch
from torch.utils import cpp_extension

SOURCE = r"""
extern "C" void add_one(const float *x, float *y, long count) {
    for (long i = 0; i < count; i++) y[i] = x[i] + 1;
}
"""


def build(name, source):
    path = os.path.join(tempfile.mkdtemp(), name + ".cpp")
    with open(path, "w") as file:
        file.write(source)
    cpp_extension.load(name=name, sources=[path], is_python_module=False)
    folder = os.path.join(os.environ["TORCH_EXTENSIONS_DIR"], name)
    return ctypes.CDLL(os.path.join(folder, name + ".so"))


library = build("add_one", SOURCE)


class Model(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        pointers = (ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(y.data_ptr()))
        library.add_one(*pointers, ctypes.c_long(x.numel()))
        return y


def get_init_inputs():
    return []
