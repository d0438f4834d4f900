"""Runs the edited files beside the original one: `check.py ORIGINAL EDITED BROKEN`."""
import copy, importlib.util, pickle, sys, warnings
import torch


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


original, edited, broken = (load(path, name) for path, name in zip(sys.argv[1:4], ["original", "edited", "broken"]))
torch.manual_seed(0)
torch.used = 0


def used(call, *arguments, **keywords):
    before = torch.used
    return call(*arguments, **keywords), torch.used - before


new, old = edited.Scaled(4), original.Scaled(4)
assert list(new.state_dict()) == list(old.state_dict())
old.load_state_dict(new.state_dict(), strict=True)
x = torch.randn(2, 4)
with torch.no_grad():
    for _ in range(2):
        y, count = used(new, x)
        assert count == 1 and torch.allclose(y, old(x)), "a verified call"
    new.fc.weight.mul_(2), old.fc.weight.mul_(2)
    y, count = used(new, x)
    assert count == 1 and torch.allclose(y, old(x)), "parameters are shared"
    for name, arguments, keywords in [
        ("shape", (torch.randn(3, 4),), {}),
        ("layout", (torch.randn(4, 2).t(),), {}),
        ("a tensor's class", (type("T", (torch.Tensor,), {})(x),), {}),
        ("an argument", (x,), {"scale": 3.0}),
        ("its type", (x,), {"scale": 2}),
        ("a mask", (x, torch.ones(2, 4)), {}),
    ]:
        y, count = used(new, *arguments, **keywords)
        assert count == 0 and torch.allclose(y, old(*arguments, **keywords)), name
    for change, back in [(new.eval, new.train), (new.fc.eval, new.fc.train)]:
        change()
        assert used(new, x)[1] == 0, "mode"
        back()
    hook = new.fc.register_forward_hook(lambda *_: None)
    assert used(new, x)[1] == 0, "hooks"
    hook.remove()
    new.slope = 0.3
    assert used(new, x)[1] == 0, "settings"
    new.slope = 0.1
    with torch.autocast("cpu"):
        assert used(new, x)[1] == 0, "autocast"
    assert used(torch.jit.trace(new, x), x)[1] == 0, "traces hold the original"
    assert used(type("Sub", (edited.Scaled,), {})(4), x)[1] == 0, "subclasses"
    assert used(edited.Scaled(4, 0.2), x)[1] == 0, "other settings"
    assert used(copy.deepcopy(new), x)[1] == 1 and used(pickle.loads(pickle.dumps(new)), x)[1] == 1
assert used(new, x)[1] == 0, "gradients"
assert list(new.state_dict()) == list(old.state_dict()) and "last" not in vars(new)
double = copy.deepcopy(new).double()
assert used(double, x.double())[1] == 0, "dtype"

assert torch.allclose(edited.softplus(x), original.softplus(x), atol=1e-6) and torch.used_softplus
assert edited.softplus.__doc__ == "Smooth."
torch.used_softplus = False
assert torch.equal(edited.softplus(x[:1]), original.softplus(x[:1])) and not torch.used_softplus
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(3):
        assert torch.equal(broken.softplus(x), original.softplus(x))
assert len(caught) == 1 and "no_such_compiler" in str(caught[0].message), caught

w = torch.randn(4, 4)
for got, expected in zip(edited.steps(x, w), original.steps(x, w)):
    assert torch.allclose(got, expected)
assert torch.used_steps
print("good")
