"""Calls the subject under torch's profiler, which asks CUPTI where there is a GPU, and leaves Chrome traces.

There are two: one of the calls as they are, and one in which each line of the person's own files is a range of its own, so that what is launched
within can be told to it. Marking lines takes time on the host, so the first says how long things take, and the second only to which line they belong.
What a trace says comes out of the process that ran the person's code: it explains times, and is no evidence for them.
"""
from __future__ import annotations

import json
import sys
from types import FrameType
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

from torch.nn.modules import module as modules
from torch.profiler import ProfilerActivity, profile, record_function

from . import captured as own

#: The name under which each call stands in the trace.
CALL = "stitchcuda.call"
#: How the name of a line's range begins; the file and the number follow: `stitchcuda.line /w/model.py:17`.
LINE = "stitchcuda.line "
#: How the name of a module's range begins; its path and its class follow: `stitchcuda.module layers.0 Linear`. The module itself has the path `.`.
MODULE = "stitchcuda.module "

Arguments = Callable[[], Tuple[Tuple[Any, ...], Dict[str, Any]]]


class Lines:
    """Opens a range for each line of the person's files that runs. It is a trace function of `sys.settrace`."""

    def __init__(self, folders: List[str]) -> None:
        self._folders = tuple(folder.rstrip("/") + "/" for folder in folders)
        self._is_own: Dict[str, bool] = {}
        self._open: List[Tuple[FrameType, Any]] = []

    def __call__(self, frame: FrameType, event: str, _: Any) -> Optional[Callable[..., Any]]:
        """Whether a function that is entered is looked at."""
        file = frame.f_code.co_filename
        is_own = self._is_own.get(file)
        if is_own is None:
            is_own = self._is_own[file] = file.startswith(self._folders) and "/site-packages/" not in file
        return self._step if is_own else None

    def _step(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any]:
        if event in ("line", "return"):
            # A frame that was left by an exception closes with the frame below it.
            while self._open and (self._open[-1][0] is frame or not _is_below(self._open[-1][0], frame)):
                self._open.pop()[1].__exit__(None, None, None)
        if event == "line":
            opened = record_function("%s%s:%d" % (LINE, frame.f_code.co_filename, frame.f_lineno))
            opened.__enter__()
            self._open.append((frame, opened))
        return self._step

    def close(self) -> None:
        """Closes what an exception left open."""
        while self._open:
            self._open.pop()[1].__exit__(None, None, None)


def _is_below(frame: FrameType, of: FrameType) -> bool:
    at: Optional[FrameType] = of
    while at is not None and at is not frame:
        at = at.f_back
    return at is frame


class Paths:
    """Opens a range for each call of a module, which has the module's path in its name."""

    def __init__(self, root: Any) -> None:
        self._names = {id(module): name or "." for name, module in root.named_modules()} if root is not None else {}
        self._open: List[Any] = []
        self._hooks: List[Any] = []

    def __enter__(self) -> "Paths":
        self._hooks = [modules.register_module_forward_pre_hook(self._enter), modules.register_module_forward_hook(self._leave)]
        return self

    def __exit__(self, *_: Any) -> None:
        for hook in self._hooks:
            hook.remove()
        while self._open:
            self._leave()

    def _enter(self, module: Any, _: Any) -> None:
        opened = record_function("%s%s %s" % (MODULE, self._names.get(id(module), "?"), type(module).__name__))
        opened.__enter__()
        self._open.append(opened)

    def _leave(self, *_: Any) -> None:
        if self._open:
            self._open.pop().__exit__(None, None, None)


def _record(call: Callable[[Any], None], sets: List[Any], path: str, device: own.Device) -> None:
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device.is_cuda else [])
    with profile(activities=activities, record_shapes=True) as profiler:
        for arguments in sets:
            with record_function(CALL):
                call(arguments)
        device.wait()
    profiler.export_chrome_trace(path)


def run(function: Any, module: Any, arguments: Arguments, request: Dict[str, Any], device: own.Device) -> None:
    """Makes calls to warm up, then calls for each of the two traces, and writes these to `request["path"]` and `request["lines_path"]`.

    `arguments` gives new tensors each time, so that a call that changes its inputs changes nobody else's.
    """
    lines = Lines(request["folders"])

    def plain(given: Any) -> None:
        function(*given[0], **given[1])

    def marked(given: Any) -> None:
        sys.settrace(lines)
        try:
            function(*given[0], **given[1])
        finally:
            sys.settrace(None)
            lines.close()

    with own.no_grad():
        for _ in range(request["warm_up"]):
            # What the profiler itself imports on its first range is no part of a call.
            with record_function(CALL):
                plain(arguments())
        device.wait()
        sets = [arguments() for _ in range(request["calls"])]
        device.wait()
        _record(plain, sets, request["path"], device)
        sets = [arguments() for _ in range(request["calls"])]
        device.wait()
        with Paths(module):
            _record(marked, sets, request["lines_path"], device)
    with open(request["files_path"], "w", encoding="utf-8") as file:
        json.dump(sorted(_imported(request["folders"])), file)


def _imported(folders: List[str]) -> Set[str]:
    """The files of these folders that are modules of this process."""
    inside = tuple(folder.rstrip("/") + "/" for folder in folders)
    files = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    return {file for file in files if isinstance(file, str) and file.startswith(inside) and "/site-packages/" not in file}
