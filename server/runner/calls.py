"""Calls the subject once, and sees what it did."""
from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import torch

from . import captured as own
from . import values
from .errors import Refused, StateError

#: What malloc's memory is filled with is the complement of this: 0x7F, which makes 3.4e38 of a float32 and NaN of a float16.
_MALLOC_BYTE = 0x80
#: Each byte of poisoned GPU memory: NaN in every floating-point type, -1 in every signed integer.
_GPU_BYTE = 0xFF
#: As much memory of the GPU is poisoned at most, in bytes, and this part of what is free.
_MOST_POISON, _POISON_SHARE = 4 << 30, 4
#: As much of what a call returned is watched during the next, in bytes.
_MOST_KEPT = 256 << 20
#: Small blocks come from a pool of their own (`kSmallSize` of c10/cuda/CUDACachingAllocator.cpp: 1 MiB).
_SMALL_BLOCK, _SMALL_BLOCKS = 256 << 10, 64


def state_items(module: Any) -> List[Tuple[str, Any]]:
    """Names and tensors of a module's state dictionary."""
    if module is None:
        return []
    return [(name, value) for name, value in module.state_dict().items() if isinstance(value, own.Tensor)]


def _watched_items(module: Any) -> List[Tuple[str, Any]]:
    """The state, with buffers that are not in the state dictionary."""
    items = state_items(module)
    if module is not None:
        known = {name for name, _ in items}
        items += [(name, own.detach(value)) for name, value in module.named_buffers() if name not in known]
    return items


def _bits(tensor: Any) -> Any:
    """A tensor's bytes, so that a NaN equals itself."""
    flat = own.reshape(tensor, (-1,))
    return flat if own.count_of(tensor) == 0 else flat.view(torch.uint8)


def _same(before: Any, after: Any) -> bool:
    alike = own.dtype_of(before) is own.dtype_of(after) and own.size_of(before) == own.size_of(after)
    if not alike or own.device_of(before) != own.device_of(after):
        return False
    one, other = _bits(before), _bits(after)
    # In pieces: a comparison takes as much memory as what it compares.
    pieces = range(0, own.count_of(one), values.PIECE)
    return all(own.equal(one[start:start + values.PIECE], other[start:start + values.PIECE]) for start in pieces)


def copied(flat: values.Flat) -> values.Flat:
    """The same value in memory of its own."""
    copy = values.Flat()
    with own.no_grad():
        copy.tree, copy.tensors = flat.tree, [own.clone(own.detach(tensor)) for tensor in flat.tensors]
    return copy


def are_same(before: values.Flat, after: values.Flat) -> bool:
    """Whether two values are equal in every bit."""
    alike = before.tree == after.tree and len(before.tensors) == len(after.tensors)
    return alike and all(_same(one, own.detach(other)) for one, other in zip(before.tensors, after.tensors))


def set_state(module: Any, tree: Dict[str, Any], tensors: List[Any]) -> None:
    """Sets parameters and buffers in place.

    Raises:
        StateError: with all names that are missing or too many, and all shapes and types that differ.
    """
    wanted = dict((name, tensors[item["i"]]) for name, item in tree["items"] if item["t"] == "tensor")
    present = dict(state_items(module))
    wrong = ["it has no %s" % name for name in wanted if name not in present]
    wrong += ["it has %s, which the reference has not" % name for name in present if name not in wanted]
    for name, value in wanted.items():
        own_value = present.get(name)
        if own_value is None:
            continue
        if own.size_of(own_value) != own.size_of(value):
            wrong.append("%s has the shape %s instead of %s" % (name, list(own.size_of(own_value)), list(own.size_of(value))))
        elif own.dtype_of(own_value) is not own.dtype_of(value):
            wrong.append("%s is %s instead of %s" % (name, own.dtype_of(own_value), own.dtype_of(value)))
    if wrong:
        more = " and %d more" % (len(wrong) - 16) if len(wrong) > 16 else ""
        raise StateError("the state does not fit: %s%s" % ("; ".join(wrong[:16]), more))
    with own.no_grad():
        for name, value in wanted.items():
            own.copy_(present[name], value)


