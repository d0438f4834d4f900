"""Imports torch once and forks a child for each role of each verification.

It never touches CUDA, whose state does not survive a fork, and never loads a person's code. What a child leaves behind becomes a child of
this process, which ends it.
"""
from __future__ import annotations

import ctypes
import gc
import os
import select
import signal
import socket
import sys
import time
from typing import Any, Dict, List, Optional, Tuple

_VARIABLE = "STITCHCUDA_CHANNEL"
#: `PR_SET_CHILD_SUBREAPER` and `PR_SET_DUMPABLE` of linux/prctl.h.
_SUBREAPER, _DUMPABLE = 36, 4
#: How long killing what a child left behind may take, in seconds.
_PATIENCE = 2.0


def _prctl(option: int, value: int) -> None:
    try:
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
    except (AttributeError, OSError):
        pass


def _children() -> List[int]:
    found: List[int] = []
    for thread in os.listdir("/proc/self/task"):
        try:
            with open("/proc/self/task/%s/children" % thread) as file:
                found.extend(int(word) for word in file.read().split())
        except OSError:
            continue
    return found


def _kill(process: int) -> None:
    for send in (os.killpg, os.kill):
        try:
            send(process, signal.SIGKILL)
        except OSError:
            pass


class Zygote:
    """The process that forks."""

    def __init__(self, channel: Any, wake: Tuple[int, int], device: str, forks: bool) -> None:
        self._channel, self._device, self._forks = channel, device, forks
        self._wake, self._woken = wake
        #: Process ids to the parent's numbers.
        self._numbers: Dict[int, int] = {}

    def run(self) -> None:
        """Obeys until the parent is gone."""
        while True:
            ready, _, _ = select.select([self._channel.fileno(), self._wake], [], [])
            if self._wake in ready:
                os.read(self._wake, 4096)
                self._reap()
            while self._channel.fileno() in ready or self._channel.has_line():
                ready = []
                received = self._channel.receive()
                if received is None:
                    return
                self._obey(*received)

    def _obey(self, request: Dict[str, Any], descriptors: List[int]) -> None:
        if request["do"] == "fork":
            self._fork(request["child"], descriptors)
        elif request["do"] == "kill":
            for process, number in self._numbers.items():
                if number == request["child"]:
                    _kill(process)

    def _fork(self, number: int, descriptors: List[int]) -> None:
        if not self._forks:
            self._channel.send({"forked": number})
            self._serve_alone(descriptors)
        try:
            process = os.fork()
        except OSError as error:
            self._channel.send({"not_forked": {"child": number, "reason": str(error)}})
            process = -1
        if process == 0:
            self._become_child(descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        if process > 0:
            self._numbers[process] = number
            self._channel.send({"forked": number})

    def _serve_alone(self, descriptors: List[int]) -> None:
        """Serves in this process, which ends as any program does: whatever watches it learns of that. Never returns."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _prctl(_DUMPABLE, 1)
        asked, printed = descriptors
        for target in (1, 2):
            os.dup2(printed, target)
        os.close(printed)
        from stitchcuda_runner import child

        child.serve(asked, self._device, lambda: sys.exit(0))

    def _become_child(self, descriptors: List[int]) -> None:
        """Goes on as a child, with nothing of the zygote but its memory. Never returns."""
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            _prctl(_DUMPABLE, 1)
            os.close(self._channel.fileno())
            os.close(self._wake)
            os.close(self._woken)
            asked, printed = descriptors
            nothing = os.open(os.devnull, os.O_RDONLY)
            for source, target in ((nothing, 0), (printed, 1), (printed, 2)):
                os.dup2(source, target)
            os.close(nothing)
            os.close(printed)
            from stitchcuda_runner import child

            child.serve(asked, self._device, lambda: os._exit(0))
        finally:
            os._exit(70)

    def _reap(self) -> None:
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if process == 0:
                return
            number: Optional[int] = self._numbers.pop(process, None)
            if number is not None:
                _kill_group(process)
                self._kill_leftovers()
                self._channel.send({"ended": {"child": number, "status": status}})

    def _kill_leftovers(self) -> None:
        """Ends what is a child of this process and was not forked by it."""
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            strangers = [process for process in _children() if process not in self._numbers]
            if not strangers:
                return
            for process in strangers:
                _kill(process)
                try:
                    os.waitpid(process, os.WNOHANG)
                except ChildProcessError:
                    pass
            time.sleep(0.002)


def _kill_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except OSError:
        pass


def main() -> None:
    """Imports, connects, obeys."""
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    name, token, *how = os.environ.pop(_VARIABLE).split(":")
    device = "cuda:0" if os.environ.get("CUDA_VISIBLE_DEVICES") else "cpu"
    # Everything a child needs is imported here, once. That may take minutes from a disk that is cold or far; who has connected is
    # expected to say the token at once.
    from stitchcuda_runner import child  # noqa: F401
    from stitchcuda_runner.wire import Channel

    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(name)
    # Whatever descends from this process becomes its child once its own parent is gone; and no child looks into it.
    _prctl(_SUBREAPER, 1)
    _prctl(_DUMPABLE, 0)
    wake, woken = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    channel = Channel(connection.detach())
    channel.send({"token": token})
    gc.collect()
    gc.freeze()
    Zygote(channel, (wake, woken), device, "alone" not in how).run()


if __name__ == "__main__":
    main()
