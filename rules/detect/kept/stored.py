"""Attributes and caches of an object that keep what was computed with grad on: until the next call, or for good."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.rules.detect.kept.callers import call_sites
from gpulint.rules.detect.kept.graphs import PROVEN, REFUTED, Graphs, Traced, Tracing
from gpulint.rules.detect.kept.record import How, Kept, about
from gpulint.rules.detect.kept.statistics import is_cut

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import resets, targets
from gpulint.analysis.torch.keeping import LOSSLIKE
from gpulint.analysis.torch.methods import NO_GRAPH
from gpulint.analysis.torch.names import TO_HOST
from gpulint.analysis.values.values import Grad
from gpulint.answers import Answer, Question, left_open, proven, refuted

if TYPE_CHECKING:
    from gpulint.analysis.file.classes import ClassInfo
    from gpulint.analysis.file.program import FileAnalysis

# What is made of sizes and constants, by its name: it has no graph.
_CONSTANT = re.compile(
    r"(?i)mask|pos|index|indices|grid|anchor|freq|cos|sin|rope|rotary|cu_seq|window|shape|size|device|dtype|len|step|"
    r"iter|count|optim|sched|config|param|name|file|handle|hook|model|net$|module|layer|stream|event|generator|seed|scale$"
)
_CACHE = re.compile(r"(?i)cache|memo|precomput|stored|saved")
# The words of a switch that asks for something to be recorded.
_RECORDING = re.compile(
    r"(?i)store|record|save|stat|collect|keep|track|log|monitor|debug|visuali|vis$|return_att|output_att"
)


def stored(file: FileAnalysis) -> list[Kept]:
    """What methods store on their object with a graph."""
    tracing = Tracing(file)
    found: list[Kept] = []
    for info in file.classes.values():
        for method in info.cls.methods.values():
            if method.name in ("__init__", "__setstate__", "reset") or not method.params:
                continue
            if file.evidence[method].stored or _sets_items(method):
                graphs = tracing.of(method)
                found += _memos(graphs, info)
                found += _by_key(graphs, info)
                found += _recorded(graphs, info)
    return found


def _sets_items(method: ir.Function) -> bool:
    own = method.params[0].name
    return any(
        isinstance(target, ir.Sub) and (target.base.path or "").startswith(f"{own}.")
        for statement in ir.statements(method.body)
        for target in targets(statement)
    )


def _own_assignments(graphs: Graphs) -> Iterator[tuple[ir.Assign, ir.Attr, ir.Expr]]:
    own = graphs.function.params[0].name
    for statement in ir.statements(graphs.function.body):
        if isinstance(statement, ir.Assign) and statement.value is not None and len(statement.targets) == 1:
            target = statement.targets[0]
            if isinstance(target, ir.Attr) and isinstance(target.base, ir.Name) and target.base.id == own:
                yield statement, target, statement.value


# --- computed once, kept for the next call -------------------------------------------------------------------------


def _memos(graphs: Graphs, info: ClassInfo) -> Iterator[Kept]:
    for statement, target, value in _own_assignments(graphs):
        path = target.path or ""
        guard = _guard_of(graphs, statement, path, target.attr)
        if (
            guard is None
            or isinstance(value, ir.Const)
            or _CONSTANT.search(target.attr)
            or path in graphs.backwarded
        ):
            continue
        traced = graphs.of(value, statement)
        if traced.graph is REFUTED:
            continue
        if traced.graph is not PROVEN and not (
            _CACHE.search(target.attr) and isinstance(value, ir.Call) and info.is_module
        ):
            continue
        answers = (
            *about(traced, value),
            *_mode(graphs),
            proven(Question.OUTLIVES, f"`{path}` is computed once and used by later calls", guard),
            *_reads_with_graph(graphs.file, info, graphs.function, target.attr, memo=True),
        )
        yield Kept(graphs.function, statement, value, path, How.CACHED, answers, scalar=traced.scalar)


def _guard_of(graphs: Graphs, statement: ir.Stmt, path: str, attr: str) -> ir.Stmt | None:
    """The `if self.x is None`, or `if not hasattr(self, "x")`, around a statement."""
    for owner in graphs.definitions.owners(statement):
        if not isinstance(owner, ir.If) or not any(inner is statement for inner in ir.statements(owner.body)):
            continue
        for part in ir.walk(owner.test):
            if isinstance(part, ir.Op) and part.op == "is" and part.operands[0].path == path:
                return owner
            if isinstance(part, ir.Op) and part.op == "not":
                inner = part.operands[0]
                named = isinstance(inner, ir.Call) and inner.method == "hasattr" and len(inner.args) > 1
                if named and isinstance(inner.args[1], ir.Const) and inner.args[1].value == attr:  # type: ignore[attr-defined]
                    return owner
    return None


def _mode(graphs: Graphs) -> Iterator[Answer]:
    """Whether those who call the method may do so with grad off."""
    mode = graphs.grad_at(graphs.function.body[0])
    if mode is Grad.DISABLED:
        yield refuted(Question.GRAD, "grad is off there")
    elif mode is Grad.UNKNOWN or not graphs.file.callers.get(graphs.function):
        yield left_open(Question.GRAD, f"who calls `{graphs.function.name}` may switch grad off")


# --- by key --------------------------------------------------------------------------------------------------------


def _by_key(graphs: Graphs, info: ClassInfo) -> Iterator[Kept]:
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
        yield from about(Traced(PROVEN, traced.graph, traced.why), statement.value)
        yield from _mode(graphs) if traced.graph is PROVEN else ()
    emptied = [
        method
        for method in info.cls.methods.values()
        if path in resets(method.body) and method.name != "__init__"
    ]
    if any(
        (method is graphs.function and not _only_takes_out(method, path)) or method.name == "forward"
        for method in emptied
    ):
        yield refuted(Question.OUTLIVES, f"`{path}` is emptied in the course of each call")
    elif _is_slot(graphs, statement, target.index) or _is_named(graphs, target.index):
        yield refuted(Question.OUTLIVES, f"the entries of `{path}` are written anew with each call")
    elif emptied:
        yield left_open(Question.OUTLIVES, f"`{emptied[0].name}` empties `{path}`; how often is not seen")
    else:
        yield left_open(Question.OUTLIVES, "whether its keys repeat is not seen")


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


# --- recorded ------------------------------------------------------------------------------------------------------


def _recorded(graphs: Graphs, info: ClassInfo) -> Iterator[Kept]:
    """What a module's forward stores by the way, and nobody but a statistic reads."""
    if not info.is_module or info.is_lightning or graphs.grad_at(graphs.function.body[0]) is Grad.DISABLED:
        return
    for statement, target, value in _own_assignments(graphs):
        path = target.path or ""
        if (
            isinstance(value, ir.Const)
            or is_cut(value)
            or _CONSTANT.search(target.attr)
            or path in graphs.backwarded
        ):
            continue
        if _guard_of(graphs, statement, path, target.attr) is not None or LOSSLIKE.search(target.attr):
            continue
        if target.attr in info.backward or any(part.path == path for part in ir.walk(value)):
            continue
        asked = _is_asked_for(graphs, statement)
        traced = graphs.of(value, statement)
        if (
            traced.graph is REFUTED
            or traced.tensor is not PROVEN
            or not (asked or graphs.function.name == "forward")
        ):
            continue
        if not asked and not _is_read_as_number(graphs.file, target.attr):
            continue
        reads = tuple(
            _reads_with_graph(graphs.file, info, graphs.function, target.attr, memo=False, asked=asked)
        )
        answers = (
            *about(traced, value),
            *reads,
            left_open(
                Question.OUTLIVES,
                f"the next call overwrites `{path}`: it is the graph of one call that stays",
            ),
            left_open(Question.REACHED, "where a backward follows each call, little is left of that graph"),
        )
        yield Kept(graphs.function, statement, value, path, How.STORED, answers, scalar=traced.scalar)


