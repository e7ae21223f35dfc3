"""Evaluations whose network is out of sight: behind a method or a helper that the interpreter cannot follow to a forward,
or beside a training step, for a picture or a log line.

Every question is asked of the text. What is not shown is left open and told as a doubt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING

from gpulint.rules.detect.unseen.fates import Fate, fate
from gpulint.rules.detect.unseen.networks import Known, Networks, Run, auxiliary
from gpulint.rules.detect.unseen.readers import AUTOGRAD, Readers
from gpulint.rules.detect.unseen.settling import Settling, settles_itself
from gpulint.rules.detect.unseen.sights import Sight

from gpulint.analysis.code import ir
from gpulint.analysis.file.differentiating import differentiated
from gpulint.analysis.file.lookup import names_only_cpu
from gpulint.analysis.questions.device.by_constant import everything_on_cpu, speaks_of_no_device
from gpulint.analysis.questions.grad.frozen_networks import is_frozen
from gpulint.analysis.torch import frameworks
from gpulint.analysis.torch.backward import runs_backward
from gpulint.analysis.torch.roles import EVALUATES, PRODUCES, TRAINS
from gpulint.analysis.values.values import Grad
from gpulint.answers import Answer, Question, Verdict, doubts_of, left_open, proven, refuted

if TYPE_CHECKING:
    from gpulint.analysis.file.facts import Forward
    from gpulint.analysis.file.program import FileAnalysis

_MOST = 3  # open questions: of a claim that leaves more, nothing is said
_GPU = ("cuda", "gpu", "device", "accelerat")
_SWITCHES = frozenset({"no_grad", "inference_mode", "set_grad_enabled"})
_OTHER_PHASE = re.compile(r"(?i)^(?:val\w*|test\w*|eval\w*|dev|forward|infer\w*|predict\w*)$")


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A call that runs a network where nobody goes backward, with what is known of that."""

    function: ir.Function
    sight: Sight
    run: Run
    answers: tuple[Answer, ...]
    beside_training: bool = False

    @property
    def doubts(self) -> tuple[str, ...]:
        return doubts_of(self.answers)

    @property
    def holds(self) -> bool:
        refuting = any(answer.verdict is Verdict.REFUTED for answer in self.answers)
        return not refuting and len(self.doubts) <= _MOST


