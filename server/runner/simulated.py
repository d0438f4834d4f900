"""Runs the CUDA extensions of a candidate on the simulator, where no GPU is: its tensors live on the CPU, and pass for tensors of a GPU.

`load_inline` and `load` of `torch.utils.cpp_extension` hand their texts to the parent, which builds a program of them, and calls of their
functions become runs of that program. What a call and its answer look like in bytes stands in `main.cuh` of the verifier too.
"""
from __future__ import annotations

import ctypes
import os
import struct
import types
from typing import Any, Dict, List, Tuple

import torch

from . import captured as own
from . import values
from .errors import Refused
from .wire import Channel

#: The numbers of c10/core/ScalarType.h.
_NUMBERS = {
    torch.uint8: 0, torch.int8: 1, torch.int16: 2, torch.int32: 3, torch.int64: 4, torch.float16: 5, torch.float32: 6, torch.float64: 7,
    torch.bool: 11, torch.bfloat16: 15,
}
_TYPES = {number: dtype for dtype, number in _NUMBERS.items()}
_NONE, _BOOL, _INT, _FLOAT, _TEXT, _TENSOR, _LIST = range(7)
_frombuffer = own.frombuffer
_address = ctypes.string_at
_pwrite, _pread = os.pwrite, os.pread


class NotSimulated(Refused):
    """Something that the simulator can't be asked for."""

    kind = "NotSimulated"


def _span(shape: Tuple[int, ...], strides: Tuple[int, ...]) -> int:
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides)) if 0 not in shape else 0


class _Writer:
    """The bytes of a call."""

    def __init__(self) -> None:
        self.parts: List[bytes] = []
        self.tensors: List[Any] = []

    def text(self, text: str) -> None:
        raw = text.encode("utf-8")
        self.parts.append(struct.pack("<I", len(raw)) + raw)

    def value(self, value: Any) -> None:
        pack, add = struct.pack, self.parts.append
        if value is None:
            add(pack("<B", _NONE))
        elif isinstance(value, own.Tensor):
            add(pack("<BI", _TENSOR, self._place(value)))
        elif isinstance(value, bool):
            add(pack("<BB", _BOOL, value))
        elif isinstance(value, int):
            if not -(1 << 63) <= value < 1 << 63:
                raise TypeError("an int that fits 64 bits is expected")
            add(pack("<Bq", _INT, value))
        elif isinstance(value, float):
            add(pack("<Bd", _FLOAT, value))
        elif isinstance(value, str):
            add(pack("<B", _TEXT))
            self.text(value)
        elif isinstance(value, (list, tuple)):
            add(pack("<BI", _LIST, len(value)))
            for item in value:
                self.value(item)
        else:
            raise NotSimulated("an argument is a %s, which the simulator can't pass" % values.type_name(value))

    def _place(self, tensor: Any) -> int:
        for place, known in enumerate(self.tensors):
            if known is tensor:
                return place
        self.tensors.append(tensor)
        return len(self.tensors) - 1


def _raw(tensor: Any) -> bytes:
    """A tensor's elements from the first to the last in memory."""
    if own.dtype_of(tensor) not in _NUMBERS or own.layout_of(tensor) is not torch.strided:
        raise NotSimulated("an argument is a tensor of %s, which the simulator can't pass" % own.dtype_of(tensor))
    count = _span(tuple(own.size_of(tensor)), tuple(own.stride_of(tensor)))
    return _address(own.data_ptr(tensor), count * tensor.element_size()) if count else b""


def _geometry(tensor: Any) -> bytes:
    shape, strides = tuple(own.size_of(tensor)), tuple(own.stride_of(tensor))
    return struct.pack("<I%dq" % (2 * len(shape)), len(shape), *shape, *strides)


def _encode(name: str, positional: Tuple[Any, ...], named: Dict[str, Any]) -> Tuple[bytes, List[Any]]:
    arguments = _Writer()
    arguments.parts.append(struct.pack("<I", len(positional)))
    for value in positional:
        arguments.value(value)
    arguments.parts.append(struct.pack("<I", len(named)))
    for key, value in named.items():
        arguments.text(key)
        arguments.value(value)
    head = _Writer()
    head.text(name)
    head.parts.append(struct.pack("<I", len(arguments.tensors)))
    for tensor in arguments.tensors:
        raw = _raw(tensor)
        head.parts += [struct.pack("<B", _NUMBERS[own.dtype_of(tensor)]), _geometry(tensor), struct.pack("<Q", len(raw)), raw]
    return b"".join(head.parts + arguments.parts), arguments.tensors


