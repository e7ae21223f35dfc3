"""One pass over one function: what each use of a reference key may stand for, and the blocks that statements stand in.

Definitions reach uses as in static single assignment form, built while the statements are walked: an environment maps keys to the
definitions that hold there, branches join, and at the head of a loop a key that the loop has not defined yet stands for a `Merge`
of what came before and of what the loop's own ends say; that is only resolved where somebody asks.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from gpulint.analysis.syntax.nodes import (
    COMPREHENSIONS,
    FUNCTIONS,
    LOOPS,
    called_on,
    children,
    iterated,
    key_of,
    last_name,
    names_in,
    parameters,
    root_of,
)

Kind = Literal[
    "parameter", "assign", "augmented", "loop", "context", "import", "function", "class", "exception", "delete", "inplace", "pattern", "entry"
]  # fmt: skip


Fact = tuple[str, bool]  # a condition, and whether it holds


@dataclass(slots=True, eq=False)
class Definition:
    """Where a key gets a value. `path` leads into `value` where it is unpacked; `statement` is where it happens."""

    key: str
    kind: Kind
    value: Any
    node: Any
    statement: Any
    path: tuple[int | str | slice, ...] = ()

    def __repr__(self) -> str:
        return f"<{self.kind} {self.key} at {getattr(self.node, 'lineno', 0)}>"


# What a key is where the function begins: a global, a closure's, or what its base says.
ENTRY = Definition("", "entry", None, None, None)


@dataclass(slots=True, eq=False)
class Merge:
    """A key at the head of a loop: what it was before, or what a round of the loop has made of it."""

    loop: Region
    key: str


@dataclass(slots=True, eq=False)
class Known:
    """A key where conditions are known to hold, or not: it stands for nothing that it is given only where they are otherwise."""

    reaching: Reaching
    facts: frozenset[Fact]


Reaching = tuple[Definition | Merge | Known, ...]
_AT_ENTRY: Reaching = (ENTRY,)


class Region:
    """A loop: the environment before it, and those at the ends of its rounds."""

    __slots__ = ("ends", "entry", "merges")

    def __init__(self, entry: Environment) -> None:
        self.entry = entry
        self.ends: list[Environment] = []
        self.merges: dict[str, Merge] = {}


@dataclass(slots=True, eq=False)
class Environment:
    """What keys stand for at one place."""

    keys: dict[str, Reaching]
    region: Region | None

    def copy(self) -> Environment:
        return Environment(self.keys.copy(), self.region)

    def get(self, key: str) -> Reaching:
        found = self.keys.get(key)
        if found is not None:
            return found
        if self.region is None:
            return _AT_ENTRY
        merge = self.region.merges.get(key)
        if merge is None:
            merge = self.region.merges[key] = Merge(self.region, key)
        return (merge,)


def _joined(first: Environment | None, second: Environment | None) -> Environment | None:
    if first is None or second is None:
        return first if second is None else second
    for key in second.keys.keys() | first.keys.keys():
        one, other = first.get(key), second.get(key)
        if one is not other and one != other:
            first.keys[key] = (*one, *(each for each in other if each not in one))
    return first


class Block:
    """Statements that run one after another: an `arm` of its `owner`, a compound statement or the function."""

    __slots__ = ("arm", "exits", "owner", "parent", "statements")

    def __init__(self, owner: ast.AST, arm: str, parent: Block | None, statements: list[ast.stmt]) -> None:
        self.owner, self.arm, self.parent, self.statements = owner, arm, parent, statements
        tests = (one for one in statements if isinstance(one, ast.If) and not one.orelse)
        self.exits = [one for one in tests if isinstance(one.body[-1], _LEAVING)]  # they leave it

    @property
    def is_rounds(self) -> bool:
        """Whether it is the body of a loop."""
        return self.arm == "body" and isinstance(self.owner, LOOPS)


class Store:
    """An item of a container is set: `target` is the subscript, `value` leads to what is stored, as in a definition."""

    __slots__ = ("path", "statement", "target", "value")

    def __init__(self, target: Any, value: Any, statement: Any, path: tuple[Any, ...]) -> None:
        self.target, self.value, self.statement, self.path = target, value, statement, path


_MOST_NAMES = 4  # one for the other
PLACES = (ast.Name, ast.Attribute, ast.Subscript)  # what a name may be another name of
_CHANGING = (ast.List, ast.Dict, ast.Set)
_LEAVING = (ast.Continue, ast.Return, ast.Break, ast.Raise)


class Flow:
    """A function, bound. `node` is a function, a class or a module."""

    def __init__(self, node: Any) -> None:
        self.node = node
        self.definitions: dict[str, list[Definition]] = {}
        self.uses: dict[str, list[Any]] = {}
        self.given: dict[Any, list[Definition]] = {}  # by the expression that gives the value
        self.parents: dict[Any, Any] = {}
        self.blocks: dict[Any, Block] = {}
        self.calls: dict[str, list[ast.Call]] = {}
        self.stores: list[Store] = []
        self.stored: dict[str | None, list[Store]] = {}  # the same by the key of the container
        self.returns: list[ast.Return] = []
        self.yields: list[Any] = []
        self.unreachable: set[Any] = set()
        self.elsewhere: set[str] = set()  # names declared global or nonlocal
        self.order: dict[Any, int] = {}
        self._reach: dict[Any, Reaching] = {}
        self._resolved: dict[Any, tuple[Definition, ...]] = {}
        self._conditions: dict[Any, tuple[tuple[Any, bool], ...]] = {}
        self._of_kind: dict[type, list[Any]] = {}
        self.outer: dict[Any, bool] = {}  # whether a name, or an attribute of one, is none of its own
        self.firsts: dict[Any, ast.Name] = {}  # uses of names by those that stand for the same
        self.known: dict[Any, Any] = {}  # what others have found in it, and keep
        self.falls_through = _Binder(self).run()

    # -- places

    def statement_of(self, node: Any) -> Any:
        """The statement that a node stands in, itself where it is one."""
        while node not in self.blocks:
            # an annotation, or the body of a class: where the function begins
            node = self.parents.get(node, self.node)
        return node

    def ancestors(self, node: Any) -> Iterator[Any]:
        """What a node stands in, innermost first, up to its statement."""
        while node not in self.blocks:
            node = self.parents.get(node)
            if node is None:
                return
            yield node

    def _is_in(self, node: Any, expression: Any) -> bool:
        return node is expression or expression in self.ancestors(node)

    def around(self, node: Any) -> Iterator[Block]:
        """The blocks around a node, innermost first; a node in the head of a statement is outside that one's blocks."""
        block: Block | None = self.blocks.get(self.statement_of(node))
        while block is not None:
            yield block
            block = block.parent

    def loops(self, node: Any) -> list[Any]:
        """The loops and comprehensions whose rounds run a node, innermost first."""
        found: list[Any] = []
        below = node
        for above in self.ancestors(node):
            if isinstance(above, COMPREHENSIONS):
                first = above.generators[0]
                if below is not first or not self._is_in(node, first.iter):
                    found.append(above)
            below = above
        statement = self.statement_of(node)
        if isinstance(statement, ast.While) and self._is_in(node, statement.test):
            found.append(statement)
        return found + [block.owner for block in self.around(node) if block.is_rounds]

    def conditions(self, node: Any) -> tuple[tuple[Any, bool], ...]:
        """The tests that must hold, or not, for a statement to run, innermost first: of the `if`s around it, and of those before it
        that leave its block."""
        statement = self.statement_of(node)
        found = self._conditions.get(statement)
        if found is None:
            found = self._conditions[statement] = tuple(self._conditions_of(statement))
        return found

    def is_first(self, key: str, statement: Any) -> bool:
        """Whether a statement only runs where a name or an attribute is None, nothing, or not there yet."""
        conditions = self.conditions(statement) if statement in self.blocks else ()
        known = {fact for test, held in conditions for fact in facts_of(test, held)}
        return not known.isdisjoint({(f"{key} == None", True), (key, False)})

    def _conditions_of(self, statement: Any) -> Iterator[tuple[Any, bool]]:
        for block in self.around(statement):
            for before in block.exits:
                if self.order.get(before, 0) >= self.order.get(statement, 0):
                    break
                yield before.test, False
            if isinstance(block.owner, ast.If) and block.arm in ("body", "orelse"):
                yield block.owner.test, block.arm == "body"
            statement = block.owner

    def of_kind(self, *kinds: type) -> list[Any]:
        """Its nodes of some classes."""
        if not self._of_kind:
            for node in self.parents:
                self._of_kind.setdefault(node.__class__, []).append(node)
        return [node for kind in kinds for node in self._of_kind.get(kind, ())]

    @property
    def every_call(self) -> Iterator[ast.Call]:
        """All of its calls."""
        return (call for several in self.calls.values() for call in several)

    def calls_on(self, keys: Collection[str | None], *names: str) -> Iterator[ast.Call]:
        """Its calls of methods by these names on what goes by one of the keys."""
        for call in (one for name in names for one in self.calls.get(name, ())):
            if any((key_of(one) or "") in keys for one in self.stands_for(called_on(call))):
                yield call

    # -- definitions and uses

    def definitions_of(self, *kinds: Kind) -> Iterator[Definition]:
        """Its definitions of some kinds, of whatever key."""
        return (one for several in self.definitions.values() for one in several if one.kind in kinds)

    def reaching(self, node: Any) -> tuple[Definition, ...]:
        """The definitions that a use of a key may stand for; `ENTRY` among them where it may be none of the function's own."""
        found = self._resolved.get(node)
        if found is None:
            found = self._resolved[node] = self._resolve(self._reach.get(node, _AT_ENTRY))
        return found

    def stands_for(self, node: Any, changed: bool = True) -> Iterator[Any]:
        """An expression, and what it stands for where it is a name that one assignment gives that: also what it was before a method
        has `changed` it in place."""
        yield node
        for _ in range(_MOST_NAMES):
            made = self.reaching(node) if isinstance(node, ast.Name) else ()
            first = made[0] if len(made) == 1 else ENTRY
            if changed and first.kind == "inplace":
                node = first.node
            elif first.kind == "assign" and not first.path:
                node = first.value
            else:
                return
            yield node

    def unaliased(self, node: Any) -> Any:
        """What a name stands for, where one assignment gives it that, and nothing that may be changed by then; else the node."""
        several = self.stands_for(node, changed=False)
        *_, last = (one for one in several if one is node or not isinstance(one, _CHANGING))
        return last

    def place(self, node: Any) -> Any:
        """The place that a name is another name of, `self.x` after `x = self.x`; else the node."""
        *_, last = (one for one in self.stands_for(node) if one is node or isinstance(root_of(one), ast.Name))
        return last

    def computed_of(self, value: Any) -> list[Any]:
        """The expressions in a value, and in what the names in it stand for."""
        parts = [*ast.walk(value)]
        for one in parts:  # grows while it is gone through
            whole = self.unaliased(one)
            parts += ast.walk(whole) if whole is not one and whole not in parts else ()
        return parts

    def takes_in(self, value: Any, key: str | None) -> bool:
        """Whether what goes by a key is part of what a value is computed of."""
        return None not in (value, key) and any(key_of(one) == key for one in self.computed_of(value))

    def iterated(self, loop: Any) -> Any:
        """What a loop or a comprehension runs through, whatever its name; None of a `while`."""
        return self.unaliased(iterated(loop))

    def bound_in(self, expression: Any) -> list[Definition]:
        """The definitions that the names in an expression may stand for."""
        names = (one for one in ast.walk(expression) if isinstance(one, ast.Name) and one in self.parents)
        return [found for one in names for found in self.reaching(one)]

    def is_bound(self, node: Any) -> bool:
        """Whether a use of a key may stand for a definition."""
        return node in self._reach

    def _resolve(self, reaching: Reaching) -> tuple[Definition, ...]:
        found: dict[Definition, None] = {}
        seen: set[tuple[Merge, frozenset[Fact]]] = set()
        stack = [(one, frozenset[Fact]()) for one in reversed(reaching)]
        while stack:
            one, facts = stack.pop()
            if isinstance(one, Definition):
                if not facts or not self._is_otherwise(one, facts):
                    found[one] = None
            elif isinstance(one, Known):
                stack += [(each, facts | one.facts) for each in one.reaching]
            elif (one, facts) not in seen:
                seen.add((one, facts))
                for end in one.loop.ends:
                    stack += [(each, facts) for each in end.get(one.key)]
                stack += [(each, facts) for each in one.loop.entry.get(one.key)]
        return tuple(found)

    def _is_otherwise(self, definition: Definition, facts: frozenset[Fact]) -> bool:
        """Whether a definition is one only where a condition, which does not change in between, is not as it is known to be."""
        if definition.statement not in self.blocks:
            return False
        denied = {(text, not held) for text, held in facts}
        several = self.conditions(definition.statement)
        denying = (one for one, held in several if not denied.isdisjoint(facts_of(one, held)))
        return any(map(self._is_steady, denying))

    def _is_steady(self, test: Any) -> bool:
        """Whether all that a condition names is given once: as a parameter, outside, or before any loop. What an object of its own
        class says may be something else after any call."""
        for node in ast.walk(test):
            key = key_of(node)
            if key is None or (isinstance(node, ast.Name) and node.id in ("True", "False")):
                continue
            several = self.definitions.get(key, [])
            if key.partition(".")[0] in ("self", "cls") or len(several) > 1:
                return False
            if any(one.kind not in ("parameter", "assign") or self.loops(one.statement) for one in several):
                return False
        return True

    def holds_at(self, definition: Definition, statement: Any) -> bool:
        """Whether a key may still stand for a definition when a statement below it runs: what binds it anew in between, or deletes
        it, lets go of it only where no way leads around that."""
        order = self.order
        first, last = order.get(definition.statement, -1), order.get(statement, -1)
        mine = list(self.around(definition.statement)) if definition.statement in self.blocks else []
        below = list(self.around(statement))
        if first >= last or are_exclusive(mine, below):
            return False
        between = (
            one for one in self.bound_anew(definition.key) if first < order.get(one.statement, -1) <= last
        )
        others = (one for one in between if one.statement is not statement or one.kind != "loop")
        return {self.blocks[one.statement] for one in others}.isdisjoint((*mine, *below))

    def holds_from_before(self, definition: Definition) -> bool:
        """Whether a key stands for what a statement of a loop gave it in the round before until the same gives it the next."""
        loops = self.loops(definition.statement)[:1]
        others = (one for one in self.bound_anew(definition.key) if one is not definition)
        return bool(loops) and not any(loops[0] in self.loops(one.statement) for one in others)

    def bound_anew(self, key: str) -> Iterator[Definition]:
        """What binds a key to something else, rather than to change what it stands for."""
        several = (one for one in self.definitions.get(key, ()) if one.statement in self.blocks)
        return (one for one in several if one.kind not in ("inplace", "augmented"))

    def uses_of(self, definition: Definition) -> list[Any]:
        """The uses of a key that a definition reaches, in the order of the text."""
        return self._by_definition.get(definition, [])

    def named(self, node: Any) -> list[Any]:
        """The uses of keys that are given what an expression gives, as it is."""
        given = (one for one in self.given.get(node, ()) if one.kind == "assign" and not one.path)
        return [use for one in given for use in self.uses_of(one)]

    def uses_as(self, key: str) -> list[Any]:
        """The uses of a key, and of others that are given it."""
        return [each for use in self.uses.get(key, ()) for each in (use, *self.named(use))]

    @cached_property
    def _by_definition(self) -> dict[Definition, list[Any]]:
        found: dict[Definition, list[Any]] = {}
        for node in (one for nodes in self.uses.values() for one in nodes):
            for definition in self.reaching(node):
                if definition is not ENTRY:
                    found.setdefault(definition, []).append(node)
        return found


