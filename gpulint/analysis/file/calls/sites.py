"""Where a file calls what, by names: made once, where the first question asks who calls a function."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from gpulint.analysis.code import ir


class CallSite(NamedTuple):
    """A call, and where it stands."""

    caller: ir.Function
    statement: ir.Stmt
    call: ir.Call


class CallSites:
    """The calls, the functions and the names of a file, each in the order of its functions."""

    def __init__(self, functions: Iterable[ir.Function]) -> None:
        self._functions = functions

    @cached_property
    def calls(self) -> dict[str, list[CallSite]]:
        """The calls by the last name of what they call."""
        found: dict[str, list[CallSite]] = {}
        for function in self._functions:
            for statement, call in ir.calls(function.body):
                found.setdefault(call.method, []).append(CallSite(function, statement, call))
        return found

    @cached_property
    def plain_functions(self) -> dict[str, list[ir.Function]]:
        """The functions that are no methods, by their names."""
        found: dict[str, list[ir.Function]] = {}
        for function in self._functions:
            if function.cls is None:
                found.setdefault(function.name, []).append(function)
        return found

    @cached_property
    def other_names(self) -> dict[str, list[str]]:
        """The names that a plain name is assigned to: `load = load_net`."""
        found: dict[str, list[str]] = {}
        for function in self._functions:
            for statement in ir.statements(function.body):
                if isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Name):
                    names = (target.id for target in statement.targets if isinstance(target, ir.Name))
                    found.setdefault(statement.value.id, []).extend(names)
        return found
