"""A module whose functions are C++ of an extension, with an argument that its function refuses."""
import torch
from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <vector>
torch::Tensor add(torch::Tensor x, double by) {
  TORCH_CHECK(x.dim() == 1, "x has ", x.dim(), " dimensions");
  return x + by;
}
std::vector<torch::Tensor> halves(const torch::Tensor& x) { return {x / 2, x / 2}; }
"""

extension = load_inline(name="inline_parts", cpp_sources=[SOURCE], functions={"add": "adds", "halves": ""}, extra_cflags=["-O1"])


class Model(torch.nn.Module):
    def forward(self, x):
        one, two = extension.halves(extension.add(x, 3))
        words = []
        for wrong in (lambda: extension.add("x", 1.0), lambda: extension.add(x.reshape(1, -1), 1.0), lambda: extension.other):
            try:
                wrong()
            except Exception as error:
                words.append("%s: %s" % (type(error).__name__, str(error).splitlines()[0]))
        return one + two, extension.add.__doc__, extension.__name__, words


def get_inputs():
    return [torch.ones(4)]


def get_init_inputs():
    return []
