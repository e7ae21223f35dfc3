"""The lowered form of a module: only what decides about memory, each piece with the node of Python's own tree it came
from, its `origin`, by which it is told from others.

`node` is the same place in libcst's tree, once that is attached (`gpulint.lint.attaching`): in files that are reported on,
where positions and repairs are made.

These classes are built by the hundred thousand on the hot path, so they are plain slots classes: a frozen dataclass
takes three times as long to construct. Nothing changes them after lowering.

`path` is the dotted name of an expression that denotes a place (`x`, `self.loss`, `out["loss"]`), else None.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

Origin: TypeAlias = Any  # a node of `ast`
Node: TypeAlias = Any  # a node of libcst


class Unattached(LookupError):
    """libcst's node was asked for before libcst had read the file."""


def attach(origin: Origin, node: Node, line: Node = None) -> None:
    """Note the libcst node at a place; of a small statement also the line that it stands in."""
    origin.node_of_libcst = node
    if line is not None:
        origin.line_of_libcst = line


def detach(origin: Origin) -> None:
    """Forget both."""
    origin.__dict__.pop("node_of_libcst", None)
    origin.__dict__.pop("line_of_libcst", None)


class Part:
    """What has a place in the text."""

    __slots__ = ("origin",)
    origin: Origin

    @property
    def node(self) -> Node:
        """The node of libcst's tree."""
        try:
            return self.origin.node_of_libcst
        except AttributeError:
            raise Unattached(
                "a rule gives the part itself to `Report`, and asks for nodes in its repair"
            ) from None

    @property
    def row(self) -> int:
        """The row it begins in."""
        return getattr(self.origin, "lineno", 1)


class Expr(Part):
    __slots__ = ()
    path: str | None = None

    def children(self) -> tuple[Expr, ...]:
        return ()


class Const(Expr):
    """A literal. `value` is the number, string, bytes, bool or None."""

    __slots__ = ("value",)

    def __init__(self, origin: Origin, value: Any) -> None:
        self.origin = origin
        self.value = value


class Name(Expr):
    __slots__ = ("id", "path")

    def __init__(self, origin: Origin, id: str) -> None:
        self.origin = origin
        self.id = id
        self.path = id


class Attr(Expr):
    __slots__ = ("attr", "base", "path")

    def __init__(self, origin: Origin, base: Expr, attr: str) -> None:
        self.origin = origin
        self.base = base
        self.attr = attr
        self.path = f"{base.path}.{attr}" if base.path is not None else None

    def children(self) -> tuple[Expr, ...]:
        return (self.base,)


class Sub(Expr):
    """`base[index]`. `index` is a `Slice` marker for `base[a:b]`, a Seq for several subscripts."""

    __slots__ = ("base", "index", "path")

    def __init__(self, origin: Origin, base: Expr, index: Expr) -> None:
        self.origin = origin
        self.base = base
        self.index = index
        self.path = None
        if base.path is not None and isinstance(index, Const):
            self.path = f"{base.path}[{index.value!r}]"

    def children(self) -> tuple[Expr, ...]:
        return (self.base, self.index)


class Slice(Expr):
    """`lower:upper:step`; `parts` are those of the three that are there."""

    __slots__ = ("lower", "parts", "upper")

    def __init__(self, origin: Origin, lower: Expr | None, upper: Expr | None, step: Expr | None) -> None:
        self.origin = origin
        self.lower = lower
        self.upper = upper
        self.parts = tuple(part for part in (lower, upper, step) if part is not None)

    def children(self) -> tuple[Expr, ...]:
        return self.parts


