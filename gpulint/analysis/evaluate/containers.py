"""What lists and dicts hold: what their displays name, and what is put into them, by whatever name and in whatever method of their class."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import reduce
from typing import Any

from gpulint.analysis.domain.values import UNKNOWN, Value, in_text_order, join
from gpulint.analysis.evaluate.frames import Evaluating, Frame, parameter_for
from gpulint.analysis.project.file import methods_naming
from gpulint.analysis.syntax.nodes import last_name

_STORING = {"append": 0, "add": 0, "appendleft": 0, "insert": 1, "setdefault": 1}
_EXTENDING = ("extend", "update", "extendleft")


class Containers:
    """Looks into containers for an evaluator."""

    def __init__(self, evaluator: Evaluating) -> None:
        self._evaluator = evaluator

    def contents(self, value: Value, index: Any) -> Value:
        """What is in a list or dict: what its displays name, and what is stored in it, by whatever method of its class. Under a text for
        a key what goes by another one is not, nor is at a number of a display what stands elsewhere in it."""
        many = all(len(getattr(node, "elts", ())) > 1 for node, _ in value.origins)
        key = index if isinstance(index, str) or (isinstance(index, int) and many) else None
        found = (self._stored_in(origin, key) for origin in in_text_order(value.origins))
        return join(found) if value.origins else UNKNOWN

    def _stored_in(self, origin: tuple[Any, Frame | None], key: str | int | None) -> Value:
        made, where = origin
        found = lambda _, frame: join(self.items(made, frame, key) or [UNKNOWN])  # noqa: E731
        stored = (Containers._stored_in, made, key)
        return self._evaluator.once(where.memo, stored, where, found) if where is not None else UNKNOWN

    def items(self, node: Any, frame: Frame | None, wanted: str | int | None = None) -> list[Value]:
        """What is put into the list or dict that a node makes, each by itself: all of it, or what goes by a key, or stands at a number."""
        if frame is None:
            return []
        at, wanted = (wanted, None) if isinstance(wanted, int) else (None, wanted)
        elements = getattr(node, "elts", ())
        found = [self._evaluator.value_of(one, frame) for one in elements]
        if isinstance(node, ast.Dict):
            entries = zip(node.keys, node.values, strict=True)
            likely = (one for key, one in entries if self._may_be(key, frame, wanted))
            found += [self._evaluator.value_of(one, frame) for one in likely]
        for key, where in self.keys_of(node, frame):
            found += self._put_in(key, where, wanted)
        starred = any(isinstance(one, ast.Starred) for one in elements)
        as_displayed = len(found) == len(elements) and not starred
        return found[at : at + 1] if at is not None and as_displayed and 0 <= at < len(found) else found

    def keys_of(self, node: Any, frame: Frame) -> Iterator[tuple[str, Frame]]:
        """The keys that a container goes by: the name that it is bound to, or the attribute in all methods of its class."""
        flow = frame.flow
        while isinstance(flow.parents.get(node), ast.BinOp):  # `[None] * n`
            node = flow.parents[node]
        given = [one.key for one in flow.given.get(node, ()) if not one.path]
        above = flow.parents.get(node)
        if isinstance(above, ast.Tuple):  # `total, losses = 0, []`
            given = [one.key for one in flow.given.get(above, ()) if one.path == (above.elts.index(node),)]
        if not given:
            made = flow.definitions.items()
            given = [key for key, several in made if any(one.node is node for one in several)]
        for key in given:
            yield key, frame
            yield from self._handed(key, frame)
            own, _, name = key.partition(".")
            function = frame.function
            if function.is_module:  # a list of the module, whoever puts something into it
                for other in function.file.naming(key):
                    if key not in other.flow.definitions:
                        yield key, self._evaluator.root(other)
            if name and function.cls is not None and own == function.self_name:
                for method, its_key in methods_naming(self._evaluator.program.lineage(function.cls), name):
                    if method is not function:
                        yield its_key, self._evaluator.root(method)

    def _handed(self, key: str, frame: Frame) -> Iterator[tuple[str, Frame]]:
        """The parameters of functions, and no methods, that a key is given for: they may put something into it."""
        for use in frame.flow.uses.get(key, ()):
            call = frame.flow.parents.get(use)
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or use not in call.args:
                continue
            target = self._evaluator.value_of(call.func, frame)
            if target.function is not None:
                inner = self._evaluator.enter(target.ref, call, frame, target.receiver)
                name = parameter_for(target.ref, call, use, bound=target.receiver is not None)
                if inner is not None and name is not None:
                    yield name, inner

    def _put_in(self, key: str, frame: Frame, wanted: str | None) -> Iterator[Value]:
        flow = frame.flow
        for store in flow.stored.get(key, ()):
            if self._may_be(store.target.slice, frame, wanted):
                value = self._evaluator.value_of(store.value, frame)
                yield reduce(self._evaluator.element, store.path, value)
        for one in flow.definitions.get(key, ()):
            if one.kind == "augmented":
                yield self._evaluator.element(self._evaluator.value_of(one.value, frame))
        for call in flow.calls_on({key}, *_STORING, *_EXTENDING):
            name = last_name(call.func)
            position = _STORING.get(name, 0)
            for given in call.args[position : position + 1]:
                value = self._evaluator.value_of(given, frame)
                yield self._evaluator.element(value) if name in _EXTENDING else value

    def _may_be(self, key: ast.expr | None, frame: Frame, wanted: str | None) -> bool:
        """Whether a key may be the one that is asked for: all but another text."""
        known = self._evaluator.value_of(key, frame).const if wanted is not None and key is not None else None
        return not isinstance(known, str) or known == wanted
