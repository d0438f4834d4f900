"""What the runner calls of Python and torch, taken before a person's file is imported.

A file may replace anything in `torch`, `os` or `json`. What is bound here stays what it was, so that replacing `torch.cuda.synchronize`
changes nothing of how the runner waits. It is no wall: code in the same process can reach these names too. What is decided on what a
child says is decided elsewhere.
"""
from __future__ import annotations

import ctypes
import os
import random
import sys
import warnings
from typing import Any, Callable, Dict, List, Optional

import torch

Tensor = torch.Tensor
Parameter = torch.nn.Parameter
_Base = getattr(torch._C, "TensorBase", None) or torch._C._TensorBase

getpid = os.getpid
exit_now = os._exit
listdir = os.listdir
read = os.read
open_file = os.open
close = os.close
_affinity = getattr(os, "sched_getaffinity", None)
_set_affinity = getattr(os, "sched_setaffinity", None)

copy_ = _Base.copy_
clone = _Base.clone
detach = _Base.detach
reshape = _Base.reshape
expand = _Base.expand
as_strided = _Base.as_strided
to = _Base.to
mul = torch.mul
add = torch.add
uniform_ = _Base.uniform_
Generator = torch.Generator
bits_of = _Base.view
as_real = torch.view_as_real
as_complex = torch.view_as_complex
take = torch.take
equal = torch.equal
zero_ = _Base.zero_
fill_ = _Base.fill_
requires_grad_ = _Base.requires_grad_
data_ptr = _Base.data_ptr
size_of = _Base.size
stride_of = _Base.stride
count_of = _Base.numel
is_contiguous = _Base.is_contiguous
is_floating = torch.is_floating_point
is_complex = torch.is_complex
dtype_of: Callable[[Any], torch.dtype] = _Base.dtype.__get__
device_of: Callable[[Any], torch.device] = _Base.device.__get__
layout_of: Callable[[Any], torch.layout] = _Base.layout.__get__
wants_grad: Callable[[Any], bool] = _Base.requires_grad.__get__

empty = torch.empty
empty_strided = torch.empty_strided
frombuffer = torch.frombuffer
no_grad = torch.no_grad
enable_grad = torch.enable_grad
gradients = torch.autograd.grad
set_default_dtype = torch.set_default_dtype
get_default_dtype = torch.get_default_dtype
_seed_torch = torch.manual_seed
_seed_python = random.seed
_release = torch.cuda.empty_cache
_isfinite, _all = torch.isfinite, torch.all
_synchronize = getattr(torch._C, "_cuda_synchronize", None)
_dispatch_modes = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 0)
_function_modes = getattr(torch._C, "_len_torch_function_stack", lambda: 0)
_function_mode = getattr(torch._C, "_get_function_stack_at", lambda _: None)
try:
    # What torch.set_default_device leaves on, which is a setting like another.
    from torch.utils._device import DeviceContext as _DeviceContext
except ImportError:  # before torch 2.0
    _DeviceContext = None  # type: ignore[assignment, misc]

#: `M_PERTURB` of glibc's `mallopt(3)`: what is given by malloc is filled with the complement of the lowest byte.
_M_PERTURB = -6


def modes() -> int:
    """How many modes stand between torch's functions and their kernels: zero, unless someone left one on."""
    strange = [place for place in range(_function_modes()) if _DeviceContext is None or type(_function_mode(place)) is not _DeviceContext]
    return _dispatch_modes() + len(strange)


def perturb_malloc(byte: int) -> None:
    """Has malloc fill what it gives with the complement of a byte; 0 ends that. Does nothing where the C library has no such setting."""
    try:
        _mallopt(_M_PERTURB, byte)
    except (NameError, AttributeError, OSError):
        pass


try:
    _mallopt = ctypes.CDLL(None).mallopt
except (AttributeError, OSError):
    pass


def is_finite(tensor: Any) -> bool:
    """Whether all numbers are finite."""
    return bool(_all(_isfinite(tensor)))


def seed(value: int) -> None:
    """Seeds everything that draws: torch on all devices, Python, and NumPy if someone uses it (32 bits, all it takes)."""
    _seed_torch(value)
    _seed_python(value)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(value & 0xFFFFFFFF)


class Pinned:
    """Keeps this thread on one processor while it lasts. `None` leaves it where it is, as does a system that refuses."""

    def __init__(self, processor: Optional[int]) -> None:
        self._processor = processor
        self._before: Any = None

    def __enter__(self) -> None:
        if self._processor is None or _set_affinity is None:
            return
        try:
            before = _affinity(0)
            _set_affinity(0, {self._processor})
            self._before = before
        except (OSError, ValueError):
            pass

    def __exit__(self, *_: Any) -> None:
        if self._before is not None:
            try:
                _set_affinity(0, self._before)
            except OSError:
                pass