class Call(Expr):
    """`func(*args, **keywords)`. A starred argument is a `Starred`; `**x` has the keyword None."""

    __slots__ = ("args", "func", "keywords")

    def __init__(
        self,
        origin: Origin,
        func: Expr,
        args: tuple[Expr, ...],
        keywords: tuple[tuple[str | None, Expr], ...],
    ) -> None:
        self.origin = origin
        self.func = func
        self.args = args
        self.keywords = keywords

    def children(self) -> tuple[Expr, ...]:
        return (self.func, *self.args, *(value for _, value in self.keywords))

    def keyword(self, name: str) -> Expr | None:
        for key, value in self.keywords:
            if key == name:
                return value
        return None

    def argument(self, position: int, name: str) -> Expr | None:
        """The argument given by position or by name."""
        if position < len(self.args):
            found = self.args[position]
            return None if isinstance(found, Starred) else found
        return self.keyword(name)

    @property
    def method(self) -> str:
        """The last name of what is called: `item` in `loss.item()`, `print` in `print()`, else ''."""
        if isinstance(self.func, Attr):
            return self.func.attr
        return self.func.id if isinstance(self.func, Name) else ""


class Op(Expr):
    """An operator over operands. `op` is '+', '-', '*', '@', 'not', 'neg', 'and', 'or', 'if' or 'cmp'."""

    __slots__ = ("op", "operands")

    def __init__(self, origin: Origin, op: str, operands: tuple[Expr, ...]) -> None:
        self.origin = origin
        self.op = op
        self.operands = operands

    def children(self) -> tuple[Expr, ...]:
        return self.operands


class Seq(Expr):
    """A list, tuple or set display."""

    __slots__ = ("items", "kind")

    def __init__(self, origin: Origin, kind: str, items: tuple[Expr, ...]) -> None:
        self.origin = origin
        self.kind = kind
        self.items = items

    def children(self) -> tuple[Expr, ...]:
        return self.items


class DictDisplay(Expr):
    """A dict display; a key of None is `**value`."""

    __slots__ = ("pairs",)

    def __init__(self, origin: Origin, pairs: tuple[tuple[Expr | None, Expr], ...]) -> None:
        self.origin = origin
        self.pairs = pairs

    def children(self) -> tuple[Expr, ...]:
        return tuple(part for pair in self.pairs for part in pair if part is not None)


class Comp(Expr):
    """A comprehension or generator. `kind` is list, set, dict or generator; a dict has two elements."""

    __slots__ = ("clauses", "elements", "kind")

    def __init__(
        self,
        origin: Origin,
        kind: str,
        elements: tuple[Expr, ...],
        clauses: tuple[tuple[Expr, Expr, tuple[Expr, ...]], ...],
    ) -> None:
        self.origin = origin
        self.kind = kind
        self.elements = elements
        self.clauses = clauses

    def children(self) -> tuple[Expr, ...]:
        parts: list[Expr] = []
        for target, iterable, tests in self.clauses:
            parts += (target, iterable, *tests)
        return (*parts, *self.elements)


class Wrapper(Expr):
    """`await e`, `*e`, `yield e`, `yield from e`: `kind` says which."""

    __slots__ = ("kind", "value")

    def __init__(self, origin: Origin, kind: str, value: Expr) -> None:
        self.origin = origin
        self.kind = kind
        self.value = value

    def children(self) -> tuple[Expr, ...]:
        return (self.value,)


class Starred(Wrapper):
    __slots__ = ()


class Walrus(Expr):
    __slots__ = ("target", "value")

    def __init__(self, origin: Origin, target: Expr, value: Expr) -> None:
        self.origin = origin
        self.target = target
        self.value = value

    def children(self) -> tuple[Expr, ...]:
        return (self.target, self.value)


class LambdaExpr(Expr):
    __slots__ = ("function",)

    def __init__(self, origin: Origin, function: Function) -> None:
        self.origin = origin
        self.function = function


class Text(Expr):
    """An f-string or concatenated string: always a `str`, whatever is inside."""

    __slots__ = ("parts",)

    def __init__(self, origin: Origin, parts: tuple[Expr, ...]) -> None:
        self.origin = origin
        self.parts = parts

    def children(self) -> tuple[Expr, ...]:
        return self.parts


