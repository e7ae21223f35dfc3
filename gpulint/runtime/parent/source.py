"""What the verifier reads in the program's own source, by Python's syntax tree: the loop around a line, the function that
holds it, and what lines call; and which files belong to the program: the script, and the modules below its roots that it imports,
directly or through one another. Imports nothing."""

from __future__ import annotations

import ast
import functools
import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from gpulint.runtime.record.options import Named

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def tree_of(file: str) -> ast.Module | None:
    """The tree of a file as it is now; None where it has none."""
    try:
        with open(file, "rb") as source:
            return _parsed(source.read())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None


@functools.lru_cache(maxsize=64)
def _parsed(text: bytes) -> ast.Module:
    try:
        return ast.parse(text)
    except SystemError:  # Python 3.11 miscounts its depth where two threads parse at once (gh-106905)
        return ast.parse(text)


def _nodes(file: str) -> Iterator[ast.AST]:
    """All nodes of its tree; none where it has none."""
    tree = tree_of(file)
    return iter(()) if tree is None else ast.walk(tree)


@functools.lru_cache(maxsize=1024)
def around(file: str, line: int) -> tuple[ast.stmt, ...]:
    """The simple statements, in order, of the innermost loop whose body holds the line; none where there is none or the file cannot
    be read."""
    loops = (node for node in _nodes(file) if isinstance(node, _LOOPS))
    holding = [one for one in loops if one.body[0].lineno <= line <= (one.body[-1].end_lineno or 0)]
    innermost = max(holding, key=lambda node: node.lineno, default=None)
    return tuple(s for part in innermost.body for s in _simple(part)) if innermost is not None else ()


def _simple(node: ast.stmt) -> list[ast.stmt]:
    """The statements without a body, of a statement and everything in it, in source order."""
    if isinstance(node, _SCOPES):
        return []
    inner = [child for name in ("body", "orelse", "finalbody") for child in getattr(node, name, [])]
    for handler in getattr(node, "handlers", []):
        inner += handler.body
    if not inner:
        return [node]
    return [simple for child in inner for simple in _simple(child)]


def _binds(node: ast.stmt, name: str) -> bool:
    names = (n for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return any(one.id == name for one in names)


def idle_lines(loop: Sequence[ast.stmt], name: str, last_use: int) -> tuple[int, ...]:
    """The lines at which `name` is alive and no longer used: after its last use, round to where it is bound
    anew."""
    later = [one.lineno for one in loop if one.lineno > last_use]
    wrapped: list[int] = []
    for one in itertools.takewhile(lambda one: one.lineno < last_use, loop):
        wrapped.append(one.lineno)
        if _binds(one, name):
            break
    return (*later, *wrapped)


@functools.lru_cache(maxsize=1024)
def function_at(file: str, line: int) -> str:
    """The name of the innermost function that holds the line; empty at the top of a module."""
    functions = (node for node in _nodes(file) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
    holding = [one for one in functions if one.lineno <= line <= (one.end_lineno or one.lineno)]
    return max(holding, key=lambda node: node.lineno).name if holding else ""


def called_on(file: str, line: int) -> frozenset[str]:
    """The last names of what a line calls, hands over to be called (`register_forward_hook(self.save)`) or defines."""
    return _called(file).get(line, frozenset())


@functools.lru_cache(maxsize=64)
def _called(file: str) -> dict[int, frozenset[str]]:
    found: dict[int, set[str]] = {}
    for node in _nodes(file):
        for line, name in _names(node):
            found.setdefault(line, set()).add(name)
    return {line: frozenset(names) for line, names in found.items()}


def _names(node: ast.AST) -> Iterator[tuple[int, str]]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield node.lineno, node.name
    elif isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name):
            yield node.func.lineno, node.func.id
        for part in (node.func, *node.args, *(keyword.value for keyword in node.keywords)):
            if isinstance(part, ast.Attribute):
                yield part.end_lineno or part.lineno, part.attr


def reached_from(files: Iterable[str], names: Iterable[str], depth: int) -> frozenset[str]:
    """The last names of what functions with these `names` call, and what those call, so many calls `depth`."""
    known = set(names)
    bodies = [_bodies(file) for file in files]
    fresh = set(known)
    for _ in range(depth):
        fresh = {called for body in bodies for name in fresh for called in body.get(name, ())} - known
        known |= fresh
    return frozenset(known)


@functools.lru_cache(maxsize=64)
def _bodies(file: str) -> dict[str, frozenset[str]]:
    """What each function of a file calls, by its name."""
    found: dict[str, frozenset[str]] = {}
    for node in _nodes(file):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            called = {name for part in node.body for inner in ast.walk(part) for _, name in _names(inner)}
            found[node.name] = found.get(node.name, frozenset()) | called
    return found


# -- the files of the program --------------------------------------------------------------------------------

MOST_FILES = 2000
# Lightning, transformers, ignite, Composer and their like call these.
EVALUATION_METHODS = set(
    "validation_step test_step predict_step evaluation_step eval_step eval_forward prediction_step "
    "compute_metrics".split()
)
# What an update or an average of weights goes through, without grad as well.
_PARTS = set(
    "parameters named_parameters buffers named_buffers modules named_modules children state_dict param_groups "
    "values items".split()
)
_FOREIGN = {"site-packages", "dist-packages", ".venv", "venv", "node_modules", "__pycache__"}


def find_target(target: str, module: bool, cwd: str | None = None) -> str | None:
    """The file that `python TARGET` or `python -m TARGET` runs; None where there is no such Python file."""
    base = cwd or os.getcwd()
    if module:
        for root in _roots(base):
            for name in ("", "/__main__"):
                path = os.path.join(root, *target.split(".")) + name + ".py"
                if os.path.isfile(path):
                    return path
        return None
    path = os.path.join(base, target)
    if os.path.isdir(path):
        path = os.path.join(path, "__main__.py")
    return os.path.abspath(path) if os.path.isfile(path) and not path.endswith((".zip", ".pyz")) else None


def first_party(script: str, module: bool = False, cwd: str | None = None, path: str = "") -> list[str]:
    """`script` and the files it imports from its own folder, from `src` beside it, or (with `module`) from the
    working directory; also from those folders of `path`, a PYTHONPATH, that lie there or above the script. Absolute paths, the
    script first."""
    start, base = os.path.abspath(script), os.path.abspath(cwd or os.getcwd())
    named = [os.path.abspath(os.path.join(base, one)) for one in path.split(os.pathsep) if one]
    beside = (one for one in named if _is_in(one, base) or _is_in(start, one))
    near = [one for one in beside if not _FOREIGN.intersection(one.split(os.sep))]
    roots = _roots(base if module else os.path.dirname(start)) + near
    found: dict[str, None] = {start: None}
    pending = [start]
    while pending and len(found) < MOST_FILES:
        for path in _imports(pending.pop(), roots):
            if path not in found:
                found[path] = None
                pending.append(path)
    return list(found)


def evaluates(files: Iterable[str]) -> bool:
    """Whether one of the files looks as if it evaluated a model: it switches to eval mode, goes round a loop without grad, or has a
    method that a framework calls for that. Only a run can tell."""
    return any(_evaluates(_nodes(file)) for file in files)


def function_named(files: Iterable[str], name: str, kind: Literal["step", "unit"]) -> Named:
    """The one function of the program that is called `name`, or `Class.name`. Raises ValueError where there is none, or several."""
    trees = ((file, tree) for file in files if (tree := tree_of(file)) is not None)
    known = ((file, *one) for file, tree in trees for one in _functions(tree, ""))
    found = [Named(file, line, own, kind) for file, own, line in known if f".{own}".endswith(f".{name}")]
    if len(found) == 1:
        return found[0]
    if not found:
        where = "neither the script nor a module of its own that it imports"
        raise ValueError(f"--{kind} {name}: {where} defines it")
    places = ", ".join(f"{one.function} ({os.path.basename(one.file)}:{one.line})" for one in found[:5])
    raise ValueError(f"--{kind} {name}: there are several: {places}; say which, as Class.function")


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, int]]:
    """The qualified name and the line of each function below, as Python counts and names them."""
    for child in ast.iter_child_nodes(node):
        inside = prefix
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            inside = f"{prefix}{child.name}."
            if not isinstance(child, ast.ClassDef):
                yield inside[:-1], child.lineno
        yield from _functions(child, inside)


