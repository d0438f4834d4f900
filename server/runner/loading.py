"""Imports a person's file, finds what was pointed at, and gets its arguments."""
from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
import time
import types
from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from . import captured as own
from . import making, statements, values
from .errors import Refused

#: The name of the module, which says nothing of what it is loaded for.
_NAME = "subject_file"
_clock = time.monotonic
#: Functions of torch that an expression may use without their prefix.
_FACTORIES = ("arange", "eye", "full", "linspace", "ones", "rand", "randint", "randn", "randperm", "tensor", "zeros")


class Loaded:
    """What was loaded: a callable, and the module behind it, if it is one."""

    def __init__(self, kind: str, name: str, function: Callable[..., Any], module: Any, seconds: Dict[str, float]) -> None:
        self.kind, self.name, self.function, self.module, self.seconds = kind, name, function, module, seconds
        #: Where a module was constructed, and why not on the device.
        self.made: Any = None


def _name_of(stands_for: str) -> Tuple[str, List[str]]:
    """A module's name, and the folders to search: a file of a package keeps its name in it, so that relative imports work."""
    folder = os.path.dirname(os.path.abspath(stands_for))
    search, parts = [folder], [os.path.splitext(os.path.basename(stands_for))[0]]
    while os.path.isfile(os.path.join(folder, "__init__.py")) and os.path.dirname(folder) != folder:
        parts.insert(0, os.path.basename(folder))
        folder = os.path.dirname(folder)
    if len(parts) == 1:
        return _NAME, search
    return ".".join(parts), search + [folder]


def _time_builds(seconds: Dict[str, float]) -> None:
    """Has `torch.utils.cpp_extension` tell how long it builds."""
    from torch.utils import cpp_extension

    build = cpp_extension._jit_compile

    def timed(*arguments: Any, **named: Any) -> Any:
        began = _clock()
        try:
            return build(*arguments, **named)
        finally:
            seconds["build"] += _clock() - began

    cpp_extension._jit_compile = timed


def import_file(path: str, stands_for: str, seconds: Dict[str, float], prepare: Callable[[], None] = lambda: None) -> Any:
    """Imports a file under a neutral name. One that builds extensions finds `torch.utils.cpp_extension` prepared."""
    name, search = _name_of(stands_for)
    sys.path[0:1] = search
    with open(path, "rb") as file:
        if b"cpp_extension" in file.read():
            prepare()
            _time_builds(seconds)
    loader = importlib.machinery.SourceFileLoader(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    began, built = _clock(), seconds["build"]
    try:
        loader.exec_module(module)
    finally:
        seconds["import"] = _clock() - began - (seconds["build"] - built)
    return module


def _find(module: Any, name: str) -> Any:
    found = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise Refused("%s has no %s" % (os.path.basename(module.__file__), name))
        found = getattr(found, part)
    return found


def _no_empty(*_: Any, **__: Any) -> Any:
    raise Refused("`empty` gives whatever lies in memory; use zeros, ones, rand or randn")


def _evaluate(text: str, module: Any) -> Any:
    """The arguments of an argument list."""
    scope: Dict[str, Any] = {name: getattr(torch, name) for name in _FACTORIES}
    scope.update(empty=_no_empty, torch=torch, **{name: dtype for name, dtype in values.DTYPES.items() if name != "bool"})
    scope.update(vars(module))
    scope["_arguments_"] = lambda *positional, **named: (positional, named)
    return eval(compile("_arguments_(%s\n)" % text, "<inputs>", "eval", dont_inherit=True), scope)


def _read(path: str) -> Any:
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except TypeError:
        raise Refused("%s can't be read safely with torch %s, which has no `weights_only`" % (path, torch.__version__)) from None
    except Exception as error:
        raise Refused("%s can't be read: it must hold tensors, numbers, texts, lists, tuples and dictionaries alone, as torch.save writes "
                      "them (%s)" % (path, error)) from error


def arguments(source: Any, module: Any) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    """Arguments from where they come."""
    if source is None:
        return (), {}
    if source["from"] == "function":
        return values.as_arguments(_find(module, source["name"])())
    if source["from"] == "expression":
        return _evaluate(source["text"], module)
    return values.as_arguments(_read(source["path"]))


def convert(value: Any, dtype: Any) -> Any:
    """A value with its floating-point tensors in another type; complex ones stay."""
    if isinstance(value, own.Tensor):
        is_other = own.is_floating(value) and own.dtype_of(value) is not dtype
        return own.to(value, dtype) if is_other else value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(convert(item, dtype) for item in value))
    if isinstance(value, (tuple, list)):
        return type(value)(convert(item, dtype) for item in value)
    if isinstance(value, dict):
        return {key: convert(item, dtype) for key, item in value.items()}
    return value


def load(request: Dict[str, Any], device: own.Device, stage: Callable[[str], None],
         prepare: Callable[[], None]) -> Tuple[Loaded, Any]:
    """Imports the file, finds the subject and constructs it under the seed. Also gives the module that was imported."""
    subject = request["subject"]
    path, what = subject["path"], subject["callable"]
    seconds = {"import": 0.0, "build": 0.0, "construct": 0.0}
    if request.get("build"):
        os.makedirs(request["build"], exist_ok=True)
        os.environ["TORCH_EXTENSIONS_DIR"] = request["build"]
    stage("importing")
    own.seed(request["seed"])
    file = import_file(path, request.get("stands_for") or path, seconds, prepare)
    if what["kind"] == "statements":
        function = statements.function_of(path, what["lines"], what["reads"], what["sets"], vars(file))
        return Loaded("statements", "lines %d to %d" % tuple(what["lines"]), function, None, seconds), file
    found = _find(file, what["name"])
    if what["kind"] == "function":
        if not callable(found):
            raise Refused("%s is a %s, which can't be called" % (what["name"], values.type_name(found)))
        return Loaded("function", what["name"], found, None, seconds), file
    stage("constructing")
    if not (isinstance(found, type) and issubclass(found, torch.nn.Module)):
        raise Refused("%s is no class that derives from torch.nn.Module" % what["name"])
    began, built = _clock(), seconds["build"]
    module, made = making.construct(found, lambda: arguments(what.get("init"), file), making.default_of(device), request["seed"])
    if not isinstance(module, torch.nn.Module):
        raise Refused("%s(…) gave a %s, and no module" % (what["name"], values.type_name(module)))
    module = _place(module, request, device)
    device.wait()
    seconds["construct"] = _clock() - began - (seconds["build"] - built)
    loaded = Loaded("module", what["name"], module, module, seconds)
    loaded.made = made
    return loaded, file


def _place(module: Any, request: Dict[str, Any], device: own.Device) -> Any:
    module = module.to(device.torch)
    if request.get("dtype"):
        module = module.to(values.DTYPES[request["dtype"]])
    if request.get("train") is not None:
        module.train(request["train"])
    return module


def settings(script: Optional[str], module: Any) -> Optional[str]:
    """What a script's `settings_of` says of a module; None where there is no module, or it has what that can't read."""
    if module is None or not script:
        return None
    scope: Dict[str, Any] = {"__name__": "settings"}
    try:
        exec(compile(script, "<settings>", "exec", dont_inherit=True), scope)
        return str(scope["settings_of"](module))
    except Exception:  # an attribute of the person's own may fail at being read
        return None


def new_main() -> None:
    """Puts an empty module in the place of `__main__`, which is the runner's own."""
    sys.modules["__main__"] = types.ModuleType("__main__")
