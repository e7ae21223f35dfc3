"""The files of the project that a dotted name leads to, as Python would find them from the file that imports it."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

from gpulint.bounds import is_project_root
from gpulint.source.files import for_parser
from gpulint.source.program import MOST_LEVELS, Top
from gpulint.source.syntax import python_tree

_IMPORTS = re.compile(rb"^import (\w+)[ \t\r]*(?:#.*)?$", re.MULTILINE)
_SAME = frozenset("abspath realpath normpath expanduser str Path fspath resolve absolute as_posix".split())


def added_folders(tree: ast.Module, filename: str) -> tuple[str, ...]:
    """The folders that a file, of this absolute path, adds by constants and by its own place; relative ones as they are
    written."""
    names: dict[str, str | None] = {"__file__": filename}
    found: list[str] = []
    adding = {
        one.name for one in tree.body if isinstance(one, ast.FunctionDef) and _adds_what_it_is_given(one)
    }
    for statement in _at_import(tree.body):
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            if isinstance(target, ast.Name):
                names[target.id] = _path(statement.value, names)
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            call = statement.value
            by_own = isinstance(call.func, ast.Name) and call.func.id in adding and len(call.args) == 1
            added = call.args[0] if by_own else _added(call)
            path = _path(added, names) if added is not None else None
            if path is not None:
                found.append(path)
    return tuple(found)


def _at_import(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when the module is imported or started, whatever they stand under."""
    for statement in body:
        yield statement
        if isinstance(statement, (ast.If, ast.Try, ast.With)):
            yield from _at_import(statement.body)
            yield from _at_import(getattr(statement, "orelse", []))


def _adds_what_it_is_given(function: ast.FunctionDef) -> bool:
    """Whether a function puts its argument on the search path: `add_path(lib)`."""
    given = {one.arg for one in function.args.args}
    calls = (one for one in ast.walk(function) if isinstance(one, ast.Call))
    return any(isinstance(added := _added(one), ast.Name) and added.id in given for one in calls)


def _added(call: ast.Call) -> ast.expr | None:
    written = ast.unparse(call.func)
    if written == "sys.path.append" and len(call.args) == 1:
        return call.args[0]
    return call.args[1] if written == "sys.path.insert" and len(call.args) == 2 else None


def _path(expr: ast.expr, names: dict[str, str | None]) -> str | None:
    """The path that an expression comes to; None where that is not known."""
    if isinstance(expr, ast.Constant):
        return expr.value if isinstance(expr.value, str) else None
    if isinstance(expr, ast.Name):
        return names.get(expr.id)
    if isinstance(expr, ast.BinOp) and isinstance(expr.op, (ast.Add, ast.Div)):
        left, right = _path(expr.left, names), _path(expr.right, names)
        if left is None or right is None:
            return None
        return left + right if isinstance(expr.op, ast.Add) else os.path.join(left, right)
    if isinstance(expr, ast.Attribute) and expr.attr == "parent":
        path = _path(expr.value, names)
        return os.path.dirname(path) if path is not None else None
    if isinstance(expr, ast.Subscript):
        return _above(expr, names)
    return _called(expr, names) if isinstance(expr, ast.Call) else None


def _above(expr: ast.Subscript, names: dict[str, str | None]) -> str | None:
    """`Path(__file__).parents[1]`, `os.path.split(here)[0]`."""
    index = expr.slice.value if isinstance(expr.slice, ast.Constant) else None
    if isinstance(expr.value, ast.Attribute) and expr.value.attr == "parents" and isinstance(index, int):
        path = _path(expr.value.value, names)
        for _ in range(index + 1 if path is not None else 0):
            path = os.path.dirname(path or "")
        return path
    if (
        isinstance(expr.value, ast.Call)
        and ast.unparse(expr.value.func).endswith("path.split")
        and index == 0
    ):
        path = _path(expr.value.args[0], names) if expr.value.args else None
        return os.path.dirname(path) if path is not None else None
    return None


