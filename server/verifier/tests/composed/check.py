"""Runs the edited files beside the original one: `check.py ORIGINAL EDITED BROKEN`."""
import copy, gc, importlib.util, pickle, sys, warnings
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


# Each change is made to a module that was looked at before, and taken back, after which the verified code runs again.
with torch.no_grad():
    one = edited.Scaled(4)
    weight, shift, fc = one.fc.weight, one.shift, one.fc

    def changed(what, change, back, arguments=(x,), runs=0):
        assert used(one, x)[1] == 1, "before " + what
        change()
        count = torch.used
        try:
            one(*arguments)
        except (RuntimeError, AttributeError):
            pass  # It was the original code that raised, if the verified one was not used.
        assert torch.used - count == runs, what
        back()
        assert used(one, x)[1] == 1, "after " + what

    changed("half", lambda: one.half().float().half(), one.float, (x.half(),))
    changed("to", lambda: one.to(torch.float64), lambda: one.to(torch.float32))
    changed("a parameter of another type", lambda: setattr(one.fc, "weight", torch.nn.Parameter(weight.double())), lambda: setattr(one.fc, "weight", weight))
    changed("a parameter of another shape", lambda: setattr(weight, "data", torch.ones(1, 4)), lambda: setattr(weight, "data", torch.ones(4, 4)))
    changed("a layout", lambda: setattr(weight, "data", torch.ones(8, 4)[::2]), lambda: setattr(weight, "data", torch.ones(4, 4)))
    changed("a parameter more", lambda: setattr(one, "more", torch.nn.Parameter(x)), lambda: delattr(one, "more"))
    changed("a buffer", lambda: setattr(one, "shift", shift.double()), lambda: setattr(one, "shift", shift))
    changed("a part of another class", lambda: setattr(one, "fc", torch.nn.Sequential(fc)), lambda: setattr(one, "fc", fc))
    changed("a part's class", lambda: setattr(fc, "__class__", type("Own", (torch.nn.Linear,), {})), lambda: setattr(fc, "__class__", torch.nn.Linear))
    changed("a part of other settings", lambda: setattr(fc, "in_features", 5), lambda: setattr(fc, "in_features", 4))
    changed("its class", lambda: setattr(one, "__class__", type("Own", (edited.Scaled,), {})), lambda: setattr(one, "__class__", edited.Scaled))
    changed("training of a part", fc.eval, fc.train)
    changed("evaluation", one.eval, one.train)
    changed("a list", lambda: one.sizes.append(5), lambda: one.sizes.pop())
    changed("a list in a list", lambda: one.sizes[1].append(5), lambda: one.sizes[1].pop())
    changed("a setting", lambda: setattr(one, "slope", 0.2), lambda: setattr(one, "slope", 0.1))
    changed("a setting that is gone", lambda: delattr(one, "slope") or setattr(one, "steep", 0.1) or setattr(one, "forward", lambda _: x), lambda: delattr(one, "steep") or delattr(one, "forward") or setattr(one, "slope", 0.1))
    handles = []
    for register in (fc.register_forward_hook, fc.register_forward_pre_hook):
        changed("a hook", lambda: handles.append(register(lambda *_: None)), lambda: handles.pop().remove())
    # Another parameter of the same kind is as good, and is the one that is used.
    other = torch.nn.Parameter(torch.full((4, 4), 3.0))
    one.fc.weight = other
    y, count = used(one, x)
    assert count == 1 and torch.allclose(y, torch.nn.functional.leaky_relu(x @ other.t() + one.fc.bias, 0.1) * 2 + one.shift, atol=1e-5)
    guard = edited._verified_scaled
    count = len(guard.instances)
    del one, fc
    gc.collect()
    assert len(guard.instances) < count, "a module that is gone is forgotten"

two = edited.Scaled(4)
for parameter in two.parameters():
    parameter.requires_grad_(False)
assert used(two, x)[1] == 1, "nothing needs gradients"
assert used(two, x.clone().requires_grad_())[1] == 0, "an input's gradients"
two.fc.bias.requires_grad_(True)
y, count = used(two, x)
assert count == 0 and y.requires_grad, "a parameter's gradients"
with torch.inference_mode():
    assert used(two, x)[1] == 1, "no gradients are kept"
two.fc.bias.requires_grad_(False)
with torch.autograd.forward_ad.dual_level():
    dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
    y, count = used(two, dual)
    assert count == 0 and torch.autograd.forward_ad.unpack_dual(y).tangent is not None, "derivatives forward"
assert used(two, x)[1] == 1
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
