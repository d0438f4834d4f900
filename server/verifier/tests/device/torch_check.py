#!/usr/bin/env python3
"""Proves the Verifier for PyTorch on a GPU against KernelBench's problems, within a number of seconds.

    torch_check.py STITCHCUDA KERNELBENCH OUT all [--seconds N]        one optimisation, the candidates, 100 references, five repetitions of ten speedups,
                                                                       then all other references, as far as the time goes
    torch_check.py STITCHCUDA KERNELBENCH OUT references|candidates|repeat|optimise

OUT gets a line of JSON as soon as something is done, so that a run that is cut off loses nothing; what stands in OUT is not done again, so a
second run goes on where the first ended. The standard output gets a line each and a table at the end. Further words are passed to
`stitchcuda verify`.

Several verifications run at once: as many as processors, memory of the machine and of the GPU allow by the size of their inputs, which torch
tells without drawing them. Timing has the GPU alone, which is the Verifier's own affair.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from torch_candidates import CANDIDATES  # noqa: E402
from torch_scripted import optimise  # noqa: E402

LEVELS = ("level1", "level2", "level3")
#: References that are wanted before anything else is done twice.
FIRST_REFERENCES = 100
#: Memory of the machine that a verification takes besides its inputs' size, and as many times these, in bytes. Two processes with torch and
#: CUDA; inputs and outputs in the files that are shared and in the parent.
BASE, TIMES = 4 << 30, 8
#: The same on the GPU: two contexts with poisoned memory; inputs, copies, outputs, float64.
GPU_BASE, GPU_TIMES = 10 << 30, 12
#: What is assumed of a problem whose inputs' size torch can't tell.
UNKNOWN = 1 << 30
#: Seconds before the end in which what runs is stopped.
GRACE = 8

SIZES = r"""
import importlib.util, json, sys, torch
for path in sys.argv[1:]:
    try:
        spec = importlib.util.spec_from_file_location("problem", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        with torch.device("meta"):
            drawn = module.get_inputs()
        print(json.dumps([path, sum(x.numel() * x.element_size() for x in drawn if isinstance(x, torch.Tensor))]), flush=True)
    except Exception as error:
        print(json.dumps([path, None]), flush=True)
"""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stitchcuda")
    parser.add_argument("kernelbench", type=Path, help="the folder with level1, level2, level3")
    parser.add_argument("out", type=Path)
    parser.add_argument("what", choices=("all", "references", "candidates", "repeat", "optimise"))
    parser.add_argument("--list", type=Path, help="problems, one a line, as level1/19_ReLU")
    parser.add_argument("--only", default="", help="candidates whose problem and name hold this")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--compiled", type=int, default=5, help="candidates for which torch.compile is timed too (about 50 s of each)")
    parser.add_argument("--together", type=int, default=min(os.cpu_count() or 1, 12), help="verifications at the same time, at most")
    parser.add_argument("--seconds", type=float, default=1e9, help="everything ends after this")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--gpu-gigabytes", type=float, default=120)
    parser.add_argument("--python", help="the interpreter with torch")
    return parser.parse_known_args()


class Job:
    """One thing to do. `kind` and `name`, with `turn` of several, say which it is."""

    def __init__(self, kind, name, reference=None, candidate=None, expected="", turn=0, size=0, is_compiled=False):
        self.kind, self.name, self.reference, self.candidate = kind, name, reference, candidate
        self.expected, self.turn, self.size, self.is_compiled = expected, turn, size, is_compiled

    @property
    def key(self):
        return (self.kind, self.name, self.turn)


def problems(args):
    if args.list:
        return args.list.read_text().split()
    key = lambda path: (path.parent.name, int(path.stem.split("_")[0]))
    return [f"{path.parent.name}/{path.stem}" for level in LEVELS for path in sorted((args.kernelbench / level).glob("*.py"), key=key)]


def candidate_text(reference, candidate):
    """The problem's text with its class named `ModelNew` and another body of its `forward`."""
    text = re.sub(r"\bModel\b", "ModelNew", reference)
    for old, new in candidate.edits:
        assert old in text, f"{candidate.problem} has no {old!r}"
        text = text.replace(old, new)
    at = text.index("class ModelNew(")
    head, text = text[:at], text[at:]
    match = re.search(r"( +)def forward\(.*?\)[^\n]*:\n", text, re.S)
    end = re.search(r"^\S", text[match.end():], re.M)
    rest = text[match.end() + end.start():] if end else ""
    indent = match.group(1) * 2
    body = "".join(f"{indent}{line}\n" for line in candidate.forward.strip("\n").split("\n"))
    needed = "" if re.search(r"^import torch\.nn\.functional as F", head, re.M) else "import torch.nn.functional as F\n"
    return head + needed + candidate.before + "\n\n" + text[: match.end()] + body + "\n" + rest


def sizes(args, names):
    """Bytes of each problem's inputs; what torch can't tell is missing. Nothing where there is no such torch."""
    paths = {str(args.kernelbench / f"{name}.py"): name for name in names}
    command = [args.python or "python3", "-c", SIZES, *paths]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    except (OSError, subprocess.TimeoutExpired, json.JSONDecodeError):
        lines = []
    return {paths[path]: size for path, size in lines if size is not None and path in paths}


def in_turns(*lists):
    """One of each list after the other; the longer ones' rest comes last."""
    lists = [list(one) for one in lists]
    while any(lists):
        for one in lists:
            if one:
                yield one.pop(0)


def plan(args, work):
    """All jobs, what matters most first."""
    names = problems(args)
    chosen = [one for one in CANDIDATES if args.only in f"{one.problem} {one.name}" and (args.kernelbench / f"{one.problem}.py").is_file()]
    known = sizes(args, sorted({*names, *(one.problem for one in chosen)}))
    size = lambda name: known.get(name, UNKNOWN)
    path = lambda name: args.kernelbench / f"{name}.py"
    # Of each level, small ones first.
    levels = [sorted((name for name in names if name.startswith(level)), key=size) for level in LEVELS]
    references = [Job("references", name, path(name), path(name), size=size(name)) for name in in_turns(*levels)]
    if args.list:
        references = [Job("references", name, path(name), path(name), size=size(name)) for name in names]
    candidates, repeats = [], []
    for one in chosen:
        text = work / f"{one.problem.replace('/', '_')}_{one.name}.py"
        text.write_text(candidate_text(path(one.problem).read_text(), one))
        is_compiled = one.expected == "correct" and sum(job.is_compiled for job in candidates) < args.compiled
        job = lambda kind, turn: Job(
            kind, f"{one.problem} {one.name}", path(one.problem), text, one.expected, turn, size(one.problem), is_compiled and kind == "candidates"
        )
        candidates.append(job("candidates", 0))
        if one.expected == "correct" and len(repeats) < 10:
            repeats.append([job("repeat", turn) for turn in range(args.times)])
    # A round of all ten, then the next, so that what is there of them is of use.
    repeats = [job for turn in zip(*repeats) for job in turn]
    parts = {"optimise": [Job("optimise", "Score")], "candidates": candidates, "references": references, "repeat": repeats}
    if args.what != "all":
        return parts[args.what]
    first, rest = references[:FIRST_REFERENCES], references[FIRST_REFERENCES:]
    # Extensions of some candidates are built while references are verified.
    return [*parts["optimise"], *in_turns(candidates, first[0::2], first[1::2]), *repeats, *rest]


def read(out):
    """What was done before."""
    if not out.exists():
        return []
    lines = []
    for line in out.read_text().splitlines():
        try:
            lines.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return [line for line in lines if line.get("kind")]


class Run:
    """Runs jobs at once and writes down what comes of them."""

    def __init__(self, args, more, work):
        self.args, self.more, self.work = args, more, work
        self.begun = time.time()
        self.done = read(args.out)
        self.lock = threading.Condition()
        self.running, self.processes, self.is_over = [], set(), False
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        self.room = (total * 0.85, args.gpu_gigabytes * (1 << 30) if args.device.startswith("cuda") else float("inf"))

    def left(self):
        return self.args.seconds - GRACE - (time.time() - self.begun)

    def takes(self, jobs):
        return sum(BASE + TIMES * job.size for job in jobs), sum(GPU_BASE + GPU_TIMES * job.size for job in jobs)

    def has_room(self, job):
        if not self.running:
            return True
        takes = self.takes([*self.running, job])
        return len(self.running) < self.args.together and all(one <= room for one, room in zip(takes, self.room))

    def command(self, command, folder=None, environment=None):
        """Runs a command, and has it end with the time."""
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder, env=environment)
        with self.lock:
            self.processes.add(process)
        try:
            out, err = process.communicate()
        finally:
            with self.lock:
                self.processes.discard(process)
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def verify(self, job):
        command = [self.args.stitchcuda, "verify", str(job.reference), str(job.candidate), "--device", self.args.device, "--format", "json"]
        command += (["--python", self.args.python] if self.args.python else []) + self.more
        command += [] if job.is_compiled else ["--no-compile-baseline"]
        begun = time.time()
        done = self.command(command)
        try:
            verdict = json.loads(done.stdout)
        except json.JSONDecodeError:
            verdict = {"answer": "none", "error": done.stderr[-2000:]}
        verdict["status"], verdict["wall"] = done.returncode, time.time() - begun
        verdict["stderr"] = done.stderr[-1000:]
        return verdict

    def one(self, job):
        try:
            if job.kind == "optimise":
                folder = self.work / "optimise"
                result = optimise(self.args.stitchcuda, folder, self.args.device, self.args.python, dict(os.environ), self.command)
            else:
                result = self.verify(job)
        except Exception as error:  # one that fails must not end the others
            result = {"answer": "none", "error": repr(error), "wall": 0.0, "status": None}
        result = {"kind": job.kind, "name": job.name, "turn": job.turn, "expected": job.expected, "size": job.size, **result}
        with self.lock:
            self.running.remove(job)
            # What was stopped has come to nothing.
            if not self.is_over:
                self.write(result)
            self.lock.notify_all()

    def write(self, result):
        self.done.append(result)
        text = json.dumps(result) + "\n"
        with self.args.out.open("a+b") as out:
            # A line that was cut off is ended first.
            if out.tell() and not self.ends_with_newline():
                text = "\n" + text
            out.write(text.encode())
            out.flush()
            os.fsync(out.fileno())
        print(f"{time.time() - self.begun:6.0f} s  {line(result)}", flush=True)

    def ends_with_newline(self):
        with self.args.out.open("rb") as out:
            out.seek(-1, os.SEEK_END)
            return out.read(1) == b"\n"

    def all(self, jobs):
        known = {(line["kind"], line["name"], line.get("turn", 0)) for line in self.done if line.get("status") in (0, 1)}
        waiting = [job for job in jobs if job.key not in known]
        print(f"{len(jobs)} to do, {len(jobs) - len(waiting)} done before", flush=True)
        with self.lock:
            while waiting and self.left() > 0:
                # A small one may overtake a large one, but not the many behind it.
                fit = next((job for job in waiting[:12] if self.has_room(job)), None)
                if fit is None:
                    self.lock.wait(min(max(self.left(), 0.01), 5))
                    continue
                waiting.remove(fit)
                self.running.append(fit)
                threading.Thread(target=self.one, args=(fit,), daemon=True).start()
            while self.running and self.left() > 0:
                self.lock.wait(min(max(self.left(), 0.01), 5))
            self.is_over = True
            stopped = list(self.processes)
        for sent in (signal.SIGINT, signal.SIGKILL):
            for process in stopped:
                if process.poll() is None:
                    process.send_signal(sent)
            end = time.time() + GRACE / 3
            while time.time() < end and any(process.poll() is None for process in stopped):
                time.sleep(0.05)
        return jobs


