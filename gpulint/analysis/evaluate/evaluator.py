"""The evaluator: expressions are worked out when somebody asks what they are, once in each frame, and within a budget.

The budget is counted in work, never in time: expressions evaluated and calls entered, for a file and for a function. What is
beyond it is unknown, as what is out of sight is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from operator import add, eq, floordiv, ge, gt, le, lt, mul, ne, sub
from typing import Any, Final

from gpulint.analysis.domain.values import (
    NONE,
    NUMBER,
    TEXT,
    UNKNOWN,
    UNSET,
    Assumption,
    Graph,
    Value,
    join,
    join_ways,
    listed,
    together,
)
from gpulint.analysis.evaluate.attributes import Attributes
from gpulint.analysis.evaluate.callers import Callers
from gpulint.analysis.evaluate.calling import Calling, begun_by
from gpulint.analysis.evaluate.consumers import MOST_FOLLOWED
from gpulint.analysis.evaluate.containers import Containers
from gpulint.analysis.evaluate.fixpoint import TOO_MUCH, Fixpoint
from gpulint.analysis.evaluate.frames import DEEPEST, Frame, bind, settled
from gpulint.analysis.evaluate.modes import Modes
from gpulint.analysis.evaluate.names import Names
from gpulint.analysis.models.table import Row, table
from gpulint.analysis.project.file import Class, Function
from gpulint.analysis.project.program import Program
from gpulint.analysis.syntax.flow import Definition
from gpulint.analysis.syntax.nodes import (
    COMPREHENSIONS,
    called_on,
    constant_index,
    key_of,
    last_name,
)

MOST_EVALUATED: Final = 60_000  # expressions, for one file
MOST_ENTERED: Final = 3_000  # calls, for one file
MOST_ENTERED_BELOW: Final = 150  # calls below one function

_COMPARES: dict[type, Any] = {ast.Eq: eq, ast.Is: eq, ast.NotEq: ne, ast.IsNot: ne}
_COMPARES |= {ast.Gt: gt, ast.Lt: lt, ast.GtE: ge, ast.LtE: le}
_COMPUTES: dict[type, Any] = {ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.FloorDiv: floordiv}

ONE_OF_SEVERAL: Final = "which of the several outputs has a graph is not seen"


class Evaluator:
    """Answers what expressions are, for one file and what it reaches."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.table = table()
        self.names = Names(self)
        self.calling = Calling(self)
        self.containers = Containers(self)
        self.modes = Modes(self)
        attributes, callers = Attributes(self, self.names, self.calling, self.modes), Callers(self)
        self.attribute, self.constructed = attributes.of, attributes.constructed
        self.declared_fields, self.field_for = attributes.declared_fields, attributes.field_for
        self.callers, self.made = callers.of, callers.made
        self.instance, self.member, self.fields = self.names.instance, self.names.member, self.names.fields
        self.method, self.role = program.method, self.names.role
        self._expressions: dict[type, Any] = {
            ast.Name: self.names.name, ast.Call: self.calling.call, ast.Attribute: self._attribute, ast.Subscript: self._subscript,
            ast.BinOp: self._binary, ast.UnaryOp: self._unary, ast.Compare: self._comparison, ast.BoolOp: self._boolean, ast.IfExp: self._conditional,
            ast.Tuple: self._tuple, ast.List: self._list, ast.Set: self._list, ast.Dict: self._dict, ast.JoinedStr: self._text,
            ast.FormattedValue: self._formatted, ast.Starred: self._inner, ast.Await: self._inner, ast.NamedExpr: self._inner, ast.Lambda: self._lambda,
            **dict.fromkeys(COMPREHENSIONS, self._comprehension),
        }  # fmt: skip
        self._fixpoint = Fixpoint()
        self.once = self._fixpoint.once
        self.entered = 0
        self.followed = 0
        self._roots: dict[Function, Frame] = {}
        self._below: dict[Function, int] = {}

    def begin(self) -> None:
        """Another file is looked at: it has its own budget."""
        self._fixpoint.worked_out = self.entered = self.followed = 0

    def release(self) -> None:
        """Let go of everything: frames and values name each other."""
        frames = list(self._roots.values())
        for one in frames:
            frames.extend(one.entered.values())
            one.memo.clear()
            one.entered = {}
        self.__dict__.clear()

    @property
    def is_running(self) -> bool:
        """Whether something is being worked out, so that what is asked for meanwhile may rest on what is unfinished."""
        return bool(self._fixpoint.running)

    @property
    def evaluated(self) -> int:
        """How much was worked out for the file."""
        return self._fixpoint.worked_out

    @property
    def is_spent(self) -> bool:
        """Whether as much of the file was gone through as is: from then on nothing is known."""
        return self.evaluated >= MOST_EVALUATED or self.followed > MOST_FOLLOWED

    @property
    def is_limited(self) -> bool:
        """Whether something that was worked out may be unknown for want of budget."""
        return self.is_spent or self.entered >= MOST_ENTERED

    # -- the one question

    def value_of(self, node: Any, frame: Frame) -> Value:
        """What an expression gives in a frame; `BOTTOM` of what is being worked out right now."""
        found = frame.memo.get(node)
        if found is not None:
            return found  # type: ignore[no-any-return]
        what = node.__class__
        if what is ast.Constant:
            found = frame.memo[node] = _constant(node)
            return found
        if self.evaluated >= MOST_EVALUATED:
            return TOO_MUCH
        if frame.caller is not None and (what is ast.Name or what is ast.Attribute) and frame.is_outer(node):
            return self.value_of(node, self.root(frame.function))
        if what is ast.Name and (first := self.names.first_use(node, frame.function.flow)) is not node:
            found = self.value_of(first, frame)
            if first in frame.memo:
                frame.memo[node] = found
            return found
        method = self._expressions.get(what)
        return self.once(frame.memo, node, frame, method) if method is not None else UNKNOWN

    def thing(self, node: Any, frame: Frame | None) -> Value:
        """What was made at an origin: by a call, or given for a parameter."""
        if frame is None or not isinstance(node, ast.arg):
            return self.value_of(node, frame) if frame is not None else UNKNOWN
        made = frame.flow.definitions.get(node.arg, ())
        return join(self.definition(one, frame) for one in made if one.node is node)

    def ways(self, node: Any, frame: Frame, depth: int = 3) -> Iterator[Value]:
        """The values that an expression may have, each by itself: of the arms of a condition, of what a name is bound to, of what a function
        of the project returns."""
        several: list[tuple[Any, Frame]] = []
        if isinstance(node, ast.IfExp):
            several = [(node.body, frame), (node.orelse, frame)]
        elif isinstance(node, ast.Name):
            reaching = frame.flow.reaching(node)
            if all(one.kind == "assign" and not one.path for one in reaching):
                several = [(one.value, frame) for one in reaching]
        elif isinstance(node, ast.Call):
            target = self.value_of(node.func, frame)
            inner = self.enter(target.function, node, frame, target.receiver) if target.function else None
            if inner is not None and not inner.flow.yields:
                several = [(one.value, inner) for one in inner.flow.returns if not self.is_dead(one, inner)]
                if inner.flow.falls_through or any(one is None for one, _ in several):
                    yield NONE
        if not several or not depth:
            yield self.value_of(node, frame)
        for one, where in several if depth else ():
            if one is not None:
                yield from self.ways(one, where, depth - 1)

    def row_of(self, call: ast.Call, frame: Frame) -> Row | None:
        """What the table says of the function or class of a library, or of Python's own, that a call names."""
        full = self.value_of(call.func, frame).ref
        if not isinstance(full, str):
            return None
        return self.table.function(full) if "." in full else self.table.own("builtins", full)

    def does(self, call: ast.Call, frame: Frame) -> str:
        """The event that the table says a call is, of a library's function or of a clock's method; empty where it says none."""
        row = self.row_of(call, frame)
        if row is None and (on := called_on(call)) is not None and self.value_of(on, frame).kind == "clock":
            row = self.table.method("clock", "")
        return row.does if row is not None else ""

    # -- frames

    def root(self, function: Function) -> Frame:
        """The frame of a function that stands for all calls."""
        found = self._roots.get(function)
        if found is None:
            found = self._roots[function] = Frame(function)
        return found

    def enter(self, function: Function, call: Any, frame: Frame, receiver: Value | None) -> Frame | None:
        """The frame of a function for one call; None where that is deeper than is followed, or too much already."""
        key = (function, call)
        if key in frame.entered:
            return frame.entered[key]
        *_, outermost = around = [one.function for one in frame.around]
        below = self._below.get(outermost, 0)
        if len(around) > DEEPEST or self.entered >= MOST_ENTERED:
            return None
        if function in around or below >= MOST_ENTERED_BELOW:
            return None
        self._below[outermost] = below + 1
        self.entered += 1
        bound = function.takes_class or (function.takes_self and receiver is not None)
        found = Frame(function, bind(function, call, frame, bound), frame, call, receiver)
        frame.entered[key] = found
        return found

    def methods(self, value: Value, name: str) -> list[tuple[Function, Value]]:
        """The methods that a name of an object may be, of each class that it may be of, with the object as one of that class: of one that
        leaves it to those that derive from it, theirs."""
        found = []
        for of_class in value.each if value.kind in ("module", "object") else ():
            method = self.method(of_class.ref, name)
            if isinstance(of_class.ref, Class) and (method is None or method.is_abstract):
                own = (one for one in self.program.subclasses(of_class.ref) if name in one.methods)
                found += [(one.methods[name], of_class.but(ref=one)) for one in own]
            elif method is not None:
                found.append((method, of_class))
        return found

    # -- definitions

    def definition(self, definition: Definition, frame: Frame) -> Value:
        """What a definition gives its key."""
        kind = definition.kind
        if kind == "parameter":
            return self.once(frame.memo, definition, frame, self.names.parameter)  # type: ignore[no-any-return]
        if kind in ("assign", "loop", "context"):
            value = self.value_of(definition.value, frame)
            if kind == "loop":
                value = self.element(value)
            elif kind == "context":
                value = self.calling.entered_context(value)
            for index in definition.path:
                value = self._unpacked(value, index, definition, frame)
            return value
        if kind == "augmented":
            before = self.value_of(definition.node, frame)
            return self.combined(before, self.value_of(definition.value, frame))
        if kind == "inplace":
            changed = self.value_of(definition.node, frame)
            # `self.init_embed_(x)`: an object stays what it is
            stays = isinstance(changed.ref, Class) or changed.kind in ("library", "module")
            return changed if stays else self.value_of(definition.value, frame)
        return self.names.named(self.program.bound_by(frame.function.file, definition))

    def _unpacked(self, value: Value, index: Any, definition: Definition, frame: Frame) -> Value:
        """The part of a value that one of several names is given: of what a network gives that nobody sees, perhaps one without a graph."""
        found, node = self.element(value, index), definition.value
        made = value.graph is Graph.LIVE and (node, frame) in value.origins
        network = self.value_of(node.func, frame) if made and isinstance(node, ast.Call) else UNKNOWN
        if value.kind != "tensor" or index == 0 or network.kind != "module" or self.calling.made_by(network):
            return found  # the first is what a network is asked for
        return found.assuming(Assumption(ONE_OF_SEVERAL, node))

    def returned(self, frame: Frame) -> Value:
        """What a function gives back: what its returns that are reached give, or what it yields."""
        return self.once(frame.memo, Evaluator.returned, frame, self._given_back)  # type: ignore[no-any-return]

    def _given_back(self, key: Any, frame: Frame) -> Value:
        flow = frame.flow
        if flow.yields:
            given = [self.value_of(one.value, frame) for one in flow.yields if one.value is not None]
            return Value("list", origins=frozenset({(flow.yields[0], frame)}), receiver=join(given))
        reached = (one.value for one in flow.returns if not self.is_dead(one, frame))
        values = [self.value_of(one, frame) if one is not None else NONE for one in reached]
        if flow.falls_through:
            values.append(NONE)
        return join(values) if values else UNKNOWN

    # -- conditions

    def truth(self, node: Any, frame: Frame) -> bool | None:
        """Whether a condition holds, where that is known."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.truth(node.operand, frame)
            return None if inner is None else not inner
        if isinstance(node, ast.BoolOp):
            parts = [self.truth(one, frame) for one in node.values]
            decisive = isinstance(node.op, ast.Or)
            if decisive in parts:
                return decisive
            return None if None in parts else not decisive
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._compared(node, frame)
        if isinstance(node, ast.Call) and last_name(node.func) == "is_available":
            return True
        value = self.value_of(node, frame)
        if value.const is not UNSET and not (value.const is None and value.kind != "none"):
            return bool(value.const)
        return True if value.kind == "function" else None

    def _compared(self, node: ast.Compare, frame: Frame) -> bool | None:
        left, right = self.value_of(node.left, frame), self.value_of(node.comparators[0], frame)
        op = node.ops[0]
        if isinstance(op, (ast.Is, ast.IsNot)) and right.kind == "none":
            if left.kind == "none" or left.const is not UNSET or left.kind in ("class", "function"):
                return (left.kind == "none") == isinstance(op, ast.Is)
            return None
        if left.kind == "device" and isinstance(op, (ast.Eq, ast.NotEq, ast.In, ast.NotIn)):
            parts = right.parts if right.kind == "tuple" else (right,)
            if parts and all(one.kind == "text" for one in parts):  # a device equals no text
                return isinstance(op, (ast.NotEq, ast.NotIn))
        if isinstance(op, (ast.In, ast.NotIn)):
            among = [one.const for one in right.parts or ()] if right.kind == "tuple" else [UNSET]
            if left.const is UNSET or any(one is UNSET for one in among):
                return None
            return (left.const in among) == isinstance(op, ast.In)
        if left.const is UNSET or right.const is UNSET:
            return None
        try:
            return bool(_COMPARES[op.__class__](left.const, right.const))
        except TypeError:
            return None

    def is_dead(self, node: Any, frame: Frame) -> bool:
        """Whether a statement's conditions are known not to hold in a frame, of itself and of those around it."""
        flow = frame.flow
        statement = flow.statement_of(node)
        if statement in flow.unreachable:
            return True
        if not (conditions := flow.conditions(statement)):
            return False
        dead = lambda: any(self.truth(test, frame) is (not wanted) for test, wanted in conditions)  # noqa: E731
        return settled(self, frame, ("dead", statement), dead)  # type: ignore[no-any-return]

    def grad_is_off(self, node: Any, frame: Frame) -> bool:
        """Whether a guard in sight switches grad off at a node: in its function, or in the calls that the frame is of."""
        return self.modes.guard(node, frame) is not None

    # -- expressions

    def _text(self, node: ast.JoinedStr, frame: Frame) -> Value:
        found = Value("text", const="")
        for one in node.values:
            found = _appended(found, self.value_of(one, frame))
        return found

    def _formatted(self, node: ast.FormattedValue, frame: Frame) -> Value:
        return self.value_of(node.value, frame) if node.conversion < 0 and node.format_spec is None else TEXT

    def _tuple(self, node: ast.Tuple, frame: Frame) -> Value:
        if any(isinstance(one, ast.Starred) for one in node.elts):
            return self._list(node, frame)
        parts = tuple(self.value_of(one, frame) for one in node.elts)
        return Value("tuple", parts=parts, graph=max((one.graph for one in parts), default=Graph.NONE))

    def _list(self, node: Any, frame: Frame) -> Value:
        kind = "set" if isinstance(node, (ast.Set, ast.SetComp)) else "list"
        return Value(kind, origins=frozenset({(node, frame)}))  # type: ignore[arg-type]

    def _dict(self, node: ast.Dict, frame: Frame) -> Value:
        pairs = zip(node.keys, node.values, strict=True)
        named = ((key.value, value) for key, value in pairs if isinstance(key, ast.Constant))
        parts = tuple((key, self.value_of(value, frame)) for key, value in named)
        return Value("dict", parts=parts, origins=frozenset({(node, frame)}))

    def _inner(self, node: Any, frame: Frame) -> Value:
        return self.value_of(node.value, frame)

    def _conditional(self, node: ast.IfExp, frame: Frame) -> Value:
        holds = self.truth(node.test, frame)
        if holds is not None:
            return self.value_of(node.body if holds else node.orelse, frame)
        body = self.value_of(node.body, frame)
        return join_ways((body, self.value_of(node.orelse, frame)), body)

    def _boolean(self, node: ast.BoolOp, frame: Frame) -> Value:
        return join(self.value_of(one, frame) for one in node.values).without_const

    def _comparison(self, node: ast.Compare, frame: Frame) -> Value:
        with_none = any(isinstance(one, ast.Constant) and one.value is None for one in node.comparators)
        is_elementwise = not isinstance(node.ops[0], (ast.Is, ast.IsNot, ast.In, ast.NotIn))
        for one in (node.left, *node.comparators) if is_elementwise and not with_none else ():
            value = self.value_of(one, frame)
            if value.kind in ("tensor", "parameter") or value.is_moved:
                return Value("tensor", device=value.device, size=value.size)
        holds = self._compared(node, frame) if len(node.ops) == 1 else None
        return NUMBER if holds is None else NUMBER.but(const=holds)

    def _unary(self, node: ast.UnaryOp, frame: Frame) -> Value:
        value = self.value_of(node.operand, frame)
        if isinstance(node.op, ast.Not):
            holds = self.truth(node, frame)
            return NUMBER if holds is None else NUMBER.but(const=holds)
        if isinstance(node.op, ast.USub) and isinstance(value.const, (int, float)):
            return value.but(const=-value.const)
        if isinstance(node.op, ast.Invert):
            return value.but(graph=Graph.NONE, const=UNSET)
        return value.without_const

    def _binary(self, node: ast.BinOp, frame: Frame) -> Value:
        left, right = self.value_of(node.left, frame), self.value_of(node.right, frame)
        if left.kind == right.kind == "number":
            return NUMBER.but(const=_computed(node.op, left.const, right.const))
        if left.kind == "text" and not isinstance(node.op, ast.Add):
            if isinstance(node.op, ast.Mod):
                return begun_by(left)
            left = left.without_const  # an option's number may be taken for a text
        found = self.combined(left, right)
        if found.graph and found.kind == "tensor" and self.grad_is_off(node, frame):
            return found.but(graph=Graph.NONE, origins=frozenset())
        return found

    def combined(self, left: Value, right: Value) -> Value:
        """What an operator gives for two values: the graph of both."""
        if "bottom" in (left.kind, right.kind):
            return join((left, right)).without_const
        if left.kind == right.kind == "tuple" and left.parts is not None and right.parts is not None:
            return left.but(parts=(*left.parts, *right.parts), graph=max(left.graph, right.graph))
        for kind in ("parameters", "list", "tuple", "dict", "set", "state"):
            if kind in (left.kind, right.kind):
                return join((left, right)) if left.kind == right.kind == kind else left
        if left.kind == right.kind == "number":
            return NUMBER
        operands = (one for one in (left, right) if one.kind in ("tensor", "parameter") or one.graph)
        tensors = [one.but(parts=None, const=UNSET) for one in operands]
        if not tensors:
            if left.kind == "text":
                return _appended(left, right)
            if left.kind == "array" or right.kind in ("array", "text"):
                return left if left.kind == "array" else right.without_const
            return UNKNOWN.assuming(*left.assumptions, *right.assumptions)
        size = "batch" if any(one.size == "batch" for one in tensors) else tensors[0].size
        found = together(tensors)
        device = next((one.device for one in tensors if one.device != "?"), "?")
        is_tensor = found.kind in ("tensor", "parameter")
        return found.but(kind="tensor" if is_tensor else found.kind, size=size, device=device)

    def _subscript(self, node: ast.Subscript, frame: Frame) -> Value:
        reaching = frame.flow.reaching(node)
        stored = [self.definition(one, frame) for one in reaching if one.kind not in ("entry", "delete")]
        if stored and all(one.kind != "entry" for one in reaching):
            return join(stored)
        base = self.value_of(node.value, frame)
        if isinstance(node.slice, ast.Slice):
            return join((*stored, base.without_const))
        index = self.index(node, frame)
        if base.kind == "library":  # `models.__dict__[name]`
            return self.member(base, index, frame.function.file)
        found = self.element(base, index)
        if base.kind == "dict" and base.parts and index is None:
            # under whatever key: what has a graph, any of the classes or functions, or of things that are all alike
            any_of = self.any_entry(base)
            alike = len({one.kind for _, one in base.parts}) == 1
            found = any_of if any_of.graph or alike or any_of.kind in ("class", "function") else UNKNOWN
        if isinstance(index, str) and base.kind == "tensor":
            found = _entry(base, node)
        if isinstance(index, str) and found.kind == "unknown":
            role = self.names.used(node, frame)  # a backward goes through the entry
            if role is not None and role.graph is Graph.LIVE:
                found = role.but(origins=found.origins)
        by = self._replacing(node, frame) if found.graph else None
        if by is not None:
            clause = f"`{ast.unparse(node)}` may have been given something else"
            found = found.assuming(Assumption(clause, by))
        return join((*stored, found))

    def _replacing(self, node: ast.Subscript, frame: Frame) -> Any:
        """The statement that stores something without a graph in the same container before, under a key that is not seen."""
        stored = frame.flow.stored.get(key_of(node.value) or "", ())
        before = (one for one in stored if one.target.lineno < node.lineno)
        unseen = (one for one in before if constant_index(one.target.slice) is None)
        return next(
            (one.statement for one in unseen if one.path or not self.value_of(one.value, frame).graph), None
        )

    def index(self, node: ast.Subscript, frame: Frame) -> Any:
        """The text or number that something is taken by; None where it is not known."""
        known = self.value_of(node.slice, frame).const if not isinstance(node.slice, ast.Tuple) else None
        return known if isinstance(known, (int, str)) else None

    def element(self, value: Value, index: Any = None) -> Value:
        """What is in a value, at an index that is known or at any."""
        kind = value.kind
        if kind == "tuple" and value.parts is not None:
            return self._part(value.parts, index)
        if kind == "dict" and value.parts is not None:
            if index is not None:
                for key, one in value.parts:
                    if key == index:  # what stands for something that is put there later says nothing of it
                        return one if one.kind != "none" else UNKNOWN
            elif value.parts:
                return NUMBER if not isinstance(value.receiver, Value) else value.receiver
        if kind in ("list", "set", "dict", "object"):
            if isinstance(value.receiver, Value):
                return value.receiver
            return self.containers.contents(value, index)
        if isinstance(index, slice):
            return value
        if kind == "loader":
            return Value("tensor", device="host", size="batch")
        if kind in ("tensor", "array", "module", "loaded", "logger"):
            # what its name says shows nothing of what is in it
            guessed = kind == "module" and value.assumptions
            return UNKNOWN if guessed else value.without_const
        if kind == "parameters":
            return Value("parameter", graph=Graph.LIVE, origins=value.origins)
        if kind == "modules":
            return Value("module", origins=value.origins)
        if kind == "state":
            return Value("tensor", origins=value.origins, receiver=value)
        graph = Graph.MAY if value.graph is Graph.MAY else Graph.NONE
        origins = value.origins if value.graph else frozenset[Any]()
        found = Value("unknown", graph, value.device, value.size, origins=origins)
        return found.assuming(*value.assumptions)

    def any_entry(self, value: Value) -> Value:
        """What is in a dict, under whatever key."""
        return join((*(one for _, one in value.parts or ()), self.element(value.but(parts=None))))

    def _part(self, parts: tuple[Any, ...], index: Any) -> Value:
        if isinstance(index, slice):
            chosen = parts[index]
            return Value("list").but(receiver=join(chosen)) if chosen else UNKNOWN
        if isinstance(index, int):
            return parts[index] if -len(parts) <= index < len(parts) else UNKNOWN
        return join(parts) if parts else UNKNOWN

    def _attribute(self, node: ast.Attribute, frame: Frame) -> Value:
        reaching = frame.flow.reaching(node)
        own = [self.definition(one, frame) for one in reaching if one.kind not in ("entry", "delete")]
        if own and all(one.kind != "entry" for one in reaching):
            found = join_ways(own)
            if found.is_known or found.graph:
                return found
        base = self.value_of(node.value, frame)
        return join((*own, self.attribute(base, node.attr, node, frame)))

    def _comprehension(self, node: Any, frame: Frame) -> Value:
        kind: Any = {ast.SetComp: "set", ast.DictComp: "dict"}.get(node.__class__, "list")
        element = self.value_of(node.value if kind == "dict" else node.elt, frame)
        return listed(element, frozenset({(node, frame)})).but(kind=kind)

    def _lambda(self, node: ast.Lambda, frame: Frame) -> Value:
        return Value("function", ref=None, origins=frozenset({(node, frame)}))


