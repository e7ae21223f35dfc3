"""A function in a context: what its parameters are given, and by which call. Without a caller it stands for all calls."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from gpulint.analysis.domain.values import Value
from gpulint.analysis.models.table import Table
from gpulint.analysis.project.file import Class, File, Function
from gpulint.analysis.project.program import Program
from gpulint.analysis.syntax.flow import Definition, Flow
from gpulint.analysis.syntax.remembering import remembered as remembered

DEEPEST = 4  # calls below a root that are told apart by what they are given: real defects rest on the fourth


@dataclass(slots=True, eq=False, repr=False)
class Frame:
    """`given` are the arguments: an expression and the frame that it stands in, or a value. Frames of the same call in the same frame
    are one, so what is remembered in one is remembered."""

    function: Function
    given: dict[str, Any] | None = None
    caller: Frame | None = None
    call: Any = None
    receiver: Value | None = None
    memo: dict[Any, Any] = field(default_factory=dict)
    entered: dict[Any, Frame] = field(default_factory=dict)

    @property
    def flow(self) -> Flow:
        return self.function.flow

    def is_outer(self, node: Any) -> bool:
        """Whether a name, or an attribute of one, is none of the function's own, so that it is the same whoever calls."""
        outer = self.function.flow.outer
        found = outer.get(node)
        if found is None:
            found = outer[node] = self._is_outer(node)
        return found

    def _is_outer(self, node: Any) -> bool:
        while isinstance(node, ast.Attribute):
            if self.flow.is_bound(node):
                return False
            node = node.value
        return isinstance(node, ast.Name) and self.function.parent is None and not self.flow.is_bound(node)

    def __repr__(self) -> str:
        return f"<{self.function.qualname}{'' if self.caller is None else f' from {self.caller!r}'}>"

    def argument(self, name: str) -> tuple[Any, Frame] | None:
        """The expression that a parameter is given, with the frame that it stands in; None where no call in sight gives it one."""
        given = (self.given or {}).get(name)
        return given if isinstance(given, tuple) and given[0] != "star" else None

    @property
    def around(self) -> list[Frame]:
        """The frame itself, and those of the calls that it is of, the outermost last."""
        return [self, *(frame for _, frame in self.chain())]

    def leading_to(self, node: Any) -> list[tuple[Any, Frame]]:
        """A node in it, and the calls that lead there, the outermost last, each with its frame."""
        return [(node, self), *self.chain()]

    def chain(self) -> Iterator[tuple[Any, Frame]]:
        """The call that this frame is of, and those further out, each with the frame that it stands in."""
        frame = self
        while frame.caller is not None:
            yield frame.call, frame.caller
            frame = frame.caller


def settled(evaluator: Evaluating, frame: Frame, key: Any, work: Callable[[], Any]) -> Any:
    """What is found in a frame, once; while something is being worked out it may rest on what is unfinished, and is found again."""
    found = frame.memo.get(key)
    if found is None:
        found = work()
        if not evaluator.is_running:
            frame.memo[key] = found
    return found