def speedup(verdict):
    """That over the reference, if it was timed."""
    return next((one for one in verdict.get("speedups", []) if one["over"] == "reference"), {})


def line(result):
    ratio = speedup(result)
    numbers = f"{ratio['ratio']:.3f} ({ratio['low']:.3f} to {ratio['high']:.3f})" if ratio else "not timed"
    if result["kind"] == "optimise":
        numbers = f"gain {result.get('gain')}, {result.get('attempts')}"
    worst = next((finding.get("message", "") for finding in result.get("findings", [])), "") or result.get("error", "")
    expected = result.get("expected")
    mark = "" if not expected or expected == result["answer"] else f"  EXPECTED {expected}"
    return f"{result['kind']:<10} {result['name']:<58} {result['answer']:<12} {numbers:<28} {result['wall']:6.1f} s{mark}  {worst.strip()[-220:]}"


def summary(run, jobs):
    planned = {job.key for job in jobs}
    last = {}
    for result in run.done:
        key = (result["kind"], result["name"], result.get("turn", 0))
        if key in planned:
            last[key] = result
    of = lambda kind: [result for result in last.values() if result["kind"] == kind]
    print(f"\n{len(last)} of {len(planned)} done, {time.time() - run.begun:.0f} s in this run")
    if references := of("references"):
        right = [result for result in references if result["answer"] == "correct"]
        ratios = [speedup(result) for result in right if speedup(result)]
        within = sum(ratio["low"] <= 1.0 <= ratio["high"] for ratio in ratios)
        near = sum(abs(ratio["ratio"] - 1.0) <= 0.01 for ratio in ratios)
        print(f"references: {len(references)}, right: {len(right)}; 1.0 within the interval: {within} of {len(ratios)}; within 1% of 1.0: {near}")
        for result in references:
            ratio = speedup(result)
            if result["answer"] != "correct" or not ratio or not ratio["low"] <= 1.0 <= ratio["high"]:
                print(f"  {line(result)}  {'; '.join(result.get('notChecked', []))[:300] if not ratio else ''}")
    if candidates := of("candidates"):
        print(f"candidates: {len(candidates)}, as expected: {sum(result['expected'] == result['answer'] for result in candidates)}")
    if repeats := of("repeat"):
        for name in sorted({result["name"] for result in repeats}):
            ratios = [speedup(result) for result in repeats if result["name"] == name and speedup(result)]
            medians = [ratio["ratio"] for ratio in ratios]
            if not medians:
                continue
            spread = (max(medians) - min(medians)) / min(medians)
            width = max((ratio["high"] - ratio["low"]) / ratio["ratio"] for ratio in ratios)
            print(f"  {name:<64} {len(medians)} times: {min(medians):.3f} to {max(medians):.3f}, spread {100 * spread:.1f}%, widest interval {100 * width:.1f}%")
    for result in of("optimise"):
        print(line(result))
    stages = {}
    for result in last.values():
        for stage in result.get("stages", []):
            stages.setdefault(stage["stage"], []).append(stage["seconds"])
    for name, seconds in sorted(stages.items(), key=lambda item: -sum(item[1])):
        seconds.sort()
        print(f"  stage {name:<14} {sum(seconds):8.1f} s in all, median {seconds[len(seconds) // 2]:6.2f}, longest {seconds[-1]:6.1f}, of {len(seconds)}")


def main():
    args, more = arguments()
    args.stitchcuda = str(Path(args.stitchcuda).resolve())
    args.out = args.out.resolve()
    work = args.out.parent / "candidates"
    work.mkdir(parents=True, exist_ok=True)
    run = Run(args, more, work)
    summary(run, run.all(plan(args, work)))


if __name__ == "__main__":
    main()
