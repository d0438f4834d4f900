"""Reaches for the channel and says what it likes, as its argument says."""
import gc
import json
import os
import socket

import torch


def channel():
    found = [thing for thing in gc.get_objects() if type(thing).__name__ == "Channel"]
    return found[0]


def swap(reply):
    """Has the next reply be another one."""
    own = channel()
    sendall = socket.socket.sendall

    def send(said):
        known = json.loads(json.dumps(said))
        sendall(own._socket, reply(known))
        os._exit(0) if reply.__name__ == "last" else None

    type(own).send = lambda self, said: send(said)


def edited(change):
    def reply(said):
        if "outputs" in said:
            change(said)
        return json.dumps(said).encode() + b"\n"

    return reply


def first(said):
    return said["outputs"]["tensors"][0]


LIES = {
    "terabytes": edited(lambda s: (first(s).update(shape=[1 << 38], bytes=1 << 40), s["outputs"].update(bytes=1 << 40))),
    "more": edited(lambda s: first(s).update(bytes=1 << 20)),
    "overflow": edited(lambda s: first(s).update(shape=[1 << 63, 1 << 63])),
    "negative": edited(lambda s: first(s).update(shape=[-1])),
    "offset": edited(lambda s: first(s).update(offset=1 << 62)),
    "unaligned": edited(lambda s: first(s).update(offset=3)),
    "fewer": edited(lambda s: s["outputs"]["tensors"].clear()),
    "extra": edited(lambda s: s["outputs"]["tensors"].append(dict(first(s), offset=64)) or s["outputs"].update(bytes=68)),
    "dtype": edited(lambda s: first(s).update(dtype="float7")),
    "place": edited(lambda s: s["outputs"]["tree"].update(i=99)),
    "no_tree": edited(lambda s: s["outputs"].pop("tree")),
    "no_outputs": edited(lambda s: s.pop("outputs")),
    "other_id": edited(lambda s: s.update(id="0")),
    "no_id": edited(lambda s: s.pop("id")),
    "no_reason": edited(lambda s: s.update(ok=False)),
    "words": lambda said: b"hello\n",
    "bytes": lambda said: b"\xff\xfe\x00\n",
    "deep": lambda said: b'{"x":' + b"[" * 100000 + b"\n",
    "endless": lambda said: b"x" * (8 << 20),
    "nothing": lambda said: b"\n",
    "twice": lambda said: json.dumps(said).encode() + b"\n" + json.dumps(said).encode() + b"\n",
}


class Model(torch.nn.Module):
    def forward(self, lie, x):
        swap(LIES[lie])
        return x + 1


def get_init_inputs():
    return []
