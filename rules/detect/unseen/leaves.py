"""Where something that is kept comes from, within the round that keeps it: a network's output, or what a call out of sight
gives; and whether it was moved to the host on the way."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.rules.detect.unseen.networks import Networks
from gpulint.rules.detect.unseen.sights import Sight

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.file.evidence import LOSSY
from gpulint.analysis.file.lookup import parts_given, qualified
from gpulint.analysis.torch import frameworks
from gpulint.analysis.torch.names import HOST_ATTRS, KEEPS_GRAPH, PAIRS, REDUCTIONS, TO_HOST
from gpulint.analysis.torch.roles import RUNS, RUNS_NOT

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_DEPTH = 6
_TO_HOST = TO_HOST | {"cpu", "to_cpu", "to_numpy", "to_np", "asnumpy", "len", "int", "float", "str", "bool"}
_HOST_NAME = re.compile(
    r"(?i)(?:^|_)(?:to_)?(?:cpu|numpy|np|list|host|string|str|json|decoded|path|name)s?(?:_|$)|batch_decode"
)
SMALL = re.compile(
    r"(?i)(?:^|_)(?:loss|losses|acc|accuracy|correct|count|num|total|n|time|reward|lr|step|epoch|metric|score|error)s?(?:_|$)"
)
_GATHERS = frozenset(
    "gather_for_metrics gather all_gather pad_across_processes reduce concat_all_gather".split()
)


@dataclass(frozen=True, slots=True)
class Leaf:
    """One thing that is kept. `maker` is the call that it comes from; `doubt` says what is not seen of that."""

    expr: ir.Expr
    maker: ir.Call | None
    on_host: bool = False
    small: bool = False
    runs: bool = False  # the maker runs a network, by what it is or by its name
    doubt: str | None = None


class Leaves:
    """The origins of what is kept, in one file."""

    def __init__(self, file: FileAnalysis) -> None:
        self._file = file
        self._networks = Networks(file)

    def of(self, function: ir.Function, sight: Sight, expr: ir.Expr) -> Leaf | None:
        """Where an expression comes from; None for constants, labels, and what is no output of anything."""
        within = sight.loops[-1].body if sight.loops else function.body
        outer = sight.loops[0] if sight.loops else None
        block = [outer, *ir.statements(outer.body)] if outer is not None else list(ir.statements(within))
        return self._of(function, [s for s in block if s is not None], expr, expr, _DEPTH, False)

    def _of(
        self,
        function: ir.Function,
        block: list[ir.Stmt],
        kept: ir.Expr,
        expr: ir.Expr,
        depth: int,
        small: bool,
    ) -> Leaf | None:
        if not depth:
            return None
        if isinstance(expr, ir.Sub):
            return self._of(function, block, kept, expr.base, depth, small)
        if isinstance(expr, ir.Attr):
            if expr.attr in HOST_ATTRS:
                return None
            return self._of(function, block, kept, expr.base, depth, small)
        if isinstance(expr, ir.Op) and expr.op in ("+", "-", "*", "/", "if", "neg"):
            for operand in expr.operands[1:] if expr.op == "if" else expr.operands:
                found = self._of(function, block, kept, operand, depth - 1, small)
                if found is not None:
                    return found
            return None
        if isinstance(expr, ir.Name):
            return self._of_name(function, block, kept, expr.id, depth, small)
        return self._of_call(function, block, kept, expr, depth, small) if isinstance(expr, ir.Call) else None

    def _of_call(
        self,
        function: ir.Function,
        block: list[ir.Stmt],
        kept: ir.Expr,
        call: ir.Call,
        depth: int,
        small: bool,
    ) -> Leaf | None:
        name, func = call.method, call.func
        if name in _TO_HOST or _HOST_NAME.search(name) or _moves_to_cpu(call):
            return Leaf(kept, call, on_host=True)
        full = qualified(self._file, function, func.path) or ""
        if full.partition(".")[0] in frameworks.HOST_LIBRARIES:
            return Leaf(kept, call, on_host=True)
        small = (
            small
            or name in REDUCTIONS | {"argmax", "argmin", "multinomial"}
            or LOSSY.search(name) is not None
        )
        if isinstance(func, ir.Attr) and (
            name in KEEPS_GRAPH | PAIRS | REDUCTIONS | {"detach", "argmax", "softmax"}
        ):
            if not full:
                return self._of(function, block, kept, func.base, depth - 1, small)
        if name == "data_parallel":
            return Leaf(kept, call, small=small, runs=True)
        if full.startswith("torch.") or name in _GATHERS:
            for arg in call.args:
                for item in arg.items if isinstance(arg, ir.Seq) else (arg,):
                    found = self._of(function, block, kept, item, depth - 1, small)
                    if found is not None:
                        return found
            return None
        return self._made_by(function, kept, call, small)

    def _made_by(self, function: ir.Function, kept: ir.Expr, call: ir.Call, small: bool) -> Leaf | None:
        path = call.func.path or call.method
        followed = self._file.facts.get(function)
        if followed is not None and any(one.call is call and one.result.dense for one in followed.forwards):
            return Leaf(kept, call, small=small, runs=True)
        run = self._networks.run(function, call)
        if run is not None:
            return Leaf(
                kept, call, small=small, runs=True, doubt=f"what `{path}` gives of a batch may be small"
            )
        if path and self._file.treated_as_module(function, path.removesuffix(".forward")):
            return Leaf(kept, call, small=small, runs=True)
        if not (call.args or call.keywords):
            return None
        runs = RUNS.search(call.method) is not None and RUNS_NOT.search(call.method) is None
        return Leaf(
            kept,
            call,
            small=small,
            runs=runs,
            doubt=f"`{path}` is not seen: what it gives may be small, or on the host",
        )

    def _of_name(
        self, function: ir.Function, block: list[ir.Stmt], kept: ir.Expr, name: str, depth: int, small: bool
    ) -> Leaf | None:
        """What a name is bound to in the round; a loop over the items of something gives parts of that."""
        found: list[Leaf] = []
        if any(param.name == name for param in function.params) and name != "self":
            found.append(Leaf(kept, None, doubt=f"what `{name}` is has to be seen where it is called"))
        binding = [one for one in block if any(target.path == name for target in targets(one))]
        begun = any(_begins(one, name) and one.row < kept.row for one in binding)
        for statement in binding:
            if begun and statement.row > kept.row:
                continue  # each round begins it anew: what it gets after it was kept is for others
            value = statement.value if isinstance(statement, ir.Assign) else None
            if isinstance(statement, ir.For):
                value = _looped(statement.iterable)
            if value is None or any(isinstance(p, ir.Name) and p.id == name for p in ir.walk(value)):
                if value is not None and _is_moved(value):
                    return Leaf(kept, None, on_host=True)
                found += self._through(function, kept, value, name, small)
                continue
            if isinstance(value, ir.Call) and self._brought_back_inside(function, statement, value, name):
                return Leaf(kept, value, on_host=True)
            leaf = self._of(function, block, kept, value, depth - 1, small or SMALL.search(name) is not None)
            if leaf is not None and leaf.on_host:
                return leaf
            found += [leaf] if leaf is not None else []
        return min(found, key=lambda leaf: (not leaf.runs, leaf.maker is None), default=None)

    def _through(
        self, function: ir.Function, kept: ir.Expr, value: ir.Expr | None, name: str, small: bool
    ) -> Iterator[Leaf]:
        """`x = layer(x)`: what a network makes of the name's own value."""
        if isinstance(value, ir.Call) and not any(part.path == name for part in ir.walk(value.func)):
            leaf = self._made_by(function, kept, value, small)
            if leaf is not None and leaf.runs:
                yield leaf

    def _brought_back_inside(
        self, function: ir.Function, statement: ir.Stmt, call: ir.Call, name: str
    ) -> bool:
        """Whether the function that gives it, beside other things, has moved it to the host wherever it returns."""
        target = statement.targets[0] if isinstance(statement, ir.Assign) else None
        given = parts_given(function, call, target, name) if target is not None else []
        return bool(given) and all(
            _ends_on_host(part) or _is_bound_on_host(home, part) for home, _, part in given
        )