def _constant(node: ast.Constant) -> Value:
    value = node.value
    if value is None:
        return NONE
    if isinstance(value, str):
        return Value("text", const=value)
    return Value("number", device="host", size="scalar", const=value)


def _entry(value: Value, node: Any) -> Value:
    """What stands under a text in what a network gives: it may be of any kind."""
    if value.graph is Graph.NONE:
        return UNKNOWN.but(device=value.device, size=value.size)
    guess = Assumption("what the entry is, the code does not show", node)
    entry = Value("unknown", graph=Graph.MAY, origins=value.origins, assumptions=value.assumptions)
    return entry.assuming(guess)


def _appended(left: Value, right: Value) -> Value:
    """A text with something behind it: where that is not known, what it begins with may name a place, as `f"cuda:{rank}"` does."""
    known = isinstance(left.const, str) and isinstance(right.const, (str, int))
    if known and right.kind in ("text", "number"):
        return Value("text", const=f"{left.const}{right.const}")
    return begun_by(left)


def _computed(op: Any, left: Any, right: Any) -> Any:
    if not isinstance(left, (int, float)) or not isinstance(right, (int, float)):
        return UNSET
    try:
        compute = _COMPUTES.get(op.__class__)
        return compute(left, right) if compute is not None else UNSET
    except (ArithmeticError, ValueError):
        return UNSET
