"""Copies of a model's weights that stay on the GPU, and aliases of the weights taken for copies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.rules.detect.copies.whereabouts import (
    certainty_on_gpu,
    is_given,
    is_given_to_constructor,
    moves_something,
)

from gpulint.analysis.code import ir
from gpulint.analysis.code.handovers import is_of_its_round, waits_for_nothing
from gpulint.analysis.code.loaded import Chain, chain_of, parents_of
from gpulint.analysis.file.lookup import called, qualified, with_words
from gpulint.analysis.questions.outlives.rounds import one_each_round, only_loads
from gpulint.analysis.values.arguments import bind_sources

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_KEYED = "[key]"  # what `states[epoch] = …` is kept under: `states[key]`
_OTHER_STATE = re.compile(r"(?i)opt|sched|scaler|sampler|loader")


@dataclass(slots=True)
class Snapshot:
    """A copy of a model's weights that is kept on the GPU, or an alias of them taken for a copy.

    `what` is "deepcopy", "clone" or "alias"; `holder` the name that keeps it; `copy` the expression that makes it;
    `source` the `state_dict()` call in it; `cloned` what `.clone()` is called on.
    `certain` says that the file names a GPU; otherwise only that it moves things to a device of some name.
    """

    function: ir.Function
    stmt: ir.Stmt
    what: str
    holder: str
    copy: ir.Expr
    source: ir.Call
    cloned: ir.Expr | None = None
    restored_only: bool = False
    certain: bool = True
    many: bool = False  # the holder is a list, and keeps one copy after another
    computed: bool = False  # for all that is seen, one of them is computed with
    unplaced: bool = False  # a constructor is given the network, and where it is by then is not seen


def snapshots(file: FileAnalysis) -> list[Snapshot]:
    """The copies and aliases of `state_dict()` in a file that last longer than their statement."""
    found: list[Snapshot] = []
    for function in with_words(file, frozenset({"state_dict"})):
        for statement, guards in _with_guards(function.body, ()):
            for holder, value in _kept_values(statement):
                snapshot = _snapshot(file, function, statement, guards, holder, value)
                if snapshot is not None:
                    found.append(snapshot)
    return found


def _kept_values(statement: ir.Stmt) -> Iterator[tuple[str, ir.Expr]]:
    """What a statement keeps under which name: assignments, also of tuples and under keys, and `list.append(value)`."""
    if isinstance(statement, ir.Assign) and statement.value is not None:
        for target in statement.targets:
            if isinstance(target, ir.Seq) and isinstance(statement.value, ir.Seq):
                pairs = zip(target.items, statement.value.items, strict=False)
                yield from ((part.path, value) for part, value in pairs if part.path is not None)
            elif target.path is not None:
                yield target.path, statement.value
            elif isinstance(target, ir.Sub) and target.base.path is not None:
                yield target.base.path + _KEYED, statement.value
    elif isinstance(statement, ir.ExprStmt) and isinstance(statement.value, ir.Call):
        call = statement.value
        if call.method == "append" and len(call.args) == 1 and isinstance(call.func, ir.Attr):
            if call.func.base.path is not None:
                yield call.func.base.path + "[]", call.args[0]


def _snapshot(
    file: FileAnalysis,
    function: ir.Function,
    statement: ir.Stmt,
    guards: tuple[ir.Stmt, ...],
    holder: str,
    value: ir.Expr,
) -> Snapshot | None:
    if (source := _state_dict(value)) is not None:
        return _alias(file, function, statement, guards, holder, source)
    cloned: ir.Expr | None = None
    if isinstance(value, ir.Call) and value.method == "deepcopy" and len(value.args) == 1:
        if qualified(file, function, value.func.path) != "copy.deepcopy":
            return None
        what, source = "deepcopy", _state_dict(value.args[0])
    elif isinstance(value, ir.Comp) and value.kind == "dict":
        what = "clone"
        source, cloned = _cloned_items(value)
    else:
        return None
    certainty = "" if source is None else certainty_on_gpu(file, function, statement, source)
    kept = "." in holder and not holder.endswith("]")
    if source is not None and not certainty and kept and is_given(file, function, source):
        certainty = "likely"
    if source is None or not certainty:
        return None
    if holder.isidentifier() and _is_saved_at_once(function, statement, holder):
        return None
    if waits_for_nothing(function, statement, holder, source):
        return None
    if holder.endswith(_KEYED):
        holder = holder.removesuffix(_KEYED)
        if not one_each_round(guards, statement, source) or not _only_loaded(file, function, holder):
            return None
        holder += "[]"
    is_list = holder.endswith("[]")
    uses = _later_uses(file, function, holder.removesuffix("[]"))
    if not is_list and uses.computed:
        return None  # averaging, interpolation, moving averages, updates: on the device, beside the weights
    return Snapshot(
        function,
        statement,
        what,
        holder.removesuffix("[]"),
        value,
        source,
        cloned,
        uses.restored and not is_list,
        certainty == "certain",
        is_list,
        is_list and _some_are_computed_with(file, function, holder.removesuffix("[]")),
        is_given_to_constructor(function, source) and not moves_something(file, function),
    )


def _state_dict(expr: ir.Expr) -> ir.Call | None:
    """`model.state_dict()` of something that is no optimizer."""
    if isinstance(expr, ir.Call) and expr.method == "state_dict" and not expr.args and not expr.keywords:
        path = expr.func.base.path if isinstance(expr.func, ir.Attr) else None
        if path is not None and not _OTHER_STATE.search(path):
            return expr
    return None


def _cloned_items(comp: ir.Comp) -> tuple[ir.Call | None, ir.Expr | None]:
    """`{k: v.clone() for k, v in model.state_dict().items()}`: the `state_dict()` call, and what is cloned."""
    if len(comp.clauses) != 1 or len(comp.elements) != 2:
        return None, None
    target, iterable, _ = comp.clauses[0]
    if not (
        isinstance(iterable, ir.Call) and iterable.method == "items" and isinstance(iterable.func, ir.Attr)
    ):
        return None, None
    source = _state_dict(iterable.func.base)
    name = target.items[1].path if isinstance(target, ir.Seq) and len(target.items) == 2 else None
    value: ir.Expr = comp.elements[1]
    if source is None or name is None or not (isinstance(value, ir.Call) and value.method == "clone"):
        return None, None
    if not isinstance(value.func, ir.Attr) or value.args:
        return None, None
    cloned = base = value.func.base
    while isinstance(base, (ir.Call, ir.Attr)):  # v.detach(), v.data
        if isinstance(base, ir.Call) and base.method != "detach":
            return None, None
        if isinstance(base, ir.Attr) and base.attr not in ("detach", "data"):
            return None, None
        base = base.func if isinstance(base, ir.Call) else base.base
    return (source, cloned) if base.path == name else (None, None)


def _is_saved_at_once(function: ir.Function, statement: ir.Stmt, name: str) -> bool:
    """`weights = deepcopy(model.state_dict())`, then `torch.save(weights, path)`, and no other use: a copy that waits for
    nothing."""
    following = list(ir.statements(function.body))
    position = next(n for n, other in enumerate(following) if other is statement)
    readers = [other for other in following if any(True for _ in _reads(other, name, None))]
    if readers != following[position + 1 : position + 2]:
        return False
    if not readers or not any(call.method == "save" for call in ir.own_calls(readers[0])):
        return False
    loops = [list(ir.statements(other.body)) for other in following if isinstance(other, (ir.For, ir.While))]
    return all((statement in inner) == (readers[0] in inner) for inner in loops)


@dataclass(slots=True)
class _Uses:
    """How a holder is used elsewhere. `restored`: only given to `load_state_dict` or `torch.save`, or compared; `computed`:
    read or changed item by item, returned, or handed to a function that does so or that cannot be seen."""

    computed: bool = False
    restored: bool = True
    loaded: bool = False


def _later_uses(file: FileAnalysis, function: ir.Function, path: str, depth: int = 0) -> _Uses:
    """The uses of a name in its function, or of an attribute in all of the file."""
    uses = _Uses()
    attribute = path.rpartition(".")[2] if "." in path else None
    places = file.module.functions if attribute else [function, *_inner(file, function)]
    for place in places:
        if attribute and attribute not in file.evidence[place].words | _stored_words(file, place):
            continue
        for statement in ir.statements(place.body):
            for expr, chain in _reads(statement, path, attribute):
                if isinstance(statement, ir.Return) and not any(
                    isinstance(outer, ir.Call) for outer in chain
                ):
                    uses.computed, uses.restored = True, False  # by whoever called, for all we know
                else:
                    _note_use(file, place, expr, chain, uses, depth)
    return uses


def _inner(file: FileAnalysis, function: ir.Function) -> list[ir.Function]:
    return [other for other in file.module.functions if other.parent is function and other is not function]


def _stored_words(file: FileAnalysis, function: ir.Function) -> set[str]:
    return {stored.rpartition(".")[2] for stored in file.evidence[function].stored}


def _reads(statement: ir.Stmt, path: str, attribute: str | None) -> Iterator[tuple[ir.Expr, Chain]]:
    """Where a statement reads a place, with the expressions around each."""
    parents: dict[int, ir.Expr] | None = None
    for expr in ir.own_parts(statement):
        same = expr.attr == attribute if attribute and isinstance(expr, ir.Attr) else expr.path == path
        if not same or not isinstance(expr, (ir.Name, ir.Attr)):
            continue
        if isinstance(statement, ir.Assign) and any(_binds(target, expr) for target in statement.targets):
            continue
        if parents is None:
            parents = parents_of(statement)
        yield expr, chain_of(expr, parents)


def _binds(target: ir.Expr, expr: ir.Expr) -> bool:
    return target is expr or (isinstance(target, ir.Seq) and expr in target.items)


_LOOKS = frozenset("len print str repr isinstance bool type id format debug info warning".split())


def _note_use(
    file: FileAnalysis, place: ir.Function, expr: ir.Expr, chain: Chain, uses: _Uses, depth: int
) -> None:
    around = chain[0] if chain else None
    if _reads_items(around, expr):
        uses.computed = True
    elif isinstance(around, ir.Call) and around.method == "load_state_dict":
        uses.loaded = True
    elif isinstance(around, ir.Op) and around.op in ("is", "is not", "not", "if", "cmp", "==", "!="):
        pass
    elif not any(isinstance(outer, ir.Call) and outer.method == "save" for outer in chain):
        uses.restored = False
        if isinstance(around, ir.Call) and around.func is not expr and around.method not in _LOOKS:
            uses.computed |= _is_computed_by(file, place, around, expr, depth)


def _is_computed_by(
    file: FileAnalysis, place: ir.Function, call: ir.Call, given: ir.Expr, depth: int
) -> bool:
    """Whether a function that is handed the dict reads it item by item. What cannot be seen does."""
    function = called(file, place, call)
    if function is None:
        full = qualified(file, place, call.func.path)
        value = file.imported_value(full) if full is not None else None
        function = value.ref if value is not None and isinstance(value.ref, ir.Function) else None
    if function is None or depth > 1:
        return True
    source = bind_sources(function, call, function.cls is not None and isinstance(call.func, ir.Attr))
    names = [name for name, value in source.items() if value is given]
    return not names or any(_later_uses(function.home, function, name, depth + 1).computed for name in names)


def _reads_items(around: ir.Expr | None, expr: ir.Expr) -> bool:
    """Whether a dict is read, or changed, item by item."""
    if isinstance(around, ir.Sub):
        return around.base is expr
    if isinstance(around, ir.Attr):
        return around.attr in ("items", "values", "keys")
    return isinstance(around, ir.Comp) or (
        isinstance(around, ir.Call) and around.method in ("zip", "enumerate")
    )


def _alias(
    file: FileAnalysis,
    function: ir.Function,
    statement: ir.Stmt,
    guards: tuple[ir.Stmt, ...],
    holder: str,
    source: ir.Call,
) -> Snapshot | None:
    """`best = model.state_dict()` where a score decides, and which is loaded again later: what it loads is the model's
    weights of that moment."""
    if holder.endswith("]") or not _is_best(guards, "." in holder) or is_of_its_round(guards, source):
        return None
    uses = _later_uses(file, function, holder)
    if not uses.loaded or uses.computed or _is_copied(function, holder):
        return None
    return Snapshot(function, statement, "alias", holder, source, source, restored_only=uses.restored)


def _is_best(guards: tuple[ir.Stmt, ...], attribute: bool) -> bool:
    """Under a comparison, in a loop; an attribute may be set once a call."""
    in_loop = any(isinstance(guard, (ir.For, ir.While)) for guard in guards)
    inner = [guard for guard in guards if isinstance(guard, ir.If)]
    compares = any(
        isinstance(part, ir.Op) and part.op == "cmp" for guard in inner for part in ir.walk(guard.test)
    )
    return compares and (in_loop or attribute)


def _is_copied(function: ir.Function, holder: str) -> bool:
    """Whether the holder is bound to something other than `state_dict()` or None in this function: it may be a copy."""
    for statement in ir.statements(function.body):
        if isinstance(statement, ir.Assign) and statement.value is not None:
            for path, value in _kept_values(statement):
                plain = isinstance(value, ir.Const) or (isinstance(value, ir.DictDisplay) and not value.pairs)
                if path == holder and not plain and _state_dict(value) is None:
                    return True
    return False


def _only_loaded(file: FileAnalysis, function: ir.Function, path: str) -> bool:
    """Whether the copies of a dict are each only loaded or saved, or looked at from outside, and never dropped."""
    attribute = path.rpartition(".")[2] if "." in path else None
    for place in file.module.functions if attribute else [function, *_inner(file, function)]:
        for statement in ir.statements(place.body):
            for expr, chain in _reads(statement, path, attribute):
                uses = _Uses()
                _note_use(file, place, expr, chain, uses, 0)
                drops = isinstance(statement, ir.Delete) or _drops(chain)
                binds = isinstance(statement, ir.Assign) and any(_fills(t, expr) for t in statement.targets)
                if drops or (uses.computed and not binds and not only_loads(statement, chain)):
                    return False
    return True


def _some_are_computed_with(file: FileAnalysis, function: ir.Function, path: str) -> bool:
    """Whether one of the copies in a list is read entry by entry, or handed to code that may do so."""
    attribute = path.rpartition(".")[2] if "." in path else None
    return any(
        _is_computed_with(file, place, statement, expr, chain)
        for place in (file.module.functions if attribute else [function, *_inner(file, function)])
        for statement in ir.statements(place.body)
        for expr, chain in _reads(statement, path, attribute)
    )


def _is_computed_with(
    file: FileAnalysis, place: ir.Function, statement: ir.Stmt, expr: ir.Expr, chain: Chain
) -> bool:
    if only_loads(statement, chain):
        return False
    if isinstance(statement, ir.For):
        return True
    around = chain[0] if chain else None
    if isinstance(around, ir.Sub) and isinstance(statement, ir.Assign) and statement.value is around:
        names = [target.path for target in statement.targets]
        return any(name is None or _later_uses(file, place, name).computed for name in names)
    uses = _Uses()
    _note_use(file, place, expr, chain, uses, 0)
    return uses.computed


def _fills(target: ir.Expr, expr: ir.Expr) -> bool:
    return isinstance(target, ir.Sub) and target.base is expr


def _drops(chain: Chain) -> bool:
    around = chain[0] if chain else None
    return isinstance(around, ir.Attr) and around.attr in ("pop", "popitem", "clear")


def _with_guards(
    block: list[ir.Stmt], guards: tuple[ir.Stmt, ...]
) -> Iterator[tuple[ir.Stmt, tuple[ir.Stmt, ...]]]:
    """Each statement of a block with the loops and branches around it, outermost first."""
    for statement in block:
        yield statement, guards
        inner = (*guards, statement) if isinstance(statement, (ir.If, ir.For, ir.While)) else guards
        for part in statement.blocks():
            yield from _with_guards(part, inner)