def _called(call: ast.Call, names: dict[str, str | None]) -> str | None:
    """`os.path.join(…)`, `os.path.dirname(…)`, `Path(…).resolve()`; the working directory is `.`."""
    last = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    given = [_path(arg, names) for arg in call.args]
    if last in ("getcwd", "cwd") and not given:
        return "."
    if last in ("resolve", "absolute", "as_posix", "joinpath") and isinstance(call.func, ast.Attribute):
        given = [_path(call.func.value, names), *given]
    known = [path for path in given if path is not None]
    if not known or len(known) < len(given):
        return None
    if last in ("join", "joinpath"):
        return os.path.join(*known)
    if last == "dirname":
        return os.path.dirname(known[0])
    return known[0] if last in _SAME else None


_MOST_NESTED = 4  # folders above a file whose own names an import may start with

# Packages that are never first-party: looking for them on disk is time lost.
_FOREIGN = frozenset(
    "torch torchvision torchaudio numpy np scipy sklearn pandas matplotlib PIL cv2 os sys re json math time random logging "
    "argparse collections itertools functools typing pathlib copy gc tqdm wandb transformers lightning pytorch_lightning "
    "accelerate deepspeed datasets tensorboard tensorboardX yaml omegaconf hydra einops timm warnings contextlib dataclasses "
    "abc enum pickle shutil subprocess tempfile glob io types inspect traceback datetime unittest pytest".split()
)


