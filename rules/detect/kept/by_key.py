"""Dicts of an object that get one more tensor for each new key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.rules.detect.kept.callers import call_sites
from gpulint.rules.detect.kept.graphs import Graphs
from gpulint.rules.detect.kept.record import How, Kept, about, called_with_grad
from gpulint.rules.detect.kept.statistics import is_cut
from gpulint.rules.detect.kept.traced import PROVEN, REFUTED, Traced

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import resets, targets
from gpulint.analysis.questions.outlives.emptied import emptied
from gpulint.analysis.values.values import Grad
from gpulint.answers import Answer, Question, left_open, refuted

if TYPE_CHECKING:
    from gpulint.analysis.file.classes import ClassInfo


def by_key(graphs: Graphs, info: ClassInfo) -> Iterator[Kept]:
    """`self.maps[t] = attention`, in a dict of the object."""
    own = graphs.function.params[0].name
    for statement in ir.statements(graphs.function.body):
        if not isinstance(statement, ir.Assign) or statement.value is None or len(statement.targets) != 1:
            continue
        target = statement.targets[0]
        if not isinstance(target, ir.Sub) or isinstance(target.index, (ir.Const, ir.Slice)):
            continue
        path = target.base.path or ""
        if not path.startswith(f"{own}.") or not _is_dict(info, path):
            continue
        if any(part.path == path for part in ir.walk(statement.value)):
            continue  # an entry that is moved, or counted up
        traced = graphs.of(statement.value, statement)
        if traced.tensor is not PROVEN and not _looks_like_tensor(graphs, statement.value):
            continue
        if is_cut(statement.value) or (_is_moved(statement.value) and traced.graph is REFUTED):
            continue
        if traced.cut or (
            traced.graph is REFUTED
            and graphs.grad_at(statement) is Grad.ENABLED
            and not traced.why.startswith("grad")
        ):
            continue
        answers = tuple(_key_answers(graphs, info, statement, target, path, traced))
        device = traced.graph is REFUTED
        yield Kept(
            graphs.function,
            statement,
            statement.value,
            path,
            How.CACHED,
            answers,
            device=device,
            scalar=traced.scalar,
        )


def _is_moved(value: ir.Expr) -> bool:
    return any(isinstance(part, ir.Call) and part.method == "cpu" for part in ir.walk(value))


def _is_dict(info: ClassInfo, path: str) -> bool:
    """Whether the class makes the attribute an empty dict."""
    attr = path.partition(".")[2]
    for part in info.ancestors():
        for method in part.cls.methods.values():
            for statement in ir.statements(method.body):
                if isinstance(statement, ir.Assign) and statement.value is not None:
                    if any((target.path or "").partition(".")[2] == attr for target in statement.targets):
                        value = statement.value
                        if isinstance(value, ir.DictDisplay) and not value.pairs:
                            return True
                        if isinstance(value, ir.Call) and value.method in (
                            "dict",
                            "OrderedDict",
                            "defaultdict",
                        ):
                            return not value.keywords
    return False


_COMPUTES = frozenset("bmm matmul einsum softmax baddbmm mm conv2d linear cat stack".split())


def _looks_like_tensor(graphs: Graphs, value: ir.Expr) -> bool:
    """Whether the function computes with the same name as only a tensor allows."""
    name = value.path
    while name is None and isinstance(value, (ir.Sub, ir.Attr)):
        value = value.base
        name = value.path
    if name is None:
        return False
    for _, call in ir.calls(graphs.function.body):
        if call.method in _COMPUTES and any(arg.path == name for arg in call.args):
            return True
        own = isinstance(call.func, ir.Attr) and call.func.base.path == name
        if own and call.method in ("detach", "cpu", "cuda", "view", "to", "unsqueeze", "permute"):
            return True
    return False


def _key_answers(
    graphs: Graphs, info: ClassInfo, statement: ir.Assign, target: ir.Sub, path: str, traced: Traced
) -> Iterator[Answer]:
    if traced.graph is REFUTED and _is_looked_up(graphs, statement, path):
        yield refuted(Question.OUTLIVES, "it is looked up before, and stored once for each key")
    if traced.graph is REFUTED:
        yield left_open(Question.DEVICE, "that it is large, and on a GPU, is not shown")
    else:
        yield from about(Traced(PROVEN, traced.graph, traced.why), statement)
        yield from called_with_grad(graphs) if traced.graph is PROVEN else ()
    own = graphs.function
    if path in resets(own.body) and (not _only_takes_out(own, path) or own.name == "forward"):
        yield refuted(Question.OUTLIVES, f"`{path}` is emptied in the course of each call")
    elif _is_slot(graphs, statement, target.index) or _is_named(graphs, target.index):
        yield refuted(Question.OUTLIVES, f"the entries of `{path}` are written anew with each call")
    else:
        whether = "whether its keys repeat is not seen"
        yield emptied(graphs.file, info, path, own) or left_open(Question.OUTLIVES, whether)


def _is_slot(graphs: Graphs, statement: ir.Stmt, key: ir.Expr) -> bool:
    """Whether the key is only what a loop of the same call counts or names: the next call has the same ones."""
    names = {part.id for part in ir.walk(key) if isinstance(part, ir.Name)}
    if not names:
        return not any(isinstance(part, ir.Attr) for part in ir.walk(key))
    looped = {
        part.id
        for owner in graphs.definitions.owners(statement)
        if isinstance(owner, ir.For) and not _over_data(owner)
        for part in ir.walk(owner.target)
        if isinstance(part, ir.Name)
    }
    return names <= looped


def _only_takes_out(method: ir.Function, path: str) -> bool:
    """Whether a method only takes single entries out: `self.maps.pop(key)`."""
    clearing = any(
        call.method in ("clear", "reset") and isinstance(call.func, ir.Attr) and call.func.base.path == path
        for _, call in ir.calls(method.body)
    )
    anew = any(
        target.path == path for statement in ir.statements(method.body) for target in targets(statement)
    )
    return not clearing and not anew


def _is_named(graphs: Graphs, key: ir.Expr) -> bool:
    """Whether the key is a parameter for which the callers in this file give a name that stands in the text."""
    params = [param.name for param in graphs.function.params]
    if not isinstance(key, ir.Name) or key.id not in params:
        return False
    position = params.index(key.id) - 1
    given = [site.call.argument(position, key.id) for site in call_sites(graphs.file, graphs.function)]
    return bool(given) and all(isinstance(one, (ir.Const, ir.Text)) for one in given)


def _is_looked_up(graphs: Graphs, statement: ir.Stmt, path: str) -> bool:
    """`if key not in self.known:` around it."""
    return any(
        isinstance(owner, ir.If)
        and any(
            isinstance(part, ir.Op) and part.op == "not in" and part.operands[1].path == path
            for part in ir.walk(owner.test)
        )
        for owner in graphs.definitions.owners(statement)
    )


def _over_data(loop: ir.For) -> bool:
    """Whether the loop runs through what the call is given, not through layers or names of the object's own."""
    words = " ".join(part.path or "" for part in ir.walk(loop.iterable))
    return not re.search(r"self\.|layers|modules|children|named_|blocks|heads|stages|enumerate|keys", words)