class _Reader:
    """The bytes of an answer."""

    def __init__(self, data: bytes, tensors: List[Any]) -> None:
        self._data, self._at, self._tensors = data, 0, tensors

    def take(self, count: int) -> bytes:
        if self._at + count > len(self._data):
            raise RuntimeError("the extension's program gave an answer that is cut off")
        self._at += count
        return self._data[self._at - count:self._at]

    def unpack(self, form: str) -> Tuple[Any, ...]:
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))

    def text(self) -> str:
        return self.take(self.unpack("I")[0]).decode("utf-8", "replace")

    def raw(self) -> bytes:
        return self.take(self.unpack("Q")[0])

    def changed(self) -> None:
        """Gives the call's tensors what was written to them."""
        for tensor in self._tensors:
            if self.unpack("B")[0]:
                shape, strides = tuple(own.size_of(tensor)), tuple(own.stride_of(tensor))
                own.copy_(own.detach(tensor), _made(self.raw(), own.dtype_of(tensor), shape, strides))

    def _geometry(self) -> Tuple[Tuple[int, ...], Tuple[int, ...]]:
        count = self.unpack("I")[0]
        return self.unpack("%dq" % count), self.unpack("%dq" % count)

    def value(self) -> Any:
        tag = self.unpack("B")[0]
        if tag == _BOOL:
            return bool(self.unpack("B")[0])
        if tag in (_INT, _FLOAT):
            return self.unpack("q" if tag == _INT else "d")[0]
        if tag == _TEXT:
            return self.text()
        if tag == _TENSOR:
            return self._tensor()
        if tag == _LIST:
            is_tuple, count = self.unpack("BI")
            items = [self.value() for _ in range(count)]
            return tuple(items) if is_tuple else items
        return None

    def _tensor(self) -> Any:
        place = self.unpack("i")[0]
        if place >= 0:
            given = self._tensors[place]
            (shape, strides), offset = self._geometry(), self.unpack("q")[0]
            if not offset and shape == tuple(own.size_of(given)) and strides == tuple(own.stride_of(given)):
                return given
            return own.as_strided(given, shape, strides, given.storage_offset() + offset)
        number, on_device = self.unpack("BB")
        shape, strides = self._geometry()
        raw = self.raw()
        if not on_device:
            raise RuntimeError("the extension returned a tensor that lies on the CPU, where one on the GPU is expected")
        return _made(raw, _TYPES[number], shape, strides)


def _made(raw: bytes, dtype: Any, shape: Tuple[int, ...], strides: Tuple[int, ...]) -> Any:
    if not raw:
        return own.empty(shape, dtype=dtype, device="cpu")
    return own.as_strided(_frombuffer(bytearray(raw), dtype=dtype), shape, strides)


