"""Whether all of the graph that a backward goes through is made anew each time the backward comes: what it is computed from, step by step."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from gpulint.analysis.domain.values import Graph, Value, in_text_order
from gpulint.analysis.evaluate.evaluator import Evaluator
from gpulint.analysis.evaluate.frames import Frame
from gpulint.analysis.project.file import Class
from gpulint.analysis.queries.graphs.backwards import Backward
from gpulint.analysis.queries.networks.forwards import forward_of
from gpulint.analysis.syntax.flow import Definition
from gpulint.analysis.syntax.nodes import called_on, key_of, last_name

_MOST: Final = 200  # expressions that are looked at
_PLAIN = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.Tuple, ast.List, ast.Starred, ast.keyword)  # fmt: skip
_FILLS: Final = ("append", "extend", "appendleft", "update", "setdefault")
_NO_GRAPH: Final = frozenset({"number", "text", "none", "device", "parameter", "array", "bottom"})


@dataclass(frozen=True, slots=True)
class Older:
    """A part of a graph that may be older than the round that goes backward. `shown`: the code shows what keeps it; else it is out of sight."""

    clause: str
    shown: bool


def older_parts(evaluator: Evaluator, backward: Backward) -> Iterator[Older]:
    """What may be gone through by more than one backward, since nothing shows that each makes it itself."""
    frame = backward.frame
    inside = ast.walk(frame.function.node)
    named = (one for one in inside if "backward" in (getattr(one, "attr", ""), getattr(one, "value", "")))
    if not all(_is_called_at_once(evaluator, one, frame) for one in named):
        yield Older("`backward` is named here other than to call it on a tensor", False)
    yield from _Walk(evaluator, backward).run()


def _is_called_at_once(evaluator: Evaluator, node: Any, frame: Frame) -> bool:
    """Whether what names a backward calls it there, on something of its own."""
    parents = frame.flow.parents
    called = isinstance(node, ast.Attribute) and getattr(parents.get(node), "func", None) is node
    if not called or any(isinstance(one, ast.Lambda) for one in frame.flow.ancestors(node)):
        return False
    return evaluator.value_of(node.value, frame).kind != "library"


class _Walk:
    """The expressions that a graph is computed from, from its end on, each looked at once."""

    def __init__(self, evaluator: Evaluator, backward: Backward) -> None:
        self.evaluator, self.frame = evaluator, backward.frame
        self.loops = self.frame.flow.loops(backward.call)
        self.queue: list[Any] = [backward.through]
        self.seen: set[Any] = set()

    def run(self) -> Iterator[Older]:
        for node in self.queue:  # grows while it is gone through
            if len(self.seen) > _MOST:
                yield Older("what it is computed from is more than is looked at", False)
                return
            if node not in self.seen:
                self.seen.add(node)
                yield from self.step(node)

    def step(self, node: Any) -> Iterator[Older]:
        if isinstance(node, ast.Call):
            yield from self.of_call(node)
        elif isinstance(node, _PLAIN):
            inside = ast.iter_child_nodes(node)
            self.queue += [one for one in inside if isinstance(one, (ast.expr, ast.keyword))]
        elif key_of(node) is not None and node in self.frame.flow.parents:
            yield from self.of_key(node)
        elif isinstance(node, (ast.Subscript, ast.Attribute)):
            self.queue.append(node.value)
        elif not isinstance(node, (ast.Constant, ast.JoinedStr)):
            yield Older("how it is computed is not seen", False)

    def of_key(self, node: Any) -> Iterator[Older]:
        """A name, or an attribute: what it is given in this round, before anything else."""
        value, flow = self.evaluator.value_of(node, self.frame), self.frame.flow
        if value.kind in _NO_GRAPH or (value.kind == "tensor" and value.graph is Graph.NONE):
            return
        if value.kind == "module":
            yield from self.of_network(value, set())
            return
        definitions = flow.reaching(node)
        if definitions and all(one.kind == "loop" and one.statement in self.loops for one in definitions):
            if value.graph is not Graph.NONE:
                yield Older(f"`{key_of(node)}` was there before the loop", True)
            return  # a batch
        if any(one.kind == "parameter" for one in definitions):
            several = len(self.evaluator.callers(self.frame.function)) > 1 and value.graph is not Graph.NONE
            yield Older(f"a caller gives `{key_of(node)}`, and may go through it again", several)
        elif not any(self.is_of_round(one, node) for one in definitions):
            yield Older(f"`{key_of(node)}` is not made anew each time", value.graph is not Graph.NONE)
        for one in definitions:
            uses = filter(self.is_inside, flow.uses_of(one) if self.loops and value.graph else ())
            if not all(self.is_of_round(one, use) for use in uses):
                yield Older(f"`{one.key}` of the round before may be used", True)
            if one.kind in ("assign", "loop", "augmented"):
                self.queue.append(one.value)
            elif one.kind not in ("parameter", "entry"):
                yield Older(f"`{one.key}` is changed in place", False)
            if one.kind == "augmented":
                self.queue.append(one.node)

    def is_of_round(self, one: Definition, use: Any) -> bool:
        """Whether a definition always comes before a use, in the same round."""
        flow = self.frame.flow
        if one.statement not in flow.blocks or one.kind == "entry":
            return False
        before = flow.order.get(one.statement, 0) < flow.order.get(flow.statement_of(use), 0)
        return before and flow.blocks[one.statement] in flow.around(use) and self.is_inside(one.statement)

    def is_inside(self, node: Any) -> bool:
        """Whether a node stands in the loops around the backward, or in none, as that does."""
        return self.frame.flow.loops(node)[-len(self.loops) :] == self.loops

    def of_call(self, call: ast.Call) -> Iterator[Older]:
        """A call computes with what it is given, unless something of its own stays."""
        evaluator, frame = self.evaluator, self.frame
        given = [*call.args, *call.keywords]
        run = forward_of(evaluator, call, frame)
        target = evaluator.value_of(call.func, frame)
        if run is not None or target.kind == "module":
            yield from self.of_network(run.network if run is not None else target, set())
            self.queue += given
            return
        if target.kind == "library":
            known = evaluator.table.function(str(target.ref))
            if known is None or known.does:
                yield Older(f"what `{last_name(call.func)}` keeps is not seen", False)
            self.queue += given
            return
        on, row = called_on(call), evaluator.table.own("tensor", last_name(call.func))
        if on is None or (row is None and evaluator.value_of(on, frame).kind != "tensor"):
            yield Older(f"what `{last_name(call.func)}` keeps is not seen", False)
        elif row is None or row.graph == "keeps":
            self.queue += [on, *given]

    # -- networks

    def of_network(self, network: Value, seen: set[Any]) -> Iterator[Older]:
        """A network may keep what one call has computed for the next."""
        files = {self.frame.function.file}
        cls = network.ref
        if isinstance(cls, Class):
            files.add(cls.file)
            yield from self.of_class(cls, seen)
        elif self.evaluator.calling.made_by(network) is None:
            yield Older("a model that is not seen may keep what the next backward goes through", False)
        for made, where in in_text_order(network.origins):
            for given in made.args if isinstance(made, ast.Call) and where is not None else ():
                inner = self.evaluator.value_of(given, where)
                if inner.kind == "module":
                    yield from self.of_network(inner, seen)
        if any(_hooks(self.evaluator, file) for file in files):
            yield Older("what the hooks on a model keep is not seen", False)

    def of_class(self, cls: Class, seen: set[Any]) -> Iterator[Older]:
        if cls in seen:
            return
        seen.add(cls)
        for one in self.evaluator.program.lineage(cls):
            if isinstance(one, str):
                if one != "object" and not one.startswith("torch.nn."):
                    yield Older(f"what `{one}` keeps is not seen", False)
                continue
            for method in one.methods.values():
                frame = self.evaluator.root(method)
                begins = method.name == "__init__"
                if method.node.decorator_list or _writes_itself(method):
                    yield Older(f"what `{one.name}.{method.name}` keeps is not seen", False)
                for key, definitions in method.flow.definitions.items():
                    for each in definitions if key.startswith(f"{method.self_name}.") else ():
                        yield from self.of_attribute(one, each, frame, begins, seen)
                for store in method.flow.stores:
                    if not begins and (key_of(store.target.value) or "").startswith(f"{method.self_name}."):
                        yield Older(f"`{one.name}` keeps what a call has computed", True)

    def of_attribute(
        self, cls: Class, definition: Definition, frame: Frame, begins: bool, seen: set[Any]
    ) -> Iterator[Older]:
        value = self.evaluator.value_of(definition.value, frame) if definition.value is not None else None
        if value is not None and value.kind == "module":
            yield from self.of_network(value, seen) if begins else ()
        elif value is not None and (value.kind in _NO_GRAPH or (begins and value.graph is Graph.NONE)):
            return
        elif not (value is not None and value.kind == "tensor" and value.graph is Graph.NONE):
            yield Older(f"`{cls.name}` keeps `{definition.key}` from call to call", True)


def _writes_itself(method: Any) -> bool:
    """Whether a method changes its object by other means than to name an attribute of it."""
    flow, own = method.flow, f"{method.self_name}."
    fills = [one for name in _FILLS for one in flow.calls.get(name, ())]
    filled = (key_of(getattr(one.func, "value", one.func)) or "" for one in fills)
    by_name = "setattr" in flow.calls or any(one.attr == "__dict__" for one in flow.of_kind(ast.Attribute))
    return by_name or any(one.startswith(own) for one in filled)


def _hooks(evaluator: Evaluator, file: Any) -> bool:
    """Whether a file registers hooks on networks."""
    known = (evaluator.table.knows(one) for one in ("module", "torch.nn.utils.parametrize"))
    names = (name for rows in known for name, row in rows.items() if row.does == "registers hook")
    return any(file.calls_named(name) for name in names)
