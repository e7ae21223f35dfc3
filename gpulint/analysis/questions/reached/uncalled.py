"""Functions of a program that nothing in the program calls: what they would waste, nobody wastes."""

from __future__ import annotations

import os
import re
from pathlib import PurePath
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.questions.reached.outsiders import BY_NAME, is_for_others, may_be_started
from gpulint.answers import Answer, Question, left_open

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_MOST_BESIDE = 20
_DEPTH = 2  # callers of callers
_PROGRAM = re.compile(rb"^if __name__ ==", re.M)


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
        if project is None or not project.is_bounded(file.filename) or may_be_started(file, function):
            return False
        others = is_for_others(file) and not name.startswith("_")
        if others and not project.contains(file.filename, _PROGRAM):
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
        if file.project.contains(file.filename, BY_NAME):
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
