"""Checks the Verifier for PyTorch on a GPU, with problems of KernelBench.

    torch_check.py STITCHCUDA KERNELBENCH OUT references [--most-megabytes N] [--count N]   each problem against itself
    torch_check.py STITCHCUDA KERNELBENCH OUT candidates                                     those of torch_candidates.py
    torch_check.py STITCHCUDA KERNELBENCH OUT repeat [--times N]                             speedups, again and again

OUT gets a line of JSON a verification, and the standard output a table. Further words are passed to `stitchcuda verify`.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from torch_candidates import CANDIDATES

LEVELS = ("level1", "level2", "level3")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stitchcuda")
    parser.add_argument("kernelbench", type=Path, help="the folder with level1, level2, level3")
    parser.add_argument("out", type=Path)
    parser.add_argument("what", choices=("references", "candidates", "repeat"))
    parser.add_argument("--list", type=Path, help="problems, one a line, as level1/19_ReLU")
    parser.add_argument("--only", default="", help="candidates whose problem and name hold this")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--together", type=int, default=4, help="verifications at the same time; timing has the GPU alone")
    parser.add_argument("--seconds", type=float, default=1e9, help="nothing new is begun after this")
    parser.add_argument("--device", default="cuda:0")
    return parser.parse_known_args()


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


def verify(args, more, reference, candidate):
    begun = time.time()
    command = [args.stitchcuda, "verify", str(reference), str(candidate), "--device", args.device, "--format", "json", *more]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        verdict = json.loads(done.stdout)
    except json.JSONDecodeError:
        verdict = {"answer": "none", "error": done.stderr[-2000:]}
    verdict["status"], verdict["wall"] = done.returncode, time.time() - begun
    verdict["stderr"] = done.stderr[-1000:]
    return verdict


def speedup(verdict):
    """That over the reference, if it was timed."""
    return next((one for one in verdict.get("speedups", []) if one["over"] == "reference"), {})


def line(name, verdict, expected=""):
    ratio = speedup(verdict)
    numbers = f"{ratio['ratio']:.3f} ({ratio['low']:.3f} to {ratio['high']:.3f})" if ratio else "not timed"
    worst = next((finding.get("message", "") for finding in verdict.get("findings", [])), "") or verdict.get("error", "")
    mark = "" if not expected or expected == verdict["answer"] else f"  EXPECTED {expected}"
    return f"{name:<64} {verdict['answer']:<12} {numbers:<28} {verdict['wall']:6.1f} s{mark}  {worst.strip()[-220:]}"


def main():
    args, more = arguments()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    work = args.out.parent / "candidates"
    work.mkdir(exist_ok=True)
    begun = time.time()
    jobs = []
    if args.what == "references":
        jobs = [(problem, args.kernelbench / f"{problem}.py", args.kernelbench / f"{problem}.py", "") for problem in problems(args)]
    else:
        chosen = [one for one in CANDIDATES if args.only in f"{one.problem} {one.name}"]
        if args.what == "repeat":
            chosen = [one for one in chosen if one.expected == "correct"][:10]
        for one in chosen:
            reference = args.kernelbench / f"{one.problem}.py"
            path = work / f"{one.problem.replace('/', '_')}_{one.name}.py"
            path.write_text(candidate_text(reference.read_text(), one))
            times = args.times if args.what == "repeat" else 1
            jobs += [(f"{one.problem} {one.name}", reference, path, one.expected)] * times

    def one(job):
        name, reference, candidate, expected = job
        if time.time() - begun > args.seconds:
            return None
        verdict = verify(args, more, reference, candidate)
        print(line(name, verdict, expected), flush=True)
        with args.out.open("a") as out:
            out.write(json.dumps({"name": name, "expected": expected, **verdict}) + "\n")
        return (name, expected, verdict)

    with ThreadPoolExecutor(args.together) as pool:
        done = [result for result in pool.map(one, jobs) if result]
    summary(args, done, len(jobs), time.time() - begun)


def summary(args, done, planned, seconds):
    print(f"\n{len(done)} of {planned} verified in {seconds:.0f} s")
    if args.what == "references":
        right = [verdict for _, _, verdict in done if verdict["answer"] == "correct"]
        ratios = [speedup(verdict) for verdict in right if speedup(verdict)]
        within = sum(ratio["low"] <= 1.0 <= ratio["high"] for ratio in ratios)
        near = sum(abs(ratio["ratio"] - 1.0) <= 0.01 for ratio in ratios)
        print(f"right: {len(right)}; 1.0 within the interval: {within} of {len(ratios)}; median within 1% of 1.0: {near}")
    elif args.what == "candidates":
        as_expected = sum(expected == verdict["answer"] for _, expected, verdict in done)
        print(f"as expected: {as_expected} of {len(done)}")
    else:
        names = sorted({name for name, _, _ in done})
        for name in names:
            ratios = [speedup(verdict) for other, _, verdict in done if other == name and speedup(verdict)]
            medians = [ratio["ratio"] for ratio in ratios]
            if not medians:
                continue
            spread = (max(medians) - min(medians)) / min(medians)
            width = max((ratio["high"] - ratio["low"]) / ratio["ratio"] for ratio in ratios)
            print(f"{name:<64} {len(medians)} times: {min(medians):.3f} to {max(medians):.3f}, spread {100 * spread:.1f}%, widest interval {100 * width:.1f}%")


if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(__file__))
    main()