def _is_asked_for(graphs: Graphs, statement: ir.Stmt) -> bool:
    """`if self.store_activity:` around it."""
    return any(
        isinstance(owner, ir.If)
        and any(_RECORDING.search(part.path or "") for part in ir.walk(owner.test) if part.path)
        for owner in graphs.definitions.owners(statement)
    )


def _is_read_as_number(file: FileAnalysis, attr: str) -> bool:
    """Whether the file reads numbers off an attribute: `self.activity.mean().item()`."""
    return any(
        isinstance(part, ir.Attr) and part.attr == attr and _reads_number(above)
        for function in file.module.functions
        if attr in file.evidence[function].words
        for statement in ir.statements(function.body)
        for root in statement.expressions()
        for part, above in _with_above(root)
    )


def _reads_with_graph(
    file: FileAnalysis, info: ClassInfo, writer: ir.Function, attr: str, memo: bool, asked: bool = False
) -> Iterator[Answer]:
    """Whether somebody computes with the attribute: then its graph may be wanted."""
    read = cut = False
    for function in file.module.functions:
        for statement in ir.statements(function.body):
            written = {id(target) for target in targets(statement)}
            for root in statement.expressions():
                for part, above in _with_above(root):
                    if isinstance(part, ir.Attr) and part.attr == attr and id(part) not in written:
                        if _is_question(above):
                            continue
                        if _reads_number(above):
                            cut = True
                        elif not (memo and function is writer):
                            read = True
    if memo:
        return
    if read and asked:
        yield left_open(Question.BACKWARD, f"`{attr}` is computed with, and a backward may go through that")
    elif read:
        yield refuted(Question.BACKWARD, f"`{attr}` is read with its graph, and a backward may go through it")
    elif not cut and _is_read_elsewhere(file, attr):
        yield left_open(Question.BACKWARD, f"another file reads `{attr}`, and may go backward through it")
    else:
        yield proven(Question.BACKWARD, f"nothing that is seen computes with `{attr}`")


def _is_read_elsewhere(file: FileAnalysis, attr: str) -> bool:
    if file.project is None:
        return True
    return file.project.contains(file.filename, re.compile(rb"\.%s\b(?!\s*=[^=])" % attr.encode()))


def _with_above(root: ir.Expr) -> Iterator[tuple[ir.Expr, tuple[ir.Expr, ...]]]:
    stack: list[tuple[ir.Expr, tuple[ir.Expr, ...]]] = [(root, ())]
    while stack:
        expr, above = stack.pop()
        yield expr, above
        stack += [(child, (*above, expr)) for child in expr.children()]


def _reads_number(above: tuple[ir.Expr, ...]) -> bool:
    return any(
        (
            isinstance(part, ir.Attr)
            and (part.attr in ("data", "shape") or part.attr in NO_GRAPH or part.attr in TO_HOST)
        )
        or (isinstance(part, ir.Call) and part.method in ("float", "print", "format"))
        or isinstance(part, ir.Text)
        for part in above
    )


def _is_question(above: tuple[ir.Expr, ...]) -> bool:
    return any(isinstance(part, ir.Op) and part.op in ("is", "is not", "cmp", "not") for part in above)