def _evaluates(nodes: Iterable[ast.AST]) -> bool:
    for node in nodes:
        made: list[ast.expr] = []
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.name in EVALUATION_METHODS:
                return True
            made = node.decorator_list
        elif isinstance(node, ast.With):
            made = [item.context_expr for item in node.items]
        if any(map(is_gradless, made)) and any(map(_is_over_batches, ast.walk(node))):
            return True
        if isinstance(node, ast.Call) and ends_training(node):
            return True
    return False


def ends_training(call: ast.Call) -> bool:
    """`model.eval()`, `model.train(False)`."""
    if not isinstance(call.func, ast.Attribute):
        return False
    mode = next((arg.value for arg in call.args if isinstance(arg, ast.Constant)), None)
    return (call.func.attr == "eval" and not call.args) or (call.func.attr == "train" and mode is False)


def is_gradless(made: ast.expr) -> bool:
    """`torch.no_grad()`, `@inference_mode`."""
    named = made.func if isinstance(made, ast.Call) else made
    return getattr(named, "attr", getattr(named, "id", "")) in ("no_grad", "inference_mode")


def _is_over_batches(node: ast.AST) -> bool:
    """Whether a loop is over something else than what a network or an optimizer consists of."""
    if not isinstance(node, (ast.For, ast.AsyncFor)):
        return False
    called = {n.attr for n in ast.walk(node.iter) if isinstance(n, ast.Attribute)}
    return not called & _PARTS and any(isinstance(n, ast.Call) for part in node.body for n in ast.walk(part))


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def _roots(base: str) -> list[str]:
    base = os.path.abspath(base)
    return [base, os.path.join(base, "src")]


def _imports(file: str, roots: Sequence[str]) -> Iterator[str]:
    for node in _nodes(file):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _resolve(alias.name.split("."), roots)
        elif isinstance(node, ast.ImportFrom):
            parts = node.module.split(".") if node.module else []
            above = os.path.normpath(os.path.join(file, *[os.pardir] * node.level))
            places = [above] if node.level else roots
            yield from _resolve(parts, places)
            for alias in node.names:
                yield from _resolve([*parts, alias.name], places)


def _resolve(parts: Sequence[str], roots: Sequence[str]) -> Iterator[str]:
    """The files that importing a dotted name loads: the packages on the way, then the module."""
    for root in roots:
        path, found = root, []
        for number, part in enumerate(parts):
            if part in _FOREIGN:
                return
            path = os.path.join(path, part)
            package = os.path.join(path, "__init__.py")
            if os.path.isfile(package):
                found.append(package)
            elif number == len(parts) - 1 and os.path.isfile(path + ".py"):
                found.append(path + ".py")
            elif not os.path.isdir(path):
                break
        if found:
            yield from found
            return
