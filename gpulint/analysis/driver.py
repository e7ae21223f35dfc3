"""One file followed from end to end: two rounds, facts out.

The first round learns (what attributes hold, how functions are called, which graphs are ever freed); the second
records, with all of that known.
"""

from __future__ import annotations

from gpulint.analysis.code import ir
from gpulint.analysis.file.asking import FileFacts
from gpulint.analysis.file.lookup import names_only_cpu
from gpulint.analysis.file.program import FileAnalysis
from gpulint.analysis.file.project import Project
from gpulint.analysis.file.summaries import Summary
from gpulint.analysis.flow.flow import Flow
from gpulint.analysis.settle import finish
from gpulint.analysis.torch import frameworks
from gpulint.analysis.values.constants import Constants
from gpulint.analysis.values.state import State
from gpulint.analysis.values.values import Grad

_BOTH = {Grad.ENABLED, Grad.DISABLED}

_KEY_WORDS = frozenset(
    "backward eval empty_cache collect no_grad inference_mode set_grad_enabled autograd retain_graph manual_backward "
    "register_forward_hook register_hook argmax detach item OutOfMemoryError from_numpy as_tensor tokenizer processor "
    "preprocess transform transforms last_hidden_state".split()
)


def analyse(module: ir.Module, filename: str, project: Project | None = None) -> FileFacts:
    """The facts of a lowered file; `project` resolves what it imports from its own project. Raises RecursionError where
    the file is nested deeper than the stack allows."""
    return Followed(module, filename, project, main=True).run()


class Followed(FileAnalysis):
    """A file whose functions are followed when they are asked for."""

    def __init__(
        self, module: ir.Module, filename: str, project: Project | None = None, main: bool = False
    ) -> None:
        if project is not None:
            project.follow = Followed  # how files that this one imports are followed
        super().__init__(module, filename, project, main)

    def run(self) -> FileFacts:
        wanted = self._relevant()
        for record in (False, True):
            self.record = record
            self.summaries = {}
            self.summaries_for = {}
            for function in wanted:
                self.summary(function)
        facts = self.function_facts
        finish(self, facts)
        self.effort.settle()
        return FileFacts(self, facts, not names_only_cpu(self))

    def _relevant(self) -> list[ir.Function]:
        """The functions worth following: those with loops, sums or key words, their callers, their classes' setup."""
        chosen = {
            function
            for function, evidence in self.evidence.items()
            if evidence.has_loop
            or evidence.accumulates
            or evidence.words & _KEY_WORDS
            or function.name in frameworks.PER_BATCH_HOOKS
        }
        chosen.add(self.module.body)
        names = {function.name for function in chosen}
        for _ in range(2):
            callers = {
                f for f, evidence in self.evidence.items() if f not in chosen and evidence.called & names
            }
            chosen |= callers
            names = {function.name for function in callers}
        owners = {function.cls for function in chosen if function.cls is not None}
        for function, evidence in self.evidence.items():
            if evidence.stored and (function.cls in owners or function.name == "__init__"):
                chosen.add(function)
        order = [function for function in self.module.functions if function in chosen]
        depths = self._depths()
        return sorted(
            order,
            key=lambda function: (
                function is not self.module.body,
                function.name != "__init__",
                depths.get(function, 0),
            ),
        )

    def _depths(self) -> dict[ir.Function, int]:
        """How many calls away a function is from those that nothing in the file calls, by names: callers are followed first,
        because they say what their callees are given."""
        named: dict[str, list[ir.Function]] = {}
        for function in self.module.functions:
            named.setdefault(function.name, []).append(function)
        called = {name for evidence in self.evidence.values() for name in evidence.called}
        depths = {function: 0 for function in self.module.functions if function.name not in called}
        queue = list(depths)
        for caller in queue:  # grows while it is gone through
            for name in self.evidence[caller].called & named.keys():
                for callee in named[name]:
                    if callee not in depths:
                        depths[callee] = depths[caller] + 1
                        queue.append(callee)
        return depths

    def summary(self, function: ir.Function) -> Summary | None:
        """The function's summary in this round; None while it is being made (recursion)."""
        found = self.summaries.get(function)
        if found is not None or function in self.running:
            return found
        if len(self.running) > 40:
            return None
        self.running.add(function)
        state = State(self.grad_at_entry(function))
        if function.parent is not None and function.name == "<lambda>":
            state.grad = Grad.ENABLED if not self.callers.get(function) else state.grad
        flow = Flow(self, function, self.evidence[function], state, self.record)
        self.states[function] = flow.state
        flow.run()
        self.states[function] = flow.state
        self.running.discard(function)
        self.summaries[function] = flow.summary
        if self.record:
            flow.events.into(flow.facts)
            flow.facts.steps = flow.summary.steps
            flow.facts.has_backward = flow.summary.backwards > 0
            flow.facts.needs_grad = flow.summary.autograd_grad
            self.facts[function] = flow.facts
        return flow.summary

    def summary_for(self, function: ir.Function, caller: Grad, constants: Constants) -> Summary | None:
        """The summary for a caller with this grad mode, where callers with and without grad share the function, that gives
        these constants to its parameters."""
        if function in self.running or len(self.running) > 40:
            return self.summary(function)
        entry = self.grad_at_entry(function)
        shared = caller is Grad.ENABLED and entry is Grad.UNKNOWN and self.callers.get(function) == _BOTH
        if not shared and not constants:
            return self.summary(function)
        key = (function, caller if shared else None, frozenset(constants.items()))
        found = self.summaries_for.get(key)
        if found is None:
            self.summary(function)
            self.running.add(function)
            flow = Flow(self, function, self.evidence[function], State(caller if shared else entry), False)
            flow.constants = constants
            flow.run()
            self.running.discard(function)
            found = self.summaries_for[key] = flow.summary
        return found