class UnseenEvaluations:
    """The evaluations of one file, by function."""

    def __init__(self, file: FileAnalysis) -> None:
        self._file = file
        self._settling = Settling(file)
        self.networks = Networks(file)
        self.readers = Readers(file, self.networks)

    def considered(self, function: ir.Function) -> list[Evaluation]:
        """The calls of a function that may be such, told or not."""
        if not self._may_evaluate(function):
            return []
        known = self._file.facts.get(function)
        forwards = {id(one.call) for one in known.forwards} if known is not None else set()
        return [
            Evaluation(function, sight, run, self._answers(function, sight, run), self._trains(function))
            for sight in self._settling.sights(function)
            for call in ir.own_calls(sight.statement)
            if id(call) not in forwards and sight.grad is not Grad.DISABLED and not sight.rescuing
            if (run := self.networks.run(function, call)) is not None
        ]

    def of_forward(self, function: ir.Function, forward: Forward) -> Evaluation | None:
        """The same of a forward that the interpreter has seen, where it could not tell what is done with its result."""
        if not self._may_evaluate(function) or forward.mode.grad is Grad.DISABLED or forward.result.freed:
            return None
        sight = next((s for s in self._settling.sights(function) if s.statement is forward.stmt), None)
        known_facts = self._file.facts.get(function)
        if sight is None or sight.grad is Grad.DISABLED or known_facts is None or forward.result.by_choice:
            return None
        if known_facts.needs_grad or known_facts.uses_autograd or forward.mode.in_handler:
            return None
        known = forward.module.proven and not forward.module.by_role
        path = forward.module.path or "the model"
        clause = f"`{path}` is a network" if known else f"only its name says that `{path}` is a network"
        answer = proven(Question.GRAPH, clause) if known else left_open(Question.GRAPH, clause)
        callee = self.networks.callee(function, forward.call)
        run = Run(forward.call, forward.module.path, (answer,), callee, direct=callee is None)
        answers = self._answers(function, sight, run)
        return Evaluation(function, sight, run, answers, self._trains(function))

    # --- the function --------------------------------------------------------------------------------------------

    def _may_evaluate(self, function: ir.Function) -> bool:
        if not self._file.uses_torch or function.name in ("forward", "__init__", "__call__", "<lambda>"):
            return False
        return self._file.grad_at_entry(function) is not Grad.DISABLED

    def _trains(self, function: ir.Function) -> bool:
        evidence = self._file.evidence[function]
        own = any(map(runs_backward, evidence.called)) or "zero_grad" in evidence.called
        return own or TRAINS.search(function.name) is not None

    @cached_property
    def _differentiated(self) -> frozenset[ir.Function]:
        return differentiated(self._file)

    # --- the questions -------------------------------------------------------------------------------------------

    def _answers(self, function: ir.Function, sight: Sight, run: Run) -> tuple[Answer, ...]:
        """The cheap questions first, up to the first that refutes the claim."""
        found: list[Answer] = []
        for answer in self._asked(function, sight, run):
            found.append(answer)
            if answer.verdict is Verdict.REFUTED:
                break
        return tuple(found)

    def _asked(self, function: ir.Function, sight: Sight, run: Run) -> Iterator[Answer]:
        yield from run.answers
        if self._guards_itself(run.call):
            yield refuted(Question.GRAD, f"transformers' `{run.call.method}` switches grad off by itself")
            return
        yield self._grad(sight)
        words = self._file.evidence[function].words
        if "training" in words and words & _SWITCHES:
            yield refuted(
                Question.GRAD, f"`{function.name}` asks for the mode and switches grad off by itself"
            )
        yield from self._trained(function, run)
        becomes = fate(self._file, function, run.call)
        if self._trains(function):
            yield from self._beside_training(function, sight, run, becomes)
        else:
            reached = self._reached(function, sight, run, becomes)
            yield reached
            yield self._backward(function, run, becomes)
            yield self._reads(function, sight, run, becomes, reached)
        yield from self._device(run)
        yield from self.networks.by_name(run)

    def _guards_itself(self, call: ir.Call) -> bool:
        """`model.generate(…)`, `trainer.prediction_step(…)` in a program that uses transformers."""
        if call.method not in frameworks.NO_GRAD_METHODS | frameworks.HF_TRAINER_NO_GRAD:
            return False
        roots = {full.partition(".")[0] for full in self._file.module.imports.values()}
        return bool(roots & {"transformers", "trl", "trlx", "peft"})

    def _trained(self, function: ir.Function, run: Run) -> Iterator[Answer]:
        """Whether all the networks that may run are frozen."""
        networks = [
            path
            for path in _concerned(function, run)
            if self.networks.known(function, path) in (Known.TREATED, Known.PART)
        ]
        if networks and all(is_frozen(self._file, function, path) for path in networks):
            yield refuted(Question.TRAINED, f"`{networks[0]}` is frozen where it is made")

    def _grad(self, sight: Sight) -> Answer:
        if sight.grad is Grad.ENABLED:
            return proven(Question.GRAD, "grad is on here")
        return left_open(
            Question.GRAD, "whether grad is on cannot be seen: something around it may switch it off"
        )

    def _reached(self, function: ir.Function, sight: Sight, run: Run, becomes: Fate) -> Answer:
        """Whether this evaluates."""
        depth = 0 if self._is_part(function) else 2
        settled = self._settling.at(function, sight, _concerned(function, run), depth)
        if settled is not None and settled.always:
            return proven(Question.REACHED, settled.where, settled.at)
        if function.name != "<module>" and self._ends_as_numbers(run, becomes):
            return proven(Question.REACHED, "no phase needs the gradient of what is only read as numbers")
        if settled is not None:
            return left_open(Question.REACHED, f"{settled.where} only under a condition", settled.at)
        if self._is_part(function):
            return refuted(
                Question.REACHED, "it runs in a method of a module, as a part of whatever calls that"
            )
        unsure = any(
            answer.verdict is Verdict.OPEN and answer.question is Question.GRAPH for answer in run.answers
        )
        if not becomes.only_read and (unsure or becomes.kept is None):
            return refuted(
                Question.REACHED, "nothing puts it in eval mode, and its result goes on as a tensor"
            )
        name = function.name if function.name != "<module>" else PurePath(self._file.filename).stem
        if function.name == "<module>" and run.callee is not None:
            return refuted(Question.REACHED, f"whether `{run.callee.name}` evaluates is for itself to say")
        owner = function.cls.name if function.cls is not None else ""
        if EVALUATES.search(name) or EVALUATES.search(_words(owner)):
            if run.callee is not None and run.callee.home is not self._file and settles_itself(run.callee):
                return proven(
                    Question.REACHED, f"`{run.callee.name}` puts the network into eval mode by itself"
                )
            return left_open(Question.REACHED, f"only its name says that `{name}` evaluates")
        if PRODUCES.search(name):
            return left_open(Question.REACHED, f"only its name says that nobody trains in `{name}`")
        why = "neither eval mode nor a name says that this evaluates"
        # A function may act in rounds of others, and a network that is known has been asked about already.
        script = function.name == "<module>" and bool(sight.loops)
        if script and unsure and becomes.only_read and becomes.by_name is None:
            return left_open(Question.REACHED, f"{why}, only that nothing but numbers is left of it")
        return refuted(Question.REACHED, why)

    def _is_part(self, function: ir.Function) -> bool:
        info = self._file.class_of(function)
        return info is not None and info.is_module

    def _backward(self, function: ir.Function, run: Run, becomes: Fate) -> Answer:
        if becomes.backward:
            return refuted(Question.BACKWARD, "a backward goes through what it gives")
        if function in self._differentiated or self._file.evidence[function].words & AUTOGRAD:
            return refuted(Question.BACKWARD, "this function asks for gradients by other means than backward")
        if run.callee is not None and self.readers.trains_below(run.callee):
            return refuted(Question.BACKWARD, f"`{run.callee.name}` trains")
        return proven(Question.BACKWARD, f"nothing in `{function.name}` goes backward")

    def _beside_training(
        self, function: ir.Function, sight: Sight, run: Run, becomes: Fate
    ) -> Iterator[Answer]:
        """In a function that trains: only what is made for a look at it, now and then, or read as numbers alone."""
        if auxiliary(run.call) is None and self._ends_as_numbers(run, becomes):
            yield proven(Question.BACKWARD, "only numbers are made of what it gives")
            return
        phase = self._phase(function) if becomes.backward else None
        if phase is not None and not any(_asks_phase(branch.test) for branch, _ in sight.branches):
            other = self._branch_of_other_phase(function, sight, phase)
            if other is not None:
                yield proven(
                    Question.REACHED, f"`{phase}` has a branch of its own for what does not train", other
                )
            else:
                yield left_open(Question.REACHED, f"only `{phase}` says whether it trains")
        elif becomes.backward or becomes.goes_on or becomes.lossy or becomes.kept or not becomes.any:
            yield refuted(Question.BACKWARD, "a backward may go through what it gives")
        elif becomes.shown is None:
            yield refuted(Question.READS, "it is no picture and no text, but a number of the training")
        elif not any(_now_and_then(branch.test) for branch, _ in sight.branches):
            yield refuted(Question.REPEATS, "nothing says that it is for a look now and then")
        else:
            yield proven(Question.BACKWARD, "what it gives is only shown")
            if becomes.by_name is not None:
                yield _by_name(becomes.by_name)

    def _ends_as_numbers(self, run: Run, becomes: Fate) -> bool:
        """Whether nothing but numbers is left of what a helper of the project computes with a network."""
        read = becomes.only_read and becomes.by_name is None
        return read and run.callee is not None and self.readers.hands_back(run.callee)

    def _phase(self, function: ir.Function) -> str | None:
        """What says whether a function trains, where it goes backward in that phase alone and never switches grad off."""
        evidence = self._file.evidence[function]
        if evidence.words & _SWITCHES or not any(map(_OTHER_PHASE.search, evidence.strings)):
            return None
        found: str | None = None
        for sight in self._settling.sights(function):
            if any(runs_backward(call.method) for call in ir.own_calls(sight.statement)):
                asked = [
                    name for branch, holds in sight.branches if holds and (name := _asks_phase(branch.test))
                ]
                if not asked:
                    return None
                found = asked[0]
        return found

    def _branch_of_other_phase(self, function: ir.Function, at: Sight, phase: str) -> ir.Stmt | None:
        """`if to_do == "forward":` in the same loop as the call: the program runs it in that phase, too."""
        for sight in self._settling.sights(function):
            together = bool(at.loops) and at.loops[-1] in sight.loops
            for branch, holds in sight.branches if together else ():
                test = branch.test
                if holds and isinstance(test, ir.Op) and test.op == "==" and test.operands[0].path == phase:
                    value = test.operands[1]
                    if isinstance(value, ir.Const) and _OTHER_PHASE.search(str(value.value)):
                        return branch
        return None

    def _reads(self, function: ir.Function, sight: Sight, run: Run, becomes: Fate, reached: Answer) -> Answer:
        """Whether somebody may want the gradient of the result."""
        if becomes.only_read and becomes.by_name is None:
            return proven(Question.READS, "only numbers and pictures are made of what it gives")
        if (
            run.callee is not None
            and reached.verdict is Verdict.PROVEN
            and self.readers.is_read_inside(run.callee)
        ):
            return proven(Question.READS, f"`{run.callee.name}` makes numbers of what the network gives")
        if not becomes.any and run.callee is not None and reached.verdict is Verdict.PROVEN:
            return proven(Question.READS, f"`{run.callee.name}` uses by itself what the network gives")
        if not becomes.any:
            return refuted(Question.READS, "nothing reads its result")
        if becomes.returned and run.callee is not None and reached.verdict is Verdict.PROVEN:
            if self.readers.keeps_to_itself(run.callee):
                return proven(
                    Question.READS, f"`{run.callee.name}` returns nothing that its network has made"
                )
        if becomes.returned and not sight.loops:
            if not (EVALUATES.search(function.name) or PRODUCES.search(function.name)):
                return refuted(Question.READS, "it runs once, and its result goes on as a tensor")
            return left_open(Question.READS, "its result goes to the caller, who may want its gradient")
        if reached.verdict is Verdict.PROVEN and sight.loops and becomes.given is None:
            return proven(Question.READS, "it runs in eval mode, round after round")
        if (
            reached.verdict is Verdict.PROVEN
            and sight.loops
            and (reader := self.readers.harmless(function, becomes))
        ):
            return proven(Question.READS, f"no `{reader}` of the project goes backward")
        if becomes.only_read and becomes.by_name is not None:
            return _by_name(becomes.by_name)
        if becomes.kept is not None and not becomes.goes_on:
            return proven(Question.READS, "its results are gathered")
        return left_open(
            Question.READS, "its result goes to code that is not seen, which may want its gradient"
        )

    def _device(self, run: Run) -> Iterator[Answer]:
        files = [self._file] if run.callee is None else [self._file, run.callee.home]
        words = {
            word.lower()
            for file in files
            for evidence in file.evidence.values()
            for word in evidence.words | evidence.strings
        }
        if speaks_of_no_device(self._file):
            yield left_open(Question.DEVICE, "nothing in the program says that a GPU is used")
        elif not any(part in word for word in words for part in _GPU):
            yield left_open(Question.DEVICE, "nothing in the file says that a GPU is used")
        elif everything_on_cpu(self._file):
            yield refuted(Question.DEVICE, "the device of the whole file is the CPU")
        elif names_only_cpu(self._file):
            yield left_open(Question.DEVICE, "the file names the CPU, and never a GPU")