def facts_of(test: Any, held: bool) -> list[Fact]:
    """What is known where a test holds, or does not: of names and attributes, each by itself or beside a constant."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return facts_of(test.operand, not held)
    if isinstance(test, ast.BoolOp):
        whole = isinstance(test.op, ast.And) is held  # of `a and b` that failed nobody knows which
        return [fact for one in test.values for fact in facts_of(one, held)] if whole else []
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.comparators[0], ast.Constant):
        key, operator = key_of(test.left), test.ops[0]
        if key is None or not isinstance(operator, (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)):
            return []
        same = isinstance(operator, (ast.Is, ast.Eq))
        return [(f"{key} == {test.comparators[0].value!r}", held is same)]
    if isinstance(test, ast.Call) and last_name(test.func) == "hasattr" and len(test.args) == 2:
        name = getattr(test.args[1], "value", "")  # what is not there is as good as None
        return [(f"{key_of(test.args[0])}.{name} == None", not held)]
    key = key_of(test)
    return [(key, held)] if key is not None else []


def are_exclusive(around: list[Block], other: list[Block]) -> bool:
    """Whether of the blocks around two places two are arms of one `if`: only one of the places is gotten to."""
    arms: dict[ast.AST, str] = {block.owner: block.arm for block in other if isinstance(block.owner, ast.If)}
    return any(arms.get(block.owner, block.arm) != block.arm for block in around)


class _Binder:
    """Walks the statements of a function once."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.block: Block | None = None
        self.statement: Any = flow.node
        self.env: Environment | None = Environment({}, None)
        self.loops: list[tuple[Region, list[Environment]]] = []  # with what leaves each by `break`
        self.derived: dict[str, set[str]] = {}
        self.facts: list[Fact] = []  # of the `if`s around
        self.given_under: dict[Fact, set[str]] = {}

    def run(self) -> bool:
        """Whether the end of the function is reached."""
        flow, node = self.flow, self.flow.node
        outermost = Block(node, "body", None, node.body)
        if isinstance(node, FUNCTIONS):
            self.parameters(node)
        flow.blocks[node] = outermost
        self.inside(outermost)
        return self.env is not None

    def parameters(self, node: Any) -> None:
        for one in parameters(node):
            self.flow.parents[one] = node
            self.define(one.arg, "parameter", None, one)

    def inside(self, block: Block) -> None:
        was, self.block = self.block, block
        for statement in block.statements:
            if self.env is None:
                self.flow.unreachable.add(statement)
                self.env = Environment({}, None)  # bound all the same: nothing of it counts
                self.place(statement)
                self.env = None
            else:
                self.place(statement)
        self.block = was

    def arm(self, owner: Any, name: str, statements: list[ast.stmt]) -> None:
        if statements:
            self.inside(Block(owner, name, self.block, statements))

    def place(self, statement: Any) -> None:
        assert self.block is not None
        self.flow.blocks[statement] = self.block
        self.flow.order[statement] = len(self.flow.order)
        was, self.statement = self.statement, statement
        _STATEMENTS.get(statement.__class__, _Binder.other)(self, statement)
        self.statement = was

    # -- definitions

    def define(self, key: str, kind: Kind, value: Any, node: Any, path: tuple[Any, ...] = ()) -> None:
        found = Definition(key, kind, value, node, self.statement, path)
        self.flow.definitions.setdefault(key, []).append(found)
        if value is not None:
            self.flow.given.setdefault(value, []).append(found)
        if self.env is None:
            return
        for other in self.derived.get(key, ()):
            self.env.keys[other] = _AT_ENTRY
        self.env.keys[key] = (found,)
        for fact in self.facts:
            self.given_under.setdefault(fact, set()).add(key)
        end = len(key)
        while (end := max(key.rfind(".", 0, end), key.rfind("[", 0, end))) > 0:
            self.derived.setdefault(key[:end], set()).add(key)

    def target(self, node: Any, parent: Any, kind: Kind, value: Any, path: tuple[Any, ...] = ()) -> None:
        self.flow.parents[node] = parent
        what = node.__class__
        if what is ast.Starred:
            self.target(node.value, node, kind, value, path)
            return
        if what in (ast.Tuple, ast.List):
            starred = False
            for position, element in enumerate(node.elts):
                from_end = position - len(node.elts)
                index: Any = from_end if starred else position
                if isinstance(element, ast.Starred):
                    starred, index = True, slice(position, from_end + 1 or None)
                self.target(element, node, kind, value, (*path, index))
            return
        if what is ast.Attribute or what is ast.Subscript:
            self.part(node.value, node)
            if what is ast.Subscript:
                self.part(node.slice, node)
                store = Store(node, value, self.statement, path)
                self.flow.stores.append(store)
                self.flow.stored.setdefault(key_of(node.value), []).append(store)
        key = key_of(node)
        if key is not None:
            if kind == "augmented":
                self.use(key, node)
            self.define(key, kind, value, node, path)

    def use(self, key: str, node: Any) -> None:
        self.flow.uses.setdefault(key, []).append(node)
        if self.env is not None:
            found = self.env.get(key)
            if found is not _AT_ENTRY:
                self.flow._reach[node] = found

    # -- statements

    def assign(self, node: ast.Assign) -> None:
        self.part(node.value, node)
        for target in node.targets:
            self.target(target, node, "assign", node.value)

    def annotated(self, node: ast.AnnAssign) -> None:
        self.flow.parents[node.target] = node
        if node.value is not None:
            self.part(node.value, node)
            self.target(node.target, node, "assign", node.value)

    def augmented(self, node: ast.AugAssign) -> None:
        self.part(node.value, node)
        self.target(node.target, node, "augmented", node.value)

    def conditional(self, node: ast.If) -> None:
        self.part(node.test, node)
        before = self.env.copy() if self.env is not None else None
        self.under(node, "body", node.body, facts_of(node.test, True))
        after, self.env = self.env, before
        self.under(node, "orelse", node.orelse, facts_of(node.test, False))
        self.env = _joined(self.env, after)

    def under(self, owner: Any, name: str, statements: list[ast.stmt], facts: list[Fact]) -> None:
        """An arm in which conditions are known."""
        for text, wanted in facts if self.env is not None else ():
            for key in self.given_under.get((text, not wanted), ()):
                self.env.keys[key] = (Known(self.env.get(key), frozenset({(text, wanted)})),)  # type: ignore[union-attr]
        known = len(self.facts)
        self.facts += facts
        self.arm(owner, name, statements)
        del self.facts[known:]

    def loop(self, node: Any) -> None:
        target = getattr(node, "target", None)  # of a `while` none
        if target is not None:
            self.part(node.iter, node)
        assert self.env is not None  # where a statement begins
        region = Region(self.env)
        leaving: list[Environment] = []
        self.loops.append((region, leaving))
        self.env = Environment({}, region)
        if target is not None:
            self.target(target, node, "loop", node.iter)
        else:
            self.part(node.test, node)
        self.arm(node, "body", node.body)
        if self.env is not None:
            region.ends.append(self.env)
        self.loops.pop()
        endless = target is None and isinstance(node.test, ast.Constant) and bool(node.test.value)
        # after the loop: as at its head, whichever round was the last
        self.env = None if endless else Environment({}, region)
        self.arm(node, "orelse", node.orelse)
        for one in leaving:
            self.env = _joined(one, self.env)
        if self.env is not None and self.env.region is region:
            self._leave(region)

    def _leave(self, region: Region) -> None:
        """Go on outside of a loop: what the loop defines is merged, all else is as it was before."""
        assert self.env is not None
        touched = {key for end in (*region.ends, self.env) for key in end.keys}
        keys = region.entry.keys | {key: self.env.get(key) for key in touched}
        self.env = Environment(keys, region.entry.region)

    def with_block(self, node: Any) -> None:
        for item in node.items:
            self.flow.parents[item] = node
            self.part(item.context_expr, item)
            if item.optional_vars is not None:
                self.target(item.optional_vars, item, "context", item.context_expr)
        self.arm(node, "body", node.body)

    def try_block(self, node: Any) -> None:
        assert self.env is not None  # where a statement begins
        first, handled = len(self.flow.order), self.env.copy()
        self.arm(node, "body", node.body)
        for found in (one for several in self.flow.definitions.values() for one in several):
            if self.flow.order.get(found.statement, -1) >= first:
                handled.keys[found.key] = (*handled.get(found.key), found)
        self.arm(node, "orelse", node.orelse)
        after: Environment | None = self.env
        for handler in node.handlers:
            self.env = handled.copy()
            self.flow.parents[handler] = node
            if handler.type is not None:
                self.part(handler.type, handler)
            if handler.name is not None:
                self.define(handler.name, "exception", None, handler)
            self.arm(handler, "handler", handler.body)
            after = _joined(self.env, after)
        self.env = after if after is not None else handled
        self.arm(node, "finally", node.finalbody)
        if after is None:
            self.env = None

    def match(self, node: ast.Match) -> None:
        self.part(node.subject, node)
        before, after = self.env, None
        for case in node.cases:
            self.env = before.copy() if before is not None else None
            self.flow.parents[case] = node
            for one in ast.walk(case.pattern):
                name = getattr(one, "name", None)
                if isinstance(name, str):
                    self.define(name, "pattern", node.subject, one)
            if case.guard is not None:
                self.part(case.guard, case)
            self.arm(case, "case", case.body)
            after = _joined(self.env, after)
        self.env = _joined(after, before)

    def leave(self, node: Any) -> None:
        if self.loops and self.env is not None:
            region, leaving = self.loops[-1]
            (leaving if isinstance(node, ast.Break) else region.ends).append(self.env)
        self.env = None

    def give(self, node: ast.Return) -> None:
        self.flow.returns.append(node)
        self.fail(node)

    def fail(self, node: Any) -> None:
        self.other(node)
        self.env = None

    def named(self, node: Any) -> None:
        is_class = isinstance(node, ast.ClassDef)
        more = node.bases if is_class else (*node.args.defaults, *filter(None, node.args.kw_defaults))
        for part in (*node.decorator_list, *more):
            self.part(part, node)
        self.define(node.name, "class" if is_class else "function", node, node)

    def imports(self, node: Any) -> None:
        prefix = ""
        if isinstance(node, ast.ImportFrom):
            prefix = "." * node.level + (f"{node.module}." if node.module else "")
        for alias in node.names:
            # `import a.b` binds `a`
            name = alias.name if prefix or alias.asname else alias.name.partition(".")[0]
            if name != "*":
                self.define(alias.asname or name, "import", prefix + name, node)

    def delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            self.part(target, node)
            key = key_of(target)
            if key is not None:
                self.define(key, "delete", None, target)

    def declare(self, node: Any) -> None:
        self.flow.elsewhere.update(node.names)

    def other(self, node: Any) -> None:
        for child in children(node):
            self.part(child, node)

    # -- expressions

    def part(self, node: Any, parent: Any) -> None:
        self.flow.parents[node] = parent
        self.expression(node)

    def expression(self, node: Any) -> None:
        kind = node.__class__
        if kind is ast.Name:
            self.use(node.id, node)
        elif kind is ast.Call:
            self.call(node)
        elif kind in COMPREHENSIONS:
            self.comprehension(node)
        elif kind is ast.Lambda:
            self.of_lambda(node)
        elif kind is ast.NamedExpr:
            self.part(node.value, node)
            self.flow.parents[node.target] = node
            self.define(node.target.id, "assign", node.value, node.target)
        elif kind is not ast.Constant:
            if kind in (ast.Yield, ast.YieldFrom):
                self.flow.yields.append(node)
            self.other(node)
            key = key_of(node)
            if key is not None:
                self.use(key, node)

    def call(self, node: ast.Call) -> None:
        func = node.func
        self.part(func, node)
        for one in node.args:
            self.part(one, node)
        for named in node.keywords:
            self.flow.parents[named] = node
            self.part(named.value, named)
        name = last_name(func)
        self.flow.calls.setdefault(name, []).append(node)
        if name[-1:] == "_" and name[-2:] != "__" and isinstance(func, ast.Attribute):
            key = key_of(func.value)
            if key is not None:
                self.define(key, "inplace", node, func.value)

    def comprehension(self, node: Any) -> None:
        kept = self.standing(name for one in node.generators for name in names_in(one.target))
        for generator in node.generators:
            self.flow.parents[generator] = node
            self.part(generator.iter, generator)
            self.target(generator.target, generator, "loop", generator.iter)
            for test in generator.ifs:
                self.part(test, generator)
        for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
            self.part(part, node)
        self.restore(kept)

    def of_lambda(self, node: ast.Lambda) -> None:
        kept = self.standing(one.arg for one in parameters(node))
        self.parameters(node)
        self.part(node.body, node)
        self.restore(kept)

    def standing(self, names: Iterable[str]) -> dict[str, Reaching | None]:
        """What names stand for before they are bound in an expression of its own scope."""
        return {name: self.env.keys.get(name) for name in names} if self.env is not None else {}

    def restore(self, kept: dict[str, Reaching | None]) -> None:
        keys = self.env.keys if self.env is not None else {}
        for name, before in kept.items():
            keys.pop(name, None)
            if before is not None:
                keys[name] = before


_STATEMENTS: dict[type, Any] = {
    ast.Assign: _Binder.assign, ast.AnnAssign: _Binder.annotated, ast.AugAssign: _Binder.augmented, ast.If: _Binder.conditional,
    ast.For: _Binder.loop, ast.AsyncFor: _Binder.loop, ast.While: _Binder.loop, ast.With: _Binder.with_block, ast.AsyncWith: _Binder.with_block,
    ast.Try: _Binder.try_block, ast.Match: _Binder.match, ast.Return: _Binder.give, ast.Raise: _Binder.fail, ast.Break: _Binder.leave,
    ast.Continue: _Binder.leave, ast.FunctionDef: _Binder.named, ast.AsyncFunctionDef: _Binder.named, ast.ClassDef: _Binder.named,
    ast.Import: _Binder.imports, ast.ImportFrom: _Binder.imports, ast.Delete: _Binder.delete, ast.Global: _Binder.declare,
    ast.Nonlocal: _Binder.declare,
}  # fmt: skip
if hasattr(ast, "TryStar"):  # Python 3.11
    _STATEMENTS[ast.TryStar] = _Binder.try_block