class Importing:
    """Finds modules, and keeps what it has found. `read` gives the bytes of a file, or None."""

    def __init__(self, top: Top, read: Callable[[Path], bytes | None]) -> None:
        self._top = top
        self._read = read
        self.begin()

    def begin(self) -> None:
        """Forget what was found: files may have come and gone."""
        self._found: dict[tuple[str, str], Path | None] = {}
        self._added: dict[Path, tuple[Path, ...]] = {}

    def locate(self, origin: str, qualified: str) -> tuple[Path, list[str]] | None:
        """The module file that a dotted name starts with, and the rest of the name."""
        dots = len(qualified) - len(qualified.lstrip("."))
        parts = [part for part in qualified.lstrip(".").split(".") if part]
        if not dots and (not parts or parts[0] in _FOREIGN):
            return None
        folder = Path(os.path.abspath(origin)).parent
        if dots:
            for _ in range(dots - 1):
                folder = folder.parent
            return self._below(folder, parts, allow_package=True)
        for root in self._starts(Path(origin), folder):
            found = self._below(root, parts, allow_package=False)
            if found is not None:
                return found
        # A script is started from its own folder, be that a package as well.
        return self._below(folder, parts, allow_package=False) or self._from_own_folder(folder, parts)

    def _starts(self, origin: Path, folder: Path) -> Iterator[Path]:
        """Where imports may start; what a file adds itself is only read where that is asked for."""
        yield from import_roots(str(folder), self._top)
        yield from self._added_by(origin, folder)

    def _added_by(self, origin: Path, folder: Path) -> tuple[Path, ...]:
        """The folders that a file puts on the search path. Without a project around it, a relative one may start at the program's
        top, and so may any import."""
        if origin not in self._added:
            known = bool(self._top.folder) and folder.is_relative_to(self._top.folder)
            starts = (folder, Path(self._top.folder)) if known else (folder,)
            joined = [os.path.join(start, one) for one in self._adds(origin) for start in starts]
            found = [Path(os.path.normpath(one)) for one in joined if os.path.isdir(one)]
            self._added[origin] = (*dict.fromkeys(found), *starts[1:])
        return self._added[origin]

    def _adds(self, origin: Path, depth: int = 1) -> tuple[str, ...]:
        """The folders that a file adds, itself or by a file beside it that it imports for that: `import _init_paths`."""
        raw = self._read(origin) or b""
        named = dict.fromkeys(_IMPORTS.findall(raw)) if depth else ()
        beside = (origin.with_name(f"{one.decode()}.py") for one in named if one.decode() not in _FOREIGN)
        found = [path for one in beside if os.path.isfile(one) for path in self._adds(one, depth - 1)]
        tree = parsed(raw) if b"sys.path" in raw else None
        return (*found, *(added_folders(tree, os.path.abspath(origin)) if tree is not None else ()))

    def _from_own_folder(self, folder: Path, parts: list[str]) -> tuple[Path, list[str]] | None:
        """`from runners.meters import …` in a file of a folder `runners` without `__init__.py`: what stands around the
        folder may be out of sight, but a module of that name in it is the one that is meant. A project that is a package itself
        goes by any name: what its files call it, a checkout of it is seldom called. And beside a
        package that the file is in may stand what it imports: where the top is out of sight, the programs may start there."""
        if len(parts) < 3:
            return None
        for _ in range(_MOST_NESTED):
            marked = is_project_root(folder)
            is_itself_package = marked and (folder / "__init__.py").is_file()
            if (folder.name == parts[0] or is_itself_package) and self._first(folder, parts[1]) is not None:
                return self._below(folder, parts[1:], allow_package=False)
            if marked or folder.parent == folder:
                return None
            is_package, folder = (folder / "__init__.py").is_file(), folder.parent
            if is_package and self._first(folder / parts[0], parts[1]) is not None:
                return self._below(folder, parts, allow_package=False)
        return None

    def _below(self, root: Path, parts: list[str], allow_package: bool) -> tuple[Path, list[str]] | None:
        key = (str(root), parts[0] if parts else "")
        if key not in self._found:
            self._found[key] = self._first(root, parts[0]) if parts else None
        first = self._found[key]
        if first is None:
            initial = root / "__init__.py"
            return (initial, parts) if allow_package and parts and os.path.isfile(initial) else None
        place, position = first, 1
        while os.path.isdir(place):
            following = self._first(place, parts[position]) if position < len(parts) else None
            if following is None:
                initial = place / "__init__.py"
                return (initial, parts[position:]) if os.path.isfile(initial) else None
            place, position = following, position + 1
        return place, parts[position:]

    @staticmethod
    def _first(root: Path, name: str) -> Path | None:
        module = root / f"{name}.py"
        if os.path.isfile(module):
            return module
        package = root / name
        return package if os.path.isdir(package) else None


def parsed(raw: bytes) -> ast.Module | None:
    """Python's own tree of a text; None where it has none."""
    try:
        return python_tree(for_parser(raw))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@lru_cache(maxsize=4096)
def project_root(origin: str, top: Top) -> str:
    folder = os.path.dirname(os.path.abspath(origin))
    roots = import_roots(folder, top)
    # The topmost: beside a folder `src`, which imports may start from as well, stand the scripts that call what is in it.
    # None: packages within packages, too deep to see their root
    return min(map(str, roots), key=len, default=folder)


@lru_cache(maxsize=512)
def import_roots(folder: str, top: Top) -> tuple[Path, ...]:
    """The folders from which Python may import when a file of this folder, an absolute path, runs: its own, its package's root,
    `src`."""
    found: list[Path] = []
    current = Path(folder)
    for _ in range(MOST_LEVELS):
        # Some projects have an `__init__.py` beside what marks them.
        marked = is_project_root(current) or top.is_at(current)
        if marked or not (current / "__init__.py").is_file():
            found += [current, current / "src"] if (current / "src").is_dir() else [current]
            if marked:  # however many folders without `__init__.py` lie in between
                return tuple(dict.fromkeys((*found[:6], current)))
        if current.parent == current:
            break
        current = current.parent
    # No project around it: nothing above what is checked is this program's.
    inside = [one for one in found if top.holds(one)]
    return tuple(inside[:6] or found[:1])
