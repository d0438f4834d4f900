"""Extensions built both ways: as torch does, and as a verification does. Their functions, device code and results must be the same.

    builds.py OUT --builder torch_builds [--others extensions.json] [--seconds 220] [--no-ordinary]

    builds.py summary OUT/builds.jsonl

`torch_builds` is the example of the verifier's crate. Without a GPU nothing is called, and set TORCH_CUDA_ARCH_LIST. `--others` are extensions
of others, as `builds_collect.py` collects them. A line of JSON for each extension goes to OUT/builds.jsonl; those that stand there are left out.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent


def write(folder, name, cpp, cuda, functions, more):
    """Has torch write an extension's sources and build file into a folder, and build nothing."""
    import torch.utils.cpp_extension as extension

    folder.mkdir(parents=True)
    # Torch adds to the lists that it is given.
    cpp, cuda, functions = ((list(value) if isinstance(value, list) else value) for value in (cpp, cuda, functions))
    more = {key: list(value) for key, value in more.items()}
    extension._run_ninja_build = lambda build_directory, verbose, error_prefix: None
    extension._import_module_from_library = lambda *_: None
    extension._check_cuda_version = lambda *_: None
    if not cuda:
        extension.load_inline(name=name, cpp_sources=cpp, functions=functions, build_directory=str(folder), **more)
    else:
        extension.load_inline(name=name, cpp_sources=cpp, cuda_sources=cuda, functions=functions, build_directory=str(folder), **more)
    extension.JIT_EXTENSION_VERSIONER.entries.clear()
    return folder


def run(command, folder):
    """Runs a program to its end: its exit status, what it printed, and its seconds, by the clock and of processors (its children's too)."""
    with tempfile.TemporaryFile("w+", errors="replace") as out:
        began = time.monotonic()
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = {"seconds": round(time.monotonic() - began, 2), "processor_seconds": round(used.ru_utime + used.ru_stime, 2)}
        out.seek(0)
        return process.returncode, out.read(), seconds


def ordinary(folder):
    status, text, seconds = run(["ninja", "-v"], folder)
    return {"ok": status == 0, **seconds, "text": "" if status == 0 else text[-3000:]}


def fast(builder, kept, folder):
    status, text, seconds = run([builder, str(kept), str(folder)], folder)
    if status:
        return {"how": "failed", **seconds, "text": text[-2000:], "ordinary": []}
    said = json.loads(text.strip().splitlines()[-1])
    return {**said, **seconds, "text": said["text"][-1500:]}


def library(folder):
    found = list(folder.glob("*.so"))
    return found[0] if found else None


