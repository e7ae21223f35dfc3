"""The calls of the program that may run a function: by its name, by objects whose method it is, by those that it is given to."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, Final

from gpulint.analysis.domain.values import NONE
from gpulint.analysis.evaluate.consumers import Use, consumers, consumers_of_definition
from gpulint.analysis.evaluate.frames import CallSite, Evaluating, Frame
from gpulint.analysis.project.file import Class, Function
from gpulint.analysis.syntax.nodes import last_name

_MOST: Final = 24  # of one function


class Callers:
    """Finds the callers of functions for an evaluator."""

    def __init__(self, evaluator: Evaluating) -> None:
        self._evaluator = evaluator
        self._found: dict[Function, tuple[CallSite, ...]] = {}

    def of(self, function: Function) -> tuple[CallSite, ...]:
        """The calls of the program that may run a function, in the frames of their functions."""
        root = self._evaluator.root(function)
        return self._evaluator.once(self._found, function, root, self._calls_of, least=())  # type: ignore[no-any-return]

    def _calls_of(self, function: Function, _: Frame) -> tuple[CallSite, ...]:
        if function.is_module:
            return ()
        found = [*self._calls_of_objects(function), *self._calls_where_given(function)]
        for caller, call in self._calls_by_name(function):
            if len(found) >= _MOST:
                break
            frame = self._evaluator.root(caller)
            certain = self._runs(call, frame, function) if caller is not function else None
            if certain is not None and not self._evaluator.is_dead(call, frame):
                found.append(CallSite(call, frame, certain))
        return tuple(found)

    def _calls_by_name(self, function: Function) -> Iterator[tuple[Function, ast.Call]]:
        """The calls by a function's name: of a constructor by that of its class, of those that inherit it, and by `super().__init__`."""
        name, cls = function.name, function.cls
        if cls is not None and name == "__init__":
            yield from self._evaluator.program.calls_named(cls.name, function.file)
            for one in self._evaluator.program.subclasses(cls):
                own = one.methods.get("__init__")
                if own is None and self._evaluator.method(one, "__init__") is function:
                    yield from self._evaluator.program.calls_named(one.name, one.file)
                if own is not None:
                    yield from ((own, call) for call in own.flow.calls.get("__init__", ()))
        elif not (name.startswith("__") and name.endswith("__")):
            yield from self._evaluator.program.calls_named(name, function.file)

    def _calls_of_objects(self, function: Function) -> list[CallSite]:
        """The calls of objects whose class has the method that runs when they are called, wherever they go from where they are made."""
        if function.cls is None or function.name not in ("forward", "__call__"):
            return []
        found: dict[ast.Call, CallSite] = {}
        for cls in (function.cls, *self._evaluator.program.subclasses(function.cls)):
            if self._evaluator.method(cls, function.name) is function:
                uses = (use for made in self.made(cls) for use in self._called(*made))
                for use in (*uses, *self._called_as_declared(cls)):
                    site = CallSite(use.node, self._evaluator.root(use.frame.function), True)
                    found.setdefault(use.node, site)
        return list(found.values())[:_MOST]

    def _called_as_declared(self, cls: Class) -> Iterator[Use]:
        """The calls of parameters that a class's own file declares to be objects of it."""
        for function in cls.file.naming(cls.name):
            frame = self._evaluator.root(function)
            for one in function.flow.definitions_of("parameter"):
                if last_name(getattr(one.node, "annotation", one.node)) == cls.name:
                    uses = consumers_of_definition(self._evaluator, one, frame, "object")
                    yield from (use for use in uses if use.role == "called")

    def _calls_where_given(self, function: Function) -> Iterator[CallSite]:
        """The calls of a function by those that it is given to: `sample(lambda_or_closure)`."""
        name, file = function.name, function.file
        is_method = function.cls is not None and function.parent is None
        for one in file.naming(name) if not is_method and name in file.handed_on else ():
            for use in one.flow.uses.get(name, ()):
                call = one.flow.parents.get(use)
                if isinstance(call, (ast.Call, ast.keyword)) and getattr(call, "func", None) is not use:
                    if self._evaluator.value_of(use, self._evaluator.root(one)).ref is function:
                        for other in self._called(use, self._evaluator.root(one)):
                            yield CallSite(other.node, other.frame, True)

    def _called(self, node: Any, frame: Frame) -> Iterator[Use]:
        return (use for use in consumers(self._evaluator, node, frame, "object") if use.role == "called")

    def made(self, cls: Class) -> Iterator[tuple[ast.Call, Frame]]:
        """The calls that make objects of a class, and of no other."""
        for caller, call in self._evaluator.program.calls_named(cls.name, cls.file):
            if self._evaluator.value_of(call, self._evaluator.root(caller)).ref is cls:
                yield call, self._evaluator.root(caller)

    def _runs(self, call: ast.Call, frame: Frame, function: Function) -> bool | None:
        """Whether a call runs a function for certain; None where it does not."""
        func: Any = call.func
        if func.__class__ not in (ast.Name, ast.Attribute):
            return None
        base = self._evaluator.value_of(func.value, frame) if func.__class__ is ast.Attribute else NONE
        if base.kind in ("module", "object") and isinstance(base.ref, Class):
            if function in [method for method, _ in self._evaluator.methods(base, func.attr)]:
                # what a class leaves out, only those that derive from it have
                return any(self._evaluator.method(cls, func.attr) is not None for cls in base.refs)
            # a method that a class derived from this one overrides
            derived = (one for cls in base.refs for one in self._evaluator.program.subclasses(cls))
            return False if any(one.methods.get(func.attr) is function for one in derived) else None
        target = self._evaluator.value_of(func, frame)
        if target.kind in ("class", "function"):
            is_class = target.kind == "class"
            found = [self._evaluator.method(one, "__init__") if is_class else one for one in target.refs]
            return function in found or None
        if function.cls is None or base.kind not in ("unknown", "module", "object"):
            return None
        is_super = isinstance(func.value, ast.Call) and last_name(func.value.func) == "super"
        return None if is_super else False