class Stmt(Part):
    """`node` is the small or compound statement, `line` the statement that stands in the block."""

    __slots__ = ("_calls", "_parts")
    _calls: tuple[Call, ...]  # see `own_calls`
    _parts: tuple[Expr, ...]  # see `own_parts`

    @property
    def line(self) -> Node:
        return getattr(self.origin, "line_of_libcst", None) or self.node

    def expressions(self) -> tuple[Expr, ...]:
        """The expressions evaluated by this statement itself, not by statements nested in it."""
        return ()

    def blocks(self) -> tuple[list[Stmt], ...]:
        return ()


class Assign(Stmt):
    """`a = b = value`; an annotated assignment keeps its annotation."""

    __slots__ = ("annotation", "targets", "value")

    def __init__(self, targets: tuple[Expr, ...], value: Expr | None, annotation: Expr | None = None) -> None:
        self.targets = targets
        self.value = value
        self.annotation = annotation

    def expressions(self) -> tuple[Expr, ...]:
        return self.targets if self.value is None else (*self.targets, self.value)


class AugAssign(Stmt):
    __slots__ = ("op", "target", "value")

    def __init__(self, target: Expr, op: str, value: Expr) -> None:
        self.target = target
        self.op = op
        self.value = value

    def expressions(self) -> tuple[Expr, ...]:
        return (self.target, self.value)


class ExprStmt(Stmt):
    __slots__ = ("value",)

    def __init__(self, value: Expr) -> None:
        self.value = value

    def expressions(self) -> tuple[Expr, ...]:
        return (self.value,)


class Return(Stmt):
    __slots__ = ("value",)

    def __init__(self, value: Expr | None) -> None:
        self.value = value

    def expressions(self) -> tuple[Expr, ...]:
        return () if self.value is None else (self.value,)


class Jump(Stmt):
    """`break`, `continue` or `raise`."""

    __slots__ = ("kind", "values")

    def __init__(self, kind: str, values: tuple[Expr, ...] = ()) -> None:
        self.kind = kind
        self.values = values

    def expressions(self) -> tuple[Expr, ...]:
        return self.values


class Delete(Stmt):
    __slots__ = ("targets",)

    def __init__(self, targets: tuple[Expr, ...]) -> None:
        self.targets = targets

    def expressions(self) -> tuple[Expr, ...]:
        return self.targets


class Check(Stmt):
    """`assert` and other statements that only evaluate."""

    __slots__ = ("values",)

    def __init__(self, values: tuple[Expr, ...]) -> None:
        self.values = values

    def expressions(self) -> tuple[Expr, ...]:
        return self.values


class Scope(Stmt):
    """`global` or `nonlocal` names."""

    __slots__ = ("kind", "names")

    def __init__(self, kind: str, names: tuple[str, ...]) -> None:
        self.kind = kind
        self.names = names


class Import(Stmt):
    """Names bound by an import: (local name, qualified name). A relative import starts with dots."""

    __slots__ = ("bindings",)

    def __init__(self, bindings: tuple[tuple[str, str], ...]) -> None:
        self.bindings = bindings


class If(Stmt):
    __slots__ = ("body", "orelse", "test")

    def __init__(self, test: Expr, body: list[Stmt], orelse: list[Stmt]) -> None:
        self.test = test
        self.body = body
        self.orelse = orelse

    def expressions(self) -> tuple[Expr, ...]:
        return (self.test,)

    def blocks(self) -> tuple[list[Stmt], ...]:
        return (self.body, self.orelse)


class For(Stmt):
    __slots__ = ("body", "iterable", "orelse", "target")

    def __init__(self, target: Expr, iterable: Expr, body: list[Stmt], orelse: list[Stmt]) -> None:
        self.target = target
        self.iterable = iterable
        self.body = body
        self.orelse = orelse

    def expressions(self) -> tuple[Expr, ...]:
        return (self.target, self.iterable)

    def blocks(self) -> tuple[list[Stmt], ...]:
        return (self.body, self.orelse)


