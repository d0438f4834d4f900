"""Misbehaves at a call, as its argument says."""
import atexit
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time

import torch


DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


class Lazy(torch.Tensor):
    pass


def _fork_and_return():
    if os.fork() == 0:
        os.environ["COPY"] = "yes"


def _linger():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    os._exit(9)


def _patch():
    torch.Tensor.copy_ = lambda *_: None
    torch.empty = None
    torch.matmul = lambda *_: None
    os._exit = lambda *_: None
    sys.modules["json"].dumps = None
    sys.modules["socket"].socket.sendall = None
    torch.manual_seed = None


def _deep():
    value = []
    for _ in range(5000):
        value = [value]
    return value


def _itself():
    value = []
    value.append(value)
    return value


class Silent(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def _raise(error):
    raise error


ACTS = {
    "exit": lambda: os._exit(3),
    "system_exit": lambda: sys.exit(5),
    "interrupt": lambda: _raise(KeyboardInterrupt()),
    "silent": lambda: _raise(Silent()),
    "abort": os.abort,
    "segfault": lambda: ctypes.string_at(8),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "kill_zygote": lambda: (os.kill(os.getppid(), signal.SIGKILL), time.sleep(60)),
    "stop_zygote": lambda: (os.kill(os.getppid(), signal.SIGSTOP), time.sleep(60)),
    "hang": lambda: time.sleep(600),
    "spin": lambda: [None for _ in iter(int, 1)],
    "close": lambda: (os.closerange(0, 4096), time.sleep(60)),
    "close_and_return": lambda: os.closerange(0, 4096),
    "print": lambda: print('{"ok": true, "id": "x"}' * 10, flush=True),
    "print_much": lambda: os.write(1, b"x" * (2 << 20)),
    "flood": lambda: [print("x" * 100000) for _ in range(10000)],
    "ask": lambda: input("your name? "),
    "fork": _fork_and_return,
    "linger": _linger,
    "thread": lambda: threading.Thread(target=time.sleep, args=(60,), daemon=True).start(),
    "process": lambda: subprocess.Popen(["sleep", "60"]),
    "dtype": lambda: torch.set_default_dtype(torch.float64),
    "tf32": lambda: setattr(torch.backends.cudnn, "benchmark", True),
    "patch": _patch,
    "deep": _deep,
    "itself": _itself,
    "subclass": lambda: torch.ones(2).as_subclass(Lazy),
    "sparse": lambda: torch.eye(3).to_sparse(),
    "meta": lambda: torch.empty(3, device="meta"),
    "object": object,
    "memory": lambda: torch.empty(1 << 46),
    "python_memory": lambda: bytearray(1 << 60),
    "unwritten": lambda: torch.empty(1 << 20, device=DEVICE),
    "unwritten_small": lambda: torch.empty(64, device=DEVICE),
    "gpu_memory": lambda: torch.empty(1 << 46, device=DEVICE),
    "assert": lambda: torch.ones(3, device=DEVICE)[torch.full((3,), 10**7, device=DEVICE)],
    "recursion": lambda: ACTS["recursion"](),
    "warn": lambda: print("a last word", file=sys.stderr, flush=True) or os._exit(4),
    "at_exit": lambda: atexit.register(os._exit, 0),
    "seeds": lambda: (torch.manual_seed(0), torch.rand(2))[1],
}


class Model(torch.nn.Module):
    def forward(self, act, x):
        found = ACTS[act]()
        return x if found is None or act in ("process", "print_much", "at_exit", "tf32") else found


def get_init_inputs():
    return []