def code(path):
    """The device code of a library by kernel, as cuobjdump shows it."""
    program = shutil.which("cuobjdump") or os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin", "cuobjdump")
    if not os.path.exists(program):
        return None
    text = subprocess.run([program, "-sass", str(path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    text = subprocess.run(["c++filt"], input=text, stdout=subprocess.PIPE, text=True).stdout
    kernels, name = {}, None
    for line in text.splitlines():
        if "Function :" in line:
            name = re.sub(r"stitchcuda_unnamed_[0-9]+|\(anonymous namespace\)|_GLOBAL__N__[0-9a-f_A-Z]+\w*|<unnamed>", "@", line.split(":", 1)[1].strip())
            kernels[name] = []
        elif name and line.strip().startswith("/*"):
            kernels[name].append(line.strip())
    return kernels


def said_by(paths, case):
    """What each library binds, and what its functions give."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, __file__, "ask", folder, case, *map(str, paths)], stderr=subprocess.PIPE, text=True, timeout=200)
        files = [pathlib.Path(folder, str(number)) for number in range(len(paths))]
        return [file.read_text() if file.exists() else "failed: " + done.stderr[-800:] for file in files]


def ask_all(folder, case, *paths):
    """Asks each library in a process of its own; torch is imported once for all of them."""
    import torch  # noqa: F401

    for number, path in enumerate(paths):
        child = os.fork()
        if not child:
            status = 1
            try:
                pathlib.Path(folder, str(number)).write_text(ask(path, case))
                status = 0
            except BaseException:  # noqa: BLE001
                traceback.print_exc()
            os._exit(status)
        os.waitpid(child, 0)


def ask(path, case):
    import hashlib
    import importlib.machinery
    import importlib.util

    import torch

    name = pathlib.Path(path).stem
    spec = importlib.util.spec_from_file_location(name, path, loader=importlib.machinery.ExtensionFileLoader(name, path))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    bound = sorted((key, getattr(value, "__doc__", "") or "") for key, value in vars(module).items() if not key.startswith("__"))
    results = []
    sys.path.insert(0, str(HERE))
    from builds_cases import CASES

    if case in CASES and (torch.cuda.is_available() or case == "cpu"):
        for tensor in CASES[case][4](module, torch, "cuda" if torch.cuda.is_available() else "cpu"):
            values = tensor.detach().cpu().contiguous()
            results.append([str(values.dtype), list(values.shape), hashlib.sha256(values.view(torch.uint8).numpy().tobytes() if values.dim() else
                                                                                  repr(values.item()).encode()).hexdigest()])
        if torch.cuda.is_available():
            torch.cuda.synchronize()
    return json.dumps({"bound": bound, "results": results})


def compare(name, folders, case):
    first, second = (library(folder) for folder in folders)
    codes = [code(path) for path in (first, second)]
    said = said_by((first, second), case)
    same_code = None if codes[0] is None else codes[0] == codes[1]
    line = {"same_code": same_code, "kernels": len(codes[0] or ()), "same_bound_and_results": None if all(text.startswith("failed") for text in said) else said[0] == said[1]}
    if same_code is False:
        line["differs"] = sorted(set(codes[0]) ^ set(codes[1]))[:6] or [key for key in codes[0] if codes[0][key] != codes[1][key]][:6]
    if not line["same_bound_and_results"]:  # Neither may load where a library of CUDA is not found.
        line["said"] = [text[:1200] for text in said]
    return line


def extensions(arguments):
    sys.path.insert(0, str(HERE))
    from builds_cases import CASES

    found = [] if arguments.skip_own else [(name, "own", *case[:4]) for name, case in CASES.items()]
    if arguments.others:
        for one in json.loads(pathlib.Path(arguments.others).read_text()):
            more = {key: one[key] for key in ("extra_cflags", "extra_cuda_cflags") if one.get(key)}
            found.append((one["name"], one["from"], one["cpp"], one["cuda"], one.get("functions"), more))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--builder", required=True)
    parser.add_argument("--others")
    parser.add_argument("--skip-own", action="store_true")
    parser.add_argument("--no-ordinary", action="store_true", help="build only the fast way: what is taken apart, and how long it takes")
    parser.add_argument("--seconds", type=float, default=220)
    parser.add_argument("--at-once", type=int, default=6)
    arguments = parser.parse_args()
    until = time.monotonic() + arguments.seconds
    out = arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    lines = out / "builds.jsonl"
    done = {json.loads(line)["name"] for line in lines.read_text().splitlines()} if lines.exists() else set()
    kept, work = out / "kept", out / "work"
    shutil.rmtree(work, ignore_errors=True)
    left = [one for one in extensions(arguments) if one[0] not in done]
    first = bool(left) and not done

    def both(one):
        name, where, cpp, cuda, functions, more = one
        plain = re.sub(r"\W", "_", name)
        return [write(work / way / plain, plain, cpp, cuda, functions, more) for way in ("ordinary", "fast")]

    def note(line):
        with lines.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(json.dumps({key: value for key, value in line.items() if key not in ("text", "said")}), flush=True)

    def one_of(one, alone):
        if time.monotonic() > until:
            return
        name, where = one[:2]
        try:
            folders = folders_of[name]
            line = {"name": name, "from": where}
            if alone:
                line["first"] = fast(arguments.builder, kept, folders[1])
                shutil.rmtree(kept / "results", ignore_errors=True)
            line["fast"] = fast(arguments.builder, kept, folders[1])
            if alone:
                line["again"] = fast(arguments.builder, kept, folders[1])
            if not arguments.no_ordinary:
                line["ordinary"] = ordinary(folders[0])
                line["alone"] = alone
                # What is left to torch is built as it always was.
                line["agree"] = line["fast"]["how"] == "ordinary" or line["ordinary"]["ok"] == (line["fast"]["how"] == "built")
                if line["ordinary"]["ok"] and line["fast"]["how"] == "built":
                    line.update(compare(name, folders, name))
            note(line)
        except Exception as error:  # noqa: BLE001 - one extension must not end the rest
            note({"name": name, "from": where, "failed": repr(error)[:600]})
        finally:
            for folder in folders_of.get(name, []):
                shutil.rmtree(folder, ignore_errors=True)

    folders_of = {}
    for one in left:
        try:
            folders_of[one[0]] = both(one)
        except Exception as error:  # noqa: BLE001
            note({"name": one[0], "from": one[1], "failed": "torch does not write it: " + repr(error)[:400]})
    left = [one for one in left if one[0] in folders_of]
    # Those that are taken apart first: the rest, nvcc compiles whole either way.
    texts = {one[0]: str(folders_of[one[0]][1] / "cuda.cu") for one in left if (folders_of[one[0]][1] / "cuda.cu").exists()}
    looked = subprocess.run([arguments.builder, "--look", *texts.values()], stdout=subprocess.PIPE, text=True, check=True).stdout
    whole = {line.split("\t")[0] for line in looked.splitlines() if line.split("\t")[1]}
    left.sort(key=lambda one: (one[1] != "own", texts.get(one[0]) in whole))
    if first and left:
        one_of(left[0], True)
        left = left[1:]
    with concurrent.futures.ThreadPoolExecutor(arguments.at_once) as pool:
        list(pool.map(lambda one: one_of(one, False), left))
    summary(lines)


def summary(lines):
    every = [json.loads(line) for line in lines.read_text().splitlines()]
    built = [line for line in every if line.get("fast", {}).get("how") == "built"]
    apart = [line for line in built if not line["fast"]["ordinary"]]
    counts = {
        "extensions": len(every), "built": len(built), "taken apart": len(apart), "why not": why_not(every),
        "same code": sum(line.get("same_code") is True for line in built), "other code": [line["name"] for line in built if line.get("same_code") is False],
        "same functions and results": sum(bool(line.get("same_bound_and_results")) for line in built),
        "other functions or results": [line["name"] for line in built if line.get("same_bound_and_results") is False],
        "disagree": [line["name"] for line in every if line.get("agree") is False],
        "not tried": [line["name"] for line in every if "failed" in line],
    }
    print(json.dumps(counts, indent=1))
    for line in every:
        if line.get("alone"):
            print(json.dumps({way: {key: line[way].get(key) for key in ("seconds", "processor_seconds")} for way in ("first", "fast", "again", "ordinary")}))
    ratios = sorted(line["ordinary"]["processor_seconds"] / line["fast"]["processor_seconds"] for line in apart if line.get("ordinary", {}).get("ok") and not line["fast"]["found"])
    if ratios:
        print("processor time, ordinary by fast, of %d taken apart: lowest %.1f, median %.1f, highest %.1f" % (len(ratios), ratios[0], ratios[len(ratios) // 2], ratios[-1]))


def why_not(every):
    """How many were left to torch, or to nvcc whole, for each reason."""
    reasons = [reason for line in every for _, reason in line.get("fast", {}).get("ordinary", [])]
    return dict(collections.Counter(reasons).most_common())


if __name__ == "__main__":
    if sys.argv[1:2] == ["ask"]:
        ask_all(*sys.argv[2:])
    elif sys.argv[1:2] == ["summary"]:
        summary(pathlib.Path(sys.argv[2]))
    else:
        main()
