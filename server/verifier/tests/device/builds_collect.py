"""Collects extensions of others from fetched repositories, as `builds.py --others` takes them. Nothing of their text is kept here.

    builds_collect.py FOLDER OUT.json        FOLDER holds a repository each, named OWNER_NAME or NAME

A Python file gives what it passes to `load_inline` as literal texts; a CUDA file that registers functions gives itself. `builds_list.txt` names
repository, commit and path of those that the published table is about.
"""
import ast
import json
import pathlib
import re
import sys

#: What files that are compiled alone are usually compiled with: their own scripts pass these.
HALF = ["-O3", "-U__CUDA_NO_HALF_OPERATORS__", "-U__CUDA_NO_HALF_CONVERSIONS__", "-U__CUDA_NO_HALF2_OPERATORS__", "-U__CUDA_NO_BFLOAT16_CONVERSIONS__",
        "--expt-relaxed-constexpr", "--expt-extended-lambda", "--use_fast_math"]
HERE = pathlib.Path(__file__).resolve().parent


def texts(node, known):
    """A literal text, a name for one, or a list of them."""
    if node is None:
        return []
    if isinstance(node, (ast.List, ast.Tuple)):
        parts = [texts(one, known) for one in node.elts]
        return None if None in parts else [text for part in parts for text in part]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.Constant) and node.value is None:
        return []
    if isinstance(node, ast.Name) and node.id in known:
        return [known[node.id]]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = [texts(one, known) for one in (node.left, node.right)]
        return None if None in parts else ["".join(text for part in parts for text in part)]
    return None


def inline(path, source):
    """What a Python file passes to `load_inline`."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return  # A template of a prompt.
    known = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            value = texts(node.value, known)
            if value and len(value) == 1:
                known[node.targets[0].id] = value[0]
    for node in ast.walk(tree):
        name = getattr(node.func, "attr", getattr(node.func, "id", "")) if isinstance(node, ast.Call) else ""
        if name != "load_inline":
            continue
        given = {word.arg: word.value for word in node.keywords}
        found = {key: texts(given.get(key), known) for key in ("cpp_sources", "cuda_sources", "functions", "extra_cflags", "extra_cuda_cflags")}
        if None in found.values() or not (found["cpp_sources"] or found["cuda_sources"]):
            continue
        yield {"cpp": found["cpp_sources"] or "", "cuda": found["cuda_sources"], "functions": found["functions"] or None,
               "extra_cflags": found["extra_cflags"], "extra_cuda_cflags": found["extra_cuda_cflags"]}


def main():
    folder, out = map(pathlib.Path, sys.argv[1:3])
    found, seen = [], set()
    for line in (HERE / "builds_list.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        repository, commit, path = line.split("\t")
        owner, name = repository.split("/")
        places = [place / path for place in (folder / name, folder / ("%s_%s" % (owner, name)))]
        file = next((place for place in places if place.is_file()), None)
        if file is None:
            print("not there: %s %s" % (repository, path), file=sys.stderr)
            continue
        source = file.read_text(encoding="utf-8", errors="replace")
        ones = list(inline(path, source)) if path.endswith(".py") else [{"cpp": "", "cuda": [source], "functions": None, "extra_cuda_cflags": HALF}]
        for number, one in enumerate(ones):
            key = json.dumps([one["cpp"], one["cuda"]])
            if key in seen:
                continue
            seen.add(key)
            label = re.sub(r"\W+", "_", "%s_%s" % (name, pathlib.Path(path).with_suffix("")))[-70:].strip("_") + ("_%d" % number if number else "")
            found.append({"name": label, "from": "%s@%s %s" % (repository, commit[:10], path), **one})
    out.write_text(json.dumps(found))
    print(len(found), "extensions")


if __name__ == "__main__":
    main()
