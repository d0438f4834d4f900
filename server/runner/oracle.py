"""The same call in float64, against which float32's own error is seen."""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from . import captured as own
from .loading import convert

#: Inputs, parameters and what lies between them take about so many times the inputs' and parameters' own memory.
_MEMORY_FACTOR = 6


def _double(tensor: Any) -> Any:
    """A tensor in double precision, complex ones too."""
    if own.is_complex(tensor):
        return own.to(tensor, torch.complex128)
    return convert(tensor, torch.float64)


class _InDouble:
    """A module in double precision on a device, and as it was afterwards.

    It is changed in place and not copied: a function that the module keeps may hold on to its parts, and would go on with the old ones.
    """

    def __init__(self, module: Any, where: torch.device) -> None:
        self._module, self._where = module, where
        self._parameters: List[Tuple[Any, Any]] = []
        #: Dictionaries of the module's parts, and what was in them.
        self._kept: List[Tuple[Dict[str, Any], Dict[str, Any]]] = []

    def __enter__(self) -> None:
        if self._module is None:
            return
        self._parameters = [(parameter, parameter.data) for parameter in self._module.parameters()]
        for part in self._module.modules():
            self._kept += [(vars(part), dict(vars(part))), (part._buffers, dict(part._buffers))]
            for name, value in list(vars(part).items()):
                # A tensor that is no buffer, which some modules carry from call to call.
                if isinstance(value, own.Tensor):
                    vars(part)[name] = _double(own.to(value, self._where))
            for name, buffer in part._buffers.items():
                if buffer is not None:
                    # What is counted in training mode is counted in a copy.
                    part._buffers[name] = own.clone(buffer)
        self._module.to(self._where).double()

    def __exit__(self, *_: Any) -> None:
        for parameter, data in self._parameters:
            parameter.data = data
        for present, before in self._kept:
            present.clear()
            present.update(before)


def _run(function: Any, module: Any, build: Callable[[List[Any]], Any], tensors: List[Any], where: torch.device) -> Any:
    moved = [_double(own.to(tensor, where)) for tensor in tensors]
    positional, named = build(moved)
    before = own.get_default_dtype()
    # What the code makes itself, such as the first state of a recurrent layer, is of the default type.
    own.set_default_dtype(torch.float64)
    try:
        with own.no_grad(), _InDouble(module, where):
            return function(*positional, **named)
    finally:
        own.set_default_dtype(before)


def _needs(module: Any, tensors: List[Any]) -> int:
    held = list(tensors) + (list(module.parameters()) if module is not None else [])
    return _MEMORY_FACTOR * 8 * sum(own.count_of(tensor) for tensor in held)


def compute(function: Any, module: Any, build: Callable[[List[Any]], Tuple[Tuple[Any, ...], Dict[str, Any]]], tensors: List[Any], seed: int,
            device: own.Device, on_device: Optional[bool]) -> Any:
    """What the call returns in float64: on the device alone, on the CPU alone, or, where neither is asked for, wherever it fits.

    Raises:
        MemoryError: if it does not fit into the device's memory, and must be computed there.
    """
    if device.is_cuda and on_device is not False:
        try:
            if _needs(module, tensors) < device.free():
                own.seed(seed)
                result = _run(function, module, build, tensors, device.torch)
                device.wait()
                return result
        except torch.cuda.OutOfMemoryError:
            pass
        torch.cuda.empty_cache()
        if on_device:
            raise MemoryError("it does not fit into the memory of %s" % device.name)
    own.seed(seed)
    return _run(function, module, build, tensors, torch.device("cpu"))