class While(Stmt):
    __slots__ = ("body", "orelse", "test")

    def __init__(self, test: Expr, body: list[Stmt], orelse: list[Stmt]) -> None:
        self.test = test
        self.body = body
        self.orelse = orelse

    def expressions(self) -> tuple[Expr, ...]:
        return (self.test,)

    def blocks(self) -> tuple[list[Stmt], ...]:
        return (self.body, self.orelse)


class With(Stmt):
    __slots__ = ("body", "items")

    def __init__(self, items: tuple[tuple[Expr, Expr | None], ...], body: list[Stmt]) -> None:
        self.items = items
        self.body = body

    def expressions(self) -> tuple[Expr, ...]:
        return tuple(part for item in self.items for part in item if part is not None)

    def blocks(self) -> tuple[list[Stmt], ...]:
        return (self.body,)


class Handler(Part):
    """One `except`: the exception types, the bound name, the body."""

    __slots__ = ("body", "name", "types")

    def __init__(self, origin: Origin, types: tuple[Expr, ...], name: str | None, body: list[Stmt]) -> None:
        self.origin = origin
        self.types = types
        self.name = name
        self.body = body


class Try(Stmt):
    __slots__ = ("body", "final", "handlers", "orelse")

    def __init__(
        self, body: list[Stmt], handlers: tuple[Handler, ...], orelse: list[Stmt], final: list[Stmt]
    ) -> None:
        self.body = body
        self.handlers = handlers
        self.orelse = orelse
        self.final = final

    def expressions(self) -> tuple[Expr, ...]:
        return tuple(kind for handler in self.handlers for kind in handler.types)

    def blocks(self) -> tuple[list[Stmt], ...]:
        return (self.body, *(handler.body for handler in self.handlers), self.orelse, self.final)


class Match(Stmt):
    """`match`: names captured by each case's pattern, its guard, its body."""

    __slots__ = ("cases", "subject")

    def __init__(
        self, subject: Expr, cases: tuple[tuple[tuple[str, ...], Expr | None, list[Stmt]], ...]
    ) -> None:
        self.subject = subject
        self.cases = cases

    def expressions(self) -> tuple[Expr, ...]:
        return (self.subject, *(guard for _, guard, _ in self.cases if guard is not None))

    def blocks(self) -> tuple[list[Stmt], ...]:
        return tuple(body for _, _, body in self.cases)


class FunctionDef(Stmt):
    __slots__ = ("function",)

    def __init__(self, function: Function) -> None:
        self.function = function


class ClassDef(Stmt):
    __slots__ = ("cls",)

    def __init__(self, cls: Class) -> None:
        self.cls = cls


class Param:
    __slots__ = ("annotation", "default", "kind", "name")

    def __init__(self, name: str, kind: str, annotation: Expr | None, default: Expr | None) -> None:
        self.name = name
        self.kind = kind  # "normal", "keyword", "star" or "doublestar"
        self.annotation = annotation
        self.default = default


class Function(Part):
    """A function, method, lambda, or the module's own body (`name` is '<module>')."""

    __slots__ = (
        "body",
        "cls",
        "decorators",
        "home",
        "is_generator",
        "name",
        "params",
        "parent",
        "qualname",
    )

    def __init__(
        self,
        origin: Origin,
        name: str,
        qualname: str,
        params: tuple[Param, ...],
        body: list[Stmt],
        decorators: tuple[Expr, ...] = (),
        cls: Class | None = None,
        parent: Function | None = None,
    ) -> None:
        self.origin = origin
        self.name = name
        self.qualname = qualname
        self.params = params
        self.body = body
        self.decorators = decorators
        self.cls = cls
        self.parent = parent
        self.is_generator = False
        self.home: Any = None  # the analysis of the file it stands in

    def scopes(self) -> Iterator[Function]:
        """The function and those it is defined in, from the inside to the outside."""
        current: Function | None = self
        while current is not None:
            yield current
            current = current.parent

    def is_within(self, outer: Function) -> bool:
        """Whether this is `outer`, or is defined in it."""
        return any(scope is outer for scope in self.scopes())

    @property
    def method(self) -> Function | None:
        """The method that this is, or that it is defined in."""
        return next((scope for scope in self.scopes() if scope.cls is not None), None)


