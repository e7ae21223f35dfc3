"""Functions of a program that nothing in the program calls, but for the try-out of their own file maybe: what they would
waste, nobody wastes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.following import main_blocks
from gpulint.analysis.file.project import LOOKS_UP
from gpulint.analysis.file.reaching import fits
from gpulint.analysis.questions.reached.naming import Naming
from gpulint.analysis.questions.reached.outsiders import (
    is_for_others,
    makes_by_itself,
    makes_by_name,
    may_be_started,
)
from gpulint.analysis.questions.reached.showing import is_shown_only, modes_set
from gpulint.analysis.questions.repeats.amounts import is_few
from gpulint.answers import Answer, Question, left_open

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_MOST_BESIDE = 20
_DEPTH = 2  # callers of callers
_PROGRAM = re.compile(rb"^if __name__ ==", re.M)
_RUNS = re.compile(rb"^(?:if __name__ ==|for |while )", re.M)  # what a script does when it is run
# What a file that is a program of its own speaks of where it begins: a command line, a training, a set of data.
_OF_PROGRAMS = frozenset(
    "argparse ArgumentParser OptionParser parse_args argv environ click fire hydra typer tyro flags backward optim "
    "fit train main VideoCapture listdir scandir glob rglob walk".split()
)
_SETS_OF_DATA = ("Dataset", "DataLoader", "dataset", "dataloader", "data_loader")


class TryOut:
    """What stands under `if __name__ == "__main__":` in a file of which others import what it is there for, and does nothing
    but look at one input: the program never runs it."""

    def __init__(self, file: FileAnalysis) -> None:
        self._file = file

    def holds(self, statement: ir.Stmt) -> bool:
        """Whether a statement of the file's own body belongs to it."""
        return any(inner is statement for inner in self._statements)

    def is_all_that_names(self, name: str) -> bool:
        """Whether the file's own body speaks of something nowhere else."""
        return bool(self._statements) and not any(
            _names(root, name)
            for statement in ir.statements(self._file.module.body.body)
            if not self.holds(statement)
            for root in statement.expressions()
        )

    @cached_property
    def _statements(self) -> tuple[ir.Stmt, ...]:
        block = main_blocks(self._file.module)
        return tuple(ir.statements(block)) if block and self._is_look(block) and self._is_imported() else ()

    def _is_look(self, block: list[ir.Stmt]) -> bool:
        """Whether a block, with all of the file that it calls, trains nothing, takes no orders, and goes through no data, or only
        to print that it can."""
        keeps_nothing = is_shown_only(block)
        if self._file.started or (not keeps_nothing and any(map(_goes_on, ir.statements(block)))):
            return False
        words = {word for statement in ir.statements(block) for word in _words(statement)}
        if keeps_nothing:
            words -= set(modes_set(block))
        reached = list(self._reached(words))
        for function in reached:
            words |= self._file.evidence[function].words
        data = not keeps_nothing and any(word.endswith(_SETS_OF_DATA) for word in words)
        return not words & _OF_PROGRAMS and not data and not any(map(self._goes_through_data, reached))

    def _goes_through_data(self, function: ir.Function) -> bool:
        info = self._file.class_of(function)
        of_network = info is not None and info.is_module  # which may go through the windows of one picture
        loops = (self._file.loops.get(id(statement)) for statement in ir.statements(function.body))
        return any(
            loop.over_loader or loop.over_items or (loop.over_data and not of_network)
            for loop in loops
            if loop is not None
        )

    def _reached(self, words: set[str]) -> Iterator[ir.Function]:
        """The functions of the file that some words, and those of what they name, may call."""
        left = set(self._file.module.functions) - {self._file.module.body}
        fresh = words
        while found := [one for one in left if one.name in fresh]:
            yield from found
            left.difference_update(found)
            fresh = {word for one in found for word in self._file.evidence[one].called}

    def _is_imported(self) -> bool:
        file, project = self._file, self._file.project
        if project is None or not project.is_bounded(file.filename):
            return False
        importing = _importing(PurePath(project.within(file.filename)).with_suffix("").parts)
        return project.contains(file.filename, importing)


