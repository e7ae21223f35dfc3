"""How much goes through a network where it is run: batches of a whole data set, or one sample, once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.file.calls.effort import kept
from gpulint.analysis.questions.repeats.batches import gives_one_at_a_time
from gpulint.analysis.torch import frameworks

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_FEW = 16  # rounds
_OF_BATCHES = re.compile(r"(?i)batch|load|generator|(?:^|[._])dl(?:$|_)")
_DEPTH = 3
_COUNTED = frozenset({"range", "trange", "linspace"})
_FROM_HOST = frozenset({"from_numpy", "tensor", "as_tensor", "FloatTensor", "LongTensor", "Tensor"})
_ADDS_BATCH = frozenset({"unsqueeze", "unsqueeze_"})
_KEEPS = frozenset("to cuda float half double contiguous permute type clone detach long".split())


def goes_through_loader(file: FileAnalysis, function: ir.Function, call: ir.Call) -> bool:
    """Whether the innermost loop around a call goes through what a loader gives: batches of a size that fits the training."""
    around = ir.loops_around(function.body, call)
    innermost = file.loops.get(id(around[-1])) if around else None
    if innermost is None or not innermost.over_data or not isinstance(innermost.stmt, ir.For):
        return False
    named = (part.path or "" for part in ir.walk(innermost.stmt.iterable))
    return innermost.over_loader or any("load" in name.rpartition(".")[2].lower() for name in named)


def goes_through_batches(file: FileAnalysis, function: ir.Function, call: ir.Call) -> bool:
    """Whether batches go through a call for all that the text says: of a loader, or of what is called after them, in a loop
    around it or around a call of its function, or because a framework calls that with each."""
    return _through_batches(file, function, call, _DEPTH)


def _through_batches(file: FileAnalysis, function: ir.Function, call: ir.Call, depth: int) -> bool:
    around = ir.loops_around(function.body, call) or ()
    made_by = _comprehension_around(function, call)
    if any(_speaks_of_batches(loop) for loop in around) or goes_through_loader(file, function, call):
        return True
    if made_by is not None and any(map(_names_batches, (clause[:2] for clause in made_by.clauses))):
        return True
    if function.name in frameworks.PER_BATCH_HOOKS or function in file.started:
        return True
    if function is file.module.body or not depth:
        return False
    return _takes_batches(file, function, depth)


@kept
def _takes_batches(file: FileAnalysis, function: ir.Function, depth: int) -> bool:
    """The same of the calls of a function."""
    return any(
        _through_batches(home, caller, site, depth - 1) for home, caller, site in callers(file, function)
    )


def _speaks_of_batches(loop: ir.For | ir.While) -> bool:
    """`for batch in val_data`, `for x in generator`, `while True: x = next(loader_iter)`, `batcher.next_batch()`."""
    drawn = tuple(call for _, call in ir.calls(loop.body) if call.method.strip("_").startswith("next"))
    heads = (loop.target, loop.iterable) if isinstance(loop, ir.For) else ()
    return _names_batches((*heads, *drawn))


def _names_batches(roots: Iterable[ir.Expr]) -> bool:
    return any(_OF_BATCHES.search(part.path or "") for root in roots for part in ir.walk(root))


def is_few(loop: ir.For | ir.While) -> bool:
    """Whether a loop has as few rounds as the text says: `for i in range(8)`, `for x in (a, b)`, `for t in np.linspace(0, 1, 8)`."""
    if not isinstance(loop, ir.For):
        return False
    through = loop.iterable
    if isinstance(through, ir.Call) and through.method in ("tqdm", "enumerate") and through.args:
        through = through.args[0]
    if isinstance(through, ir.Seq):
        return len(through.items) <= _FEW
    if not isinstance(through, ir.Call) or through.method not in _COUNTED:
        return False
    counts = through.args[2:3] if through.method == "linspace" else through.args
    return bool(counts) and all(
        isinstance(arg, ir.Const) and isinstance(arg.value, int) and arg.value <= _FEW for arg in counts
    )


def is_called_in_a_loop(file: FileAnalysis, function: ir.Function) -> bool:
    """Whether a loop is seen to call a function, here or in another file."""
    return any(_is_in_a_loop(caller, call) for _, caller, call in callers(file, function))


def callers(file: FileAnalysis, function: ir.Function) -> Iterator[tuple[FileAnalysis, ir.Function, ir.Call]]:
    """The calls of a function by its name, other than its own, here and in the files that call it."""
    others = file.project.files_calling(file.filename, function) if file.project is not None else ()
    for home in (file, *(others or ())):
        for caller, call in _callers(home, function):
            if caller is not function:
                yield home, caller, call


def _is_in_a_loop(function: ir.Function, call: ir.Call) -> bool:
    """Whether a call stands in a loop, or in what a comprehension makes for each of its items."""
    return bool(ir.loops_around(function.body, call)) or _comprehension_around(function, call) is not None


def _comprehension_around(function: ir.Function, call: ir.Call) -> ir.Comp | None:
    """The comprehension that makes a call for each of its items."""
    for statement in ir.statements(function.body):
        for comp in ir.own_parts(statement):
            if isinstance(comp, ir.Comp):
                if any(part is call for element in comp.elements for part in ir.walk(element)):
                    return comp
    return None


def _callers(home: FileAnalysis, function: ir.Function) -> Iterator[tuple[ir.Function, ir.Call]]:
    """The calls of a function by its name in one file."""
    for site in home.calls_named(function.name):
        yield site.caller, site.call


def is_one_sample(file: FileAnalysis, function: ir.Function, call: ir.Call) -> bool:
    """Whether the first thing that a network is given was made a batch of one: `x[None]`, `x.unsqueeze(0)`, or comes from a
    loader that gives no more."""
    around = ir.loops_around(function.body, call)
    if around and gives_one_at_a_time(file, function, around[-1]):
        return True
    given = call.args[0] if call.args else next((value for _, value in call.keywords), None)
    return given is not None and _is_one(function, given, _DEPTH)


def _is_one(function: ir.Function, expr: ir.Expr, depth: int) -> bool:
    if isinstance(expr, ir.Name) and depth:
        values = _bound(function, expr.id)
        changes = [value for value in values if not _passes_on(value, expr.id)]
        wrapped = any(_is_one(function, value, 0) for value in values if value not in changes)
        return wrapped or (bool(changes) and all(_is_one(function, value, depth - 1) for value in changes))
    if isinstance(expr, ir.Sub):
        return _adds_first(expr.index) or (
            isinstance(expr.index, ir.Seq) and bool(expr.index.items) and _adds_first(expr.index.items[0])
        )
    if not isinstance(expr, ir.Call):
        return False
    if expr.method in _ADDS_BATCH:
        where = expr.argument(0, "dim") if isinstance(expr.func, ir.Attr) else None
        where = where if where is not None else expr.argument(1, "dim")
        return isinstance(where, ir.Const) and where.value == 0
    if expr.method == "expand_dims" and len(expr.args) > 1:
        return isinstance(expr.args[1], ir.Const) and expr.args[1].value == 0
    if expr.method in _KEEPS and isinstance(expr.func, ir.Attr):
        return _is_one(function, expr.func.base, depth)
    if expr.method in _FROM_HOST | {"Variable"} and expr.args:
        only = expr.args[0]
        listed = isinstance(only, ir.Seq) and len(only.items) == 1 and expr.method != "Variable"
        return listed or _is_one(function, only, depth)
    return False


def _passes_on(value: ir.Expr, name: str) -> bool:
    """`x = x.to(device)`, `x = x.unsqueeze(0)`."""
    return any(isinstance(part, ir.Name) and part.id == name for part in ir.walk(value))


def _adds_first(index: ir.Expr) -> bool:
    none = isinstance(index, ir.Const) and index.value is None
    return none or (index.path or "").endswith("newaxis")


def _bound(function: ir.Function, name: str) -> list[ir.Expr]:
    return [
        statement.value
        for statement in ir.statements(function.body)
        if isinstance(statement, ir.Assign) and statement.value is not None
        if any(target.path == name for target in statement.targets)
    ]