def poison(device: own.Device, sizes: List[int]) -> None:
    """Fills memory that the next call could be given, so that what is returned without being written shows.

    `sizes` are those of earlier outputs, in bytes. On the GPU blocks are taken from torch's allocator, filled and given back, which keeps
    them for the next to ask. On the CPU malloc does it, until `unpoison`.
    """
    if not device.is_cuda:
        own.perturb_malloc(_MALLOC_BYTE)
        return
    budget = min(_MOST_POISON, device.free() // _POISON_SHARE)
    blocks: List[Any] = []
    wanted = [size for size in sizes for _ in range(2)] + [_SMALL_BLOCK] * _SMALL_BLOCKS
    size = _MOST_POISON // 2
    while size >= 2 << 20:
        wanted.append(size)
        size //= 2
    for size in wanted:
        if 0 < size <= budget:
            try:
                block = own.empty((size,), dtype=torch.uint8, device=device.torch)
            except RuntimeError:  # out of memory: what is poisoned by now must do
                break
            own.fill_(block, _GPU_BYTE)
            blocks.append(block)
            budget -= size
    device.wait()


def unpoison(device: own.Device) -> None:
    """Ends what `poison` began."""
    if not device.is_cuda:
        own.perturb_malloc(0)


def _places(tensors: List[Any]) -> Dict[int, int]:
    return {own.data_ptr(tensor): place for place, tensor in enumerate(tensors) if own.count_of(tensor)}


def _seen(outputs: List[Any], inputs: List[Any]) -> List[Dict[str, Any]]:
    places = _places(inputs)
    return [
        {
            "kind": "torch.Tensor" if type(tensor) is own.Tensor else values.type_name(tensor),
            "device": str(own.device_of(tensor)),
            "requires_grad": bool(own.wants_grad(tensor)),
            "shares_input": places.get(own.data_ptr(tensor)),
        }
        for tensor in outputs
    ]


class Returned:
    """What the last call returned, and whether the next one changes it: whoever called may still have it."""

    def __init__(self) -> None:
        self._tensors: List[Any] = []
        self._copies: List[Any] = []

    def keep(self, tensors: List[Any]) -> None:
        """Takes what a call returned, as far as it is not too much."""
        self._tensors, total = [], 0
        for tensor in tensors:
            total += own.count_of(tensor) * tensor.element_size()
            if total <= _MOST_KEPT:
                self._tensors.append(own.detach(tensor))

    def copy(self) -> None:
        """Notes what it is now, after inputs and state were set and before the call."""
        with own.no_grad():
            self._copies = [own.clone(tensor) for tensor in self._tensors]

    def is_changed(self) -> bool:
        """Whether it is otherwise since."""
        copies, self._copies = self._copies, []
        return not all(_same(copy, tensor) for copy, tensor in zip(copies, self._tensors))


def check_modes() -> None:
    """Refuses to go on while something stands between torch's functions and their kernels.

    Raises:
        Refused: if a dispatch mode or a function mode was left on.
    """
    if own.modes():
        raise Refused("a torch dispatch or function mode was left on, through which later results could be made up")


def _differentiate(outputs: List[Any], grads: List[Any], inputs: List[Any], module: Any) -> values.Flat:
    """Gradients of floating-point inputs and of parameters."""
    floating = [tensor for tensor in outputs if own.is_floating(tensor) or own.is_complex(tensor)]
    if len(floating) != len(grads):
        raise Refused("%d gradients for %d floating-point outputs" % (len(grads), len(floating)))
    pairs = [(tensor, grad) for tensor, grad in zip(floating, grads) if own.wants_grad(tensor)]
    names = ["input.%d" % place for place, tensor in enumerate(inputs) if own.wants_grad(tensor)]
    leaves = [tensor for tensor in inputs if own.wants_grad(tensor)]
    for name, parameter in (module.named_parameters() if module is not None else ()):
        if own.wants_grad(parameter):
            names.append("parameter." + name)
            leaves.append(parameter)
    found: List[Optional[Any]] = [None] * len(leaves)
    if pairs and leaves:
        found = list(own.gradients([tensor for tensor, _ in pairs], leaves, [grad for _, grad in pairs], allow_unused=True))
    return values.flatten_named(list(zip(names, found)), "gradients")


class Call:
    """One call: what is given to it, and what comes of it."""

    def __init__(self, function: Any, module: Any, device: own.Device) -> None:
        self._function, self._module, self._device = function, module, device

    def make(self, arguments: Tuple[Tuple[Any, ...], Dict[str, Any]], inputs: List[Any], request: Dict[str, Any], grads: Optional[List[Any]],
             sizes: List[int], watch: own.Watch) -> Tuple[Dict[str, values.Flat], Dict[str, Any]]:
        """Makes the call. Gives values by their names, and what was seen."""
        positional, named = arguments
        device = self._device
        before = [(name, own.clone(value)) for name, value in _watched_items(self._module)]
        threads, processes = own.count_threads(), own.count_processes()
        if grads is not None:
            for tensor in inputs:
                if own.is_floating(tensor) or own.is_complex(tensor):
                    own.requires_grad_(tensor)
        if device.is_cuda:
            torch.cuda.reset_peak_memory_stats()
        own.seed(request["seed"])
        if request["poison"]:
            poison(device, sizes)
        try:
            with own.no_grad() if grads is None else own.enable_grad():
                result = self._function(*positional, **named)
                device.wait()
        finally:
            unpoison(device)
        check_modes()
        flat: Dict[str, values.Flat] = {"outputs": values.flatten(result, "the output")}
        outputs = flat["outputs"].tensors
        seen = {
            "outputs": _seen(outputs, inputs),
            "threads": [threads, own.count_threads()],
            "processes": [processes, own.count_processes()],
            "peak_bytes": int(torch.cuda.max_memory_allocated()) if device.is_cuda else None,
        }
        if grads is not None:
            flat["grads"] = _differentiate(outputs, grads, inputs, self._module)
            device.wait()
        seen["changed"] = watch.changed()
        known = dict(before)
        changed = [(name, value) for name, value in _watched_items(self._module) if name not in known or not _same(known[name], value)]
        flat["state_after"] = values.flatten_named(changed, "the state")
        return flat, seen
