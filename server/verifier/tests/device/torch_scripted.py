"""An optimisation of a module in a `.py` with a model whose answers are a script, behind an endpoint of this process's own."""

import json
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODEL = '''"""Scores."""
import torch
from torch import nn


class Score(nn.Module):
    """A weighted sum of each row."""

    # stitchcuda: init(256)
    # stitchcuda: inputs(randn(4096, 256))
    def __init__(self, size: int):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(size))
        self.register_buffer("offset", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = torch.zeros(x.shape[0], dtype=x.dtype, device=x.device)
        for column in range(x.shape[1]):
            total = total + x[:, column] * self.weight[column]
        return total + self.offset
'''
SEARCH = MODEL[MODEL.index("        total = torch.zeros"):]
BETTER = "        return x @ self.weight + self.offset\n"
PLAN = {"summary": "A loop in Python does what one product can.", "tasks": [{"title": "One product", "scope": ["Score"]}]}
ANSWERS = [json.dumps(PLAN), f"<<<<<<< SEARCH\n{SEARCH}=======\n{BETTER}>>>>>>> REPLACE\n", json.dumps({"summary": "Done.", "tasks": []})]


class Scripted(BaseHTTPRequestHandler):
    """Gives one answer after the other, as a stream of events, and the last one again and again."""

    answers = []

    def log_message(self, *_):
        pass

    def _send(self, kind, body):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self._send("application/json", json.dumps({"object": "list", "data": [{"id": "scripted", "object": "model"}]}).encode())

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        text = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

        def event(delta, finish):
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            return b"data: " + json.dumps({"object": "chat.completion.chunk", "model": "scripted", "choices": [choice]}).encode() + b"\n\n"

        usage = {"object": "chat.completion.chunk", "choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}}
        end = b"data: " + json.dumps(usage).encode() + b"\n\ndata: [DONE]\n\n"
        self._send("text/event-stream", event({"content": text}, None) + event({}, "stop") + end)


def optimise(stitchcuda, folder, device, python, environment, run):
    """Optimises the module. `run(command, folder, environment)` gives what came of a command. A line of results."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.py").write_text(MODEL)
    Scripted.answers = list(ANSWERS)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Scripted)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    command = [stitchcuda, "optimize", "model.py::Score", "--engine", "llm", "--device", device, "--apply", "--format", "json"]
    command += ["--python", python] if python else []
    environment = {**environment, "STITCHCUDA_MODEL_ENDPOINT": f"http://127.0.0.1:{server.server_port}/v1", "STITCHCUDA_MODEL_NAME": "scripted"}
    begun = time.time()
    try:
        done = run(command, folder, environment)
    finally:
        server.shutdown()
    events = []
    for line in done.stdout.splitlines():
        try:
            events.append(json.loads(line))
        except json.JSONDecodeError:
            pass
    attempts = [event["outcome"] for event in events if event.get("entry") == "attempt"]
    last = events[-1] if events else {}
    applied = "x @ self.weight" in (folder / "model.py").read_text()
    good = done.returncode == 0 and applied and "kept" in attempts
    return {
        "answer": "correct" if good else "failed", "attempts": attempts, "gain": last.get("conclusion", {}).get("gain"), "applied": applied,
        "status": done.returncode, "wall": time.time() - begun, "stderr": done.stderr[-2000:],
    }
