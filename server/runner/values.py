"""Nested values and the memory in which their tensors pass between processes.

The form is that of the parent's `torch::values`: a tree, and a list of tensors that lie one after the other in a region.
"""
from __future__ import annotations

import collections
import dataclasses
import mmap
import os
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import torch

from . import captured as own
from .errors import Refused

#: Torch's types that can be passed, by the parent's names.
DTYPES: Dict[str, torch.dtype] = {
    name: getattr(torch, name)
    for name in ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64", "complex128")
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_SIZES = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "bool": 1,
    "complex64": 8, "complex128": 16,
}
_ALIGNMENT = 64
#: Values are nested no deeper. A list that holds itself is refused by this, too.
_DEEPEST = 64
_MOST_ITEMS = 65536
#: The name of the pair of positional and keyword arguments.
ARGUMENTS = "arguments"
#: A strided tensor that takes more memory than so many times its elements is made contiguous.
_SPARSEST = 8
#: Regions from this size in bytes on are registered with CUDA, so that they are copied without going through a buffer of the driver's.
_PIN_FROM = 1 << 20
#: Bytes that are compared at a time.
PIECE = 64 << 20

_mmap, _close = mmap.mmap, os.close


def dtype_name(dtype: torch.dtype) -> str:
    """Torch's name of a type, without `torch.`."""
    return str(dtype).replace("torch.", "")


class Region:
    """A mapped region of shared memory, which the parent made. It is used again and again, so that its pages are there and registered once."""

    def __init__(self, descriptor: int, size: int, device: own.Device) -> None:
        self._map = _mmap(descriptor, max(size, 1))
        _close(descriptor)
        self._size = size
        self._pinned = 0
        self._device = device
        if device.is_cuda and size >= _PIN_FROM:
            self._pin()

    def _pin(self) -> None:
        pointer = own.data_ptr(own.frombuffer(self._map, dtype=torch.uint8, count=1))
        try:
            # Torch's own wrapper lets other threads run meanwhile, and gives a code of the runtime's.
            if int(torch.cuda.cudart().cudaHostRegister(pointer, self._size, 0)) == 0:
                self._pinned = pointer
                return
            # The refusal is told to whoever launches next, which must not be the person's code.
            self._device.wait()
        except Exception:  # not pinned: the driver copies through a buffer of its own
            pass

    def close(self) -> None:
        """Gives the registration back. The mapping goes with the last tensor that lies in it."""
        if self._pinned:
            torch.cuda.cudart().cudaHostUnregister(self._pinned)
            self._pinned = 0

    def tensor(self, spec: Dict[str, Any]) -> Any:
        """A contiguous tensor that lies in the region."""
        dtype = DTYPES[spec["dtype"]]
        if spec["bytes"] == 0:
            return own.empty(spec["shape"], dtype=dtype, device="cpu")
        count = spec["bytes"] // _SIZES[spec["dtype"]]
        flat = own.frombuffer(self._map, dtype=dtype, count=count, offset=spec["offset"])
        return own.reshape(flat, spec["shape"])


class Regions:
    """The regions that this process has, by the parent's names for them."""

    def __init__(self, device: own.Device) -> None:
        self._device = device
        self._known: Dict[str, Region] = {}

    def take_in(self, described: Sequence[Dict[str, Any]], descriptors: Sequence[int]) -> None:
        """Maps the regions that come with a request, each in the place of an earlier one of its name."""
        for new, descriptor in zip(described, descriptors):
            self.drop([new["name"]])
            self._known[new["name"]] = Region(descriptor, new["size"], self._device)

    def drop(self, names: Sequence[str]) -> None:
        """Forgets regions."""
        for name in names:
            known = self._known.pop(name, None)
            if known is not None:
                known.close()

    def of(self, name: str) -> Region:
        """The region of a name."""
        if name not in self._known:
            raise Refused("there is no region %s" % name)
        return self._known[name]