class Device:
    """Where tensors live, and how to wait for it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.torch = torch.device(name)
        self.is_cuda = self.torch.type == "cuda"
        self._touched: Any = None

    def wait(self) -> None:
        """Waits for all streams of the device, and raises what went wrong there, a launch that was refused included."""
        if not self.is_cuda:
            return
        if self._touched is None:
            self._touched = empty((1,), device=self.torch)
        # A launch that failed is told to whoever launches next.
        zero_(self._touched)
        _synchronize()

    def release(self) -> None:
        """Gives memory that nobody uses back to the GPU, so that what is allocated next lies where it would in a new process."""
        if self.is_cuda:
            _release()

    def free(self) -> int:
        """Free memory of the GPU in bytes, what torch holds unused included."""
        free, _ = torch.cuda.mem_get_info()
        return int(free) + int(torch.cuda.memory_reserved()) - int(torch.cuda.memory_allocated())


def count_threads() -> int:
    """Threads of this process."""
    return len(listdir("/proc/self/task"))


def count_processes() -> int:
    """Processes that this one started and that have not been waited for."""
    total = 0
    for thread in listdir("/proc/self/task"):
        try:
            file = open_file("/proc/self/task/%s/children" % thread, os.O_RDONLY)
        except OSError:
            continue
        try:
            total += len(read(file, 65536).split())
        finally:
            close(file)
    return total


def _settings() -> Dict[str, Any]:
    backends = torch.backends
    questions: Dict[str, Callable[[], Any]] = {
        "the default dtype": torch.get_default_dtype,
        "the default device": lambda: str(empty(0).device),
        "the float32 matmul precision": torch.get_float32_matmul_precision,
        "allow_tf32 of cuBLAS": lambda: backends.cuda.matmul.allow_tf32,
        "allow_fp16_reduced_precision_reduction of cuBLAS": lambda: backends.cuda.matmul.allow_fp16_reduced_precision_reduction,
        "allow_tf32 of cuDNN": lambda: backends.cudnn.allow_tf32,
        "benchmark of cuDNN": lambda: backends.cudnn.benchmark,
        "deterministic of cuDNN": lambda: backends.cudnn.deterministic,
        "enabled of cuDNN": lambda: backends.cudnn.enabled,
        "gradients": torch.is_grad_enabled,
        "autocast": torch.is_autocast_enabled,
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled,
        "the number of threads": torch.get_num_threads,
        "flushing of denormal numbers": lambda: float(torch.tensor(1e-40, dtype=torch.float32) * 0.5) == 0.0,
    }
    found = {}
    with warnings.catch_warnings():
        # Some of these names are old; they are asked for as long as torch knows them.
        warnings.simplefilter("ignore")
        for name, ask in questions.items():
            try:
                found[name] = ask()
            except Exception:  # a setting that this torch does not have
                continue
    return found


#: Where a replaced function is looked for.
_WATCHED: List[Any] = [
    torch, torch.Tensor, torch.nn.functional, torch.nn.Module, torch.cuda, torch.cuda.Event, torch.cuda.Stream, torch.autograd,
    torch.random, sys.modules["time"], os,
]


#: What torch itself replaces with its default dtype.
_UNWATCHED = {"torch.Storage"}


def _members(place: Any) -> Dict[str, Any]:
    """What a module or class has by itself or by inheritance: a method that shadows an inherited one replaces it."""
    found: Dict[str, Any] = {}
    for part in reversed(place.__mro__) if isinstance(place, type) else [place]:
        found.update(vars(part))
    return found


def _functions() -> Dict[str, Any]:
    found = {}
    for place in _WATCHED:
        name = "%s.%s" % (place.__module__, place.__name__) if isinstance(place, type) else place.__name__
        for key, value in _members(place).items():
            found[name + "." + key] = value
    return found


class Watch:
    """Notices what a person's code changes for everyone: torch's settings, and functions that it replaces."""

    def __init__(self) -> None:
        self._settings = _settings()
        self._functions = _functions()

    def changed(self) -> List[str]:
        """What changed since it was last asked, in words."""
        settings, functions = _settings(), _functions()
        words = [
            "%s is %s, and was %s" % (name, settings[name], before)
            for name, before in self._settings.items()
            if name in settings and settings[name] != before
        ]
        words += [
            "%s was replaced" % name
            for name, before in self._functions.items()
            if callable(before) and name not in _UNWATCHED and functions.get(name) is not before
        ]
        self._settings, self._functions = settings, functions
        return words[:64]
