"""What the attributes of values are: of tensors and networks by the table, of objects of the project by what their classes say and set."""

from __future__ import annotations

import ast
from typing import Any, Final

from gpulint.analysis.domain.values import NUMBER, PAIR, TEXT, UNKNOWN, UNSET, Graph, Value, join, join_ways
from gpulint.analysis.evaluate.calling import Calling
from gpulint.analysis.evaluate.frames import Evaluating, Frame
from gpulint.analysis.evaluate.modes import Modes
from gpulint.analysis.evaluate.names import Names
from gpulint.analysis.project.file import Class
from gpulint.analysis.syntax.nodes import argument, key_of

# what no use of an attribute outweighs
_CERTAIN: Final = frozenset({"module", "optimizer", "object", "class", "function", "library"})


class Attributes:
    """Evaluates attributes for an evaluator."""

    def __init__(self, evaluator: Evaluating, names: Names, calling: Calling, modes: Modes) -> None:
        self._evaluator, self._names, self._calling, self._modes = evaluator, names, calling, modes

    def of(self, base: Value, name: str, node: Any, frame: Frame) -> Value:
        """An attribute of a value."""
        kind = base.kind
        if kind == "device":
            return TEXT
        if kind == "tuple" and name in PAIR and base.parts is not None and len(base.parts) == 2:
            return base.parts[PAIR[name]]  # type: ignore[no-any-return]
        if kind == "dict" and self._evaluator.table.own("dict", name) is None:
            entry = self._evaluator.element(base, name)  # of those whose entries are attributes
            if entry.is_known:
                return entry
        if kind == "library":
            return base if name == "__dict__" else self._evaluator.member(base, name, frame.function.file)
        part = kind == "unknown" and (base.graph or base.is_moved) and name in ("data", "grad")
        if kind in ("tensor", "parameter") or part:
            row = self._evaluator.table.method("tensor.attributes", name)
            if row is None or row.gives in ("number", "device"):
                return NUMBER if row is None or row.gives == "number" else Value("device", device=base.device)
            cut = row.graph == "cuts"
            found = base.but(kind="tensor", const=UNSET, parts=None)
            return found.but(graph=Graph.NONE, origins=frozenset()) if cut else found
        if kind in ("module", "object") and isinstance(base.ref, Class):
            known = [one for each in base.each if (one := self._member(each, each.ref, name)) is not None]
            if known:
                return join(known)
        if kind == "module":
            row = self._evaluator.table.own("module.attributes", name)
            if row is not None:
                if row.gives == "device":
                    return Value("device", device=base.device)
                if row.gives == "module":  # of a wrapper what it wraps
                    if name == "module" and isinstance(base.ref, Class):
                        return base
                    return Value("module", origins=base.origins, assumptions=base.assumptions)
                if row.gives == "mode":
                    return NUMBER.but(const=False) if self._modes.evaluates(frame) else NUMBER
                live = Value("parameter", graph=Graph.LIVE, origins=base.origins)
                return live if row.gives == "parameter" else NUMBER
        if kind == "class" and isinstance(base.ref, Class):
            method = self._evaluator.method(base.ref, name)
            if method is not None:
                return Value("function", ref=method)
            definitions = base.ref.body.flow.definitions.get(name, ())
            body = self._evaluator.root(base.ref.body)
            return (
                join(self._evaluator.definition(one, body) for one in definitions) if definitions else UNKNOWN
            )
        if kind == "module" and base.ref is None and self._is_list_of_parts(node, frame):
            return Value("modules", origins=base.origins, assumptions=base.assumptions)
        used, option = self._names.used(node, frame), self._calling.option(base, name)
        if used is not None and (option is None or not used.assumptions):
            return used
        if option is not None:
            return option
        bases = self._evaluator.program.library_bases(base.ref) if kind == "object" else ()
        if base.calls and any(one != "object" for one in bases):
            base = join(self._calling.all_given(*one) for one in base.calls)  # an unseen base may keep it
        graph = Graph.MAY if base.graph else Graph.NONE
        return UNKNOWN.but(graph=graph, origins=base.origins if graph else frozenset())

    def _is_list_of_parts(self, node: Any, frame: Frame) -> bool:
        """Whether one of what an attribute of a network holds is called: `net.blocks[i](x)`."""
        item = frame.flow.parents.get(node)
        call = (
            frame.flow.parents.get(item) if isinstance(item, ast.Subscript) and item.value is node else None
        )
        return isinstance(call, ast.Call) and call.func is item

    def _member(self, base: Value, cls: Class, name: str) -> Value | None:
        """What an object of a class of the project has by a name: a method, a property, or what its methods set."""
        method = self._evaluator.method(cls, name)
        if method is not None:
            if not method.decorators.isdisjoint(("property", "cached_property")):
                return self._evaluator.returned(self._evaluator.root(method))
            return Value("function", ref=method, receiver=base)
        made = self.constructed(base, cls)
        values: list[Value] = []
        for function, definition in self._names.fields(cls, name):
            frame = made if made is not None and function is made.function else self._evaluator.root(function)
            value = self._evaluator.definition(definition, frame)
            if not value.origins and value.kind in ("list", "dict", "module", "optimizer"):
                value = value.but(origins=frozenset({(definition.node, frame)}))
            values.append(value)
        given = self._given_field(base, cls, name)
        if given is not None:
            values = [given, *(one for one in values if not one.assumptions)]
        if not values:
            return self._declared_field(cls, name)
        found = join_ways(values)
        if found.assumptions or found.kind not in _CERTAIN:
            by_use = self._names.used_as(cls, name)
            if by_use is not None and found.kind == by_use.kind:
                return found.but(assumptions=by_use.assumptions) if found.assumptions else found
            if by_use is not None and (not found.is_known or not by_use.assumptions):
                return by_use.but(origins=found.origins or by_use.origins, device=found.device)
            if found.kind == "none":
                return UNKNOWN
        if found.const is not UNSET and (len(values) > 1 or self._names.is_set_by_others(cls, name)):
            found = found.without_const
        return found

    def constructed(self, base: Value, cls: Class) -> Frame | None:
        """The frame of the constructor for an object that is made by one call."""
        init = self._evaluator.method(cls, "__init__")
        if init is None or len(base.origins) != 1 or not base.calls:
            return None
        ((node, frame),) = base.calls
        target = self._evaluator.value_of(node.func, frame)
        return (
            self._evaluator.enter(init, node, frame, base)
            if target.kind == "class" and target.ref is cls
            else None
        )

    def declared_fields(self, cls: Class) -> list[str]:
        """The fields of a class without a constructor of its own, in order."""
        if self._evaluator.method(cls, "__init__") is not None:
            return []
        declared = [one for one in cls.node.body if isinstance(one, ast.AnnAssign)]
        return [one.target.id for one in declared if isinstance(one.target, ast.Name)]

    def field_for(self, cls: Class, call: ast.Call, given: Any) -> str | None:
        """The field of a dataclass, or of a named tuple, that an argument of a call gives its value to."""
        fields = self.declared_fields(cls)
        return next((name for at, name in enumerate(fields) if argument(call, at, name) is given), None)

    def _given_field(self, base: Value, cls: Class, name: str) -> Value | None:
        """A field of a dataclass, or of a named tuple, by what the calls that make such objects give it."""
        fields = self.declared_fields(cls)
        if name not in fields:
            return None
        given = ((argument(call, fields.index(name), name), frame) for call, frame in base.calls)
        values = [self._evaluator.value_of(one, frame) for one, frame in given if one is not None]
        return join(values) if values else None

    def _declared_field(self, cls: Class, name: str) -> Value | None:
        """A field of a dataclass, or what a class's text says of an attribute."""
        for statement in cls.node.body:
            if isinstance(statement, ast.AnnAssign) and key_of(statement.target) == name:
                frame = self._evaluator.root(cls.body)
                found = self._names.annotated(statement.annotation, statement.target, frame)
                if found.kind == "text" and statement.value is not None:
                    found = found.but(device=self._calling.device_of(statement.value, frame))
                if found.kind == "tensor" and self._names.is_module(cls):  # a buffer
                    found = found.but(graph=Graph.NONE, origins=frozenset())
                return found if found.is_known else None
        return None
