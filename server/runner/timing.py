"""Many calls in a row, for the parent's clock.

Nothing here measures time. The parent knows when it asked and when the answer came; the answer holds elements of each call's output at places
that came with the request, so that a call whose result is not there by then is found out.
"""
from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Tuple

import torch

from . import captured as own
from . import calls, values
from .errors import Refused

#: The increment from one call's places to the next, as `Batch::place` of the parent has it.
_WEYL = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


class Sets:
    """Sets of inputs that stay on the device."""

    def __init__(self, l2_bytes: int, device: own.Device) -> None:
        self._device = device
        self._sets: List[Tuple[Any, List[Any]]] = []
        self._flushed = own.empty((l2_bytes,), dtype=torch.uint8, device=device.torch) if l2_bytes else None

    def add(self, tree: Any, tensors: List[Any]) -> None:
        """Adds a set."""
        self._sets.append((tree, tensors))

    def scaled(self, place: int, scale: float, types: Any) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
        """The arguments of a set, in new tensors, floating-point ones times a factor."""
        if not 0 <= place < len(self._sets):
            raise Refused("set %d of %d" % (place, len(self._sets)))
        tree, tensors = self._sets[place]
        return values.unpack_arguments(tree, [_scaled(tensor, scale) for tensor in tensors], types)

    def flush(self) -> None:
        """Drives everything out of the device's cache."""
        if self._flushed is not None:
            own.zero_(self._flushed)


def _scaled(tensor: Any, scale: float) -> Any:
    if not (own.is_floating(tensor) or own.is_complex(tensor)):
        return own.clone(tensor)
    shape, strides = own.size_of(tensor), own.stride_of(tensor)
    if 0 not in strides:
        return own.mul(tensor, scale)
    base = [1 if stride == 0 else size for size, stride in zip(shape, strides)]
    return own.expand(own.mul(own.as_strided(tensor, base, strides), scale), shape)


class Probe:
    """Gathers elements of each call's output at places that the request names."""

    def __init__(self, numbers: List[int], count: int, like: List[Any]) -> None:
        self._numbers, self._count = numbers, count
        self._prepare(like)

    def _prepare(self, tensors: List[Any]) -> None:
        """Computes the places in tensors like these, before the calls rather than between them."""
        self._like, self._found = tensors, []
        self._rows: List[List[Tuple[Any, Any]]] = [[] for _ in range(self._count)]
        for tensor in tensors:
            count, device = own.count_of(tensor), own.device_of(tensor)
            numbers = self._numbers if count else []
            places = [[((n + call * _WEYL) & _MASK) % count for n in numbers] for call in range(self._count)]
            index = torch.tensor(places, dtype=torch.int64).reshape(self._count, len(numbers)).to(device)
            found = own.empty((self._count, len(numbers)), dtype=own.dtype_of(tensor), device=device)
            self._found.append(found)
            for call in range(self._count):
                self._rows[call].append((index[call], found[call]))

    def _fits(self, tensors: List[Any]) -> bool:
        return len(tensors) == len(self._like) and all(
            own.size_of(tensor) == own.size_of(like) and own.dtype_of(tensor) is own.dtype_of(like)
            and own.device_of(tensor) == own.device_of(like)
            for tensor, like in zip(tensors, self._like)
        )

    def gather(self, call: int, tensors: List[Any]) -> None:
        """Takes one call's elements.

        Raises:
            Refused: if it returned another number of tensors, other shapes or types than the first of the batch.
        """
        if not self._fits(tensors):
            if call:
                raise Refused("call %d returned other shapes or types than the first of the batch" % call)
            self._prepare(tensors)
        for tensor, (index, found) in zip(tensors, self._rows[call]):
            if own.count_of(index):
                own.take(tensor, index, out=found)

    def digits(self) -> List[str]:
        """The elements of all calls in hexadecimal digits, for each tensor of the outputs."""
        texts = []
        for found in self._found:
            memory = bytearray(own.count_of(found) * found.element_size())
            if memory:
                own.copy_(own.reshape(own.frombuffer(memory, dtype=own.dtype_of(found)), own.size_of(found)), found)
            texts.append(memory.hex())
        return texts


def run(function: Callable[..., Any], sets: Sets, request: Dict[str, Any], last: Optional[values.Flat], types: Any,
        device: own.Device) -> Tuple[Dict[str, Any], Optional[values.Flat]]:
    """Makes the calls. Gives the answer, and the last call's output."""
    batch, is_empty = request["calls"], request["empty"]
    stand_in = last.tensors if last is not None else [own.empty((1,), device=device.torch)]
    probe = Probe(request["probe"], len(batch), stand_in)
    own.seed(request["seed"])
    with own.no_grad(), own.Pinned(request.get("processor")):
        for number, (place, scale) in enumerate(batch):
            positional, named = sets.scaled(place, scale, types)
            sets.flush()
            if is_empty:
                tensors = stand_in
            else:
                last = values.flatten(function(*positional, **named), "the output")
                tensors = last.tensors
            probe.gather(number, tensors)
        device.wait()
    digits = probe.digits()
    if is_empty:
        return {"outputs": [], "probed": []}, last
    calls.check_modes()
    specs = last.specs()[0] if last is not None else []
    return {"outputs": specs, "probed": digits}, last
