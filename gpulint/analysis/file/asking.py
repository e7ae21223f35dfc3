"""What a rule is given: the facts of one file, and a way to ask for more."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from gpulint.analysis.code import ir
from gpulint.analysis.file.facts import FunctionFacts, Hold
from gpulint.analysis.file.program import FileAnalysis
from gpulint.analysis.project.file import quoted

if TYPE_CHECKING:
    import libcst as cst

T = TypeVar("T")


class HasModule(Protocol):
    """The text's trees."""

    @property
    def module(self) -> cst.Module: ...


# Texts on one row, apostrophes in words and the inside of other quotes left out as far as a glance can tell.
_IN_QUOTES = {quote: re.compile(rf"(?<![\w{quote}]){quote}[^'\"\n]+{quote}(?!{quote})") for quote in "'\""}


@dataclass
class FileFacts:
    """Everything known about one file. What is rarely wanted is found out when a rule asks for it, and never before.

    unread_cell: of a notebook, a cell that does not parse, and may decide what holds in the others.
    """

    analysis: FileAnalysis
    followed: list[FunctionFacts]
    on_gpu: bool = True
    trees: HasModule | None = None
    unread_cell: int | None = None
    _answers: dict[Callable[[FileAnalysis], Any], Any] = field(default_factory=dict)

    @property
    def module(self) -> ir.Module:
        return self.analysis.module

    @property
    def functions(self) -> Iterator[FunctionFacts]:
        """What is known of each function that was followed. Each is looked at for itself, and no further than one may be."""
        effort = self.analysis.effort
        for function in self.followed:
            effort.begin(function.function)
            yield function
        effort.begin()

    @property
    def imports(self) -> dict[str, str]:
        return self.analysis.module.imports

    @property
    def is_test(self) -> bool:
        return self.analysis.is_test

    def ask(self, question: Callable[[FileAnalysis], T]) -> T:
        """What a question about the file gives, asked once however many rules ask it."""
        if question not in self._answers:
            effort = self.analysis.effort
            asked_for = effort.function
            effort.begin()
            self._answers[question] = question(self.analysis)
            effort.begin(asked_for)
        answer: T = self._answers[question]
        return answer

    @property
    def tree(self) -> cst.Module:
        """The file as libcst reads it, which it does once, and for the first who asks: that takes longer than all else.
        From then on every part has its `node`. Raises `SourceError` where libcst refuses the text."""
        if self.trees is None:
            raise LookupError("these facts were made without a text")
        return self.trees.module

    def source(self, part: ir.Part | cst.CSTNode, limit: int = 40) -> str:
        """The code of an expression on one line, shortened for messages."""
        tree = self.tree
        return quoted(tree.code_for_node(part.node if isinstance(part, ir.Part) else part), limit)

    def quoted(self, text: str) -> str:
        """A text as the file spells texts: in the quotes that it has more of, double ones where it has no preference."""
        return f"{self._quote}{text}{self._quote}"

    @cached_property
    def _quote(self) -> str:
        code = self.tree.code  # libcst writes the whole file for it
        single, double = (len(_IN_QUOTES[quote].findall(code)) for quote in "'\"")
        return "'" if single > double else '"'

    def called(self, call: ir.Call) -> str:
        """The function that a call names, as the code spells it."""
        return call.func.path or self.source(call.func, limit=200)

    def torch_name(self, name: str) -> str | None:
        """How this file can spell `torch.<name>`: `no_grad`, `torch.no_grad`, `th.no_grad`; None if it cannot."""
        for local, full in self.imports.items():
            if full == f"torch.{name}":
                return local
        for local, full in self.imports.items():
            if full == "torch":
                return f"{local}.{name}"
        return None

    def place_of(self, place: Any) -> tuple[ir.Function | None, ir.Stmt | None]:
        """The same with the statement that it stands in; None for that of a decorator."""
        nowhere = (None, None)
        return (
            self._places_by_origin.get(id(place.origin), nowhere) if isinstance(place, ir.Part) else nowhere
        )

    @cached_property
    def _places_by_origin(self) -> dict[int, tuple[ir.Function, ir.Stmt | None]]:
        """Of every statement and expression, by the identity of its origin: asked where a file has a finding."""
        found: dict[int, tuple[ir.Function, ir.Stmt | None]] = {}
        for function in self.module.functions:
            for statement in ir.statements(function.body):
                here = (function, statement)
                found[id(statement.origin)] = here
                for root in statement.expressions():
                    found.update((id(part.origin), here) for part in ir.walk(root))
            found.update((id(decorator.origin), (function, None)) for decorator in function.decorators)
        return found

    def passes_over(self, place: Any) -> bool:
        """Whether nothing is said about what stands at a place."""
        return isinstance(place, ir.Part) and id(place.origin) in self._passed_over

    @cached_property
    def _passed_over(self) -> frozenset[int]:
        """The origins in functions that nothing is said about, by identity: tests, and what another framework runs."""
        silent = {
            function.function
            for function in self.followed
            if function.role.is_test or function.role.is_foreign
        }
        found: set[int] = set()
        for function in self.module.functions if silent else ():
            if not any(scope in silent for scope in function.scopes()):
                continue
            for statement in ir.statements(function.body):
                found.add(id(statement.origin))
                for root in statement.expressions():
                    found |= {id(part.origin) for part in ir.walk(root)}
        return frozenset(found)

    def holds(self) -> Iterator[Hold]:
        for function in self.functions:
            yield from function.holds
