"""Keeps a process on the CPU from taking the machine's last memory, so that too much is an error of the code and not an end of everything.

The limit is on private, writable memory (`RLIMIT_DATA`, which counts mappings since Linux 4.7). CUDA needs none: its memory is not the
machine's, and what it maps is not private. It is a help, no wall: the code may raise it, and the sandbox is what holds.
"""
from __future__ import annotations

import resource
from typing import Optional

_set, _get, _DATA, _INFINITE = resource.setrlimit, resource.getrlimit, resource.RLIMIT_DATA, resource.RLIM_INFINITY
_open = open
#: This part of what the system says is available may be taken.
_SHARE = 0.85


def _number(path: str, name: str) -> Optional[int]:
    """A number of kilobytes from a file of /proc, in bytes."""
    with _open(path) as file:
        for line in file:
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    return None


def renew() -> None:
    """Sets the limit anew, by what is available now."""
    try:
        available, used = _number("/proc/meminfo", "MemAvailable:"), _number("/proc/self/status", "VmData:")
        if available is None or used is None:
            return
        _, hard = _get(_DATA)
        limit = used + int(available * _SHARE)
        _set(_DATA, (limit if hard == _INFINITE else min(limit, hard), hard))
    except (OSError, ValueError):
        pass
