"""What torch's own compiler makes of the reference, which a candidate is compared with."""
from __future__ import annotations

from typing import Any

import torch

from .errors import Refused


def compiled(function: Any, mode: str) -> Any:
    """The function or module, to be compiled at its first call.

    Raises:
        Refused: where torch has no compiler, which came with 2.0.
    """
    if not hasattr(torch, "compile"):
        raise Refused("torch %s has no torch.compile" % torch.__version__)
    return torch.compile(function, mode=None if mode == "default" else mode)
