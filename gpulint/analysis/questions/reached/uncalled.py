"""Functions of a program that nothing in the program calls: what they would waste, nobody wastes."""

from __future__ import annotations

import os
import re
from pathlib import PurePath
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.file.runners import PROJECT_FILES
from gpulint.analysis.torch import frameworks
from gpulint.answers import Answer, Question, left_open

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_MOST_BESIDE = 20
_DEPTH = 2  # callers of callers
_PACKAGED = re.compile(
    r"\bsetup\(|^\[(?:project|build-system|tool\.(?:poetry|flit|pdm|hatch)\b|metadata|options)", re.M
)
# Decorators that leave it to a call by its name to run the function.
_HARMLESS = frozenset(
    "staticmethod classmethod lru_cache cache no_grad inference_mode enable_grad wraps".split()
)
_PROGRAM = re.compile(rb"^if __name__ ==", re.M)
_MODULE_METHODS = frozenset({"forward", "__call__", "__init__", "main"})


class Uncalled:
    """Which functions of one file nothing calls. Each is looked for once."""

    def __init__(self, file: FileAnalysis) -> None:
        self._file = file
        self._known: dict[ir.Function, bool] = {}

    def doubt(self, function: ir.Function) -> tuple[Answer, ...]:
        """What leaves it open whether a function runs at all; nothing where it does for all that is known."""
        while function.parent is not None and function.parent is not self._file.module.body:
            function = function.parent
        if not self._is(function, _DEPTH):
            return ()
        clause = f"nothing in the program calls `{function.name}`"
        return (left_open(Question.REACHED, clause, function),)

    def _is(self, function: ir.Function, depth: int) -> bool:
        if function not in self._known:
            self._known[function] = False  # for whoever calls himself
            self._known[function] = self._found(function, depth)
        return self._known[function]

    def _found(self, function: ir.Function, depth: int) -> bool:
        file = self._file
        project = file.project
        name = function.name
        if project is None or not project.is_bounded(file.filename) or self._may_be_started(function):
            return False
        if self._is_for_others() and not name.startswith("_"):
            return False
        if any(name in evidence.strings for evidence in file.evidence.values()):
            return False
        for caller, evidence in file.evidence.items():
            if caller is function or name not in evidence.words:
                continue
            if name not in evidence.called or not depth or not self._is(caller, depth - 1):
                return False
        spoken_of = project.speaks_of(file.filename, function) and self._is_class_named(function)
        return not spoken_of and self._is_used_otherwise(function)

    def _is_class_named(self, function: ir.Function) -> bool:
        """Whether anything but a class itself has its name. One of a family may be looked up by what stands in settings."""
        file, info = self._file, self._file.class_of(function)
        family = info is None or info.is_module or set(info.base_names) - {"object", "ABC", "abc.ABC"}
        if info is None or family or info.cls.decorators or file.project is None:
            return True
        named = re.compile(rb"(?<!class )\b%s\b" % re.escape(info.cls.name.encode()))
        return file.project.contains(file.filename, named)

    def _is_used_otherwise(self, function: ir.Function) -> bool:
        """Whether the program uses something else of the same file: else its callers may be out of sight."""
        file, project = self._file, self._file.project
        others = (other for other in file.module.functions if other is not function)
        beside = sorted(
            (other for other in others if not other.name.startswith("__")),
            key=lambda other: other.cls is not function.cls,
        )
        called = file.evidence[file.module.body].called
        if project is None:
            return False
        if any(other.name in called for other in beside) or self._is_never_imported():
            return True
        return any(project.speaks_of(file.filename, other) for other in beside[:_MOST_BESIDE])

    def _is_never_imported(self) -> bool:
        """Whether the project has programs, and no file of it imports this one, which runs nothing by itself."""
        file, project = self._file, self._file.project
        if (
            project is None
            or file.started
            or file.evidence[file.module.body].called & {one.name for one in file.module.functions}
        ):
            return False
        importing = _importing(PurePath(project.within(file.filename)).with_suffix("").parts)
        return project.contains(file.filename, _PROGRAM) and not project.contains(file.filename, importing)

    def _may_be_started(self, function: ir.Function) -> bool:
        """Whether somebody other than a call by its name may run it: a command line, a framework, an unseen base class."""
        file = self._file
        if function is file.module.body or function in file.started:
            return True
        if any(_last(decorator) not in _HARMLESS for decorator in function.decorators):
            return True  # it may be registered somewhere
        if function.name in _MODULE_METHODS | frameworks.PER_BATCH_HOOKS or function.name.startswith("__"):
            return True
        info = file.class_of(function)
        return info is not None and _has_unseen_base(info)

    def _is_for_others(self) -> bool:
        """Whether the file is a part of a package that is installed: who uses it stands elsewhere."""
        project = self._file.project
        texts = project.beside(self._file.filename, PROJECT_FILES) if project is not None else []
        if project is None or not texts:
            return False
        top = PurePath(project.within(self._file.filename)).parts[0]
        return any(_PACKAGED.search(text) and _installs(text, top) for text in texts)


def _importing(parts: tuple[str, ...]) -> re.Pattern[bytes]:
    """How other files may import the module of this path: by the whole of it, or by its end, from folders in between."""
    *packages, stem = (re.escape(os.fsencode(part)) for part in parts)
    before = b"".join(rb"(?:%s\.)?" % part for part in packages)
    inside = b"".join(rb"(?:%s\.)?" % part for part in packages[:-1]) + b"".join(packages[-1:])
    return re.compile(
        rb"^[ \t]*(?:import[ \t]+(?:[^\n#]*,[ \t]*)?|from[ \t]+\.*)%s%s\b"
        rb"|^[ \t]*from[ \t]+\.*(?:%s)?[ \t]+import\b[^\n#]*\b%s\b" % (before, stem, inside, stem),
        re.M,
    )


def _installs(text: str, top: str) -> bool:
    """Whether what lies in a folder at the top of a project is among what its setup.py installs: all packages, unless it lists
    some, and none where it only builds extensions."""
    if "setup(" not in text:
        return True
    listed = re.search(r"\bpackages\s*=\s*(\[[^\]]*\])", text)
    if listed is not None:
        names = re.findall(r"[\"']([\w.]+)[\"']", listed[1])
        return any(name.partition(".")[0] == top for name in names)
    return any(word in text for word in ("packages", "py_modules", "package_dir"))


def _last(decorator: ir.Expr) -> str:
    func = decorator.func if isinstance(decorator, ir.Call) else decorator
    return (func.path or "").rpartition(".")[2]


def _has_unseen_base(info: ClassInfo) -> bool:
    for one in info.ancestors():
        seen = {base.cls.name for base in one.bases}
        lasts = {name.rpartition(".")[2] for name in one.base_names}
        if lasts - seen - {"object", "ABC", "Module"}:
            return True
    return False