def _begins(statement: ir.Stmt, name: str) -> bool:
    """Whether a statement binds a name to something that is not made of its own value."""
    value = statement.value if isinstance(statement, ir.Assign) else None
    return value is not None and not any(part.path == name for part in ir.walk(value))


def _is_bound_on_host(function: ir.Function, part: ir.Expr) -> bool:
    """Whether everything that a function binds a name to is moved to the host in the end."""
    values = [
        statement.value
        for statement in ir.statements(function.body)
        if isinstance(statement, ir.Assign) and any(target.path == part.path for target in targets(statement))
    ]
    return part.path is not None and bool(values) and all(_ends_on_host(value) for value in values)


def _ends_on_host(value: ir.Expr | None) -> bool:
    """`x.cpu()`, `x.detach().cpu().squeeze()`."""
    while isinstance(value, ir.Call):
        if value.method in _TO_HOST or _moves_to_cpu(value):
            return True
        value = value.func.base if isinstance(value.func, ir.Attr) else None
    return False


def _looped(iterable: ir.Expr) -> ir.Expr | None:
    """`outputs` of `for k, v in outputs.items()`; a loop over data gives labels and inputs, which are none of the network's."""
    if (
        isinstance(iterable, ir.Call)
        and iterable.method in ("items", "values")
        and isinstance(iterable.func, ir.Attr)
    ):
        return iterable.func.base
    return None


def _is_moved(value: ir.Expr) -> bool:
    return any(
        isinstance(part, ir.Call) and (part.method in _TO_HOST or _moves_to_cpu(part))
        for part in ir.walk(value)
    )


def _moves_to_cpu(call: ir.Call) -> bool:
    given = (*call.args, *(value for _, value in call.keywords))
    named = [arg.path or "" for arg in given]
    if call.method == "to" and any(
        "device" in path and not re.search(r"(?:^|\.)(?:device|cuda|gpu)\w*$", path) for path in named
    ):
        return True  # `.to(self.eval_device)`: a device chosen for that
    return call.method == "to" and any(
        (isinstance(arg, ir.Const) and arg.value == "cpu")
        or (arg.path or "").endswith("cpu")
        or (isinstance(arg, ir.Call) and any(isinstance(a, ir.Const) and a.value == "cpu" for a in arg.args))
        for arg in given
    )