class Evaluating(Protocol):
    """What the parts of the evaluator ask of it."""

    program: Program
    table: Table
    followed: int  # places that values were followed to, to their uses

    @property
    def is_running(self) -> bool:
        """Whether something is being worked out, so that what is asked for meanwhile may rest on what is unfinished."""

    def value_of(self, node: Any, frame: Frame) -> Value:
        """What an expression gives."""

    def once(self, known: Any, key: Any, frame: Frame, work: Any, least: Any = ...) -> Any:
        """What `work` gives for a key in a frame, worked out once; `least` is the least that it may be."""

    def root(self, function: Function) -> Frame:
        """The frame of a function that stands for all calls."""

    def callers(self, function: Function) -> tuple[CallSite, ...]:
        """The calls of the program that may run a function."""

    def definition(self, definition: Definition, frame: Frame) -> Value:
        """What a definition gives its key."""

    def returned(self, frame: Frame) -> Value:
        """What a function gives back."""

    def element(self, value: Value, index: Any = None) -> Value:
        """What is in a value, at an index that is known or at any."""

    def any_entry(self, value: Value) -> Value:
        """What is in a dict, under whatever key."""

    def attribute(self, base: Value, name: str, node: Any, frame: Frame) -> Value:
        """An attribute of a value."""

    def member(self, module: Value, name: Any, file: File) -> Value:
        """What a module has by a name, or by one that is not known."""

    def method(self, cls: Any, name: str) -> Function | None:
        """The method of an object of a class; None where it has none, or is of no class of the project."""

    def methods(self, value: Value, name: str) -> list[tuple[Function, Value]]:
        """The methods that a name of an object may be, with the object as one of each method's class."""

    def fields(self, cls: Class, name: str) -> tuple[tuple[Function, Definition], ...]:
        """Where an attribute of an object of a class gets its values."""

    def role(self, key: str, function: Function) -> Value | None:
        """What a function uses a key as; None where that does not show."""

    def instance(self, cls: Class) -> Value:
        """An object of a class of the project."""

    def enter(self, function: Function, call: Any, frame: Frame, receiver: Value | None) -> Frame | None:
        """The frame of a function for one call; None where that is deeper than is followed."""

    def field_for(self, cls: Class, call: ast.Call, given: Any) -> str | None:
        """The field of a dataclass that an argument of a call gives its value to."""

    def truth(self, node: Any, frame: Frame) -> bool | None:
        """Whether a condition holds, where that is known."""

    def is_dead(self, node: Any, frame: Frame) -> bool:
        """Whether a statement's conditions are known not to hold."""

    def grad_is_off(self, node: Any, frame: Frame) -> bool:
        """Whether a guard in sight switches grad off at a node."""


@dataclass(slots=True, repr=False, frozen=True)
class CallSite:
    """A call that may run a function. `certain`: what is called is seen to be this function."""

    call: Any
    frame: Frame
    certain: bool

    def __repr__(self) -> str:
        return f"<call in {self.frame!r} at {self.call.lineno}>"


def outwards(evaluator: Evaluating, frame: Frame) -> list[tuple[Any, Frame]]:
    """The calls that a frame is of: its own one, or all of its function, each with the frame that it stands in."""
    if frame.caller is not None:
        return [(frame.call, frame.caller)]
    return [(site.call, site.frame) for site in evaluator.callers(frame.function)]


def bind(function: Function, call: Any, frame: Frame, bound: bool) -> dict[str, Any]:
    """The arguments of a call by the names of the function's parameters, the first left out where it is the object."""
    names = function.node.args
    positional = [one.arg for one in (*names.posonlyargs, *names.args)][1 if bound else 0 :]
    given: dict[str, Any] = {}
    for position, value in enumerate(call.args):
        if isinstance(value, ast.Starred):
            break
        if position < len(positional):
            given[positional[position]] = (value, frame)
        elif names.vararg is not None:
            given.setdefault(names.vararg.arg, ("star", position, frame))
    for named in call.keywords:
        if named.arg is not None:
            given[named.arg] = (named.value, frame)
    return given


def parameter_for(function: Function, call: Any, argument: Any, bound: bool) -> str | None:
    """The name of the parameter that an argument of a call gives its value to."""
    names: ast.arguments = function.node.args
    positional = [*names.posonlyargs, *names.args][1 if bound else 0 :]
    if argument in call.args:
        before = call.args[: call.args.index(argument)]
        if any(isinstance(one, ast.Starred) for one in before):
            return None
        own, others = positional[len(before) :], names.vararg
    else:
        name = next((one.arg for one in call.keywords if one.value is argument), None)
        own, others = [one for one in (*positional, *names.kwonlyargs) if one.arg == name], names.kwarg
        if name is None:
            return None
    found = own[0] if own else others
    return found.arg if found is not None else None


def given_for(function: Function, name: str, call: ast.Call) -> Any:
    """The expression that a call gives a parameter; None where none is seen."""
    found = bind(function, call, None, function.takes_self or function.takes_class).get(name)  # type: ignore[arg-type]
    return found[0] if found is not None and found[0] != "star" else None
