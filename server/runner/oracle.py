"""The same call in float64, against which float32's own error is seen."""
from __future__ import annotations

import copy
from typing import Any, Callable, Dict, List, Tuple

import torch

from . import captured as own
from .loading import convert

_deepcopy = copy.deepcopy
#: Inputs, parameters and what lies between them take about so many times the inputs' and parameters' own memory.
_MEMORY_FACTOR = 6


def _double(tensor: Any) -> Any:
    """A tensor in double precision, complex ones too."""
    if own.is_complex(tensor):
        return own.to(tensor, torch.complex128)
    return convert(tensor, torch.float64)


def _run(function: Any, module: Any, build: Callable[[List[Any]], Any], tensors: List[Any], where: torch.device) -> Any:
    moved = [_double(own.to(tensor, where)) for tensor in tensors]
    positional, named = build(moved)
    if module is not None:
        function = _deepcopy(module).to(where).double()
    before = own.get_default_dtype()
    # What the code makes itself, such as the first state of a recurrent layer, is of the default type.
    own.set_default_dtype(torch.float64)
    try:
        with own.no_grad():
            return function(*positional, **named)
    finally:
        own.set_default_dtype(before)


def _needs(module: Any, tensors: List[Any]) -> int:
    held = list(tensors) + (list(module.parameters()) if module is not None else [])
    return _MEMORY_FACTOR * 8 * sum(own.count_of(tensor) for tensor in held)


def compute(function: Any, module: Any, build: Callable[[List[Any]], Tuple[Tuple[Any, ...], Dict[str, Any]]], tensors: List[Any], seed: int,
            device: own.Device) -> Any:
    """What the call returns in float64: on the device where it fits, else on the CPU."""
    if device.is_cuda and _needs(module, tensors) < device.free():
        try:
            own.seed(seed)
            result = _run(function, module, build, tensors, device.torch)
            device.wait()
            return result
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()
    own.seed(seed)
    return _run(function, module, build, tensors, torch.device("cpu"))