class Uncalled:
    """Which functions of one file nothing calls. Each is looked for once."""

    def __init__(self, file: FileAnalysis) -> None:
        self._file = file
        self._known: dict[ir.Function, bool] = {}
        self._unmade: dict[str, bool] = {}
        self._try_out = TryOut(file)

    def doubt(self, function: ir.Function, statement: ir.Stmt | None) -> tuple[Answer, ...]:
        """What leaves it open whether a statement of a function runs at all; nothing where it does for all that is known."""
        if function is self._file.module.body:
            tried = statement is not None and self._try_out.holds(statement)
            clause = "this only tries out what others import of the file"
            return (left_open(Question.REACHED, clause, statement),) if tried else ()
        while function.parent is not None and function.parent is not self._file.module.body:
            if self._is_idle(function, function.parent):
                clause = f"nothing in `{function.parent.name}` calls `{function.name}`"
                return (left_open(Question.REACHED, clause, function),)
            function = function.parent
        if function.cls is not None and self._is_unmade(function.cls):
            clause = f"nothing in the program makes a `{function.cls.name}`"
            return (left_open(Question.REACHED, clause, function),)
        if not self._is(function, _DEPTH):
            return ()
        said = self._file.evidence[self._file.module.body].words
        tried = function.name in said and self._try_out.is_all_that_names(function.name)
        but = " but the try-out of its own file" if tried else ""
        clause = f"nothing in the program{but} calls `{function.name}`"
        if not tried and self._is_misused(function):
            clause = f"what calls `{function.name}` gives it other arguments than it takes, and raises"
        return (left_open(Question.REACHED, clause, function),)

    def _is_misused(self, function: ir.Function) -> bool:
        """Whether the file has calls by the function's name, none of which can be bound to it."""
        calls = [call for one in self._file.evidence for _, call in ir.calls(one.body)]
        named = [call for call in calls if call.method == function.name and call.func.path is not None]
        return bool(named) and not any(fits(function, call) for call in named)

    def _is(self, function: ir.Function, depth: int) -> bool:
        if function not in self._known:
            self._known[function] = False  # for whoever calls himself
            self._known[function] = self._found(function, depth)
        return self._known[function]

    def _found(self, function: ir.Function, depth: int) -> bool:
        file = self._file
        project = file.project
        name = function.name
        if function.cls is not None and self._is_unmade(function.cls):
            return True
        if project is None or not project.is_bounded(file.filename) or may_be_started(file, function):
            return False
        others = is_for_others(file) and not name.startswith("_")
        if others and not project.contains(file.filename, _PROGRAM):
            return False
        spelled = function.cls is not None or project.contains(file.filename, LOOKS_UP)
        if spelled and any(name in evidence.strings for evidence in file.evidence.values()):
            return False
        meant = project.callers_beside(file.filename, function)
        for caller, evidence in file.evidence.items():
            if caller is function or name not in evidence.words:
                continue
            if meant is not None and caller.qualname not in meant:
                continue
            if caller is file.module.body and self._try_out.is_all_that_names(name):
                continue
            if name not in evidence.called or not depth or not self._is(caller, depth - 1):
                return False
        return not project.speaks_of(file.filename, function) and self._is_used_otherwise(function)

    def _is_idle(self, function: ir.Function, around: ir.Function, depth: int = _DEPTH) -> bool:
        """Whether a function within another has its name spoken only by itself, or by those beside it that are idle too."""
        if function.cls is not None or function.decorators or function.name == "<lambda>":
            return False
        evidence = self._file.evidence
        name = function.name
        for other, said in evidence.items():
            if other is function or not other.is_within(around):
                continue
            if {"locals", "eval", "exec"} & said.called or name in said.strings or name in said.declared:
                return False
            if name not in said.words or other.is_within(function):
                continue
            beside = other.parent is around and depth > 0 and name in said.called
            if not beside or not self._is_idle(other, around, depth - 1):
                return False
        return True

    def _is_unmade(self, cls: ir.Class) -> bool:
        """Whether a program that is nobody's library makes no object of a class at the top of the file, nor of one below it: no
        name says so, and none is looked up out of sight."""
        if cls.qualname not in self._unmade:
            self._unmade[cls.qualname] = self._found_unmade(cls)
        return self._unmade[cls.qualname]

    def _found_unmade(self, cls: ir.Class) -> bool:
        file, project = self._file, self._file.project
        info = file.owners.get(cls)
        if project is None or info is None or "." in cls.qualname or not project.is_bounded(file.filename):
            return False
        if is_for_others(file) or makes_by_itself(info):
            return False
        if not project.contains(file.filename, _RUNS) or makes_by_name(file):
            return False
        own = os.path.abspath(file.filename)
        tried_out = own if self._try_out.is_all_that_names(cls.name) else ""
        return not Naming(project, project.root(own), tried_out).is_used(own, cls.name)

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


def _goes_on(statement: ir.Stmt) -> bool:
    return isinstance(statement, (ir.For, ir.While)) and not is_few(statement)


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


def _words(statement: ir.Stmt) -> Iterator[str]:
    """The plain names and the attributes in a statement's own expressions."""
    for part in ir.own_parts(statement):
        if isinstance(part, ir.Attr):
            yield part.attr
        elif isinstance(part, ir.Name):
            yield part.id


def _names(root: ir.Expr, name: str) -> bool:
    return any(
        (isinstance(part, ir.Name) and part.id == name) or (isinstance(part, ir.Attr) and part.attr == name)
        for part in ir.walk(root)
    )
