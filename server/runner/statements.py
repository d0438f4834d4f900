"""Makes a function of statements in the middle of a file."""
from __future__ import annotations

import ast
from typing import Any, Callable, Dict, List, Optional, Sequence

from .errors import Refused

_NAME = "selected_statements"


def _blocks(tree: ast.AST) -> List[List[ast.stmt]]:
    """Every list of statements in a tree, outer ones first."""
    found = []
    waiting: List[ast.AST] = [tree]
    while waiting:
        node = waiting.pop(0)
        for _, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                found.append(value)
        waiting.extend(ast.iter_child_nodes(node))
    return found


def _first_line(statement: ast.stmt) -> int:
    decorators: Sequence[ast.expr] = getattr(statement, "decorator_list", ())
    return min([statement.lineno] + [decorator.lineno for decorator in decorators])


def _select(tree: ast.AST, first: int, last: int) -> List[ast.stmt]:
    """The statements of one block that lie in the lines.

    Raises:
        Refused: if there are none, or one begins or ends outside.
    """
    for block in _blocks(tree):
        inside = [s for s in block if first <= _first_line(s) and (s.end_lineno or s.lineno) <= last]
        if not inside:
            continue
        for statement in block:
            begin, end = _first_line(statement), statement.end_lineno or statement.lineno
            if statement not in inside and begin <= last and end >= first:
                raise Refused("lines %d to %d end in the middle of the statement of lines %d to %d" % (first, last, begin, end))
        return inside
    raise Refused("lines %d to %d hold no whole statement" % (first, last))


def _returned(sets: Sequence[str]) -> ast.expr:
    names: List[ast.expr] = [ast.Name(id=name, ctx=ast.Load()) for name in sets]
    return names[0] if len(names) == 1 else ast.Tuple(elts=names, ctx=ast.Load())


def function_of(path: str, lines: Sequence[int], reads: Sequence[str], sets: Sequence[str],
                namespace: Dict[str, Any]) -> Callable[..., Any]:
    """A function of the names that the statements read, which returns the names that they set.

    Statements that end in a `return` return that instead. The function keeps the file's name and lines, so that tracebacks point there.

    Raises:
        Refused: if the lines are no whole statements, or set nothing.
        SyntaxError: if they can't be a function, such as a `break` without its loop.
    """
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read(), path)
    body = _select(tree, lines[0], lines[1])
    if not isinstance(body[-1], ast.Return):
        if not sets:
            raise Refused("lines %d to %d set nothing that is read later, so there is nothing to compare" % (lines[0], lines[1]))
        body = body + [ast.Return(value=_returned(sets))]
    template = ast.parse("def %s(%s): pass" % (_NAME, ", ".join(reads)), path)
    function = template.body[0]
    assert isinstance(function, ast.FunctionDef)
    function.body = body
    ast.copy_location(function, body[0])
    for node in ast.walk(function.args):
        ast.copy_location(node, body[0])
    ast.fix_missing_locations(template)
    scope: Optional[Dict[str, Any]] = {}
    exec(compile(template, path, "exec", dont_inherit=True), namespace, scope)
    return scope[_NAME]
