"""Which networks are in eval mode at a statement, by the text of the function, of its class and of its callers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.rules.detect.unseen.sights import Sight, sights

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.code.reading import asked_for_eval_mode, conjuncts
from gpulint.analysis.file.evidence import unmoved
from gpulint.analysis.torch.methods import GIVES_ITSELF
from gpulint.analysis.values.arguments import bind_sources

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_BY_NAME = re.compile(r"(?i)^_?(?:set_|to_|switch_to_|set_model_|set_to_)?eval(?:_mode|uation_mode)?$")


@dataclass(frozen=True, slots=True)
class Switch:
    """A network is put into eval mode, or into training mode, from a statement on."""

    path: str
    on: bool
    order: int
    branches: tuple[tuple[ir.If, bool], ...]  # what it stands under
    rescuing: bool
    at: ir.Expr

    def always(self, branches: tuple[tuple[ir.If, bool], ...]) -> bool:
        """Whether who stands under these branches has always come by here."""
        return not self.rescuing and self.branches == branches[: len(self.branches)]


@dataclass(frozen=True, slots=True)
class Settled:
    """A network is in eval mode: always, or under a condition. `where` says who puts it there."""

    always: bool
    where: str
    at: ir.Expr | None = None


class Settling:
    """Eval modes in one file."""

    def __init__(self, file: FileAnalysis) -> None:
        self._file = file
        self._switches: dict[ir.Function, list[Switch]] = {}
        self._sights: dict[ir.Function, list[Sight]] = {}

    def sights(self, function: ir.Function) -> list[Sight]:
        found = self._sights.get(function)
        if found is None:
            found = self._sights[function] = sights(self._file, function)
        return found

    def at(
        self, function: ir.Function, sight: Sight, paths: tuple[str, ...], depth: int = 2
    ) -> Settled | None:
        """Whether one of the networks is in eval mode at a statement of a function; None where nothing says so."""
        last = self._last(function, sight.order, paths)
        if last is not None:
            always = last.always(sight.branches)
            return Settled(always, f"`{last.path}` is in eval mode here", last.at) if last.on else None
        for path in paths:
            if self._made_settled(function, path):
                return Settled(True, f"`{path}` is in eval mode from its making on")
        return self._by_callers(function, paths, depth) if depth else None

    def _made_settled(self, function: ir.Function, path: str) -> bool:
        """Whether the constructor puts an attribute into eval mode, and no method into training mode."""
        info = self._file.class_of(function)
        own = function.params[0].name if function.params else "self"
        attr = path.removeprefix(f"{own}.").partition(".")[0] if path.startswith(f"{own}.") else ""
        made = function.cls.methods.get("__init__") if function.cls is not None else None
        if info is None or made is None or not attr or not made.params:
            return False
        settled = f"{made.params[0].name}.{attr}" in self._file.evidence[made].evals
        return settled and info.stays_in_eval(attr)

    def _last(self, function: ir.Function, order: int, paths: tuple[str, ...]) -> Switch | None:
        before = [switch for switch in self.switches(function) if switch.order < order]
        concerned = [one for one in before if any(_covers(one.path, path) for path in paths)]
        return concerned[-1] if concerned else None

    def _by_callers(self, function: ir.Function, paths: tuple[str, ...], depth: int) -> Settled | None:
        """Whether every caller in the file has put the network into eval mode before."""
        found: list[Settled] = []
        for caller, evidence in self._file.evidence.items():
            if caller is function or function.name not in evidence.called:
                continue
            for sight in self.sights(caller):
                for call in ir.own_calls(sight.statement):
                    if call.method != function.name:
                        continue
                    given = tuple(filter(None, (_given(function, call, path) for path in paths)))
                    settled = self.at(caller, sight, given, depth - 1) if given else None
                    if settled is None:
                        return None
                    found.append(settled)
        if not found:
            return None
        always = all(one.always for one in found)
        return Settled(always, f"whoever calls `{function.name}` has put it in eval mode", found[0].at)

    def switches(self, function: ir.Function) -> list[Switch]:
        found = self._switches.get(function)
        if found is None:
            found = self._switches[function] = []
            for sight in self.sights(function):
                for call in ir.own_calls(sight.statement):
                    found += _switched(call, sight)
                found += _asserted(sight)
        return found


def _asserted(sight: Sight) -> list[Switch]:
    """`assert not net.training`: who comes by here has a network in eval mode."""
    if not isinstance(sight.statement, ir.Check):
        return []
    tests = [test for value in sight.statement.values for test in conjuncts(value)]
    asked = [network for test in tests if (network := asked_for_eval_mode(test)) is not None]
    return [
        Switch(network.path, True, sight.order, sight.branches, sight.rescuing, network)
        for network in asked
        if network.path is not None
    ]


def settles_itself(function: ir.Function) -> bool:
    """Whether a function puts networks into eval mode whenever it runs, and none into training mode."""
    found = [
        switch
        for sight in sights(function.home, function)
        for call in ir.own_calls(sight.statement)
        for switch in _switched(call, sight)
    ]
    return bool(found) and all(switch.on for switch in found) and any(switch.always(()) for switch in found)


def _switched(call: ir.Call, sight: Sight) -> list[Switch]:
    func = call.func
    if not isinstance(func, ir.Attr):
        return []
    on = _mode(call)
    if on is None:
        return []
    base = unmoved(func).base if func.base.path is None else func.base
    paths = [base.path] if base.path is not None else []
    if not paths and isinstance(sight.statement, ir.Assign) and isinstance(base, ir.Call):
        if _is_tail(sight.statement.value, call):
            paths = [target.path for target in targets(sight.statement) if target.path is not None]
    for loop in sight.loops:
        if isinstance(loop, ir.For) and any(target.path in paths for target in targets(loop)):
            paths += [part.path for part in ir.walk(loop.iterable) if part.path is not None]
    return [Switch(path, on, sight.order, sight.branches, sight.rescuing, call) for path in paths]


def _mode(call: ir.Call) -> bool | None:
    """True for `eval()`, False for `train()`, None for anything else."""
    if call.method == "train":
        mode = call.argument(0, "mode")
        if mode is None:
            return None if call.keywords or len(call.args) > 1 else False
        return isinstance(mode, ir.Const) and mode.value is False
    return True if _BY_NAME.match(call.method) and len(call.args) <= 1 else None


def _is_tail(value: ir.Expr | None, call: ir.Call) -> bool:
    while value is not call and isinstance(value, ir.Call) and value.method in GIVES_ITSELF:
        value = value.func.base if isinstance(value.func, ir.Attr) else None
    return value is call


def _covers(switched: str, path: str) -> bool:
    """Whether a network, or what it is a part of, was switched. The object itself counts for what it has."""
    return f"{path}.".startswith(f"{switched}.")


def _given(function: ir.Function, call: ir.Call, path: str) -> str | None:
    """What the caller calls the network that the function calls `path`."""
    root, _, rest = path.partition(".")
    owner = call.func.base.path if isinstance(call.func, ir.Attr) else None
    if function.cls is not None and function.params and function.params[0].name == root:
        return None if owner is None else f"{owner}.{rest}" if rest else owner
    if not any(param.name == root for param in function.params):
        return path
    source = bind_sources(function, call, function.cls is not None).get(root)
    if source is None or source.path is None:
        return None
    return f"{source.path}.{rest}" if rest else source.path