class _Parent:
    """The other side, which builds and runs."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def _ask(self, question: Dict[str, Any]) -> Tuple[Dict[str, Any], List[int]]:
        self._channel.send_or_die(question)
        received = self._channel.receive()
        if received is None:
            own.exit_now(0)
        answer, descriptors = received
        if "refused" in answer:
            raise NotSimulated(answer["refused"])
        if "wrong" in answer:
            raise RuntimeError(answer["wrong"])
        return answer, descriptors

    def build(self, extension: Dict[str, Any]) -> int:
        # The parent knows a question by its first key.
        try:
            return int(self._ask({"ask": "build", **extension})[0]["built"])
        except RuntimeError as error:
            raise RuntimeError("Error building extension '%s': %s" % (extension["name"], error)) from None

    def call(self, extension: int, data: bytes) -> bytes:
        _, (room,) = self._ask({"ask": "room", "bytes": len(data)})
        rest, at = memoryview(data), 0
        while at < len(data):
            at += _pwrite(room, rest[at:at + (1 << 30)], at)
        own.close(room)
        answer, (region,) = self._ask({"ask": "call", "extension": extension})
        parts, left = [], int(answer["answer"])
        while left:
            part = _pread(region, min(left, 1 << 30), sum(map(len, parts)))
            if not part:
                raise RuntimeError("the extension's answer is cut off")
            parts.append(part)
            left -= len(part)
        own.close(region)
        return b"".join(parts)


class _Module(types.ModuleType):
    """What `load_inline` gives: any name is a function until it is called."""

    def __init__(self, name: str, parent: _Parent, number: int) -> None:
        super().__init__(name)
        self._parent, self._number = parent, number

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def function(*positional: Any, **named: Any) -> Any:
            data, tensors = _encode(name, positional, named)
            answer = _Reader(self._parent.call(self._number, data), tensors)
            how = answer.unpack("B")[0]
            if how:
                error = {2: AttributeError, 3: TypeError}.get(how, RuntimeError)
                raise error(("the extension registers no function " if how == 2 else "") + answer.text())
            answer.changed()
            return answer.value()

        function.__name__ = name
        return function


def _listed(value: Any) -> List[str]:
    return [value] if isinstance(value, str) else list(value or [])


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _extensions(parent: _Parent) -> None:
    from torch.utils import cpp_extension

    inline, load = cpp_extension.load_inline, cpp_extension.load

    def load_inline(name: str, cpp_sources: Any = None, cuda_sources: Any = None, functions: Any = None, extra_cflags: Any = None,
                    extra_cuda_cflags: Any = None, *rest: Any, **others: Any) -> Any:
        if not _listed(cuda_sources):
            return inline(name, cpp_sources, cuda_sources, functions, extra_cflags, extra_cuda_cflags, *rest, **others)
        number = parent.build({
            "name": name, "cpp": _listed(cpp_sources), "cuda": _listed(cuda_sources), "functions": _listed(functions),
            "flags": _listed(extra_cuda_cflags),
        })
        return _Module(name, parent, number)

    def load_files(name: str, sources: Any, extra_cflags: Any = None, extra_cuda_cflags: Any = None, *rest: Any, **others: Any) -> Any:
        files = _listed(sources)
        if not any(file.endswith((".cu", ".cuh")) for file in files):
            return load(name, sources, extra_cflags, extra_cuda_cflags, *rest, **others)
        texts = [(file, _read(file)) for file in files]
        number = parent.build({
            "name": name, "cpp": [text for file, text in texts if not file.endswith((".cu", ".cuh"))],
            "cuda": [text for file, text in texts if file.endswith((".cu", ".cuh"))], "functions": [], "flags": _listed(extra_cuda_cflags),
        })
        return _Module(name, parent, number)

    cpp_extension.load_inline, cpp_extension.load = load_inline, load_files


def _is_cuda(device: Any) -> bool:
    return isinstance(device, (str, torch.device)) and str(device).startswith("cuda")


def _without_cuda(function: Any) -> Any:
    """A function of torch that takes a GPU's name for the CPU's."""

    def called(*positional: Any, **named: Any) -> Any:
        positional = tuple("cpu" if _is_cuda(value) else value for value in positional)
        named = {key: "cpu" if key == "device" and _is_cuda(value) else value for key, value in named.items()}
        return function(*positional, **named)

    called.__name__ = getattr(function, "__name__", "called")
    return called


class _Stream:
    cuda_stream = 0

    def synchronize(self) -> None:
        """Nothing is left to wait for."""


#: What makes tensors, and is told where.
_FACTORIES = ("empty", "zeros", "ones", "full", "rand", "randn", "randint", "arange", "tensor", "empty_like", "zeros_like", "ones_like", "full_like",
              "empty_strided", "eye", "linspace", "as_tensor")


def build_elsewhere(channel: Channel) -> None:
    """Has the extensions of everything that is imported from now on run on the simulator."""
    _extensions(_Parent(channel))


def pass_for_gpu() -> None:
    """Has everything that is imported from now on take this process for one with a GPU."""
    torch.Tensor.is_cuda = property(lambda _: True)  # type: ignore[assignment, method-assign]
    torch.Tensor.cuda = lambda self, *_, **__: self  # type: ignore[assignment, method-assign]
    torch.nn.Module.cuda = lambda self, *_, **__: self  # type: ignore[assignment, method-assign]
    torch.Tensor.to = _without_cuda(torch.Tensor.to)  # type: ignore[method-assign]
    torch.nn.Module.to = _without_cuda(torch.nn.Module.to)  # type: ignore[method-assign]
    for name in _FACTORIES:
        setattr(torch, name, _without_cuda(getattr(torch, name)))
    torch.cuda.is_available = lambda: True
    torch.cuda.device_count = lambda: 1
    torch.cuda.current_device = lambda: 0
    torch.cuda.synchronize = lambda *_: None
    torch.cuda.current_stream = lambda *_: _Stream()  # type: ignore[assignment, return-value]