class Flat:
    """A value taken apart: its tree and its tensors."""

    def __init__(self) -> None:
        self.tree: Any = None
        self.tensors: List[Any] = []
        self._known: Dict[Any, int] = {}
        self._items = 0

    def _tensor(self, value: Any, key: Any) -> Dict[str, Any]:
        place = self._known.get(key)
        if place is None:
            place = self._known[key] = len(self.tensors)
            self.tensors.append(value)
        return {"t": "tensor", "i": place}

    def add(self, value: Any, where: str, depth: int = 0) -> Dict[str, Any]:
        """The tree of a value."""
        self._items += 1
        if depth > _DEEPEST or self._items > _MOST_ITEMS:
            raise Refused("%s: more than %d levels or %d items" % (where, _DEEPEST, _MOST_ITEMS))
        kind = type(value)
        if kind is own.Tensor or kind is own.Parameter:
            check_tensor(value, where)
            return self._tensor(value, id(value))
        if value is None:
            return {"t": "none"}
        if kind is bool:
            return {"t": "bool", "v": value}
        if kind is int:
            return {"t": "int", "v": str(value)}
        if kind is float:
            return {"t": "float", "v": repr(value)}
        if kind is str:
            return {"t": "str", "v": value}
        return self._nested(value, where, depth + 1)

    def _nested(self, value: Any, where: str, depth: int) -> Dict[str, Any]:
        def item(key: Any, part: Any) -> Dict[str, Any]:
            return self.add(part, "%s[%r]" % (where, key), depth)

        if isinstance(value, dict):
            items = [[key if type(key) is str else repr(key), item(key, part)] for key, part in value.items()]
            return {"t": "dict", "items": items}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            names = list(value._fields)
            return {"t": "named", "name": type(value).__name__, "items": [[n, item(n, p)] for n, p in zip(names, value)]}
        if isinstance(value, (tuple, list)):
            kind = "tuple" if isinstance(value, tuple) else "list"
            return {"t": kind, "items": [item(place, part) for place, part in enumerate(value)]}
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            names = [field.name for field in dataclasses.fields(value)]
            items = [[name, item(name, getattr(value, name))] for name in names]
            return {"t": "named", "name": type(value).__name__, "items": items}
        if isinstance(value, (torch.dtype, torch.device)):
            return {"t": "str", "v": str(value)}
        if isinstance(value, own.Tensor):
            raise Refused("%s is a %s, a tensor of a type of its own, whose contents may be computed when they are looked at"
                          % (where, type_name(value)))
        raise Refused("%s is a %s, which can't be compared: tensors, numbers, texts, None, and tuples, lists, dictionaries, named tuples "
                      "and data classes of these can" % (where, type_name(value)))

    def specs(self) -> Tuple[List[Dict[str, Any]], int]:
        """Where each tensor lies in a region, and the region's size."""
        specs, end = [], 0
        for tensor in self.tensors:
            name = _NAMES[own.dtype_of(tensor)]
            shape = list(own.size_of(tensor))
            size = own.count_of(tensor) * _SIZES[name]
            offset = (end + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
            spec = {"dtype": name, "shape": shape, "offset": offset, "bytes": size, "device": str(own.device_of(tensor))}
            if not own.is_contiguous(tensor):
                spec["strides"] = list(own.stride_of(tensor))
            specs.append(spec)
            end = offset + size
        return specs, end

    def values(self) -> Dict[str, Any]:
        """What the parent is told of it."""
        specs, end = self.specs()
        return {"tree": self.tree, "tensors": specs, "bytes": end}

    def write(self, region: Region) -> None:
        """Copies the tensors into a region."""
        for tensor, spec in zip(self.tensors, self.specs()[0]):
            if spec["bytes"]:
                with own.no_grad():
                    own.copy_(region.tensor(spec), tensor)


def type_name(value: Any) -> str:
    """A value's type, as it is imported."""
    kind = type(value)
    return "%s.%s" % (kind.__module__, kind.__qualname__)


def check_tensor(value: Any, where: str) -> None:
    """Refuses a tensor that has no plain elements in memory.

    Raises:
        Refused: with what it is.
    """
    if own.layout_of(value) is not torch.strided:
        raise Refused("%s is a tensor of the layout %s, which can't be compared" % (where, own.layout_of(value)))
    if own.device_of(value).type not in ("cpu", "cuda"):
        raise Refused("%s is a tensor on the device %s" % (where, own.device_of(value)))
    if own.dtype_of(value) not in _NAMES:
        raise Refused("%s is a tensor of %s, which can't be compared: %s can" % (where, own.dtype_of(value), ", ".join(DTYPES)))


def flatten(value: Any, where: str) -> Flat:
    """Takes a value apart."""
    flat = Flat()
    flat.tree = flat.add(value, where)
    return flat


def flatten_named(items: Sequence[Tuple[str, Any]], where: str) -> Flat:
    """Takes named tensors apart; those that lie in the same memory are one. None is allowed in the place of a tensor."""
    flat = Flat()
    parts = []
    for name, value in items:
        if value is None:
            parts.append([name, {"t": "none"}])
            continue
        check_tensor(value, "%s of %s" % (where, name))
        key: Any = (own.data_ptr(value), own.dtype_of(value), tuple(own.size_of(value)), tuple(own.stride_of(value)))
        if own.count_of(value) == 0:
            key = id(value)
        parts.append([name, flat._tensor(value, key)])
    flat.tree = {"t": "dict", "items": parts}
    return flat


def _is_spread(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether no two elements share memory and little of it is left unused."""
    extent = 1
    for stride, size in sorted((stride, size) for stride, size in zip(strides, shape) if size > 1):
        if stride < extent:
            return False
        extent += (size - 1) * stride
    count = 1
    for size in shape:
        count *= size
    return extent <= _SPARSEST * max(count, 1)


def fresh(spec: Dict[str, Any], region: Region, device: torch.device) -> Any:
    """A new tensor on a device with a region's elements, in the strides that were asked for.

    Elements that share memory by a stride of 0 do so again; other sharing is undone.
    """
    shape, strides = spec["shape"], spec.get("strides")
    source = region.tensor(spec)
    dtype = DTYPES[spec["dtype"]]
    if strides is None or spec["bytes"] == 0:
        return own.copy_(own.empty(shape, dtype=dtype, device=device), source)
    base = [1 if stride == 0 else size for size, stride in zip(shape, strides)]
    if not _is_spread(base, strides):
        return own.copy_(own.empty(shape, dtype=dtype, device=device), source)
    made = own.empty_strided(base, [max(stride, 1) for stride in strides], dtype=dtype, device=device)
    for dimension, (size, kept) in enumerate(zip(shape, base)):
        if size != kept:
            source = source.narrow(dimension, 0, 1)
    return own.expand(own.copy_(made, source), shape)


def renewed(tensor: Any, spec: Dict[str, Any], region: Region, device: torch.device) -> Any:
    """A tensor with a region's elements in the memory of another one; as `fresh` where they don't fit there."""
    source = region.tensor(spec)
    fits = type(tensor) is own.Tensor and own.dtype_of(tensor) is DTYPES[spec["dtype"]] and own.size_of(tensor) == own.size_of(source)
    if fits and 0 not in own.stride_of(tensor) and list(own.stride_of(tensor)) == list(spec.get("strides") or own.stride_of(source)):
        try:
            return own.copy_(own.detach(tensor), source)
        except RuntimeError:  # the person's code gave the memory away
            pass
    return fresh(spec, region, device)


def differs(tensor: Any, spec: Dict[str, Any], region: Region) -> bool:
    """Whether a tensor's bits are no longer those of a region, from which it was made. Looks at pieces, which take little memory."""
    if own.dtype_of(tensor) is not DTYPES[spec["dtype"]] or list(own.size_of(tensor)) != list(spec["shape"]):
        return True
    if spec["bytes"] == 0:
        return False
    # Elements that share memory by a stride of 0 are all looked at: as many as the parent has of them.
    now = own.reshape(own.detach(tensor), (-1,))
    before = own.reshape(region.tensor(spec), (-1,))
    step = max(PIECE // _SIZES[spec["dtype"]], 1)
    device = own.device_of(tensor)
    for start in range(0, own.count_of(now), step):
        length = min(step, own.count_of(now) - start)
        piece = before.narrow(0, start, length)
        if not own.equal(now.narrow(0, start, length).view(torch.uint8), own.to(piece, device).view(torch.uint8)):
            return True
    return False


def unflatten(tree: Dict[str, Any], tensors: Sequence[Any], types: Optional[Callable[[str], Any]] = None) -> Any:
    """The value of a tree. Named ones are made by the type that `types` knows under their name, else by one with the same fields."""
    kind = tree["t"]
    if kind == "tensor":
        return tensors[tree["i"]]
    if kind in ("int", "float"):
        return int(tree["v"]) if kind == "int" else float(tree["v"])
    if kind in ("bool", "str"):
        return tree["v"]
    if kind == "none":
        return None
    if kind in ("tuple", "list"):
        items = [unflatten(item, tensors, types) for item in tree["items"]]
        return tuple(items) if kind == "tuple" else items
    fields = {name: unflatten(item, tensors, types) for name, item in tree["items"]}
    if kind == "dict":
        return fields
    known = types(tree["name"]) if types else None
    if not isinstance(known, type):
        known = collections.namedtuple(tree["name"], list(fields))  # type: ignore[misc]
    return known(**fields)


def as_arguments(value: Any) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    """What an inputs function gives: positional arguments, or a pair of a list and a dictionary."""
    if isinstance(value, (tuple, list)):
        if len(value) == 2 and isinstance(value[0], (tuple, list)) and isinstance(value[1], dict):
            return tuple(value[0]), dict(value[1])
        return tuple(value), {}
    if isinstance(value, dict):
        return (), dict(value)
    return (value,), {}


def pack_arguments(positional: Tuple[Any, ...], named: Dict[str, Any]) -> Flat:
    """Takes arguments apart: a tuple, or the named pair where some have names."""
    flat = Flat()
    tree = flat.add(positional, "inputs")
    _check_keys((positional, named), "inputs")
    if named:
        items = [["args", tree], ["kwargs", flat.add(named, "inputs")]]
        tree = {"t": "named", "name": ARGUMENTS, "items": items}
    flat.tree = tree
    return flat


def _check_keys(value: Any, where: str) -> None:
    """Only texts come back as they were, since keys are passed as texts."""
    if isinstance(value, dict):
        for key, part in value.items():
            if type(key) is not str:
                raise Refused("%s: a dictionary with the key %r, and only texts can be keys of inputs" % (where, key))
            _check_keys(part, where)
    elif isinstance(value, (tuple, list)):
        for part in value:
            _check_keys(part, where)


def unpack_arguments(tree: Dict[str, Any], tensors: Sequence[Any],
                     types: Optional[Callable[[str], Any]]) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    """The arguments that `pack_arguments` took apart."""
    if tree["t"] == "named" and tree["name"] == ARGUMENTS:
        parts = dict((name, item) for name, item in tree["items"])
        return unflatten(parts["args"], tensors, types), unflatten(parts["kwargs"], tensors, types)
    return tuple(unflatten(tree, tensors, types)), {}
