"""Draws inputs on the device itself, which is a hundred times faster, wherever that makes no difference.

A function that says itself where its tensors lie, that uses NumPy, or that fails under another default device is called as it would be
without all this, on the processor. Its first answer on the device must have the form that it has there: the same nesting, types, shapes
and strides. Only the numbers are others, which the seed that the parent chose decides either way.
"""
from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

import torch

from . import captured as own
from . import loading, values
from .making import reason_of, tensors_of

Arguments = Tuple[Tuple[Any, ...], Dict[str, Any]]


def form_of(value: Any) -> Any:
    """What a value is besides its numbers."""
    if isinstance(value, own.Tensor):
        return type(value), own.dtype_of(value), tuple(own.size_of(value)), tuple(own.stride_of(value)), own.wants_grad(value)
    if isinstance(value, dict):
        return type(value), tuple((key, form_of(part)) for key, part in value.items())
    if isinstance(value, (tuple, list)):
        return type(value), tuple(form_of(part) for part in value)
    return type(value)


def _arguments(case: Dict[str, Any], file: Any, seed: int) -> Arguments:
    own.seed(seed)
    positional, named = loading.arguments(case["inputs"], file)
    if case.get("dtype"):
        dtype = values.DTYPES[case["dtype"]]
        positional, named = loading.convert(positional, dtype), loading.convert(named, dtype)
    return positional, named


class Drawing:
    """Draws the inputs of cases."""

    def __init__(self, place: Optional[torch.device]) -> None:
        self._place = place
        #: Of each case that was drawn: why not on the device, or nothing.
        self._reasons: Dict[str, Optional[str]] = {}

    def draw(self, case: Dict[str, Any], file: Any, seed: int, on_device: bool) -> Tuple[Tuple[Any, ...], Dict[str, Any], Dict[str, Any]]:
        """Positional and keyword arguments, and where they were made."""
        name = repr(case)
        if self._place is not None and on_device and case["inputs"] is not None and case["inputs"]["from"] != "file":
            if self._reasons.get(name) is None:
                drawn, reason = self._try(case, file, seed, name not in self._reasons)
                self._reasons[name] = reason
                if drawn is not None:
                    return drawn[0], drawn[1], {"on": str(self._place), "reason": None}
            return _arguments(case, file, seed) + ({"on": "cpu", "reason": self._reasons[name]},)
        return _arguments(case, file, seed) + ({"on": "cpu", "reason": None},)

    def _try(self, case: Dict[str, Any], file: Any, seed: int, is_first: bool) -> Tuple[Optional[Arguments], Optional[str]]:
        try:
            with self._place:  # type: ignore[union-attr]
                drawn = _arguments(case, file, seed)
        except Exception as error:
            return None, reason_of(error)
        if any(own.device_of(tensor) != self._place for tensor in tensors_of(drawn)):
            return None, "the inputs' function says itself where some tensors lie"
        if is_first and form_of(drawn) != form_of(_plainly(case, file, seed)):
            return None, "there the inputs have other types or shapes"
        return drawn, None


def _plainly(case: Dict[str, Any], file: Any, seed: int) -> Arguments:
    """What comes without a device: from the functions of torch that compute shapes alone, or where these don't do, on the processor."""
    try:
        with torch.device("meta"):  # type: ignore[attr-defined]
            drawn = _arguments(case, file, seed)
        if all(own.device_of(tensor).type == "meta" for tensor in tensors_of(drawn)):
            return drawn
    except Exception:
        pass
    return _arguments(case, file, seed)
