"""Runs an edited module with tied weights and a buffer beside its state dictionary: `held_check.py ORIGINAL EDITED`."""
import copy, importlib.util, sys
import torch


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


original, edited = (load(path, name) for path, name in zip(sys.argv[1:3], ["original", "edited"]))
x = torch.arange(5)
torch.used = 0


def used(module):
    """How often the verified code ran; what comes of it is what comes of the original, with the same tensors."""
    before = torch.used
    same = original.Tied(8)
    same.__dict__ = vars(module)
    y = module(x)
    assert torch.allclose(y, same(x), atol=1e-6)
    return torch.used - before


with torch.no_grad():
    one = edited.Tied(8)
    weight, scale = one.emb.weight, one.scale
    assert used(one) == used(one) == used(copy.deepcopy(one)) == 1, "a verified call"

    def changed(what, change, back):
        change()
        assert used(one) == 0, what
        back()
        assert used(one) == 1, "after " + what

    untied = torch.nn.Parameter(torch.rand_like(weight))
    changed("weights that are no longer one", lambda: setattr(one.out, "weight", untied), lambda: setattr(one.out, "weight", weight))
    changed("another part in the place of a shared one", lambda: setattr(one, "two", torch.nn.Linear(4, 4)), lambda: setattr(one, "two", one.one))
    changed("a buffer's shape", lambda: setattr(one, "scale", torch.full((3,), 2.0)), lambda: setattr(one, "scale", scale))
    changed("a buffer's type", lambda: setattr(one, "scale", scale.double()), lambda: setattr(one, "scale", scale))
    changed("the data of a buffer", lambda: setattr(scale, "data", torch.full((4,), 2.0)), lambda: setattr(scale, "data", torch.full((2,), 2.0)))
    changed("a buffer more", lambda: one.register_buffer("more", x, persistent=False), lambda: delattr(one, "more"))
    one.scale = torch.full((2,), 3.0)
    assert used(one) == 1, "another buffer of the same kind"
    assert used(edited.Tied(8, tied=False)) == used(edited.Tied(8, beside=(3,))) == 0
print("good")
