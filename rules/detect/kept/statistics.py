"""Dicts of statistics, all of whose entries are numbers but one or two, which still have their graphs.

The author knows what is to be done: beside it stands `.item()`. That is the evidence; what the entry is, and where the dict
goes, is asked like anywhere else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpulint.rules.detect.kept.callers import Use, call_sites, is_told_there, means, uses_of, where
from gpulint.rules.detect.kept.graphs import Graphs, Tracing
from gpulint.rules.detect.kept.keepers import keeper
from gpulint.rules.detect.kept.record import How, Kept, about
from gpulint.rules.detect.kept.traced import PROVEN, REFUTED, UNKNOWN, Traced

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import additive_terms, unscaled
from gpulint.analysis.code.reading import innermost
from gpulint.analysis.questions.outlives.emptied import made_numbers
from gpulint.analysis.torch.frameworks import SINKS
from gpulint.analysis.torch.keeping import FIGURES, LOSSLIKE
from gpulint.analysis.torch.names import NUMERIC_SINKS, SINK_METHODS
from gpulint.answers import Answer, Question, left_open, proven, refuted

if TYPE_CHECKING:
    from gpulint.analysis.questions.outlives.emptied import made_numbers
from gpulint.analysis.file.program import FileAnalysis

_CUTTING = frozenset("item detach tolist numpy get_numpy to_np to_numpy".split())


@dataclass(frozen=True, slots=True)
class Entry:
    """One `key: value` of a dict."""

    key: ir.Expr | str | None
    value: ir.Expr
    stmt: ir.Stmt

    @property
    def name(self) -> str:
        """The key, as far as it is a text."""
        if isinstance(self.key, str):
            return self.key
        if isinstance(self.key, ir.Const):
            return str(self.key.value)
        if isinstance(self.key, ir.Text):
            return "".join(str(part.value) for part in self.key.parts if isinstance(part, ir.Const))
        return ""


@dataclass(frozen=True, slots=True)
class Group:
    """The entries of one dict. `path` is its name, where it has one; `display` the display that begins it."""

    path: str
    entries: tuple[Entry, ...]
    display: ir.Expr | None


def statistics(file: FileAnalysis) -> list[Kept]:
    """The entries with a graph beside entries without one."""
    tracing = Tracing(file)
    found: list[Kept] = []
    for function in file.module.functions:
        evidence = file.evidence[function]
        numbers = bool(
            evidence.words & {"item", "detach", "tolist", "get_numpy"} or "float" in evidence.called
        )
        if numbers or any(map(FIGURES.search, evidence.assigned)):
            for group in groups(function):
                cut = numbers and any(is_cut(entry.value) for entry in group.entries)
                named = bool(FIGURES.search(group.path)) and _is_returned(function, group)
                if len(group.entries) > 1 and (cut or named):
                    found += _of_group(tracing.of(function), group)
    return found


def _is_returned(function: ir.Function, group: Group) -> bool:
    """`return loss, stats`."""
    return any(
        isinstance(statement, ir.Return)
        and isinstance(statement.value, ir.Seq)
        and any(_is_of(item, group) for item in statement.value.items)
        for statement in ir.statements(function.body)
    )


def groups(function: ir.Function) -> Iterator[Group]:
    """The dicts that a function fills by their names, and the displays that it hands on or returns."""
    named: dict[str, list[Entry]] = defaultdict(list)
    begun: dict[str, ir.Expr | None] = {}
    for statement in ir.statements(function.body):
        displays = {id(found): found for root in statement.expressions() for found in _displays(root)}
        if isinstance(statement, ir.Assign) and statement.value is not None and len(statement.targets) == 1:
            target = statement.targets[0]
            if isinstance(target, ir.Sub) and target.base.path is not None:
                named[target.base.path].append(Entry(target.index, statement.value, statement))
                begun.setdefault(target.base.path, None)
            elif target.path is not None and id(statement.value) in displays:
                display = displays.pop(id(statement.value))
                named[target.path] += _entries(display, statement)
                begun.setdefault(target.path, display)
        elif isinstance(statement, ir.ExprStmt) and isinstance(statement.value, ir.Call):
            call = statement.value
            if call.method == "update" and isinstance(call.func, ir.Attr) and call.func.base.path is not None:
                for arg in call.args:
                    if id(arg) in displays:
                        named[call.func.base.path] += _entries(displays.pop(id(arg)), statement)
                        begun.setdefault(call.func.base.path, None)
        for display in displays.values():
            yield Group("", tuple(_entries(display, statement)), display)
    for path, entries in named.items():
        yield Group(path, tuple(entries), begun[path])


def _displays(root: ir.Expr) -> Iterator[ir.Expr]:
    """The outermost dict displays in an expression."""
    if isinstance(root, ir.DictDisplay) or (
        isinstance(root, ir.Call) and root.func.path in ("dict", "OrderedDict")
    ):
        yield root
        return
    for child in root.children():
        yield from _displays(child)


def _entries(display: ir.Expr, statement: ir.Stmt) -> Iterator[Entry]:
    pairs: list[tuple[ir.Expr | str | None, ir.Expr]] = []
    if isinstance(display, ir.DictDisplay):
        pairs = list(display.pairs)
    elif isinstance(display, ir.Call):
        pairs = [(key, value) for key, value in display.keywords if key is not None]
    for key, value in pairs:
        if isinstance(value, ir.DictDisplay) or (isinstance(value, ir.Call) and value.func.path == "dict"):
            yield from _entries(value, statement)
        elif key is not None:
            yield Entry(key, value, statement)


def is_cut(value: ir.Expr) -> bool:
    """Whether the text of an entry says that it is no tensor with a graph any more: `loss.item()`, `float(x)`."""
    if isinstance(value, ir.Call):
        number = value.func.path in ("float", "int")
        return (
            number
            or value.method in _CUTTING
            or (isinstance(value.func, ir.Attr) and is_cut(value.func.base))
        )
    if isinstance(value, ir.Op):
        parts = value.operands[1:] if value.op == "if" else value.operands  # what decides is no part of it
        return all(is_cut(part) or isinstance(part, ir.Const) for part in parts)
    return False


def _of_group(graphs: Graphs, group: Group) -> Iterator[Kept]:
    attached: list[tuple[Entry, Traced]] = []
    apart = _apart(graphs, group)
    for entry in group.entries:
        if not is_cut(entry.value):
            traced = _as_term(graphs.of(entry.value, entry.stmt), entry, apart)
            if traced.graph is not REFUTED and _is_statistic(entry, traced):
                attached.append((entry, traced))
    cut = sum(is_cut(entry.value) for entry in group.entries)
    if not attached or (cut < min(len(attached), _ENOUGH) and not apart):
        return
    attached.sort(key=_weight, reverse=True)
    first = _weight(attached[0])
    sure = cut and attached[0][1].graph is PROVEN
    for entry, traced in [one for one in attached if _weight(one) == first][: _MOST if sure else 1]:
        yield Kept(
            graphs.function,
            entry.value
            if isinstance(entry.value, ir.Call)
            else entry.stmt
            if group.path and group.display is None
            else entry.value,
            entry.value,
            group.path or f"the dict that `{graphs.function.name}` makes",
            How.ENTRY,
            tuple(_answers(graphs, group, entry, traced)),
            freed=traced.freed,
            scalar=traced.scalar,
        )


_MOST = 4  # told of one dict
_ENOUGH = 4  # so many numbers say what the dict is for, however many entries beside them are none


def _weight(attached: tuple[Entry, Traced]) -> tuple[bool, bool, bool, bool]:
    entry, traced = attached
    sought = bool(LOSSLIKE.search((innermost(entry.value).path or "").rpartition(".")[2]))
    return traced.graph is PROVEN, traced.tensor is PROVEN, traced.freed, sought


def _apart(graphs: Graphs, group: Group) -> dict[str, bool]:
    """What goes into the loss that is returned beside the dict: the loss itself and its terms, each with whether it is one for
    certain. Of `scale * loss` either may be the loss, and the other a number."""
    if graphs.has_backward:
        return {}
    found: dict[str, bool] = {}
    for statement in ir.statements(graphs.function.body):
        value = statement.value if isinstance(statement, ir.Return) else None
        if (
            isinstance(value, ir.Seq)
            and len(value.items) > 1
            and any(_is_of(item, group) for item in value.items)
        ):
            wanted = [
                (item.path, True, 0)
                for item in value.items
                if item.path is not None and LOSSLIKE.search(item.path)
            ]
            for item in value.items:
                if isinstance(item, ir.Op):
                    wanted += [(part.path, True, 1) for part in additive_terms(item) if part.path is not None]
            while wanted:
                path, sure, depth = wanted.pop()
                if found.get(path) or (path in found and not sure) or depth > 3:
                    continue
                found[path] = sure
                for definition in graphs.definitions.reaching(path, statement)[0]:
                    if definition.value is not None:
                        parts = _parts_of_loss(definition.value)
                        wanted += [(part, sure and certain, depth + 1) for part, certain in parts]
    return found


def _parts_of_loss(value: ir.Expr) -> Iterator[tuple[str, bool]]:
    """What a loss is computed from, each with whether it is a term, and not one of two factors."""
    for term in additive_terms(value):
        if (path := unscaled(term).path) is not None:
            yield path, True
    for part in ir.walk(value):
        if isinstance(part, ir.Op) and part.op == "*":
            yield from ((one.path, False) for one in part.operands if isinstance(one, ir.Name) and one.path)


def _as_term(traced: Traced, entry: Entry, apart: dict[str, bool]) -> Traced:
    """A term of the loss that is returned to be trained by has a graph."""
    name = innermost(entry.value)
    sure = apart.get(entry.value.path or "") or apart.get(name.path or "")
    if not sure and (traced == UNKNOWN or traced.given):
        return traced  # it may be the scale that a term is multiplied by
    if traced.graph is REFUTED or name.path is None or not (entry.value.path in apart or name.path in apart):
        return traced
    return replace(
        traced,
        tensor=PROVEN,
        graph=PROVEN,
        why=f"`{name.path}` is a term of the loss that is returned beside it",
    )


def _is_statistic(entry: Entry, traced: Traced) -> bool:
    """Whether an entry is a figure, not an output for others to compute with: it is reduced, goes backward, or is called a
    loss."""
    if traced.scalar or (traced.freed and traced.graph is PROVEN):
        return True
    named = entry.value.path or ""
    return bool(LOSSLIKE.search(entry.name) or LOSSLIKE.search(named.rpartition(".")[2]))


def _answers(graphs: Graphs, group: Group, entry: Entry, traced: Traced) -> Iterator[Answer]:
    yield from about(traced, entry.value)
    if any(is_cut(other.value) for other in group.entries):
        yield proven(Question.MEANT, "other entries of the same dict are made numbers, or detached")
    elif (kept := _by_callers(graphs, group.path, group.display)) is not None and kept.verdict is PROVEN:
        yield proven(
            Question.MEANT, "what is to be trained is returned beside it, and this is put by", kept.at
        )
    else:
        yield left_open(Question.MEANT, "only its name says that it is for figures alone")
    if not (traced.freed and graphs.has_backward):
        yield from _wanted(graphs, group, entry)
    yield from stays(graphs, group.path, group.display)


def _wanted(graphs: Graphs, group: Group, entry: Entry) -> Iterator[Answer]:
    """Whether somebody may go backward through the entry: who gets the dict alone, without a backward in sight."""
    if any("backward" in name for name in graphs.file.evidence[graphs.function].called):
        return
    if graphs.function.name in ("forward", "loss", "compute_loss", "criterion") or _is_sought(entry):
        if not _returns_apart(graphs, group):
            yield refuted(Question.BACKWARD, "whoever gets the dict may go backward through this entry")
            return
    elif not _returns_apart(graphs, group):
        yield left_open(Question.BACKWARD, "whoever gets the dict may go backward through this entry")


def _is_sought(entry: Entry) -> bool:
    return entry.name.lower() in ("loss", "total_loss", "losses", "objective", "total", "cost")


def _returns_apart(graphs: Graphs, group: Group) -> bool:
    """`return loss, info`: what is to be trained is returned beside the dict."""
    for statement in ir.statements(graphs.function.body):
        value = statement.value if isinstance(statement, ir.Return) else None
        if isinstance(value, ir.Seq) and len(value.items) > 1:
            others = [item for item in value.items if not _is_of(item, group)]
            if len(others) < len(value.items) and any(
                graphs.of(item, statement).graph is not REFUTED
                and LOSSLIKE.search((item.path or "").rpartition(".")[2])
                for item in others
            ):
                return True
    return False


def _is_of(expr: ir.Expr, group: Group) -> bool:
    """Whether an expression is the dict, or is made of it: `flatten_dict(stats)`."""
    if expr is group.display:
        return True
    return bool(group.path) and any(part.path == group.path for part in ir.walk(expr))


def stays(graphs: Graphs, path: str, display: ir.Expr | None) -> Iterator[Answer]:
    """Where a dict goes: is it kept, returned to whoever may keep it, or written and dropped?"""
    function = graphs.function
    if path.partition(".")[0] == (function.params[0].name if function.cls and function.params else None):
        yield proven(Question.OUTLIVES, f"`{path}` belongs to the object")
        return
    if path and any(param.name == path for param in function.params):
        yield left_open(Question.OUTLIVES, f"how long `{path}` lives is up to the caller")
        return
    if path and (loop := made_numbers(function, path)) is not None:
        yield refuted(
            Question.OUTLIVES, "every entry is overwritten with a number before the dict is used", loop
        )
        return
    ways = set(_ways(graphs, path, display))
    if "kept" in ways:
        yield proven(Question.OUTLIVES, "the dict is put by for later")
    elif "returned" in ways and (told := _by_callers(graphs, path, display)) is not None:
        yield told
    elif "returned" in ways:
        yield left_open(
            Question.OUTLIVES, f"who calls `{function.name}` may read the figures at once and drop the dict"
        )
    elif "handed" in ways:
        yield left_open(Question.OUTLIVES, "whether what gets the dict keeps it is not seen")
    else:
        yield refuted(Question.OUTLIVES, "the dict is written at once, or dropped")


def _by_callers(graphs: Graphs, path: str, display: ir.Expr | None) -> Answer | None:
    """What the callers in sight do with the figures; None where that is not seen."""
    position = _position(graphs.function, path, display)
    kept = keeper(graphs.file, graphs.function, position)
    if kept is not None:
        return proven(Question.OUTLIVES, "a caller puts them by for later", *kept.as_seen_from(graphs.file))
    sites = call_sites(graphs.file, graphs.function)
    uses = [(site, uses_of(site, position)) for site in sites]
    if uses and all(use is Use.READ for _, use in uses):
        return refuted(Question.OUTLIVES, "each caller that is seen only reads numbers of it")
    keeping = [site for site, use in uses if use is Use.KEPT]
    if keeping and is_told_there(graphs.file, graphs.function, sites):
        return refuted(Question.OUTLIVES, "it is told where a caller keeps it")
    meant = next((site for site in keeping if means(site, graphs.function)), None)
    if meant is not None:
        clause = f"`{meant.function.name}` puts the figures by for later"
        return proven(Question.OUTLIVES, clause, *where(graphs.file, meant))
    return None


def _position(function: ir.Function, path: str, display: ir.Expr | None) -> int | None:
    """As which of several results the dict is returned."""
    for statement in ir.statements(function.body):
        value = statement.value if isinstance(statement, ir.Return) else None
        if isinstance(value, ir.Seq):
            for number, item in enumerate(value.items):
                if _mentions(item, path, display):
                    return number
    return None


def _ways(graphs: Graphs, path: str, display: ir.Expr | None) -> Iterator[str]:
    """Where the dict goes in the function: it is kept, returned, handed to others, or written."""
    for statement in ir.statements(graphs.function.body):
        if isinstance(statement, ir.Return) and statement.value is not None:
            if _mentions(statement.value, path, display):
                yield "returned"
            continue
        if isinstance(statement, ir.Assign) and statement.value is not None:
            stored = any(isinstance(target, (ir.Attr, ir.Sub)) for target in statement.targets)
            if stored and _is_it(statement.value, path, display):
                yield "kept"
        for root in statement.expressions():
            if isinstance(root, ir.Wrapper) and root.kind == "yield" and _mentions(root, path, display):
                yield "returned"
        for call in ir.own_calls(statement):
            if any(_is_it(arg, path, display) for arg in (*call.args, *(v for _, v in call.keywords))):
                yield from _given_to(call)


def _given_to(call: ir.Call) -> Iterator[str]:
    method = call.method
    if method in ("append", "extend", "appendleft", "put"):
        yield "kept"
    elif not (
        method in SINK_METHODS
        or method in SINKS
        or method in NUMERIC_SINKS
        or method.startswith(("log", "print", "write"))
    ):
        yield "handed"


def _is_it(expr: ir.Expr, path: str, display: ir.Expr | None) -> bool:
    return (display is not None and expr is display) or (bool(path) and expr.path == path)


def _mentions(expr: ir.Expr, path: str, display: ir.Expr | None) -> bool:
    """Whether the dict itself is in an expression: an entry that is taken out of it is not."""
    if _is_it(expr, path, display):
        return True
    if isinstance(expr, ir.Sub) and expr.base.path == path:
        return False
    if isinstance(expr, ir.Comp):
        return False  # made of what is in it: `{k: float(v) for k, v in stats.items()}`
    return any(_mentions(child, path, display) for child in expr.children())
