"""Makes modules on the device itself: parameters are drawn there a hundred times faster, wherever that makes no difference."""
from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, Optional, Tuple

import torch

from . import captured as own

#: How many characters of an error are told.
_LONGEST = 200
#: How `torch.utils.cpp_extension` begins what it says of a failed build.
_NO_BUILD = "Error building extension"


def default_of(device: own.Device) -> Optional[torch.device]:
    """What new tensors can be made on by default, or nothing: the CPU is the default, and torch before 2.0 knows no other."""
    return device.torch if device.is_cuda and hasattr(type(device.torch), "__enter__") else None


def reason_of(error: BaseException) -> str:
    """An error as a reason."""
    try:
        text = " ".join(str(error).split())
    except Exception:  # an exception of the person's own may fail at this
        text = ""
    return "there it raises %s: %s" % (type(error).__name__, text[:_LONGEST])


def tensors_of(value: Any) -> Iterator[Any]:
    """The tensors in nested containers."""
    if isinstance(value, own.Tensor):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from tensors_of(part)
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from tensors_of(part)


def _keeps_others(module: Any) -> bool:
    """Whether a part of a module holds a tensor that is neither parameter nor buffer. Such a one stays where it was made when the module is
    moved, so it must not be made elsewhere than a person's own code makes it."""
    known = {id(tensor) for tensor in (*module.parameters(), *module.buffers())}
    return any(
        any(id(tensor) not in known for tensor in tensors_of(value))
        for part in module.modules()
        for name, value in vars(part).items()
        if name not in ("_parameters", "_buffers", "_modules")
    )


def construct(make: Callable[..., Any], arguments: Callable[[], Tuple[Tuple[Any, ...], Dict[str, Any]]], place: Optional[torch.device],
              seed: int) -> Tuple[Any, Dict[str, Any]]:
    """What `make` gives for some arguments, made on the device where that makes no difference, and where it was made.

    The arguments are always those of the processor, for the other version is told them.
    """

    def plainly() -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
        own.seed(seed)
        found = arguments()
        own.seed(seed)
        return found

    reason = None
    if place is not None:
        positional, named = plainly()
        try:
            with place:  # type: ignore[attr-defined]
                made = make(*positional, **named)
            if isinstance(made, torch.nn.Module) and not _keeps_others(made):
                return made, {"on": str(place), "reason": None}
            reason = "it keeps a tensor that is neither parameter nor buffer"
            del made
        except Exception as error:
            reason = reason_of(error)
            if _NO_BUILD in reason:
                # It would not compile a second time either.
                raise
    positional, named = plainly()
    return make(*positional, **named), {"on": "cpu", "reason": reason}
