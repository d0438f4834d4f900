"""What went wrong, as the parent wants it."""
from __future__ import annotations

import os
import traceback
from typing import Any, Dict, List

import torch

_format = traceback.TracebackException.from_exception
_here = os.path.dirname(os.path.abspath(__file__)) + os.sep

#: How much is said of one error, in characters: all of it, unless a compiler went on and on.
_LONGEST_MESSAGE = 512 << 10
_LONGEST_TEXT = 256 << 10
_MOST_FRAMES = 64

#: What a CUDA context does not survive, by the words of `cudaGetErrorString` (CUDA runtime API, cudaError_t).
_LOST = (
    "illegal memory access", "device-side assert", "unspecified launch failure", "misaligned address", "illegal instruction",
    "invalid program counter", "address space", "hardware stack error", "launch timed out", "uncorrectable",
    "external device error", "context is destroyed",
)
_NO_MEMORY = ("out of memory", "can't allocate memory", "cannot allocate memory", "not enough memory", "bad_alloc", "cudaerrormemoryallocation",
              "cublas_status_alloc_failed", "cudnn_status_alloc_failed")


class Refused(Exception):
    """The runner itself refuses something; its text is for the person."""

    kind = "Refused"


class StateError(Refused):
    """A state that does not fit a module."""

    kind = "StateError"


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return "%s\n[... %d characters left out ...]\n%s" % (text[:half], len(text) - 2 * half, text[-half:])


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as another:  # an exception of the person's own may fail at this too
        return "an exception whose text raises %s" % type(another).__name__


def _class_of(error: BaseException, message: str) -> str:
    low = message.lower()
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return "memory"
    if isinstance(error, RuntimeError) and any(words in low for words in _NO_MEMORY):
        return "memory"
    if isinstance(error, RuntimeError) and ("cuda" in low or "cudnn" in low or "cublas" in low):
        if any(words in low for words in _LOST):
            return "gpu"
    return ""


def _frames(summary: traceback.TracebackException) -> List[Dict[str, Any]]:
    frames = [
        {"file": frame.filename, "line": frame.lineno or 0, "function": frame.name}
        for frame in summary.stack
        if not frame.filename.startswith(_here) and not frame.filename.startswith("<frozen importlib")
    ]
    if issubclass(summary.exc_type or Exception, SyntaxError) and summary.filename:
        frames.append({"file": summary.filename, "line": int(summary.lineno or 0), "function": ""})
    return frames[-_MOST_FRAMES:]


def describe(error: BaseException, stage: str, device: str) -> Dict[str, Any]:
    """An error as the parent's `WireError`."""
    message = _text_of(error)
    kind = getattr(error, "kind", None) if isinstance(error, Refused) else None
    if kind is None:
        kind = type(error).__name__
    try:
        summary = _format(error)
        frames, text = _frames(summary), "".join(summary.format())
    except BaseException:  # see _text_of
        frames, text = [], message
    if isinstance(error, SyntaxError):
        message = error.msg or message
    kind_of = _class_of(error, message)
    where = device
    if kind_of == "memory" and ("DefaultCPUAllocator" in message or isinstance(error, MemoryError)):
        where = "cpu"
    if kind_of == "memory" and where.startswith("cuda"):
        try:
            free, total = torch.cuda.mem_get_info()
            message += " (%d MB of %d MB are free)" % (free // 1_000_000, total // 1_000_000)
        except Exception:
            pass
    return {
        "stage": stage, "type": kind, "message": _cut(message, _LONGEST_MESSAGE), "frames": frames,
        "text": _cut(text, _LONGEST_TEXT), "class": kind_of, "device": where,
    }
