"""Moves parameters and buffers off what they were constructed as.

By numbers of a generator of torch's own with a seed, so two processes that are told the same seed have the same bits on the same device, and no
bytes need to pass between them.
"""
from __future__ import annotations

from typing import Any, List

import torch

from . import captured as own

#: Integers as wide as an element, by which numbers are compared bit by bit.
_INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def _is_constant(numbers: Any) -> bool:
    bits = own.bits_of(numbers, _INTEGERS[numbers.element_size()])
    return own.equal(bits, own.expand(bits[:1], own.size_of(bits)))


def _moved(tensor: Any, generator: Any) -> Any:
    parts = own.as_real(tensor) if own.is_complex(tensor) else tensor
    wide = torch.float64 if own.dtype_of(parts) is torch.float64 else torch.float32
    factors = own.empty(own.size_of(parts), dtype=wide, device=own.device_of(parts))
    numbers = own.reshape(parts, (-1,))
    is_shifted = _is_constant(numbers) and own.is_finite(numbers[:1])
    moved = own.mul(own.uniform_(factors, 0.5, 1.5, generator=generator), parts)
    if is_shifted:
        moved = own.add(moved, own.uniform_(factors, 0.0, 0.5, generator=generator))
    moved = own.to(moved, own.dtype_of(parts))
    return own.as_complex(moved) if own.is_complex(tensor) else moved


def moved(tensors: List[Any], seed: int, device: torch.device) -> List[Any]:
    """Floating-point tensors moved: each number times 0.5 to 1.5; where all numbers of a tensor are one, that times the same and 0 to 0.5 more, so that a
    weight of ones and a bias of zeros are seen. Others are as they were."""
    generator = own.Generator(device=device)
    generator.manual_seed(seed)
    with own.no_grad():
        return [
            _moved(tensor, generator) if (own.is_floating(tensor) or own.is_complex(tensor)) and own.count_of(tensor) else tensor
            for tensor in tensors
        ]