def _by_name(call: ir.Expr) -> Answer:
    name = call.method if isinstance(call, ir.Call) else ""
    return left_open(
        Question.READS, f"only its name says that `{name}` shows or measures what it is given", call
    )


def _concerned(function: ir.Function, run: Run) -> tuple[str, ...]:
    """The networks that a call may run: its object, what it is given, or all that the object has."""
    func = run.call.func
    paths = [run.path] if run.callee is None else []
    if isinstance(func, ir.Attr) and func.base.path is not None:
        paths.append(func.base.path)
    if run.callee is not None:
        paths += [arg.path for arg in run.call.args if arg.path is not None]
        paths += [value.path for _, value in run.call.keywords if value.path is not None]
        if function.cls is not None and function.params and func.path is not None:
            own = function.params[0].name
            if func.path.startswith(f"{own}."):
                paths += _used_below(run.callee, own)
    return tuple(dict.fromkeys(paths))


def _used_below(callee: ir.Function, own: str) -> list[str]:
    """The attributes of the object that a method calls, as its caller calls them."""
    inner = callee.params[0].name if callee.params else "self"
    found: list[str] = []
    for _, call in ir.calls(callee.body):
        path = call.func.path or ""
        if path.startswith(f"{inner}.") and path.count(".") >= 1:
            found.append(f"{own}.{path.removeprefix(f'{inner}.')}")
    return found


def _asks_phase(test: ir.Expr) -> str | None:
    """`to_do` of `to_do == "train"`."""
    if isinstance(test, ir.Op) and test.op == "==" and isinstance(test.operands[1], ir.Const):
        value = test.operands[1].value
        return test.operands[0].path if isinstance(value, str) and TRAINS.search(value) else None
    return None


def _now_and_then(test: ir.Expr) -> bool:
    """`step % every == 0`, `i == 0`, `batch_idx < 4`."""
    return any(isinstance(part, ir.Op) and part.op in ("%", "==", "cmp") for part in ir.walk(test))


def _words(name: str) -> str:
    """`Feature_Extractor` of `FeatureExtractor`."""
    return "".join(f"_{letter}" if letter.isupper() else letter for letter in name)
