"""Loops told by their rounds: copies of weights under the number of a round, `states[epoch] = deepcopy(net.state_dict())`,
and loops over the members of an ensemble."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.analysis.code import ir
from gpulint.analysis.code.following import ends_at_once
from gpulint.analysis.code.reading import origins
from gpulint.analysis.torch import frameworks

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import Hold

_COUNTING = frozenset("range trange count enumerate".split())


def counts_micro_batches(hold: Hold) -> bool:
    """Whether it is a local sum over the micro-batches of one step, as many as a library's setting says."""
    loops = [loop.stmt for loop in hold.rounds.loops]
    return (
        hold.place.holder_kind == "variable"
        and bool(loops)
        and all(isinstance(loop, ir.For) and _counts_them(hold.function, loop.iterable) for loop in loops)
    )


def _counts_them(function: ir.Function, iterable: ir.Expr) -> bool:
    """`range(engine.gradient_accumulation_steps())`, by way of a name as well."""
    if not isinstance(iterable, ir.Call) or iterable.method not in _COUNTING or len(iterable.args) != 1:
        return False
    count = iterable.args[0]
    values = [count, *(origins(function, count) if isinstance(count, ir.Name) else [])]
    return any(
        isinstance(part, ir.Attr) and part.attr in frameworks.MICRO_BATCHES
        for value in values
        for part in ir.walk(value)
    )


def in_one_round(hold: Hold) -> bool:
    """Whether each loop that it outlives ends with the first round."""
    loops = hold.rounds.loops
    return bool(loops) and all(ends_at_once(loop.stmt) for loop in loops)


def _calls_items(loop: ir.For | ir.While) -> bool:
    """`[net(x) for net, x in zip(self.nets, parts)]`: as many rounds as there are networks."""
    if not isinstance(loop, ir.For):
        return False
    names = {part.id for part in ir.walk(loop.target) if isinstance(part, ir.Name)}
    return any(isinstance(call.func, ir.Name) and call.func.id in names for _, call in ir.calls(loop.body))


def over_members(hold: Hold) -> bool:
    """Whether a list or a local dict gets a slot for each network of an ensemble: `for i, net in enumerate(self.critics)`,
    where the network is run, or its number picks the object's own optimizer."""
    if hold.place.how == "comprehension" and len(hold.rounds.loops) == 1:
        return _calls_items(hold.rounds.loops[0].stmt)
    if (
        hold.place.how != "item"
        or hold.place.holder_kind != "variable"
        or len(hold.rounds.loops) != 1
        or hold.rounds.over_data
    ):
        return False
    loop = hold.rounds.loops[0].stmt
    own = hold.function.params[0].name if hold.function.cls is not None and hold.function.params else None
    if not isinstance(loop, ir.For) or own is None:
        return False
    iterable, target = loop.iterable, loop.target
    number = None
    if isinstance(iterable, ir.Call) and iterable.method == "enumerate" and isinstance(target, ir.Seq):
        number = target.items[0].path
        iterable, target = iterable.args[0], target.items[-1]
    base = iterable.base if isinstance(iterable, ir.Sub) else iterable
    if not (base.path or "").startswith(f"{own}.") or not isinstance(target, ir.Name):
        return False
    for statement in ir.statements(loop.body):
        for part in ir.own_parts(statement):
            if isinstance(part, ir.Call) and part.func.path == target.id:
                return True
            if isinstance(part, ir.Sub) and number is not None and part.index.path == number:
                picked = part.base.base if isinstance(part.base, ir.Sub) else part.base
                if (picked.path or "").startswith(f"{own}."):
                    return True
    return False
