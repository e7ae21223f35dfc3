"""What a rule asks: one file, and the engine that answers for its project. Nothing is worked out before somebody asks, and what has been is
kept for the files that are linted next."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import File, Function, quoted
from gpulint.analysis.project.program import Kept, Program, Sources
from gpulint.analysis.project.test_code import is_test_file
from gpulint.analysis.queries.multiplicity import Multiplicity
from gpulint.analysis.queries.steps import Steps
from gpulint.analysis.syntax.flow import Definition, Flow
from gpulint.analysis.syntax.nodes import dotted

if TYPE_CHECKING:
    import libcst as cst


class Parsed(Protocol):
    """The text's two trees."""

    text: str
    tree: ast.Module

    @property
    def module(self) -> cst.Module:
        """libcst's, whose nodes those of the other have from then on."""


class Surrounding(Sources, Protocol):
    """The project around a file. `engine` is what files linted before have left for the next."""

    parsed: Kept
    engine: Engine | None

    def root_of(self, filename: str) -> str:
        """The folder of a file's project."""

    def holds(self, filename: str, text: str) -> bool:
        """Whether this is the text that the file has for all who ask, and keeps."""

    def rest_on(self, files: dict[str, str], roots: set[str]) -> None:
        """The current file's findings rest on these files and all of these projects as well, and those to come on what this one does."""

    def within(self, filename: str) -> str:
        """A file's path in its project."""


class Engine:
    """What has been worked out of a program, and the queries that work it out. Values and queries name no file that is linted, so
    whichever comes first finds the same."""

    def __init__(self, file: File, project: Surrounding | None) -> None:
        self.root = project.root_of(file.path) if project is not None else ""
        self.rests_on: tuple[dict[str, str], set[str]] = ({}, set())
        self.program = Program(file, project, project.parsed if project is not None else {})
        self.evaluator = Evaluator(self.program)
        self.steps = Steps(self.evaluator)
        self.multiplicity = Multiplicity(self.evaluator, self.steps)

    @property
    def may_go_on(self) -> bool:
        """Whether nothing in it is unknown for want of budget: another file may have had enough."""
        return not (self.evaluator.is_limited or self.program.is_full)

    def tree_of(self, filename: str, text: str) -> ast.Module | None:
        """The tree of a file that has been read; None where the text is another one."""
        known = self.program.known(filename)
        return known.tree if known is not None and known.text == text else None

    def release(self) -> None:
        """Let go of everything: frames and values name each other, and so do environments and the loops that they are of."""
        self.evaluator.release()
        for file in self.program.files:
            for one in (file.body, *file.functions):
                flow = one.__dict__.pop("flow", None)
                if flow is not None:
                    flow.__dict__.clear()
        self.__dict__.clear()


def _engine_for(file: File, project: Surrounding | None) -> tuple[Engine, File]:
    """The engine for a file, which is that of the files linted before where they are of one project, and the file as it knows it. It is
    taken from the project meanwhile: where something goes wrong, nobody goes on with it."""
    left = project.engine if project is not None else None
    if project is not None and left is not None:
        known = left.program.adopt(file) if left.root == project.root_of(file.path) else None
        if known is not None:
            project.engine = None
            left.evaluator.begin()
            return left, known
        if project.holds(file.path, file.text):  # another project, or the file has been written
            project.engine = None
            left.release()
    return Engine(file, project), file


