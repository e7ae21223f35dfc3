"""Networks that a training step runs beside the one it trains, known by what they are called, a teacher, a reward or a
reference model, or by the mode that the step puts them in, and not the others. Where grad is on, each saves its activations for gradients that nobody uses.

Whether somebody trains them after all, or has frozen them, is seldom to be seen here: that is left open.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from gpulint.rules.detect.kept.definitions import Definitions
from gpulint.rules.detect.unseen.fates import Fate, fate
from gpulint.rules.detect.unseen.networks import Networks, auxiliary
from gpulint.rules.detect.unseen.sights import Sight, sights

from gpulint.analysis.code import ir
from gpulint.analysis.code.assignments import targets
from gpulint.analysis.file.classes import ClassInfo
from gpulint.analysis.file.evidence import unmoved
from gpulint.analysis.questions.grad.freezing import switching_words
from gpulint.analysis.torch.backward import runs_backward
from gpulint.analysis.torch.roles import AUXILIARY, NETWORK, RUNS_NOT
from gpulint.analysis.values.values import Grad
from gpulint.answers import Answer, Question, Verdict, doubts_of, left_open, proven, refuted

if TYPE_CHECKING:
    from gpulint.analysis.file.program import FileAnalysis

_FREEZES = frozenset("requires_grad requires_grad_ set_requires_grad freeze toggle_grad".split())
_SELF_FREEZING = _FREEZES | {"no_grad", "inference_mode", "detach", "set_grad_enabled"}
_TEXTS = re.compile(
    r"(?i)(?:^|_)(?:ids|tokens|labels|texts?|prompts?|completions?|queries|responses|batch|mask)$"
)
_BOOKKEEPING = frozenset("eval train to parameters state_dict load_state_dict cuda half modules".split())
_TRAINERS = ("training_step", "compute_loss", "train_step")
_MOST = 3  # open questions: of a claim that leaves more, nothing is said


@dataclass(frozen=True, slots=True)
class SideNetwork:
    """A call of such a network, by its path or that of the function that runs it, with what is known of it."""

    function: ir.Function
    call: ir.Call
    path: str
    answers: tuple[Answer, ...]

    @property
    def doubts(self) -> tuple[str, ...]:
        return doubts_of(self.answers)

    @property
    def holds(self) -> bool:
        refuting = any(answer.verdict is Verdict.REFUTED for answer in self.answers)
        return not refuting and len(self.doubts) <= _MOST


class SideNetworks:
    """The calls of such networks in one file."""

    def __init__(self, file: FileAnalysis) -> None:
        self._file = file
        self._networks = Networks(file)

    @cached_property
    def found(self) -> list[SideNetwork]:
        """Every call that may be one, told or not."""
        if not self._file.uses_torch:
            return []
        found: list[SideNetwork] = []
        for function in self._file.module.functions:
            if self._trains(function):
                ones = list(self._of(function))
                through = {one.path for one in ones if any(map(_wants_gradient, one.answers))}
                # Where a gradient goes through it somewhere, as in a perceptual loss, it is there for that.
                found += [one for one in ones if one.path not in through]
        return found

    def _trains(self, function: ir.Function) -> bool:
        called = self._file.evidence[function].called
        if any(map(runs_backward, called)) or self._file.framework_backward(function):
            return True
        return function.name in _TRAINERS and function.cls is not None

    def _of(self, function: ir.Function) -> Iterator[SideNetwork]:
        around: list[Sight] = []
        looped = {t.path for s in ir.statements(function.body) if isinstance(s, ir.For) for t in targets(s)}
        for statement, call in ir.calls(function.body):
            path = auxiliary(call) or self._aside(function, call)
            if path is None or path in looped or call.method in _BOOKKEEPING or RUNS_NOT.search(call.method):
                continue
            if function.cls is not None and path.partition(".")[2] in function.cls.methods:
                continue  # a method of the same class: what it runs is looked at in itself
            around = around or sights(self._file, function)
            sight = next((one for one in around if one.statement is statement), None)
            if sight is None or sight.grad is Grad.DISABLED:
                continue
            known = self._known(function, call, path)
            if known is not None:
                answers = (*known, *self._asked(function, sight, call, path))
                yield SideNetwork(function, call, path, answers)

    def _aside(self, function: ir.Function, call: ir.Call) -> str | None:
        """The network that is called, where the function puts it into eval mode and another into training mode."""
        evidence = self._file.evidence[function]
        path, trained = call.func.path, evidence.trains - evidence.evals
        if path is None or path not in evidence.evals - evidence.trains or not (call.args or call.keywords):
            return None
        parts = any(one.startswith(f"{path}.") or path.startswith(f"{one}.") for one in trained)
        return path if trained and not parts else None

    def _known(self, function: ir.Function, call: ir.Call, path: str) -> tuple[Answer, ...] | None:
        """What is known of its being a network that runs; None where nothing says so."""
        if call.func.path == path or call.func.path == f"{path}.forward":
            known = self._file.treated_as_module(function, path)
            answer = proven if known else left_open
            clause = f"`{path}` is {'treated' if known else 'only named'} like a network"
            return (answer(Question.GRAPH, clause),)
        run = self._networks.run(function, call)
        return (*run.answers, *self._networks.by_name(run)) if run is not None else None

    # --- the questions -------------------------------------------------------------------------------------------

    def _asked(self, function: ir.Function, sight: Sight, call: ir.Call, path: str) -> Iterator[Answer]:
        if sight.grad is not Grad.ENABLED:
            yield left_open(
                Question.GRAD, "whether grad is on cannot be seen: something around it may switch it off"
            )
        becomes = fate(self._file, function, call)
        hooked = "register_forward_hook" in self._file.evidence[function].words
        if not becomes.any and becomes.lossy is None:
            if hooked:
                yield left_open(Question.READS, "only what a hook takes from it may be read")
            else:
                yield refuted(Question.READS, "nothing reads its result")
        yield from self._trained(function, path)
        yield self._fed(function, call, becomes)

    def _trained(self, function: ir.Function, path: str) -> Iterator[Answer]:
        attr = path.rpartition(".")[2]
        if switching_words(self._file.evidence, _FREEZES) or self._file.is_frozen(function, path):
            yield refuted(Question.TRAINED, "the file freezes networks")
        elif any(_gives_parameters(other, attr) for other in self._file.module.functions):
            yield refuted(Question.TRAINED, f"the parameters of `{path}` are handed to somebody")
        elif self._freezes_itself(function, path):
            yield refuted(Question.TRAINED, f"the class of `{path}` speaks of gradients itself")
        else:
            named = AUXILIARY.search(path.rpartition(".")[2]) is not None
            said = "its name" if named else "eval mode beside a network in training mode"
            yield left_open(Question.TRAINED, f"only {said} says that nobody trains `{path}`")
            yield left_open(
                Question.GRAPH, f"`{path}` may be frozen where it is made, and then makes no graph"
            )

    def _freezes_itself(self, function: ir.Function, path: str) -> bool:
        """Whether the class in the project that a parameter is annotated with, or that an attribute is made of, freezes its
        parts or switches grad off."""
        param = next((param for param in function.params if param.name == path), None)
        made = [param.annotation.path] if param is not None and param.annotation is not None else []
        for other in self._file.module.functions:
            for statement in ir.statements(other.body):
                if isinstance(statement, ir.Assign) and any(
                    target.path == path for target in statement.targets
                ):
                    made += [c.func.path for c in ir.own_calls(statement) if c.method[:1].isupper()]
        for name in filter(None, made):
            full = self._file.names.qualify(name)
            value = self._file.imported_value(full) if full is not None else None
            info = self._file.classes.get(name) or (value.ref if value is not None else None)
            if isinstance(info, ClassInfo) and switching_words(info.cls.methods.values(), _SELF_FREEZING):
                return True
        return False

    def _fed(self, function: ir.Function, call: ir.Call, becomes: Fate) -> Answer:
        """Whether what goes into it wants a gradient: what another network has made, where grad is on, does."""
        if becomes.only_read:
            return proven(Question.BACKWARD, "only numbers are made of what it gives")
        given = [part for arg in (*call.args, *(v for _, v in call.keywords)) for part in ir.walk(arg)]
        if any(isinstance(part, ir.Call) and self._is_network(function, part) for part in given):
            return refuted(Question.BACKWARD, "it is given what another network makes")
        names = {part.id for part in given if isinstance(part, ir.Name)}
        names -= {param.name for param in function.params}
        texts = {name for name in names if _TEXTS.search(name)}
        made = self._made_by_networks(function, names - texts, call)
        if made is not None:
            return refuted(
                Question.BACKWARD, f"`{made}` is made by a network, and may want a gradient through it"
            )
        if texts:
            return left_open(
                Question.BACKWARD, f"only its name says that `{min(texts)}` is data without a gradient"
            )
        return proven(Question.BACKWARD, "what it is given is data")

    def _made_by_networks(self, function: ir.Function, names: set[str], call: ir.Call) -> str | None:
        around = {id(sight.statement): sight for sight in sights(self._file, function)}
        start = next(s for s in ir.statements(function.body) if call in ir.own_calls(s))
        definitions = Definitions(function)
        seen: set[tuple[str, int]] = set()
        queue = [(name, start) for name in names]
        while queue:
            name, at = queue.pop()
            if (name, id(at)) in seen:
                continue
            seen.add((name, id(at)))
            for statement in _bindings(definitions, name, at, around[id(at)]):
                if call in ir.own_calls(statement) or statement.value is None:
                    continue
                if around[id(statement)].grad is Grad.DISABLED or _is_cut(statement.value):
                    continue
                if self._has_network(function, statement):
                    return name
                queue += [
                    (part.id, statement) for part in ir.walk(statement.value) if isinstance(part, ir.Name)
                ]
        return None

    def _has_network(self, function: ir.Function, statement: ir.Stmt) -> bool:
        return any(self._is_network(function, call) for call in ir.own_calls(statement))

    def _is_network(self, function: ir.Function, call: ir.Call) -> bool:
        path = call.func.path
        if path is not None and (call.args or call.keywords):
            if self._file.treated_as_module(function, path) or NETWORK.search(path.rpartition(".")[2]):
                return True
        run = self._networks.run(function, call)
        if run is None or any(answer.verdict is Verdict.REFUTED for answer in run.answers):
            return False
        return not any(answer.verdict is Verdict.REFUTED for answer in self._networks.by_name(run))


def _bindings(definitions: Definitions, name: str, at: ir.Stmt, sight: Sight) -> Iterator[ir.Assign]:
    """The assignments that may have given a name what it is at a statement: in a loop, also those of the round before."""
    rounds = [statement for loop in sight.loops[:1] for statement in ir.statements(loop.body)]
    reaching = [definition.stmt for definition in definitions.reaching(name, at)[0]]
    for statement in {id(one): one for one in (*reaching, *rounds)}.values():
        if isinstance(statement, ir.Assign) and any(target.path == name for target in targets(statement)):
            yield statement


def _wants_gradient(answer: Answer) -> bool:
    return answer.verdict is Verdict.REFUTED and answer.question is Question.BACKWARD


def _gives_parameters(function: ir.Function, attr: str) -> bool:
    return any(
        call.method in ("parameters", "named_parameters", "get_parameters")
        and (unmoved(call.func).base.path or "").rpartition(".")[2] == attr
        for _, call in ir.calls(function.body)
        if isinstance(call.func, ir.Attr)
    )


def _is_cut(value: ir.Expr) -> bool:
    return any(
        (
            isinstance(part, ir.Call)
            and part.method in ("detach", "item", "argmax", "generate", "sample", "long")
        )
        or (isinstance(part, ir.Attr) and part.attr == "data")
        for part in ir.walk(value)
    )
