"""Runs an edited file whose candidate has parts of its own beside the original one: `parts_check.py ORIGINAL EDITED`."""
import copy, importlib.util, pickle, sys
import torch


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


original, edited = (load(path, name) for path, name in zip(sys.argv[1:3], ["original", "edited"]))
new, old = edited.Stack(4), original.Stack(4)
keys = list(new.state_dict())
assert keys == list(old.state_dict())
old.load_state_dict(new.state_dict(), strict=True)
x = torch.randn(2, 4)
torch.gates = 0


def used(module):
    before = torch.gates
    return module(x), torch.gates - before


with torch.no_grad():
    for _ in range(2):
        y, count = used(new)
        assert count == 4 and torch.allclose(y, old(x), atol=1e-6), (count, y, old(x))
    for parameter in new.parameters():
        parameter.mul_(1.5)
    old.load_state_dict(new.state_dict())
    y, count = used(new)
    assert count == 4 and torch.allclose(y, old(x), atol=1e-6), "parameters are shared"
    assert type(new.first) is edited.Block and list(new.state_dict()) == keys and "seen" not in vars(new.first)
    # A part that is exchanged is the one that is used.
    for change in (lambda module, file: setattr(module, "first", file.Block(4)), lambda module, file: module.rest.__setitem__(1, file.Block(4))):
        change(new, edited), change(old, original)
        old.load_state_dict(new.state_dict())
        y, count = used(new)
        assert count == 4 and torch.allclose(y, old(x), atol=1e-6), "an exchanged part"
    new.rest[0].slope = 0.7
    assert used(new)[1] == 0, "a part's settings"
    new.rest[0].slope = 0.1
    assert used(new)[1] == 4
    new.rest.append(edited.Block(4))
    assert used(new)[1] == 0, "a part more"
    del new.rest[2]
    assert used(copy.deepcopy(new))[1] == 4 and used(pickle.loads(pickle.dumps(new)))[1] == 4
assert used(new)[1] == 0, "gradients"
print("good")