class Class(Part):
    __slots__ = ("bases", "body", "decorators", "methods", "name", "qualname")

    def __init__(
        self,
        origin: Origin,
        name: str,
        qualname: str,
        bases: tuple[Expr, ...],
        decorators: tuple[Expr, ...],
    ) -> None:
        self.origin = origin
        self.name = name
        self.qualname = qualname
        self.bases = bases
        self.decorators = decorators
        self.methods: dict[str, Function] = {}
        self.body: list[Stmt] = []


class Module:
    """A lowered file: its body as a function, and every function and class in it by qualified name."""

    __slots__ = ("body", "classes", "functions", "imports")

    def __init__(self, body: Function) -> None:
        self.body = body
        self.functions: list[Function] = []
        self.classes: dict[str, Class] = {}
        self.imports: dict[str, str] = {}


class Block(list[Stmt]):
    """The statements of a body, which nothing changes once it is lowered."""

    __slots__ = ("_all",)
    _all: tuple[Stmt, ...]  # see `statements`


def statements(block: list[Stmt]) -> Iterator[Stmt]:
    """Every statement in the block and in blocks nested in it, in source order, without nested functions. Asked for again and
    again: of what has been lowered it is kept."""
    if not isinstance(block, Block):
        return _nested(block)
    try:
        return iter(block._all)
    except AttributeError:
        block._all = tuple(_nested(block))
        return iter(block._all)


def size(function: Function) -> int:
    """Of how many statements a function is, without nested functions."""
    body = function.body
    return (
        len(body._all) if isinstance(body, Block) and hasattr(body, "_all") else len(tuple(statements(body)))
    )


def every_block(block: list[Stmt]) -> Iterator[list[Stmt]]:
    """The block and those nested in it, outermost first, without nested functions."""
    yield block
    for statement in block:
        for inner in statement.blocks():
            yield from every_block(inner)


def _nested(block: list[Stmt]) -> Iterator[Stmt]:
    for statement in block:
        yield statement
        for inner in statement.blocks():
            if inner:
                yield from statements(inner)


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and everything in it, outermost first, without lambda bodies."""
    stack = [expr]
    while stack:
        current = stack.pop()
        yield current
        children = current.children()
        if children:
            stack.extend(children)


def calls(block: list[Stmt]) -> Iterator[tuple[Stmt, Call]]:
    """Every call in the block, with the statement that makes it."""
    for statement in statements(block):
        for call in own_calls(statement):
            yield statement, call


def loops_around(block: list[Stmt], wanted: Stmt | Call) -> tuple[For | While, ...] | None:
    """The loops that a statement or a call stands in, outermost first; None where it is not in the block."""
    for statement in block:
        if statement is wanted or any(call is wanted for call in own_calls(statement)):
            return ()
        for inner in statement.blocks():
            found = loops_around(inner, wanted) if inner else None
            if found is not None:
                return (statement, *found) if isinstance(statement, (For, While)) else found
    return None


def own_parts(statement: Stmt) -> tuple[Expr, ...]:
    """All expressions in the statement's own, each outermost first, without lambda bodies. Kept, as `statements` are."""
    try:
        return statement._parts
    except AttributeError:
        found = tuple([part for root in statement.expressions() for part in walk(root)])
        statement._parts = found
        return found


def own_calls(statement: Stmt) -> tuple[Call, ...]:
    """The calls in the statement's own expressions. Kept, as `statements` are."""
    try:
        return statement._calls
    except AttributeError:
        found = tuple([part for part in own_parts(statement) if isinstance(part, Call)])
        statement._calls = found
        return found