class Asked:
    """The engine for one file."""

    def __init__(self, trees: Parsed, filename: str, project: Surrounding | None) -> None:
        self._trees, self.filename = trees, filename
        self._project = project
        file = File(os.path.abspath(filename), trees.text, trees.tree)
        self._engine, self.file = _engine_for(file, project)
        self.program, self.evaluator = self._engine.program, self._engine.evaluator
        self.steps, self.multiplicity = self._engine.steps, self._engine.multiplicity

    @cached_property
    def is_test(self) -> bool:
        """Whether the file is one of tests: what a test costs, it costs once."""
        within = self._project.within(self.filename) if self._project is not None else self.filename
        return is_test_file(self.file, within)

    def root(self, function: Function) -> Frame:
        """The frame of a function that stands for all calls."""
        return self.evaluator.root(function)

    def calls(self, full: str) -> Iterator[tuple[ast.Call, Frame]]:
        """The calls in the file of what goes by this full name (`torch.cuda.memory_summary`), whatever the file calls it, each with the
        frame of its function."""
        for function in self.file.parts if full.rpartition(".")[2] in self.file.words else ():
            frame = self.root(function)
            for call in frame.flow.every_call:
                if self.evaluator.value_of(call.func, frame).ref == full:
                    yield call, frame

    def is_here(self, frame: Frame) -> bool:
        """Whether a frame's function stands in the file."""
        return frame.function.file is self.file

    def path_of(self, node: ast.AST) -> str:
        """The other file that a node stands in; empty where it is this one's."""
        for file in self.program.files:
            flows = (one.flow for one in (file.body, *file.functions) if "flow" in one.__dict__)
            if file is not self.file and any(node in one.parents or node in one.blocks for one in flows):
                return file.path
        return ""

    def source(self, node: ast.AST, limit: int = 40) -> str:
        """The code of an expression on one line, shortened for messages."""
        return quoted(self.file.source(node), limit)

    def called(self, call: ast.Call) -> str:
        """The function that a call names, as the code spells it."""
        return dotted(call.func) or self.source(call.func, 200)

    @property
    def tree(self) -> cst.Module:
        """The file as libcst reads it: from then on nodes have `node_of_libcst`."""
        return self._trees.module

    def node(self, place: Any) -> cst.CSTNode:
        """libcst's node of one of Python's."""
        self.tree  # noqa: B018
        return place.node_of_libcst  # type: ignore[no-any-return]

    def line(self, statement: Any) -> cst.CSTNode:
        """The line that a statement stands in."""
        self.tree  # noqa: B018
        return getattr(statement, "line_of_libcst", None) or statement.node_of_libcst  # type: ignore[no-any-return]

    def quoted(self, text: str) -> str:
        """A text as the file spells texts: in the quotes that it has more of, double ones where it has no preference."""
        quote = "'" if self.file.text.count("'") > self.file.text.count('"') else '"'
        return f"{quote}{text}{quote}"

    def torch_name(self, name: str, at: Any) -> tuple[str, str]:
        """What `torch.<name>` is called where a statement runs, or where a function is decorated, and the module that the file has to import
        for it, empty where it is bound there; both empty where `torch` is something else there, or may not be bound yet."""
        scope: Function | None = self.file.function_at(at.lineno)
        if scope is not None and scope.node is at:  # what decorates it
            scope = scope.parent or self.file.body
        own, taken = scope, set[str]()  # names of other things further in
        while scope is not None:
            # by when: what a function names is there when it is called
            by = None if scope.is_module and scope is not own else at
            bound = scope.flow.definitions
            for wanted in (f"torch.{name}", "torch"):
                for key, several in bound.items():
                    here = (one for one in several if one.value == wanted and key not in taken)
                    if any(_is_imported(scope.flow, one, by) for one in here):
                        return key + f"torch.{name}".removeprefix(wanted), ""
            taken |= bound.keys()
            scope = scope.parent or (None if scope.is_module else self.file.body)
        return ("", "") if "torch" in taken else (f"torch.{name}", "torch")

    def release(self) -> None:
        """Let go of the file. What has been worked out is left to the next one of its project, unless it is of a text that is not the
        file's own, or not to its end."""
        engine, project = self._engine, self._project
        if project is not None:
            project.rest_on(*engine.rests_on)
        if project is not None and engine.may_go_on and project.holds(self.filename, self._trees.text):
            project.engine = engine
        else:
            engine.release()
        self.__dict__.clear()


def _is_imported(flow: Flow, one: Definition, by: Any) -> bool:
    """Whether an import has run in any case, by the time that a statement does that stands in its scope, or deeper."""
    if one.kind != "import" or (by is not None and one.statement.lineno > by.lineno):
        return False
    block = flow.blocks[one.statement]
    while isinstance(block.owner, (ast.Try, ast.With)) and block.arm == "body" and block.parent is not None:
        block = block.parent
    return block.owner is flow.node or (by is not None and block in flow.around(by))
