"""Where the runner draws inputs and makes modules. Run with the folder of the runner; ends with a traceback where something is not so.

The "device" is `meta`, which every torch has: what is drawn there has no numbers, so a wrong turn shows at once. Torch before 2.0 has no default
device; there a function mode stands for one.
"""
import importlib
import importlib.util
import sys
import types

import torch


def runner(folder):
    spec = importlib.util.spec_from_file_location("stitchcuda_runner", folder + "/__init__.py", submodule_search_locations=[folder])
    package = importlib.util.module_from_spec(spec)
    sys.modules["stitchcuda_runner"] = package
    spec.loader.exec_module(package)
    return [importlib.import_module("stitchcuda_runner." + name) for name in ("drawing", "making", "captured")]


drawing, making, own = runner(sys.argv[1])
HAS_DEFAULT = hasattr(torch.device, "__enter__")

if HAS_DEFAULT:
    PLACE = torch.device("meta")
else:
    from torch.overrides import TorchFunctionMode

    FACTORIES = {torch.rand, torch.randn, torch.zeros, torch.ones, torch.empty, torch.randint, torch.arange, torch.tensor, torch.full}

    class Mode(TorchFunctionMode):
        def __torch_function__(self, function, kinds, arguments=(), named=None):
            named = dict(named or {})
            if function in FACTORIES:
                named.setdefault("device", "meta")
            return function(*arguments, **named)

    class Place:
        def __enter__(self):
            self.mode = Mode()
            self.mode.__enter__()

        def __exit__(self, *error):
            self.mode.__exit__(*error)

        def __eq__(self, other):
            return other == torch.device("meta")

        def __ne__(self, other):
            return other != torch.device("meta")

        def __str__(self):
            return "meta"

    PLACE = Place()


def drawn(get_inputs, place=PLACE, seed=3, on_device=True):
    case = {"inputs": {"from": "function", "name": "get_inputs"}, "dtype": None}
    found = drawing.Drawing(place).draw(case, types.SimpleNamespace(get_inputs=get_inputs, __file__="f.py"), seed, on_device)
    (first, *_), _, made = found
    return first, made


def numpy_inputs():
    try:
        import numpy
    except ImportError:
        return [torch.rand(4, device="cpu")]
    return [torch.from_numpy(numpy.random.rand(4))]


def raises_there():
    x = torch.rand(4)
    if x.device.type == "meta":
        raise RuntimeError("only on the CPU")
    return [x]


x, made = drawn(lambda: [torch.rand(4), 7])
assert x.device.type == "meta" and made == {"on": "meta", "reason": None}, made
for function, words in [
    (lambda: [torch.rand(4, device="cpu")], "says itself"),
    (numpy_inputs, "says itself"),
    (lambda: [torch.rand(4), torch.rand(4, device="cpu")], "says itself"),
    (raises_there, "RuntimeError: only on the CPU"),
]:
    x, made = drawn(function)
    assert x.device.type == "cpu" and made["on"] == "cpu" and words in made["reason"], made

# The first answer must have the form that it has on the processor.
x, made = drawn(lambda: [torch.rand(4 + (torch.rand(1).device.type == "meta" and not HAS_DEFAULT))])
assert HAS_DEFAULT or "other types or shapes" in made["reason"], made
assert drawing.form_of([torch.rand(2, 3)]) != drawing.form_of([torch.rand(3, 2)])
assert drawing.form_of([torch.rand(2, 3)]) != drawing.form_of((torch.rand(2, 3),))
assert drawing.form_of([torch.rand(2, 3)]) != drawing.form_of([torch.rand(3, 2).t()])
assert drawing.form_of({"a": 1}) != drawing.form_of({"a": 1.0})
assert drawing.form_of([torch.rand(2)]) == drawing.form_of([torch.ones(2)])

# Without a device, and where the arguments of a module are asked for, all is as it would be.
first, made = drawn(lambda: [torch.rand(4)], place=None)
again, _ = drawn(lambda: [torch.rand(4)], on_device=False)
torch.manual_seed(3)
assert torch.equal(first, torch.rand(4)) and torch.equal(first, again) and made == {"on": "cpu", "reason": None}, made

# A reason holds for all later draws, and one that is refused once is not tried again.
calls = []


def counted():
    calls.append(torch.rand(1).device.type)
    return [torch.rand(2, device="cpu")]


case = {"inputs": {"from": "function", "name": "counted"}, "dtype": None}
file = types.SimpleNamespace(counted=counted, __file__="f.py")
several = drawing.Drawing(PLACE)
for seed in (1, 2, 3):
    (x,), _, made = several.draw(case, file, seed, True)
    torch.manual_seed(seed)
    torch.rand(1)
    assert made["on"] == "cpu" and torch.equal(x, torch.rand(2)), made
assert calls == ["meta", "cpu", "cpu", "cpu"], calls


class Plain(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(size))
        self.register_buffer("mask", torch.ones(size))
        self.parts = [self.weight]


class Keeps(Plain):
    def __init__(self, size):
        super().__init__(size)
        self.scales = {"of": [torch.ones(2)]}


class Raises(Plain):
    def __init__(self, size):
        super().__init__(size)
        self.largest = float(self.weight.max())


def built(size):
    builds.append(size)
    raise RuntimeError("Error building extension 'x': error")


builds = []
for make, on, words in [(Plain, "meta", None), (Keeps, "cpu", "neither parameter nor buffer"), (Raises, "cpu", "there it raises")]:
    module, made = making.construct(make, lambda: ((3,), {}), PLACE, 5)
    assert module.weight.device.type == on and made["on"] == on, (make, made)
    assert (words or "") in (made["reason"] or ""), made
    plain, made = making.construct(make, lambda: ((3,), {}), None, 5)
    torch.manual_seed(5)
    assert torch.equal(plain.weight, torch.rand(3)) and made == {"on": "cpu", "reason": None}, made
try:
    making.construct(built, lambda: ((3,), {}), PLACE, 5)
except RuntimeError:
    assert builds == [3], "what does not compile is compiled once"
else:
    raise AssertionError("it was swallowed")

# The arguments are those of the processor, wherever the module is made.
seen = []
making.construct(lambda rate: seen.append(rate) or Plain(3), lambda: ((float(torch.rand(1)),), {}), PLACE, 5)
torch.manual_seed(5)
assert seen == [float(torch.rand(1))], seen
assert making.default_of(own.Device("cpu")) is None
print("fine")
