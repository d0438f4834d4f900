"""Has the libraries of extensions built by the parent, where torch would run ninja.

Everything before and after is torch's own: it reads the arguments of `load` and `load_inline`, writes the sources and the build file, and imports
the library. What the parent can't build, torch builds.
"""
from __future__ import annotations

import os
import subprocess
import sys
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import captured as own
from .wire import Channel

_pread, _open, _write, _replace = os.pread, os.open, os.write, os.replace
#: What compilers heed of the environment; the parent has the same list.
_HEEDED = ("PATH", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX", "LD_LIBRARY_PATH",
           "LD_RUN_PATH", "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN", "CUDAHOSTCXX", "SOURCE_DATE_EPOCH", "LANG", "LC_ALL",
           "NINJA_STATUS")
#: A question is one line of 4 MiB at most.
_MOST = 1 << 20


def _order(folder: str) -> Optional[Dict[str, Any]]:
    """What torch has written into a folder, if it can be read and is not too much."""
    folder = os.path.abspath(folder)
    try:
        with open(os.path.join(folder, "build.ninja"), encoding="utf-8") as file:
            ninja = file.read()
        sources: Dict[str, str] = {}
        for line in ninja.splitlines():
            words = line.split()
            if line.startswith("build ") and len(words) == 4 and words[2] in ("compile", "cuda_compile"):
                with open(words[3], encoding="utf-8") as file:
                    sources[words[3]] = file.read()
    except (OSError, UnicodeDecodeError):
        return None
    if sum(map(len, sources.values())) + len(ninja) > _MOST:
        return None
    environment = {name: os.environ[name] for name in _HEEDED if name in os.environ}
    return {"ask": "library", "folder": folder, "ninja": ninja, "sources": sources, "environment": environment}


def _keep(region: int, length: int, path: str) -> None:
    """Writes the library aside, and moves it to where torch looks for it."""
    aside = path + ".aside"
    out = _open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o755)
    at = 0
    while at < length:
        part = _pread(region, min(length - at, 1 << 24), at)
        if not part:
            raise OSError("the library is cut off")
        while part:
            written = _write(out, part)
            part, at = part[written:], at + written
    own.close(out)
    own.close(region)
    _replace(aside, path)


class Builder:
    """Asks the parent, or has torch build."""

    def __init__(self, channel: Channel, ordinary: Callable[..., None]) -> None:
        self._channel, self._ordinary = channel, ordinary

    def _ask(self, order: Dict[str, Any]) -> Tuple[Dict[str, Any], List[int]]:
        self._channel.send_or_die(order)
        received = self._channel.receive()
        if received is None:
            own.exit_now(0)
        return received

    def run(self, build_directory: str, verbose: bool, error_prefix: str) -> None:
        """Takes the place of `_run_ninja_build`."""
        order = _order(build_directory)
        if order is None:
            return self._ordinary(build_directory, verbose, error_prefix)
        answer, descriptors = self._ask(order)
        if "library" in answer:
            name = os.path.basename(answer["name"])
            return _keep(descriptors[0], answer["library"], os.path.join(build_directory, name))
        if "wrong" in answer:
            self._raise(answer["wrong"], verbose, error_prefix)
        return self._ordinary(build_directory, verbose, error_prefix)

    def _raise(self, text: str, verbose: bool, error_prefix: str) -> None:
        """As torch does: what the compilers say is printed, or is part of the error."""
        failed = subprocess.CalledProcessError(1, ["ninja", "-v"], None if verbose else text.encode())
        if verbose:
            sys.stdout.flush()
            _write(1, text.encode())
            raise RuntimeError(error_prefix) from failed
        raise RuntimeError("%s: %s" % (error_prefix, text)) from failed


def build_elsewhere(channel: Channel) -> None:
    """Has extensions built by the parent from now on."""
    from torch.utils import cpp_extension

    ordinary = getattr(cpp_extension, "_run_ninja_build", None)
    if ordinary is not None:
        cpp_extension._run_ninja_build = Builder(channel, ordinary).run
