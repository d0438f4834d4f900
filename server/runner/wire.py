"""The channel to the parent: lines of JSON over a socket, descriptors beside them."""
from __future__ import annotations

import array
import fcntl
import json
import os
import socket
from typing import Any, Dict, List, Optional, Tuple

_exit = os._exit
_close = os.close
_encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
_decode = json.JSONDecoder().decode
_recvmsg = socket.socket.recvmsg
_sendall = socket.socket.sendall
_SOL_SOCKET, _SCM_RIGHTS = socket.SOL_SOCKET, socket.SCM_RIGHTS
_OSError = OSError

#: The channel's descriptor is this or a higher one, out of the way of code that writes to descriptor 3.
_HIGH = 200
#: As many descriptors come with one request at most.
_MOST_DESCRIPTORS = 8
#: The status of a process whose channel is broken: `EX_IOERR` of sysexits.h.
BROKEN = 74


class Channel:
    """One end, which blocks."""

    def __init__(self, descriptor: int) -> None:
        high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _HIGH)
        _close(descriptor)
        self._socket = socket.socket(fileno=high)
        self._socket.setblocking(True)
        self._rest = b""
        self._descriptors: List[int] = []

    def fileno(self) -> int:
        """The descriptor."""
        return self._socket.fileno()

    def has_line(self) -> bool:
        """Whether a request has come that was not taken yet: several may come at once."""
        return b"\n" in self._rest

    def receive(self) -> Optional[Tuple[Dict[str, Any], List[int]]]:
        """The next request and its descriptors; None when the other side is gone.

        A request says how many descriptors are its own, since the system may hand them out with the line before.
        """
        while b"\n" not in self._rest:
            space = socket.CMSG_SPACE(_MOST_DESCRIPTORS * array.array("i").itemsize)
            data, beside, _, _ = _recvmsg(self._socket, 1 << 16, space)
            for level, kind, content in beside:
                if level == _SOL_SOCKET and kind == _SCM_RIGHTS:
                    received = array.array("i")
                    received.frombytes(content[: len(content) - len(content) % received.itemsize])
                    self._descriptors.extend(received)
            if not data:
                return None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        request = _decode(line.decode("utf-8"))
        count = request.get("fds", 0)
        descriptors, self._descriptors = self._descriptors[:count], self._descriptors[count:]
        return request, descriptors

    def send(self, reply: Dict[str, Any]) -> None:
        """Sends one line."""
        _sendall(self._socket, _encode(reply).encode("utf-8", "replace") + b"\n")

    def send_or_die(self, reply: Dict[str, Any]) -> None:
        """Sends one line, and ends the process where that fails: nobody could ask it anything more."""
        try:
            self.send(reply)
        except _OSError:
            _exit(BROKEN)
