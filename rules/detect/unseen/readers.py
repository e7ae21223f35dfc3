"""Who gets what a network gives, and whether they may want its gradient: helpers, callees by their name, an object's methods."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpulint.rules.detect.unseen.fates import Fate, fate, fate_of_place
from gpulint.rules.detect.unseen.giving_back import gives_back
from gpulint.rules.detect.unseen.networks import Networks

from gpulint.analysis.code import ir
from gpulint.analysis.file.calls.effort import Effort, kept
from gpulint.analysis.torch.backward import runs_backward

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

AUTOGRAD = frozenset("autograd requires_grad_ enable_grad register_hook retain_grad GradScaler".split())


class Readers:
    """The readers of the results of one file's networks."""

    def __init__(self, file: FileAnalysis, networks: Networks) -> None:
        self._file = file
        self._networks = networks

    def settled(self, function: ir.Function, call: ir.Call) -> str:
        """In a clause, why nobody that gets the result of a call can want its gradient; empty where that is not shown."""
        becomes = fate(self._file, function, call)
        if becomes.returned or becomes.backward:
            return ""
        if becomes.stored and not all(self._is_only_read(function, place) for place in becomes.places):
            return ""
        if not becomes.handed:
            return "only numbers are made of what it keeps" if becomes.stored else ""
        named = self._named(function, becomes)
        return f"no `{named}` of the project goes backward" if named else ""

    def _is_only_read(self, function: ir.Function, place: str) -> bool:
        """Whether the methods of the object read no more than numbers of an attribute, and nobody else reads it."""
        own = function.params[0].name if function.cls is not None and function.params else ""
        attr = place.removeprefix(f"{own}.")
        project = self._file.project
        if function.cls is None or not own or attr == place or "." in attr or project is None:
            return False
        elsewhere = re.compile(rb"(?<!\b%s)\.%s\b" % (own.encode(), attr.encode()))
        if project.contains(self._file.filename, elsewhere) or project.derived(function.cls.name):
            return False
        uses = [
            fate_of_place(self._file, method, f"{method.params[0].name}.{attr}")
            for method in function.cls.methods.values()
            if method.params
        ]
        return not any(one.goes_on or one.backward or one.lossy or one.kept for one in uses)

    @property
    def effort(self) -> Effort:
        return self._file.effort

    @kept
    def trains_below(self, function: ir.Function, depth: int = 3) -> bool:
        evidence = function.home.evidence[function]
        if any(map(runs_backward, evidence.called)) or evidence.words & (AUTOGRAD | {"zero_grad"}):
            return True
        if not depth:
            return False
        below = (self._networks.callee(function, call) for _, call in ir.calls(function.body))
        return any(
            one is not None and one is not function and self.trains_below(one, depth - 1) for one in below
        )

    @kept
    def is_read_inside(self, callee: ir.Function) -> bool:
        """Whether a function makes numbers of all that its networks give, and nothing else."""
        found = [fate(callee.home, callee, call) for call in self._networks.runs_in(callee)]
        return bool(found) and all(one.only_read and one.by_name is None for one in found)

    @kept
    def hands_back(self, callee: ir.Function) -> bool:
        """Whether a function returns what its networks give, and neither keeps it nor goes backward: who makes numbers of what
        it returns is the last that could."""
        found = [fate(callee.home, callee, call) for call in self._networks.runs_in(callee)]
        kept = any(one.stored or one.backward for one in found)
        if kept or not any(one.returned for one in found):
            return False
        return not (self.keeps_to_itself(callee) or self.trains_below(callee))

    @kept
    def keeps_to_itself(self, callee: ir.Function, depth: int = 2) -> bool:
        """Whether a function runs networks and returns something else: what is told about them, and no tensor of theirs."""
        runs = self._networks.runs_in(callee)
        if not runs or callee.is_generator:
            return False
        below = {id(run): self._networks.callee(callee, run) for run in runs} if depth else {}
        giving = [
            run
            for run in runs
            if (inner := below.get(id(run))) is None
            or inner is callee
            or not self.keeps_to_itself(inner, depth - 1)
        ]
        return not gives_back(callee, giving)

    def harmless(self, function: ir.Function, becomes: Fate) -> str:
        """The function that is given the result, where all that the project has of that name are read and none goes backward
        or keeps what it is given; empty where one of them is out of sight."""
        if becomes.stored or becomes.backward or becomes.lossy or not becomes.handed:
            return ""
        return self._named(function, becomes)

    def _named(self, function: ir.Function, becomes: Fate) -> str:
        """The first function that is given the result, where none of the project's that have these names goes backward."""
        for call in becomes.handed:
            callee = self._networks.callee(function, call)
            named = [callee] if callee is not None else self._networks.namesakes(call)
            if not named or any(self.trains_below(one) for one in named):
                return ""
        return becomes.handed[0].method
